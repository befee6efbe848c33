#!/usr/bin/python3
"""Tests of scripts/redraw.py and redraw_template.py: the script that draws a figure again from its CSV file.

Run as tests/scripts/redraw_test.py; needs no attnbench.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from example_stores import InTemporaryDirectory

import compose
import plot
import results
import style


def points_in(axes: Any) -> list[tuple[float, float]]:
    """The coordinates of markers of series."""
    marked = [line for line in axes.lines if line.get_marker() in style.MARKERS and len(line.get_xdata()) > 0]
    return sorted((float(x), float(y)) for line in marked for x, y in zip(*line.get_data()))


def redrawn_axes(picture: Any) -> tuple[list[Any], list[Any]]:
    """Panels and colour bars of a redrawn picture: a bar's axes came into being before the bar did."""
    bars = [axes for axes in picture.axes if hasattr(axes, "_colorbar")]
    return [axes for axes in picture.axes if axes not in bars], bars


class Redrawing(InTemporaryDirectory):
    def redrawn(self, script: Path) -> Any:
        """The picture that a script draws."""
        spec = importlib.util.spec_from_file_location("redrawn", script)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with matplotlib.rc_context():
            picture = module.draw()
            picture.canvas.draw()
        return picture

    def test_a_script_redraws_each_kind_of_panel_from_the_csv_alone(self) -> None:
        figure = self.every_kind()
        words = ("--style", "paper", "--figure", "kinds", "curve", "-o", str(self.directory))
        self.assertEqual(self.run_script(plot, str(self.directory / "kinds.db"), *words)[0], 0)
        (self.directory / "kinds.db").unlink()
        for name in ("kinds", "curve"):
            script = self.directory / f"recipe.{name}.py"
            output = script.with_suffix(".pdf")
            output.unlink()
            done = subprocess.run([sys.executable, "-I", script], check=True, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), (f"{output}\n", ""))
            drawn = output.read_bytes()
            self.assertTrue(drawn.startswith(b"%PDF") and b"/FontFile2" in drawn)  # TrueType, embedded
            self.assertIn(
                f"'size': [{style.IN_PAPER.wide if name == 'kinds' else style.IN_PAPER.narrow}", script.read_text()
            )
            imported = re.findall(r"^(?:import|from) (\w+)", script.read_text(), re.M)
            self.assertEqual(set(imported), {"csv", "math", "matplotlib", "pathlib"})
        self.assertEqual(figure.name, "kinds")

    def test_what_is_redrawn_has_the_same_axes_words_and_data(self) -> None:
        figure = self.every_kind()
        read = results.read([self.directory / "kinds.db"])
        drawn = plot.draw(read, figure, ["py"], style.IN_PAPER)
        plot.write_files(self.directory, drawn.named_files())
        redrawn = self.redrawn(self.directory / "recipe.kinds.py")
        with matplotlib.rc_context(style.IN_PAPER.settings):
            picture = compose.compose(drawn.panels, style.IN_PAPER)
            picture.canvas.draw()
        self.addCleanup(plt.close, "all")
        np.testing.assert_allclose(redrawn.get_size_inches(), picture.get_size_inches())
        own = [axes for axes in picture.axes if axes.get_label() != "<colorbar>"]
        bars = [axes for axes in picture.axes if axes.get_label() == "<colorbar>"]
        others, other_bars = redrawn_axes(redrawn)
        self.assertEqual(len(others), len(figure.description["panels"]))
        for panel, axes, other in zip(drawn.panels, own, others):
            with self.subTest(kind=panel.description["kind"]):
                for get in ("get_xlim", "get_ylim", "get_xticks", "get_yticks"):
                    np.testing.assert_allclose(getattr(other, get)(), getattr(axes, get)(), err_msg=get)
                for get in ("get_xlabel", "get_ylabel", "get_xscale", "get_yscale"):
                    self.assertEqual(getattr(other, get)(), getattr(axes, get)(), get)
                for get in ("get_xticklabels", "get_yticklabels"):
                    self.assertEqual(*([text.get_text() for text in getattr(a, get)()] for a in (axes, other)))
                self.assertEqual(other.get_title(loc="left"), axes.get_title(loc="left"))
                self.assertEqual([text.get_text() for text in other.texts], [text.get_text() for text in axes.texts])
                np.testing.assert_allclose(points_in(other), points_in(axes))
                np.testing.assert_allclose(other.get_position().bounds, axes.get_position().bounds, atol=1e-6)
        self.assertEqual([bar.get_ylabel() for bar in other_bars], [bar.get_ylabel() for bar in bars])
        self.assertEqual(*([text.get_text() for text in p.legends[0].get_texts()] for p in (picture, redrawn)))


if __name__ == "__main__":
    unittest.main()
