"""The band |i - j| <= w of a linear attention matrix, renormalised (Su, kexue.fm 8338)."""

from __future__ import annotations

from collections.abc import Mapping

from attentions.linear import MAPS, Linear
from attentions.local import band
from mixing import Mixing, Place, choice, normalised, positive_integer
from torch import Tensor

NAME = "truncated"
PARAMETERS = {"features": "elu", "window": "64"}


class Truncated(Linear):
    def __init__(self, place: Place, parameters: Mapping[str, str]) -> None:
        super().__init__(place, choice(parameters, "features", NAME, MAPS))
        self.window = positive_integer(parameters, "window", NAME)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return normalised(self.weights(q, k) * band(self.place, q, self.window), v)


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return Truncated(place, parameters)
