#!/usr/bin/python3
"""Tests of scripts/results.py: specs, and what is read from a results file.

Run as tests/scripts/results_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import unittest

from example_stores import InTemporaryDirectory

import results


class Specs(unittest.TestCase):
    def test_brackets_hide_commas(self) -> None:
        self.assertEqual(results.split_spec("per-head:[a:x=[b,c],y=1],[d]"), ("per-head", ["[a:x=[b,c],y=1]", "[d]"]))

    def test_numbers_in_names_are_in_order(self) -> None:
        names = ["local:window=128", "local:window=16", "local"]
        self.assertEqual(sorted(names, key=results.natural_order), ["local", "local:window=16", "local:window=128"])


class Reading(InTemporaryDirectory):
    def test_a_newer_source_version_replaces_the_older(self) -> None:
        with self.store() as store:
            store.cell("performer:m=4", [9.0], m=4, version="new", finished="2026-02-01T00:00:00Z")
            store.cell("performer:m=4", [1.0], m=4, version="old")
        read = results.read(store.path)
        self.assertEqual(read.superseded, 1)
        self.assertEqual([float(v) for v in read.of_metric("mse")["values"]], [9])

    def test_what_an_undone_replicate_left_is_not_read(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [1.0], m=4)
            store.cell("b:m=4", [2.0], m=4, ending=("crashed", "signal 11"))
        self.assertEqual([float(v) for v in results.read(store.path).of_metric("mse")["values"]], [1])

    def test_seeds_of_64_bits_are_names(self) -> None:
        self.assertEqual(results.plain("18446744073709551615"), "18446744073709551615")
        self.assertNotEqual(results.plain("18446744073709551615"), results.plain("18446744073709551614"))
        self.assertEqual((results.plain("4"), results.plain("true"), results.plain("a")), (4.0, 1.0, "a"))


if __name__ == "__main__":
    unittest.main()
