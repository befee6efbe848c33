"""Recovery: the trained causal model of the input `model` goes on training with another attention (Choromanski et al.,
arXiv:2009.14794, section 4.3 and Fig. 5)."""

from __future__ import annotations

import hashlib

import torch
from byte_model import Sizes
from task import Schedule, Task
from tasks.bytes import middle, next_bytes
from texts import MODEL, content_of, read_halves, windows
from torch import Tensor

NAME = "recovery"
SIZES = Sizes(context=512)
WEIGHTS = MODEL / "weights.safetensors"


def weights() -> dict[str, Tensor]:
    tensors = read_halves(WEIGHTS)
    return {
        name: torch.from_numpy(tensor.astype("float32"))
        for name, tensor in tensors.items()
        if name not in ("attention.heads", "attention.causal")
    }


def task() -> Task:
    return Task(
        name=NAME,
        summary="the next byte of a held-out text, from weights that were trained with softmax",
        causal=True,
        sizes=SIZES,
        schedule=Schedule(steps=200, batch=4, learning_rate=1e-3, every=25),
        batch=lambda count, generator: next_bytes(windows(count, SIZES.context + 1, generator)),
        held_out=lambda: middle(SIZES.context),
        weights=weights,
        origin=hashlib.sha256(content_of(WEIGHTS)).hexdigest()[:16],
    )
