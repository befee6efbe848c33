"""Error against speedup of the methods of a table, with the Pareto front: a figure for each machine."""

from __future__ import annotations

import io
import math

import matplotlib

matplotlib.use("svg")

from board import Table, Timed
from matplotlib import pyplot, rc_context
from matplotlib.ticker import FuncFormatter, NullFormatter
from style import FAINT, GRID, INK, STYLE

SIZE = (6.2, 4.0)  # inches
MOST_ERROR = 3.0  # of a figure, which says how many methods err more
LABELS = FuncFormatter(lambda value, _: f"{value:g}")
FIXED = {"svg.hashsalt": "attnbench", "svg.fonttype": "path"}  # equal data, equal bytes


def front_figure(table: Table) -> dict[str, bytes]:
    """By machine, an SVG. Names are at the methods of the front; the others are dots, whose numbers are in the table."""
    return {machine: _drawn(table, machine) for machine in sorted(table.front)}


def _points(table: Table, machine: str) -> list[tuple[float, float, str, bool]]:
    """Speedup, error, name, and whether the method is on the front."""
    found = []
    for row in table.rows:
        error = row.cells[0]
        times = next((cell for cell in row.cells if isinstance(cell, list)), [])
        if row.standing is None or isinstance(error, list) or error is None:
            continue
        found += [
            (one.number.value, error.value, row.entry.method, row.entry.slug in table.front[machine])
            for one in times
            if isinstance(one, Timed) and one.machine == machine
        ]
    return found


def _decades(points: list[tuple[float, float, str, bool]]) -> float:
    errors = [error for _, error, _, _ in points]
    return math.log10(max(errors) / min(errors))


def _drawn(table: Table, machine: str) -> bytes:
    points = _points(table, machine)
    logarithmic = all(error > 0 for _, error, _, _ in points) and table.regime.columns[0].scale == "log"
    with rc_context({**STYLE, **FIXED}):
        figure, axes = pyplot.subplots(figsize=SIZE, layout="constrained")
        front = sorted(point for point in points if point[3])
        axes.step([x for x, *_ in front], [y for _, y, *_ in front], where="post", color=FAINT, linewidth=0.8)
        axes.scatter(
            [x for x, _, _, on in points if not on],
            [y for _, y, _, on in points if not on],
            s=12,
            color=FAINT,
            alpha=0.6,
        )
        axes.scatter([x for x, *_ in front], [y for _, y, *_ in front], s=22, color=INK)
        for place, (x, y, name, _) in enumerate(front):  # in turn above and below, as neighbours are near
            axes.annotate(
                name,
                (x, y),
                (4, 4 if place % 2 else -9),
                textcoords="offset points",
                fontsize=7,
                color=INK,
                clip_on=True,
            )
        axes.margins(x=0.12)  # for the name of the fastest
        axes.axvline(1, color=GRID, linewidth=1)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(LABELS)
        axes.xaxis.set_minor_formatter(NullFormatter())
        beyond = sum(error > MOST_ERROR for _, error, _, _ in points) if logarithmic else 0
        if logarithmic:
            axes.set_yscale("log")
            if beyond:
                axes.set_ylim(top=MOST_ERROR)
            axes.yaxis.set_major_formatter(LABELS)
            axes.yaxis.set_minor_formatter(LABELS if _decades(points) < 1 else NullFormatter())
        axes.set_xlabel("times faster than exact attention")
        axes.set_ylabel(f"{table.regime.columns[0].label} (less is better)")
        words = f"; {beyond} with larger errors not shown" if beyond else ""
        axes.set_title(f"{table.regime.title}\non {machine}{words}", loc="left")
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return stream.getvalue()
