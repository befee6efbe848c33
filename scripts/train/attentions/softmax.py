"""Exact attention: softmax(q k^T) v."""

from __future__ import annotations

from collections.abc import Mapping

from mixing import Mixing, Place
from torch import Tensor
from torch.nn import functional

NAME = "softmax"
PARAMETERS: dict[str, str] = {}


class Softmax(Mixing):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=self.place.causal, scale=1.0)


def make(parameters: Mapping[str, str], place: Place) -> Mixing:
    return Softmax(place)
