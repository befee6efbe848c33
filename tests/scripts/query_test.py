#!/usr/bin/python3
"""Tests of scripts/query.py: a figure that the words of plot.py's command line ask for.

Run as tests/scripts/query_test.py; needs no attnbench.
"""

from __future__ import annotations

import csv
import unittest
from pathlib import Path

from example_stores import InTemporaryDirectory

import plot


class Queries(InTemporaryDirectory):
    def test_a_query_draws_a_metric_against_an_axis(self) -> None:
        self.every_kind()
        words = (
            "--x",
            "m",
            "--y",
            "seconds",
            "--where",
            "experiment=speed",
            "--where",
            "layer=1",
            "--where",
            "layer=2",
        )
        out = str(self.directory / "out")
        code, printed, err = self.run_script(
            plot,
            str(self.directory / "kinds.db"),
            *words,
            "--series",
            "input",
            "--log",
            "x,y",
            "--table",
            "markdown",
            "-o",
            out,
        )
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(
            {Path(line).name for line in printed.split()},
            {f"query.seconds-over-m.{ending}" for ending in ("csv", "svg", "pdf", "md")},
        )
        with open(self.directory / "out" / "query.seconds-over-m.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(
            [(row["series"], row["x"], row["y"], row["samples"]) for row in rows],
            [("gaussian", "2.0", "0.002", "6"), ("gaussian", "4.0", "0.002", "6")],
        )  # medians

    def test_a_query_that_cannot_be_says_what_could(self) -> None:
        self.every_kind()
        for words, problem in (
            (["--x", "m"], "both axes"),
            (["--log", "x"], "belong to a query"),
            (["--x", "m", "--y", "second"], "expected one of: seconds"),
            (["--x", "mm", "--y", "seconds"], "no size, spec or parameter"),
            (["--x", "m", "--y", "seconds", "--where", "layer"], "expected NAME=VALUE"),
            (["--x", "m", "--y", "seconds", "--where", "layr=1"], "expected one of: layer"),
            (["--x", "m", "--y", "seconds", "--where", "experiment=error"], "none of the cells"),
            (["--x", "m", "--y", "seconds", "--figure", "kinds"], "expected one of them"),
        ):
            code, out, err = self.run_script(plot, str(self.directory / "kinds.db"), *words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), words)
            self.assertIn(problem, err)


if __name__ == "__main__":
    unittest.main()
