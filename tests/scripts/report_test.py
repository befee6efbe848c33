#!/usr/bin/python3
"""Tests of scripts/report.py: the page that it writes. tests/scripts/page/page_test.py looks at the page in a browser.

Run as tests/scripts/report_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import dataclasses
import re
import unittest
from pathlib import Path
from unittest import mock

from example_stores import InTemporaryDirectory

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

    def test_an_empty_store_says_how_to_fill_it(self) -> None:
        with self.store() as store:
            pass
        code, out, _ = self.run_script(report, str(store.path), "-o", str(self.directory))
        self.assertEqual(code, 0)
        self.assertIn("attnbench reproduce", Path(out.strip()).read_text())


if __name__ == "__main__":
    unittest.main()
