"""Draws a table of methods as rows of dots with intervals: one panel a column, the same order of rows in all."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator
from panel import Panel, is_log
from style import INK, PAPER, Look
from ticks import byte_ticks, limits, linear_ticks, log_ticks

ROW_HEIGHT = 0.16  # inches
TABLE_COLUMNS = 5  # of a row of panels; more begin another row
TICKS = 3  # labels that fit a column


def row_names(panels: list[Panel]) -> dict[str, str]:
    """The printed names of the series of all columns, sorted by the first column; those that it lacks come last."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.role("measured")["series"]))
    points = panels[0].role("measured")
    first = dict(zip(points["series"], points["y"].to_numpy(float)))
    names.sort(key=lambda name: (name not in first, first.get(name, 0.0), name))
    return {name: next(p.printed(name) for p in panels if name in p.series) for name in names}


def draw_rows(axes: Axes, panel: Panel, looks: dict[str, Look], names: dict[str, str], with_names: bool) -> None:
    """Values along x, a row for each of the names (printed, by series), the first on top."""
    points = panel.role("measured").set_index("series")
    _set_values(axes, panel)
    for place, name in enumerate(names):
        if name not in points.index:
            continue
        point, look = points.loc[name], looks[name]
        if np.isfinite(point["theory"]):
            axes.plot(point["theory"], place, "|", color=INK, markersize=7, markeredgewidth=1)
        if np.isnan(point["y"]):
            continue
        if axes.get_xscale() == "log" and point["y"] <= 0:
            axes.text(0.01, place, f"{point['y']:g}", transform=axes.get_yaxis_transform(), fontsize=6.5, va="center")
            continue
        if np.isfinite(point["low"]) and np.isfinite(point["high"]):
            axes.plot([point["low"], point["high"]], [place, place], color=look.colour, linewidth=1.4)
        axes.plot(
            point["y"], place, look.marker, color=look.colour, markersize=4, markeredgecolor=PAPER, markeredgewidth=0.3
        )
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), list(names.values()) if with_names else [""] * len(names))
    axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=6.5)
    axes.tick_params(axis="x", labelsize=6.5)


def _set_values(axes: Axes, panel: Panel) -> None:
    """Scale, limits and ticks of the column's values."""
    points, scale = panel.role("measured"), str(panel.description.get("y_scale"))
    values = points[["y", "low", "high", "theory"]].to_numpy(float).ravel()
    values = values[np.isfinite(values) & ((values > 0) | (not is_log(scale)))]
    if len(values) == 0:
        axes.set_xticks([])
        return
    base = {"log2": 2, "log10": 10}.get(scale, 0)
    axes.set_xscale("log" if base else "linear", **({"base": base} if base else {}))
    low, high = limits(values, bool(base), below=0.08)
    axes.set_xlim(low, high)
    if panel.unit == "B":
        ticks, minor, labels = byte_ticks(low, high, bool(base), TICKS - 1)
    else:
        ticks, minor, labels = log_ticks(low, high, base, TICKS) if base else linear_ticks(low, high, TICKS)
    axes.set_xticks(ticks, labels)
    axes.xaxis.set_minor_locator(FixedLocator(minor))
    axes.xaxis.set_minor_formatter("")
