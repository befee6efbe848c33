#!/usr/bin/python3
"""Tests of docs/methods.md, the specification, and docs/glossary.md: a comment that cites a section names one that exists.

Comments say "methods.md A4", "methods.md A2, A7", "methods.md J 34 to 38", "methods.md F and H" or "methods.md, hygiene".
links_test.py tests the links. Run as tests/scripts/specification_test.py; needs no attnbench.
"""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from markdown_text import ROOT, anchors, tracked_files

SPECIFICATION = ROOT / "docs/methods.md"
GLOSSARY = ROOT / "docs/glossary.md"
NAME = SPECIFICATION.name
ENDINGS = (".cpp", ".hpp", ".md", ".py")

MENTION = re.compile(r"\bmethods\.md(?![\w#])")
# A letter is no section where a formula goes on with it, such as A_ij or A^c.
SECTION = re.compile(
    r"(?:section |rows? |oracles? )?"
    r"(?P<name>J \d+|[A-Z]\d*|0(?:\.\d)?|hygiene|expected magnitudes|(?P<number>\d+))(?![\w^('\[=-])"
)
BETWEEN = re.compile(r"(?P<range> to )|, and | and |, ")
LINE_BREAK = re.compile(r"\s*\n\s*(?://+|#+)?\s*")


class Reference(NamedTuple):
    file: str
    line: int
    anchor: str  # "a4", "0", "hygiene"


def cited(words: str) -> list[str]:
    """The anchors of the sections that the words after the file's name cite: " A2, A7: ..." gives a2 and a7."""
    found: list[str] = []
    at = re.compile(",? ").match(words)
    to_here = False
    while at and (section := SECTION.match(words, at.end())):
        name = section["name"].lower().replace("j ", "j").replace(" ", "-")
        if section["number"]:  # J 28, 52 and 54: the letter is that of the first
            if not found or not re.fullmatch(r"j\d+", found[-1]):
                break
            name = "j" + name
        if to_here:
            first, last = re.match(r"([a-z])(\d+)", found[-1]), re.match(r"([a-z])(\d+)", name)
            if not first or not last or first[1] != last[1]:
                raise ValueError(f"a range from {found[-1]} to {name}")
            found += [first[1] + str(i) for i in range(int(first[2]) + 1, int(last[2]))]
        found.append(name)
        at = BETWEEN.match(words, section.end())
        to_here = bool(at and at["range"])
    return found


def references(file: str, text: str) -> Iterator[Reference]:
    """The places that the comments of one file cite. A mention of the file as a whole cites nothing."""
    for mention in MENTION.finditer(text):
        words = LINE_BREAK.sub(" ", text[mention.end() : mention.end() + 300])
        found, line = cited(words), text.count("\n", 0, mention.start()) + 1
        if not found and re.match(r"\W{0,3}(?:[A-Z0-9]\b|[A-Z]?[0-9])", words):
            raise ValueError(f"{file}:{line}: no reference that this test understands: {NAME}{words[:20]}")
        for anchor in found:
            yield Reference(file, line, anchor)


def missing(wanted: Iterable[Reference], there: set[str]) -> list[str]:
    return [f"{at.file}:{at.line}: {NAME} has no {at.anchor}" for at in wanted if at.anchor not in there]


class Specification(unittest.TestCase):
    texts: dict[str, str]
    there: set[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in tracked_files(*ENDINGS)}
        cls.there = set(anchors(SPECIFICATION.read_text(encoding="utf-8")))

    def test_every_section_that_is_cited_exists(self) -> None:
        found = [at for file, text in self.texts.items() for at in references(file, text)]
        self.assertGreaterEqual(len(found), 200, "the pattern finds fewer references than there are")
        self.assertGreater(len({at.file for at in found}), 100)
        self.assertEqual(missing(found, self.there), [])

    def test_terms_of_the_glossary_are_in_alphabetical_order(self) -> None:
        terms = re.findall(r'^<a id="([^"]+)"></a>\*\*', GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreaterEqual(len(terms), 50)
        self.assertEqual(terms, sorted(terms))

    def test_no_anchor_is_there_twice(self) -> None:
        for path in (SPECIFICATION, GLOSSARY):
            every = anchors(path.read_text(encoding="utf-8"))
            self.assertEqual(sorted({name for name in every if every.count(name) > 1}), [])

    def test_an_invented_reference_fails(self) -> None:
        for words, wrong in (
            (" A99", "a99"),
            (" Q", "q"),
            (" A4, F77).", "f77"),
            (" J 28, 93.", "j93"),
            (" B,\n//   C99 and so on", "c99"),
            (" 0.7", "0.7"),
            (" J60 to J94", "j67"),
        ):
            with self.subTest(words=words):
                text = f"// How it is computed ({NAME}{words}\n"
                self.assertIn(f"file.cpp:1: {NAME} has no {wrong}", missing(references("file.cpp", text), self.there))
        with self.assertRaisesRegex(ValueError, "file.cpp:1"):
            list(references("file.cpp", f"// {NAME} (A4)"))
        with self.assertRaisesRegex(ValueError, "range"):
            list(references("file.cpp", f"// {NAME} A4 to B2"))

    def test_references_are_understood_as_comments_write_them(self) -> None:
        for words, expected in (
            (" A4.", ["a4"]),
            (" 0, H\n// Keys are streamed", ["0", "h"]),
            (" A7,\n//   C\n// The factor of a query", ["a7", "c"]),
            (" A5 to A8, J4, J5,\n// J17 to J19).", ["a5", "a6", "a7", "a8", "j4", "j5", "j17", "j18", "j19"]),
            (" J 38, 54 and 62).", ["j38", "j54", "j62"]),
            (" A4, J 6 and 7); and the rest", ["a4", "j6", "j7"]),
            (" F, oracles J45 to J46), the edges", ["f", "j45", "j46"]),
            (" A3,\n//   B E exp(2 alpha)", ["a3", "b"]),
            (", hygiene); at 0.5", ["hygiene"]),
            (" I, expected magnitudes).", ["i", "expected-magnitudes"]),
            (" F, and the first tokens", ["f"]),
            (" C: A_ij = 2", ["c"]),
            (" B, d = 4)", ["b"]),
            (" A11 (i) with W = I", ["a11"]),
            (" and from nothing else", []),
        ):
            with self.subTest(words=words):
                self.assertEqual([at.anchor for at in references("file.cpp", f"// {NAME}{words}\n")], expected)


if __name__ == "__main__":
    unittest.main()
