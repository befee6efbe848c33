"""Softmax among tokens of the same bucket of a hash; queries are keys (Kitaev et al., arXiv:2001.04451, section 2).

h_r(x) = argmax [x R_r, -x R_r]. A chunk holds the whole sequence, so that a token's candidates are all tokens that share
its bucket in some round: sorting and cutting save time, and change nothing else. The rounds' softmaxes, combined by
their normalisers, are the softmax over the union of their candidates. A token sees itself only if it sees no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from mixing import Mixing, Place, Refused, numbers, positive_integer, softmax_over
from numpy.typing import NDArray
from torch import Tensor

NAME = "reformer"
PARAMETERS = {"buckets": "32", "rounds": "4", "chunk": "64"}


class Reformer(Mixing):
    def __init__(self, place: Place, buckets: int, rounds: int) -> None:
        super().__init__(place)
        self.rounds = rounds
        self.register_buffer("rotations", torch.zeros(place.heads, rounds * buckets // 2, place.head_size))

    def redraw(self, generator: torch.Generator) -> None:
        self.rotations.copy_(torch.randn(self.rotations.shape, generator=generator, dtype=torch.double))

    def candidates(self, x: Tensor) -> Tensor:
        """[batch, heads, n, n], true where some round puts both into one bucket, and the other may be seen."""
        batch, heads, n, _ = x.shape
        turned = (x @ self.rotations.transpose(-1, -2)).view(batch, heads, n, self.rounds, -1)
        buckets = torch.cat([turned, -turned], dim=-1).argmax(-1)  # [batch, heads, n, rounds]
        shared = (buckets[..., :, None, :] == buckets[..., None, :, :]).any(-1) & self.place.seen(x)
        itself = torch.eye(n, dtype=torch.bool, device=x.device)
        others = shared & ~itself
        return others | (itself & ~others.any(-1, keepdim=True))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys = q / q.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        logits = q @ keys.transpose(-1, -2) / math.pow(self.place.head_size, 0.25)
        return softmax_over(logits, self.candidates(q.detach()), v)

    def state(self) -> dict[str, NDArray[np.float64]]:
        return {"rotations": numbers(self.rotations)}


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    buckets, rounds, chunk = (positive_integer(parameters, key, NAME) for key in ("buckets", "rounds", "chunk"))
    if buckets % 2:
        raise Refused(f"reformer:buckets={buckets}: expected an even number, such as reformer:buckets=8")
    if chunk < place.n:
        raise Refused(f"reformer:chunk={chunk} cuts {place.n} tokens, which the trainer does not; give chunk={place.n}")
    return Reformer(place, buckets, rounds)
