#!/usr/bin/python3
"""Draws exact attention of other libraries, and approximations, beside attnbench's exact attention: the time of each over
that of exact attention in the same blocks, by sequence length. From a results file of scripts/bench/run.sh or peers.sh.

    scripts/bench/peers_figure.py results/bench.db docs/peers.svg
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import results
import style
from medians import median_interval

LIBRARIES = {
    "onnx_runtime": ("ONNX Runtime", "s"),
    "openvino_cpu": ("OpenVINO", "^"),
    "pytorch": ("PyTorch", "o"),
    "jax_cpu": ("JAX", "D"),
}
METHODS = {
    "performer": ("Performer, m = 256", style.COLOURS[style.HUES["positive"]], "o"),
    "local": ("window of 64 keys", style.COLOURS[style.HUES["sparse"]], "s"),
    "linear": ("elu + 1", style.COLOURS[style.HUES["linear"]], "v"),
}

RATIOS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def samples(
    found: results.Results, metric: str, causal: int, method: str, peer: str
) -> dict[float, NDArray[np.float64]]:
    """The samples of a metric by sequence length, of cells on one thread with that peer."""
    cells = found.cells
    chosen = cells[
        (cells["experiment"].map(lambda spec: results.split_spec(spec)[0]) == "speed")
        & (cells["method"] == method)
        & (cells["threads"] == 1)
        & (cells["causal"] == causal)
        & (cells["peer"].fillna("").map(lambda path: Path(path).stem) == peer)
    ]
    rows = found.of_metric(metric)
    by_length: dict[float, NDArray[np.float64]] = {}
    for key, values in zip(rows["key"], rows["values"]):
        if key in chosen.index:
            by_length[float(chosen.loc[key, "n"])] = np.atleast_1d(values)
    return by_length


def draw(axis: Any, ratios: dict[float, NDArray[np.float64]], label: str, **look: Any) -> None:
    """Medians with their intervals, where there are enough samples for one."""
    if not ratios:
        return
    n = sorted(ratios)
    middle, low, high = np.array([[float(x) for x in median_interval(ratios[one])] for one in n]).T
    errors = None if np.isnan(low).any() else [middle - low, high - middle]
    axis.errorbar(n, middle, errors, label=label, markersize=4, linewidth=1.2, **look)


def figure(found: results.Results) -> Any:
    """Two panels, without and with a causal mask."""
    plt.rcParams.update({k: v for k, v in style.STYLE.items() if k in plt.rcParams})
    drawn, axes = plt.subplots(1, 2, figsize=(6.8, 2.9), sharey=True, layout="constrained")
    for causal, axis in enumerate(axes):
        axis.axhline(1, color=style.INK, linewidth=1.4, label="attnbench, exact")
        for peer, (name, marker) in LIBRARIES.items():
            look = {"color": style.FAINT, "marker": marker, "linestyle": style.LINES[1]}
            draw(axis, samples(found, "peer_speedup", causal, "softmax", peer), f"{name}, exact", **look)
        for method, (name, colour, marker) in METHODS.items():
            speedups = samples(found, "speedup", causal, method, "pytorch")
            draw(axis, {n: 1 / v for n, v in speedups.items()}, name, color=colour, marker=marker)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        lengths = sorted(found.cells.loc[found.cells["peer"].fillna("") != "", "n"].unique())
        axis.set_xticks(lengths, [f"{n:.0f}" for n in lengths])
        axis.set_yticks(RATIOS, [f"{ratio:g}" for ratio in RATIOS])
        axis.minorticks_off()
        axis.set_xlabel("sequence length n (tokens)")
        axis.set_title("causal mask" if causal else "no mask")
    axes[0].set_ylabel("time / time of attnbench's exact attention")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="results file with cells that peers took turns with")
    parser.add_argument("figure", type=Path, help="the file to write; the ending says the format (svg, pdf, png)")
    arguments = parser.parse_args()
    try:
        found = results.read(arguments.results)
        if "peer" not in found.cells:
            raise results.Misuse(f"{arguments.results} has no peer; run scripts/bench/peers.sh {arguments.results}")
        figure(found).savefig(arguments.figure, metadata={"Date": None} if arguments.figure.suffix == ".svg" else None)
    except results.Misuse as misuse:
        print(f"peers_figure.py: {misuse}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
