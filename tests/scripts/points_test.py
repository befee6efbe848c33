#!/usr/bin/python3
"""Tests of the points that attnbench computes of the cells of a panel, as scripts/panel.py reads them.

Run as tests/scripts/points_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np

from example_stores import CURVE, MAP, InTemporaryDirectory

import compose
import panels
import results


class Points(InTemporaryDirectory):
    def test_defaults_and_swept_values_are_one_series(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0, 3.0], m=16, theory=2.5)
            store.cell("performer", [0.5, 0.5], m=256, theory=0.25)
        points = self.panel(store, {**CURVE, "theory": "mse_theory"}).points
        self.assertEqual(list(points["series"]), ["performer", "performer"])
        self.assertEqual(list(points["x"]), [16, 256])
        self.assertEqual(list(points["y"]), [2, 0.5])
        self.assertEqual(list(points["theory"]), [2.5, 0.25])
        self.assertEqual(list(points["replicates"]), [2, 2])

    def test_a_median_takes_all_samples_of_all_replicates(self) -> None:
        with self.store() as store:
            store.cell("softmax", [[1.0, 2, 3], [4, 5, 60]], unit="s")
        panel = self.panel(store, {**CURVE, "x": "n", "interval": "median"})
        point = panel.points.iloc[0]
        self.assertEqual([point["y"], point["low"], point["high"], point["samples"]], [3.5, 1, 60, 6])
        self.assertEqual(panels.axis_label(panel, "y"), "mse (s)")

    def test_exponents_have_the_interval_of_the_fits_of_each_sample(self) -> None:
        # Sample b of every point lies on its own power law n^(1 + b / 100), b = 0 ... 8, in a scrambled order of size:
        # the median exponent is that of b = 4, and of nine order statistics the second and the eighth hold it with at
        # least 95 % (2 P(Binomial(9, 1/2) <= 1) = 0.039).
        with self.store() as store:
            for n in (64, 128, 256, 512):
                samples = [(1 + 10 * (b * 5 % 9)) * n ** (1 + b / 100) for b in range(9)]
                store.cell("a", [samples], metric="seconds", unit="s", n=n)
                store.cell("few", [samples[:3]], metric="seconds", unit="s", n=n)
        curve = {**CURVE, "x": ["n"], "y": "seconds", "interval": "median", "slope": True}
        panel = self.panel(store, curve)
        exponents = panel.points.groupby("series")[["exponent", "exponent_low", "exponent_high"]].first()
        np.testing.assert_allclose(exponents.loc["a"], [1.04, 1.01, 1.07])
        few = exponents.loc["few"]
        self.assertAlmostEqual(few["exponent"], 1.01)
        self.assertTrue(np.isnan(few["exponent_low"]))
        self.assertEqual(compose._exponents([panel], "a"), "  ∝ n^1.04±0.03")
        self.assertEqual(compose._exponents([panel], "few"), "  ∝ n^1.01")

    def test_a_crossing_is_where_a_curve_rises_above_one_for_good(self) -> None:
        with self.store() as store:
            for n in (16, 32, 64, 128):
                # (n / c)^2 with c = 30, 31, ..., 38: nine crossings, of which the second and the eighth hold the median
                store.cell("a", [[(n / (30 + b)) ** 2 for b in range(9)]], metric="speedup", n=n)
                store.cell("late", [[n / (100 + 20 * b) for b in range(3)]], metric="speedup", n=n)
                store.cell("never", [[n / 1000] * 9], metric="speedup", n=n)
                store.cell("always", [[n / 8] * 9], metric="speedup", n=n)
        panel = self.panel(store, {**CURVE, "x": ["n"], "y": "speedup", "interval": "median", "crossing": True})
        found = panel.points.groupby("series")[["crossing", "crossing_low", "crossing_high"]].first()
        np.testing.assert_allclose(found.loc["a"], [34, 31, 37])
        self.assertEqual(found.loc["late", "crossing"], 120)  # of 100, 120 and one beyond the last point
        self.assertEqual(
            [compose._crossings([panel, panel], series) for series in ("a", "late", "never", "always")],
            [
                "  above 1 from n = 34±3, 34±3",
                "  above 1 from n = 120, 120",
                "  above 1 from n = >128, >128",
                "  above 1 from n = <16, <16",
            ],
        )

    def test_references_have_no_x_and_ignore_conditions_on_parameters(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16, projection="iid")
            store.cell("uniform", [2.0])
            store.cell("zero", [3.0])
        panel = self.panel(
            store, {**CURVE, "where": {"experiment": "error", "projection": "iid"}, "references": ["uniform", "gone"]}
        )
        self.assertEqual(list(panel.role("reference")["series"]), ["uniform"])
        self.assertTrue(panel.role("reference")["x"].isna().all())
        self.assertIn("No data for the reference gone.", panel.notes)

    def test_a_method_without_the_axis_is_named(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
            store.cell("zero", [3.0])
        self.assertIn("Not drawn, no number for m: zero.", self.panel(store, CURVE).notes)

    def test_what_an_undone_replicate_left_is_not_counted(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16, seed="1")
            store.cell("performer:m=16", [9.0], m=16, seed="2", ending=("invalid", "overflow"))
        self.assertEqual(list(self.panel(store, CURVE).role("measured")["y"]), [1])

    def test_budgets_of_other_names_share_an_axis(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
            store.cell("nystrom:landmarks=32", [1.0], landmarks=32)
        points = self.panel(store, {**CURVE, "x": ["m", "landmarks"]}).points
        self.assertEqual(sorted(zip(points["series"], points["x"])), [("nystrom", 32), ("performer", 16)])

    def test_pooling_of_unlike_cells_is_said(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16, n=64)
            store.cell("performer:m=16", [1.0], m=16, n=128)
        self.assertIn("Each point pools cells that differ in n, nq.", self.panel(store, CURVE).notes)

    def test_a_reference_far_below_all_points_is_said_and_not_drawn(self) -> None:
        with self.store() as store:
            for m in (1, 2):
                store.cell(f"performer:m={m}", [1.0], m=m)
            store.cell("uniform", [0.02])
            store.cell("softmax", [4e-7])
        references = {**CURVE, "references": ["uniform", "softmax"]}
        panel = self.panel(store, references)
        self.assertEqual(list(panel.role("reference")["series"]), ["uniform"])
        self.assertIn("Softmax (exact) lies far below the axes, at 4.0e-07.", panel.notes)
        linear = self.panel(store, {**references, "y_scale": "linear"})
        self.assertEqual(sorted(linear.role("reference")["series"]), ["softmax", "uniform"])

    def test_what_a_log_axis_cannot_show_is_dropped_and_counted(self) -> None:
        with self.store() as store:
            for m, value in ((1, 1.0), (2, 0.0), (4, -1.0), (8, np.inf), (16, -np.inf)):
                store.cell(f"performer:m={m}", [value], m=m)
        logarithmic = self.panel(store, CURVE)
        self.assertEqual(list(logarithmic.role("measured")["x"]), [1])
        self.assertIn("2 points not drawn: not positive on a log axis.", logarithmic.notes)
        self.assertIn("2 points not drawn: not finite.", logarithmic.notes)
        linear = self.panel(store, {**CURVE, "y_scale": "linear"})
        self.assertEqual(list(linear.role("measured")["x"]), [1, 2, 4])

    def test_endings_have_their_place_and_reason(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
            store.cell("performer:m=32", [None, None], m=32, ending=("timed out", "60 s"))
        ending = self.panel(store, CURVE).role("ending").iloc[0]
        self.assertEqual(
            [ending["series"], ending["x"], ending["note"], ending["replicates"]],
            ["performer", 32, "timed out: 60 s", 2],
        )

    def test_profiles_go_over_the_index(self) -> None:
        with self.store() as store:
            store.cell("softmax", [[4.0, 2], [6, 4]])
            store.cell("local:m=4", [[9.0, 9, 9]], n=128, m=4)
        points = self.panel(store, {**CURVE, "kind": "profile", "x": "", "normalise_x": True}).points
        softmax = points[points["series"] == "softmax"]
        self.assertEqual(list(softmax["x"]), [0.5, 1])
        self.assertEqual(list(softmax["y"]), [5, 3])
        self.assertAlmostEqual(softmax["high"].iloc[0], 5 + 12.706205, places=5)
        self.assertEqual(list(points[points["series"] == "local:m=4"]["x"]), [1 / 3, 2 / 3, 1])
        from_zero = self.panel(store, {**CURVE, "kind": "profile", "x": "", "first_index": 0}).points
        self.assertEqual(list(from_zero[from_zero["series"] == "softmax"]["x"]), [0, 1])

    def test_ratios_are_paired_by_replicate_of_the_same_input_and_problem(self) -> None:
        with self.store() as store:
            for n, factor in ((64, 1.0), (128, 100.0)):
                store.cell("a:m=4", [2 * factor, 8 * factor], m=4, n=n, theory=6 * factor)
                store.cell("b:m=4", [1 * factor, 16 * factor, 3.0], m=4, n=n, theory=3 * factor)
        panel = self.panel(store, {**CURVE, "theory": "mse_theory", "ratio_to": "b", "series": ["method", "n"]})
        points = panel.points
        self.assertEqual(set(points["series"]), {"a n=64", "a n=128"})
        half = 12.706205 * np.std(np.log([2, 0.5]), ddof=1) / 2**0.5
        for _, point in points.iterrows():
            self.assertAlmostEqual(point["y"], 1)  # geometric mean of 2 and 1/2
            self.assertAlmostEqual(np.log(point["high"]), half, places=5)
            self.assertAlmostEqual(np.log(point["low"]), -half, places=5)
            self.assertAlmostEqual(point["theory"], 2)
            self.assertEqual(point["replicates"], 2)
        self.assertEqual(panel.unit, "1")

    def test_a_ratio_to_a_method_without_the_axis_holds_at_every_x(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [4.0, 6.0], m=4, projection="iid")
            store.cell("a:m=8", [2.0, 3.0], m=8, projection="iid")
            store.cell("uniform", [2.0, 3.0])
        where = {"experiment": "error", "projection": "iid"}
        points = self.panel(store, {**CURVE, "where": where, "ratio_to": "uniform"}).points
        self.assertEqual(list(points["x"]), [4, 8])
        np.testing.assert_allclose(points["y"].astype(float), [2, 1])

    def test_ratios_that_are_not_positive_are_not_drawn(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [4.0, -6.0], m=4)
            store.cell("b:m=4", [4.0, 6.0], m=4)
        panel = self.panel(store, {**CURVE, "ratio_to": "b"})
        self.assertEqual(len(panel.role("measured")), 0)
        self.assertIn("1 point of a not drawn: a replicate has no ratio to b.", panel.notes)

    def test_a_point_with_a_gap_keeps_its_closed_form_alone(self) -> None:
        with self.store() as store:
            store.cell("a:m=4", [1.0, None], m=4, theory=2.0)
            store.cell("a:m=8", [None, None], m=8, theory=1.0)
            store.cell("a:m=16", [0.5, 0.5], m=16, theory=0.5)
            store.cell("b:m=4", [1.0, None], m=4)
        panel = self.panel(store, {**CURVE, "theory": "mse_theory"})
        drawn = panel.role("measured")
        self.assertEqual(list(drawn["x"]), [4, 8, 16])
        self.assertEqual(list(drawn["theory"]), [2, 1, 0.5])
        self.assertEqual(list(drawn["y"].notna()), [False, False, True])
        self.assertEqual(list(drawn["replicates"]), [1, 0, 2])
        self.assertIn("3 points of a; b not drawn: a replicate has no mse.", panel.notes)

    def test_a_map_has_the_ratio_at_every_tile(self) -> None:
        with self.store() as store:
            for angle in (0.5, 1.0):
                for length in (1, 2):
                    place: dict[str, Any] = {"angle": angle, "length": length}
                    store.cell(f"a:angle={angle},length={length}", [10.0, 1000.0], **place)
                    store.cell(f"b:angle={angle},length={length}", [1.0, 1.0], theory=100 * angle, **place)
        tiles = self.panel(store, MAP).points
        self.assertEqual(list(zip(tiles["x"], tiles["y"])), [(0.5, 1), (0.5, 2), (1, 1), (1, 2)])
        np.testing.assert_allclose(tiles["value"].astype(float), 2)
        self.assertEqual(set(tiles["role"]), {"ratio"})
        with_theory = self.panel(store, {**MAP, "theory": "mse_theory"}).points
        np.testing.assert_allclose(with_theory["value"].astype(float), 2 - np.log10([50, 50, 100, 100]))

    def test_a_tile_where_a_closed_form_is_zero_is_infinite_and_where_both_are_is_absent(self) -> None:
        with self.store() as store:
            for angle, a, b in ((0.5, 0.0, 1.0), (1.0, 0.0, 0.0), (1.5, 1.0, 0.0)):
                store.cell(f"a:angle={angle}", [a], angle=angle, length=1)
                store.cell(f"b:angle={angle}", [b], angle=angle, length=1)
        tiles = self.panel(store, MAP).points
        self.assertEqual(list(zip(tiles["x"], tiles["value"])), [(0.5, -np.inf), (1.5, np.inf)])

    def test_the_winner_is_the_least_mean_and_is_undecided_when_the_interval_says_so(self) -> None:
        with self.store() as store:
            for angle, a in ((0.5, [1.0, 1.1, 1.2]), (1.0, [1.0, 9.0, 3.0])):
                store.cell(f"a:angle={angle}", a, angle=angle, length=1)
                store.cell(f"b:angle={angle}", [4.0, 4.1, 5.0], angle=angle, length=1)
                store.cell(f"c:angle={angle}", [0.1, None, 0.1], angle=angle, length=1)  # a gap: no candidate
        tiles = self.panel(store, {**MAP, "ratio": [], "winner": True}).points
        self.assertEqual(list(tiles["series"]), ["a", "a"])  # means 1.1 and 4.33 against 4.37
        self.assertGreater(tiles["low"].iloc[0], 0)
        self.assertLess(tiles["low"].iloc[1], 0)

    def test_a_map_of_one_series_has_its_mean_at_every_tile(self) -> None:
        with self.store() as store:
            for angle in (0.5, 1.0):
                store.cell(f"a:angle={angle}", [angle, 3 * angle], angle=angle, length=1)
        tiles = self.panel(store, {**MAP, "ratio": []}).points
        self.assertEqual(list(zip(tiles["x"], tiles["value"], tiles["role"])), [(0.5, 1, "value"), (1.0, 2, "value")])
        with self.store("two.db") as store:
            for name in "ab":
                store.cell(f"{name}:angle=1", [1.0], angle=1.0, length=1)
        self.assertEqual(len(self.panel(store, {**MAP, "ratio": []}).points), 0)  # which of them?

    def test_a_trade_has_a_point_a_method_or_a_value_of_its_points(self) -> None:
        with self.store() as store:
            for seed in ("1", "2"):
                for experiment, metric, factor in (("cost:", "seconds", 1.0), ("error:", "mse", 10.0)):
                    store.cell("a", [factor * int(seed)], metric, experiment, seed=seed)
        trade = {"kind": "trade", "where": {}, "x": [], "y": "mse", "x_metric": "seconds"}
        whole = self.panel(store, trade).role("measured")
        self.assertEqual(list(zip(whole["x"], np.round(whole["y"].astype(float), 9))), [(1.5, np.round(200**0.5, 9))])
        apart = self.panel(store, {**trade, "points": ["seed"]}).role("measured")
        self.assertEqual(sorted(zip(apart["x"], np.round(apart["y"].astype(float), 9))), [(1, 10), (2, 20)])

    def test_a_trade_has_the_median_along_x_and_the_geometric_mean_upwards(self) -> None:
        with self.store() as store:
            store.cell("a", [1.0, 4.0, 16.0])
            store.cell("a", [[2.0, 100.0, 3.0]], "seconds", "speed:", unit="s")
        trade = {"title": "t", "kind": "trade", "where": {}, "x": [], "y": "mse", "x_metric": "seconds"}
        point = self.panel(store, {**trade, "area": "seconds"}).role("measured").iloc[0]
        self.assertEqual((point["x"], point["value"]), (3, 3))
        self.assertAlmostEqual(point["y"], 4)

    def test_an_empty_panel_says_why(self) -> None:
        with self.store() as store:
            store.cell("performer:m=16", [1.0], m=16)
        where = {"experiment": "rank", "input": "gaussian:scale=0.5"}
        self.assertEqual(
            self.panel(store, {**CURVE, "where": where, "references": ["uniform"]}).missing,
            "no data: no cell of the results meets the conditions",
        )
        self.assertEqual(
            self.panel(store, {**CURVE, "y": "bias"}).missing, "no data: none of the cells (1) has bias; they have mse"
        )

    def test_timings_of_two_machines_are_two_curves(self) -> None:
        with self.store() as store:
            for machine, seconds in (("here, M, 8 cores", 1.0), ("there, M, 8 cores", 3.0)):
                for m in (16, 32):
                    store.cell(f"a:m={m}", [seconds], m=m, machine=machine)
        points = self.panel(store, CURVE).role("measured")
        self.assertEqual(
            set(zip(points["series"], points["y"])),
            {("a on here, M, 8 cores", 1.0), ("a on there, M, 8 cores", 3.0)},
        )


if __name__ == "__main__":
    unittest.main()
