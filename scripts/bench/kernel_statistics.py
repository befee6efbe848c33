#!/usr/bin/python3
"""Times kernel statistics in attnbench and in NumPy: the same estimate, side by side in one run.

Both compute the relative MSE of the kernel estimate of positive orthogonal features over many draws and some pairs:
`attnbench run kernel-error` (the whole process, on all allowed cores) and NumPy (batched normals, batched QR with the
sign fix, one matrix product and one exponential per batch). Turns alternate; the ratio of each pair of turns is one
sample. Prints the median of NumPy's time over attnbench's with its 95 % interval, and both estimates of the MSE.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent.parent


def numpy_mse(d: int, m: int, draws: int, pairs: int, scale: float, seed: int) -> float:
    """The mean over pairs of E (K'/K - 1)^2, in batches of draws that fit the cache."""
    rng = np.random.default_rng(seed)
    q, k = (scale * d**-0.25 * rng.standard_normal((pairs, d)) for _ in range(2))
    z = np.ascontiguousarray((q + k).T)
    constant = -((q + k) ** 2).sum(axis=1) / 2 - np.log(m)
    blocks = -(-m // d)
    batch = max(1, 65536 // (blocks * d * d))
    total = np.zeros(pairs)
    for first in range(0, draws, batch):
        count = min(batch, draws - first)
        orthogonal, r = np.linalg.qr(rng.standard_normal((count * blocks, d, d)))
        signs: NDArray[np.float64] = np.sign(np.diagonal(r, axis1=1, axis2=2))
        rows = (orthogonal * signs[:, None, :]) * np.sqrt(rng.chisquare(d, (count * blocks, d)))[:, :, None]
        rows = rows.reshape(count, blocks * d, d)[:, :m].reshape(count * m, d)
        ratio = np.exp(rows @ z + constant).reshape(count, m, pairs).sum(axis=1)
        total += ((ratio - 1) ** 2).sum(axis=0)
    return float(total.mean() / draws)


def run_attnbench(
    program: Path, results: Path, d: int, m: int, draws: int, pairs: int, scale: float, seed: int
) -> None:
    command = [str(program), "run", f"kernel-error:draws={draws},pairs={pairs},precision=0"]
    command += ["--method", f"performer:m={m}", "--input", f"gaussian:scale={scale}", "-n", str(pairs), "-d", str(d)]
    subprocess.run([*command, "--seed", str(seed), "--results", str(results)], check=True, stdout=subprocess.DEVNULL)


def attnbench_mse(program: Path, results: Path) -> float:
    table = subprocess.run(
        [str(program), "export", str(results), "--arrays", "--metric", "pair_mse"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = csv.DictReader(io.StringIO(table))
    return float(np.mean([float(row["value"]) for row in rows if row["metric"] == "pair_mse"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/attnbench")
    parser.add_argument("--turns", type=int, default=9, help="pairs of turns for each size")
    parser.add_argument("--scale", type=float, default=0.5, help="standard deviation of the entries of Q and K")
    arguments = parser.parse_args()
    if not arguments.program.exists():
        print(f"{arguments.program} is not built; run scripts/build.sh release attnbench", file=sys.stderr)
        return 2
    print("  d    m  draws  pairs  numpy/attnbench  95 % interval      MSE numpy  MSE attnbench")
    for d, m, draws, pairs in ((16, 64, 32768, 64), (64, 256, 4096, 64), (128, 256, 2048, 64)):
        ratios: list[float] = []
        mses: list[tuple[float, float]] = []
        for turn in range(arguments.turns):
            size = (d, m, draws, pairs, arguments.scale, turn + 1)
            with tempfile.TemporaryDirectory() as folder:
                results = Path(folder) / "results.db"
                started = time.perf_counter()
                theirs = numpy_mse(*size)
                between = time.perf_counter()
                run_attnbench(arguments.program, results, *size)
                ratios.append((between - started) / (time.perf_counter() - between))
                mses.append((theirs, attnbench_mse(arguments.program, results)))
        ratios.sort()
        k = {n: c for n, c in ((6, 0), (9, 1), (12, 2), (15, 3))}.get(arguments.turns, 0)
        means = np.mean(mses, axis=0)
        print(
            f"{d:3d} {m:4d} {draws:6d} {pairs:6d} {np.median(ratios):16.2f}  [{ratios[k]:.2f}, {ratios[-1 - k]:.2f}]"
            f"  {means[0]:14.4g} {means[1]:14.4g}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
