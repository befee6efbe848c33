"""The bytes in masked runs of held-out texts, for the model of the task small-bytes."""

from __future__ import annotations

from masked_bytes import masked_texts
from task import Batch, Task
from tasks import masked, small_bytes
from texts import held_out_texts, pieces

NAME = "small-masked"


def held_out(context: int) -> Batch:
    texts = held_out_texts()
    read, counts = masked_texts(texts)
    return pieces(Batch(read, texts, counts), context)


def task() -> Task:
    return masked.task_named(NAME, small_bytes.task().sizes, small_bytes.SCHEDULE, held_out)
