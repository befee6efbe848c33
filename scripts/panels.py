"""Draws one panel: axes, series with intervals and closed forms, references, endings; or another kind of panel."""

from __future__ import annotations

import math
import re
import textwrap
from typing import Any

import numpy as np
import pandas as pd
from panel import Array, Panel, axis_names, is_log, points_of, series_of
from histograms import draw_histogram, histogram_values
from images import draw_image
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from results import natural_order
from style import FAINT, INK, PAPER, Look
from ticks import are_few_integers, byte_ticks, integer_ticks, limits, linear_ticks, log_ticks, superscript

BAND_FROM = 25  # points a series: more are drawn with a band instead of bars
BAND_VERTICES = 256
LEADER = "leader"  # the line from a circle to its name
MOST_WORDS = 64  # tiles of a map of values: more are colours alone


def draw_panel(
    axes: Axes,
    panel: Panel,
    looks: dict[str, Look],
    size: tuple[float, float],
    with_title: bool = True,
    with_y_label: bool = True,
) -> None:
    """Draws a panel of `size` (width, height) inches."""
    width, height = size
    if with_title:
        axes.set_title(balanced(str(panel.description.get("title", "")), int((width - 0.3) * 15)), loc="left")
    axes.set_xlabel(balanced(axis_label(panel, "x"), int((width - 0.6) * 16)))
    if with_y_label:
        axes.set_ylabel(balanced(axis_label(panel, "y"), int((height - 0.6) * 16)))
    if panel.missing:
        _say_no_data(axes, panel.missing, width)
    if panel.description["kind"] == "image":
        draw_image(axes, panel)
        return
    set_axis(axes, "x", panel, _x_values(panel))
    set_axis(axes, "y", panel, _y_values(panel))
    if panel.description["kind"] == "map":
        _draw_map(axes, panel, looks)
        return
    if panel.description["kind"] == "histogram":
        draw_histogram(axes, panel, looks)
        return
    if panel.description["kind"] == "trade":
        _draw_trade(axes, panel, looks)
        return
    if (panel.description.get("ratio_to") or panel.description.get("crossing")) and not panel.missing:
        axes.axhline(1, color=INK, linewidth=0.8, zorder=1.2)
    for series, points in series_of(panel.role("reference")):
        _draw_reference(axes, points, looks[series])
    for series, points in series_of(panel.role("measured")):
        _draw_series(axes, points.sort_values("x"), looks[series], panel.has_theory)
    _draw_endings(axes, panel, looks)


def _say_no_data(axes: Axes, words: str, width: float) -> None:
    axes.text(
        0.5,
        0.5,
        textwrap.fill(words, int((width - 0.9) * 14), break_long_words=True, break_on_hyphens=False),
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=7,
        color=FAINT,
        linespacing=1.4,
    )


def balanced(text: str, width: int) -> str:
    """Breaks the text into as few lines of at most `width` characters as possible, of about equal length."""
    lines = textwrap.wrap(text, width)
    if not lines:
        return ""
    for narrower in range(math.ceil(len(text) / len(lines)), width):
        if len(textwrap.wrap(text, narrower)) <= len(lines):
            return textwrap.fill(text, narrower)
    return "\n".join(lines)


def axis_label(panel: Panel, axis: str) -> str:
    """The axis label, with the unit of the measurement unless the description or the ticks (B) have it."""
    description = panel.description
    is_map = description["kind"] == "map"
    if description["kind"] == "image":
        default = "key (token)" if axis == "x" else "query (token)"
    elif description["kind"] == "histogram":
        default = description["y"] if axis == "x" else "share"
    elif axis == "y" and not is_map:
        default = description["y"] + (f" / that of {description['ratio_to']}" if description.get("ratio_to") else "")
    else:
        default = "/".join(axis_names(description, "x" if axis == "x" else "y_axis")) or "index"
    label = str(description.get(f"{axis}_label") or default)
    of_measurement = axis == ("x" if description["kind"] == "histogram" else "y") and not is_map
    if not of_measurement or panel.unit in ("", "1", "B") or re.search(rf"[(\[/] ?{re.escape(panel.unit)}\b", label):
        return label
    return f"{label} ({panel.unit})"


def _draw_series(axes: Axes, points: pd.DataFrame, look: Look, has_theory: bool) -> None:
    x, y, low, high = (points[name].to_numpy(float) for name in ("x", "y", "low", "high"))
    bottom, top = sorted(axes.get_ylim())  # a trade may be upside down
    many = len(x) >= BAND_FROM
    interval = np.isfinite(low) & np.isfinite(high)
    # An interval that leaves the axes, or reaches zero on a log axis, ends at the edge of the axes.
    low, high = np.clip(low, bottom, top), np.clip(high, bottom, top)
    if many:
        axes.fill_between(
            *_envelope(x[interval], low[interval], high[interval], axes.get_xscale() == "log"),
            color=look.colour,
            alpha=0.18,
            linewidth=0,
        )
    elif interval.any():
        spread = np.maximum(np.stack([y - low, high - y])[:, interval], 0)
        axes.errorbar(x[interval], y[interval], spread, fmt="none", ecolor=look.colour, elinewidth=1.1)
    axes.plot(
        x,
        y,
        color=look.colour,
        linestyle="none" if has_theory else look.line,
        marker=look.marker,
        markevery=_marked(x, look.row, axes.get_xscale() == "log") if many else None,
        markeredgecolor=PAPER,
        markeredgewidth=0.4,
        zorder=3,
    )
    theory = points["theory"].to_numpy(float)
    if np.isfinite(theory).any():
        axes.plot(
            x,
            theory,
            color=look.colour,
            linestyle=look.line,
            marker="_" if len(x) == 1 else "",
            markersize=14,
            linewidth=1.1,
            zorder=2,
        )


# Trades show one metric against another.


def has_circles(panel: Panel) -> bool:
    """Whether a panel shows a third metric as circles. Each circle then has its name beside it."""
    return panel.description["kind"] == "trade" and bool(panel.description.get("area"))


def _draw_trade(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    if panel.description.get("upside_down"):
        axes.invert_yaxis()
    for series, points in series_of(panel.role("reference")):
        levels, exact = points[points["x"].isna()], points[points["y"].isna()]
        for y in levels["y"]:
            axes.axhline(y, color=looks[series].colour, linestyle=looks[series].line, linewidth=1.2, zorder=1.5)
            _name_line(axes, panel.printed(series), (0.995, y), axes.get_yaxis_transform(), ha="right", va="bottom")
        for x in exact["x"]:
            axes.axvline(x, color=looks[series].colour, linestyle=looks[series].line, linewidth=1.2, zorder=1.5)
            _name_line(
                axes,
                f"{panel.printed(series)}: no error",
                (x, 0.01),
                axes.get_xaxis_transform(),
                ha="right",
                va="bottom",
                rotation=90,
            )
        curve = points[points["x"].notna() & points["y"].notna()].sort_values("x")
        axes.plot(
            curve["x"], curve["y"], color=looks[series].colour, linestyle=looks[series].line, marker=".", zorder=2
        )
    measured = panel.role("measured")
    if has_circles(panel):
        _draw_circles(axes, panel, looks)
        return
    for series, points in series_of(measured):
        if panel.description.get("points"):  # separate points, which are not joined
            look = looks[series]
            axes.plot(
                points["x"], points["y"], look.marker, color=look.colour, markeredgecolor=PAPER, markeredgewidth=0.4
            )
        else:
            _draw_series(axes, points.sort_values("x"), looks[series], has_theory=False)


def _name_line(axes: Axes, words: str, place: tuple[float, float], transform: Any, **how: Any) -> None:
    axes.text(*place, words, transform=transform, fontsize=6, color=FAINT, clip_on=True, zorder=1.6, **how)


def _draw_circles(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    """Draws circles whose area is the value, each with its name where it overlaps other names and circles least."""
    points = panel.role("measured")
    points = points[np.isfinite(points["value"].astype(float))].sort_values("value", ascending=False)
    if len(points) == 0:
        return
    largest = float(points["value"].max())
    areas = np.maximum(700 * points["value"].to_numpy(float) / max(largest, 1e-300), 9.0)
    colours = [looks[series].colour for series in points["series"]]
    x, y = points["x"].to_numpy(float), points["y"].to_numpy(float)
    low, high = points["low"].to_numpy(float), points["high"].to_numpy(float)
    there = np.isfinite(low) & np.isfinite(high)
    if there.any():
        spread = np.maximum(np.stack([y - low, high - y])[:, there], 0)
        axes.errorbar(x[there], y[there], spread, fmt="none", ecolor=FAINT, elinewidth=0.6, zorder=1.8)
    axes.scatter(x, y, areas, c=colours, alpha=0.55, linewidths=0.6, edgecolors=INK, zorder=3)
    centres = axes.transData.transform(np.stack([x, y], axis=1))
    radii = np.sqrt(areas / np.pi) * axes.figure.dpi / 72
    taken: list[tuple[float, float, float, float]] = [
        (cx - r, cy - r, cx + r, cy + r) for (cx, cy), r in zip(centres, radii)
    ]
    frame = axes.get_window_extent()
    taken += _boxes_of_lines(axes, panel, frame)
    for series, (cx, cy), r in zip(map(panel.printed, points["series"]), centres, radii):
        unit = axes.figure.dpi / 72
        width, height = 3.3 * len(series) * unit, 6.5 * unit
        best = min(
            (_crowding(box, taken, frame), rank, box)
            for rank, box in enumerate(_boxes_around(cx, cy, r + unit, width, height))
        )
        taken.append(best[2])
        place = axes.transData.inverted().transform(((best[2][0] + best[2][2]) / 2, (best[2][1] + best[2][3]) / 2))
        axes.text(*place, series, fontsize=5.8, ha="center", va="center", color=INK, zorder=4)
        if best[1] >= 8:  # not beside its circle
            near = (min(max(cx, best[2][0]), best[2][2]), min(max(cy, best[2][1]), best[2][3]))
            line = axes.transData.inverted().transform([(cx, cy), near])
            axes.plot(*line.T, color=FAINT, linewidth=0.5, zorder=2.9, label=LEADER)


def _boxes_of_lines(axes: Axes, panel: Panel, frame: Any) -> list[tuple[float, float, float, float]]:
    """The boxes of the lines that are drawn across the panel, and of the names on the level ones."""
    unit = axes.figure.dpi / 72
    boxes = []
    for series, points in series_of(panel.role("reference")):
        for level in points["y"][points["x"].isna()]:
            y = axes.transData.transform((1.0, level))[1]
            boxes.append((frame.x0, y - unit, frame.x1, y + unit))
            boxes.append((frame.x1 - 3.4 * len(panel.printed(series)) * unit, y, frame.x1, y + 8 * unit))
        for place in points["x"][points["y"].isna()]:
            x = axes.transData.transform((place, 1.0))[0]
            boxes.append((x - unit, frame.y0, x + unit, frame.y1))
    return boxes


def _boxes_around(
    cx: float, cy: float, r: float, width: float, height: float
) -> list[tuple[float, float, float, float]]:
    """Boxes for a name on eight sides of a circle, at four distances."""
    boxes = []
    for away in (1.0, 1.8, 3.0, 4.5):
        for side, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)):
            x = cx + side * (away * r + width / 2)
            y = cy + up * (away * r + height / 2)
            boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    return boxes


def _crowding(
    box: tuple[float, float, float, float], taken: list[tuple[float, float, float, float]], frame: Any
) -> float:
    """The area of a box that others cover, plus ten times the area outside the axes."""
    area = 0.0
    for other in taken:
        wide, high = min(box[2], other[2]) - max(box[0], other[0]), min(box[3], other[3]) - max(box[1], other[1])
        area += max(wide, 0) * max(high, 0)
    wide, high = min(box[2], frame.x1) - max(box[0], frame.x0), min(box[3], frame.y1) - max(box[1], frame.y0)
    inside: float = max(wide, 0) * max(high, 0)
    return area + 10 * ((box[2] - box[0]) * (box[3] - box[1]) - inside)


# Maps have a tile at every point. A tile reaches half way to its neighbours.


def _draw_map(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    axes.grid(False)
    tiles = points_of(panel)
    if len(tiles) == 0:
        return
    draw = draw_winners if panel.description.get("winner") else draw_ratios
    (draw if (tiles["role"] != "value").all() else draw_values)(axes, panel, tiles, looks)


def draw_ratios(axes: Axes, panel: Panel, tiles: pd.DataFrame, _looks: dict[str, Look]) -> None:
    """Shows log10 of the ratio as a colour, pale at 0. Hatching below 0 and a line at 0 show the sign in grey."""
    x, y, values = _grid(tiles)
    x_edges, y_edges = _edges(x, axes.get_xscale()), _edges(y, axes.get_yscale())
    finite = np.abs(values[np.isfinite(values)])
    # If one of the two goes to zero, the ratio leaves every scale: the colours cover the inner nine tenths.
    bound = max(float(np.ceil(np.quantile(finite, 0.9))) if len(finite) else 1.0, 1.0)
    mesh = axes.pcolormesh(
        x_edges,
        y_edges,
        np.clip(values, -bound, bound),
        cmap="PuOr",
        norm=Normalize(-bound, bound),
        linewidth=0,
        rasterized=True,
        zorder=1,
    )
    if min(values.shape) > 1 and np.isfinite(values).any():
        # Contours run between the centres of tiles, and on to the edges of the outermost tiles.
        smooth = np.pad(np.clip(np.where(np.isnan(values), 0, values), -bound, bound), 1, mode="edge")
        places = [np.concatenate([e[:1], p, e[-1:]]) for p, e in ((x, x_edges), (y, y_edges))]
        hatched = axes.contourf(*places, smooth, levels=[-2 * bound, 0], colors="none", hatches=["///"], zorder=2)
        for collection in hatched.collections:
            collection.set_edgecolor(FAINT)
            collection.set_linewidth(0)
        if smooth.min() < 0 < smooth.max():
            axes.contour(*places, smooth, levels=[0], colors=[INK], linewidths=1.2, zorder=3)
    bar = axes.figure.colorbar(mesh, ax=axes, extend="both", fraction=0.06, pad=0.03, use_gridspec=False)
    bar.outline.set_linewidth(0.5)
    ticks = [tick for tick in range(-int(bound), int(bound) + 1) if tick % max(1, int(bound) // 3) == 0]
    bar.set_ticks(ticks, labels=[f"10{superscript(k)}" if k else "1" for k in ticks])
    bar.ax.minorticks_off()
    label = panel.description.get("value_label") or f"{panel.description['y']}: " + " / ".join(
        panel.description["ratio"]
    )
    bar.set_label(textwrap.fill(str(label), 40))


def draw_values(axes: Axes, panel: Panel, tiles: pd.DataFrame, _looks: dict[str, Look]) -> None:
    """Shows the value as a colour from pale to dark, and as a number if there are few tiles."""
    x, y, values = _grid(tiles)
    mesh = axes.pcolormesh(
        _edges(x, axes.get_xscale()),
        _edges(y, axes.get_yscale()),
        values,
        cmap="Blues",
        linewidth=0,
        rasterized=True,
        zorder=1,
    )
    bar = axes.figure.colorbar(mesh, ax=axes, fraction=0.06, pad=0.03, use_gridspec=False)
    bar.outline.set_linewidth(0.5)
    bar.set_label(textwrap.fill(str(panel.description.get("value_label") or panel.description["y"]), 40))
    if len(tiles) > MOST_WORDS:
        return
    for axis, places in ((axes.xaxis, x), (axes.yaxis, y)):
        axis.set_ticks(places, labels=[f"{place:g}" for place in places])
        axis.set_tick_params(which="both", length=0)
        axis.set_minor_locator(FixedLocator([]))
    middle = (np.nanmin(values) + np.nanmax(values)) / 2
    for _, tile in tiles.iterrows():
        colour = PAPER if tile["value"] > middle else INK
        axes.text(tile["x"], tile["y"], f"{tile['value']:.3g}", ha="center", va="center", fontsize=7, color=colour)


def draw_winners(axes: Axes, _panel: Panel, tiles: pd.DataFrame, looks: dict[str, Look]) -> None:
    """Draws the colour and the marker of the least series at every point; hollow if the next may be as low."""
    x, y, _values = _grid(tiles)
    x_edges, y_edges = _edges(x, axes.get_xscale()), _edges(y, axes.get_yscale())
    size = min(7.0, 0.6 * 72 * min(2.2 / len(x), 1.7 / len(y)))
    for _, tile in tiles.iterrows():
        look = looks[tile["series"]]
        i, j = int(np.searchsorted(x, tile["x"])), int(np.searchsorted(y, tile["y"]))
        axes.fill_between(
            x_edges[i : i + 2], y_edges[j], y_edges[j + 1], color=look.colour, alpha=0.25, linewidth=0, zorder=1
        )
        undecided = bool(tile["low"] <= 0)
        axes.plot(
            tile["x"],
            tile["y"],
            marker=look.marker,
            markersize=size,
            color=look.colour,
            markerfacecolor=PAPER if undecided else look.colour,
            markeredgewidth=0.8,
            zorder=3,
        )


def _grid(tiles: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Places along x and y, and the values [y, x], NaN where there is no tile."""
    table = tiles.pivot_table(index="y", columns="x", values="value", aggfunc="first", dropna=False)
    return table.columns.to_numpy(float), table.index.to_numpy(float), table.to_numpy(float)


def _edges(places: Array, scale: str) -> Array:
    """Edges of tiles: half way between neighbours, and equally far beyond the outermost."""
    if len(places) == 1:
        return np.array([places[0] / 1.5, places[0] * 1.5]) if scale == "log" else places[0] + np.array([-0.5, 0.5])
    spaced = np.log(places) if scale == "log" else places
    between = (spaced[1:] + spaced[:-1]) / 2
    edges: Array = np.concatenate([[2 * spaced[0] - between[0]], between, [2 * spaced[-1] - between[-1]]])
    if scale == "log":
        edges = np.exp(edges)
    return edges


def _marked(x: Array, row: int, logarithmic: bool) -> list[int]:
    """About eight indices of sorted x, spread over the axis, and shifted by series so that no mark hides another."""
    places = _spread(x[0], x[-1], 65, logarithmic)[row * 3 % 8 :: 8]
    return [int(i) for i in np.unique(np.searchsorted(x, places).clip(0, len(x) - 1))]


def _spread(low: float, high: float, count: int, logarithmic: bool) -> Array:
    return np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)


def _envelope(x: Array, low: Array, high: Array, logarithmic: bool) -> tuple[Array, Array, Array]:
    """At most BAND_VERTICES vertices of a band around the whole one: least low and greatest high of each part."""
    if len(x) <= BAND_VERTICES:
        return x, low, high
    starts = np.unique(np.searchsorted(x, _spread(x[0], x[-1], BAND_VERTICES, logarithmic)).clip(0, len(x) - 1))
    return x[starts], np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)


def _draw_reference(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    """Draws a horizontal line if the method has no x, and otherwise a dotted curve."""
    level = points[points["x"].isna()]
    for _, point in level.iterrows():
        axes.axhline(point["y"], color=look.colour, linestyle=look.line, linewidth=1.2, zorder=1.5)
        if np.isfinite(point["low"]) and np.isfinite(point["high"]):
            axes.axhspan(point["low"], point["high"], color=look.colour, alpha=0.08, linewidth=0, zorder=1)
    curve = points[points["x"].notna()].sort_values("x")
    if len(curve):
        axes.plot(
            curve["x"],
            curve["y"],
            color=look.colour,
            linestyle=look.line,
            linewidth=1.2,
            zorder=1.5,
            marker="." if len(curve) == 1 else "",
        )


def _draw_endings(axes: Axes, panel: Panel, looks: dict[str, Look]) -> None:
    """Draws crosses at the bottom of the axes, one row per series, so that crosses at the same x are all visible."""
    endings = panel.points[(panel.points["role"] == "ending") & np.isfinite(panel.points["x"].astype(float))]
    for line, series in enumerate(sorted(set(endings["series"]), key=natural_order)):
        x = endings.loc[endings["series"] == series, "x"].to_numpy(float)
        axes.plot(
            x,
            np.full(len(x), 0.03 + 0.055 * line),
            transform=axes.get_xaxis_transform(),
            color=looks[series].colour,
            marker="x",
            markersize=5,
            markeredgewidth=1.4,
            linestyle="none",
            clip_on=False,
            zorder=4,
        )


def _x_values(panel: Panel) -> Array:
    endings = panel.points[panel.points["role"] == "ending"]
    if panel.description["kind"] == "map":
        return _map_limits(panel, "x")
    if panel.description["kind"] == "histogram":
        return histogram_values(panel)
    drawn = pd.concat([panel.role("measured"), panel.role("reference"), endings])["x"].to_numpy(float)
    shown = np.isfinite(drawn)
    if is_log(panel.description.get("x_scale")):
        shown &= drawn > 0
    places: Array = drawn[shown]
    return places


def _map_limits(panel: Panel, axis: str) -> Array:
    places = np.unique(points_of(panel)[axis].to_numpy(float))
    scale = "log" if is_log(panel.description.get(f"{axis}_scale")) else "linear"
    ends: Array = _edges(places, scale)[[0, -1]] if len(places) else places
    return ends


def _y_values(panel: Panel) -> Array:
    """Values that the y axis must include: all points, and closed forms and intervals unless they are far away."""
    if panel.description["kind"] == "map":
        return _map_limits(panel, "y")
    drawn = pd.concat([panel.role("measured"), panel.role("reference")])
    y = drawn["y"].dropna().to_numpy(float)
    if len(y) == 0:  # closed forms of what could not be measured
        y = drawn["theory"].dropna().to_numpy(float)
    if panel.description.get("ratio_to") or panel.description.get("crossing"):
        y = np.append(y, 1.0)
    gaps = drawn["y"].isna()
    parts = [y]
    # An interval that nearly reaches zero would flatten the rest. If nothing could be measured, the closed form is the
    # point, as far as the axes can include it.
    for chosen, room in ((drawn[["low", "high", "theory"]][~gaps], 10), (drawn[["theory"]][gaps], 1e4)):
        edges = np.minimum(chosen.to_numpy(float).ravel(), panel.description.get("y_most") or np.inf)
        edges = edges[np.isfinite(edges)]
        if len(y) and is_log(panel.description.get("y_scale")):
            edges = edges[(edges >= y.min() / room) & (edges <= y.max() * room)]
        parts.append(edges)
    return np.concatenate(parts)


def set_axis(axes: Axes, which: str, panel: Panel, values: Array) -> None:
    """Sets scale, limits and ticks of axis "x" or "y" for the values that it must include."""
    scale = str(panel.description.get(f"{which}_scale") or "linear")
    base = {"log2": 2, "log10": 10}.get(scale, 0)
    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log" if base else "linear", **({"base": base} if base else {}))
    if len(values) == 0:
        axis.set_major_locator(FixedLocator([]))
        axis.set_minor_locator(FixedLocator([]))
        return
    crosses = which == "y" and (panel.points["role"] == "ending").any()
    if panel.description["kind"] == "map":
        low, high = float(values.min()), float(values.max())
    else:
        low, high = limits(values, bool(base), below=0.14 if crosses else 0.05)
    getattr(axes, f"set_{which}lim")(low, high)
    room = _tick_room(axes, values) if which == "x" else 7
    if which == "y" and panel.unit == "B" and panel.description["kind"] != "map":
        ticks, minor, labels = byte_ticks(low, high, bool(base), room)
    else:
        ticks, minor, labels = log_ticks(low, high, base, room) if base else linear_ticks(low, high, room)
        if which == "x" and not base and are_few_integers(values, room):
            ticks, minor, labels = integer_ticks(values)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(FixedLocator(minor))
    axis.set_major_formatter(FuncFormatter(lambda value, position: labels[position] if position is not None else ""))
    axis.set_minor_formatter(NullFormatter())


def _tick_room(axes: Axes, values: Array) -> int:
    """Number of labels that fit beside each other under the axes, if each is as long as that of the greatest value."""
    points = axes.bbox.width / axes.figure.dpi * 72
    digits = min(len(f"{values.max():.15g}"), 5)
    return int(points / (5 * digits + 9))
