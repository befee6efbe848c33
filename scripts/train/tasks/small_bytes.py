"""The next byte of held-out texts, for a model that is small enough to be trained until little more is gained."""

from __future__ import annotations

from byte_model import Sizes
from task import Schedule, Task
from tasks import bytes as bytes_task

NAME = "small-bytes"
SCHEDULE = Schedule(steps=5000, batch=8, learning_rate=8e-3, every=250)


def with_keys(name: str, key_size: int | None) -> Task:
    """The task for a model whose queries and keys have key_size channels; None: 16, as its values have."""
    return bytes_task.task_named(name, Sizes(layers=2, heads=2, head_size=16, context=128, key_size=key_size), SCHEDULE)


def task() -> Task:
    return with_keys(NAME, None)
