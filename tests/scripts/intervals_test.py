#!/usr/bin/python3
"""Tests of scripts/intervals.py: intervals of means and medians, and fitted exponents.

Run as tests/scripts/intervals_test.py; needs no attnbench.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

import numpy as np

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import intervals


class Intervals(unittest.TestCase):
    def test_mean_has_the_interval_of_student(self) -> None:
        # mean 3, standard deviation sqrt(2.5), t(4, 0.975) = 2.776445: half width 2.776445 sqrt(2.5 / 5)
        y, low, high = (float(v) for v in intervals.mean_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0])))
        self.assertAlmostEqual(y, 3)
        self.assertAlmostEqual(low, 3 - 1.963243, places=6)
        self.assertAlmostEqual(high, 3 + 1.963243, places=6)

    def test_two_replicates_have_a_wide_interval_and_one_has_none(self) -> None:
        self.assertAlmostEqual(float(intervals.mean_interval(np.array([0.0, 2.0]))[2]), 1 + 12.706205, places=5)
        self.assertTrue(np.isnan(intervals.mean_interval(np.array([7.0]))[1]))

    def test_median_interval_is_a_pair_of_order_statistics(self) -> None:
        # Binomial(10, 1/2): P(<= 1) = 11/1024 = 0.0107, P(<= 2) = 56/1024 = 0.0547, so the second and the ninth of ten.
        samples = np.array([30, 10, 20, 50, 40, 90, 80, 70, 60, 100.0])
        self.assertEqual([float(v) for v in intervals.median_interval(samples)], [55, 20, 90])

    def test_six_samples_are_the_fewest_for_a_median_interval(self) -> None:
        # 2 / 2^6 = 0.031 but 2 / 2^5 = 0.0625
        self.assertEqual([float(v) for v in intervals.median_interval(np.arange(6.0))], [2.5, 0, 5])
        self.assertTrue(np.isnan(intervals.median_interval(np.arange(5.0))[1]))

    def test_intervals_go_over_the_first_axis(self) -> None:
        samples = np.random.default_rng(1).normal(size=(9, 4))
        for interval in intervals.INTERVALS.values():
            columns = [[float(v) for v in interval(samples[:, i])] for i in range(4)]
            np.testing.assert_allclose(np.stack(interval(samples), axis=1), columns)

    def test_fitted_exponents_are_those_of_the_last_points(self) -> None:
        x = np.array([1, 2, 4, 8, 16.0])
        y = np.array([[5, 7], [5, 7], [16, 2], [64, 4], [256.0, 8]])
        np.testing.assert_allclose(intervals.fitted_exponents(x, y), [2, 1])
        self.assertEqual(len(intervals.fitted_exponents(x[:1], y[:1])), 0)
        y[3, 1] = 0  # a point of which one sample has no logarithm: 2, 4 and 16 remain, slopes log2(256/5) / 3 about
        np.testing.assert_allclose(
            intervals.fitted_exponents(x, y)[0], np.polyfit([1, 2, 4], np.log2([5, 16, 256]), 1)[0]
        )


if __name__ == "__main__":
    unittest.main()
