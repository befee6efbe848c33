#!/usr/bin/python3
"""Tests of scripts/verdicts.py, number_table.py and tables.py: verdicts and numbers in CSV, Markdown and LaTeX.

Run as tests/scripts/tables_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import csv
import io
import re
import unittest

from example_stores import SCRIPTS, InTemporaryDirectory

import panel
import plot
import results
import tables
import verdicts

NEGATIVE = results.Verdict(
    "bold*claim", "REFUTED", "half of a_b | c", "50 % & 2^3 ≤ {9}", expected="HOLDS", source="A et al.\n2020, $x$"
)


class Verdicts(InTemporaryDirectory):
    def judged(self, size: str) -> results.Results:
        with self.store(f"{size}.db") as store:
            conditional = results.Verdict("bold*claim", "DEPENDS", "Faster", "1", "n > 8", "DEPENDS", "B")
            store.verdicts(NEGATIVE, conditional, size=size)
        return results.read(store.path)

    def test_the_csv_of_verdicts_has_every_field_as_it_is(self) -> None:
        rows = list(csv.DictReader(io.StringIO(verdicts.as_csv(self.judged("quick")))))
        self.assertEqual([row["contradicts"] for row in rows], ["yes", "no"])
        self.assertEqual(rows[0]["source"], NEGATIVE.source)
        self.assertEqual((rows[1]["region"], rows[1]["expected"], rows[1]["size"]), ("n > 8", "DEPENDS", "quick"))

    def test_renewed_verdicts_replace_those_of_their_recipes_and_keep_all_others(self) -> None:
        table = self.directory / "verdicts.csv"
        with self.store("others.db") as store:
            store.verdicts(results.Verdict("other", "MEASURED", "How much", "-2 to 3", "here", "MEASURED"), size="full")
        table.write_text(
            verdicts.as_csv(results.read(store.path)) + verdicts.as_csv(self.judged("full")).partition("\n")[2]
        )
        with self.store("new.db") as store:
            store.verdicts(results.Verdict("bold*claim", "HOLDS", "Slower", "7", expected="REFUTED"), size="quick")
        renewed = verdicts.renewed(results.read(store.path), table)
        self.assertEqual(
            [(row["recipe"], row["statement"], row["size"], row["contradicts"])
             for row in csv.DictReader(io.StringIO(verdicts.as_csv(renewed)))],
            [("bold*claim", "Slower", "quick", "yes"), ("other", "How much", "full", "no")],
        )  # fmt: skip
        self.assertEqual(renewed.verdicts[1].numbers, "-2 to 3")
        self.assertIn(
            "2 verdicts: 2 findings of this project (1 HOLDS, 1 MEASURED). 1 not as expected.",
            verdicts.as_markdown(renewed),
        )
        with self.assertRaisesRegex(results.Misuse, "expected a table of verdicts.py --format csv"):
            verdicts.renewed(results.read(store.path), self.directory / "absent.csv")

    def test_no_cell_is_a_formula_and_no_text_commands_a_terminal(self) -> None:
        for text in ("=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "+inf2"):
            self.assertEqual(tables.csv_text(text), f"'{text}")
        for text in ("", "a=b", "-1", "+2.5e-3", ".5", "-.5", "-inf", "NaN", "1e9", "performer:m=8", "'=1"):
            self.assertEqual(tables.csv_text(text), text)
        self.assertEqual(tables.comma_separated(["=a"], [["-1"], ["=b"]]), "'=a\n-1\n'=b\n")
        shown = tables.markdown(["a"], [["\x1b[2J\x07red\x9b1m\x7f é"]])
        self.assertIn(r"\\x1b\[2J\\x07red\\x9b1m\\x7f é", shown)
        self.assertEqual(str(results.Misuse("no \x1b]0;title\x07 file\n")), "no \\x1b]0;title\\x07 file\n")

    def test_words_are_escaped_in_markdown_and_in_latex(self) -> None:
        read = self.judged("quick")
        self.assertIn("1 not as expected", verdicts.heading(read))
        rows = verdicts.as_markdown(read).splitlines()[4:]
        self.assertEqual([len(re.findall(r"(?<!\\)\|", row)) for row in rows], [7, 7])
        self.assertIn(r"| half of a\_b \| c | 50 % & 2^3 ≤ {9} | A et al. 2020, \$x\$ | bold\*claim |", rows[0])
        self.assertIn(r"Faster: n \> 8", rows[1])
        latex = verdicts.as_latex(read)
        self.assertIn(r"half of a\_b \textbar{} c & 50 \% \& 2\textasciicircum{}3 $\leq$ \{9\}", latex)
        lines = latex.splitlines()
        self.assertEqual([len(re.findall(r"(?<!\\)&", row)) for row in (lines[3], *lines[5:7])], [5] * 3)
        self.assertEqual(latex.count("{") - latex.count(r"\{"), latex.count("}") - latex.count(r"\}"))
        odd = r"\textbackslash{}\textasciitilde{}\textless{}1e$-$3$\times$10$^{-}$$^{2}$"
        self.assertEqual(tables.latex_text("\\~<1e−3×10⁻²"), odd)

    def test_verdicts_of_the_smoke_sizes_say_that_they_show_nothing(self) -> None:
        read = self.judged("smoke")
        for text in (verdicts.as_markdown(read), verdicts.as_latex(read)):
            self.assertIn("All are of the smoke sizes", text)
            self.assertIn("0 not as expected", text)
            self.assertNotIn("(not as expected)", text)
            self.assertEqual(text.count("none: smoke"), 2)
        self.assertNotIn("smoke", verdicts.as_markdown(self.judged("quick")))

    def test_the_program_prints_each_format(self) -> None:
        self.judged("quick")
        path = str(self.directory / "quick.db")
        for words, begin in (
            ([], "2 verdicts: 2 findings of this project (1 REFUTED, 1 DEPENDS)"),
            (["--format", "latex"], "% 2 verdicts"),
            (["--format", "csv"], "recipe,kind,size,outcome"),
        ):
            code, out, err = self.run_script(verdicts, path, *words)
            self.assertEqual((code, err), (0, ""))
            self.assertTrue(out.startswith(begin), out)
        with self.store("none.db"):
            pass
        self.assertIn("'attnbench reproduce' makes them", self.run_script(verdicts, str(self.directory / "none.db"))[1])
        self.assertEqual(self.run_script(verdicts, str(self.directory / "missing.db"))[0], 2)

    def test_the_figures_of_the_reference_are_those_that_the_documents_show(self) -> None:
        root = SCRIPTS.parent
        folder = root / "results/reference"
        shown = {
            (document.parent / path).resolve()
            for document in (root / "README.md", *root.glob("docs/**/*.md"))
            for path in re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", document.read_text())
        }
        self.assertEqual(
            sorted(path.name for path in shown if path.parent == folder.resolve()),
            sorted(path.name for path in folder.glob("*.svg")),
        )
        for figure in folder.glob("*.svg"):
            self.assertTrue(figure.with_suffix(".csv").exists(), figure.name)


class Numbers(InTemporaryDirectory):
    def test_numbers_are_tabulated_with_the_reason_of_what_was_not_done(self) -> None:
        read = results.read(self.example().path)
        files = plot.draw(read.figures[0], panel.panels_of(read, read.figures[0]), ["tex", "md"]).files
        markdown, latex = files["md"].decode(), files["tex"].decode()
        self.assertIn("| panel | performer | 16 | 0.06875 | 0.05322 to 0.08428 | 0.06875 |", markdown)
        self.assertIn("| panel | performer | 128 | crashed: signal 11 | – | – |", markdown)
        self.assertIn(r"panel & performer & 16 & 0.06875 & 0.05322 to 0.08428 & 0.06875 \\", latex)


if __name__ == "__main__":
    unittest.main()
