#!/usr/bin/python3
"""Tests of scripts/bench/peers_figure.py: the curves and labels that it draws of known ratios.

Run as tests/scripts/peers_figure_test.py; needs matplotlib and no attnbench.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/bench")]

import peers_figure

# Method, peer, sequence length, causal, threads: the metric that is drawn, and its samples in eight blocks.
CELLS: list[tuple[str, str, int, int, int, str, float]] = [
    ("softmax", "peers/pytorch.py", 64, 0, 1, "peer_speedup", 2.0),
    ("softmax", "peers/pytorch.py", 1024, 0, 1, "peer_speedup", 3.0),
    ("softmax", "peers/pytorch.py", 64, 1, 1, "peer_speedup", 5.0),
    ("softmax", "peers/pytorch.py", 256, 0, 2, "peer_speedup", 9.0),  # on two threads: not drawn
    ("linear", "peers/pytorch.py", 1024, 0, 1, "speedup", 4.0),
]


def measured() -> Any:
    names = ["method", "peer", "n", "causal", "threads", "metric", "middle"]
    cells = pd.DataFrame(CELLS, columns=names).assign(experiment="speed:turn=0.02")
    around = np.array([0.7, 0.8, 0.9, 1.0, 1.0, 1.1, 1.2, 1.3])

    def of_metric(metric: str) -> pd.DataFrame:
        of = cells[cells["metric"] == metric]
        return pd.DataFrame({"key": of.index, "values": [middle * around for middle in of["middle"]]})

    return SimpleNamespace(cells=cells, of_metric=of_metric)


class PeersFigure(unittest.TestCase):
    def test_each_panel_has_the_medians_of_its_mask_and_a_tick_for_each_length(self) -> None:
        for causal, (axis, expected) in enumerate(
            zip(
                peers_figure.figure(measured()).axes,
                [
                    {"PyTorch, exact": [(64, 2.0), (1024, 3.0)], "elu + 1": [(1024, 0.25)]},
                    {"PyTorch, exact": [(64, 5.0)]},
                ],
            )
        ):
            curves = {bars.get_label(): bars.lines[0].get_xydata() for bars in axis.containers}
            self.assertEqual({name: [tuple(point) for point in curve] for name, curve in curves.items()}, expected)
            self.assertEqual([tick.get_text() for tick in axis.get_xticklabels()], ["64", "256", "1024"])
            self.assertEqual(axis.get_title(), ["no mask", "causal mask"][causal])
            self.assertEqual(axis.get_yscale(), "log")

    def test_bars_are_the_intervals_of_medians_where_there_are_enough_blocks(self) -> None:
        def bars(blocks: int) -> Any:
            axis = plt.subplots()[1]
            peers_figure.draw(axis, {64.0: np.arange(1.0, blocks + 1)}, "a curve")
            return axis.containers[0]

        self.assertFalse(bars(5).has_yerr)
        self.assertEqual([list(end) for end in bars(8).lines[2][0].get_segments()[0]], [[64, 1], [64, 8]])


if __name__ == "__main__":
    unittest.main()
