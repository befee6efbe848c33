"""The real part of the Fourier transform of v over tokens and channels (Lee-Thorp et al., arXiv:2105.03824, eq. 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from mixing import Mixing, Place, Refused
from torch import Tensor

NAME = "fnet"
PARAMETERS: dict[str, str] = {}


class FourierMixing(Mixing):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.gain = math.sqrt(place.n * place.head_size)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.fft.fft2(v).real


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    if place.causal:
        raise Refused("fnet has no causal form, because every output is a sum over all tokens: train it on masked")
    return FourierMixing(place)
