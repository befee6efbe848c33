"""Softmax over a sliding window |i - j| <= w (Beltagy et al., arXiv:2004.05150, section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mixing import Mixing, Place, positive_integer, softmax_over
from torch import Tensor

NAME = "local"
PARAMETERS = {"window": "64"}


def band(place: Place, q: Tensor, window: int) -> Tensor:
    """[n, n] for queries [..., n, head_size], on their device: true where row i sees column j."""
    at = torch.arange(q.shape[-2], device=q.device)
    return ((at[:, None] - at).abs() <= window) & place.seen(q)


class Local(Mixing):
    def __init__(self, place: Place, window: int) -> None:
        super().__init__(place)
        self.window = window

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return softmax_over(q @ k.transpose(-1, -2), band(self.place, q, self.window), v)


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return Local(place, positive_integer(parameters, "window", NAME))
