#!/usr/bin/python3
"""Tests of scripts/compose.py: the places of the panels, the legend and the title of a figure, and the look of series.

Run as tests/scripts/compose_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import re
import unittest
from unittest import mock

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.texmanager import TexManager
from matplotlib.transforms import Bbox

from example_stores import CURVE, InTemporaryDirectory

import compose
import panel
import plot
import results
import style
from set_by_latex import words_for_latex


class Composing(InTemporaryDirectory):
    def test_places_in_a_figure_are_those_of_every_run(self) -> None:
        figure = self.every_kind()
        read = results.read(self.directory / "kinds.db")
        with matplotlib.rc_context(style.STYLE):
            picture = compose.compose(panel.panels_of(read, figure))
        self.addCleanup(plt.close, picture)
        # The layout's solver errs in the last bits, otherwise in each process, and names in an SVG file hold them all.
        for axes in picture.axes:
            bounds = axes.get_position(original=True).bounds
            rounded = Bbox.from_bounds(*np.round(bounds, 6))
            self.assertEqual(bounds, rounded.bounds)

    def test_latex_prints_the_words_of_figures_unchanged(self) -> None:
        written: list[str] = []

        def make_dvi(cls: type[TexManager], tex: str, fontsize: float) -> str:
            written.append(tex)
            return ""

        with mock.patch.object(TexManager, "make_dvi", classmethod(make_dvi)):
            with words_for_latex():
                for words in ("95 % interval of relative_mse", "10⁻⁷", r"FAVOR$^+$", r"\emph{ours}"):
                    TexManager.make_dvi(words, 8.0)
            TexManager.make_dvi("50 %", 8.0)
        self.assertEqual(
            written,
            [r"95 \% interval of relative\_mse", "10$^{-}$$^{7}$", r"FAVOR$^+$", r"\emph{ours}", "50 %"],
        )

    def test_looks_are_the_same_in_all_panels_and_different_between_series(self) -> None:
        with self.store() as store:
            for i in range(40):
                store.cell(f"local:window={i},m=4", [1.0], m=4)
        drawn = self.panel(store, CURVE)
        looks = compose.series_looks([drawn, drawn])
        self.assertEqual(len({(look.colour, look.marker, str(look.line)) for look in looks.values()}), 40)

    def test_a_panel_has_at_most_eight_colours_and_never_loses_what_is_compared_with(self) -> None:
        with self.store() as store:
            for i in range(10):
                store.cell(f"local:window={i + 1},m=4", [i + 1.0], m=4, series=i)
            store.cell("softmax", [100.0], m=4, series="exact")
            store.cell("performer:m=4", [200.0], m=4, experiment="other:", series="p")
        first, second = {**CURVE, "series": ["series"]}, {**CURVE, "series": ["series"]}
        second["where"] = {"experiment": "other"}
        _, drawn = self.figure(store, first, second)
        grey = {series for series, look in compose.series_looks(drawn).items() if look.colour == style.GREY}
        self.assertEqual(grey, {"series=8", "series=9"})
        _, drawn = self.figure(store, first)
        drawn[0].more_is_better = True
        grey = {series for series, look in compose.series_looks(drawn).items() if look.colour == style.GREY}
        self.assertEqual(grey, {"series=0", "series=1"})
        _, drawn = self.figure(store, first, {**first, "where": {"experiment": "error", "series": [8, 9]}})
        self.assertFalse([look for look in compose.series_looks(drawn).values() if look.colour == style.GREY])

    def test_nothing_lies_over_anything_else(self) -> None:
        drawn = self.panel(self.example(), {**CURVE, "theory": "mse_theory", "references": ["uniform"]})
        with matplotlib.rc_context(style.STYLE):
            picture = compose.compose([drawn] * 3)
            renderer = picture.canvas.get_renderer()
            parts = [axes.get_tightbbox(renderer) for axes in picture.axes]
            parts += [picture.legends[0].get_window_extent(renderer), picture.texts[0].get_window_extent(renderer)]
            plt.close(picture)
        for i, part in enumerate(parts):
            self.assertTrue(
                part.x0 >= 0 and part.y0 >= 0 and part.x1 <= picture.bbox.x1 + 1 and part.y1 <= picture.bbox.y1 + 1, i
            )
            for j, other in enumerate(parts[:i]):
                apart = part.x1 <= other.x0 or other.x1 <= part.x0 or part.y1 <= other.y0 or other.y1 <= part.y0
                self.assertTrue(apart, (i, j))

    def test_the_legend_of_four_long_names_lies_inside_a_figure_of_one_column(self) -> None:
        """As a sweep over features and projections has them: attnbench plot --style paper."""
        with self.store() as store:
            for features in ("positive", "trig"):
                for projection in ("iid", "orthogonal"):
                    method = f"performer:features={features},projection={projection},renormalise=1,sign_fix=0,m"
                    for m in (16, 32):
                        store.cell(f"{method}={m}", [1 / m], m=m)
        drawn = self.panel(store, CURVE)
        self.assertEqual(len(drawn.series), 4)
        self.assertGreater(min(len(drawn.printed(name)) for name in drawn.series), 30)
        with matplotlib.rc_context(style.IN_PAPER.settings):
            picture = compose.compose([drawn], style.IN_PAPER)
            legend = picture.legends[0].get_window_extent(picture.canvas.get_renderer())
            plt.close(picture)
        self.assertGreaterEqual(legend.x0, 0)
        self.assertGreaterEqual(legend.y0, 0)
        self.assertLessEqual(legend.x1, picture.bbox.x1)
        self.assertLessEqual(legend.y1, picture.bbox.y1)

    def test_the_panels_of_a_figure_with_maps_do_not_overlap(self) -> None:
        read = results.read(self.maps().path)
        figure = read.figures[0]
        with matplotlib.rc_context(style.STYLE):
            picture = compose.compose(panel.panels_of(read, figure))
            renderer = picture.canvas.get_renderer()
            parts = [axes.get_tightbbox(renderer) for axes in picture.axes]
            plt.close(picture)
        self.assertEqual(len(parts), 5)  # four panels and a colour bar
        for i, part in enumerate(parts):
            for j, other in enumerate(parts[:i]):
                apart = part.x1 <= other.x0 or other.x1 <= part.x0 or part.y1 <= other.y0 or other.y1 <= part.y0
                self.assertTrue(apart, (i, j))

    def test_a_single_panel_is_as_wide_as_a_column_and_has_no_title(self) -> None:
        self.every_kind()
        drawn = plot.draw(*self.figure(self.store_at("kinds.db"), CURVE), ["svg", "json"], style.IN_PAPER)
        width = float(re.findall(r'viewBox="0 0 (\S+) ', drawn.files["svg"].decode())[0])
        self.assertAlmostEqual(width / 72, 3.35)
        many = compose._arrangement(drawn.panels, style.IN_PAPER, series=13)
        self.assertEqual(many[1], 6.9)  # a legend of so many rows would be longer than the panel
        self.assertNotIn(b">panel<", drawn.files["svg"])
        self.assertIn("Student t", drawn.files["json"].decode())  # the notes are there for the caption


if __name__ == "__main__":
    unittest.main()
