"""Masks for the bidirectional model of scripts/train_byte_lm.py, which guesses runs of bytes.

A run of 1 to 7 bytes (4 on average) starts at any byte with probability `STARTS`, so that about a fifth of the bytes is
in a run. A byte that is masked reads 255, which occurs in no UTF-8 text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MASK = 255
LONGEST_RUN = 7
STARTS = 0.055
SEED = 255  # of the masks of evaluations
HIDDEN, REPLACED = 0.8, 0.1  # shares of the runs in training; the others are left as they are, and guessed too


def runs(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
    """The number of the run that a position is in, from 1; 0: in none. [texts, n]."""
    starts = generator.random(shape) < STARTS
    lengths = generator.integers(1, LONGEST_RUN + 1, shape)
    numbers = np.where(starts, np.arange(starts.size).reshape(shape) + 1, 0)
    run = np.zeros(shape, dtype=np.int64)
    for after in range(LONGEST_RUN):
        here = np.where(lengths > after, numbers, 0)
        run[:, after:] = np.maximum(run[:, after:], here[:, : shape[1] - after])
    return run


def masked_texts(texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For evaluation: the texts with every run masked, the same in each call, and where the runs are."""
    hidden = runs(texts.shape, np.random.default_rng(SEED)) > 0
    return np.where(hidden, MASK, texts), hidden


def corrupted(texts: NDArray[np.int64], generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For training: a run is masked, replaced by other bytes of the text, or left as it is (Devlin et al., 1810.04805,
    section 3.1), so that the model also learns about texts without masks."""
    run = runs(texts.shape, generator)
    share = generator.random(run.size + 1)[run]
    others = texts.ravel()[generator.integers(0, texts.size, texts.shape)]
    changed = np.where(share < HIDDEN, MASK, np.where(share < HIDDEN + REPLACED, others, texts))
    return np.where(run > 0, changed, texts), run > 0
