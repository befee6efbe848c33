#!/usr/bin/python3
"""Draw the figures that a results file describes: SVG and PDF for print, and the drawn numbers as CSV.

The results files alone decide what is drawn: this program does not know any recipe, method or metric. Equal results
give files that are equal byte for byte.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from aggregate import Panel, aggregate
from compose import compose
from images import with_palettes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from number_table import number_table
from pdf_fonts import share_subsets
from query import add_query, query
from redraw import images, redraw_script
from results import Figure, Misuse, Results, natural_order, read
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


def draw(results: Results, figure: Figure, formats: Sequence[str] = ("svg", "pdf"), layout: Layout = REPORT) -> Drawn:
    """Aggregates and draws one figure in memory. formats: endings of pictures (CANVASES), of tables (TABLES), or "py",
    a script that redraws it."""
    panels = [aggregate(results, description) for description in figure.description["panels"]]
    files = {"csv": numbers(panels).encode()}
    title = str(figure.description.get("title", figure.name))
    with matplotlib.rc_context({**layout.settings, "svg.hashsalt": f"{figure.recipe}/{figure.name}"}):
        picture = compose(panels, layout)
        if "py" in formats:
            files |= {**images(panels), "py": redraw_script(picture, panels, figure, layout).encode()}
        for ending in formats:
            if ending in TABLES.values():
                files[ending] = number_table(panels, ending).encode()
            elif ending in CANVASES:
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


def draw_all(
    results: Results, figures: Sequence[Figure], formats: Sequence[str] = ("svg", "pdf"), layout: Layout = REPORT
) -> list[Drawn]:
    """Draws several figures in as many processes as this one may use cores. Returns them in the order of `figures`."""
    workers = min(len(os.sched_getaffinity(0)), len(figures))
    if workers < 2:
        return [draw(results, figure, formats, layout) for figure in figures]
    fork = multiprocessing.get_context("fork")  # the workers then share the results without a copy
    with ProcessPoolExecutor(workers, fork, _share, (results, figures, formats, layout)) as pool:
        return list(pool.map(_draw_shared, range(len(figures))))


_shared: tuple[Results, Sequence[Figure], Sequence[str], Layout]  # set in workers only


def _share(results: Results, figures: Sequence[Figure], formats: Sequence[str], layout: Layout) -> None:
    global _shared
    _shared = (results, figures, formats, layout)
    # A figure is many small objects in cycles. Collecting them once, after the figure, takes a fraction of the time.
    gc.disable()
    gc.freeze()


def _draw_shared(i: int) -> Drawn:
    results, figures, formats, layout = _shared
    drawn = draw(results, figures[i], formats, layout)
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
    parser.add_argument(
        "--style",
        choices=("report", "paper"),
        default="report",
        help="paper: as wide as a column, without title and notes, with a script NAME.py that redraws it from NAME.csv",
    )
    parser.add_argument("--table", choices=TABLES, help="also the drawn numbers as a table: NAME.tex or NAME.md")
    add_query(parser)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        results = read(options.results)
        asked = query(results, options)
        figures = [asked] if asked else chosen_figures(results, options.figure)
        if not figures:
            print("plot.py: no figures in these results; 'attnbench reproduce' makes them", file=sys.stderr)
        formats = [*options.format, *([TABLES[options.table]] if options.table else [])]
        if options.style == "paper":
            formats.append("py")
        for drawn in draw_all(results, figures, formats, IN_PAPER if options.style == "paper" else REPORT):
            write_files(options.output, drawn.named_files())
            for name in drawn.named_files():
                print(options.output / name)
    except Misuse as misuse:
        print(f"plot.py: {misuse}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
