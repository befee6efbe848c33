#!/usr/bin/python3
"""Tables of made-up submissions: who is ranked, by which number, and who is not and why."""

from __future__ import annotations

import math
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "scripts" / part) for part in ("leaderboard", "")]

from archive import Bundle, Manifest
from board import Table, Timed, make_board
from measured import IDENTITY, Condition, Measured, Replicate, shares_of
from suite import Column, Regime, Run, Suite
from verification import Submission

INPUTS, TEXTS = 12, 2
ERROR = Column(["errors"], "error", "error")
COST = Column(["errors"], "flops", "cost", over_exact=True)
SPEED = Column(["times"], "speedup", "faster")


def condition(run: str, place: int, replicate: int = 0) -> Condition:
    problem = tuple(f"input {place}" if name == "input" else "0" for name in IDENTITY)
    return Condition(run, problem, replicate)


def numbers(**metrics: float | list[float]) -> Replicate:
    return Replicate("done", "", {name: np.atleast_1d(np.array(value, float)) for name, value in metrics.items()})


def method(error: float, cost: float, speed: list[float], wobble: float = 0.0) -> dict[Condition, Replicate]:
    """Errors on twelve inputs with two texts each, whose logarithms differ by `wobble` from input to input."""
    rows = {
        condition("errors", place, text): numbers(
            error=error * (1 + place) * (4.0 if text else 0.25) * math.exp(wobble * ((-1) ** place + 0.1)),
            flops=cost * 100,
            losses=[error + text, error + 10 + text],
        )
        for place in range(INPUTS)
        for text in range(TEXTS)
    }
    return rows | {condition("times", 0): numbers(speedup=speed)}


def submission(
    methods: dict[str, dict[Condition, Replicate]], machine: str = "M", digest: str = "1" * 64
) -> Submission:
    submitted = [name for name in methods if name not in ("softmax", "uniform")]
    manifest = Manifest("made-up", submitted, ["me"], "MIT", "", "", "attnbench 0")
    machines = {name: [f"{machine}, H"] if "device=cuda" in name else [machine] for name in methods}
    measured = Measured(methods, [], machines)
    return Submission(
        Bundle(digest, manifest, {}), measured, methods, {one: [{"claim": "c", "outcome": "PASS"}] for one in methods}
    )


def tables(regime: Regime, *submissions: Submission) -> list[Table]:
    runs = [Run("errors", "", "error", {}, False), Run("times", "", "speed", {}, True)]
    built_in = {name.partition(":")[0] for one in submissions for name in one.methods}
    return make_board(Suite("made-up", "", runs, [regime], b"", {}), list(submissions), built_in).tables


def table(regime: Regime, *submissions: Submission) -> Table:
    (found,) = tables(regime, *submissions)
    return found


METHODS = {
    "softmax": method(1e-16, 1, [1.0] * 9),
    "uniform": method(0.5, 0.01, [50.0] * 9),
    "good": method(0.1, 0.25, [2.0] * 9),
    "close": method(0.1, 0.25, [3.0, 1.0, 2.0, 9.0, 2.5, 2.4, 2.6, 2.7, 2.8], wobble=0.01),
    "costly": method(0.01, 0.9, [0.5] * 9),
}


class BoardTest(unittest.TestCase):
    def ranks(self, found: Table) -> dict[str, tuple[int, int] | None]:
        return {
            row.entry.method: (row.standing.rank, row.standing.last_rank) if row.standing else None
            for row in found.rows
        }

    def test_ranks_by_the_first_column_and_keeps_to_the_budget(self) -> None:
        found = table(Regime("r", "", "", [ERROR, COST, SPEED], budget=0.25), submission(METHODS))
        self.assertEqual(
            self.ranks(found), {"softmax": None, "close": (1, 2), "good": (1, 2), "uniform": (3, 3), "costly": None}
        )
        self.assertEqual(found.blocks, INPUTS)
        costly = next(row for row in found.rows if row.entry.method == "costly")
        self.assertIn("takes 0.9 of exact attention's FLOPs", costly.reason)
        free = table(Regime("r", "", "", [ERROR, COST, SPEED]), submission(METHODS))
        self.assertEqual(self.ranks(free)["costly"], (1, 1))

    def test_a_budget_may_be_missed_by_a_quarter(self) -> None:
        methods = METHODS | {"near": method(0.2, 0.31, [1.0] * 9), "far": method(0.2, 0.32, [1.0] * 9)}
        ranks = self.ranks(table(Regime("r", "", "", [ERROR, COST], budget=0.25), submission(methods)))
        self.assertIsNotNone(ranks["near"])
        self.assertIsNone(ranks["far"])

    def test_errors_are_geometric_means_over_texts_and_inputs(self) -> None:
        found = table(Regime("r", "", "", [ERROR]), submission(METHODS))
        good = next(row for row in found.rows if row.entry.method == "good").cells[0]
        assert good is not None and not isinstance(good, list)
        # 0.25 and 4 cancel; the mean over inputs is that of log(1) to log(12).
        self.assertAlmostEqual(good.value, 0.1 * math.exp(sum(math.log(1 + i) for i in range(INPUTS)) / INPUTS))

    def test_blocks_of_texts_and_of_elements(self) -> None:
        texts = table(Regime("r", "", "", [Column(["errors"], "error", "e", blocks="texts")]), submission(METHODS))
        self.assertEqual(texts.blocks, INPUTS * TEXTS)
        losses = Column(["errors"], "losses", "loss", scale="linear", blocks="elements")
        elements = table(Regime("r", "", "", [losses]), submission(METHODS))
        self.assertEqual(elements.blocks, INPUTS * 2)
        good = next(row for row in elements.rows if row.entry.method == "good").cells[0]
        assert good is not None and not isinstance(good, list)
        self.assertAlmostEqual(good.value, 0.1 + 5 + 0.5)  # the mean of two elements, and of two texts

    def test_a_method_that_lacks_a_row_is_not_ranked_and_says_why(self) -> None:
        broken = dict(METHODS["good"])
        broken[condition("errors", 3, 1)] = Replicate("failed", "the third head broke it", {})
        slow = dict(METHODS["good"])
        slow[condition("times", 0)] = Replicate("skipped", "it has no decoder", {})
        methods = METHODS | {"broken": broken, "slow": slow}
        found = table(Regime("r", "", "", [ERROR, SPEED], needs=("times",)), submission(methods))
        reasons = {row.entry.method: row.reason for row in found.rows if row.standing is None}
        self.assertEqual(
            reasons,
            {
                "softmax": "every number is compared with it",
                "broken": "the third head broke it",
                "slow": "it has no decoder",
            },
        )
        self.assertIsNotNone(self.ranks(table(Regime("r", "", "", [ERROR]), submission(methods)))["slow"])

    def test_the_front_and_the_times_of_two_machines(self) -> None:
        other = METHODS | {"good": method(0.1, 0.25, [70.0] * 9)}
        found = table(Regime("r", "", "", [ERROR, SPEED]), submission(METHODS), submission(other, "N", "2" * 64))
        rows = {row.entry.method: row for row in found.rows}
        times = rows["good"].cells[1]
        assert isinstance(times, list)
        self.assertEqual(times, [Timed("M", times[0].number), Timed("N", times[1].number)])
        self.assertEqual([one.number.value for one in times], [2, 70])
        on = {
            machine: {name for name, row in rows.items() if row.entry.slug in slugs}
            for machine, slugs in found.front.items()
        }
        # On M, each of the four is faster than those that err less. On N, good is faster than close and the mean of V.
        self.assertEqual(on, {"M": {"costly", "good", "close", "uniform"}, "N": {"costly", "good"}})

    def test_methods_on_devices_have_tables_of_their_own(self) -> None:
        methods = METHODS | {
            "mine:device=cuda": method(0.05, 0.25, [400.0] * 9),
            "mine:device=cpu": method(0.06, 0.25, [4.0] * 9),
        }
        of_processors, of_devices = tables(Regime("r", "t", "w.", [ERROR, SPEED]), submission(methods))
        self.assertEqual((of_processors.regime.name, of_devices.regime.name), ("r", "r-devices"))
        self.assertNotIn("mine:device=cuda", self.ranks(of_processors))
        self.assertEqual(self.ranks(of_processors)["mine:device=cpu"], (2, 2))
        self.assertEqual(self.ranks(of_devices), {"softmax": None, "mine:device=cuda": (1, 1), "uniform": (2, 2)})
        rows = {row.entry.method: row for row in of_devices.rows}
        times = rows["mine:device=cuda"].cells[1]
        assert isinstance(times, list)
        self.assertEqual([(one.machine, one.number.value) for one in times], [("M, H", 400)])
        # Exact attention and the mean of V were timed on the processor, which says nothing there.
        self.assertEqual([rows[name].cells[1] for name in ("softmax", "uniform")], [None, None])
        self.assertEqual(of_devices.front, {"M, H": {rows["mine:device=cuda"].entry.slug}})

    def test_rows_belong_to_the_submitted_method_with_most_arguments(self) -> None:
        one, two = {condition("errors", 1): numbers(error=1)}, {condition("errors", 2): numbers(error=2)}
        measured = Measured({"a:m=7": one, "a:features=trig,m=9": two, "ab:m=7": {}, "b:[a:m=2],r=3": {}}, [], {})
        shared = shares_of(measured, ["a", "a:features=trig", "b:[a:m=2]"])
        self.assertEqual(shared["a"], one)
        self.assertEqual(shared["a:features=trig"], two)
        self.assertEqual(set(shared), {"a", "a:features=trig", "b:[a:m=2]", "ab:m=7"})


if __name__ == "__main__":
    unittest.main()
