#!/usr/bin/python3
"""A peer in NumPy for peers_test.py: right for softmax, and with one mistake for each other method."""

import sys
from pathlib import Path
from threading import Thread

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts/bench/peers"))
from protocol import NoForm, Prepared, serve

KNOWN = {"softmax": set(), "linear": set(), "performer": {"m"}, "local": {"window"}}


def attend(q, k, v, causal):
    weights = np.exp(q @ k.swapaxes(1, 2))
    weights = np.tril(weights) if causal else weights
    return weights @ v / weights.sum(-1, keepdims=True)


def on_many_threads(arguments):
    large = np.ones(
        (1000, 1000)
    )  # NumPy lets other threads run while it adds; 16, so that two cores are theirs on a busy machine too
    threads = [Thread(target=lambda: [large.sum() for _ in range(5)]) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return arguments[2]


def prepare(request):
    request.require("NumPy", KNOWN, {"softmax"})
    if request.name == "performer":
        raise NoForm("there is no random number today")
    arguments = (*(request.arrays[name] for name in "qkv"), request.causal)
    call = on_many_threads if request.name == "local" else lambda given: attend(*given)
    return Prepared(lambda: call(arguments), lambda out: out)


if __name__ == "__main__":
    serve(__doc__, prepare, lambda: f"NumPy {np.__version__}")
