#!/usr/bin/python3
"""Tests that every relative link in a Markdown file leads to a file of the project, and every fragment to a place in it.

Run as tests/scripts/links_test.py; needs no attnbench.
"""

from __future__ import annotations

import unittest
from pathlib import Path
from urllib.parse import unquote

from markdown_text import ROOT, Link, links, places, tracked_files


def wrong(link: Link, root: Path) -> str | None:
    """The reason why a link leads nowhere, or None."""
    if link.target.split(":")[0] in ("http", "https", "mailto"):
        return None
    path, _, fragment = unquote(link.target).partition("#")
    target = (root / link.file).parent / path if path else root / link.file
    if path.startswith("/") or not target.resolve().is_relative_to(root.resolve()):
        return f"{link.file}:{link.line}: {link.target} leads out of the project"
    if not target.exists():
        return f"{link.file}:{link.line}: {link.target} leads to no file"
    if fragment and (target.suffix != ".md" or fragment not in places(target.read_text(encoding="utf-8"))):
        return f"{link.file}:{link.line}: {link.target} leads to no heading or anchor"
    return None


class Links(unittest.TestCase):
    def test_every_relative_link_leads_to_a_file_and_a_place_in_it(self) -> None:
        found: list[Link] = []
        for path in tracked_files(".md"):
            found += links(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(found), 250, "the pattern finds fewer links than there are")
        self.assertGreaterEqual(sum("#" in link.target for link in found), 150)
        self.assertEqual([reason for link in found if (reason := wrong(link, ROOT))], [])

    def test_the_index_of_the_documents_names_each_of_them(self) -> None:
        index = ROOT / "docs/README.md"
        named = {link.target for link in links("docs/README.md", index.read_text(encoding="utf-8"))}
        pages = {path.name for path in index.parent.glob("*.md") if path != index}
        self.assertGreaterEqual(len(pages), 10)
        self.assertEqual(sorted(pages - named), [])

    def test_a_link_that_leads_nowhere_is_found(self) -> None:
        for text, expected in (
            ("[x](docs/nowhere.md)", "leads to no file"),
            ("![a figure](results/reference/nowhere.svg)", "leads to no file"),
            ('<img src="docs/nowhere.svg" alt="x">', "leads to no file"),
            ("[x]: docs/nowhere.md", "leads to no file"),
            ("[x](docs/claims.md#reading-a-pass)", "leads to no heading"),
            ("[x](#nowhere)", "leads to no heading"),
            ("[x](LICENSE#apache)", "leads to no heading"),
            ("[x](../elsewhere.md)", "leads out of the project"),
            ("[x](/etc/hosts)", "leads out of the project"),
        ):
            with self.subTest(text=text):
                link = next(links("README.md", "one line\n" + text))
                self.assertEqual(link.line, 2)
                self.assertIn(expected, wrong(link, ROOT) or "")

    def test_a_link_that_leads_somewhere_is_accepted(self) -> None:
        for text in (
            "[x](docs/claims.md#reading-a-fail)",
            "[x](docs/methods.md#a4)",
            "[![x](docs/tutorial.svg)](docs)",
            "[x](https://example.org/nowhere)",
        ):
            with self.subTest(text=text):
                found = list(links("README.md", text))
                self.assertEqual([wrong(link, ROOT) for link in found], [None] * len(found))
                self.assertGreaterEqual(len(found), 1)

    def test_code_has_no_links_and_no_headings(self) -> None:
        self.assertEqual(list(links("a.md", "`a[0](b)`\n```sh\n[x](y)\n```\n")), [])
        self.assertEqual(
            places("# One `word`, twice\n```sh\n# two\n```\n## One word twice\n"),
            {"one-word-twice", "one-word-twice-1"},
        )


if __name__ == "__main__":
    unittest.main()
