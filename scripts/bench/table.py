#!/usr/bin/python3
"""Compares the performance targets of the engines with a results file of scripts/bench/run.sh, one line per target.

    scripts/bench/table.py results/bench.db

Ratios are medians over blocks, with distribution-free 95 % intervals; a block is one pair of adjacent turns.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import results
from medians import median_interval

HEADS = {"n": 4096, "heads": 8}
BUDGETS = ("blocks", "block", "clusters", "codes", "k", "landmarks", "m", "r", "rounds", "stride", "top", "window")
# Asked of one call of 8 heads on one thread; methods with a causal form are measured with a mask as well.
ROOFLINES = {
    "softmax": 0.9,
    "performer": 0.9,
    "performer:features=trig": 0.9,
    "linear": 0.85,
    "local": 0.75,
    "longformer": 0.75,
    "bigbird": 0.75,
    "truncated": 0.75,
    "sink-window": 0.75,
    "nystrom": 0.8,
    "vq": 0.8,
    "linformer": 0.8,
    "clustered": 0.8,
    "reformer": 0.8,
    "combine": 0.8,
}
NAMES = {
    "softmax": "exact softmax",
    "performer": "performer m=256",
    "linear": "linear elu",
    "performer:features=trig": "performer, trig",
}


@dataclass(frozen=True)
class Line:
    """One row of the table. asked: the target; more: whether larger values are better."""

    what: str
    asked: float | None
    values: NDArray[np.float64]
    more: bool = True
    unit: str = ""

    def text(self) -> str:
        if not len(self.values):
            return f"{self.what:<84} {self.asked_text():>9}   not measured"
        middle, low, high = (float(x) for x in median_interval(self.values))
        held = "" if self.asked is None else "yes" if (middle >= self.asked) == self.more else "NO"
        interval = f"[{low:.3g}, {high:.3g}]" if math.isfinite(low) and len(self.values) > 1 else ""
        return f"{self.what:<84} {self.asked_text():>9}   {middle:<8.3g} {interval:<18} {held}"

    def asked_text(self) -> str:
        return "" if self.asked is None else f"{'>=' if self.more else '<='} {self.asked:g}{self.unit}"


def _matching(cells: pd.DataFrame, where: dict[str, Any]) -> pd.DataFrame:
    """The cells whose columns have these values. An experiment is named without its options."""
    chosen = np.ones(len(cells), bool)
    for column, wanted in where.items():
        found = cells[column].map(results.plain)
        if column == "experiment":
            found = found.map(lambda spec: results.split_spec(spec)[0])
        chosen &= (found == results.plain(wanted)).to_numpy()
    return cells[chosen]


def _without_budgets(spec: str) -> str:
    name, arguments = results.split_spec(spec)
    kept = [argument for argument in arguments if argument.partition("=")[0] not in BUDGETS]
    return f"{name}:{','.join(kept)}" if kept else name


class Table:
    """The lines, from one results file."""

    def __init__(self, path: Path) -> None:
        self.all = results.read(path)
        # Products of bfloat16 count only where they are asked for.
        self.cells = self.all.cells[self.all.cells["precision"] != "bf16"]

    def values(self, metric: str, **where: Any) -> NDArray[np.float64]:
        """All samples of a metric from the matching cells, blocks and replicates concatenated. Cells that a peer took turns
        with have other numbers of blocks: they count only where a peer is asked for.
        """
        cells = self.all.cells if "precision" in where else self.cells
        if "peer" in cells and "peer" not in where:
            cells = cells[cells["peer"].fillna("") == ""]
        keys = _matching(cells, where).index
        found = self.all.of_metric(metric)
        found = found[found["key"].isin(keys)]
        return np.concatenate([np.atleast_1d(v).ravel() for v in found["values"]]) if len(found) else np.array([])

    def lines(self) -> Iterator[Line]:
        yield from self.rooflines()
        yield from self.peers()
        yield from self.threads()
        yield from self.bfloat16()
        yield from self.lengths()
        yield from self.field()
        yield from self.since_2022()
        yield from self.decoding()
        yield from self.gradients()

    def rooflines(self) -> Iterator[Line]:
        for causal in (0, 1):
            for method, asked in ROOFLINES.items():
                found = self.values(
                    "roofline_fraction", experiment="speed", method=method, causal=causal, threads=1, **HEADS
                )
                if causal == 0 or len(found):
                    yield Line(f"fraction of the roofline: {title(method, causal)}", asked, found)
        peak = self.values("fma_peak", experiment="speed", method="softmax", causal=0, threads=1, **HEADS)
        flops = self.values("gflops", experiment="speed", method="softmax", causal=0, threads=1, **HEADS)
        yield Line("fraction of the multiply-add peak: exact softmax", 0.8, flops * 1e9 / peak)
        for method, n in self.combined():
            found = self.values("speedup", experiment="speed", method=method, n=n, heads=1)
            yield Line(f"times faster than exact attention at a quarter of its FLOPs: {method}, n = {n:.0f}", 1, found)

    def combined(self) -> list[tuple[str, float]]:
        """The cells of combine with budgets of their own."""
        cells = _matching(self.cells, {"experiment": "speed", "heads": 1})
        cells = cells[cells["method"].str.startswith("combine:") & (cells["n"] < HEADS["n"])]
        return sorted(zip(cells["method"], cells["n"]), key=lambda cell: cell[1])

    def peers(self) -> Iterator[Line]:
        """Every peer of each method, mask, number of threads and length; the fastest one first, and named so."""
        cells = _matching(self.cells, {"experiment": "speed"})
        if "peer" not in cells:
            return
        cells = cells[cells["peer"].fillna("") != ""]
        for key, group in cells.groupby(["method", "causal", "threads", "n", "heads"], sort=True):
            method, causal, threads, n, heads = key
            where = {
                "experiment": "speed",
                "method": method,
                "causal": causal,
                "threads": threads,
                "n": n,
                "heads": heads,
            }
            found = {peer: self.values("peer_speedup", peer=peer, **where) for peer in group["peer"].unique()}
            ratios = sorted((float(np.median(x)), Path(peer).stem, x) for peer, x in found.items() if len(x))
            for place, (_, peer, samples) in enumerate(ratios):
                what = f"times faster than {peer}: {title(method, causal)}, n = {n:.0f}, threads {threads:.0f}"
                asked = (1.2 if method == "softmax" else 1.5) if place == 0 else None
                yield Line(f"{what}{'' if place else ' (fastest)'}", asked, samples)

    def threads(self) -> Iterator[Line]:
        for method in ("softmax", "performer", "linear"):
            for causal in (0, 1):
                one, two = (self.turns_of_threads(method, causal, t) for t in (1, 2))
                count = min(len(one), len(two))
                yield Line(f"two threads against one: {title(method, causal)}", 1.8, one[:count] / two[:count])

    def turns_of_threads(self, method: str, causal: int, threads: int) -> NDArray[np.float64]:
        """Seconds from the runs with five blocks, which alternate between one thread and two."""
        return self.values(
            "seconds", experiment="speed", method=method, causal=causal, threads=threads, blocks=5, **HEADS
        )

    def bfloat16(self) -> Iterator[Line]:
        """Seconds in float over those with products of bfloat16, whose runs alternate."""
        where = {"experiment": "speed", "heads": 2}
        cells = _matching(self.cells, where)
        for method, n in sorted(set(zip(cells["method"], cells["n"]))):
            turns = [
                self.values("seconds", method=method, n=n, precision=precision, **where)
                for precision in ("f32", "bf16")
            ]
            count = min(map(len, turns))
            what = f"float against products of bfloat16: {title(method, 0)}, n = {n:.0f}, two heads"
            yield Line(what, None, turns[0][:count] / turns[1][:count])

    def lengths(self) -> Iterator[Line]:
        cells = _matching(self.cells, {"experiment": "speed", "heads": 1, "pair": True})
        cells = cells[cells["blocks"] != 6]  # since_2022
        longest = cells["n"].max()
        for causal in (0, 1):
            for method in dict.fromkeys(cells["method"]):
                where = {"experiment": "speed", "method": method, "causal": causal, "heads": 1}
                sizes = sorted(_matching(self.cells, where)["n"].unique())
                if len(sizes) < 2:
                    continue
                samples = [self.values("seconds", n=n, **where) for n in sizes]
                count = min(map(len, samples))
                slopes = [
                    np.polyfit(np.log(sizes), np.log([seconds[b] for seconds in samples]), 1)[0] for b in range(count)
                ]
                span = f"n = {sizes[0]:.0f} to {sizes[-1]:.0f}"
                yield Line(f"exponent of time, {span}: {title(method, causal)}", 1.05, np.array(slopes), more=False)
        for causal in (0, 1):
            for method in dict.fromkeys(cells["method"]):
                found = self.values("peak_bytes", experiment="speed", method=method, causal=causal, heads=1, n=longest)
                if len(found):
                    what = f"MiB beyond inputs and output, n = {longest:.0f}: {title(method, causal)}"
                    yield Line(what, 16, found / 2**20, more=False)

    def field(self) -> Iterator[Line]:
        """Exponents of time of the methods whose budgets were matched at each length."""
        where = {"experiment": "speed", "heads": 1, "pair": False}
        cells = _matching(self.cells, where)
        names = cells["method"].map(lambda spec: _without_budgets(spec))
        for key, of_name in cells.groupby(names):
            name = str(key)
            seconds = [
                self.values("seconds", method=m, n=n, **where) for n, m in sorted(zip(of_name["n"], of_name["method"]))
            ]
            sizes = sorted(of_name["n"])
            count = min(map(len, seconds))
            if len(sizes) < 2 or count == 0:
                continue
            slopes = [np.polyfit(np.log(sizes), np.log([s[b] for s in seconds]), 1)[0] for b in range(count)]
            # By formula: n^1.5 at best for the first three (blocks with blocks; a window and a column), n log n for fnet.
            asked = None if name in ("sinkhorn", "strided", "sparse-fixed", "fnet") else 1.1
            yield Line(f"exponent, equal FLOPs a token: {name}", asked, np.array(slopes), more=False)
            peak = self.values("peak_bytes", method=of_name.sort_values("n")["method"].iloc[-1], n=sizes[-1], **where)
            yield Line(f"MiB beyond inputs and output, n = {sizes[-1]:.0f}: {name}", None, peak / 2**20)

    def since_2022(self) -> Iterator[Line]:
        """Exact attention's time over that of each method at a tenth of its FLOPs."""
        where = {"experiment": "speed", "heads": 1, "pair": True, "blocks": 6, "n": 16384}
        for method in dict.fromkeys(_matching(self.cells, where)["method"]):
            found = self.values("speedup", method=method, **where)
            yield Line(f"times faster than exact attention at a tenth of its FLOPs: {method}", 4, found)

    def decoding(self) -> Iterator[Line]:
        for method in ("linear", "performer"):
            found = self.values("growth", experiment="decode", method=method, n=65000)
            yield Line(f"time per token, position 65000 over 1000: {NAMES[method]}", 1.05, found, more=False)
        for method, asked in (("softmax", 0.85), ("linear", None)):
            found = self.values("bandwidth_fraction", experiment="decode", method=method, n=65000)
            yield Line(f"fraction of the memory bandwidth, position 65000: {NAMES[method]}", asked, found)

    def gradients(self) -> Iterator[Line]:
        for method, asked in (("performer", 3.0), ("linear", 3.0), ("softmax", None)):
            found = self.values("backward_over_forward", experiment="training-step", method=method, **HEADS)
            yield Line(f"backward over forward: {title(method, 1)}", asked, found, more=False)
            found = self.values("backward_roofline_fraction", experiment="training-step", method=method, **HEADS)
            yield Line(f"fraction of the roofline, backward: {title(method, 1)}", 0.8, found)


def title(method: str, causal: int) -> str:
    return ("causal " if causal else "") + NAMES.get(method, method)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="results file of scripts/bench/run.sh")
    try:
        table = Table(parser.parse_args().results)
    except results.Misuse as misuse:
        sys.exit(f"table.py: {misuse}")
    print(f"{'float, d = dv = 64, 8 heads unless said':<84} {'asked':>9}   measured")
    for line in table.lines():
        print(line.text())


if __name__ == "__main__":
    main()
