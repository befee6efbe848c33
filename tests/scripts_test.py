#!/usr/bin/python3
"""Tests of what draws, tabulates and reports (scripts/plot.py, verdicts.py, report.py) on small results files made here.

Run as tests/scripts_test.py; needs no attnbench.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import aggregate
import bundle
import compose
import intervals
import panels
import plot
import report
import results
import style
import tables
import ticks
import verdicts

SCHEMA = """
PRAGMA application_id = 0x61746e62; PRAGMA user_version = 4;
CREATE TABLE run(id INTEGER PRIMARY KEY, started TEXT, command TEXT, environment TEXT);
CREATE TABLE cell(id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, experiment TEXT, method TEXT, input TEXT,
  nq INTEGER, n INTEGER, d INTEGER, dv INTEGER, causal INTEGER, mask_offset INTEGER, mask_keys INTEGER, precision TEXT,
  heads INTEGER, logit_scale REAL, seed TEXT, threads INTEGER, parameters TEXT, source_version TEXT,
  machine TEXT);
CREATE TABLE replicate(cell INTEGER, replicate INTEGER, run INTEGER, ending TEXT, reason TEXT, seconds REAL,
  finished TEXT, PRIMARY KEY(cell, replicate));
CREATE TABLE measurement(cell INTEGER, replicate INTEGER, metric TEXT, unit TEXT, shape TEXT, value REAL, array BLOB,
  PRIMARY KEY(cell, replicate, metric));
CREATE TABLE figure(recipe TEXT, name TEXT, position INTEGER, json TEXT, PRIMARY KEY(recipe, name));
CREATE TABLE verdict(recipe TEXT, position INTEGER, outcome TEXT, statement TEXT, numbers TEXT,
  written TEXT NOT NULL DEFAULT '', region TEXT NOT NULL DEFAULT '', expected TEXT NOT NULL DEFAULT 'AMBIGUOUS',
  source TEXT NOT NULL DEFAULT '', PRIMARY KEY(recipe, position));
CREATE TABLE reproduction(recipe TEXT PRIMARY KEY, size TEXT, command TEXT, seconds REAL, cells TEXT, written TEXT);
INSERT INTO run VALUES(1, '2026-01-05T10:00:00Z', 'attnbench run <x>', '{"cpu": {"model": "M"}, "clean": true}');
"""
MAP = {
    "title": "map",
    "kind": "map",
    "where": {"experiment": "error"},
    "x": ["angle"],
    "y_axis": ["length"],
    "y": "mse",
    "ratio": ["a", "b"],
}
CURVE = {
    "title": "panel",
    "kind": "curve",
    "where": {"experiment": "error"},
    "x": "m",
    "x_scale": "log2",
    "y": "mse",
    "y_scale": "log10",
    "interval": "mean",
}


class Store:
    """A results file under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.executescript(SCHEMA)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.commit()
        self.connection.close()

    def cell(
        self,
        method: str,
        values: list[Any],
        metric: str = "mse",
        experiment: str = "error:draws=8",
        n: int = 64,
        unit: str = "1",
        seed: str = "0",
        version: str = "v1",
        finished: str = "2026-01-05T10:00:00Z",
        ending: tuple[str, str] = ("done", ""),
        theory: float | None = None,
        machine: str = "",
        **parameters: Any,
    ) -> None:
        """One cell with one replicate for each of the values: a number or an array."""
        key = repr((experiment, method, n, seed, version, machine))
        cell = self.connection.execute(
            "INSERT INTO cell VALUES(NULL,?,?,?,'gaussian',?,?,16,16,0,0,-1,'f32',1,1,?,0,?,?,?)",
            [key, experiment, method, n, n, seed, json.dumps(parameters), version, machine],
        ).lastrowid
        for r, value in enumerate(values):
            self.connection.execute("INSERT INTO replicate VALUES(?,?,1,?,?,0.1,?)", [cell, r, *ending, finished])
            if value is not None:
                self._measure(cell, r, metric, unit, value)
            if theory is not None:
                self._measure(cell, r, f"{metric}_theory", unit, theory)

    def _measure(self, cell: int | None, r: int, metric: str, unit: str, value: Any) -> None:
        array = np.asarray(value, "<f8")
        scalar = array.ndim == 0
        self.connection.execute(
            "INSERT INTO measurement VALUES(?,?,?,?,?,?,?)",
            [
                cell,
                r,
                metric,
                unit,
                json.dumps(array.shape),
                float(value) if scalar else None,
                None if scalar else array.tobytes(),
            ],
        )

    def figure(self, name: str, *descriptions: dict[str, Any], recipe: str = "recipe", **more: Any) -> None:
        text = json.dumps({"title": f"Title of {name}", "caption": "A <caption> \\1.", "panels": descriptions, **more})
        self.connection.execute("INSERT INTO figure VALUES(?,?,1,?)", [recipe, name, text])


    def verdicts(self, *verdicts: results.Verdict, size: str) -> None:
        """Those of one recipe."""
        recipe = verdicts[0].recipe
        self.connection.execute(
            "INSERT INTO reproduction VALUES(?,?,?,1.5,'[]','2026-01-05T10:00:00Z')",
            [recipe, size, f"attnbench reproduce {recipe}"],
        )
        for i, v in enumerate(verdicts):
            self.connection.execute(
                "INSERT INTO verdict(recipe, position, outcome, statement, numbers, region, expected, source) "
                "VALUES(?,?,?,?,?,?,?,?)",
                [recipe, i, v.outcome, v.statement, v.numbers, v.region, v.expected, v.source],
            )


def figure_of(*descriptions: dict[str, Any]) -> results.Figure:
    return results.Figure("recipe", "figure", 1, {"title": "t", "caption": "c", "panels": list(descriptions)})


class InTemporaryDirectory(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def store(self, name: str = "results.db") -> Store:
        return Store(self.directory / name)

    def example(self) -> Store:
        """Theory, an ending, a reference, points that a log axis cannot show, and a panel without data."""
        with self.store() as store:
            for m in (16, 32, 64):
                store.cell(f"performer:m={m}", [1 / m, 1.1 / m, 1.2 / m], m=m, theory=1.1 / m)
                store.cell(f"performer:m={m},projection=iid", [2 / m, -1.0], m=m)
            store.cell("performer:m=128", [None], m=128, ending=("crashed", "signal 11"))
            store.cell("uniform", [0.05, 0.06])
            store.figure(
                "curves",
                {**CURVE, "theory": "mse_theory", "references": ["uniform"], "slope": True},
                {**CURVE, "where": {"experiment": "none"}},
                recipe_title="The recipe",
                statement="It holds & more.",
            )
            store.figure("one point", {**CURVE, "where": {"experiment": "error", "m": 16}})
        return store

    def every_kind(self) -> results.Figure:
        """A store with a figure of every kind of panel; together they have all that a panel can draw."""
        with self.store("kinds.db") as store:
            for i in range(1, 5):
                for name in ("a", "b"):
                    store.cell(f"{name}:m={2**i}", [1.0 / i, 1.5 / i, 1.1 / i], theory=1.2 / i, m=2**i, layer=i)
                    times = [[1e-3 * i, 2e-3, 3e-3]]
                    store.cell(f"{name}:m={2**i}", times, "seconds", "speed:", unit="s", m=2**i, layer=i)
                    place = {"angle": 0.5 + i % 2, "length": 1 + i // 3}
                    spec = f"{name}:angle={place['angle']},length={place['length']}"
                    store.cell(spec, [1.0, 1.1, i * (name == "a")], experiment="grid:", theory=10.0 ** (i - 2), **place)
                store.cell(f"v:angle={i},length={i}", [i], experiment="tiles:", angle=i, length=i)
                store.cell(f"a:m={2**i}", [[0.1 * i, 0.5, 0.9]], "row", "rows:", m=2**i)
            store.cell("c:m=64", [None], m=64, ending=("crashed", "signal 11"))
            store.cell("uniform", [0.5, 0.6])
            store.cell("map", [[[1.0, 0.0], [0.75, -0.25]]], "attention", "map")
            curve = {**CURVE, "references": ["uniform"]}
            grid = {**MAP, "where": {"experiment": "grid"}}
            image = {"title": "i", "kind": "image", "where": {"experiment": "map"}, "y": "attention"}
            trade = {"title": "t", "kind": "trade", "where": {}, "y": "mse", "x_metric": "seconds", "y_scale": "log10"}
            histogram = {"title": "h", "kind": "histogram", "where": {"experiment": "rows"}, "x": [], "y": "row"}
            store.figure(
                "kinds",
                {**curve, "theory": "mse_theory"},
                {**curve, "series": ["layer"], "slope": True},
                {**grid, "value_label": "a / b"},
                {**grid, "ratio": [], "winner": True},
                {**MAP, "ratio": [], "where": {"experiment": "tiles"}},
                {**MAP, "where": {"experiment": "none"}},
                {**trade, "x": ["m"]},
                {**trade, "x": [], "area": "seconds", "area_label": "time", "upside_down": True},
                {**histogram, "mark": 0.5, "mark_label": "half"},
                {**image, "floor": 1e-3},
                image,
            )
            store.figure("curve", CURVE)
        return next(figure for figure in results.read([store.path]).figures if figure.name == "kinds")

    def panel(self, store: Store, description: dict[str, Any]) -> aggregate.Panel:
        return aggregate.aggregate(results.read([store.path]), description)

    def run_script(self, script: Any, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a script's main."""
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", [script.__name__, *words]), contextlib.redirect_stdout(
            out
        ), contextlib.redirect_stderr(err):
            try:
                code = script.main()
            except SystemExit as stop:
                code = int(stop.code or 0)
        return code, out.getvalue(), err.getvalue()


class Intervals(unittest.TestCase):
    def test_mean_has_the_interval_of_student(self) -> None:
        # mean 3, standard deviation sqrt(2.5), t(4, 0.975) = 2.776445: half width 2.776445 sqrt(2.5 / 5)
        y, low, high = intervals.mean_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
        self.assertAlmostEqual(y, 3)
        self.assertAlmostEqual(low, 3 - 1.963243, places=6)
        self.assertAlmostEqual(high, 3 + 1.963243, places=6)

    def test_two_replicates_have_a_wide_interval_and_one_has_none(self) -> None:
        self.assertAlmostEqual(intervals.mean_interval(np.array([0.0, 2.0]))[2], 1 + 12.706205, places=5)
        self.assertTrue(np.isnan(intervals.mean_interval(np.array([7.0]))[1]))

    def test_median_interval_is_a_pair_of_order_statistics(self) -> None:
        # Binomial(10, 1/2): P(<= 1) = 11/1024 = 0.0107, P(<= 2) = 56/1024 = 0.0547, so the second and the ninth of ten.
        samples = np.array([30, 10, 20, 50, 40, 90, 80, 70, 60, 100.0])
        self.assertEqual([float(v) for v in intervals.median_interval(samples)], [55, 20, 90])

    def test_six_samples_are_the_fewest_for_a_median_interval(self) -> None:
        # 2 / 2^6 = 0.031 but 2 / 2^5 = 0.0625
        self.assertEqual([float(v) for v in intervals.median_interval(np.arange(6.0))], [2.5, 0, 5])
        self.assertTrue(np.isnan(intervals.median_interval(np.arange(5.0))[1]))

    def test_intervals_go_over_the_first_axis(self) -> None:
        samples = np.random.default_rng(1).normal(size=(9, 4))
        for interval in intervals.INTERVALS.values():
            columns = [[float(v) for v in interval(samples[:, i])] for i in range(4)]
            np.testing.assert_allclose(np.stack(interval(samples), axis=1), columns)

    def test_fitted_exponents_are_those_of_the_last_points(self) -> None:
        x = np.array([1, 2, 4, 8, 16.0])
        y = np.array([[5, 7], [5, 7], [16, 2], [64, 4], [256.0, 8]])
        np.testing.assert_allclose(intervals.fitted_exponents(x, y), [2, 1])
        self.assertEqual(len(intervals.fitted_exponents(x[:1], y[:1])), 0)
        y[3, 1] = 0  # a point of which one sample has no logarithm: 2, 4 and 16 remain, slopes log2(256/5) / 3 about
        np.testing.assert_allclose(intervals.fitted_exponents(x, y)[0], np.polyfit([1, 2, 4], np.log2([5, 16, 256]), 1)[0])


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
            store.figure("own", CURVE, cells=[key("a", "error", "old")])
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


class Aggregation(InTemporaryDirectory):
    def test_defaults_and_swept_values_are_one_series(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0, 3.0], m=16, theory=2.5)
            store.cell("performer", [0.5, 0.5], m=256, theory=0.25)
        points = self.panel(store, {**CURVE, "theory": "mse_theory"}).points
        self.assertEqual(list(points["series"]), ["performer", "performer"])
        self.assertEqual(list(points["x"]), [16, 256])
        self.assertEqual(list(points["y"]), [2, 0.5])
        self.assertEqual(list(points["theory"]), [2.5, 0.25])
        self.assertEqual(list(points["replicates"]), [2, 2])

    def test_a_median_takes_all_samples_of_all_replicates(self) -> None:
        with self.store() as store:
            store.cell("softmax", [[1.0, 2, 3], [4, 5, 60]], unit="s")
        panel = self.panel(store, {**CURVE, "x": "n", "interval": "median"})
        point = panel.points.iloc[0]
        self.assertEqual([point["y"], point["low"], point["high"], point["samples"]], [3.5, 1, 60, 6])
        self.assertEqual(panels.axis_label(panel, "y"), "mse (s)")

    def test_exponents_have_the_interval_of_the_fits_of_each_sample(self) -> None:
        # Sample b of every point lies on its own power law n^(1 + b / 100), b = 0 ... 8, in a scrambled order of size:
        # the median exponent is that of b = 4, and of nine order statistics the second and the eighth hold it with at
        # least 95 % (2 P(Binomial(9, 1/2) <= 1) = 0.039).
        with self.store() as store:
            for n in (64, 128, 256, 512):
                samples = [(1 + 10 * (b * 5 % 9)) * n ** (1 + b / 100) for b in range(9)]
                store.cell("a", [samples], metric="seconds", unit="s", n=n)
                store.cell("few", [samples[:3]], metric="seconds", unit="s", n=n)
        curve = {**CURVE, "x": ["n"], "y": "seconds", "interval": "median", "slope": True}
        panel = self.panel(store, curve)
        exponents = panel.points.groupby("series")[["exponent", "exponent_low", "exponent_high"]].first()
        np.testing.assert_allclose(exponents.loc["a"], [1.04, 1.01, 1.07])
        self.assertAlmostEqual(exponents.loc["few", "exponent"], 1.01)
        self.assertTrue(np.isnan(exponents.loc["few", "exponent_low"]))
        self.assertEqual(compose._exponents([panel], "a"), "  ∝ n^1.04±0.03")
        self.assertEqual(compose._exponents([panel], "few"), "  ∝ n^1.01")

    def test_a_crossing_is_where_a_curve_rises_above_one_for_good(self) -> None:
        x = np.array([16.0, 32, 64, 128])
        self.assertAlmostEqual(intervals.last_rise_through_one(x, np.array([0.25, 0.5, 2, 4])), 45.254834, places=5)
        self.assertAlmostEqual(intervals.last_rise_through_one(x, np.array([2, 0.5, 0.5, 2])), 90.509668, places=5)
        self.assertEqual(intervals.last_rise_through_one(x, np.array([1.0, 1, 2, 4])), 0)
        self.assertEqual(intervals.last_rise_through_one(x, np.array([2.0, 2, 2, 0.9])), np.inf)
        with self.store() as store:
            for n in (16, 32, 64, 128):
                # (n / c)^2 with c = 30, 31, ..., 38: nine crossings, of which the second and the eighth hold the median
                store.cell("a", [[(n / (30 + b)) ** 2 for b in range(9)]], metric="speedup", n=n)
                store.cell("late", [[n / (100 + 20 * b) for b in range(3)]], metric="speedup", n=n)
                store.cell("never", [[n / 1000] * 9], metric="speedup", n=n)
                store.cell("always", [[n / 8] * 9], metric="speedup", n=n)
        panel = self.panel(store, {**CURVE, "x": ["n"], "y": "speedup", "interval": "median", "crossing": True})
        found = panel.points.groupby("series")[["crossing", "crossing_low", "crossing_high"]].first()
        np.testing.assert_allclose(found.loc["a"], [34, 31, 37])
        self.assertEqual(found.loc["late", "crossing"], 120)  # of 100, 120 and one beyond the last point
        self.assertEqual(
            [compose._crossings([panel, panel], series) for series in ("a", "late", "never", "always")],
            [
                "  above 1 from n = 34±3, 34±3",
                "  above 1 from n = 120, 120",
                "  above 1 from n = >128, >128",
                "  above 1 from n = <16, <16",
            ],
        )

    def test_an_axis_in_bytes_says_so_at_its_ticks(self) -> None:
        with self.store() as store:
            for n in (64, 128, 256):
                store.cell("a", [n * 4096.0], metric="peak_bytes", unit="B", n=n)
        panel = self.panel(store, {**CURVE, "x": ["n"], "y": "peak_bytes", "y_label": "peak memory"})
        self.assertEqual(panels.axis_label(panel, "y"), "peak memory")
        figure, axes = plot.plt.subplots()
        self.addCleanup(plot.plt.close, figure)
        panels.set_axis(axes, "y", panel, panel.points["y"].to_numpy(float))
        figure.canvas.draw()
        self.assertEqual([text.get_text() for text in axes.get_yticklabels()], ["256 KiB", "512 KiB", "1 MiB"])

    def test_references_have_no_x_and_ignore_conditions_on_parameters(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16, projection="iid")
            store.cell("uniform", [2.0])
            store.cell("zero", [3.0])
        panel = self.panel(
            store, {**CURVE, "where": {"experiment": "error", "projection": "iid"}, "references": ["uniform", "gone"]}
        )
        self.assertEqual(list(panel.role("reference")["series"]), ["uniform"])
        self.assertTrue(panel.role("reference")["x"].isna().all())
        self.assertIn("No data for the reference gone.", panel.notes)

    def test_a_method_without_the_axis_is_named(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
            store.cell("zero", [3.0])
        self.assertIn("Not drawn, no number for m: zero.", self.panel(store, CURVE).notes)

    def test_what_an_undone_replicate_left_is_not_counted(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16, seed="1")
            store.cell("performer:m=16", [9.0], m=16, seed="2", ending=("invalid", "overflow"))
        self.assertEqual(list(self.panel(store, CURVE).role("measured")["y"]), [1])

    def test_budgets_of_other_names_share_an_axis(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
            store.cell("nystrom:landmarks=32", [1.0], landmarks=32)
        points = self.panel(store, {**CURVE, "x": ["m", "landmarks"]}).points
        self.assertEqual(sorted(zip(points["series"], points["x"])), [("nystrom", 32), ("performer", 16)])

    def test_pooling_of_unlike_cells_is_said(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16, n=64)
            store.cell("performer:m=16", [1.0], m=16, n=128)
        self.assertIn("Each point pools cells that differ in n, nq.", self.panel(store, CURVE).notes)

    def test_a_reference_far_below_all_points_is_said_and_not_drawn(self) -> None:
        with self.store() as store:
            for m in (1, 2):
                store.cell(f"performer:m={m}", [1.0], m=m)
            store.cell("uniform", [0.02])
            store.cell("softmax", [4e-7])
        references = {**CURVE, "references": ["uniform", "softmax"]}
        panel = self.panel(store, references)
        self.assertEqual(list(panel.role("reference")["series"]), ["uniform"])
        self.assertIn("softmax lies far below the axes, at 4.0e-07.", panel.notes)
        linear = self.panel(store, {**references, "y_scale": "linear"})
        self.assertEqual(sorted(linear.role("reference")["series"]), ["softmax", "uniform"])

    def test_what_a_log_axis_cannot_show_is_dropped_and_counted(self) -> None:
        with self.store() as store:
            for m, value in ((1, 1.0), (2, 0.0), (4, -1.0), (8, np.inf), (16, np.nan)):
                store.cell(f"performer:m={m}", [value], m=m)
        logarithmic = self.panel(store, CURVE)
        self.assertEqual(list(logarithmic.role("measured")["x"]), [1])
        self.assertIn("2 points not drawn: not positive on a log axis.", logarithmic.notes)
        self.assertIn("2 points not drawn: not finite.", logarithmic.notes)
        linear = self.panel(store, {**CURVE, "y_scale": "linear"})
        self.assertEqual(list(linear.role("measured")["x"]), [1, 2, 4])

    def test_endings_have_their_place_and_reason(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
            store.cell("performer:m=32", [None, None], m=32, ending=("timed out", "60 s"))
        ending = self.panel(store, CURVE).role("ending").iloc[0]
        self.assertEqual(
            [ending["series"], ending["x"], ending["note"], ending["replicates"]],
            ["performer", 32, "timed out: 60 s", 2],
        )

    def test_profiles_go_over_the_index(self) -> None:
        with self.store() as store:
            store.cell("softmax", [[4.0, 2], [6, 4]])
            store.cell("local:m=4", [[9.0, 9, 9]], n=128, m=4)
        points = self.panel(store, {**CURVE, "kind": "profile", "x": "", "normalise_x": True}).points
        softmax = points[points["series"] == "softmax"]
        self.assertEqual(list(softmax["x"]), [0.5, 1])
        self.assertEqual(list(softmax["y"]), [5, 3])
        self.assertAlmostEqual(softmax["high"].iloc[0], 5 + 12.706205, places=5)
        self.assertEqual(list(points[points["series"] == "local:m=4"]["x"]), [1 / 3, 2 / 3, 1])
        from_zero = self.panel(store, {**CURVE, "kind": "profile", "x": "", "first_index": 0}).points
        self.assertEqual(list(from_zero[from_zero["series"] == "softmax"]["x"]), [0, 1])

    def test_ratios_are_paired_by_replicate_of_the_same_input_and_problem(self) -> None:
        with self.store() as store:
            for n, factor in ((64, 1.0), (128, 100.0)):
                store.cell("a:m=4", [2 * factor, 8 * factor], m=4, n=n, theory=6 * factor)
                store.cell("b:m=4", [1 * factor, 16 * factor, 3.0], m=4, n=n, theory=3 * factor)
        panel = self.panel(store, {**CURVE, "theory": "mse_theory", "ratio_to": "b", "series": ["method", "n"]})
        points = panel.points
        self.assertEqual(set(points["series"]), {"a n=64", "a n=128"})
        half = 12.706205 * np.std(np.log([2, 0.5]), ddof=1) / 2**0.5
        for _, point in points.iterrows():
            self.assertAlmostEqual(point["y"], 1)  # geometric mean of 2 and 1/2
            self.assertAlmostEqual(np.log(point["high"]), half, places=5)
            self.assertAlmostEqual(np.log(point["low"]), -half, places=5)
            self.assertAlmostEqual(point["theory"], 2)
            self.assertEqual(point["replicates"], 2)
        self.assertEqual(panel.unit, "1")

    def test_a_ratio_to_a_method_without_the_axis_holds_at_every_x(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [4.0, 6.0], m=4, projection="iid")
            store.cell("a:m=8", [2.0, 3.0], m=8, projection="iid")
            store.cell("uniform", [2.0, 3.0])
        where = {"experiment": "error", "projection": "iid"}
        points = self.panel(store, {**CURVE, "where": where, "ratio_to": "uniform"}).points
        self.assertEqual(list(points["x"]), [4, 8])
        np.testing.assert_allclose(points["y"].astype(float), [2, 1])

    def test_ratios_that_are_not_positive_are_not_drawn(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [4.0, -6.0], m=4)
            store.cell("b:m=4", [4.0, 6.0], m=4)
        panel = self.panel(store, {**CURVE, "ratio_to": "b"})
        self.assertEqual(len(panel.role("measured")), 0)
        self.assertIn("1 point not drawn: a replicate has no ratio to b.", panel.notes)

    def test_a_point_with_a_gap_keeps_its_closed_form_alone(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [1.0, None], m=4, theory=2.0)
            store.cell("a:m=8", [None, None], m=8, theory=1.0)
            store.cell("a:m=16", [0.5, 0.5], m=16, theory=0.5)
            store.cell("b:m=4", [1.0, None], m=4)
        panel = self.panel(store, {**CURVE, "theory": "mse_theory"})
        drawn = panel.role("measured")
        self.assertEqual(list(drawn["x"]), [4, 8, 16])
        self.assertEqual(list(drawn["theory"]), [2, 1, 0.5])
        self.assertEqual(list(drawn["y"].notna()), [False, False, True])
        self.assertIn("3 points not drawn: a replicate has no mse.", panel.notes)

    def test_a_map_has_the_ratio_at_every_tile(self) -> None:
        with self.store() as store:
            for angle in (0.5, 1.0):
                for length in (1, 2):
                    place = {"angle": angle, "length": length}
                    store.cell(f"a:angle={angle},length={length}", [10.0, 1000.0], **place)
                    store.cell(f"b:angle={angle},length={length}", [1.0, 1.0], theory=100 * angle, **place)
        tiles = self.panel(store, MAP).points
        self.assertEqual(list(zip(tiles["x"], tiles["y"])), [(0.5, 1), (0.5, 2), (1, 1), (1, 2)])
        np.testing.assert_allclose(tiles["value"].astype(float), 2)
        self.assertEqual(set(tiles["role"]), {"ratio"})
        with_theory = self.panel(store, {**MAP, "theory": "mse_theory"}).points
        np.testing.assert_allclose(with_theory["value"].astype(float), 2 - np.log10([50, 50, 100, 100]))

    def test_a_tile_where_a_closed_form_is_zero_is_infinite_and_where_both_are_is_absent(self) -> None:
        with self.store() as store:
            for angle, a, b in ((0.5, 0.0, 1.0), (1.0, 0.0, 0.0), (1.5, 1.0, 0.0)):
                store.cell(f"a:angle={angle}", [a], angle=angle, length=1)
                store.cell(f"b:angle={angle}", [b], angle=angle, length=1)
        tiles = self.panel(store, MAP).points
        self.assertEqual(list(zip(tiles["x"], tiles["value"])), [(0.5, -np.inf), (1.5, np.inf)])

    def test_the_winner_is_the_least_mean_and_is_undecided_when_the_interval_says_so(self) -> None:
        with self.store() as store:
            for angle, a in ((0.5, [1.0, 1.1, 1.2]), (1.0, [1.0, 9.0, 3.0])):
                store.cell(f"a:angle={angle}", a, angle=angle, length=1)
                store.cell(f"b:angle={angle}", [4.0, 4.1, 5.0], angle=angle, length=1)
                store.cell(f"c:angle={angle}", [0.1, None, 0.1], angle=angle, length=1)  # a gap: no candidate
        tiles = self.panel(store, {**MAP, "ratio": [], "winner": True}).points
        self.assertEqual(list(tiles["series"]), ["a", "a"])  # means 1.1 and 4.33 against 4.37
        self.assertGreater(tiles["low"].iloc[0], 0)
        self.assertLess(tiles["low"].iloc[1], 0)

    def test_a_map_of_one_series_has_its_mean_at_every_tile(self) -> None:
        with self.store() as store:
            for angle in (0.5, 1.0):
                store.cell(f"a:angle={angle}", [angle, 3 * angle], angle=angle, length=1)
        tiles = self.panel(store, {**MAP, "ratio": []}).points
        self.assertEqual(list(zip(tiles["x"], tiles["value"], tiles["role"])), [(0.5, 1, "value"), (1.0, 2, "value")])
        with self.store("two.db") as store:
            for name in "ab":
                store.cell(f"{name}:angle=1", [1.0], angle=1.0, length=1)
        self.assertEqual(len(self.panel(store, {**MAP, "ratio": []}).points), 0)  # which of them?

    def test_a_trade_has_a_point_a_method_or_a_value_of_its_points(self) -> None:
        with self.store() as store:
            for seed in ("1", "2"):
                for experiment, metric, factor in (("cost:", "seconds", 1.0), ("error:", "mse", 10.0)):
                    store.cell("a", [factor * int(seed)], metric, experiment, seed=seed)
        trade = {"kind": "trade", "where": {}, "x": [], "y": "mse", "x_metric": "seconds"}
        whole = self.panel(store, trade).role("measured")
        self.assertEqual(list(zip(whole["x"], np.round(whole["y"].astype(float), 9))), [(1.5, np.round(200**0.5, 9))])
        apart = self.panel(store, {**trade, "points": ["seed"]}).role("measured")
        self.assertEqual(sorted(zip(apart["x"], np.round(apart["y"].astype(float), 9))), [(1, 10), (2, 20)])

    def test_an_empty_panel_says_which_run_would_fill_it(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
        where = {"experiment": "rank", "input": "gaussian:scale=0.5", "d": 16, "causal": 1, "projection": "iid"}
        self.assertEqual(
            self.panel(store, {**CURVE, "where": where, "references": ["uniform"]}).missing,
            "no data: attnbench run rank --method SPEC uniform --input gaussian:scale=0.5 -d 16 --causal "
            "--sweep m=... # with projection=iid",
        )
        self.assertEqual(
            self.panel(store, {**CURVE, "y": "bias"}).missing, "no data: none of the cells (1) has bias; they have mse"
        )


class Axes(unittest.TestCase):
    def test_powers_of_two_are_written_in_one_style(self) -> None:
        self.assertEqual(ticks.power_of_two_labels([4, 5]), ["16", "32"])
        self.assertEqual(ticks.power_of_two_labels([10, 20]), ["2¹⁰", "2²⁰"])

    def test_ticks_leave_room_and_stay_inside(self) -> None:
        for low, high, base in ((200.0, 70000.0, 2), (1e-9, 3.0, 10), (0.2, 0.9, 10), (0.31, 0.33, 10), (5.0, 6.0, 2)):
            with self.subTest(low=low, high=high, base=base):
                places, _, labels = ticks.log_ticks(low, high, base, 6)
                self.assertTrue(2 <= len(places) <= 7 and all(low <= place <= high for place in places), places)
                self.assertEqual(len(set(labels)), len(places))

    def test_bytes_have_binary_units(self) -> None:
        self.assertEqual(
            [ticks.byte_label(v) for v in (0, 512, 1024, 1.5 * 2**20, 2**40, 2**51)],
            ["0 B", "512 B", "1 KiB", "1.5 MiB", "1 TiB", "2048 TiB"],
        )
        places, _, labels = ticks.byte_ticks(2.0**15, 2.0**23, True, 7)
        self.assertEqual(labels, ["32 KiB", "128 KiB", "512 KiB", "2 MiB", "8 MiB"])
        self.assertEqual(places, [2.0**k for k in range(15, 24, 2)])
        self.assertEqual(ticks.byte_ticks(0.0, 2.2 * 2**20, False, 4)[2], ["0 B", "1 MiB", "2 MiB"])
        self.assertEqual(ticks.byte_ticks(2.0 * 2**20, 3.0 * 2**20, True, 3)[2], ["2 MiB", "2.5 MiB", "3 MiB"])

    def test_the_verdicts_of_the_readme_are_those_of_the_reference(self) -> None:
        root = SCRIPTS.parent
        with open(root / "results/reference/verdicts.csv") as file:
            rows = [[row[name].replace("|", "\\|") for name in ("outcome", "statement", "source", "recipe")]
                    for row in csv.DictReader(file)]
        table = "".join(f"| {outcome} | {statement} | {source} | `{recipe}` |\n" for outcome, statement, source, recipe in rows)
        begin = "<!-- verdicts: results/reference/verdicts.csv -->\n| verdict | statement | source | recipe |\n|---|---|---|---|\n"
        self.assertIn(begin + table + "<!-- end of verdicts -->", (root / "README.md").read_text())

    def test_numbers_are_short(self) -> None:
        self.assertEqual(
            [ticks.number_label(v) for v in (0.3, -2.0, 16384.0, 2.5e-5)], ["0.3", "−2", "16384", "2.5×10⁻⁵"]
        )


class Drawing(InTemporaryDirectory):
    def test_the_csv_has_what_is_drawn(self) -> None:
        store = self.example()
        code, out, _ = self.run_script(
            plot, str(store.path), "-o", str(self.directory / "figures"), "--figure", "curves", "--format", "png"
        )
        self.assertEqual(code, 0)
        self.assertEqual([Path(line).name for line in out.split()], ["recipe.curves.csv", "recipe.curves.png"])
        with open(self.directory / "figures" / "recipe.curves.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["role"] for row in rows], ["ending"] + ["measured"] * 6 + ["reference"])
        first = rows[1]
        self.assertEqual(
            (first["panel"], first["series"], first["x"], first["replicates"]), ("1", "performer", "16.0", "3")
        )
        self.assertAlmostEqual(float(first["y"]), 1.1 / 16)
        self.assertAlmostEqual(float(first["high"]), (1.1 + 4.302653 * 0.1 / 3**0.5) / 16, places=7)
        self.assertAlmostEqual(float(first["exponent"]), -1)
        self.assertEqual({row["note"] for row in rows if row["series"].endswith("iid")}, {"not positive on a log axis"})

    def test_equal_results_give_equal_bytes(self) -> None:
        self.every_kind()
        programs = {"page": ["report.py"], "paper": ["plot.py", "--style", "paper", "--table", "latex"]}
        for run in ("1", "2"):  # sets of strings have another order in each, and the second draws in one process
            one = {min(os.sched_getaffinity(0))} if run == "2" else os.sched_getaffinity(0)
            for folder, (script, *words) in programs.items():
                subprocess.run(
                    [sys.executable, SCRIPTS / script, self.directory / "kinds.db", "-o", self.directory / folder / run]
                    + words,
                    check=True,
                    env={**os.environ, "PYTHONHASHSEED": run, "OPENBLAS_NUM_THREADS": run},
                    stdout=subprocess.DEVNULL,
                    preexec_fn=lambda: os.sched_setaffinity(0, one),
                )
        for folder, files in (
            ("page", ["index.html", *(f"recipe.{n}.{e}" for n in ("curve", "kinds") for e in ("csv", "pdf", "svg"))]),
            ("paper", [f"recipe.curve.{ending}" for ending in ("csv", "pdf", "py", "svg", "tex")]),
        ):
            written = sorted(path.name for path in (self.directory / folder / "1").iterdir())
            self.assertLessEqual(set(files), set(written))
            for name in written:
                first, second = ((self.directory / folder / run / name).read_bytes() for run in "12")
                self.assertEqual(first, second, name)

    def test_places_in_a_figure_are_those_of_every_run(self) -> None:
        figure = self.every_kind()
        read = results.read([self.directory / "kinds.db"])
        with plot.matplotlib.rc_context(style.STYLE):
            picture = compose.compose([aggregate.aggregate(read, panel) for panel in figure.description["panels"]])
        self.addCleanup(plot.plt.close, picture)
        # The layout's solver errs in the last bits, otherwise in each process, and names in an SVG file hold them all.
        for axes in picture.axes:
            bounds = axes.get_position(original=True).bounds
            rounded = plot.matplotlib.transforms.Bbox.from_bounds(*np.round(bounds, 6))
            self.assertEqual(bounds, rounded.bounds)

    def test_looks_are_the_same_in_all_panels_and_different_between_series(self) -> None:
        with self.store() as store:
            for i in range(40):
                store.cell(f"local:window={i},m=4", [1.0], m=4)
        panel = self.panel(store, CURVE)
        looks = compose.series_looks([panel, panel])
        self.assertEqual(len({(look.colour, look.marker, str(look.line)) for look in looks.values()}), 40)

    def test_nothing_lies_over_anything_else(self) -> None:
        panel = self.panel(self.example(), {**CURVE, "theory": "mse_theory", "references": ["uniform"]})
        with plot.matplotlib.rc_context(style.STYLE):
            picture = compose.compose([panel] * 3)
            renderer = picture.canvas.get_renderer()
            parts = [axes.get_tightbbox(renderer) for axes in picture.axes]
            parts += [picture.legends[0].get_window_extent(renderer), picture.texts[0].get_window_extent(renderer)]
            plot.plt.close(picture)
        for i, part in enumerate(parts):
            self.assertTrue(
                part.x0 >= 0 and part.y0 >= 0 and part.x1 <= picture.bbox.x1 + 1 and part.y1 <= picture.bbox.y1 + 1, i
            )
            for j, other in enumerate(parts[:i]):
                apart = part.x1 <= other.x0 or other.x1 <= part.x0 or part.y1 <= other.y0 or other.y1 <= part.y0
                self.assertTrue(apart, (i, j))


    def maps(self) -> Store:
        with self.store() as store:
            for i, angle in enumerate((0.5, 1.0, 1.5, 2.0)):
                for j, length in enumerate((0.5, 1.0, 1.5)):
                    place = {"angle": angle, "length": length}
                    store.cell(f"a:angle={angle},length={length}", [1.0, 1.1], theory=10.0 ** (i - j), **place)
                    store.cell(f"b:angle={angle},length={length}", [2.0, 0.9], theory=1.0, **place)
            store.figure(
                "maps",
                {**MAP, "theory": "mse_theory", "value_label": "a / b"},
                {**MAP, "winner": True},
                {**CURVE, "x": "angle", "where": {"experiment": "error", "length": 1.0}, "x_scale": "linear"},
                {**MAP, "where": {"experiment": "none"}},
            )
        return store

    def test_maps_are_drawn_in_every_format_and_their_values_are_in_the_csv(self) -> None:
        store = self.maps()
        code, out, err = self.run_script(
            plot, str(store.path), "-o", str(self.directory / "figures"), "--format", "svg,pdf,png"
        )
        self.assertEqual((code, err), (0, ""))
        with open(self.directory / "figures" / "recipe.maps.csv") as file:
            rows = list(csv.DictReader(file))
        ratios = [row for row in rows if row["role"] == "ratio"]
        self.assertEqual(len(ratios), 12)
        self.assertEqual({row["series"] for row in ratios}, {"a / b"})
        self.assertEqual(float(ratios[0]["value"]), 0)
        self.assertEqual({row["series"] for row in rows if row["role"] == "winner"}, {"a"})

    def test_the_panels_of_a_figure_with_maps_do_not_overlap(self) -> None:
        figure = results.read([self.maps().path]).figures[0]
        read = results.read([self.directory / "results.db"])
        with plot.matplotlib.rc_context(style.STYLE):
            picture = compose.compose([aggregate.aggregate(read, panel) for panel in figure.description["panels"]])
            renderer = picture.canvas.get_renderer()
            parts = [axes.get_tightbbox(renderer) for axes in picture.axes]
            plot.plt.close(picture)
        self.assertEqual(len(parts), 5)  # four panels and a colour bar
        for i, part in enumerate(parts):
            for j, other in enumerate(parts[:i]):
                apart = part.x1 <= other.x0 or other.x1 <= part.x0 or part.y1 <= other.y0 or other.y1 <= part.y0
                self.assertTrue(apart, (i, j))

    def test_a_histogram_has_the_share_of_every_bin_and_says_what_lies_beyond(self) -> None:
        with self.store() as store:
            store.cell("a", [np.array([0.05, 0.05, 0.95]), np.array([0.05])], m=1)
            store.cell("b", [np.array([0.5, 1.5])], m=1)
        histogram = {"title": "t", "kind": "histogram", "where": {}, "x": [], "y": "mse", "range": [0, 1], "mark": 1.0, "mark_label": "uniform"}
        panel = self.panel(store, histogram)
        bins = panel.role("measured")
        self.assertEqual(len(bins), 2 * aggregate.HISTOGRAM_BINS)
        a = bins[bins["series"] == "a"]
        self.assertEqual(list(a.loc[a["y"] > 0, "y"]), [0.75, 0.25])
        self.assertEqual(float(a.loc[a["y"] > 0, "x_low"].iloc[0]), 0.05)
        self.assertEqual(float(bins.loc[bins["series"] == "b", "y"].sum()), 0.5)
        self.assertIn("1 of 6 values lie beyond the axis.", panel.notes)
        logarithmic = self.panel(store, {**histogram, "x_scale": "log10", "range": [0.01, 1]}).role("measured")
        self.assertTrue(np.allclose(logarithmic["x_high"] / logarithmic["x_low"], 10 ** (2 / aggregate.HISTOGRAM_BINS)))
        drawn = plot.draw(results.read([store.path]), figure_of(histogram), ["png", "svg"])
        self.assertIn(b"x_low", drawn.files["csv"])

    def test_an_image_is_the_first_replicates_array_and_negative_weights_are_counted(self) -> None:
        exact, other = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.25, -0.25], [0.5, 0.5]])
        with self.store() as store:
            store.cell("exact", [exact, other], metric="attention", experiment="map")
            store.cell("other", [other], metric="attention", experiment="map")
        image = {"title": "t", "kind": "image", "where": {"experiment": "map", "method": "exact"}, "y": "attention"}
        panel = self.panel(store, {**image, "floor": 1e-3})
        self.assertTrue((panel.image == exact).all())
        self.assertEqual(panel.notes, [])
        negative = {**image, "floor": 1e-3, "where": {"experiment": "map", "method": "other"}}
        self.assertIn("25.0 % of the weights are negative, in orange.", self.panel(store, negative).notes)
        nothing = {**image, "where": {"experiment": "map", "method": "absent"}}
        self.assertIn("no data", self.panel(store, nothing).missing)
        plot.draw(results.read([store.path]), figure_of({**image, "floor": 1e-3}, negative, image, nothing), ["png"])


class ForPapers(InTemporaryDirectory):
    """Figures that redraw themselves, queries, and tables of numbers."""

    def redrawn(self, script: Path) -> Any:
        """The picture that a script draws, and the same as plot.py draws it."""
        spec = importlib.util.spec_from_file_location("redrawn", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with plot.matplotlib.rc_context():
            picture = module.draw()
            picture.canvas.draw()
        return picture

    def test_a_script_redraws_each_kind_of_panel_from_the_csv_alone(self) -> None:
        figure = self.every_kind()
        words = ("--style", "paper", "--figure", "kinds", "curve", "-o", str(self.directory))
        self.assertEqual(self.run_script(plot, str(self.directory / "kinds.db"), *words)[0], 0)
        (self.directory / "kinds.db").unlink()
        for name in ("kinds", "curve"):
            script = self.directory / f"recipe.{name}.py"
            output = script.with_suffix(".pdf")
            output.unlink()
            done = subprocess.run([sys.executable, "-I", script], check=True, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), (f"{output}\n", ""))
            drawn = output.read_bytes()
            self.assertTrue(drawn.startswith(b"%PDF") and b"/FontFile2" in drawn)  # TrueType, embedded
            imported = re.findall(r"^(?:import|from) (\w+)", script.read_text(), re.M)
            self.assertEqual(set(imported), {"csv", "math", "matplotlib", "pathlib"})
        self.assertEqual(figure.name, "kinds")

    def test_what_is_redrawn_has_the_same_axes_words_and_data(self) -> None:
        figure = self.every_kind()
        read = results.read([self.directory / "kinds.db"])
        drawn = plot.draw(read, figure, ["py"], style.IN_PAPER)
        plot.write_files(self.directory, drawn.named_files())
        redrawn = self.redrawn(self.directory / "recipe.kinds.py")
        with plot.matplotlib.rc_context(style.IN_PAPER.settings):
            picture = compose.compose(drawn.panels, style.IN_PAPER)
            picture.canvas.draw()
        self.addCleanup(plot.plt.close, "all")
        np.testing.assert_allclose(redrawn.get_size_inches(), picture.get_size_inches())
        own, others = ([axes for axes in p.axes if axes.get_label() != "<colorbar>"] for p in (picture, redrawn))
        bars = [[axes for axes in p.axes if axes.get_label() == "<colorbar>"] for p in (picture, redrawn)]
        others, bars[1] = redrawn_axes(redrawn, len(own))
        self.assertEqual(len(others), len(figure.description["panels"]))
        for panel, axes, other in zip(drawn.panels, own, others):
            with self.subTest(kind=panel.description["kind"]):
                for get in ("get_xlim", "get_ylim", "get_xticks", "get_yticks"):
                    np.testing.assert_allclose(getattr(other, get)(), getattr(axes, get)(), err_msg=get)
                for get in ("get_xlabel", "get_ylabel", "get_xscale", "get_yscale"):
                    self.assertEqual(getattr(other, get)(), getattr(axes, get)(), get)
                for get in ("get_xticklabels", "get_yticklabels"):
                    self.assertEqual(*([text.get_text() for text in getattr(a, get)()] for a in (axes, other)))
                self.assertEqual(other.get_title(loc="left"), axes.get_title(loc="left"))
                self.assertEqual([text.get_text() for text in other.texts], [text.get_text() for text in axes.texts])
                np.testing.assert_allclose(points_in(other), points_in(axes))
                np.testing.assert_allclose(other.get_position().bounds, axes.get_position().bounds, atol=1e-6)
        self.assertEqual([bar.get_ylabel() for bar in bars[1]], [bar.get_ylabel() for bar in bars[0]])
        self.assertEqual(
            *([text.get_text() for text in p.legends[0].get_texts()] for p in (picture, redrawn))
        )

    def test_a_single_panel_is_as_wide_as_a_column_and_has_no_title(self) -> None:
        self.every_kind()
        read = results.read([self.directory / "kinds.db"])
        drawn = plot.draw(read, figure_of(CURVE), ["svg", "py"], style.IN_PAPER)
        width = float(re.findall(r'viewBox="0 0 (\S+) ', drawn.files["svg"].decode())[0])
        self.assertAlmostEqual(width / 72, 3.35)
        many = compose._arrangement(drawn.panels, style.IN_PAPER, series=13)
        self.assertEqual(many[1], 6.9)  # a legend of so many rows would be longer than the panel
        self.assertNotIn("'title': 'panel'", drawn.files["py"].decode())
        self.assertIn("Student t", drawn.files["py"].decode())  # the notes are there for the caption

    def test_a_query_draws_a_metric_against_an_axis(self) -> None:
        self.every_kind()
        words = ("--x", "m", "--y", "seconds", "--where", "experiment=speed", "--where", "layer=1", "--where", "layer=2")
        out = str(self.directory / "out")
        code, printed, err = self.run_script(
            plot, str(self.directory / "kinds.db"), *words, "--series", "input", "--log", "x,y", "--table", "markdown",
            "-o", out
        )
        self.assertEqual((code, err), (0, ""))
        self.assertEqual({Path(line).name for line in printed.split()},
                         {f"query.seconds-over-m.{ending}" for ending in ("csv", "svg", "pdf", "md")})
        with open(self.directory / "out" / "query.seconds-over-m.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["series"], row["x"], row["y"], row["samples"]) for row in rows],
                         [("gaussian", "2.0", "0.002", "6"), ("gaussian", "4.0", "0.002", "6")])  # medians

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

    def test_numbers_are_tabulated_with_the_reason_of_what_was_not_done(self) -> None:
        read = results.read([self.example().path])
        files = plot.draw(read, read.figures[0], ["tex", "md"]).files
        markdown, latex = files["md"].decode(), files["tex"].decode()
        self.assertIn("| panel | performer | 16 | 0.06875 | 0.05322 to 0.08428 | 0.06875 |", markdown)
        self.assertIn("| panel | performer | 128 | crashed: signal 11 | – | – |", markdown)
        self.assertIn(r"panel & performer & 16 & 0.06875 & 0.05322 to 0.08428 & 0.06875 \\", latex)

    def test_axes_of_few_integers_have_a_tick_at_each(self) -> None:
        with self.store() as store:
            for layer in range(4):
                store.cell(f"a:layer={layer}", [1.0], layer=layer)
        panel = self.panel(store, {**CURVE, "x": ["layer"], "x_scale": "linear"})
        figure, axes = plot.plt.subplots()
        self.addCleanup(plot.plt.close, figure)
        panels.set_axis(axes, "x", panel, panel.points["x"].to_numpy(float))
        self.assertEqual(list(axes.get_xticks()), [0, 1, 2, 3])
        panels.set_axis(axes, "x", panel, np.array([0.0, 0.5, 1]))
        self.assertGreater(len(axes.get_xticks()), 2)


def points_in(axes: Any) -> list[tuple[float, float]]:
    """Where markers of series stand."""
    marked = [line for line in axes.lines if line.get_marker() in style.MARKERS and len(line.get_xdata()) > 0]
    return sorted((float(x), float(y)) for line in marked for x, y in zip(*line.get_data()))


def redrawn_axes(picture: Any, panels_drawn: int) -> tuple[list[Any], list[Any]]:
    """Panels and colour bars of a redrawn picture: a bar's axes came into being before the bar did."""
    bars = [axes for axes in picture.axes if hasattr(axes, "_colorbar")]
    return [axes for axes in picture.axes if axes not in bars], bars


NEGATIVE = results.Verdict(
    "bold*claim", "FAIL", "half of a_b | c", "50 % & 2^3 ≤ {9}", expected="PASS", source="A et al.\n2020, $x$"
)


class Tables(InTemporaryDirectory):
    def judged(self, size: str) -> results.Results:
        with self.store(f"{size}.db") as store:
            conditional = results.Verdict("bold*claim", "CONDITIONAL", "Faster", "1", "n > 8", "CONDITIONAL", "B")
            store.verdicts(NEGATIVE, conditional, size=size)
        return results.read([store.path])

    def test_the_csv_of_verdicts_has_every_field_as_it_is(self) -> None:
        rows = list(csv.DictReader(io.StringIO(verdicts.as_csv(self.judged("quick")))))
        self.assertEqual([row["contradicts"] for row in rows], ["yes", "no"])
        self.assertEqual(rows[0]["source"], NEGATIVE.source)
        self.assertEqual((rows[1]["region"], rows[1]["expected"], rows[1]["size"]), ("n > 8", "CONDITIONAL", "quick"))

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
            ([], "2 verdicts: 1 CONDITIONAL"),
            (["--format", "latex"], "% 2 verdicts"),
            (["--format", "csv"], "recipe,size,outcome"),
        ):
            code, out, err = self.run_script(verdicts, path, *words)
            self.assertEqual((code, err), (0, ""))
            self.assertTrue(out.startswith(begin), out)
        with self.store("none.db"):
            pass
        self.assertIn("'attnbench reproduce' makes them", self.run_script(verdicts, str(self.directory / "none.db"))[1])
        self.assertEqual(self.run_script(verdicts, str(self.directory / "missing.db"))[0], 2)


class Bundle(InTemporaryDirectory):
    def test_the_page_comes_with_what_it_rests_on(self) -> None:
        store = self.example()
        out = self.directory / "out"
        self.assertEqual(self.run_script(report, str(store.path), "-o", str(out), "--bundle")[0], 0)
        names = {path.name for path in out.iterdir()}
        self.assertLessEqual({"results.db", "verdicts.csv", "verdicts.md", "verdicts.tex", "environment.json"}, names)
        copied, original = results.read([out / "results.db"]), results.read([store.path])
        self.assertEqual(len(copied.measurements), len(original.measurements))
        environment = json.loads((out / "environment.json").read_text())
        self.assertEqual(environment["environments"], [{"cpu": {"model": "M"}, "clean": True}])
        self.assertEqual(environment["runs"][0]["environment"], 0)
        self.assertEqual(environment["runs"][0]["file"], "results.db")

    def test_an_environment_stands_once_whatever_the_load(self) -> None:
        with self.store() as store:
            for i in range(2, 5):
                text = json.dumps({"cpu": "M" if i < 4 else "N", "load_average": [i], "memory": {"available_bytes": i}})
                store.connection.execute("INSERT INTO run VALUES(?, '', '', ?)", [i, text])
        told = json.loads(bundle.environment(results.read([store.path])))
        self.assertEqual([run["environment"] for run in told["runs"]], [0, 1, 1, 2])
        self.assertEqual([run["load_average"] for run in told["runs"]], [None, [2], [3], [4]])
        self.assertEqual(told["environments"][1], {"cpu": "M", "memory": {}})

    def test_the_copy_has_what_lies_in_the_log_of_a_run_that_goes_on(self) -> None:
        with self.store() as store:
            store.connection.commit()
            store.connection.execute("PRAGMA journal_mode = WAL")
            store.cell("a", [1.0])
            store.connection.commit()
            self.assertGreater((self.directory / "results.db-wal").stat().st_size, 0)
            copy = self.directory / "copy.db"
            copy.write_bytes(bundle.store(store.path))
        self.assertEqual(len(results.read([copy]).cells), 1)
        self.assertEqual(sqlite3.connect(copy).execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_a_store_is_copied_unless_it_is_there(self) -> None:
        paths = [self.store(name).path for name in ("a.db", "b.db")]
        both, one = results.read(paths), results.read(paths[:1])
        elsewhere = self.directory / "out"
        self.assertEqual([name for name in bundle.bundle(one, elsewhere) if name.endswith(".db")], ["results.db"])
        self.assertEqual(
            [name for name in bundle.bundle(both, elsewhere) if name.endswith(".db")], ["results-1.db", "results-2.db"]
        )
        self.assertEqual([name for name in bundle.bundle(both, self.directory) if name.endswith(".db")], [])


class Page(InTemporaryDirectory):
    def test_verdicts_stand_at_the_head_of_their_recipe(self) -> None:
        store = self.example()
        connection = sqlite3.connect(store.path)
        connection.executemany(
            "INSERT INTO verdict(recipe, position, outcome, statement, numbers) VALUES('recipe',?,?,?,?)",
            [(1, "FAIL", "second <claim>", "2 & 3"), (0, "CONDITIONAL", "first claim: at a", "1")],
        )
        connection.commit()
        connection.close()
        self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        page = (self.directory / "page" / "index.html").read_text()
        in_order = ("It holds", "first claim: at a", "second &lt;claim&gt;", "2 &amp; 3", "<figure")
        section = page[page.index('id="recipe-recipe"') :]
        places = [section.index(words) for words in in_order]
        self.assertEqual(places, sorted(places))
        self.assertIn('<span class="outcome fail">FAIL</span>', page)

    def test_a_file_of_the_first_schema_has_no_verdicts(self) -> None:
        store = self.example()
        connection = sqlite3.connect(store.path)
        connection.executescript("DROP TABLE reproduction; DROP TABLE verdict; ALTER TABLE cell DROP COLUMN machine; PRAGMA user_version = 1")
        connection.close()
        self.assertEqual(results.read([store.path]).verdicts, [])

    def test_timings_of_two_machines_are_two_curves(self) -> None:
        with self.store() as store:
            for machine, seconds in (("here, M, 8 cores", 1.0), ("there, M, 8 cores", 3.0)):
                for m in (16, 32):
                    store.cell(f"a:m={m}", [seconds], m=m, machine=machine)
        read = results.read([store.path])
        self.assertEqual(read.superseded, 0)
        points = aggregate.aggregate(read, CURVE).role("measured")
        self.assertEqual(
            set(zip(points["series"], points["y"])),
            {("a on here, M, 8 cores", 1.0), ("a on there, M, 8 cores", 3.0)},
        )

    def test_a_recipe_that_two_files_judge_has_the_verdicts_of_the_last(self) -> None:
        for name, outcomes in (("a.db", ["PASS", "FAIL"]), ("b.db", ["AMBIGUOUS"])):
            with self.store(name) as store:
                for i, outcome in enumerate(outcomes):
                    store.connection.execute("INSERT INTO verdict(recipe, position, outcome) VALUES('recipe',?,?)", [i, outcome])
        read = results.read([self.directory / "a.db", self.directory / "b.db"])
        self.assertEqual([verdict.outcome for verdict in read.verdicts], ["AMBIGUOUS"])

    def test_the_page_is_whole_and_asks_for_nothing(self) -> None:
        store = self.example()
        code, out, _ = self.run_script(report, str(store.path), "-o", str(self.directory / "page"))
        self.assertEqual(code, 0)
        self.assertEqual(out.strip(), str(self.directory / "page" / "index.html"))
        page = Path(out.strip()).read_text()
        self.assertIsNone(re.search(r"https?://|<link|src=|@import", page))
        ids = re.findall(r'\bid="([^"]*)"', page)
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual(set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)), set(ids))
        for words in (
            "The recipe",
            "It holds &amp; more.",
            'aria-label="Title of curves. A &lt;caption&gt; \\1."',
            "signal 11",
            "attnbench run none",
            "attnbench run &lt;x&gt;",
            "cpu.model",
            'href="recipe.curves.csv"',
        ):
            self.assertIn(words, page)
        for link in re.findall(r'href="([^"#]+)"', page):
            self.assertTrue((self.directory / "page" / link).exists(), link)

    def test_an_empty_store_says_how_to_fill_it(self) -> None:
        with self.store() as store:
            pass
        code, out, _ = self.run_script(report, str(store.path), "-o", str(self.directory))
        self.assertEqual(code, 0)
        self.assertIn("attnbench reproduce", Path(out.strip()).read_text())


class Errors(InTemporaryDirectory):
    def expect_misuse(self, script: Any, *words: str) -> str:
        code, out, err = self.run_script(script, *words)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        return err

    def test_what_is_no_results_file_is_refused(self) -> None:
        text = self.directory / "text.db"
        text.write_text("no database, but long enough to be taken for one " * 40)
        other = self.directory / "other.db"
        sqlite3.connect(other).executescript("CREATE TABLE t(x)").close()
        with self.store("newer.db") as newer:
            newer.connection.execute("PRAGMA user_version = 5")
        with self.store("broken.db") as broken:
            broken.connection.execute("DROP TABLE measurement")
        with self.store("malformed.db") as malformed:
            malformed.connection.execute("INSERT INTO figure VALUES('r', 'f', 1, '{\"panels\": [{}]}')")
        with self.store("map.db") as flat:
            flat.figure("f", {**MAP, "y_axis": []})
        for path in (
            self.directory / "missing.db",
            self.directory,
            text,
            other,
            newer.path,
            broken.path,
            malformed.path,
            flat.path,
        ):
            for script in (plot, report):
                with self.subTest(path=path.name, script=script.__name__):
                    error = self.expect_misuse(script, str(path), "-o", str(self.directory / "out"))
                    self.assertIn(str(path), error)
                    self.assertIn("expected", error)
        self.assertFalse((self.directory / "out").exists())

    def test_an_output_that_cannot_be_written_leaves_nothing(self) -> None:
        with self.store() as store:
            store.figure("f", CURVE)
        for script in (plot, report):
            self.assertIn("-o DIR", self.expect_misuse(script, str(store.path), "-o", str(store.path)))
        with mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
            self.assertIn("No space", self.expect_misuse(report, str(store.path), "-o", str(self.directory / "out")))
        self.assertEqual(list((self.directory / "out").iterdir()), [])

    def test_an_unknown_figure_is_answered_with_the_known(self) -> None:
        with self.store() as store:
            store.figure("spectrum", CURVE)
        self.assertIn("spectrum", self.expect_misuse(plot, str(store.path), "--figure", "spektrum"))


if __name__ == "__main__":
    unittest.main()
