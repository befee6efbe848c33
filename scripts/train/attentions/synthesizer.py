"""Attention whose logits compare no tokens (Tay et al., arXiv:2005.00743, section 3).

random: softmax(R) v, R n x n learnt;    dense: row i of the logits is W2 relu(W1 q_i + b1) + b2
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from mixing import Mixing, Place, choice, numbers, positive_integer, softmax_over
from numpy.typing import NDArray
from torch import Tensor, nn

NAME = "synthesizer"
PARAMETERS = {"kind": "random", "hidden": "64"}


def stacked(parameters: nn.ParameterList) -> Tensor:
    return torch.stack(list(parameters))


class RandomLogits(Mixing):
    def __init__(self, place: Place, parameters: Mapping[str, str]) -> None:
        super().__init__(place)
        self.R = nn.ParameterList(torch.randn(place.n, place.n) for _ in range(place.heads))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n = q.shape[-2]
        return softmax_over(stacked(self.R)[:, :n, :n], self.place.seen(q), v)

    def state(self) -> dict[str, NDArray[np.float64]]:
        return {"R": numbers(stacked(self.R))}


class DenseLogits(Mixing):
    def __init__(self, place: Place, parameters: Mapping[str, str]) -> None:
        super().__init__(place)
        d, hidden, heads = place.head_size, positive_integer(parameters, "hidden", NAME), range(place.heads)
        self.W1 = nn.ParameterList(torch.randn(hidden, d) * math.sqrt(2 / math.sqrt(d)) for _ in heads)
        self.W2 = nn.ParameterList(torch.randn(place.n, hidden) / math.sqrt(hidden) for _ in heads)
        self.b1 = nn.ParameterList(torch.zeros(hidden) for _ in heads)
        self.b2 = nn.ParameterList(torch.zeros(place.n) for _ in heads)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n = q.shape[-2]
        hidden = torch.relu(q @ stacked(self.W1).transpose(-1, -2) + stacked(self.b1)[:, None])
        logits = hidden @ stacked(self.W2)[:, :n].transpose(-1, -2) + stacked(self.b2)[:, None, :n]
        return softmax_over(logits, self.place.seen(q), v)

    def state(self) -> dict[str, NDArray[np.float64]]:
        matrices = {name: numbers(stacked(getattr(self, name))) for name in ("W1", "W2")}
        return matrices | {name: numbers(stacked(getattr(self, name))[:, None]) for name in ("b1", "b2")}


KINDS = {"random": RandomLogits, "dense": DenseLogits}


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    made: Mixing = choice(parameters, "kind", NAME, KINDS)(place, parameters)
    return made
