"""Draws a histogram: one step line per series, and a line at a value that is known in advance."""

from __future__ import annotations

import numpy as np
from panel import Panel, series_of
from matplotlib.axes import Axes
from numpy.typing import NDArray
from style import FAINT, INK, PAPER, REFERENCE_LINES, Look

MARK_EVERY = 8  # bins; each series starts at another bin, so that no mark hides another


def histogram_values(panel: Panel) -> NDArray[np.float64]:
    """The values that the x axis must include: the edges of the bins, and the marked value."""
    bins = panel.role("measured")
    values = np.concatenate([bins["x_low"].to_numpy(float), bins["x_high"].to_numpy(float)])
    return np.append(values, float(panel.description["mark"])) if panel.description.get("mark_label") else values


def draw_histogram(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    axes.set_ylim(bottom=0)
    for series, bins in series_of(panel.role("measured")):
        look = looks[series]
        bins = bins.sort_values("x")
        edges = np.append(bins["x_low"].to_numpy(float), bins["x_high"].iloc[-1])
        shares = bins["y"].to_numpy(float)
        axes.stairs(shares, edges, baseline=None, color=look.colour, linestyle=look.line, linewidth=1.3, zorder=3)
        axes.plot(
            bins["x"].to_numpy(float)[look.row * 3 % MARK_EVERY :: MARK_EVERY],
            shares[look.row * 3 % MARK_EVERY :: MARK_EVERY],
            color=look.colour,
            linestyle="none",
            marker=look.marker,
            markeredgecolor=PAPER,
            markeredgewidth=0.4,
            zorder=4,
        )
    if panel.description.get("mark_label"):
        place = float(panel.description["mark"])
        axes.axvline(place, color=INK, linestyle=REFERENCE_LINES[0], linewidth=1.2, zorder=2)
        at_the_right = axes.transAxes.inverted().transform(axes.transData.transform((place, 0)))[0] > 0.9
        axes.annotate(
            str(panel.description["mark_label"]),
            (place, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if at_the_right else 3, -3),
            textcoords="offset points",
            ha="right" if at_the_right else "left",
            va="top",
            rotation=90,
            fontsize=6.5,
            color=FAINT,
        )
