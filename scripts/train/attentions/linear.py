"""Linear attention with a map of each channel (Katharopoulos et al., arXiv:2006.16236, eq. 5; Su, kexue.fm 8338).

At the lengths of the trainer the n x n weights are cheaper than a scan, and they are the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from mixing import Mixing, Place, choice, normalised
from torch import Tensor
from torch.nn import functional

NAME = "linear"
PARAMETERS = {"features": "elu"}


def exponentials(x: Tensor, over: tuple[int, ...]) -> Tensor:
    """e^x over its largest value, which the normaliser cancels: of a row for queries, of a head for keys."""
    return torch.exp(x - x.amax(over, keepdim=True).detach())


Map = Callable[[Tensor, tuple[int, ...]], Tensor]
MAPS: dict[str, Map] = {
    "elu": lambda x, over: functional.elu(x) + 1,
    "exp": exponentials,
    "relu": lambda x, over: functional.relu(x),
}


class Linear(Mixing):
    def __init__(self, place: Place, features: Map) -> None:
        super().__init__(place)
        self.features = features

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return self.features(q, (-1,)) @ self.features(k, (-2, -1)).transpose(-1, -2)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return normalised(self.weights(q, k) * self.place.seen(q), v)


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return Linear(place, choice(parameters, "features", NAME, MAPS))
