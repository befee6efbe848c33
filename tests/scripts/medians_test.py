#!/usr/bin/python3
"""Tests of scripts/medians.py: the interval of a median.

Run as tests/scripts/medians_test.py; needs no attnbench.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

import numpy as np

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import medians


class Medians(unittest.TestCase):
    def test_median_interval_is_a_pair_of_order_statistics(self) -> None:
        # Binomial(10, 1/2): P(<= 1) = 11/1024 = 0.0107, P(<= 2) = 56/1024 = 0.0547, so the second and the ninth of ten.
        samples = np.array([30, 10, 20, 50, 40, 90, 80, 70, 60, 100.0])
        self.assertEqual([float(v) for v in medians.median_interval(samples)], [55, 20, 90])

    def test_six_samples_are_the_fewest_for_a_median_interval(self) -> None:
        # 2 / 2^6 = 0.031 but 2 / 2^5 = 0.0625
        self.assertEqual([float(v) for v in medians.median_interval(np.arange(6.0))], [2.5, 0, 5])
        self.assertTrue(np.isnan(medians.median_interval(np.arange(5.0))[1]))


if __name__ == "__main__":
    unittest.main()
