#!/usr/bin/python3
"""Tests of scripts/report.py: the page that it writes. tests/scripts/page/page_test.py looks at the page in a browser.

Run as tests/scripts/report_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import csv
import dataclasses
import html
import json
import re
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from example_stores import CURVE, MAP, InTemporaryDirectory, drawn

import report
import results


class Page(InTemporaryDirectory):
    def test_statements_lead_their_recipe_and_their_paper(self) -> None:
        store = self.example(
            results.Verdict("recipe", "DEPENDS", "first claim: at a", "1"),
            results.Verdict("recipe", "REFUTED", "second <claim>", "2 & 3"),
        )
        self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        page = (self.directory / "page" / "index.html").read_text()
        recipe = page[page.index('id="recipe-recipe"') :]
        places = [recipe.index(words) for words in ("It holds", "first claim: at a", "second &lt;claim&gt;", "<figure")]
        self.assertEqual(places, sorted(places))
        paper = page[page.index('class="paper"') : page.index('id="recipe-recipe"')]
        places = [paper.index(words) for words in ("this project", "first claim", "second &lt;claim&gt;", "2 &amp; 3")]
        self.assertEqual(places, sorted(places))
        self.assertIn('<span class="outcome refuted">REFUTED</span>', page)

    def test_the_first_screen_has_a_card_for_each_question_with_its_figure_and_answer(self) -> None:
        for asked in (True, False):  # without questions the first figures
            with self.subTest(asked=asked):
                with self.store(f"asked-{asked}.db") as store:
                    store.cell("uniform", [0.05], m=16)
                    for i in range(6):
                        question = {"headline": f"Is it {i}?", "place": 6 - i} if asked and i % 2 else {}
                        store.figure("curves", CURVE, recipe=f"recipe-{i}", **question)
                        store.verdicts(
                            results.Verdict(f"recipe-{i}", "HOLDS", f"claim {i}", f"numbers {i}"), size="full"
                        )
                drawn(store.path)
                self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
                page = (self.directory / "page" / "index.html").read_text()
                cards = re.findall(r'<article class="card">(.*?)</article>', page, re.S)
                self.assertEqual(len(cards), 3 if asked else 4)
                for i, card in zip((5, 3, 1) if asked else range(4), cards):
                    words = [f"Is it {i}?", "HOLDS", f"claim {i}", f"numbers {i}"] if asked else ["Title of curves"]
                    for expected in (*words, f'href="#figure-recipe-{i}-curves"', f'src="recipe-{i}.curves.svg"'):
                        self.assertIn(expected, card)
                self.assertLess(page.index('class="card"'), page.index("<section aria-labelledby="))

    def test_comparisons_that_are_too_many_for_the_page_are_in_a_file_beside_it(self) -> None:
        compared = [
            {"what": f'"a", <{i}>', "side": "b", "value": i, "low": None, "high": i + 0.5, "count": 7}
            for i in range(41)
        ]
        store = self.example(
            results.Verdict("recipe", "HOLDS", "short", "1", compared=json.dumps(compared[:40])),
            results.Verdict("recipe", "HOLDS", "long", "1", compared=json.dumps(compared)),
        )
        self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        page = (self.directory / "page" / "index.html").read_text()
        self.assertIn("<summary>40 comparisons</summary>", page)
        self.assertIn("&lt;39&gt;", page)
        self.assertNotIn("&lt;40&gt;", page)
        self.assertIn('41 comparisons: <a href="claim-2.csv" download>', page)
        with (self.directory / "page" / "claim-2.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["what", "side", "value", "low", "high", "count"])
        self.assertEqual(rows[1:], [[f'"a", <{i}>', "b", str(i), "", str(i + 0.5), "7"] for i in range(41)])
        self.assertFalse((self.directory / "page" / "claim-1.csv").exists())

    def test_titles_begin_with_a_capital_letter_unless_they_begin_with_a_symbol(self) -> None:
        for given, shown in (
            ("error of the output", "Error of the output"),
            ("n = 64", "n = 64"),
            ("k-means", "k-means"),
        ):
            with self.subTest(title=given), self.store(f"{given}.db") as store:
                store.cell("uniform", [0.05], m=16)
                store.figure("curves", CURVE, title=given)
            drawn(store.path)
            self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
            self.assertIn(f"<h4>{shown}</h4>", (self.directory / "page" / "index.html").read_text())

    def test_the_title_of_the_page_names_what_was_run(self) -> None:
        for methods, experiments, title in (
            (["vq:codes=4", "performer"], ["rank"], "Rank: performer, vq"),
            (["vq"], ["rank", "attention-error:matrix=0"], "Attention error, Rank: vq"),
            ([f"m{i}" for i in range(5)], ["rank"], "Rank: 5 methods"),
            (["vq"], [f"e{i}" for i in range(5)], "title.db"),
        ):
            with self.subTest(title=title):
                (self.directory / "title.db").unlink(missing_ok=True)
                with self.store("title.db") as store:
                    for method in methods:
                        for experiment in experiments:
                            store.cell(method, [1.0], experiment=experiment)
                drawn(store.path)
                self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
                page = (self.directory / "page" / "index.html").read_text()
                self.assertIn(f"<h1>{title}</h1>", page)
                self.assertIn(f"<title>{title} - attnbench report</title>", page)
        with self.store("reproduced.db") as store:
            store.verdicts(results.Verdict("rank", "HOLDS", "a", "1"), size="full")
        self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        self.assertIn("<h1>Reproduced: rank</h1>", (self.directory / "page" / "index.html").read_text())

    def test_an_enlarged_figure_has_the_explorer_with_its_axes(self) -> None:
        with self.store() as store:
            store.cell("uniform", [0.05], m=16)
            costs = {**CURVE, "kind": "trade", "x_metric": "time of <a>", "x_scale": "linear", "series": ["m"]}
            store.figure("curve", {**CURVE, "cells": []})
            store.figure("map", MAP)
            store.figure("trade", costs)
        drawn(store.path)
        self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        views = re.findall(r'data-view="([^"]*)"', (self.directory / "page" / "index.html").read_text())
        self.assertEqual(
            [html.unescape(view) for view in views],
            [
                "#cells=recipe:recipe&y=mse&x=m",
                "",
                "#cells=experiment:error&y=mse&x=metric:time%20of%20%3Ca%3E&series=m&logx=off",
            ],
        )

    def test_the_page_is_whole_and_asks_for_nothing(self) -> None:
        store = self.example()
        code, out, _ = self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        self.assertEqual(code, 0)
        self.assertEqual(out.strip(), str(self.directory / "page" / "index.html"))
        page = Path(out.strip()).read_text()
        self.assertIsNone(re.search(r"https?://|<link|<script src=|@import", page))
        ids = re.findall(r'\bid="([^"]*)"', page)
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual(set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)), set(ids))
        for words in (
            "The recipe",
            "It holds &amp; more.",
            'alt="Title of curves. A &lt;caption&gt; \\1."',
            "signal 11",
            "no cell of the results meets the conditions",
            "attnbench run &lt;x&gt;",
            "cpu.model",
            'href="recipe.curves.csv"',
        ):
            self.assertIn(words, page)
        for link in re.findall(r'(?:href|src)="([^"#]+)"', page):
            self.assertTrue((self.directory / "page" / link).exists(), link)

    def test_very_many_cells_are_not_loaded_into_a_browser(self) -> None:
        store = self.example()
        read = results.read

        def unsummarised(path: Path) -> results.Results:
            found = read(path)
            return dataclasses.replace(found, summaries=found.summaries.iloc[:0])

        with mock.patch.object(report, "read", unsummarised):
            self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        page = (self.directory / "page" / "index.html").read_text()
        self.assertIn("more than a browser can show", page)
        self.assertNotIn('id="cells-form"', page)
        self.assertFalse((self.directory / "page" / "cells.js").exists())

    def test_the_table_of_methods_with_most_columns_comes_first(self) -> None:
        def table(name: str, columns: int) -> SimpleNamespace:
            panel = SimpleNamespace(description={"kind": "table"}, missing="")
            figure = SimpleNamespace(name=name, description={})
            return SimpleNamespace(drawings=[SimpleNamespace(figure=figure, panels=[panel] * columns)])

        with mock.patch.object(report, "compared", lambda title, _, panels: f"{title}: {len(panels)}"):
            tables = report._compared([table("few", 2), table("many", 9), table("three", 3)])  # type: ignore[list-item]
        self.assertEqual(re.findall(r"\w+: \d", tables), ["Many: 9", "Three: 3", "Few: 2"])

    def test_an_empty_store_says_how_to_fill_it(self) -> None:
        with self.store() as store:
            pass
        code, out, _ = self.run_script(report, str(store.path), "-o", str(self.directory))
        self.assertEqual(code, 0)
        self.assertIn("attnbench reproduce", Path(out.strip()).read_text())


if __name__ == "__main__":
    unittest.main()
