#!/usr/bin/python3
"""A peer in NumPy for peers_test.py: right for softmax, and with one mistake for each other method."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts/bench/peers"))
from protocol import NoForm, Prepared, serve

KNOWN = {"softmax": set(), "linear": set(), "performer": {"m"}}


def attend(q, k, v, causal):
    weights = np.exp(q @ k.swapaxes(1, 2))
    weights = np.tril(weights) if causal else weights
    return weights @ v / weights.sum(-1, keepdims=True)


def prepare(request):
    request.require("NumPy", KNOWN, {"softmax"})
    if request.name == "performer":
        raise NoForm("there is no random number today")
    arguments = (*(request.arrays[name] for name in "qkv"), request.causal)
    return Prepared(lambda: attend(*arguments), lambda out: out)


if __name__ == "__main__":
    serve(__doc__, prepare, lambda: f"NumPy {np.__version__}")
