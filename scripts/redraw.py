"""Writes the script that redraws a figure from its CSV file: redraw_template.py with the figure's looks filled in."""

from __future__ import annotations

import io
from pathlib import Path
from pprint import pformat
from typing import Any

import numpy as np
from aggregate import Panel
from compose import LEGEND, series_looks
from images import PALE_TO_DARK
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Picture
from notes import notes
from panels import LEADER, has_circles
from results import Figure
from style import Layout, Look

TEMPLATE = Path(__file__).with_name("redraw_template.py")
PLACE = "FIGURE = {}\n"


def images(panels: list[Panel]) -> dict[str, bytes]:
    """The arrays of panels that are images, by ending. The CSV of the points does not have them."""
    files = {}
    for number, panel in enumerate(panels, start=1):
        if panel.image is not None:
            text = io.StringIO()
            np.savetxt(text, panel.image, "%.17g", ",")
            files[f"panel-{number}.csv"] = text.getvalue().encode()
    return files


def redraw_script(picture: Picture, panels: list[Panel], figure: Figure, layout: Layout) -> str:
    """The text of the script."""
    picture.draw_without_rendering()  # gives the legend and the labels of colour bars their places
    looks = series_looks(panels)
    described = {
        "title": str(figure.description.get("title", figure.name)),
        "caption": str(figure.description.get("caption", "")),
        "notes": notes(panels),  # for the caption
        "settings": layout.settings,
        "size": [float(side) for side in picture.get_size_inches()],
        "looks": {series: _look(look) for series, look in looks.items()},
        "panels": [_panel(axes, panel) for axes, panel in zip(_without_bars(picture), panels)],
        "legend": _legend(picture, list(looks.values())),
    }
    return TEMPLATE.read_text().replace(PLACE, f"FIGURE = {pformat(described, width=118, sort_dicts=False)}\n")


def _without_bars(picture: Picture) -> list[Axes]:
    return [axes for axes in picture.axes if axes.get_label() != "<colorbar>"]


def _look(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker, "line": look.line, "row": look.row}


def _panel(axes: Axes, panel: Panel) -> dict[str, Any]:
    description = panel.description
    coloured = next((artist for artist in (*axes.images, *axes.collections) if getattr(artist, "colorbar", None)), None)
    return {
        "kind": description["kind"],
        "title": axes.get_title(loc="left"),
        "position": list(axes.get_position().bounds),
        "x": _axis(axes.xaxis, axes.get_xscale(), axes.get_xlim()),
        "y": _axis(axes.yaxis, axes.get_yscale(), axes.get_ylim()),
        "one": bool(description.get("ratio_to") or description.get("crossing")),
        "joined": not (panel.has_theory or description.get("points")),
        "circles": float(panel.role("measured")["value"].max()) if has_circles(panel) else None,
        "mark": float(description["mark"]) if description.get("mark_label") else None,
        "colours": _colours(coloured) if coloured else None,
        "bar": _bar(coloured.colorbar) if coloured else None,
        "texts": [_text(axes, text) for text in axes.texts],
        "leaders": [line.get_xydata().T.tolist() for line in axes.lines if line.get_label() == LEADER],
    }


def _axis(axis: Axis, scale: str, limits: tuple[float, float]) -> dict[str, Any]:
    ticks = [float(tick) for tick in axis.get_majorticklocs()]
    name = axis.get_major_formatter()
    return {
        "label": axis.get_label_text(),
        "scale": scale,
        "limits": [float(limit) for limit in limits],
        "ticks": ticks,
        "labels": [name(tick, position) for position, tick in enumerate(ticks)],
        "minor": [float(tick) for tick in axis.get_minorticklocs()],
    }


def _colours(artist: Any) -> tuple[str, float, float]:
    """The name of the colours, "" for those that are the project's own, and the values of the first and the last."""
    name = artist.cmap.name
    return "" if name == PALE_TO_DARK.name else name, float(artist.norm.vmin), float(artist.norm.vmax)


def _bar(bar: Any) -> dict[str, Any]:
    inside = [(float(t), label.get_text()) for t, label in zip(bar.get_ticks(), bar.ax.get_yticklabels())]
    inside = [(tick, label) for tick, label in inside if bar.vmin <= tick <= bar.vmax]
    return {
        "position": list(bar.ax.get_position().bounds),
        "extend": bar.extend,
        "ticks": [tick for tick, _ in inside],
        "labels": [label for _, label in inside],
        "label": bar.ax.get_ylabel(),
        "size": bar.ax.get_yticklabels()[0].get_fontsize(),
    }


def _text(axes: Axes, text: Any) -> tuple[float, float, str, dict[str, Any]]:
    """Words in the axes by the place of their centre, as a share of the axes."""
    extent = text.get_window_extent()
    x, y = axes.transAxes.inverted().transform(((extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2))
    how = {"fontsize": text.get_fontsize(), "rotation": text.get_rotation(), "color": text.get_color()}
    return float(x), float(y), text.get_text(), how


def _legend(picture: Picture, looks: list[Look]) -> dict[str, Any] | None:
    """The entries of series come first and in the order of their looks."""
    if not picture.legends:
        return None
    legend = picture.legends[0]
    entries = []
    for i, (handle, text) in enumerate(zip(legend.legendHandles, legend.get_texts())):
        entry = {"label": text.get_text(), "color": handle.get_color(), "marker": handle.get_marker()}
        line = handle.get_linestyle()
        if i < len(looks):
            entry |= {"markeredgecolor": handle.get_markeredgecolor(), "markeredgewidth": handle.get_markeredgewidth()}
            line = line if line == "None" else looks[i].line
        entries.append({**entry, "linestyle": line, "linewidth": handle.get_linewidth()})
    columns = len({round(text.get_window_extent().x0) for text in legend.get_texts()})
    anchor = picture.transFigure.inverted().transform(legend.get_bbox_to_anchor().p0)
    how = {**LEGEND, "ncol": columns}
    return {"entries": entries, "anchor": [float(place) for place in anchor], "how": how}
