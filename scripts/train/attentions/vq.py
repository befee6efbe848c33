"""Softmax on keys quantised to a codebook (Lingle, Transformer-VQ, arXiv:2309.16354, section 3).

Gradients pass straight through the quantisation, codes are moving averages of their keys, and the squared distance of
keys to their codes is added to the loss (the commitment loss, sections 3.4 and 3.5).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from mixing import Mixing, Place, numbers, positive_integer, softmax_over
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

NAME = "vq"
PARAMETERS = {"codes": "256"}
KEPT = 0.99  # of a code in each step
COMMITMENT = 1e-3


class VectorQuantised(Mixing):
    def __init__(self, place: Place, codes: int) -> None:
        super().__init__(place)
        self.register_buffer("codebook", torch.zeros(place.heads, codes, place.head_size))
        self.register_buffer("sums", torch.zeros(place.heads, codes, place.head_size))
        self.register_buffer("counts", torch.zeros(place.heads, codes))
        self.commitment: Tensor | None = None

    def nearest(self, k: Tensor) -> Tensor:
        """[batch, heads, n]: the code of each key."""
        distances = self.codebook.square().sum(-1)[:, None] / 2 - k @ self.codebook.transpose(-1, -2)
        return distances.argmin(-1)

    @torch.no_grad()
    def learn(self, k: Tensor) -> None:
        heads, codes, d = self.codebook.shape
        keys = k.transpose(0, 1).reshape(heads, -1, d)
        if not self.counts.any():  # keys of the first batch, evenly spaced
            chosen = torch.linspace(0, keys.shape[1] - 1, codes, device=k.device).long()
            self.codebook.copy_(keys[:, chosen])
            self.sums.copy_(self.codebook)
            self.counts.fill_(1)
        members = functional.one_hot(self.nearest(k).transpose(0, 1).reshape(heads, -1), codes).to(k.dtype)
        self.counts.mul_(KEPT).add_(members.sum(1), alpha=1 - KEPT)
        self.sums.mul_(KEPT).add_(members.transpose(-1, -2) @ keys, alpha=1 - KEPT)
        self.codebook.copy_(self.sums / self.counts[..., None].clamp_min(1e-6))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.training:
            self.learn(k.detach())
        heads = torch.arange(self.place.heads, device=k.device)[:, None]
        coded = self.codebook[heads, self.nearest(k)]
        self.commitment = (k - coded).square().mean()
        straight = k + (coded - k).detach()
        return softmax_over(q @ straight.transpose(-1, -2), self.place.seen(q), v)

    def penalty(self) -> Tensor | None:
        return None if self.commitment is None else COMMITMENT * self.commitment

    def state(self) -> dict[str, NDArray[np.float64]]:
        return {"codebook": numbers(self.codebook)}


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return VectorQuantised(place, positive_integer(parameters, "codes", NAME))
