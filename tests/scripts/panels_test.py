#!/usr/bin/python3
"""Tests of scripts/panels.py, histograms.py and images.py: the axes of a panel, histograms and images.

Run as tests/scripts/panels_test.py; needs no attnbench.
"""

from __future__ import annotations

import unittest

import matplotlib.pyplot as plt
import numpy as np

from example_stores import CURVE, InTemporaryDirectory, figure_of

import aggregate
import panels
import plot
import results


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
        self.assertEqual(len(bins), 2 * aggregate.HISTOGRAM_BINS)
        a = bins[bins["series"] == "a"]
        self.assertEqual(list(a.loc[a["y"] > 0, "y"]), [0.75, 0.25])
        self.assertEqual(float(a.loc[a["y"] > 0, "x_low"].iloc[0]), 0.05)
        self.assertEqual(float(bins.loc[bins["series"] == "b", "y"].sum()), 0.5)
        self.assertIn("1 of 6 values lie beyond the axis.", panel.notes)
        logarithmic = self.panel(store, {**histogram, "x_scale": "log10", "range": [0.01, 1]}).role("measured")
        self.assertTrue(np.allclose(logarithmic["x_high"] / logarithmic["x_low"], 10 ** (2 / aggregate.HISTOGRAM_BINS)))
        drawn = plot.draw(results.read([store.path]), figure_of(histogram), ["png", "svg"])
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
        plot.draw(results.read([store.path]), figure_of({**image, "floor": 1e-3}, negative, image, nothing), ["png"])


if __name__ == "__main__":
    unittest.main()
