"""The task small-bytes for a model whose queries and keys have 32 channels, and whose values have 16."""

from __future__ import annotations

from task import Task
from tasks.small_bytes import with_keys

NAME = "key-size-32"


def task() -> Task:
    return with_keys(NAME, 32)
