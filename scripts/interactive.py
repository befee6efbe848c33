"""The data of figures that a reader explores in the page: points with hover texts, and looks for a legend that toggles.

A map and an image have none: their pictures have all that a plot would show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import Any

import pandas as pd
from compose import method_look, series_looks
from panel import Panel, Series, is_log
from panels import axis_label
from plot import Drawn
from results import Results
from style import DARK, INK, LINES, MARKERS, Look
from summaries import packed_json
from ticks import number_label

KINDS = ("curve", "profile", "trade", "histogram")
DASHES = ("solid", "dash", "dashdot", "longdash", "dot")  # of LINES, as Plotly calls them
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "star")  # of MARKERS


def packed_figures(drawings: list[Drawn]) -> str:
    """By stem, the panels of each figure; packed for a browser."""
    return packed_json({drawn.stem: _figure(drawn.panels) for drawn in drawings if _figure(drawn.panels)})


def method_looks(results: Results) -> dict[str, dict[str, Any]]:
    """By method, the name and the look of its series in the explorer."""
    series = {method: Series(**json.loads(look)) for method, look in results.looks.items()}
    return {method: _look(one.name, method_look(one)) for method, one in series.items()}


def _figure(panels: list[Panel]) -> list[dict[str, Any]]:
    """
    title   of the panel; x and y: label, and whether the axis is logarithmic
    series  name, colour, its partner in dark, dash and symbol ("" for a level or a closed form); and the columns x, y,
            low, high and text, with null where there is no number
    """
    looks = series_looks(panels)
    return [_panel(panel, looks) for panel in panels if panel.description["kind"] in KINDS and not panel.missing]


def _panel(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    drawn = panel.points[(panel.points["note"] == "") & panel.points["role"].isin(["measured", "reference"])]
    series = []
    for name, points in drawn.groupby("series", sort=False):
        look, rows = looks[str(name)], points.sort_values("x", kind="stable")
        series.append({**_look(panel.printed(str(name)), look), **_columns(panel, rows, "y")})
        if rows["theory"].notna().any():
            lines = {**_look(f"{panel.printed(str(name))}, closed form", look), "symbol": "", "thin": True}
            series.append({**lines, **_columns(panel, rows, "theory")})
    description = panel.description
    return {
        "title": str(description.get("title", "")),
        "x": {"label": axis_label(panel, "x"), "log": is_log(description.get("x_scale"))},
        "y": {"label": axis_label(panel, "y"), "log": is_log(description.get("y_scale"))},
        "joined": not (panel.has_theory or description.get("points") or description.get("area")),
        "series": series,
    }


def _look(name: str, look: Look) -> dict[str, Any]:
    return {
        "name": name,
        "colour": look.colour,
        "dark": DARK.get(look.colour, DARK[INK]),
        "dash": DASHES[LINES.index(look.line)] if look.line in LINES else "dot",
        "symbol": SYMBOLS[MARKERS.index(look.marker)] if look.marker in MARKERS else "",
    }


def _columns(panel: Panel, rows: pd.DataFrame, y: str) -> dict[str, Any]:
    measured = y == "y"
    return {
        "x": [_number(x) for x in rows["x"]],
        "y": [_number(value) for value in rows[y]],
        "low": [_number(low) if measured else None for low in rows["low"]],
        "high": [_number(high) if measured else None for high in rows["high"]],
        "text": [_words(panel, row, measured) for row in rows.to_dict("records")],
    }


def _words(panel: Panel, row: dict[Hashable, Any], measured: bool) -> list[str]:
    """The numbers of a point, line by line, as a reader sees them over it."""
    unit = "" if panel.unit in ("", "1") else f" {panel.unit}"
    words = [f"{_text(row['y'])}{unit}" if measured else f"closed form {_text(row['theory'])}{unit}"]
    if measured and math.isfinite(row["low"]) and math.isfinite(row["high"]):
        words.append(f"95 % interval {_text(row['low'])} to {_text(row['high'])}")
    if math.isfinite(row["x"]):
        words.append(f"at {_text(row['x'])}")
    if measured:
        words.append(f"{row['replicates']:,} replicate{'' if row['replicates'] == 1 else 's'}")
    return words


def _text(value: float) -> str:
    return number_label(float(f"{value:.4g}")) if math.isfinite(value) else "none"


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
