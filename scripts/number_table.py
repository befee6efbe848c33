"""The drawn numbers of a figure as a table for a text, rounded to four digits; the CSV file has all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from aggregate import Panel
from panels import axis_label
from tables import latex, markdown
from ticks import number_label

ABSENT = "–"


def number_table(panels: list[Panel], ending: str) -> str:
    """ending: "tex" or "md". One row a point; what was not done says why."""
    header = [*(["panel"] if len(panels) > 1 else []), "series", *_axes(panels), "95 % interval"]
    if any(panel.has_theory for panel in panels):
        header.append("closed form")
    rows = [row[-len(header) :] for panel in panels for row in _rows(panel, "closed form" in header)]
    if ending == "md":
        return markdown(header, rows)
    numeric = len(header) - header.index("series") - 1
    return latex(header, rows, "l" * (len(header) - numeric) + "r" * numeric)


def _axes(panels: list[Panel]) -> list[str]:
    """The labels of both axes where all panels have the same, and of the value that a tile or a circle shows."""
    labels = [list(dict.fromkeys(axis_label(panel, axis) for panel in panels)) for axis in "xy"]
    with_value = ["value"] if any(_has_value(panel) for panel in panels) else []
    return [*(found[0] if len(found) == 1 else axis for found, axis in zip(labels, "xy")), *with_value]


def _has_value(panel: Panel) -> bool:
    return panel.description["kind"] in ("map", "trade") and bool(panel.points["value"].notna().any())


def _rows(panel: Panel, with_theory: bool) -> list[list[str]]:
    points = panel.points.sort_values(["role", "series", "x"], kind="stable")
    rows = []
    for point in points.to_dict("records"):
        interval = f"{_number(point['low'])} to {_number(point['high'])}" if np.isfinite(point["low"]) else ABSENT
        rows.append(
            [
                str(panel.description.get("title", "")),
                point["series"],
                _number(point["x"]),
                point["note"] if pd.isna(point["y"]) and point["note"] else _number(point["y"]),
                *([_number(point["value"])] if _has_value(panel) else []),
                interval,
                *([_number(point["theory"])] if with_theory else []),
            ]
        )
    return rows


def _number(value: float) -> str:
    return number_label(float(f"{value:.4g}")) if np.isfinite(value) else ABSENT
