"""A results file of attnbench as pandas frames. Only reads; does not know any method, experiment or metric.

A results file is SQLite (harness/store/store.hpp). Of cells that differ only in the source version, the newest counts.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from results_file import Misuse as Misuse
from results_file import open_results

SPECS = ("experiment", "method", "input")
# Columns of a cell that the harness sets, beside the parameters of its specs.
PROBLEM = (
    "nq",
    "n",
    "d",
    "dv",
    "causal",
    "mask_offset",
    "mask_keys",
    "precision",
    "heads",
    "logit_scale",
    "seed",
    "threads",
    "machine",
)


Place = tuple[str, str, int]  # of a panel: recipe, figure, number from 1
NUMBERS = (
    *("x", "x_low", "x_high", "y", "low", "high", "theory", "value"),
    *("exponent", "exponent_low", "exponent_high", "crossing", "crossing_low", "crossing_high"),
)  # of a point; NaN where it has none


SUMMARISED = ("mean", "low", "high", "median", "median_low", "median_high")


@dataclass(frozen=True)
class Figure:
    """One row of table `figure`: a description as data."""

    recipe: str
    name: str
    position: int
    description: dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """One row of table `verdict`: a recipe's statement and the outcome that its numbers give."""

    recipe: str
    # HOLDS, REFUTED, DEPENDS or OPEN; NOT SEEN: it fails in another setting than the source's; MEASURED: the source gives
    # no threshold
    outcome: str
    statement: str
    numbers: str
    region: str = ""  # where it holds and where it fails; empty: everywhere, or nowhere
    expected: str = "OPEN"  # an outcome; OPEN: nothing is known in advance
    source: str = ""  # empty: this project's own finding
    quotation: str = ""  # the source's own words
    paraphrase: str = ""  # of the source, if its words could not be verified
    definition: str = ""
    threshold: str = ""
    because: str = ""  # reason for the expected outcome
    kind: str = "own"  # paper: a claim of a source; code: it tests this code; own: a finding of this project
    compared: str = "[]"  # JSON: every comparison, with what, side, value, low, high and count

    @property
    def source_words(self) -> str:
        """The source, in words."""
        return self.source or "this project's own finding"

    @property
    def contradicts(self) -> bool:
        """Whether the verdict is decided and differs from the expected outcome."""
        decided = not {"OPEN", "MEASURED"} & {self.outcome, self.expected}
        return decided and self.outcome != self.expected


@dataclass(frozen=True)
class Reproduction:
    """One row of table `reproduction`: how a recipe was run."""

    recipe: str
    size: str  # smoke, quick or full
    command: str  # runs this recipe alone
    seconds: float
    cells: list[str]  # keys of the cells that its verdicts use
    written: str


@dataclass(frozen=True)
class Results:
    """
    cells         index key; the columns of PROBLEM and SPECS, and one column a parameter (NaN where a cell has none)
    replicates    key, replicate, run, ending, reason, seconds, finished
    summaries     key, metric, unit, mean, low, high, median, median_low, median_high, replicates, samples: of each cell
                  and metric, as attnbench computed them (harness/figures/draw_figures.hpp)
    looks         by method, how it is called in print and drawn (JSON, harness/figures/looks.hpp)
    figures       in the order of their recipes and positions
    drawn         by the place of a panel, what attnbench says of it (JSON, harness/figures/draw_figures.hpp)
    points        of all panels: recipe, figure, panel, point and the numbers (harness/figures/drawn_panel.hpp)
    runs          id, started, command, environment (dict)
    verdicts      in the order of their recipes
    reproductions by recipe
    superseded    cells left out because a newer source version measured the same
    """

    cells: pd.DataFrame
    replicates: pd.DataFrame
    summaries: pd.DataFrame
    looks: dict[str, str]
    figures: list[Figure]
    drawn: dict[Place, str]
    points: pd.DataFrame
    verdicts: list[Verdict]
    reproductions: dict[str, Reproduction]
    runs: pd.DataFrame
    superseded: int
    file: Path

    def of_metric(self, metric: str) -> pd.DataFrame:
        """The measurements of one metric by replicates that are done: key, replicate, unit, values (float64 array in its
        stored shape; a scalar has shape ()). Read on first use: a file has many more numbers than a page shows."""
        if metric not in self._measured:
            self._measured[metric] = _measurements(self.file, metric, self.cells.index)
        return self._measured[metric]

    @cached_property
    def _measured(self) -> dict[str, pd.DataFrame]:
        return {}

    def points_of(self, place: Place) -> pd.DataFrame:
        """The points of one panel; empty if nothing was drawn."""
        return self._by_place.get(place, self.points.iloc[:0])

    @cached_property
    def _by_place(self) -> dict[Place, pd.DataFrame]:
        groups = self.points.groupby(["recipe", "figure", "panel"], sort=False)
        return {(str(recipe), str(figure), int(panel)): rows for (recipe, figure, panel), rows in groups}


def split_spec(spec: str) -> tuple[str, list[str]]:
    """Name and arguments of a spec. Commas inside brackets do not separate them (grammar: harness/core/spec.hpp)."""
    name, colon, rest = spec.partition(":")
    arguments, depth, begin = [], 0, 0
    for i, character in enumerate(rest):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            arguments.append(rest[begin:i])
            begin = i + 1
    return name, [*arguments, rest[begin:]] if colon else []


def natural_order(text: str) -> tuple[tuple[int, float, str], ...]:
    """Sort key that puts m=64 before m=128."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return tuple((0, float(part), "") if i % 2 else (1, 0.0, part) for i, part in enumerate(parts))


def plain(value: Any) -> Any:
    """One spelling of a value: numbers and booleans (also as text) become float, None becomes NaN, the rest is text."""
    if value is None:
        return np.nan
    if value in ("true", "false"):
        return float(value == "true")
    try:
        number = float(value)
    except ValueError:
        return value
    return str(value) if abs(number) >= 2.0**53 else number  # seeds of 64 bits are names, not numbers


def read(path: Path) -> Results:
    """Reads a results file. Throws Misuse if the path is not one."""
    file = _read_file(path)
    cells = file.cells.set_index("key")
    newest = _newest(cells, file.replicates)
    current = cells.index[cells.index == newest]
    return Results(
        cells=_with_parameters(cells.loc[current]),
        replicates=file.replicates[file.replicates["key"].isin(current)].reset_index(drop=True),
        summaries=file.summaries,
        looks=file.looks,
        figures=[_of_newest(figure, newest) for figure in file.figures],
        drawn=file.drawn,
        points=file.points,
        verdicts=file.verdicts,
        reproductions={
            made.recipe: replace(made, cells=[str(newest.get(key, key)) for key in made.cells])
            for made in file.reproductions
        },
        runs=file.runs,
        superseded=len(cells) - len(current),
        file=path,
    )


class _File(NamedTuple):
    """The contents of a results file, with the cells of all source versions."""

    cells: pd.DataFrame
    replicates: pd.DataFrame
    summaries: pd.DataFrame
    looks: dict[str, str]
    runs: pd.DataFrame
    figures: list[Figure]
    drawn: dict[Place, str]
    points: pd.DataFrame
    verdicts: list[Verdict]
    reproductions: list[Reproduction]


def _read_file(path: Path) -> _File:
    with closing(open_results(path)) as connection:
        try:
            cells = pd.read_sql("SELECT * FROM cell ORDER BY id", connection).drop(columns="id")
            replicates = pd.read_sql(
                "SELECT c.key, r.replicate, r.run, r.ending, r.reason, r.seconds, r.finished "
                "FROM replicate r JOIN cell c ON c.id = r.cell ORDER BY c.id, r.replicate",
                connection,
            )
            summaries = pd.read_sql(
                "SELECT c.key, s.* FROM summary s JOIN cell c ON c.id = s.cell ORDER BY s.cell, s.metric", connection
            ).drop(columns="cell")
            looks = dict(connection.execute("SELECT method, json FROM look ORDER BY method").fetchall())
            runs = pd.read_sql("SELECT id, started, command, environment FROM run ORDER BY id", connection)
            rows = connection.execute("SELECT recipe, name, position, json FROM figure ORDER BY recipe, position, name")
            figures = [_figure(path, *row) for row in rows]
            drawn = connection.execute("SELECT recipe, figure, panel, json FROM panel").fetchall()
            points = pd.read_sql("SELECT * FROM point ORDER BY recipe, figure, panel, point", connection)
            judged = connection.execute(
                "SELECT recipe, outcome, statement, numbers, region, expected, source, quotation, paraphrase, definition, "
                "threshold, because, kind, compared FROM verdict ORDER BY recipe, position"
            ).fetchall()
            reproduced = connection.execute(
                "SELECT recipe, size, command, seconds, cells, written FROM reproduction ORDER BY recipe"
            ).fetchall()
        except (sqlite3.Error, pd.errors.DatabaseError) as error:
            cause = " ".join(str(error.__cause__ or error).split())
            raise Misuse(f"{path}: {cause}; expected the tables of a results file of attnbench; run it again") from None
    runs["environment"] = [_json(path, "the environment of a run", text, dict) for text in runs["environment"]]
    for parameters in cells["parameters"]:
        _json(path, "the parameters of a cell", parameters, dict)
    return _File(
        cells,
        replicates,
        summaries.astype(dict.fromkeys(SUMMARISED, float)),
        looks,
        runs,
        figures,
        {(recipe, figure, panel): text for recipe, figure, panel, text in drawn},
        points.astype(dict.fromkeys(NUMBERS, float)),
        [_verdict(path, Verdict(*row)) for row in judged],
        [
            Reproduction(recipe, size, command, seconds, _keys(path, keys), written)
            for recipe, size, command, seconds, keys, written in reproduced
        ],
    )


def _measurements(path: Path, metric: str, keys: pd.Index) -> pd.DataFrame:
    with closing(open_results(path)) as connection:
        rows = pd.read_sql(
            "SELECT c.key, m.replicate, m.unit, m.shape, m.value, m.array FROM measurement m "
            "JOIN cell c ON c.id = m.cell JOIN replicate r ON r.cell = m.cell AND r.replicate = m.replicate "
            "WHERE r.ending = 'done' AND m.metric = ? ORDER BY c.id, m.replicate",
            connection,
            params=[metric],
        )
    columns = (rows.pop("shape"), rows.pop("value"), rows.pop("array"))
    rows["values"] = [_values(*stored) for stored in zip(*columns)]
    return rows[rows["key"].isin(keys)].reset_index(drop=True)


def _json(path: Path, what: str, text: str, kind: type) -> Any:
    """The text as JSON of that kind; digests do not keep a file from being made by another program."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise Misuse(
            f"{path}: {what} is not a JSON {'object' if kind is dict else 'list'}; expected one as attnbench writes it; "
            "restore a copy, or measure again into another path"
        )
    return value


def _keys(path: Path, text: str) -> list[str]:
    return [str(key) for key in _json(path, "the cells of a reproduction", text, list)]


def _verdict(path: Path, verdict: Verdict) -> Verdict:
    compared = _json(path, "the comparisons of a verdict", verdict.compared, list)
    whole = {"what", "side", "value", "low", "high", "count"}
    if not all(isinstance(one, dict) and whole <= one.keys() for one in compared):
        raise Misuse(
            f"{path}: a comparison of a verdict lacks a part; expected {', '.join(sorted(whole))}; restore a copy"
        )
    return verdict


def _values(shape: str, value: float | None, array: bytes | None) -> NDArray[np.float64]:
    if array is None:
        return np.array(value, dtype=float)
    return np.frombuffer(array, "<f8").reshape(json.loads(shape))


def _figure(path: Path, recipe: str, name: str, position: int, text: str) -> Figure:
    description = _json(path, f"figure {recipe}/{name}", text, dict)
    if not isinstance(description.get("panels"), list):
        raise Misuse(f"{path}: figure {recipe}/{name} has no panels; expected a list of them; correct the recipe")
    return Figure(recipe, name, int(position), description)


def _newest(cells: pd.DataFrame, replicates: pd.DataFrame) -> pd.Series[str]:
    """By key, the key that the newest source version gave to the same cell."""
    identity = [column for column in cells.columns if column != "source_version"]
    finished = replicates.groupby("key")["finished"].max().reindex(cells.index).fillna("")
    ordered = cells.assign(finished=finished, newest=cells.index).sort_values("finished", kind="stable")
    return ordered.groupby(identity, dropna=False)["newest"].transform("last").reindex(cells.index)


def _of_newest(figure: Figure, newest: pd.Series[str]) -> Figure:
    """The figure with the keys of its cells replaced by those of the newest source version."""
    panels = [
        {**panel, "cells": [newest.get(key, key) for key in panel["cells"]]} if "cells" in panel else panel
        for panel in figure.description["panels"]
    ]
    return replace(figure, description={**figure.description, "panels": panels})


def _with_parameters(cells: pd.DataFrame) -> pd.DataFrame:
    """Parameters as columns. A parameter with the name of another column is that column, and adds none."""
    objects = [json.loads(text) for text in cells["parameters"]]
    rows = [
        {name: json.dumps(value) if isinstance(value, (list, dict)) else value for name, value in row.items()}
        for row in objects
    ]
    parameters = pd.DataFrame(rows, index=cells.index)
    added = [name for name in parameters.columns if name not in cells]
    return pd.concat([cells.drop(columns="parameters"), parameters[added]], axis=1)


def parameter_columns(cells: pd.DataFrame) -> Iterable[str]:
    """The columns that hold parameters."""
    return [column for column in cells.columns if column not in (*PROBLEM, *SPECS, "source_version")]
