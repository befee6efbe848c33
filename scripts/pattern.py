#!/usr/bin/python3
"""Draw which keys each row of a sparse pattern sees, as an image.

The input file has one line per row: the indices of its keys, separated by spaces. Row 0 is on top, key 0 on the left.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

SIDE = 4.2  # inches
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}  # equal bytes for equal patterns


def read_mask(path: Path) -> NDArray[np.bool_]:
    """The n x n mask, true where a pair has weight."""
    rows = path.read_text().splitlines()
    mask = np.zeros((len(rows), len(rows)), dtype=bool)
    for i, row in enumerate(rows):
        mask[i, [int(j) for j in row.split()]] = True
    return mask


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="file with one line of key indices per row")
    parser.add_argument("image", type=Path, help="file to write, .png or .svg")
    parser.add_argument("--title", default="", help="line above the image")
    arguments = parser.parse_args()
    if arguments.image.suffix not in METADATA:
        print(f"{arguments.image}: expected a name that ends in .png or .svg", file=sys.stderr)
        return 2
    mask = read_mask(arguments.rows)
    plt.rcParams["svg.hashsalt"] = "attnbench"
    figure, axes = plt.subplots(figsize=(SIDE, SIDE), layout="constrained")
    axes.imshow(mask, cmap="Greys", vmin=0, vmax=1, interpolation="nearest" if len(mask) <= 1024 else "antialiased")
    axes.set_xlabel("key")
    axes.set_ylabel("row")
    axes.set_title(arguments.title, fontsize=7)
    try:
        figure.savefig(arguments.image, dpi=200, metadata=METADATA[arguments.image.suffix])
    except OSError as error:
        print(f"{arguments.image}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
