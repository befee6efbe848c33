"""A number over commits: one line a cell, as ratios to the first commit, with intervals."""

from __future__ import annotations

import io

import matplotlib

matplotlib.use("svg")

from builds import Commit
from matplotlib import pyplot, rc_context
from matplotlib.ticker import FuncFormatter, NullFormatter
from measuring import Cell, Session
from steps import RESOLUTION, step
from style import COLOURS, FAINT, GRID, INK, LINES, MARKERS, STYLE

MOST_LINES = len(COLOURS)
DODGE = 0.03  # of lines beside each other, so that their intervals are seen


def series_figure(session: Session, commits: list[Commit], labels: dict[Cell, str], metric: str) -> bytes:
    """An SVG. commits: those of the session, the oldest first. Of more cells than there are colours, the others are grey."""
    with rc_context({**STYLE, "svg.hashsalt": "attnbench"}):
        figure, axes = pyplot.subplots(figsize=(max(4.5, 0.5 * len(commits) + 2.5), 3.4), layout="constrained")
        axes.axhspan(1 / RESOLUTION, RESOLUTION, color=GRID, linewidth=0)
        cells = session.cells()
        for place, cell in enumerate(cells):
            steps = [step(session, commits[0].short, commit.short, cell) for commit in commits]
            coloured = place < MOST_LINES
            axes.errorbar(
                [number + DODGE * (place - len(cells) / 2) for number in range(len(commits))],
                [one.ratio for one in steps],
                yerr=[[one.ratio - one.low for one in steps], [one.high - one.ratio for one in steps]],
                color=COLOURS[place] if coloured else FAINT,
                marker=MARKERS[place % len(MARKERS)],
                linestyle=LINES[place % len(LINES)],
                markersize=3.5,
                linewidth=1,
                elinewidth=0.7,
                label=labels[cell] if coloured else None,
            )
        axes.set_xticks(range(len(commits)), [commit.short[:7] for commit in commits], rotation=60, ha="right")
        low, high = axes.get_ylim()
        if low > 0 and high > 2 * low:
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylabel(f"{metric} over that of {commits[0].short[:7]}", color=INK)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return stream.getvalue()
