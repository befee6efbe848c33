"""The median with its distribution-free interval of level 95 %, between two order statistics (binomial; David and Nagaraja,
Order Statistics, 7.1). attnbench computes all other intervals (harness/statistics/intervals.hpp)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
LEVEL = 0.95


def median_interval(samples: Array) -> tuple[Array, Array, Array]:
    """Median over the first axis of samples [r, ...] and the narrowest symmetric pair of order statistics that covers
    it with at least 95 %. Fewer than six samples have no such pair, hence no interval (NaN)."""
    r = len(samples)
    ordered = np.sort(samples, axis=0)
    median = np.median(ordered, axis=0)
    # P(at most k of r samples lie under the median), k = 0, 1, ...: the pair of rank k + 1 misses it twice as often.
    misses = special.bdtr(np.arange(r // 2), r, 0.5)
    rank = int(np.count_nonzero(misses <= (1 - LEVEL) / 2))
    if rank == 0:
        return median, np.full_like(median, np.nan), np.full_like(median, np.nan)
    return median, ordered[rank - 1], ordered[r - rank]
