"""The next byte of held-out texts, for a model so small that 3000 steps take a minute or two on one core."""

from __future__ import annotations

from byte_model import Sizes
from task import Batch, Schedule, Task
from tasks.bytes import next_bytes, task_named
from texts import held_out_texts, pieces

NAME = "small-bytes"
SCHEDULE = Schedule(steps=3000, batch=8, learning_rate=8e-3, every=250)


def held_out(context: int) -> Batch:
    return pieces(next_bytes(held_out_texts()), context)


def with_keys(name: str, key_size: int | None) -> Task:
    """The task for a model whose queries and keys have key_size channels; None: 16, as its values have."""
    sizes = Sizes(layers=2, heads=2, head_size=16, context=64, key_size=key_size)
    return task_named(name, sizes, SCHEDULE, held_out)


def task() -> Task:
    return with_keys(NAME, None)
