"""Associative recall: pairs of a key and a value, then random ones of these keys, each followed by its value
(multi-query associative recall; Arora et al., arXiv:2312.04927, section 4). Only the values of the second part count.

A key may be asked for twice. If each were asked for once, a model could leave out the values that it has seen, which
brings 1.9 bits without any recall; softmax then stayed there for 1500 to 3000 steps with one of two seeds.
"""

from __future__ import annotations

import numpy as np
from byte_model import Sizes
from task import Batch, Schedule, Task

NAME = "recall"
KEYS, VALUES = 16, 16  # bytes 0 to 15, and 16 to 31
SIZES = Sizes(layers=2, heads=4, head_size=32, context=32)
PAIRS = SIZES.context // 4
HELD_OUT, SEED = 64, 11


def batch(count: int, generator: np.random.Generator) -> Batch:
    keys = generator.permuted(np.tile(np.arange(KEYS), (count, 1)), axis=1)[:, :PAIRS]
    values = generator.integers(KEYS, KEYS + VALUES, (count, PAIRS))
    order = generator.integers(0, PAIRS, (count, PAIRS))
    asked, answers = np.take_along_axis(keys, order, 1), np.take_along_axis(values, order, 1)
    sequences = np.concatenate(
        [np.stack(pair, axis=2).reshape(count, -1) for pair in ((keys, values), (asked, answers))], 1
    )
    counts = np.zeros((count, SIZES.context - 1), bool)
    counts[:, 2 * PAIRS :: 2] = True
    return Batch(sequences[:, :-1], sequences[:, 1:], counts)


def task() -> Task:
    return Task(
        name=NAME,
        summary="the value that belonged to a key",
        causal=True,
        sizes=SIZES,
        schedule=Schedule(steps=1500, batch=32, learning_rate=1e-3, every=50),
        batch=batch,
        held_out=lambda: batch(HELD_OUT, np.random.default_rng(SEED)),
    )
