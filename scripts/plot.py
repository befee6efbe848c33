#!/usr/bin/python3
"""Draw the figures that a results file describes: SVG and PDF for print, and the drawn numbers as CSV.

Only the results files decide what is drawn: this program names no recipe, method or metric. Equal results give files
that are equal byte for byte.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from aggregate import Panel, aggregate, axis_names
from matplotlib.lines import Line2D
from notes import notes
from panels import axis_label, draw_panel, has_circles
from results import Figure, Misuse, Results, natural_order, read
from style import COLOURS, FAINT, INK, LINES, MARKERS, PAPER, REFERENCE_LINES, STYLE, Look

FORMATS = ("svg", "pdf", "png")
FULL_WIDTH = 7.2  # inches: the text width of a paper with wide margins
METADATA: dict[str, dict[str, Any]] = {  # without dates and versions, for equal bytes
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawn:
    """A figure as files: contents by ending ("svg", "pdf", "png", "csv"), and the panels behind them."""

    figure: Figure
    files: dict[str, bytes]
    panels: list[Panel]

    @property
    def stem(self) -> str:
        return file_stem(self.figure)


def file_stem(figure: Figure) -> str:
    """recipe.name with only characters that are safe in any file name; names have no dots, so none meets another."""
    return ".".join(re.sub(r"[^A-Za-z0-9_-]+", "-", part) for part in (figure.recipe, figure.name))


def draw(results: Results, figure: Figure, formats: Sequence[str] = ("svg", "pdf")) -> Drawn:
    """Aggregates and draws one figure in memory."""
    own = figure.description.get("cells")
    if own is not None:
        results = replace(results, cells=results.cells[results.cells.index.isin(own)])
    panels = [aggregate(results, description) for description in figure.description["panels"]]
    files = {"csv": numbers(panels).encode()}
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"{figure.recipe}/{figure.name}"}):
        picture = compose(panels)
        for ending in formats:
            buffer = io.BytesIO()
            metadata = {**METADATA[ending], "Title": str(figure.description.get("title", figure.name))}
            picture.savefig(buffer, format=ending, dpi=160, metadata=metadata)
            files[ending] = buffer.getvalue()
        plt.close(picture)
    return Drawn(figure, files, panels)


def numbers(panels: list[Panel]) -> str:
    """CSV of everything that is drawn, one line a point; points that could not be drawn have a note."""
    tables = []
    for position, panel in enumerate(panels, start=1):
        table = panel.points.copy()
        place = {name: i for i, name in enumerate(sorted(set(table["series"]), key=natural_order))}
        table["order"] = table["series"].map(place)
        table = table.sort_values(["role", "order", "x"], kind="stable").drop(columns="order")
        table.insert(0, "panel_title", str(panel.description.get("title", "")))
        table.insert(0, "panel", position)
        table["unit"] = panel.unit
        kind = panel.description["kind"]
        if kind not in ("map", "trade"):
            table = table.drop(columns="value")
        if kind not in ("trade", "histogram"):
            table = table.drop(columns=["x_low", "x_high"])
        tables.append(table)
    return pd.concat(tables).to_csv(index=False, lineterminator="\n") if tables else ""


# The whole figure: panels above, then one legend, then notes.


def compose(panels: list[Panel]) -> plt.Figure:
    """A figure whose height follows from its rows of panels, its legend and its notes; nothing overlaps."""
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = -(-len(panels) // columns)
    circles = any(has_circles(panel) for panel in panels)  # with names beside them
    width = 5.0 if columns == 1 and not circles else FULL_WIDTH
    panel_height = 3.0 if columns == 1 else 2.7 if columns == 2 else 2.45
    if all(panel.description["kind"] == "image" for panel in panels):  # square ones, with a bar beside each
        panel_height = 0.76 * width / columns
    if circles:
        columns = min(columns, 2)
        rows = -(-len(panels) // columns)
        panel_height = 4.2
    picture = plt.figure(figsize=(width, rows * panel_height))
    looks = series_looks(panels)
    grid = picture.add_gridspec(rows, columns)
    for i, panel in enumerate(panels):
        axes = picture.add_subplot(grid[i // columns, i % columns])
        same_label = i % columns > 0 and axis_label(panel, "y") == axis_label(panels[i - 1], "y")
        draw_panel(axes, panel, looks, (width / columns, panel_height), with_y_label=not same_label)
    legend = _legend(picture, panels, looks, width)
    words = picture.text(
        0, 0, "\n".join(_wrapped(notes(panels), width)), fontsize=6.8, color=FAINT, linespacing=1.35, va="bottom"
    )
    _stack(picture, legend, words, rows * panel_height)
    return picture


def _stack(picture: plt.Figure, legend: Any, words: Any, panels_height: float) -> None:
    """Makes the figure as high as its parts and puts them under each other. Heights in inches."""
    renderer = picture.canvas.get_renderer()
    gap, dpi = 0.08, picture.dpi
    legend_height = legend.get_window_extent(renderer).height / dpi + gap if legend else 0.0
    notes_height = words.get_window_extent(renderer).height / dpi + gap if words.get_text() else 0.0
    height = panels_height + legend_height + notes_height + gap
    width = picture.get_figwidth()
    picture.set_size_inches(width, height)
    words.set_position((gap / width, gap / height))
    if legend:
        legend.set_bbox_to_anchor((0.5, (gap + notes_height) / height), transform=picture.transFigure)
    below = (notes_height + legend_height + gap) / height
    picture.set_layout_engine(
        "constrained", rect=(0, below, 1, 1 - below), w_pad=0.06, h_pad=0.06, hspace=0.04, wspace=0.03
    )
    picture.canvas.draw()
    picture.set_layout_engine("none")  # placed once, so that every format has the same layout


def series_looks(panels: list[Panel]) -> dict[str, Look]:
    """One look a series, in the order of the legend: references come last, dotted in ink and without markers."""
    points = pd.concat([panel.points[~panel.points["role"].isin(["ratio", "value", "image"])] for panel in panels])
    points = points[(points["role"] != "reference") | (points["note"] == "")]
    references = set(points.loc[points["role"] == "reference", "series"])
    names = sorted(set(points["series"]), key=lambda series: (series in references, natural_order(series)))
    looks = {}
    for i, series in enumerate(names):
        j = i - (len(names) - len(references))
        looks[series] = (
            Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)], i)
            if j < 0
            else Look(INK, "", REFERENCE_LINES[j % len(REFERENCE_LINES)], i)
        )
    return looks


def _legend(picture: plt.Figure, panels: list[Panel], looks: dict[str, Look], width: float) -> Any:
    """One legend under the panels, in as many columns as fit into the width (inches); None without series."""
    if all(has_circles(panel) for panel in panels):
        return None
    with_theory = [panel.has_theory for panel in panels if len(panel.points) and panel.description["kind"] != "map"]
    # Points on lines of closed forms, and points of their own in a trade, are not joined.
    joined = any(
        len(p.points) and p.description["kind"] != "map" and not (p.has_theory or p.description.get("points"))
        for p in panels
    )
    handles = [_entry(panels, series, look, joined, int(width * 13)) for series, look in looks.items()]
    if not handles:
        return None
    if any(with_theory):
        words = "lines: closed form" if all(with_theory) else "lines without markers: closed form"
        handles.append(Line2D([], [], color=INK, linewidth=1.1, label=words))
    if any((panel.points["role"] == "ending").any() for panel in panels):
        handles.append(Line2D([], [], color=INK, marker="x", linestyle="none", label="not done, see below"))
    renderer = picture.canvas.get_renderer()
    for columns in range(min(len(handles), 4), 0, -1):
        legend = picture.legend(
            handles=handles,
            ncol=columns,
            loc="lower center",
            frameon=False,
            handlelength=3.2,
            columnspacing=1.6,
            labelspacing=0.45,
            borderaxespad=0,
            borderpad=0.2,
        )
        if columns == 1 or legend.get_window_extent(renderer).width <= (width - 0.2) * picture.dpi:
            break
        legend.remove()
    return legend


def _entry(panels: list[Panel], series: str, look: Look, joined: bool, width: int) -> Line2D:
    """The legend's sample and words for a series; joined: its points are joined in some panel."""
    line = look.line if joined or not look.marker else "none"
    words = wrapped_spec(series + _exponents(panels, series) + _crossings(panels, series), width)
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
    """ "  ∝ n^1.02±0.03": the fitted exponents of a series, one a panel that has one, with the farther end of the
    interval."""
    found = []
    for panel in panels:
        points = panel.points[(panel.points["series"] == series) & panel.points["exponent"].notna()]
        if len(points):
            value, low, high = points[["exponent", "exponent_low", "exponent_high"]].iloc[0]
            half = f"±{max(high - value, value - low):.2f}" if np.isfinite(low) else ""
            found.append(f"{'/'.join(axis_names(panel.description))}^{value:.2f}{half}")
    return f"  ∝ {', '.join(found)}" if found else ""


def _crossings(panels: list[Panel], series: str) -> str:
    """ "  above 1 from n = 240±12, >2048": where a series rises above 1 for good, one a panel that was asked."""
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
    """Lines of at most `width` characters where commas allow it."""
    lines = [""]
    for part in re.split(r"(?<=,)", spec):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("    ")
        lines[-1] += part
    return lines


def _wrapped(sentences: list[str], width: float) -> Iterator[str]:
    for sentence in sentences:
        yield from textwrap.wrap(sentence, int(width * 19.5), subsequent_indent="    ")


# Files and the command line.


def chosen_figures(results: Results, names: Sequence[str]) -> list[Figure]:
    """The figures called NAME, RECIPE or RECIPE/NAME; all without names. Throws Misuse for a name that none has."""
    if not names:
        return results.figures
    known = {word: None for f in results.figures for word in (f.name, f"{f.recipe}/{f.name}", f.recipe)}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3) or list(known)
            raise Misuse(
                f"figure '{name}': not in the results; expected one of: {', '.join(near) or '(there are none)'}"
            )
    return [f for f in results.figures if {f.name, f.recipe, f"{f.recipe}/{f.name}"} & set(names)]


def write_files(directory: Path, files: dict[str, bytes]) -> None:
    """Writes each file whole or not at all (temporary name, then rename). Throws Misuse if that cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            _write_whole(directory / name, content)
    except OSError as error:
        raise Misuse(
            f"{directory}: {error.strerror or error}; expected a directory that can be written; "
            "give another with -o DIR"
        ) from None


def _write_whole(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes files that only their owner reads
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def formats_of(text: str) -> list[str]:
    chosen = [word for word in text.split(",") if word]
    unknown = [word for word in chosen if word not in FORMATS]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"'{text}': expected a comma-separated list of {', '.join(FORMATS)}")
    return chosen


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULTS", help="results files of attnbench, read as one"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("figures"), metavar="DIR", help="where to (default: figures)"
    )
    parser.add_argument(
        "--format", type=formats_of, default=["svg", "pdf"], metavar="LIST", help="svg,pdf,png (default: svg,pdf)"
    )
    parser.add_argument(
        "--figure", nargs="+", default=[], metavar="NAME", help="only these: NAME, RECIPE or RECIPE/NAME"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        results = read(options.results)
        figures = chosen_figures(results, options.figure)
        if not figures:
            print("plot.py: no figures in these results; 'attnbench reproduce' makes them", file=sys.stderr)
        for figure in figures:
            drawn = draw(results, figure, options.format)
            write_files(options.output, {f"{drawn.stem}.{ending}": content for ending, content in drawn.files.items()})
            for ending in drawn.files:
                print(options.output / f"{drawn.stem}.{ending}")
    except Misuse as misuse:
        print(f"plot.py: {misuse}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
