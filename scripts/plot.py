#!/usr/bin/python3
"""Draw the figures that a results file describes: SVG and PDF for print, and the drawn numbers as CSV.

attnbench plot runs this program after it has computed the points. The file alone decides what is drawn: this program
does not know any recipe, method or metric. Equal results give files that are equal byte for byte.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import io
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from changes import Changes, add_changes, changed, changed_layout, changes_in
from compose import compose
import figure_file
from images import with_palettes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from notes import absent
from number_table import number_table
from panel import Panel, panels_of
from pdf_fonts import share_subsets
from results import Figure, Misuse, Results, natural_order, read
from set_by_latex import words_for_latex
from style import DARK, IN_PAPER, REPORT, Layout
from tables import csv_text

share_subsets()
CANVASES = {"svg": FigureCanvasSVG, "pdf": FigureCanvasPdf, "png": FigureCanvasAgg}
TABLES = {"latex": "tex", "markdown": "md"}
METADATA: dict[str, dict[str, Any]] = {  # without dates and versions, for equal bytes
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@dataclass(frozen=True)
class Drawn:
    """A figure as files: contents by ending ("csv", "svg", ...), and the panels behind them."""

    figure: Figure
    files: dict[str, bytes]
    panels: list[Panel]

    @property
    def stem(self) -> str:
        return file_stem(self.figure)

    def named_files(self) -> dict[str, bytes]:
        return {f"{self.stem}.{ending}": content for ending, content in self.files.items()}


def file_stem(figure: Figure) -> str:
    """recipe.name with only characters that are safe in any file name; names have no dots, so none meets another."""
    return ".".join(re.sub(r"[^A-Za-z0-9_-]+", "-", part) for part in (figure.recipe, figure.name))


def draw(
    figure: Figure, panels: list[Panel], formats: Sequence[str] = ("svg", "pdf"), layout: Layout = REPORT
) -> Drawn:
    """Draws one figure in memory. formats: endings of pictures (CANVASES), of tables (TABLES), or "json", a file from
    which it can be drawn again."""
    files = {"csv": numbers(panels).encode()}
    title = str(figure.description.get("title", figure.name))
    settings = {**layout.settings, "svg.hashsalt": f"{figure.recipe}/{figure.name}"}
    with matplotlib.rc_context(settings), words_for_latex():
        picture = compose(panels, layout)
        for ending in formats:
            if ending == "json":
                files[ending] = figure_file.as_json(figure, panels)
            elif ending in TABLES.values():
                files[ending] = number_table(panels, ending).encode()
            else:
                files[ending] = _saved(picture, ending, title)
        plt.close(picture)
    return Drawn(figure, files, panels)


def _saved(picture: plt.Figure, ending: str, title: str) -> bytes:
    """The picture in one format. It calls the canvas itself, because savefig would draw everything twice."""
    picture.set_dpi(160)  # of png, and of the rasterised parts of svg and pdf
    buffer = io.BytesIO()
    save = getattr(CANVASES[ending](picture), f"print_{ending}")
    save(buffer, metadata={**METADATA[ending], "Title": title})
    return with_dark_colours(with_palettes(buffer.getvalue())) if ending == "svg" else buffer.getvalue()


def with_dark_colours(svg: bytes) -> bytes:
    """The SVG with a style sheet that shows it with light ink on dark paper where the reader prefers that, as a page or a
    code host shows it. Programs for print ignore it."""
    rules = "".join(
        f'[style*="{name}: {light}"]{{{name}:{dark}!important}}'
        for light, dark in DARK.items()
        for name in ("fill", "stroke")
    )
    sheet = f"<style>@media screen and (prefers-color-scheme: dark){{{rules}}}</style>\n"
    head = svg.index(b"<g id=")
    return svg[:head] + sheet.encode() + svg[head:]


Whole = tuple[Figure, list[Panel]]


def draw_all(figures: Sequence[Whole], formats: Sequence[str] = ("svg", "pdf"), layout: Layout = REPORT) -> list[Drawn]:
    """Draws several figures in as many processes as this one may use cores. Returns them in the order of `figures`."""
    workers = min(len(os.sched_getaffinity(0)), len(figures))
    if workers < 2:
        return [draw(*figure, formats, layout) for figure in figures]
    fork = multiprocessing.get_context("fork")  # the workers then share the figures without a copy
    with ProcessPoolExecutor(workers, fork, _share, (figures, formats, layout)) as pool:
        return list(pool.map(_draw_shared, range(len(figures))))


_shared: tuple[Sequence[Whole], Sequence[str], Layout]  # set in workers only


def _share(figures: Sequence[Whole], formats: Sequence[str], layout: Layout) -> None:
    global _shared
    _shared = (figures, formats, layout)
    # A figure is many small objects in cycles. Collecting them once, after the figure, takes a fraction of the time.
    gc.disable()
    gc.freeze()


def _draw_shared(i: int) -> Drawn:
    figures, formats, layout = _shared
    drawn = draw(*figures[i], formats, layout)
    gc.collect()
    return drawn


def numbers(panels: list[Panel]) -> str:
    """CSV with one line per point. Points that could not be drawn are in it too, with a note."""
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
    if not tables:
        return ""
    whole = pd.concat(tables)
    for name in whole.columns[whole.dtypes == object]:
        whole[name] = [csv_text(cell) if isinstance(cell, str) else cell for cell in whole[name]]
    return whole.to_csv(index=False, lineterminator="\n")


# Files and the command line.


def chosen_figures(results: Results, names: Sequence[str]) -> list[Figure]:
    """The figures called NAME, RECIPE or RECIPE/NAME; all figures if there are no names. Throws Misuse for an unknown
    name."""
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
    """Writes each file completely or not at all (temporary name, then rename). Throws Misuse if it cannot write."""
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
    unknown = [word for word in chosen if word not in CANVASES]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"'{text}': expected a comma-separated list of {', '.join(CANVASES)}")
    return chosen


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="results file of attnbench with drawn points, or a figure's JSON file")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("figures"), metavar="DIR", help="where to (default: figures)"
    )
    parser.add_argument(
        "--format", type=formats_of, default=["svg", "pdf"], metavar="LIST", help="svg,pdf,png (default: svg,pdf)"
    )
    parser.add_argument(
        "--figure", action="append", default=[], metavar="NAME", help="only these: NAME, RECIPE or RECIPE/NAME"
    )
    parser.add_argument(
        "--style",
        choices=("report", "paper"),
        default="report",
        help="paper: as wide as a column, without title and notes, with a file NAME.json that plot draws again",
    )
    parser.add_argument("--table", choices=TABLES, help="also the drawn numbers as a table: NAME.tex or NAME.md")
    add_changes(parser)
    return parser.parse_args()


def figures_of(path: Path, names: Sequence[str]) -> list[Whole]:
    if path.suffix == ".json":
        return [figure_file.read(path)]
    results = read(path)
    figures = [(figure, panels_of(results, figure)) for figure in chosen_figures(results, names)]
    if not figures:
        print("plot.py: no figures in these results; 'attnbench reproduce' makes them", file=sys.stderr)
    return figures


def with_changes(whole: Whole, changes: Changes) -> Whole:
    figure, panels = whole
    description = {**figure.description, "title": changes.title} if changes.title else figure.description
    return replace(figure, description=description), changed(panels, changes)


def main() -> int:
    options = arguments()
    try:
        changes = changes_in(options)
        figures = [with_changes(whole, changes) for whole in figures_of(options.file, options.figure)]
        layout = changed_layout(IN_PAPER if options.style == "paper" else REPORT, options)
        formats = [*options.format, *([TABLES[options.table]] if options.table else [])]
        if options.style == "paper":
            formats.append("json")
        left_out = []
        for drawn in draw_all(figures, formats, replace(layout, legend_order=changes.legend_order)):
            write_files(options.output, drawn.named_files())
            for name in drawn.named_files():
                print(options.output / name)
            left_out += [f"{drawn.stem}: {words}" for words in absent(drawn.panels)]
    except Misuse as misuse:
        print(f"plot.py: {misuse}", file=sys.stderr)
        return 2
    if left_out and options.style == "paper":  # the notes under the figure say so elsewhere
        print("\n".join(f"plot.py: {words}" for words in left_out), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
