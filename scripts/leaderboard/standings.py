"""Ranks with critical-difference groups: which methods differ significantly, and which cannot be told apart.

Each method has one number a block, such as the mean log error on one head. Two methods are compared block by block by
Wilcoxon's signed-rank test, two-sided, whose null hypothesis is that differences are symmetric about zero. The p-values of
all pairs of a table are judged together by the procedure of Benjamini and Yekutieli (2001), which holds for tests that
depend on each other in any way: of the pairs that are told apart, a share of at most ERROR_RATE is expected to be equal.

A method's rank is 1 + the number of methods that are significantly better, so that methods with the same superiors share a
rank. Its last rank is the number of methods minus the number that are significantly worse. Its critical-difference group is
all methods that cannot be told apart from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

ERROR_RATE = 0.05


@dataclass(frozen=True)
class Standing:
    method: str
    centre: float  # mean over the blocks
    rank: int
    last_rank: int
    equals: tuple[str, ...]  # the other methods of its critical-difference group


def standings(methods: Sequence[str], values: NDArray[np.float64]) -> list[Standing]:
    """The methods in order of their ranks. values: [methods, blocks], finite, less is better."""
    if values.shape[:1] != (len(methods),) or not np.isfinite(values).all():
        raise ValueError(f"expected a finite number for each of {len(methods)} methods and each block")
    better = surely_better(values)
    found = [
        Standing(
            method,
            float(values[i].mean()),
            1 + int(better[:, i].sum()),
            len(methods) - int(better[i].sum()),
            tuple(other for j, other in enumerate(methods) if j != i and not better[i, j] and not better[j, i]),
        )
        for i, method in enumerate(methods)
    ]
    return sorted(found, key=lambda one: (one.rank, one.last_rank, one.centre, one.method))


def surely_better(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[i, j]: whether method i is better than method j, at the error rate for all pairs together."""
    count = len(values)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    chances = np.array([_p_value(values[i] - values[j]) for i, j in pairs])
    better = np.zeros((count, count), bool)
    for place in rejected(chances):
        i, j = pairs[place]
        first = np.median(_pairwise_means(values[i] - values[j])) < 0
        better[(i, j) if first else (j, i)] = True
    return better


def _p_value(differences: NDArray[np.float64]) -> float:
    """1 where nothing differs. Blocks without a difference decide nothing and are left out (Wilcoxon's own rule)."""
    differing = differences[differences != 0]
    return float(wilcoxon(differing).pvalue) if len(differing) else 1.0


def _pairwise_means(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Walsh averages, whose median is the shift that the test is about (Hodges and Lehmann 1963)."""
    first, second = np.triu_indices(len(differences))
    return (differences[first] + differences[second]) / 2


def rejected(chances: NDArray[np.float64]) -> list[int]:
    """Places of the p-values that the procedure rejects."""
    count = len(chances)
    order = np.argsort(chances, kind="stable")
    steps = np.arange(1, count + 1)
    limits = ERROR_RATE * steps / (count * (1 / steps).sum())
    within = np.flatnonzero(chances[order] <= limits)
    return order[: within[-1] + 1].tolist() if len(within) else []
