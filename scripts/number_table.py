"""The drawn numbers of a figure as a table for a text, rounded to four digits. The CSV file has all digits."""

from __future__ import annotations

import numpy as np
import pandas as pd
from panel import Panel
from panels import axis_label
from results import natural_order
from tables import latex, markdown
from ticks import number_label

ABSENT = "–"


def number_table(panels: list[Panel], ending: str) -> str:
    """ending: "tex" or "md". One row per point; a point that was not done has the reason."""
    table = pd.DataFrame([row for panel in panels for row in _rows(panel)])
    table = table.loc[:, (table != ABSENT).any()]  # drops empty columns, such as that of closed forms
    labels = {axis: list(dict.fromkeys(axis_label(panel, axis) for panel in panels)) for axis in "xy"}
    names = ("value_label", "area_label")
    labels["value"] = [str(p.description[name]) for p in panels for name in names if p.description.get(name)][:1]
    if len(panels) == 1:
        table = table.drop(columns="panel")
    elif len(labels["y"]) > 1:
        table["panel"] += ": " + table["y label"]
    table = table.drop(columns="y label")
    header = [labels[name][0] if len(labels.get(name, [])) == 1 else name for name in table.columns]
    rows = table.to_numpy().tolist()
    if ending == "md":
        return markdown(header, rows)
    words = int("panel" in table) + 1
    return latex(header, rows, "l" * words + "r" * (len(header) - words))


def _rows(panel: Panel) -> list[dict[str, str]]:
    drawn = panel.points[(panel.points["note"] == "") | (panel.points["role"] == "ending")]
    in_order = sorted(
        drawn.sort_values("x", kind="stable").to_dict("records"),
        key=lambda point: (point["role"] == "ending", natural_order(point["series"])),
    )
    shows_value = panel.description["kind"] in ("map", "trade")
    return [
        {
            "panel": str(panel.description.get("title", "")),
            "y label": axis_label(panel, "y"),
            "series": point["series"],
            "x": _number(point["x"]),
            "y": point["note"] if pd.isna(point["y"]) and point["note"] else _number(point["y"]),
            "value": _number(point["value"]) if shows_value else ABSENT,
            "95 % interval": _interval(point["low"], point["high"]),
            "closed form": _number(point["theory"]),
        }
        for point in in_order
    ]


def _interval(low: float, high: float) -> str:
    return f"{_number(low)} to {_number(high)}" if np.isfinite(low) and np.isfinite(high) else ABSENT


def _number(value: float) -> str:
    return number_label(float(f"{value:.4g}")) if np.isfinite(value) else ABSENT
