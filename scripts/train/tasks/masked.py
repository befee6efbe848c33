"""Masked bytes: the bytes in masked runs of held-out texts, bidirectionally (scripts/masked_bytes.py)."""

from __future__ import annotations

import numpy as np
from byte_model import Sizes
from masked_bytes import corrupted, masked_texts
from task import Batch, Schedule, Task
from texts import held_out_texts, windows

NAME = "masked"
SIZES = Sizes(layers=2, heads=4, head_size=32, context=256)


def batch(count: int, generator: np.random.Generator) -> Batch:
    texts = windows(count, SIZES.context, generator)
    read, counts = corrupted(texts, generator)
    return Batch(read, texts, counts)


def held_out() -> Batch:
    """The middle of each text."""
    texts = held_out_texts()
    first = (texts.shape[1] - SIZES.context) // 2
    texts = texts[:, first : first + SIZES.context]
    read, counts = masked_texts(texts)
    return Batch(read, texts, counts)


def task() -> Task:
    return Task(
        name=NAME,
        summary="the bytes in masked runs of a held-out text",
        causal=False,
        sizes=SIZES,
        schedule=Schedule(steps=600, batch=8, learning_rate=8e-3, every=50),
        batch=batch,
        held_out=held_out,
    )
