"""Small results files that the tests of scripts/ read, and the class that these tests derive from.

Import it before the scripts themselves: it puts their folder on the path. The points of figures are computed by the
program that the environment variable ATTNBENCH names, or by that of the build release.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))
PROGRAM = os.environ.get("ATTNBENCH", str(SCRIPTS.parent / "build" / "release" / "attnbench"))

import panel as panels_of_figures
import results
import results_file

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


def seal(connection: sqlite3.Connection) -> None:
    """Gives every row the digest of its values, as if attnbench had written them."""
    for keys, digests in (
        ("run WHERE id = ?", results_file.run_digests),
        ("replicate WHERE cell = ? AND replicate = ?", results_file.replicate_digests),
        ("figure WHERE recipe = ? AND name = ?", results_file.figure_digests),
        ("reproduction WHERE recipe = ?", results_file.reproduction_digests),
    ):
        connection.executemany(
            f"UPDATE {keys.replace(' WHERE', ' SET digest = ? WHERE')}",
            [(digest, *key) for key, _, digest in digests(connection)],
        )


class Store:
    """A results file under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.executescript(
            f"PRAGMA application_id = {results_file.APPLICATION_ID}; PRAGMA user_version = {results_file.SCHEMA};"
            f"{results_file.TABLES}"
        )
        self.run(1, {"cpu": {"model": "M"}, "clean": True}, "2026-01-05T10:00:00Z", "attnbench run <x>")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.seal()
        self.connection.close()

    def seal(self) -> None:
        seal(self.connection)
        self.connection.commit()

    def run(self, number: int, environment: dict[str, Any], started: str = "", command: str = "") -> None:
        text = json.dumps(environment)
        self.connection.execute("INSERT INTO run VALUES(?,?,?,?,'')", [number, started, command, text])

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
            nothing = value is None and theory is None and ending[0] == "done"  # attnbench records no such replicate
            count = (value is not None) + (theory is not None) + nothing
            self.connection.execute(
                "INSERT INTO replicate VALUES(?,?,1,?,?,0.1,?,?,'')", [cell, r, *ending, finished, count]
            )
            if value is not None:
                self._measure(cell, r, metric, unit, value)
            if theory is not None:
                self._measure(cell, r, f"{metric}_theory", unit, theory)
            if nothing:
                self._measure(cell, r, "another", "1", 0.0)

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
                json.dumps(array.shape, separators=(",", ":")),
                float(value) if scalar else None,
                None if scalar else array.tobytes(),
            ],
        )

    def figure(self, name: str, *descriptions: dict[str, Any], recipe: str = "recipe", **more: Any) -> None:
        text = json.dumps({"title": f"Title of {name}", "caption": "A <caption> \\1.", "panels": descriptions, **more})
        self.connection.execute("INSERT INTO figure VALUES(?,?,1,?,'','')", [recipe, name, text])

    def verdicts(self, *verdicts: results.Verdict, size: str) -> None:
        """Those of one recipe."""
        recipe = verdicts[0].recipe
        self.connection.execute(
            "INSERT INTO reproduction VALUES(?,?,?,1.5,'[]','2026-01-05T10:00:00Z','')",
            [recipe, size, f"attnbench reproduce {recipe}"],
        )
        for i, v in reversed(list(enumerate(verdicts))):  # readers sort them
            self.connection.execute(
                "INSERT INTO verdict VALUES(?,?,?,?,?,'',?,?,?,'','','','','',?,?)",
                [recipe, i, v.outcome, v.statement, v.numbers, v.region, v.expected, v.source, v.kind, v.compared],
            )


def drawn(path: Path) -> results.Results:
    """The results with the points of their figures."""
    subprocess.run([PROGRAM, "plot", str(path), "--points"], check=True)
    return results.read(path)


class InTemporaryDirectory(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def store(self, name: str = "results.db") -> Store:
        return Store(self.directory / name)

    def store_at(self, name: str) -> Store:
        """A store that was made before."""
        store = Store.__new__(Store)
        store.path = self.directory / name
        return store

    def example(self, *verdicts: results.Verdict) -> Store:
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
            if verdicts:
                store.verdicts(*verdicts, size="quick")
        drawn(store.path)
        return store

    def every_kind(self) -> results.Figure:
        """A store with a figure of every kind of panel; together they have all that a panel can draw."""
        with self.store("kinds.db") as store:
            for i in range(1, 5):
                for name in ("a", "b"):
                    store.cell(f"{name}:m={2**i}", [1.0 / i, 1.5 / i, 1.1 / i], theory=1.2 / i, m=2**i, layer=i)
                    times = [[1e-3 * i, 2e-3, 3e-3]]
                    store.cell(f"{name}:m={2**i}", times, "seconds", "speed:", unit="s", m=2**i, layer=i)
                    place: dict[str, Any] = {"angle": 0.5 + i % 2, "length": 1 + i // 3}
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
        return next(figure for figure in drawn(store.path).figures if figure.name == "kinds")

    def maps(self) -> Store:
        """A figure with a map of ratios, one of winners, a curve and a map without data."""
        with self.store() as store:
            for i, angle in enumerate((0.5, 1.0, 1.5, 2.0)):
                for j, length in enumerate((0.5, 1.0, 1.5)):
                    place: dict[str, Any] = {"angle": angle, "length": length}
                    store.cell(f"a:angle={angle},length={length}", [1.0, 1.1], theory=10.0 ** (i - j), **place)
                    store.cell(f"b:angle={angle},length={length}", [2.0, 0.9], theory=1.0, **place)
            store.figure(
                "maps",
                {**MAP, "theory": "mse_theory", "value_label": "a / b"},
                {**MAP, "winner": True},
                {**CURVE, "x": "angle", "where": {"experiment": "error", "length": 1.0}, "x_scale": "linear"},
                {**MAP, "where": {"experiment": "none"}},
            )
        drawn(store.path)
        return store

    def figure(
        self, store: Store, *descriptions: dict[str, Any]
    ) -> tuple[results.Figure, list[panels_of_figures.Panel]]:
        """A figure of these panels, drawn."""
        with contextlib.closing(sqlite3.connect(store.path)) as connection:
            text = json.dumps({"title": "t", "caption": "c", "panels": descriptions})
            connection.execute("INSERT OR REPLACE INTO figure VALUES('recipe', 'figure', 1, ?, '', '')", [text])
            seal(connection)
            connection.commit()
        read = drawn(store.path)
        figure = next(figure for figure in read.figures if figure.name == "figure")
        return figure, panels_of_figures.panels_of(read, figure)

    def panel(self, store: Store, description: dict[str, Any]) -> panels_of_figures.Panel:
        return self.figure(store, description)[1][0]

    def run_script(self, script: ModuleType, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a script's main."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(sys, "argv", [script.__name__, *words]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                code = script.main()
            except SystemExit as stop:
                code = int(stop.code or 0)
        return code, out.getvalue(), err.getvalue()
