"""Masks of models as the masks that methods know: all keys, or a causal prefix of them; padding is cut out first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbench._native import Misuse

# Models take -inf, the least number of their type, -1e4 (in bfloat16 -9984), -1e3 (LongT5) or -100 (Swin): exp(-100) is below
# every number of float32 that is not subnormal. A bias by position has smaller numbers too, and is told by these.
HIDES = -100


class Cut(NamedTuple):
    """The part of a head that a method computes."""

    rows: NDArray[np.intp]
    """queries; the others are padding, and see nothing that matters"""
    keys: NDArray[np.intp]
    """keys that a query sees"""
    causal: bool | None
    """row i of the part sees all of its keys but the last len(rows) - 1 - i; otherwise every row sees all. None: one
    row, which sees all keys in both cases, while methods that know positions differ"""


def cut_of(visible: NDArray[np.bool_], same_tokens: bool, where: str) -> Cut:
    """The part of a head for a mask [nq, nk], True where a query sees a key. Raises Misuse for any other pattern.

    same_tokens: query i and key i are of one token, so that the query of a key that nobody sees is padding. Methods
    must not see it: landmarks, for one, average queries.
    """
    nq, nk = visible.shape
    keys = np.flatnonzero(visible.any(axis=0))
    seen = visible[:, keys]
    counts = seen.sum(axis=1)
    rows = np.flatnonzero(counts)
    if len(rows) == 0:
        raise Misuse(f"{where}: no query sees a key; give a batch whose attention_mask is not 0 everywhere")
    if seen[rows].all():
        rows = np.intersect1d(rows, keys) if same_tokens and nq == nk else rows
        return Cut(rows, keys, None if len(rows) == 1 else False)
    if nq == nk:
        rows = np.flatnonzero(np.diagonal(visible))
    counts = counts[rows]
    prefixes = np.arange(len(keys)) < counts[:, None]
    if len(rows) and (seen[rows] == prefixes).all() and (np.diff(counts) == 1).all() and counts[-1] == len(keys):
        return Cut(rows, keys, True)
    raise Misuse(
        f"{where}: its mask is neither causal nor that of padding (a sliding window, say, or several texts in one row), "
        "and methods know no other; shorten the texts, give one text a row, or leave the layer out of layers="
    )


def visible_of(mask: Any, where: str) -> NDArray[np.bool_]:
    """[nq, nk] of a mask [heads or 1, nq, nk]: of booleans, or of numbers that a model adds to its logits.

    Raises Misuse for numbers that hide no key, such as biases by position, and for heads that differ.
    """
    numbers: NDArray[Any] = np.asarray(mask)
    if numbers.dtype != np.bool_:
        hides = numbers <= HIDES
        if (numbers[~hides] != 0).any():
            raise Misuse(
                f"{where}: it adds a bias to its logits (relative positions or ALiBi), and methods take q, k and v alone; "
                "take a model with rotary or absolute positions, or write a method that needs the positions "
                "(docs/python.md, Gates and positions)"
            )
        numbers = ~hides
    if (numbers != numbers[:1]).any():
        raise Misuse(f"{where}: its heads have different masks, and methods know one for all; leave it out of layers=")
    visible: NDArray[np.bool_] = numbers[0]
    return visible
