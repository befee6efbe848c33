"""The panels of a figure: their descriptions, and the points that attnbench computed for them.

attnbench writes the points into the results file (tables panel and point; harness/figures/draw_figures.hpp). Nothing here
computes a number that is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from results import Figure, Misuse, Results, natural_order

Array = NDArray[np.float64]
LEVEL = "95 %"  # of all intervals
MOST_SERIES = 8  # curves of a panel in colour


@dataclass(frozen=True)
class Series:
    """How a series is called in print, and what decides its look (harness/figures/looks.hpp)."""

    name: str
    family: str = ""  # the hue; "" for a method that the program did not know
    shade: int = 0
    marker: int = 0
    line: int = 0


@dataclass
class Panel:
    """The data of one panel.

    points   one row a point. role is "measured", "reference" (a method without the x axis has x = NaN) or "ending" (a
             cell that was not done: y is NaN and the note says why). A point with a note is not drawn. A trade has the
             metric of its circles in value; its "reference" rows are bounds, and methods whose y is not above zero
             (drawn at their x). A map has a tile at x, y with its value: "value" (the metric itself), "ratio" (log10 of
             the ratio) or "winner" (log10 of the factor between the least and the next, low and high its interval). A
             histogram has a bin at its centre x from x_low to x_high, y its share. An image has one row "image".
    missing  why there is nothing to draw; "" if there is something
    series   by the name of a series in the points
    image    the numbers [rows, columns] of an image
    """

    description: dict[str, Any]
    points: pd.DataFrame
    notes: list[str]
    missing: str
    unit: str
    more_is_better: bool
    series: dict[str, Series]
    image: Array | None

    @property
    def has_theory(self) -> bool:
        """Whether lines are closed forms. Points are then not joined."""
        return bool(self.points["theory"].notna().any())

    def role(self, name: str) -> pd.DataFrame:
        """The rows of one role that are drawn."""
        chosen = (self.points["role"] == name).to_numpy()
        return self.points[chosen if name == "ending" else chosen & (self.points["note"] == "").to_numpy()]

    def printed(self, series: str) -> str:
        return self.series[series].name if series in self.series else series


def panels_of(results: Results, figure: Figure) -> list[Panel]:
    """The panels of a figure with their points. Throws Misuse if the file has no points of it."""
    panels = []
    for number, description in enumerate(figure.description["panels"], start=1):
        place = (figure.recipe, figure.name, number)
        if place not in results.drawn:
            raise Misuse(
                f"{results.file}: figure {figure.recipe}/{figure.name} has no points; expected those that attnbench "
                f"computes: attnbench plot {results.file} --points"
            )
        drawn = json.loads(results.drawn[place])
        panels.append(
            Panel(
                description,
                results.points_of(place).drop(columns=["recipe", "figure", "panel", "point"]),
                drawn["notes"],
                drawn["missing"],
                drawn["unit"],
                drawn["more_is_better"],
                {name: Series(**look) for name, look in drawn["series"].items()},
                _image(results, description["y"], drawn.get("image")),
            )
        )
    return panels


def _image(results: Results, metric: str, place: dict[str, Any] | None) -> Array | None:
    if place is None:
        return None
    rows = results.of_metric(metric)
    chosen = rows[(rows["key"] == place["key"]) & (rows["replicate"] == place["replicate"])]
    image: Array = chosen["values"].iloc[0]
    return image


def axis_names(description: dict[str, Any], axis: str = "x") -> list[str]:
    """The columns that may give x (or y_axis). The first one that a cell has counts: budgets have many names."""
    names = description.get(axis) or []
    return names if isinstance(names, list) else [names]


def is_log(scale: str | None) -> bool:
    return str(scale).startswith("log")


def series_of(points: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The points of each series, in the natural order of names: m=64 before m=128."""
    for series in sorted(set(points["series"]), key=natural_order):
        yield series, points[points["series"] == series]


def points_of(panel: Panel) -> pd.DataFrame:
    """Everything that a panel draws, except references and endings."""
    drawn = panel.points["note"] == ""
    return panel.points[drawn & ~panel.points["role"].isin(["reference", "ending"])]


def series_in_grey(panels: list[Panel]) -> set[str]:
    """The curves that are beyond MOST_SERIES in each of their panels: those whose y is worst at their last point, which is
    the greatest unless more is better. Exact attention and the baselines are never among them."""
    grey: set[str] = set()
    coloured: set[str] = set()
    for panel in panels:
        if panel.description["kind"] not in ("curve", "profile"):
            continue
        points = panel.role("measured").dropna(subset=["y"]).sort_values("x", kind="stable")
        last = points.groupby("series")["y"].last().sort_values(ascending=not panel.more_is_better, kind="stable").index
        compared = [name for name in last if panel.series[name].family not in ("exact", "baseline")]
        grey |= set(compared[MOST_SERIES:])
        coloured |= set(last) - set(compared[MOST_SERIES:])
    return grey - coloured
