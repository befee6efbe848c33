"""Linear attention with random features of the softmax kernel (Choromanski et al., arXiv:2009.14794).

    positive: phi(x) = m^-1/2 exp(W x - |x|^2/2)                   Lemma 1
    trig:     phi(x) = m^-1/2 exp(|x|^2/2) [cos(W x); sin(W x)]    eq. 4

Rows of W are orthogonal in blocks of d, with the norms of Gaussian vectors (section 2.4). Each head has its own W.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from mixing import Mixing, Place, choice, normalised, numbers, positive_integer
from numpy.typing import NDArray
from torch import Tensor

NAME = "performer"
PARAMETERS = {"features": "positive", "m": "256"}


def orthogonal_rows(m: int, d: int, generator: torch.Generator) -> Tensor:
    """[m, d]: blocks of Haar orthogonal matrices, rows scaled by independent chi norms."""
    blocks = []
    for _ in range(-(-m // d)):
        q, r = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.double))
        blocks.append((q * r.diagonal().sign()).T)  # without the signs the law is not Haar's
    norms = torch.randn(m, d, generator=generator, dtype=torch.double).norm(dim=1, keepdim=True)
    return torch.cat(blocks)[:m] * norms


def positive(x: Tensor, W: Tensor, over: tuple[int, ...]) -> Tensor:
    exponents = x @ W.transpose(-1, -2) - x.square().sum(-1, keepdim=True) / 2
    return torch.exp(exponents - exponents.amax(over, keepdim=True).detach())


def trigonometric(x: Tensor, W: Tensor, over: tuple[int, ...]) -> Tensor:
    angles, half_norms = x @ W.transpose(-1, -2), x.square().sum(-1, keepdim=True) / 2
    scale = torch.exp(half_norms - half_norms.amax(over, keepdim=True).detach())
    return scale * torch.cat([angles.cos(), angles.sin()], dim=-1)


Map = Callable[[Tensor, Tensor, tuple[int, ...]], Tensor]
MAPS: dict[str, Map] = {"positive": positive, "trig": trigonometric}


class Performer(Mixing):
    def __init__(self, place: Place, parameters: Mapping[str, str]) -> None:
        super().__init__(place)
        self.features: Map = choice(parameters, "features", NAME, MAPS)
        m = positive_integer(parameters, "m", NAME)
        self.register_buffer("projection", torch.zeros(place.heads, m, place.head_size))

    def redraw(self, generator: torch.Generator) -> None:
        heads, m, d = self.projection.shape
        drawn = torch.stack([orthogonal_rows(m, d, generator) for _ in range(heads)])
        self.projection.copy_(drawn)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        phi_q, phi_k = self.features(q, self.projection, (-1,)), self.features(k, self.projection, (-2, -1))
        return normalised((phi_q @ phi_k.transpose(-1, -2)) * self.place.seen(q), v)

    def state(self) -> dict[str, NDArray[np.float64]]:
        return {"projection": numbers(self.projection)}


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return Performer(place, parameters)
