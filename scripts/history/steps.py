"""Steps between commits: how many times larger a number became, with its interval, and what that says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from builds import Commit, Misuse
from measuring import Cell, Session
from medians import median_interval

SAME, BETTER, WORSE, AMBIGUOUS = "SAME", "BETTER", "WORSE", "AMBIGUOUS"
RESOLUTION = 1.05  # a step that is significantly larger is BETTER or WORSE, one that is significantly smaller is SAME
FEWEST_ROUNDS = 6  # with fewer there is no interval of 95 %


@dataclass(frozen=True)
class Step:
    """Of a number of which less is better, from one commit to a later one."""

    ratio: float
    low: float
    high: float

    @property
    def ruling(self) -> str:
        if math.isnan(self.low):
            return AMBIGUOUS
        if self.low > RESOLUTION:
            return WORSE
        if self.high < 1 / RESOLUTION:
            return BETTER
        return SAME if 1 / RESOLUTION <= self.low and self.high <= RESOLUTION else AMBIGUOUS


def step(session: Session, before: str, after: str, cell: Cell) -> Step:
    """The median over rounds of the ratio within a round, with its interval of 95 %."""
    ratios = session.rounds(after, cell) / session.rounds(before, cell)
    return Step(*map(float, median_interval(ratios)))


@dataclass(frozen=True)
class Found:
    """A decided step, at the nearest two commits between which it is decided."""

    cell: Cell
    before: Commit
    after: Commit
    between: int  # commits between them that cannot be built, or at which it is not decided
    step: Step


class Bisection:
    """Finds the commits that made decided steps, with about log2(commits) builds a step. The ends are compared first: a step
    and its opposite between them cancel and are not found."""

    def __init__(self, commits: list[Commit], measure: Callable[[list[Commit]], Session]) -> None:
        """measure: compares commits; those without a program are in the session's failures."""
        self.commits, self.measure = commits, measure
        self.unbuilt: set[int] = set()
        self.found: list[Found] = []

    def run(self) -> list[Found]:
        last = len(self.commits) - 1
        session = self._session([0, last])
        if session is None:
            raise Misuse("history: the first or the last commit of the range cannot be measured; expected others")
        self._search(0, last, self._decided(session, 0, last, session.cells()))
        return self.found

    def _session(self, places: list[int]) -> Session | None:
        """None if one of them has no program or no numbers."""
        session = self.measure([self.commits[place] for place in places])
        failed = [place for place in places if self.commits[place].short in session.failures]
        self.unbuilt.update(failed)
        return None if failed else session

    def _search(self, first: int, last: int, cells: list[Cell]) -> None:
        """cells: those with a decided step in between."""
        if not cells:
            return
        inside = [place for place in range(first + 1, last) if place not in self.unbuilt]
        middle = min(inside, key=lambda place: abs(2 * place - first - last), default=None)
        session = self._session([first, last] if middle is None else [first, middle, last])
        if session is None:
            return self._search(first, last, cells)  # without that middle
        left = self._decided(session, first, middle, cells) if middle is not None else []
        right = self._decided(session, middle, last, cells) if middle is not None else []
        for cell in self._decided(session, first, last, cells):
            if cell not in left and cell not in right:  # neighbours, or two halves that are each too small
                one = self._step(session, first, last, cell)
                between = last - first - 1
                self.found.append(Found(cell, self.commits[first], self.commits[last], between, one))
        if middle is not None:
            self._search(first, middle, left)
            self._search(middle, last, right)

    def _decided(self, session: Session, before: int, after: int, cells: list[Cell]) -> list[Cell]:
        there = set(session.cells())
        return [
            cell
            for cell in cells
            if cell in there and self._step(session, before, after, cell).ruling in (BETTER, WORSE)
        ]

    def _step(self, session: Session, before: int, after: int, cell: Cell) -> Step:
        return step(session, self.commits[before].short, self.commits[after].short, cell)
