"""Measures cells with several programs in turns, so that a machine that slows down slows all of them.

In each round every program runs once, in an order that is drawn, and a comparison pairs two programs within a round.
"""

from __future__ import annotations

import csv
import io
import json
import random
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from builds import Misuse
from numpy.typing import NDArray

CELL = ("experiment", "method", "input", "n", "d", "causal", "heads", "threads", "precision")
Cell = tuple[str, ...]  # the values of CELL


class RunFailed(Exception):
    """A program measured nothing; the message is what it said."""


@dataclass
class Session:
    """Numbers that were measured side by side: by program and cell, one number a round."""

    programs: list[str]
    numbers: dict[str, dict[Cell, list[float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def cells(self) -> list[Cell]:
        """Those that every program without a failure measured in every round."""
        measured = [set(self.numbers[one]) for one in self.programs if one not in self.failures]
        return sorted(set.intersection(*measured)) if measured else []

    def rounds(self, program: str, cell: Cell) -> NDArray[np.float64]:
        return np.array(self.numbers[program][cell])


def run_session(programs: dict[str, Path], words: Sequence[str], metric: str, rounds: int, seed: int) -> Session:
    """Runs `attnbench WORDS` with every program in every round."""
    session = Session(list(programs))
    order = random.Random(seed)
    for number in range(rounds):
        turns = list(programs)
        order.shuffle(turns)
        print(f"round {number + 1} of {rounds}: {len(turns)} programs", flush=True)
        for name in turns:
            if name in session.failures:
                continue
            try:
                for cell, value in _measured(programs[name], words, metric).items():
                    session.numbers.setdefault(name, {}).setdefault(cell, []).append(value)
            except RunFailed as failure:
                session.failures[name] = str(failure)
                print(f"  {name}: {failure}", flush=True)
    return session


def _measured(program: Path, words: Sequence[str], metric: str) -> dict[Cell, float]:
    with tempfile.TemporaryDirectory() as folder:
        results = str(Path(folder) / "results.db")
        done = subprocess.run([str(program), *words, "--results", results], text=True, capture_output=True)
        if done.returncode == 2:
            raise RunFailed(done.stderr.strip().splitlines()[-1])
        table = subprocess.run([str(program), "export", results, "--metric", metric], text=True, capture_output=True)
        rows = list(csv.DictReader(io.StringIO(table.stdout)))
    by_cell: dict[Cell, list[float]] = {}
    for row in rows:
        if row.get("value") not in (None, ""):
            by_cell.setdefault(tuple(row.get(name, "") for name in CELL), []).append(float(row["value"]))
    if not by_cell:
        raise RunFailed(f"it measured no {metric}: {(done.stderr or table.stderr).strip().splitlines()[-1:] or ['']}")
    return {cell: float(np.median(values)) for cell, values in by_cell.items()}


class Store:
    """Sessions of earlier calls, a JSON line each: what was measured once is not measured again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def find(self, programs: Sequence[str], words: Sequence[str], metric: str, rounds: int) -> Session | None:
        if self.path is None or not self.path.exists():
            return None
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            try:
                kept = json.loads(line)
                same = (kept["words"], kept["metric"]) == (list(words), metric) and kept["rounds"] >= rounds
                if same and set(programs) <= set(kept["programs"]):
                    numbers = {
                        program: {tuple(cell): values for cell, values in cells}
                        for program, cells in kept["numbers"].items()
                    }
                    return Session(list(programs), numbers, kept["failures"])
            except (ValueError, KeyError, TypeError) as error:
                raise Misuse(f"history: {self.path}, line {number}: {error!r}; expected a store of history") from None
        return None

    def keep(self, session: Session, words: Sequence[str], metric: str, rounds: int) -> None:
        if self.path is None:
            return
        numbers = {
            program: [[list(cell), values] for cell, values in cells.items()]
            for program, cells in session.numbers.items()
        }
        line = {
            "words": list(words),
            "metric": metric,
            "rounds": rounds,
            "programs": session.programs,
            "failures": session.failures,
            "numbers": numbers,
        }
        with open(self.path, "a") as stream:
            stream.write(json.dumps(line) + "\n")
