"""Masked bytes: the bytes in masked runs of held-out texts, bidirectionally (scripts/masked_bytes.py)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from byte_model import Sizes
from masked_bytes import corrupted, masked_texts
from task import Batch, Schedule, Task
from texts import held_out_texts, windows

NAME = "masked"


def batch(count: int, context: int, generator: np.random.Generator) -> Batch:
    texts = windows(count, context, generator)
    read, counts = corrupted(texts, generator)
    return Batch(read, texts, counts)


def middle(context: int) -> Batch:
    """The middle of each text."""
    texts = held_out_texts()
    first = (texts.shape[1] - context) // 2
    texts = texts[:, first : first + context]
    read, counts = masked_texts(texts)
    return Batch(read, texts, counts)


def task_named(name: str, sizes: Sizes, schedule: Schedule, held_out: Callable[[int], Batch] = middle) -> Task:
    return Task(
        name=name,
        summary="the bytes in masked runs of a held-out text",
        causal=False,
        sizes=sizes,
        schedule=schedule,
        batch=lambda count, generator: batch(count, sizes.context, generator),
        held_out=lambda: held_out(sizes.context),
    )


def task() -> Task:
    sizes = Sizes(layers=2, heads=4, head_size=32, context=256)
    return task_named(NAME, sizes, Schedule(steps=600, batch=8, learning_rate=8e-3, every=50))
