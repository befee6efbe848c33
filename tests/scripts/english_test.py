#!/usr/bin/python3
"""Tests that README.md, CONTRIBUTING.md and docs/*.md avoid the phrases that CONTRIBUTING.md warns of.

Code and quotations ("...") are exempt. Run as tests/scripts/english_test.py; needs no attnbench.
"""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterator
from typing import NamedTuple

from markdown_text import ROOT, blank, prose


class Phrase(NamedTuple):
    pattern: re.Pattern[str]
    instead: str
    examples: tuple[str, ...]


# The beginning of a sentence, of a heading, of a list's item or of a table's cell.
BEGIN = r"(?:^|(?<=[.!?:;|] )|(?<=[.!?]\n)|(?<=\n\n)|(?<=# )|(?<=[-*] )|(?<=\*\*))"

PHRASES = [
    Phrase(
        re.compile(r"\b(?:is|are|was|were|be)\s+none\b"),
        "say what it is: NaN, missing, empty",
        ("Numbers that are none throw.", "a number is none", "a line that was\nnone"),
    ),
    Phrase(
        re.compile(
            r"\b(?:that|which|this|these|it|they|what)\s+(?:is|are)\s+no\b(?!\s+longer|\s+more|\s+less)", re.IGNORECASE
        ),
        '"is not a ..."',
        ("A file that is no plugin is refused.", "They are no sample of one."),
    ),
    Phrase(
        re.compile(BEGIN + r"What\b", re.MULTILINE),
        "begin with the subject",
        (
            "What cannot be loaded is the answer.",
            "It ends. What is left is timed.",
            "## What happens",
            "- What an entry claims",
            "| a | What it does |",
            "It ends.\nWhat is left is timed.",
        ),
    ),
    Phrase(re.compile(r"\bwhatever\b", re.IGNORECASE), "name it, or: for every", ("Scratch is small, whatever n.",)),
    Phrase(re.compile(r"\banew\b", re.IGNORECASE), "again", ("Every merge makes it anew.",)),
    Phrase(
        re.compile(r"\bmend(?:s|ed|ing)?\b", re.IGNORECASE), "fix, repair", ("how to mend it", "The command mends it.")
    ),
    Phrase(
        re.compile(r"\bst(?:ands?|anding|ood)\b(?!-ins?\b|\s+for\b)", re.IGNORECASE),
        "is, is written",
        ("The text stands in its file.", "It stands with the statement.", "as they stand"),
    ),
    Phrase(
        re.compile(BEGIN + r"Else\b|\belse,", re.MULTILINE),
        "otherwise, and the condition",
        ("Else a Krylov space is used.",),
    ),
    Phrase(re.compile(r"\bbelongs?\s+into\b"), "belongs in", ("It belongs into the folder.",)),
    Phrase(re.compile(r"\bha(?:s|ve)\s+not\s+got\b"), "lacks", ("A cell that has not got it",)),
    Phrase(re.compile(r"\bof\s+which\s+what\b"), "two sentences", ("of which what it says takes the place",)),
]

QUOTATION = re.compile(r'"[^"]*"')


def own_words(text: str) -> str:
    """The prose, with spaces in place of quotations. A quotation ends in the paragraph that it begins in."""
    paragraphs = re.split(r"(\n\s*\n)", prose(text))
    return "".join(blank(part, QUOTATION) if part.count('"') % 2 == 0 else part for part in paragraphs)


def found_in(file: str, text: str) -> Iterator[str]:
    words = own_words(text)
    for phrase in PHRASES:
        for found in phrase.pattern.finditer(words):
            line = words.count("\n", 0, found.start()) + 1
            shown = " ".join(words[found.start() : found.end() + 40].split())
            yield f"{file}:{line}: '{shown}'; {phrase.instead}"


class English(unittest.TestCase):
    def test_the_documents_avoid_the_phrases(self) -> None:
        paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
        self.assertGreaterEqual(len(paths), 10)
        found = [at for path in paths for at in found_in(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [], "\n".join(found))

    def test_each_phrase_is_found_where_it_is_written(self) -> None:
        for phrase in PHRASES:
            for example in phrase.examples:
                with self.subTest(example=example):
                    text = f"One sentence.\n\n{example}\n"
                    self.assertEqual([at.endswith(phrase.instead) for at in found_in("a.md", text)], [True])
                    self.assertTrue(next(found_in("a.md", text)).startswith("a.md:"))

    def test_plain_sentences_code_and_quotations_pass(self) -> None:
        for text in (
            "A method produced NaN or infinity. The runner records it as invalid.",
            "The line says what was given, what was expected and how to fix it.",
            "Workers hold stand-ins. A code stands for a normal law. You understand the standard.",
            "There is no GPU, and it is no longer needed. None of them runs. An amendment follows.",
            "`--else, whatever` is code.\n\n```sh\nWhat stands anew\n```\n",
            'The source says "What is known\nstands" and no more.',
        ):
            with self.subTest(text=text):
                self.assertEqual(list(found_in("a.md", text)), [])

    def test_a_quotation_mark_without_its_other_one_hides_nothing(self) -> None:
        text = 'An inch is 1".\n\nIt stands alone.\n\nAnother inch is 1".\n'
        self.assertEqual(len(list(found_in("a.md", text))), 1)


if __name__ == "__main__":
    unittest.main()
