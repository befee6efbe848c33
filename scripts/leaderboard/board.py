"""A leaderboard as data: the bundles that were taken, and for each regime a table with ranks."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from measured import Condition, Replicate, on_device
from medians import LEVEL, median_interval
from numpy.typing import NDArray
from scipy.stats import t
from standings import Standing, standings
from suite import BASELINE, EXACT, Column, Regime, Suite
from verification import Submission

OVER_BUDGET = 1.25  # budgets are whole numbers: the nearest may cost a little more
LEAST = 1e-15  # an error below it is rounding: methods below it are equal


@dataclass(frozen=True)
class Entry:
    """A method with everybody who measured it. Plugins with other sources are other entries."""

    method: str
    source: str  # digest of its sources; empty: built in
    submissions: list[Submission]

    @property
    def slug(self) -> str:
        """Its permanent name: that of its page and of its rows."""
        words = re.sub(r"[^a-z0-9]+", "-", self.method.lower()).strip("-")[:60]
        return f"{words}-{hashlib.sha256((self.method + self.source).encode()).hexdigest()[:8]}"

    @property
    def on_device(self) -> bool:
        return on_device(self.method)

    @property
    def submitted(self) -> bool:
        """Not one of the two that are measured beside every method."""
        return self.method not in (EXACT, BASELINE)


@dataclass(frozen=True)
class Number:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Timed:
    """A time's ratio, on the machine of a submission."""

    machine: str
    number: Number


@dataclass(frozen=True)
class Row:
    entry: Entry
    standing: Standing | None  # None: it lacks a number; then there is a reason
    reason: str
    cells: list[Number | list[Timed] | None]  # one a column
    by_block: list[float]  # of the first column, in the order of the blocks; in logarithms if it has them


@dataclass(frozen=True)
class Table:
    regime: Regime
    rows: list[Row]
    blocks: int  # of a comparison of two methods
    speed: Column | None  # the column of speedups
    front: dict[str, set[str]]  # by machine, the slugs of methods that no other beats in error and in speed


@dataclass(frozen=True)
class Board:
    suite: Suite
    submissions: list[Submission]
    entries: list[Entry]
    tables: list[Table]
    machines: list[str]


def make_board(suite: Suite, submissions: list[Submission], built_in: set[str]) -> Board:
    """Equal bundles give an equal board, in whichever order they come."""
    submissions = sorted(submissions, key=lambda one: one.bundle.digest)
    entries = _entries(submissions, built_in)
    machines = sorted({machine for one in submissions for machine in one.machines})
    return Board(suite, submissions, entries, list(_tables(suite, entries)), machines)


def _tables(suite: Suite, entries: list[Entry]) -> Iterator[Table]:
    """For each regime one of methods on processors, and one of methods on devices if there are any."""
    on_devices = [entry for entry in entries if entry.on_device or not entry.submitted]
    for regime in suite.regimes:
        yield _table(suite, regime, [entry for entry in entries if not entry.on_device])
        if any(entry.on_device for entry in entries):
            yield _table(suite, _on_devices(regime), on_devices)


def _on_devices(regime: Regime) -> Regime:
    return replace(
        regime,
        name=f"{regime.name}-devices",
        title=f"{regime.title}, on devices",
        words=f"{regime.words} Errors are those of the device's arithmetic; times are over those of exact attention in PyTorch "
        "on the same device.",
        devices=True,
    )


def _entries(submissions: list[Submission], built_in: set[str]) -> list[Entry]:
    by_identity: dict[tuple[str, str], list[Submission]] = {}
    for submission in submissions:
        for method in (EXACT, BASELINE, *submission.bundle.manifest.methods):
            source = "" if method.partition(":")[0] in built_in else _source_digest(submission)
            by_identity.setdefault((method, source), []).append(submission)
    return [Entry(*identity, found) for identity, found in sorted(by_identity.items())]


def _source_digest(submission: Submission) -> str:
    hashed = hashlib.sha256()
    for name, text in submission.bundle.plugin_sources.items():
        hashed.update(f"{name}\0{len(text)}\0{text}".encode())
    return hashed.hexdigest()


def _table(suite: Suite, regime: Regime, entries: list[Entry]) -> Table:
    ranked_by = regime.columns[0]
    means = {entry.slug: _means(ranked_by, entry.method, entry.submissions[0]) for entry in entries}
    blocks = sorted(means[next(entry.slug for entry in entries if entry.method == EXACT)].by_block)
    reasons = {entry.slug: _why_not_ranked(regime, entry, means[entry.slug], blocks) for entry in entries}
    ranked = [slug for slug, reason in reasons.items() if not reason]
    values = np.array([[means[slug].by_block[block] for block in blocks] for slug in ranked])
    found = {one.method: one for one in standings(ranked, values.reshape(len(ranked), len(blocks)))}
    rows = [
        Row(
            entry,
            found.get(entry.slug),
            reasons[entry.slug],
            [_cell(suite, regime, column, entry) for column in regime.columns],
            [value for _, value in sorted(means[entry.slug].by_block.items())],
        )
        for entry in entries
    ]
    rows.sort(key=_order)
    speed = next((column for column in regime.columns if is_timed(suite, column)), None)
    return Table(regime, rows, len(blocks), speed, _fronts(rows, regime.columns.index(speed) if speed else None))


def _why_not_ranked(regime: Regime, entry: Entry, means: Means, blocks: list[str]) -> str:
    """Empty if it is."""
    if entry.method == EXACT:
        return "every number is compared with it"
    if means.reason or sorted(means.by_block) != blocks:
        return means.reason or "it lacks a number"
    for condition, one in sorted(entry.submissions[0].methods[entry.method].items()):
        if condition.run in regime.needs and one.ending != "done":
            return one.reason
    if regime.budget is None:
        return ""
    cost = next(column for column in regime.columns if column.metric == "flops")
    costs = _means(cost, entry.method, entry.submissions[0]).by_block.values()
    share = math.exp(float(np.mean(list(costs)))) if costs else math.nan
    if share <= regime.budget * OVER_BUDGET:
        return ""
    return f"it takes {share:.2g} of exact attention's FLOPs; ranked are methods of {regime.budget:g} at most"


def _order(row: Row) -> tuple[float, float, float, str]:
    """Exact attention first, then by rank, then those without one."""
    one = row.standing
    if row.entry.method == EXACT:
        return 0, 0, 0, ""
    if one is None:
        return math.inf, 0, 0, row.entry.method
    return one.rank, one.last_rank, one.centre, row.entry.method


@dataclass(frozen=True)
class Means:
    by_block: dict[str, float]  # in logarithms if the column has them; without blocks that lack a number
    reason: str  # why the first of those lacks it


def _means(column: Column, method: str, submission: Submission) -> Means:
    values: dict[str, list[float]] = {}
    lacking: dict[str, str] = {}
    for condition, one in sorted(submission.methods[method].items()):
        if condition.run not in column.runs:
            continue
        place = " ".join(condition.problem)
        numbers = one.numbers.get(column.metric) if one.ending == "done" else None
        if numbers is None or not numbers.size:
            lacking[place] = one.reason or f"it has no {column.label}"
            continue
        if column.over_exact:
            numbers = numbers / submission.methods[EXACT][condition].number(column.metric)
        if column.scale == "log":
            numbers = np.log(np.maximum(numbers, LEAST))
        if column.blocks == "elements":
            for element, value in enumerate(numbers):
                values.setdefault(f"{place} {element}", []).append(float(value))
        else:
            block = f"{place} {condition.replicate}" if column.blocks == "texts" else place
            values.setdefault(block, []).append(float(np.median(numbers)))
    whole = {block: float(np.mean(all_)) for block, all_ in values.items() if block not in lacking}
    return Means(whole, next(iter(lacking.values()), ""))


def is_timed(suite: Suite, column: Column) -> bool:
    return any(suite.run(name).timed for name in column.runs)


def _cell(suite: Suite, regime: Regime, column: Column, entry: Entry) -> Number | list[Timed] | None:
    if is_timed(suite, column):
        if regime.devices and not entry.on_device:
            return None  # exact attention and the baseline were timed on the processor
        timed = [
            Timed(one.machine_of(entry.method), number)
            for one in entry.submissions
            if (number := _time(column, one.methods[entry.method])) is not None
        ]
        return timed[:1] if entry.method in (EXACT, BASELINE) else timed or None
    means = _means(column, entry.method, entry.submissions[0]).by_block
    if not means:
        return None
    return mean_number(np.array(list(means.values())), math.exp if column.scale == "log" else float)


def mean_number(values: NDArray[np.float64], back: Callable[[float], float]) -> Number:
    """The mean over blocks with Student's interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return Number(back(mean), math.nan, math.nan)
    half = float(t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return Number(back(mean), back(mean - half), back(mean + half))


def _time(column: Column, replicates: dict[Condition, Replicate]) -> Number | None:
    """The median over blocks of turns."""
    samples = [
        one.numbers[column.metric]
        for condition, one in sorted(replicates.items())
        if condition.run in column.runs and one.ending == "done" and column.metric in one.numbers
    ]
    return Number(*map(float, median_interval(np.concatenate(samples)))) if samples else None


def _fronts(rows: list[Row], place: int | None) -> dict[str, set[str]]:
    """place: of the column of speedups."""
    points: dict[str, list[tuple[float, float, str]]] = {}
    for row in rows:
        cell = None if place is None else row.cells[place]
        if row.standing is None or not isinstance(cell, list):
            continue
        for one in cell:
            points.setdefault(one.machine, []).append((row.standing.centre, one.number.value, row.entry.slug))
    return {machine: pareto(found) for machine, found in points.items()}


def pareto(points: list[tuple[float, float, str]]) -> set[str]:
    """Names of the points (error, speedup, name) for which no other has less error and more speed."""
    front, best = set(), -math.inf
    for _, speed, name in sorted(points, key=lambda point: (point[0], -point[1])):
        if speed > best:
            front.add(name)
            best = speed
    return front
