"""Linear attention with the kernel (q.k)^2 (Katharopoulos et al., arXiv:2006.16236, section 3.2).

The n x n weights are those of its d (d + 1) / 2 features, and cheaper at the lengths of the trainer.
"""

from __future__ import annotations

from collections.abc import Mapping

from mixing import Mixing, Place, normalised
from torch import Tensor

NAME = "polynomial"
PARAMETERS: dict[str, str] = {}


class Polynomial(Mixing):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return normalised((q @ k.transpose(-1, -2)) ** 2 * self.place.seen(q), v)


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return Polynomial(place)
