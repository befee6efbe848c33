"""Copying: a word of 10 symbols, and the same word again (Katharopoulos et al., arXiv:2006.16236, Fig. 2).

A sequence is | w | w |, with a separator before, between and behind the words. Only symbols of the second word count: the
first is random. All words are of one length, as in Reformer's task (Kitaev et al., arXiv:2001.04451, section 5), because
the model has rotary positions alone.
"""

from __future__ import annotations

import numpy as np
from byte_model import Sizes
from task import Batch, Schedule, Task

NAME = "copying"
SYMBOLS = 10
SEPARATOR = SYMBOLS
SIZES = Sizes(layers=2, heads=4, head_size=32, context=128)
WORD = SIZES.context // 2 - 1
HELD_OUT, SEED = 64, 10


def batch(count: int, generator: np.random.Generator) -> Batch:
    words = generator.integers(0, SYMBOLS, (count, WORD))
    separators = np.full((count, 1), SEPARATOR)
    sequences = np.concatenate([separators, words, separators, words, separators], axis=1)
    counts = np.zeros((count, SIZES.context), bool)
    counts[:, WORD + 1 : -1] = True
    return Batch(sequences[:, :-1], sequences[:, 1:], counts)


def task() -> Task:
    return Task(
        name=NAME,
        summary="the second of two equal words of random symbols",
        causal=True,
        sizes=SIZES,
        schedule=Schedule(steps=2000, batch=16, learning_rate=4e-3, every=50),
        batch=batch,
        held_out=lambda: batch(HELD_OUT, np.random.default_rng(SEED)),
    )
