#!/usr/bin/python3
"""Tests of scripts/panels.py, histograms.py and images.py: the axes and intervals of a panel, histograms and images.

Run as tests/scripts/panels_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import io
import unittest
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from example_stores import CURVE, InTemporaryDirectory

import compose
import panels
import plot

# The ends of the median's interval, which are the least and the greatest of seven, are not equally far from it.
BINS = 40  # of a histogram
SKEWED = np.array([1.0, 1.5, 1.75, 2, 3, 6, 20])


class Intervals(InTemporaryDirectory):
    def drawn(self, description: dict[str, Any], **cells: list[Any]) -> tuple[pd.DataFrame, Axes]:
        """The figure's numbers as its CSV has them, and its axes; m = 1, 2, ... of each method."""
        with self.store() as store:
            for method, points in cells.items():
                for m, samples in enumerate(points, start=1):
                    store.cell(f"{method}:m={m}", samples, m=m)
                    store.cell(f"{method}:m={m}", [1e3 * m, 2e3 * m, 9e3 * m], "seconds", "speed:", unit="s", m=m)
        panel = self.panel(store, description)
        self.addCleanup(plt.close, "all")
        picture = compose.compose([panel])
        return pd.read_csv(io.StringIO(plot.numbers([panel]))), picture.axes[0]

    def assert_bars(self, axes: Axes, numbers: pd.DataFrame) -> None:
        """The bars go from low to high of every line of the CSV that has both."""
        bars = [c for c in axes.collections if isinstance(c, LineCollection)]
        segments = [np.asarray(segment) for bar in bars for segment in bar.get_segments()]
        ends = sorted((float(s[0, 0]), *sorted(float(y) for y in s[:, 1])) for s in segments)
        there = numbers[numbers["low"].notna() & numbers["x"].notna()]
        wanted = sorted(zip(there["x"], there["low"], there["high"]))
        self.assertGreater(len(wanted), 1)
        np.testing.assert_allclose(ends, wanted, rtol=1e-9)

    def test_bars_of_a_curve_are_the_intervals_of_its_csv(self) -> None:
        skewed = [list(SKEWED * m) for m in (1, 2, 3, 4)]
        median = {**CURVE, "interval": "median"}
        numbers, axes = self.drawn(median, a=skewed)
        self.assertEqual([tuple(row) for row in numbers[["y", "low", "high"]].to_numpy()][0], (2, 1, 20))
        self.assert_bars(axes, numbers)

    def test_bars_of_a_mean_are_the_intervals_of_its_csv_on_either_scale(self) -> None:
        for scale in ("linear", "log10"):
            with self.subTest(scale=scale):
                self.setUp()
                numbers, axes = self.drawn({**CURVE, "y_scale": scale}, a=[[3.0, 4, 5], [7, 8.0, 10]])
                self.assert_bars(axes, numbers)

    def test_bars_of_circles_are_the_intervals_of_their_csv(self) -> None:
        trade = {"title": "t", "kind": "trade", "where": {}, "y": "mse", "x_metric": "seconds", "y_scale": "log10"}
        skewed = [list(SKEWED * m) for m in (1, 2, 3)]
        numbers, axes = self.drawn({**trade, "x": ["m"], "area": "seconds", "area_label": "time"}, a=skewed)
        self.assert_bars(axes, numbers[numbers["role"] == "measured"])

    def test_the_band_of_many_points_holds_the_intervals_of_their_csv(self) -> None:
        points = [list(SKEWED * (1 + m % 5)) for m in range(panels.BAND_FROM + 3)]
        numbers, axes = self.drawn({**CURVE, "interval": "median", "x_scale": "linear"}, a=points)
        (band,) = (c for c in axes.collections if isinstance(c, PolyCollection))
        corners = {(round(float(x), 6), round(float(y), 6)) for x, y in band.get_paths()[0].vertices}
        for x, low, high in numbers[["x", "low", "high"]].to_numpy():
            self.assertLessEqual({(x, round(low, 6)), (x, round(high, 6))}, corners)
        heights = band.get_paths()[0].vertices[:, 1]
        self.assertEqual((heights.min(), heights.max()), (numbers["low"].min(), numbers["high"].max()))


class Panels(InTemporaryDirectory):
    def test_an_axis_in_bytes_says_so_at_its_ticks(self) -> None:
        with self.store() as store:
            for n in (64, 128, 256):
                store.cell("a", [n * 4096.0], metric="peak_bytes", unit="B", n=n)
        panel = self.panel(store, {**CURVE, "x": ["n"], "y": "peak_bytes", "y_label": "peak memory"})
        self.assertEqual(panels.axis_label(panel, "y"), "peak memory")
        figure, axes = plt.subplots()
        self.addCleanup(plt.close, figure)
        panels.set_axis(axes, "y", panel, panel.points["y"].to_numpy(float))
        figure.canvas.draw()
        self.assertEqual([text.get_text() for text in axes.get_yticklabels()], ["256 KiB", "512 KiB", "1 MiB"])

    def test_axes_of_few_integers_have_a_tick_at_each(self) -> None:
        with self.store() as store:
            for layer in range(4):
                store.cell(f"a:layer={layer}", [1.0], layer=layer)
        panel = self.panel(store, {**CURVE, "x": ["layer"], "x_scale": "linear"})
        figure, axes = plt.subplots()
        self.addCleanup(plt.close, figure)
        panels.set_axis(axes, "x", panel, panel.points["x"].to_numpy(float))
        self.assertEqual(list(axes.get_xticks()), [0, 1, 2, 3])
        panels.set_axis(axes, "x", panel, np.array([0.0, 0.5, 1]))
        self.assertGreater(len(axes.get_xticks()), 2)

    def test_a_histogram_has_the_share_of_every_bin_and_says_what_lies_beyond(self) -> None:
        with self.store() as store:
            store.cell("a", [np.array([0.05, 0.05, 0.95]), np.array([0.05])], m=1)
            store.cell("b", [np.array([0.5, 1.5])], m=1)
        histogram = {
            "title": "t",
            "kind": "histogram",
            "where": {},
            "x": [],
            "y": "mse",
            "range": [0, 1],
            "mark": 1.0,
            "mark_label": "uniform",
        }
        panel = self.panel(store, histogram)
        bins = panel.role("measured")
        self.assertEqual(len(bins), 2 * BINS)
        a = bins[bins["series"] == "a"]
        self.assertEqual(list(a.loc[a["y"] > 0, "y"]), [0.75, 0.25])
        self.assertEqual(float(a.loc[a["y"] > 0, "x_low"].iloc[0]), 0.05)
        self.assertEqual(float(bins.loc[bins["series"] == "b", "y"].sum()), 0.5)
        self.assertIn("1 of 6 values lie beyond the axis.", panel.notes)
        logarithmic = self.panel(store, {**histogram, "x_scale": "log10", "range": [0.01, 1]}).role("measured")
        self.assertTrue(np.allclose(logarithmic["x_high"] / logarithmic["x_low"], 10 ** (2 / BINS)))
        drawn = plot.draw(*self.figure(store, histogram), ["png", "svg"])
        self.assertIn(b"x_low", drawn.files["csv"])

    def test_an_image_is_the_first_replicates_array_and_negative_weights_are_counted(self) -> None:
        exact, other = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.25, -0.25], [0.5, 0.5]])
        with self.store() as store:
            store.cell("exact", [exact, other], metric="attention", experiment="map")
            store.cell("other", [other], metric="attention", experiment="map")
        image = {"title": "t", "kind": "image", "where": {"experiment": "map", "method": "exact"}, "y": "attention"}
        panel = self.panel(store, {**image, "floor": 1e-3})
        assert panel.image is not None
        np.testing.assert_array_equal(panel.image, exact)
        self.assertEqual(panel.notes, [])
        negative = {**image, "floor": 1e-3, "where": {"experiment": "map", "method": "other"}}
        self.assertIn("25.0 % of the weights are negative, in orange.", self.panel(store, negative).notes)
        nothing = {**image, "where": {"experiment": "map", "method": "absent"}}
        self.assertIn("no data", self.panel(store, nothing).missing)
        plot.draw(*self.figure(store, {**image, "floor": 1e-3}, negative, image, nothing), ["png"])


if __name__ == "__main__":
    unittest.main()
