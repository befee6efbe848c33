"""Figures of rows, as `attnbench plot` and the page draw them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from attnbench import _native
from attnbench._native import Misuse
from attnbench.running import FILE, Values, read, words_of

if TYPE_CHECKING:
    import pandas

INTERPRETER = "ATTNBENCH_INTERPRETER"  # of the program's scripts (harness/core/installed.hpp)
NUMBERS = {"metric", "value", "unit", "replicate", "ending", "reason"}  # columns that do not tell cells apart


class Picture:
    """A figure. A notebook shows it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)

    @property
    def svg(self) -> str:
        """The figure as SVG."""
        return self._files["svg"].decode()

    @property
    def csv(self) -> str:
        """The points that are drawn, a line each."""
        return self._files["csv"].decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure, in the format that the ending of the path says: .svg, .pdf, .png or .csv. Raises Misuse."""
        ending = Path(path).suffix.removeprefix(".")
        if ending not in self._files:
            known = ", ".join(f".{name}" for name in sorted(self._files))
            raise Misuse(f"save: {os.fspath(path)!r} ends with none of {known}; for example figure.save('figure.pdf')")
        Path(path).write_bytes(self._files[ending])

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<figure of {len(self.csv.splitlines()) - 1} points; save() writes it>"


def plot(
    rows: pandas.DataFrame | str | os.PathLike[str],
    y: str | None = None,
    x: str | None = None,
    *,
    series: str | Sequence[str] = (),
    where: Mapping[str, Values] | None = None,
    **options: Any,
) -> Picture:
    """Draws a metric of rows over an axis, with intervals, closed forms where cells have one, and exact attention.

    rows: what run, read or record returned, or some rows of it, or a results file. y: a metric; without it the figure
    that the page shows of a run, over all its cells. x: a size or a parameter; the one with most values by default.
    series: what names a curve, averaged over other differences; all of them by default. where: only cells with these
    values. Further options of `attnbench plot` by name: style="paper", title="...", log="xy", facet=True. Raises
    Misuse.
    """
    if isinstance(rows, (str, os.PathLike)):
        file, chosen = os.fspath(rows), dict(where or {})
    else:
        file, chosen = _file_of(rows), {**_conditions(rows), **(where or {})}
    words = [file, "--format", "svg,pdf,png"]
    if y is not None:
        words += ["--y", y, *(["--x", x] if x is not None else [])]
        words += [word for name in ([series] if isinstance(series, str) else series) for word in ("--series", name)]
        words += [
            word for name, values in chosen.items() for one in words_of(values) for word in ("--where", f"{name}={one}")
        ]
    elif x is not None or series or chosen:
        metrics = ", ".join(sorted(read(file).metric.unique()))
        raise Misuse(f"plot: y is missing, the metric to draw of these rows; they have {metrics}")
    else:
        words += ["--figure", "runs"]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not False and value is not None:
            words += [word for one in words_of(value) for word in (option, one)]
    with tempfile.TemporaryDirectory() as folder:
        _draw([*words, "-o", folder])
        found = {path.suffix[1:]: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    return Picture(found)


def _draw(words: list[str]) -> None:
    """Runs `attnbench plot` in a process of its own, whose output is no output of the caller."""
    environment = {**os.environ, INTERPRETER: sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = [sys.executable, "-m", "attnbench.plotting", *words]
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    notes = [line.partition("note: ")[2] for line in done.stderr.splitlines() if line.startswith("attnbench: note: ")]
    if notes:
        warnings.warn("; ".join(notes), stacklevel=3)
    if done.returncode not in (0, 3):
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Misuse(said[-1].removeprefix("attnbench: ").replace("plot.py: error", "plot"))


def _file_of(rows: pandas.DataFrame) -> str:
    file = rows.attrs.get(FILE)
    if not isinstance(file, str) or not os.path.exists(file):
        raise Misuse(
            "plot: these rows do not say which results file they come from; give what run, read or record returned, or the "
            "file itself"
        )
    return file


def _conditions(rows: pandas.DataFrame) -> dict[str, Values]:
    """The values by which the cells of these rows are chosen among those of their file. Raises Misuse if columns do not tell
    them."""
    if rows.empty:
        raise Misuse("plot: there are no rows to draw; choose others")
    every = read(_file_of(rows))
    columns = [name for name in every.columns if name not in NUMBERS and name in rows]
    conditions: dict[str, Values] = {}
    kept = every
    for name in columns:
        values = set(rows[name].dropna())
        if values and values != set(every[name].dropna()):  # none: a parameter of methods that are not chosen
            conditions[name] = sorted(values)
            kept = kept[kept[name].isin(values)]
    if len(kept[columns].drop_duplicates()) != len(rows[columns].drop_duplicates()):
        raise Misuse(
            "plot: columns do not tell these rows from others of their file; choose them by values, as in rows[rows.m > 64], "
            "or give the file and where={...}"
        )
    return conditions


if __name__ == "__main__":
    sys.exit(_native.run(["attnbench", "plot", *sys.argv[1:]]))
