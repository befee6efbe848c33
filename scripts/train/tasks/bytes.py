"""Byte language modelling: the next byte of held-out texts, causally."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from byte_model import Sizes
from task import Batch, Schedule, Task
from texts import held_out_texts, windows

NAME = "bytes"


def next_bytes(texts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Batch:
    return Batch(texts[:, :-1], texts[:, 1:], np.ones(texts[:, 1:].shape, bool))


def middle(context: int) -> Batch:
    """The middle of each text."""
    texts = held_out_texts()
    first = (texts.shape[1] - context - 1) // 2
    return next_bytes(texts[:, first : first + context + 1])


def task_named(name: str, sizes: Sizes, schedule: Schedule, held_out: Callable[[int], Batch] = middle) -> Task:
    return Task(
        name=name,
        summary="the next byte of a held-out text",
        causal=True,
        sizes=sizes,
        schedule=schedule,
        batch=lambda count, generator: next_bytes(windows(count, sizes.context + 1, generator)),
        held_out=lambda: held_out(sizes.context),
    )


def task() -> Task:
    sizes = Sizes(layers=2, heads=4, head_size=32, context=256)
    return task_named(NAME, sizes, Schedule(steps=600, batch=8, learning_rate=8e-3, every=50))
