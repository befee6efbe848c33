"""The numbers of a results file, by the runs of a suite."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from results import split_spec
from results_file import open_results
from suite import Run, Suite

# Columns of a cell that say what is measured, beside its method: they decide to which run a cell belongs.
IDENTITY = ("experiment", "input", "nq", "n", "d", "dv", "causal", "precision", "heads", "logit_scale", "seed")


class Condition(NamedTuple):
    """Under which a method has a number: an input and shape, as text, and a replicate."""

    run: str
    problem: tuple[str, ...]  # the values of IDENTITY
    replicate: int

    @property
    def input(self) -> str:
        return self.problem[IDENTITY.index("input")]

    @property
    def n(self) -> str:
        return self.problem[IDENTITY.index("n")]


@dataclass(frozen=True)
class Replicate:
    ending: str  # "done", or how it failed
    reason: str
    numbers: dict[str, NDArray[np.float64]]  # by metric, flat: one number, or those of an array

    def number(self, metric: str) -> float:
        """The number, or the median of an array's; NaN if it is missing."""
        found = self.numbers.get(metric)
        return math.nan if self.ending != "done" or found is None or not found.size else float(np.median(found))


@dataclass(frozen=True)
class Measured:
    """By method and condition. Cells that belong to no run of the suite are in `strangers`."""

    replicates: dict[str, dict[Condition, Replicate]]
    strangers: list[tuple[str, str]]  # method and experiment
    machines: dict[str, list[str]]  # by method, those that timed it


def read_measured(path: Path, suite: Suite) -> Measured:
    """Throws results_file.Misuse for a file that is damaged, altered or no results file."""
    belongs = {condition[: 1 + len(IDENTITY)][1:]: condition[0] for condition in suite.baseline}
    found: dict[str, dict[Condition, Replicate]] = defaultdict(dict)
    strangers = set()
    with closing(open_results(path)) as connection:
        numbers: dict[tuple[int, int], dict[str, NDArray[np.float64]]] = defaultdict(dict)
        for cell, replicate, metric, value, array in connection.execute(
            "SELECT cell, replicate, metric, value, array FROM measurement"
        ):
            numbers[cell, replicate][metric] = np.array([value]) if array is None else np.frombuffer(array, "<f8")
        rows = connection.execute(
            f"SELECT c.id, c.method, r.replicate, r.ending, r.reason, {', '.join(f'c.{name}' for name in IDENTITY)} "
            "FROM replicate r JOIN cell c ON c.id = r.cell ORDER BY c.id, r.replicate"
        ).fetchall()
        machines: dict[str, list[str]] = defaultdict(list)
        for method, machine in connection.execute(
            "SELECT DISTINCT method, machine FROM cell WHERE machine <> '' ORDER BY method, machine"
        ):
            machines[method].append(machine)
    for cell, method, replicate, ending, reason, *problem in rows:
        named = tuple(str(value) for value in problem)
        if named not in belongs:
            strangers.add((method, named[0]))
            continue
        condition = Condition(belongs[named], named, replicate)
        found[method][condition] = Replicate(ending, reason, numbers.get((cell, replicate), {}))
    return Measured(dict(found), sorted(strangers), dict(machines))


def conditions_of(suite: Suite, run: Run) -> list[Condition]:
    """Those under which the baseline was measured, and every method must be."""
    rows = {(key[0], key[1 : 1 + len(IDENTITY)], int(key[1 + len(IDENTITY)])) for key in suite.baseline}
    return sorted(Condition(*row) for row in rows if row[0] == run.name)


def on_device(method: str) -> bool:
    """Whether PyTorch computes it on another device than the processor."""
    return any(one.startswith("device=") and one != "device=cpu" for one in split_spec(method)[1])


def submitted_of(spec: str, methods: list[str]) -> str:
    """The submitted method that a row's spec belongs to. `run --match` adds its budget to a spec, so it is the one with the
    same name and most arguments that are all among the row's. A spec of no submitted method belongs to itself."""
    name, arguments = _parts(spec)
    fitting = [
        (len(own), method)
        for method, (one, own) in ((m, _parts(m)) for m in methods)
        if one == name and own <= arguments
    ]
    return max(fitting)[1] if fitting else spec


def shares_of(measured: Measured, methods: list[str]) -> dict[str, dict[Condition, Replicate]]:
    """The rows of each submitted method, and of every other one."""
    shared: dict[str, dict[Condition, Replicate]] = {method: {} for method in methods}
    for spec, replicates in measured.replicates.items():
        shared.setdefault(submitted_of(spec, methods), {}).update(replicates)
    return shared


def _parts(spec: str) -> tuple[str, set[str]]:
    name, arguments = split_spec(spec)
    return name, set(arguments)
