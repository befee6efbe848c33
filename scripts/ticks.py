"""Limits, ticks and number labels of an axis."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
MOST_INTEGERS = 10  # on an axis with a tick at each integer


def limits(values: NDArray[np.float64], logarithmic: bool, below: float) -> tuple[float, float]:
    """Least and greatest value with a margin (a share of the range) on both sides, in the space of the axis."""
    low, high = float(values.min()), float(values.max())
    if logarithmic:
        low, high = np.log(low), np.log(high)
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high), 1e-300):
        span = np.log(4.0) if logarithmic else abs(high) or 1.0
        low, high = low - span / 2, high + span / 2
    low, high = low - below * span, high + 0.05 * span
    return (float(np.exp(low)), float(np.exp(high))) if logarithmic else (low, high)


def log_ticks(low: float, high: float, base: int, room: int) -> tuple[list[float], list[float], list[str]]:
    """Major ticks at powers of the base (every second, third, ... if room is short), minor ticks, labels."""
    first, last = int(np.ceil(np.log(low) / np.log(base) - 1e-9)), int(np.floor(np.log(high) / np.log(base) + 1e-9))
    exponents = list(range(first, last + 1))
    if len(exponents) < 2 or (base == 10 and len(exponents) < 3):
        return _fine_log_ticks(low, high, room)
    step = -(-len(exponents) // max(room, 2))
    chosen = [k for k in exponents if (k - exponents[0]) % step == 0]
    minor = [float(base) ** k for k in exponents if k not in chosen]
    if base == 10 and step == 1 and len(exponents) <= 8:
        minor = [m * 10.0**k for k in range(first - 1, last + 1) for m in range(2, 10) if low <= m * 10.0**k <= high]
    if base == 2:
        return [2.0**k for k in chosen], minor, power_of_two_labels(chosen)
    plain = chosen[0] >= -3 and chosen[-1] <= 4
    return [10.0**k for k in chosen], minor, [f"{10.0**k:.15g}" if plain else f"10{superscript(k)}" for k in chosen]


def _fine_log_ticks(low: float, high: float, room: int) -> tuple[list[float], list[float], list[str]]:
    """Ticks for about a decade: 1, 2, 5 and their decades, or even steps if those are too few."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(ticks) < 3:
        return linear_ticks(low, high, min(room, 4))
    minor = [m * 10.0**k for k in decades for m in (3, 4, 6, 7, 8, 9) if low <= m * 10.0**k <= high]
    labels = [number_label(tick) for tick in ticks]
    if any("×" in label for label in labels):  # then decades are powers as well: 10⁻³, 5×10⁻⁴
        labels = [_with_power(tick) for tick in ticks]
    return ticks, minor, labels


def _with_power(value: float) -> str:
    exponent = int(np.floor(np.log10(value) + 1e-9))
    mantissa = f"{value / 10.0**exponent:.6g}"
    return f"{'' if mantissa == '1' else f'{mantissa}×'}10{superscript(exponent)}"


def byte_ticks(low: float, high: float, logarithmic: bool, room: int) -> tuple[list[float], list[float], list[str]]:
    """Ticks of an axis in bytes: powers of two on a logarithmic axis over a factor of 4 or more, otherwise round
    numbers of the largest unit."""
    if logarithmic and high >= 4 * low:
        ticks, minor, _ = log_ticks(low, high, 2, room)
        return ticks, minor, [byte_label(tick) for tick in ticks]
    unit = 1024.0 ** _byte_unit(high)
    ticks, minor, _ = linear_ticks(low / unit, high / unit, room)
    return [tick * unit for tick in ticks], minor, [byte_label(tick * unit) for tick in ticks]


def _byte_unit(value: float) -> int:
    """0 for bytes, 1 for KiB, ..."""
    return int(np.clip(np.floor(np.log2(max(abs(value), 1.0)) / 10 + 1e-9), 0, len(BYTE_UNITS) - 1))


def byte_label(value: float) -> str:
    """512 B, 64 KiB, 1.5 MiB."""
    unit = _byte_unit(value)
    return f"{value / 1024.0**unit:.4g} {BYTE_UNITS[unit]}"


def linear_ticks(low: float, high: float, room: int) -> tuple[list[float], list[float], list[str]]:
    """Even ticks at round numbers, labels."""
    locator = MaxNLocator(nbins=max(min(room, 6), 2), steps=[1, 2, 2.5, 5, 10])
    ticks = [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]
    return ticks, [], [number_label(tick) for tick in ticks]


def are_few_integers(values: NDArray[np.float64], room: int) -> bool:
    """Whether values are integers, such as numbers of layers, and so few that each can have a tick."""
    return bool(np.all(values == np.round(values)) and np.ptp(values) < min(room, MOST_INTEGERS))


def integer_ticks(values: NDArray[np.float64]) -> tuple[list[float], list[float], list[str]]:
    """A tick at every integer from the least value to the greatest, labels."""
    ticks = [float(tick) for tick in range(int(values.min()), int(values.max()) + 1)]
    return ticks, [], [number_label(tick) for tick in ticks]


def power_of_two_labels(exponents: list[int]) -> list[str]:
    """16, 32, ... in full if all are short; otherwise all as powers of two, so that an axis has one style."""
    if 2.0 ** exponents[-1] < 1e5 and exponents[0] >= -4:
        return [f"{2.0**k:.15g}" for k in exponents]
    return [f"2{superscript(k)}" for k in exponents]


def superscript(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def number_label(value: float) -> str:
    """0.002, 16384, 2×10⁻⁵: six digits at most, powers of ten for very small and very large numbers."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.6g}".replace("-", "−")
    mantissa, exponent = f"{value:.5e}".split("e")
    short = mantissa.rstrip("0").rstrip(".").replace("-", "−")
    return f"{short}×10{superscript(int(exponent))}"
