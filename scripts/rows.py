"""Draws a table of methods as rows of dots with intervals: one panel a column, the same order of rows in all."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from panel import Panel, is_log
from style import INK, PAPER, Look

ROW_HEIGHT = 0.16  # inches


def row_order(panels: list[Panel]) -> list[str]:
    """The series of all columns, sorted by the first column; those that it lacks come last."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.role("measured")["series"]))
    points = panels[0].role("measured")
    first = dict(zip(points["series"], points["y"].to_numpy(float)))
    return sorted(names, key=lambda name: (name not in first, first.get(name, 0.0), name))


def draw_rows(axes: Axes, panel: Panel, looks: dict[str, Look], order: list[str], with_names: bool) -> None:
    """Values along x, a row for each series, the first on top."""
    points = panel.role("measured").set_index("series")
    axes.set_xscale("log" if is_log(panel.description.get("y_scale")) else "linear")
    for place, name in enumerate(order):
        if name not in points.index:
            continue
        point, look = points.loc[name], looks[name]
        if np.isfinite(point["low"]) and np.isfinite(point["high"]):
            axes.plot([point["low"], point["high"]], [place, place], color=look.colour, linewidth=1.4)
        axes.plot(
            point["y"], place, look.marker, color=look.colour, markersize=4, markeredgecolor=PAPER, markeredgewidth=0.3
        )
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_yticks(range(len(order)), [panel.printed(name) for name in order] if with_names else [""] * len(order))
    axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=6.5)
    axes.tick_params(axis="x", labelsize=6.5)
