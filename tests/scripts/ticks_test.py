#!/usr/bin/python3
"""Tests of scripts/ticks.py: the places of an axis's ticks, and their labels.

Run as tests/scripts/ticks_test.py; needs no attnbench.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import ticks


class Ticks(unittest.TestCase):
    def test_powers_of_two_are_written_in_one_style(self) -> None:
        self.assertEqual(ticks.power_of_two_labels([4, 5]), ["16", "32"])
        self.assertEqual(ticks.power_of_two_labels([10, 20]), ["2¹⁰", "2²⁰"])

    def test_ticks_leave_room_and_stay_inside(self) -> None:
        for low, high, base in ((200.0, 70000.0, 2), (1e-9, 3.0, 10), (0.2, 0.9, 10), (0.31, 0.33, 10), (5.0, 6.0, 2)):
            with self.subTest(low=low, high=high, base=base):
                places, _, labels = ticks.log_ticks(low, high, base, 6)
                self.assertTrue(2 <= len(places) <= 7 and all(low <= place <= high for place in places), places)
                self.assertEqual(len(set(labels)), len(places))

    def test_bytes_have_binary_units(self) -> None:
        self.assertEqual(
            [ticks.byte_label(v) for v in (0, 512, 1024, 1.5 * 2**20, 2**40, 2**51)],
            ["0 B", "512 B", "1 KiB", "1.5 MiB", "1 TiB", "2048 TiB"],
        )
        places, _, labels = ticks.byte_ticks(2.0**15, 2.0**23, True, 7)
        self.assertEqual(labels, ["32 KiB", "128 KiB", "512 KiB", "2 MiB", "8 MiB"])
        self.assertEqual(places, [2.0**k for k in range(15, 24, 2)])
        self.assertEqual(ticks.byte_ticks(0.0, 2.2 * 2**20, False, 4)[2], ["0 B", "1 MiB", "2 MiB"])
        self.assertEqual(ticks.byte_ticks(2.0 * 2**20, 3.0 * 2**20, True, 3)[2], ["2 MiB", "2.5 MiB", "3 MiB"])

    def test_numbers_are_short(self) -> None:
        self.assertEqual(
            [ticks.number_label(v) for v in (0.3, -2.0, 16384.0, 2.5e-5)], ["0.3", "−2", "16384", "2.5×10⁻⁵"]
        )


if __name__ == "__main__":
    unittest.main()
