#!/usr/bin/python3
"""Tests of scripts/results.py: specs, and what is read from one results file or several.

Run as tests/scripts/results_test.py; needs no attnbench.
"""

from __future__ import annotations

import unittest

from example_stores import CURVE, InTemporaryDirectory

import plot
import results


class Specs(unittest.TestCase):
    def test_the_swept_parameter_leaves_the_name(self) -> None:
        self.assertEqual(results.without_parameter("performer:m=16,projection=iid", "m"), "performer:projection=iid")
        self.assertEqual(results.without_parameter("performer:m=16", "m"), "performer")
        self.assertEqual(results.without_parameter("performer", "m"), "performer")

    def test_brackets_hide_commas_and_nested_parameters(self) -> None:
        spec = "combine:[local:window=8,m=2],low-rank=[performer:m=4,projection=iid],m=16"
        self.assertEqual(
            results.without_parameter(spec, "m"), "combine:local:window=8,low-rank=[performer:m=4,projection=iid]"
        )
        self.assertEqual(results.split_spec("per-head:[a:x=[b,c],y=1],[d]"), ("per-head", ["[a:x=[b,c],y=1]", "[d]"]))

    def test_a_parameter_is_not_mistaken_for_one_that_ends_like_it(self) -> None:
        self.assertEqual(results.without_parameter("x:dim=2,m=3", "m"), "x:dim=2")

    def test_numbers_in_names_are_in_order(self) -> None:
        names = ["local:window=128", "local:window=16", "local"]
        self.assertEqual(sorted(names, key=results.natural_order), ["local", "local:window=16", "local:window=128"])


class Reading(InTemporaryDirectory):
    def test_a_cell_that_two_files_hold_counts_once(self) -> None:
        for name, second in (("a.db", [1.0, 2.0]), ("b.db", [1.0, 2.0, 3.0])):
            with self.store(name) as store:
                store.cell("performer:m=4", second, m=4)
        read = results.read([self.directory / "a.db", self.directory / "b.db"])
        self.assertEqual((len(read.cells), len(read.measurements), len(read.runs)), (1, 3, 2))

    def test_a_newer_source_version_replaces_the_older(self) -> None:
        with self.store() as store:
            store.cell("performer:m=4", [9.0], m=4, version="new", finished="2026-02-01T00:00:00Z")
            store.cell("performer:m=4", [1.0], m=4, version="old")
        read = results.read([store.path])
        self.assertEqual(read.superseded, 1)
        self.assertEqual([float(v) for v in read.measurements["values"]], [9])

    def test_a_figure_draws_its_own_cells_in_their_newest_version(self) -> None:
        def key(method: str, experiment: str, version: str) -> str:
            return repr((experiment, method, 64, "0", version, ""))

        with self.store() as store:
            store.cell("a", [5.0], experiment="error", version="new", finished="2026-02-01T00:00:00Z", m=4)
            store.cell("a", [1.0], experiment="error", version="old", m=4)
            store.cell("a", [7.0], experiment="error:other=1", m=4, other=1)
            store.figure("all", CURVE)
            store.figure("own", {**CURVE, "cells": [key("a", "error", "old")]})
        read = results.read([store.path])
        drawn = {figure.name: plot.draw(read, figure, ["svg"]).panels[0] for figure in read.figures}
        self.assertEqual(list(drawn["own"].role("measured")["y"]), [5])
        self.assertEqual(list(drawn["all"].role("measured")["y"]), [6])  # both cells pooled, as the note says

    def test_conditions_compare_numbers_text_and_lists(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [1.0], m="4", scale=0.5)
            store.cell("b", [1.0], n=128, seed="18446744073709551615")
            store.cell("c", [1.0], n=256, seed="18446744073709551614", causal_like=[1, 2])
        cells = results.read([store.path]).cells
        for where, count in (
            ({"m": 4}, 1),
            ({"scale": "0.5"}, 1),
            ({"n": [64, 128]}, 2),
            ({"causal": False}, 3),
            ({"experiment": "error"}, 3),
            ({"seed": "18446744073709551615"}, 1),
            ({"experiment": "error:draws=9"}, 0),
            ({"nothing": 1}, 0),
        ):
            with self.subTest(where=where):
                self.assertEqual(len(results.select(cells, where)), count)

    def test_a_recipe_that_two_files_judge_has_the_verdicts_of_the_last(self) -> None:
        for name, outcomes in (("a.db", ["HOLDS", "REFUTED"]), ("b.db", ["OPEN"])):
            with self.store(name) as store:
                store.verdicts(*(results.Verdict("recipe", outcome, "", "") for outcome in outcomes), size="quick")
        read = results.read([self.directory / "a.db", self.directory / "b.db"])
        self.assertEqual([verdict.outcome for verdict in read.verdicts], ["OPEN"])


if __name__ == "__main__":
    unittest.main()
