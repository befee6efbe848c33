#!/usr/bin/python3
"""Tests that README.md is short, and that each number in it and in docs/promises.md is the one of results/reference.

Run as tests/scripts/readme_test.py; needs no attnbench.
"""

from __future__ import annotations

import collections
import csv
import re
import unittest
from typing import NamedTuple

from markdown_text import ROOT

REFERENCE = ROOT / "results/reference"
BEGIN, END = "<!-- numbers: results/reference/verdicts.csv -->\n", "<!-- end of numbers -->"
OUTCOMES = ("HOLDS", "REFUTED", "NOT SEEN", "DEPENDS", "MEASURED", "OPEN")
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")

Verdict = dict[str, str]


class Row(NamedTuple):
    recipe: str
    outcome: str
    about: str
    numbers: str


def rows_of(text: str) -> list[Row]:
    """The rows of all tables between the marks: their last cell but one has the numbers that decide."""
    found = []
    for part in text.split(BEGIN)[1:]:
        lines = part.partition(END)[0].splitlines()
        for line in lines[2:]:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            recipe, outcomes = re.search(r"`([\w-]+)`", cells[-1]), [
                word for word in OUTCOMES if re.search(rf"\b{word}\b", line)
            ]
            assert recipe and len(outcomes) == 1, line
            found.append(Row(recipe[1], outcomes[0], " ".join(cells[:-2]), cells[-2]))
    return found


def has(text: str, number: str) -> bool:
    """Whether a number of the text is this one, to the decimals that are printed."""
    decimals = len(number.partition(".")[2])
    printed = float(number.replace(",", ""))
    found = (float(other.replace(",", "")) for other in NUMBER.findall(text))
    return any(abs(other - printed) <= 0.5000001 * 10**-decimals for other in found)


def supports(verdict: Verdict, row: Row) -> bool:
    """Whether the verdict has the row's recipe, its outcome and all its numbers."""
    decides = f"{verdict['numbers']} {verdict['region']}"
    everything = " ".join(verdict.values())
    return (
        (verdict["recipe"], verdict["outcome"]) == (row.recipe, row.outcome)
        and all(has(decides, number) for number in NUMBER.findall(row.numbers))
        and all(has(everything, number) for number in NUMBER.findall(row.about))
    )


class Readme(unittest.TestCase):
    text: str
    verdicts: list[Verdict]

    @classmethod
    def setUpClass(cls) -> None:
        cls.text = (ROOT / "README.md").read_text(encoding="utf-8")
        with open(REFERENCE / "verdicts.csv", encoding="utf-8") as file:
            cls.verdicts = list(csv.DictReader(file))

    def words(self) -> str:
        return " ".join(self.text.split())

    def test_it_is_short(self) -> None:
        self.assertLessEqual(len(self.text.encode()), 9000)

    def test_each_number_of_its_tables_is_that_of_a_verdict(self) -> None:
        rows = rows_of(self.text)
        self.assertGreaterEqual(len(rows), 16)
        for row in rows:
            with self.subTest(recipe=row.recipe):
                self.assertTrue(NUMBER.search(row.numbers), row)
                self.assertTrue(any(supports(verdict, row) for verdict in self.verdicts), row)

    def test_the_reference_has_every_recipe_that_judges(self) -> None:
        judged = {verdict["recipe"] for verdict in self.verdicts}
        sources = [path.read_text(encoding="utf-8") for path in (ROOT / "experiments/recipes").glob("*.toml")]
        names = {
            name
            for source in sources
            if "[[statements]]" in source
            for name in re.findall(r'^name = "([^"]+)"', source, re.MULTILINE)
        }
        self.assertGreater(len(names), 80)
        self.assertEqual(sorted(names - judged), [])

    def test_each_number_of_the_page_about_promises_is_that_of_a_verdict(self) -> None:
        rows = rows_of((ROOT / "docs/promises.md").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(rows), 20)
        for row in rows:
            with self.subTest(recipe=row.recipe, about=row.about):
                self.assertTrue(NUMBER.search(row.numbers), row)
                self.assertTrue(any(supports(verdict, row) for verdict in self.verdicts), row)

    def test_it_counts_the_verdicts(self) -> None:
        kinds = collections.Counter(verdict["kind"] for verdict in self.verdicts)
        counts = collections.Counter(verdict["outcome"] for verdict in self.verdicts if verdict["kind"] == "paper")
        self.assertIn(
            f"Of [{len(self.verdicts)} statements](results/reference/verdicts.md) {kinds['paper']} are claims of papers: "
            f"{counts['HOLDS']} HOLDS, {counts['DEPENDS']} DEPENDS, {counts['REFUTED']} REFUTED, {counts['NOT SEEN']} NOT "
            f"SEEN, {counts['MEASURED']} MEASURED, {counts['OPEN']} OPEN. {kinds['code']} test this code, {kinds['own']} are "
            "our own.",
            self.words(),
        )

    def test_the_sentences_below_its_figure_have_the_numbers_of_the_figure(self) -> None:
        with open(REFERENCE / "score-speed.score-speed.csv", encoding="utf-8") as file:
            points = {row["series"]: row for row in csv.DictReader(file)}
        speed = {name: float(point["x"]) for name, point in points.items() if point["x"]}
        bits = {name: float(point["y"]) for name, point in points.items() if point["y"]}
        self.assertIn(
            f"With exact softmax the model needs {bits['softmax']:.2f} bits for a byte. With a window it needs "
            f"{bits['local']:.2f} and its attention is {speed['local']:.2f} times faster. With the first tokens and a window "
            f"it needs {bits['sink-window']:.2f} at {speed['sink-window']:.2f} times. With Performer it needs "
            f"{bits['performer']:.2f} at {speed['performer']:.2f} times. With the mean of V (dotted), which ignores Q and "
            f"K, it needs {bits['uniform']:.2f}.",
            self.words(),
        )

    def test_losses_on_the_page_about_language_models_are_those_of_the_figure(self) -> None:
        _, path, table = re.split(r"<!-- figure: (\S+) -->\n", (ROOT / "docs/llm.md").read_text(encoding="utf-8"))
        with open(ROOT / path, encoding="utf-8") as file:
            points = {row["series"]: row for row in csv.DictReader(file)}
        rows = re.findall(r"^\| `(\S+)` \|.*\| (\S+) \| (\S+) to (\S+) \|$", table, re.MULTILINE)
        self.assertGreaterEqual(len(rows), 10)
        for method, *numbers in rows:
            with self.subTest(method=method):
                self.assertEqual(numbers, [f"{float(points[method][name]):.4f}" for name in ("y", "low", "high")])

    def test_it_counts_the_methods(self) -> None:
        methods = re.findall(r"^\| `", (ROOT / "docs/method-list.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(set(re.findall(r"(\d+) methods", self.text)), {str(len(methods))})

    def test_a_wrong_number_an_outcome_that_is_not_it_and_another_recipe_are_found(self) -> None:
        verdict = {
            "recipe": "decode",
            "outcome": "HOLDS",
            "numbers": "5013 (4931 to 5149)",
            "region": "",
            "statement": "3,072",
        }
        for about, numbers, recipe, outcome, expected in (
            ("3,072 tokens", "5013", "decode", "HOLDS", True),
            ("", "5014", "decode", "HOLDS", False),
            ("", "5013 and 5014", "decode", "HOLDS", False),
            ("3,073 tokens", "5013", "decode", "HOLDS", False),
            ("", "5013", "decode", "REFUTED", False),
            ("", "5013", "time", "HOLDS", False),
            ("", "3,072", "decode", "HOLDS", False),
        ):
            with self.subTest(about=about, numbers=numbers, recipe=recipe, outcome=outcome):
                self.assertEqual(supports(verdict, Row(recipe, outcome, about, numbers)), expected)
        self.assertTrue(has("-0.6541 (-0.6548 to -0.6533)", "-0.654"))
        self.assertFalse(has("0.6541", "-0.654"))


if __name__ == "__main__":
    unittest.main()
