#!/usr/bin/python3
"""Tests of attnbench plot: a figure that the user asks for, changes for a paper, and a drawn figure as a JSON file.

Run as tests/scripts/asked_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import csv
import json
import subprocess
import unittest
from pathlib import Path

from example_stores import CURVE, MAP, PROGRAM, InTemporaryDirectory, Store, drawn


class Asked(InTemporaryDirectory):
    def plot(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "plot", *map(str, words), "-o", str(self.directory / "out")], capture_output=True, text=True
        )

    def rows(self, name: str) -> list[dict[str, str]]:
        with open(self.directory / "out" / name) as file:
            return list(csv.DictReader(file))

    def errors(self) -> Store:
        with self.store() as store:
            for m in (16, 32, 64):
                for projection, error in (("", 1.0), (",projection=iid", 2.0)):
                    store.cell(f"performer:m={m}{projection}", [error / m, error / m], m=m, theory=error / m)
            store.cell("softmax", [[1.0, 2.0, 4.0]], "seconds", "speed", unit="s")
        return store

    def test_one_metric_over_one_axis_with_its_closed_form(self) -> None:
        done = self.plot(self.errors().path, "--y", "mse", "--x", "m", "--format", "svg")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = [Path(line).name for line in done.stdout.split()]
        self.assertEqual(names, ["plot.mse-over-m.csv", "plot.mse-over-m.svg"])
        rows = self.rows("plot.mse-over-m.csv")
        points = {(row["series"], float(row["x"])): (float(row["y"]), float(row["theory"])) for row in rows}
        self.assertEqual(points["performer", 16], (1 / 16, 1 / 16))
        self.assertEqual(points["performer:projection=iid", 64], (2 / 64, 2 / 64))
        self.assertEqual(len(points), 6)
        svg = (self.directory / "out" / "plot.mse-over-m.svg").read_text()
        self.assertIn("Performer, i.i.d.", svg)
        self.assertIn("lines: closed form", svg)

    def test_the_axis_is_the_one_with_most_values_and_conditions_select_cells(self) -> None:
        done = self.plot(self.errors().path, "--y", "mse", "--where", "method=performer:projection=iid")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["series"] for row in self.rows("plot.mse-over-m.csv")}, {"performer:projection=iid"})

    def test_cells_that_were_not_done_are_crosses_and_not_forgotten(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0, 2.0], m=16)
            store.cell("performer:m=32", [1.0, 2.0], m=32)
            store.cell("performer:m=64", [None], m=64, ending=("crashed", "signal 11"))
        done = self.plot(store.path, "--y", "mse", "--style", "paper")
        self.assertEqual(done.returncode, 3)
        self.assertIn("m = 64: crashed: signal 11", done.stderr)
        ended = [row for row in self.rows("plot.mse-over-m.csv") if row["role"] == "ending"]
        self.assertEqual([(row["x"], row["note"]) for row in ended], [("64.0", "crashed: signal 11")])

    def test_a_question_leaves_the_results_as_they_are(self) -> None:
        store = self.errors()
        before = store.path.read_bytes()
        self.plot(store.path, "--y", "mse")
        self.assertEqual(store.path.read_bytes(), before)

    def test_misuse_says_what_to_type(self) -> None:
        store = self.errors()
        with self.store("two.db") as two:
            two.cell("a:m=1", [1.0], m=1)
            two.cell("a:m=2", [1.0], experiment="other", m=2)
        for words, told in (
            ([store.path, "--y", "mes"], "mse"),
            ([store.path, "--y", "mse", "--log", "x", "--log", "y"], "--log xy makes both axes logarithmic"),
            ([store.path, "--y", "mse", "--x", "mm"], "no cell has a column or a parameter of this name"),
            ([store.path, "--y", "mse", "--series", "projectoin"], "--series projectoin"),
            ([store.path, "--y", "mse", "--where", "n=65"], "64"),
            ([store.path, "--y", "mse", "--log", "z"], "x, y, xy or none"),
            ([store.path, "--y", "seconds"], "do not differ in any number"),
            ([store.path, "--x", "m"], "add --y METRIC"),
            ([store.path, "--y", "mse", "--figure", "f"], "expected one of them"),
            ([two.path, "--y", "mse", "--x", "m"], "--where experiment=error"),
            ([store.path, "--y", "mse", "--rename", "performer"], "SERIES=NAME"),
            ([store.path, "--y", "mse", "--rename", "preformer=A"], "Performer"),
            ([store.path, "--y", "mse", "--size", "3"], "3.3x2.4"),
            ([store.path, "--y", "mse", "--size", "3x1"], "one inch for the panels"),
            ([self.directory / "none.json"], "expected a drawn figure"),
            ([store.path, store.path, "--points"], "one file"),
        ):
            with self.subTest(words=words[1:]):
                done = self.plot(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(told, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_changes_for_a_paper_are_in_the_picture(self) -> None:
        words = ("--rename", "performer=FAVOR+", "--xlabel", "features", "--ylabel", "error", "--title", "Errors")
        more = ("--size", "3.3x2.4", "--legend-order", "Performer, i.i.d.;FAVOR", "--font", "serif", "--format", "svg")
        path = self.errors().path
        self.assertEqual(self.plot(path, "--y", "mse", *words, *more[:2], *more[4:]).returncode, 0)
        svg = (self.directory / "out" / "plot.mse-over-m.svg").read_text()
        for told in ("FAVOR+", ">features<", ">error<", "serif", 'width="237.6pt" height="172.8pt"'):
            self.assertIn(told, svg)
        self.assertNotIn(">Performer<", svg)
        self.assertEqual(self.plot(path, "--y", "mse", "--legend-order", "Performer, i.i.d.").returncode, 0)
        svg = (self.directory / "out" / "plot.mse-over-m.svg").read_text()
        self.assertLess(svg.index("Performer, i.i.d."), svg.index(">Performer<"))

    def test_a_printed_name_renames_a_series(self) -> None:
        done = self.plot(self.errors().path, "--y", "mse", "--rename", "Performer, i.i.d.=RFA", "--format", "svg")
        self.assertEqual(done.returncode, 0, done.stderr)
        svg = (self.directory / "out" / "plot.mse-over-m.svg").read_text()
        self.assertIn(">RFA<", svg)
        self.assertIn(">Performer<", svg)

    def test_facets_have_a_panel_for_each_series(self) -> None:
        self.assertEqual(self.plot(self.errors().path, "--y", "mse", "--facet").returncode, 0)
        self.assertEqual(
            {row["panel_title"] for row in self.rows("plot.mse-over-m.csv")}, {"Performer", "Performer, i.i.d."}
        )
        with self.store("map.db") as store:
            for angle in (0.5, 1.0):
                store.cell(f"a:angle={angle},length=1", [1.0], angle=angle, length=1)
            store.figure("map", {**MAP, "ratio": []})
        self.assertIn("a map has no curves", self.plot(store.path, "--facet").stderr)

    def test_a_json_file_draws_the_same_figure_without_the_results(self) -> None:
        self.every_kind()
        for path in (self.directory / "kinds.db",):
            self.plot(path, "--style", "paper", "--format", "svg,pdf")
            path.unlink()
        out = self.directory / "out"
        self.assertNotIn("cells", json.loads((out / "recipe.kinds.json").read_text())["panels"][0]["description"])
        for name in ("recipe.kinds", "recipe.curve"):
            before = {ending: (out / f"{name}.{ending}").read_bytes() for ending in ("svg", "pdf", "csv", "json")}
            json_file = self.directory / f"{name}.json"
            json_file.write_bytes(before["json"])
            done = self.plot(json_file, "--style", "paper", "--format", "svg,pdf")
            self.assertIn(done.returncode, (0, 3), done.stderr)
            for ending, content in before.items():
                self.assertEqual((out / f"{name}.{ending}").read_bytes(), content, f"{name}.{ending}")

    def test_a_file_that_is_no_figure_is_refused(self) -> None:
        path = self.directory / "f.json"
        for text in ("", "[]", "{}", '{"recipe": "r", "name": "n", "description": {}, "panels": [{}]}', "\udcff"):
            path.write_text(text, errors="surrogateescape")
            done = self.plot(path)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("not a drawn figure", done.stderr)

    def test_a_figure_for_a_paper_does_not_hide_what_it_leaves_out(self) -> None:
        with self.store() as store:
            store.cell("a:m=1", [1.0, 2.0], m=1)
            store.cell("a:m=2", [-1.0, -2.0], m=2)
            store.figure("figure", CURVE)
        drawn(store.path)
        for style, code in (("report", 0), ("paper", 3)):
            done = self.plot(store.path, "--style", style)
            self.assertEqual(done.returncode, code)
        self.assertIn("1 point not drawn: not positive on a log axis", done.stderr)


if __name__ == "__main__":
    unittest.main()
