"""A suite: what every submission measures, as a versioned data file.

experiments/suites/NAME.json says which runs of `attnbench run` there are, and which tables the leaderboard makes of them.
NAME.baseline.csv beside it holds what the mean of V, a method without chance, gave: every machine that measures the same
suite gets these numbers. A suite never changes under its name.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results_file import Misuse as Misuse

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "suites"
BASELINE = "uniform"  # the mean of V, as a spec
EXACT = "softmax"
SCALES = ("log", "linear")
# heads: a mean over the replicates of each input; texts: each replicate; elements: those of an array, such as the losses of
# texts, and a mean over the replicates of each
BLOCKS = ("heads", "texts", "elements")


@dataclass(frozen=True)
class Run:
    """One call of `attnbench run`: the submitted methods, and exact attention and the mean of V beside them."""

    name: str
    title: str  # what it measures, as a line of `submit`
    experiment: str
    options: dict[str, Any]  # of attnbench run, by their long names; a list repeats an option
    timed: bool  # its numbers belong to a machine

    def words(self) -> list[str]:
        """The command line after `attnbench run`, without methods and results."""
        words = [self.experiment]
        for name, value in self.options.items():
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name}"] if one is True else [f"--{name}", str(one)]
        return words


@dataclass(frozen=True)
class Column:
    """A number of each method in a table, over the conditions of some runs."""

    runs: list[str]
    metric: str
    label: str
    scale: str = "log"  # of means over heads and texts: "log" for the geometric mean
    over_exact: bool = False  # divided by the number of exact attention under the same condition
    unit: str = ""  # "B": shown in KiB and MiB
    blocks: str = "heads"  # what a comparison pairs: see BLOCKS


@dataclass(frozen=True)
class Regime:
    """One table. Methods are ranked by its first column."""

    name: str
    title: str
    words: str
    columns: list[Column]
    budget: float | None = None  # ranked are methods that cost at most this share of exact attention's FLOPs,
    needs: tuple[str, ...] = ()  # and that were measured in these runs
    devices: bool = False  # of methods on devices, which no suite says: board.py makes such a table if there are any


@dataclass(frozen=True)
class Suite:
    name: str
    title: str
    runs: list[Run]
    regimes: list[Regime]
    content: bytes = field(repr=False)
    baseline: dict[tuple[str, ...], float] = field(repr=False)  # by Condition, see measured.py

    def run(self, name: str) -> Run:
        return next(run for run in self.runs if run.name == name)


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def find_suite(word: str | None) -> Suite:
    """The suite of that name or file; without a word, the newest. Raises Misuse."""
    if word is not None and (word.endswith(".json") or os.sep in word):
        return read_suite(Path(word))
    if word is None:
        word = names()[-1]
    if word not in names():
        raise Misuse(f"there is no suite '{word}'; expected one of {', '.join(names())}, or a file such as mine.json")
    return read_suite(FOLDER / f"{word}.json")


def read_suite(path: Path, pinned: bool = True) -> Suite:
    """pinned: its baseline must be there."""
    try:
        content = path.read_bytes()
        described = json.loads(content)
        runs = [_run(one) for one in described["runs"]]
        regimes = [_regime(one) for one in described["regimes"]]
        suite = Suite(described["name"], described["title"], runs, regimes, content, _baseline(path))
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}; expected a suite, such as {FOLDER / names()[-1]}.json") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Misuse(f"{path}: {error!r}; expected a suite as docs/leaderboard.md describes it") from None
    _require_sound(suite, path)
    if pinned and not suite.baseline:
        raise Misuse(f"{path}: its baseline is missing; scripts/leaderboard/pin_suite.py writes it")
    return suite


def _run(described: Mapping[str, Any]) -> Run:
    return Run(
        described["name"],
        described["title"],
        described["experiment"],
        dict(described["options"]),
        bool(described.get("timed", False)),
    )


def _regime(described: Mapping[str, Any]) -> Regime:
    columns = [Column(**column) for column in described["columns"]]
    return Regime(
        described["name"],
        described["title"],
        described["words"],
        columns,
        described.get("budget"),
        tuple(described.get("needs", ())),
    )


def _require_sound(suite: Suite, path: Path) -> None:
    known = [run.name for run in suite.runs]
    for regime in suite.regimes:
        for column in regime.columns:
            if (
                not column.runs
                or not set(column.runs) <= set(known)
                or column.scale not in SCALES
                or column.blocks not in BLOCKS
            ):
                raise Misuse(
                    f"{path}: the column '{column.label}' of {regime.name} names no run, no scale of {SCALES} or no blocks of {BLOCKS}"
                )
        if not regime.columns or any(suite.run(name).timed for name in regime.columns[0].runs):
            raise Misuse(f"{path}: {regime.name} would be ranked by a time; expected an error in its first column")
    if path.stem != suite.name:
        raise Misuse(f"{path}: the suite is called '{suite.name}'; expected the name of its file")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _baseline(path: Path) -> dict[tuple[str, ...], float]:
    """Empty if the file is missing."""
    file = path.with_suffix(".baseline.csv")
    if not file.exists():
        return {}
    with open(file, newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    return {tuple(row[:-1]): float(row[-1]) for row in rows}
