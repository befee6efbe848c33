"""Intervals of level 95 %, exponents and crossings.

"mean": mean over replicates, Student t. "median": median of all samples, with the distribution-free interval between
two order statistics (binomial; David and Nagaraja, Order Statistics, 7.1).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

LEVEL = 0.95
EXPONENT_POINTS = 3


def mean_interval(samples: Array) -> tuple[Array, Array, Array]:
    """Mean and its Student t interval over the first axis of samples [r, ...]; no interval (NaN) for fewer than two."""
    r = len(samples)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite samples give a mean that is marked as not finite
        mean = np.mean(samples, axis=0)
        if r < 2:
            return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
        half = special.stdtrit(r - 1, (1 + LEVEL) / 2) * np.std(samples, axis=0, ddof=1) / np.sqrt(r)
        return mean, mean - half, mean + half


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


INTERVALS = {"mean": mean_interval, "median": median_interval}


def ratio_interval(logs: Array) -> tuple[float, float, float]:
    """The exponential of the mean log ratio and of its interval."""
    mean, low, high = (float(v) for v in np.exp(mean_interval(logs)))
    return mean, low, high


def fitted_exponents(x: Array, y: Array) -> Array:
    """Least-squares slopes of log y [points, samples] over log x [points] at the last points, one per sample; empty for
    fewer than two points. A point with a value that is not positive is left out."""
    kept = np.isfinite(x) & (x > 0) & np.all(np.isfinite(y) & (y > 0), axis=1)
    x, y = np.log(x[kept][-EXPONENT_POINTS:]), np.log(y[kept][-EXPONENT_POINTS:])
    return np.array([_slope(x, column) for column in y.T]) if len(x) > 1 else np.empty(0)


def _slope(x: Array, y: Array) -> float:
    """The slope of the least-squares line. math.fsum rounds only the exact sum, so every machine computes the same
    bits. Libraries for linear algebra do not promise that."""
    from_mean = x - math.fsum(x) / len(x)
    return math.fsum(from_mean * y) / math.fsum(from_mean**2)


def last_rise_through_one(x: Array, y: Array) -> float:
    """The x from which y stays at or above 1. Between neighbouring points of sorted x, y is taken as a power law. 0 if
    y is at or above 1 from the first point on; infinity if the last point is below 1."""
    below = np.flatnonzero(~(y >= 1))
    if len(below) == 0:
        return 0.0
    last = int(below[-1])
    if last + 1 == len(x):
        return np.inf
    share = np.log(1 / y[last]) / np.log(y[last + 1] / y[last])
    return float(x[last] * (x[last + 1] / x[last]) ** share)
