"""The bytes in masked runs of held-out texts, for the model of the task small-bytes."""

from __future__ import annotations

from task import Task
from tasks import masked, small_bytes

NAME = "small-masked"


def task() -> Task:
    return masked.task_named(NAME, small_bytes.task().sizes, small_bytes.SCHEDULE)
