#!/usr/bin/python3
"""The overhead of attnbench on a method in PyTorch, beside calling its class directly.

    PYTHONPATH=build/release/python OMP_NUM_THREADS=1 build/torch/bin/python scripts/bench/torch_overhead.py

Two calls of the same instance take turns, and change which of them begins: attend of the class on tensors, and the function
that attnbench calls, on arrays, without the conversion that attnbench does not count either. The overhead is the median of
their ratios, less 1, with its 95 % interval.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch
from attnbench import _native
from attnbench.entry import Entry
from attnbench.entries import entry_of
from attnbench.torch_declaration import TorchDeclaration
from attnbench.torch_methods import METHODS

sys.path.append(str(Path(__file__).resolve().parents[1]))  # behind the module with its built part
from medians import median_interval


class Conversions:
    """In place of the function that tells the harness of conversions: keeps their sum."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, seconds: float) -> None:
        self.seconds += seconds


def declared(name: str) -> TorchDeclaration:
    entries: list[Entry] = [entry_of(cls, f"{cls.__module__}.py") for cls in METHODS]
    found = [entry for entry in entries if entry.name == name]
    assert len(found) == 1 and isinstance(found[0], TorchDeclaration), f"expected one of {[e.name for e in entries]}"
    return found[0]


def seconds_of(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="torch-softmax", help="one of attnbench.torch_methods [%(default)s]")
    parser.add_argument("-n", type=int, default=1024, help="[%(default)s]")
    parser.add_argument("-d", type=int, default=64, help="[%(default)s]")
    parser.add_argument("--heads", type=int, default=8, help="[%(default)s]")
    parser.add_argument("--device", default="cpu", help="[%(default)s]")
    parser.add_argument("--dtype", default="float32", help="[%(default)s]")
    parser.add_argument("--pairs", type=int, default=201, help="turns of each [%(default)s]")
    asked = parser.parse_args()

    declaration = declared(asked.method)
    values = {p.name: p.default for p in declaration.parameters}
    values.update(device=asked.device, dtype=asked.dtype)
    shape = (asked.n, asked.n, asked.d, asked.d, False, 0, asked.n, "float32")
    draws = [(values, shape, seed, None, None, 0, 1) for seed in range(asked.heads)]
    through = declaration.attend_all(draws, len(draws))
    placed = declaration._make_all(draws, len(draws))
    place = placed._place
    arrays = np.random.default_rng(1).standard_normal((3, asked.heads, asked.n, asked.d)).astype(np.float32)
    arrays[:2] *= asked.d**-0.25
    tensors = [place.tensor(x) for x in arrays]
    conversions = Conversions()
    _native.add_conversion = conversions

    def directly() -> None:
        with torch.no_grad():
            placed._attend(*tensors, False)
        place.synchronise()

    def by_attnbench() -> None:
        through(*arrays, False)

    for call in (directly, by_attnbench, directly, by_attnbench):
        call()
    own, ours, converted = [], [], []
    for pair in range(asked.pairs):
        conversions.seconds = 0.0
        if pair % 2:
            whole = seconds_of(by_attnbench)
            own.append(seconds_of(directly))
        else:
            own.append(seconds_of(directly))
            whole = seconds_of(by_attnbench)
        ours.append(whole - conversions.seconds)
        converted.append(conversions.seconds)
    ratio, low, high = median_interval(np.array(ours) / np.array(own))
    print(f"{asked.method}, n = {asked.n}, d = {asked.d}, {asked.heads} heads, {asked.dtype} on {asked.device}")
    print(f"directly      {1e3 * np.median(own):9.3f} ms")
    print(f"by attnbench  {1e3 * np.median(ours):9.3f} ms, conversion {1e3 * np.median(converted):.3f} ms not counted")
    print(
        f"overhead      {100 * (ratio - 1):+9.3f} % [{100 * (low - 1):+.3f}, {100 * (high - 1):+.3f}], {asked.pairs} pairs"
    )


if __name__ == "__main__":
    main()
