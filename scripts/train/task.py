"""The interface of a training task: batches, what is predicted in them, and the sizes of the model that learns it.

A file of tasks/ has `NAME` and `task()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from byte_model import Sizes
from mixing import Refused, entries
from numpy.typing import NDArray
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Batch:
    """Bytes that the model reads, those that it has to predict, and where they count; [texts, n] each."""

    read: NDArray[np.int64]
    meant: NDArray[np.int64]
    counts: NDArray[np.bool_]
    pieces: int = 1  # of texts to hold out: so many rows after one another are one text


@dataclasses.dataclass(frozen=True)
class Schedule:
    steps: int
    batch: int  # texts a step
    learning_rate: float  # peak
    every: int  # steps between points of the curve


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    summary: str
    causal: bool
    sizes: Sizes  # its context is the length n
    schedule: Schedule
    batch: Callable[[int, np.random.Generator], Batch]  # of so many texts, for training
    held_out: Callable[[], Batch]  # the same in each call
    weights: Callable[[], dict[str, Tensor]] | None = None  # that training begins with; None: random ones
    origin: str = ""  # the first digits of the SHA-256 of these weights' file


def find_task(name: str) -> Task:
    """Raises Refused for an unknown name."""
    known = entries("tasks")
    if name not in known:
        raise Refused(f"'{name}' is no training task; expected one of {', '.join(sorted(known))}")
    made: Task = known[name].task()
    return made
