#!/usr/bin/python3
"""Ranks: known answers, the error rate on equal methods, and that a small difference is found."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

import numpy as np
from scipy.stats import binom

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "scripts" / part) for part in ("leaderboard", "")]

import standings
from board import mean_number, pareto

BLOCKS = 12


class StandingsTest(unittest.TestCase):
    def test_methods_that_cannot_be_told_apart_share_a_rank(self) -> None:
        random = np.random.default_rng(1)
        heads, noise = random.normal(size=BLOCKS), random.normal(scale=0.01, size=(3, BLOCKS))
        # "worst" and "last" differ by a sign that alternates from head to head.
        values = heads + np.array([[2.0], [0.0], [2.0]]) + noise
        values[0], values[2] = values[0] + 0.1 * (-1.0) ** np.arange(BLOCKS), values[2]
        found = {one.method: one for one in standings.standings(["worst", "best", "last"], values)}
        self.assertEqual((found["best"].rank, found["best"].last_rank, found["best"].equals), (1, 1, ()))
        self.assertEqual((found["worst"].rank, found["worst"].last_rank, found["worst"].equals), (2, 3, ("last",)))
        self.assertEqual((found["last"].rank, found["last"].last_rank, found["last"].equals), (2, 3, ("worst",)))
        self.assertAlmostEqual(found["best"].centre, values[1].mean())

    def test_ranks_are_in_order_and_less_is_better(self) -> None:
        values = np.arange(4)[::-1, None] + np.linspace(0, 1, 20) ** 2
        found = standings.standings(["d", "c", "b", "a"], values)
        self.assertEqual(
            [(one.method, one.rank, one.last_rank) for one in found], [(m, i, i) for i, m in enumerate("abcd", 1)]
        )

    def test_the_procedure_of_benjamini_and_yekutieli(self) -> None:
        # Four tests: the limits are 0.05 k / (4 (1 + 1/2 + 1/3 + 1/4)) = 0.006 k.
        self.assertEqual(sorted(standings.rejected(np.array([0.9, 0.0119, 0.007, 0.03]))), [1, 2])
        self.assertEqual(sorted(standings.rejected(np.array([0.9, 0.0121, 0.007, 0.03]))), [])
        self.assertEqual(sorted(standings.rejected(np.array([0.9, 0.0059, 0.013, 0.03]))), [1])

    def tables_with_a_difference(self, tables: int) -> int:
        """Of equal methods: six with noise on heads that have levels of their own."""
        random = np.random.default_rng(2)
        return sum(
            bool(standings.surely_better(random.normal(size=BLOCKS) + random.normal(size=(6, BLOCKS))).any())
            for _ in range(tables)
        )

    def test_equal_methods_are_told_apart_in_five_percent_of_tables_at_most(self) -> None:
        tables = 200
        most = int(binom.ppf(1 - 1e-6, tables, standings.ERROR_RATE))  # error rate of this test: 1e-6
        self.assertLessEqual(self.tables_with_a_difference(tables), most)

    def test_that_test_finds_ranks_without_a_correction_for_many_pairs(self) -> None:
        corrected = standings.rejected
        standings.rejected = lambda chances: np.flatnonzero(chances <= standings.ERROR_RATE).tolist()
        try:
            self.assertGreater(self.tables_with_a_difference(50), int(binom.ppf(1 - 1e-6, 50, standings.ERROR_RATE)))
        finally:
            standings.rejected = corrected

    def test_a_difference_of_a_tenth_is_found(self) -> None:
        random = np.random.default_rng(3)
        values = random.normal(size=BLOCKS) + random.normal(scale=0.03, size=(8, BLOCKS))
        values[0] -= 0.1
        found = {one.method: one for one in standings.standings(list("abcdefgh"), values)}
        self.assertEqual((found["a"].rank, found["a"].last_rank), (1, 1))
        self.assertTrue(all(found[other].rank == 2 for other in "bcdefgh"))

    def test_nothing_that_differs_and_nothing_at_all(self) -> None:
        found = standings.standings(["a", "b"], np.ones((2, 5)))
        self.assertEqual([(one.rank, one.last_rank) for one in found], [(1, 2), (1, 2)])
        self.assertEqual(standings.standings([], np.zeros((0, 5))), [])
        with self.assertRaises(ValueError):
            standings.standings(["a"], np.array([[1.0, np.nan]]))


class NumbersTest(unittest.TestCase):
    def test_the_interval_of_a_mean_is_students(self) -> None:
        one = mean_number(np.array([1.0, 2.0, 3.0]), float)
        half = 4.302652729911275 / 3**0.5  # t with 2 degrees of freedom at 0.975, times s / sqrt(3) with s = 1
        self.assertAlmostEqual(one.value, 2)
        self.assertAlmostEqual(one.low, 2 - half)
        self.assertAlmostEqual(one.high, 2 + half)

    def test_the_pareto_front(self) -> None:
        points = [
            (0.1, 1.0, "slow"),
            (0.2, 2.0, "middle"),
            (0.3, 1.5, "beaten"),
            (0.4, 8.0, "fast"),
            (0.2, 1.9, "close"),
        ]
        self.assertEqual(pareto(points), {"slow", "middle", "fast"})


if __name__ == "__main__":
    unittest.main()
