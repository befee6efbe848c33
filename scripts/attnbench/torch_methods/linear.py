"""Linear attention with elu(x) + 1."""

from __future__ import annotations

from typing import Any

import torch

from attnbench.method import Shape
from attnbench.torch_methods.linear_attention import (
    bytes_of_features,
    causal_linear_attention,
    flops_of_features,
    linear_attention,
)


class TorchLinear:
    """Linear attention with phi(x) = elu(x) + 1, in PyTorch.

    A = D^-1 phi(Q) phi(K)^T
    """

    backend = "torch"
    printed, family = "Linear, PyTorch", "linear"
    reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 7"
    claims = {
        "row_stochastic": True,
        "non_negative": True,
        "permutation_equivariant": True,
        "exact_when": "compile=false is linear",
    }

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Each channel is a feature, and takes an exponential."""
        return flops_of_features(shape, shape.d), float((shape.nq + shape.keys) * shape.d)

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results."""
        return bytes_of_features(shape, shape.d)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """In O(n d dv) time, in chunks under a causal mask."""
        queries, keys = (torch.nn.functional.elu(x) + 1 for x in (q, k))
        return (causal_linear_attention if causal else linear_attention)(queries, keys, v)
