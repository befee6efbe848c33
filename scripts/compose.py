"""A whole figure: panels above, then one legend, then notes. Nothing overlaps; the height follows from the parts."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from panel import Panel, Series, axis_names, series_in_grey
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import ScaledTranslation
from notes import notes
from panels import axis_label, balanced, draw_panel, has_circles
from results import Misuse, natural_order
from rows import ROW_HEIGHT, TABLE_COLUMNS, draw_rows, row_names
from style import (
    COLOURS,
    FAINT,
    GREY,
    HUES,
    INK,
    LINES,
    MARKERS,
    NEUTRAL,
    PAPER,
    REFERENCE_LINES,
    REPORT,
    Layout,
    Look,
    shade,
)

LEGEND: dict[str, Any] = {
    "loc": "lower center",
    "frameon": False,
    "handlelength": 3.2,
    "columnspacing": 1.6,
    "labelspacing": 0.45,
    "borderaxespad": 0,
    "borderpad": 0.2,
}


def compose(panels: list[Panel], layout: Layout = REPORT) -> plt.Figure:
    """Draws the figure. Its height is the sum of its rows of panels, its legend and its notes."""
    looks = series_looks(panels, layout.legend_order)
    columns, width, panel_height = _arrangement(panels, layout, len(looks))
    rows = -(-len(panels) // columns)
    picture = plt.figure(figsize=(width, rows * panel_height))
    grid = picture.add_gridspec(rows, columns)
    titled = layout.with_words or len(panels) > 1
    names = row_names(panels) if panels[0].description["kind"] == "table" else {}
    for i, panel in enumerate(panels):
        axes = picture.add_subplot(grid[i // columns, i % columns])
        same_label = i % columns > 0 and axis_label(panel, "y") == axis_label(panels[i - 1], "y")
        size = (width / columns, panel_height)
        if panel.description["kind"] == "table":
            draw_rows(axes, panel, looks, names, with_names=i % columns == 0)
            axes.set_xlabel(balanced(axis_label(panel, "y"), int(width / columns * 12)))
            continue
        draw_panel(axes, panel, looks, size, with_title=titled, with_y_label=not same_label)
    _fix_labels(picture)
    legend = _legend(picture, panels, looks, layout, width)
    lines = list(_wrapped(notes(panels), width)) if layout.with_words else []
    words = picture.text(0, 0, "\n".join(lines), fontsize=6.8, color=FAINT, linespacing=1.35, va="bottom")
    _stack(picture, legend, words, rows * panel_height, layout.size)
    return picture


def _arrangement(panels: list[Panel], layout: Layout, series: int) -> tuple[int, float, float]:
    """Columns of panels, the width of the figure and the height of a panel (inches)."""
    if panels[0].description["kind"] == "table":
        bands = -(-len(panels) // TABLE_COLUMNS)
        return -(-len(panels) // bands), layout.wide, ROW_HEIGHT * series + 0.6
    circles = any(has_circles(panel) for panel in panels)  # these need room for the names beside them
    columns = layout.columns.get(len(panels), 3)
    if layout.size:
        return columns, layout.size[0], layout.size[1] / -(-len(panels) // columns)
    width = layout.narrow if columns == 1 and not circles and series <= layout.most_series else layout.wide
    if circles:
        return min(columns, 2), width, 4.2
    if all(panel.description["kind"] == "image" for panel in panels):  # square ones, with a bar beside each
        return columns, width, 0.76 * width / columns
    return columns, width, layout.heights.get(columns, 2.45)


def _fix_labels(picture: plt.Figure) -> None:
    """Fixes the label of an axis at its distance from the axes. Otherwise matplotlib measures all tick labels again for
    each pass of the layout and for each format. Where ticks depend on the size, as on some colour bars, it must."""
    renderer = picture.canvas.get_renderer()
    for axes in picture.axes:
        for across, axis in ((1, axes.xaxis), (0, axes.yaxis)):  # across: the coordinate that tick labels decide
            if not isinstance(axis.get_major_locator(), FixedLocator):
                continue
            axis.get_tightbbox(renderer)  # places the label
            place = list(axis.label.get_position())
            far = axis.get_label_position() in ("top", "right")
            distance = [0.0, 0.0]
            distance[across] = (place[across] - (axes.bbox.max if far else axes.bbox.min)[across]) / picture.dpi
            place[across] = float(far)
            axis.set_label_coords(*place, axes.transAxes + ScaledTranslation(*distance, picture.dpi_scale_trans))


def _stack(
    picture: plt.Figure, legend: Any, words: Any, panels_height: float, size: tuple[float, float] | None
) -> None:
    """Sets the figure's height to that of its parts, unless a size is given, and places them below each other. Heights in
    inches. Throws Misuse if the size has no room for panels."""
    renderer = picture.canvas.get_renderer()
    gap, dpi = 0.08, picture.dpi
    legend_height = legend.get_window_extent(renderer).height / dpi + gap if legend else 0.0
    notes_height = words.get_window_extent(renderer).height / dpi + gap if words.get_text() else 0.0
    height = size[1] if size else panels_height + legend_height + notes_height + gap
    if height - legend_height - notes_height < 1:
        raise Misuse(
            f"--size: legend and notes take {legend_height + notes_height:.1f} of {height:g} inches; expected at least "
            "one inch for the panels: give more, or a shorter legend by --rename"
        )
    width = picture.get_figwidth()
    picture.set_size_inches(width, height)
    words.set_position((gap / width, gap / height))
    if legend:
        legend.set_bbox_to_anchor((0.5, (gap + notes_height) / height), transform=picture.transFigure)
    below = (notes_height + legend_height + gap) / height
    picture.set_layout_engine(
        "constrained", rect=(0, below, 1, 1 - below), w_pad=0.06, h_pad=0.06, hspace=0.04, wspace=0.03
    )
    picture.get_layout_engine().execute(picture)
    picture.set_layout_engine("none")  # placed once, so that every format has the same layout
    for axes in picture.axes:  # the solver's last bits depend on where its variables lie in memory
        axes.set_position(np.round(axes.get_position(original=True).bounds, 6))


def series_looks(panels: list[Panel], first: tuple[str, ...] = ()) -> dict[str, Look]:
    """One look per series, in the order of the legend. The family decides the hue, the method its shade, the feature map
    the marker and the ensemble the line; series that would look the same take the next marker, line or shade that is
    free. References come last, dotted and without markers, unless another panel has them as curves; the series `first`
    come before all others."""
    points = pd.concat([panel.points[~panel.points["role"].isin(["ratio", "value", "image"])] for panel in panels])
    points = points[(points["role"] != "reference") | (points["note"] == "")]
    references = set(points.loc[points["role"] == "reference", "series"])
    references -= set(points.loc[points["role"] == "measured", "series"])
    known: dict[str, Series] = {}
    for panel in panels:
        known |= panel.series
    names = sorted(set(points["series"]), key=lambda series: (series in references, natural_order(series)))
    order = {asked: i for i, asked in enumerate(first)}
    names.sort(key=lambda name: min(order.get(word, len(order)) for word in (name, known[name].name)))
    hues = _hues([known[name].family for name in names if name in known])
    grey = series_in_grey(panels)
    looks: dict[str, Look] = {}
    taken: set[tuple[str, str, str]] = set()
    for i, name in enumerate(names):
        if name in references:
            place = sorted(references, key=natural_order).index(name)
            colour = _colour(known[name], hues, 0) if name in known else INK
            looks[name] = Look(colour, "", REFERENCE_LINES[place % len(REFERENCE_LINES)], i)
            continue
        one = known[name]
        for shift in range(len(MARKERS) * len(LINES) * 3):
            line, next_marker = divmod(shift, len(MARKERS))
            line, next_shade = line % len(LINES), line // len(LINES)
            look = Look(
                GREY if name in grey else _colour(one, hues, next_shade),
                MARKERS[(one.marker + next_marker) % len(MARKERS)],
                LINES[(one.line + line) % len(LINES)],
                i,
            )
            if (look.colour, look.marker, str(look.line)) not in taken:
                break
        taken.add((look.colour, look.marker, str(look.line)))
        looks[name] = look
    return looks


def method_look(series: Series) -> Look:
    """The look of a method by itself. Others may share it."""
    return Look(
        _colour(series, _hues([series.family]), 0),
        MARKERS[series.marker % len(MARKERS)],
        LINES[series.line % len(LINES)],
        0,
    )


def _colour(series: Series, hues: dict[str, int], further: int) -> str:
    if series.family in NEUTRAL:
        return NEUTRAL[series.family]
    return shade(COLOURS[hues[series.family]], series.shade + further, PAPER, INK)


def _hues(families: list[str]) -> dict[str, int]:
    """By family, its place among the colours. Families that style.py does not know take what the others leave."""
    hues = {family: HUES[family] for family in families if family in HUES}
    free = [i for i in range(len(COLOURS)) if i not in hues.values()] or list(range(len(COLOURS)))
    for i, family in enumerate(sorted(set(families) - set(hues) - set(NEUTRAL))):
        hues[family] = free[i % len(free)]
    return hues


# The lines of these metrics are not closed forms of the points.
WORDS_OF_THEORY = {
    "output_mse_theory": "delta method",
    "speedup_by_flops": "ratio of FLOPs",
    "orthogonal_gain_bound": "the theorem's bound",
    "regularised_ratio_bound": "the theorem's bound",
}


def _legend(picture: plt.Figure, panels: list[Panel], looks: dict[str, Look], layout: Layout, width: float) -> Any:
    """One legend under the panels, in as many columns as fit the width (inches); None if no series is drawn."""
    if all(has_circles(panel) or panel.description["kind"] == "table" for panel in panels):
        return None
    with_theory = [panel.has_theory for panel in panels if len(panel.points) and panel.description["kind"] != "map"]
    # Points beside closed forms are not joined, nor are the points of a trade that has `points`.
    joined = any(
        len(p.points) and p.description["kind"] != "map" and not (p.has_theory or p.description.get("points"))
        for p in panels
    )
    handles = [_entry(panels, series, look, joined, int(width * 13)) for series, look in looks.items()]
    if not handles:
        return None
    if any(with_theory):
        lines = sorted({WORDS_OF_THEORY.get(p.description["theory"], "closed form") for p in panels if p.has_theory})
        words = ("lines: " if all(with_theory) else "lines without markers: ") + ", ".join(lines)
        handles.append(Line2D([], [], color=INK, linewidth=1.1, label=words))
    if any((panel.points["role"] == "ending").any() for panel in panels):
        words = "not done, see below" if layout.with_words else "not done"
        handles.append(Line2D([], [], color=INK, marker="x", linestyle="none", label=words))
    renderer = picture.canvas.get_renderer()
    for columns in range(min(len(handles), 4), 0, -1):
        legend = picture.legend(
            handles=handles,
            ncol=columns,
            **LEGEND,
        )
        if columns == 1 or legend.get_window_extent(renderer).width <= (width - 0.2) * picture.dpi:
            break
        legend.remove()
    return legend


def _entry(panels: list[Panel], series: str, look: Look, joined: bool, width: int) -> Line2D:
    """The legend's entry for a series. joined: some panel joins its points."""
    line = look.line if joined or any(panel.has_theory for panel in panels) or not look.marker else "none"
    name = next((panel.printed(series) for panel in panels if series in panel.series), series)
    words = wrapped_spec(name + _exponents(panels, series) + _crossings(panels, series), width)
    return Line2D(
        [],
        [],
        color=look.colour,
        marker=look.marker,
        linestyle=line,
        label="\n".join(words),
        markeredgecolor=PAPER,
        markeredgewidth=0.4,
    )


def _exponents(panels: list[Panel], series: str) -> str:
    """ "  ∝ n^1.02±0.03": the fitted exponents of a series, one per panel that has one, with the distance to the
    farther end of the interval."""
    found = []
    for panel in panels:
        points = panel.points[(panel.points["series"] == series) & panel.points["exponent"].notna()]
        if len(points):
            value, low, high = points[["exponent", "exponent_low", "exponent_high"]].iloc[0]
            half = f"±{max(high - value, value - low):.2f}" if np.isfinite(low) else ""
            found.append(f"{'/'.join(axis_names(panel.description))}^{value:.2f}{half}")
    return f"  ∝ {', '.join(found)}" if found else ""


def _crossings(panels: list[Panel], series: str) -> str:
    """ "  above 1 from n = 240±12, >2048": from where a series stays above 1, one per panel that asks for it."""
    found, axis = [], ""
    for panel in panels:
        points = panel.points[(panel.points["series"] == series) & panel.points["crossing"].notna()]
        if len(points) == 0:
            continue
        axis = "/".join(axis_names(panel.description))
        value, low, high = points[["crossing", "crossing_low", "crossing_high"]].iloc[0]
        if value == 0 or np.isinf(value):
            found.append(f"<{points['x'].min():g}" if value == 0 else f">{points['x'].max():g}")
        else:
            half = max(high - value, value - low)
            found.append(f"{value:.0f}" + (f"±{half:.0f}" if np.isfinite(half) else ""))
    return f"  above 1 from {axis} = {', '.join(found)}" if found else ""


def wrapped_spec(spec: str, width: int) -> list[str]:
    """Breaks the spec at commas into lines of at most `width` characters where possible."""
    lines = [""]
    for part in re.split(r"(?<=,)", spec):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("    ")
        lines[-1] += part
    return lines


def _wrapped(sentences: list[str], width: float) -> Iterator[str]:
    for sentence in sentences:
        yield from textwrap.wrap(sentence, int(width * 19.5), subsequent_indent="    ")
