"""Keys and values projected along the sequence, softmax(q (E k)^T) F v (Wang et al., arXiv:2006.04768, eq. 7).

E and F are learnt, and shared by the heads of a layer (the paper's headwise sharing, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from mixing import Mixing, Place, Refused, numbers, positive_integer
from numpy.typing import NDArray
from torch import Tensor, nn

NAME = "linformer"
PARAMETERS = {"r": "256"}


class Linformer(Mixing):
    def __init__(self, place: Place, r: int) -> None:
        super().__init__(place)
        self.E = nn.Parameter(torch.randn(r, place.n) / math.sqrt(r))
        self.F = nn.Parameter(torch.randn(r, place.n) / math.sqrt(r))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ (self.E @ k).transpose(-1, -2), dim=-1) @ (self.F @ v)

    def state(self) -> dict[str, NDArray[np.float64]]:
        return {"E": numbers(self.E), "F": numbers(self.F)}


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    if place.causal:
        raise Refused("linformer has no causal form, because every projected key mixes all tokens: train it on masked")
    return Linformer(place, positive_integer(parameters, "r", NAME))
