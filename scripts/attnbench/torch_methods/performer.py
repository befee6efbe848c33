"""Linear attention with positive random features."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import torch

from attnbench.method import Parameter, Shape
from attnbench.torch_methods.linear_attention import (
    bytes_of_features,
    causal_linear_attention,
    flops_of_features,
    linear_attention,
)


class TorchPerformer:
    """Linear attention with positive random features of exp(q.k), in PyTorch.

    A = D^-1 phi(Q) phi(K)^T, phi(x) = m^-1/2 exp(W x - |x|^2/2), rows of W independent N(0, I_d)
    """

    backend = "torch"
    printed, family = "Performer, PyTorch", "positive"
    reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1"
    departure = 'rows of W are independent and not orthogonal; state = {"projection": W} gives others'
    claims = {"row_stochastic": True, "non_negative": True, "permutation_equivariant": True, "unbiased": True}
    parameters = {"m": Parameter(256, "number of projection vectors", minimum=1, maximum=1048576, budget=True)}

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Projections, features and linear attention."""
        rows, m = shape.nq + shape.keys, parameters["m"]
        return 2.0 * rows * m * shape.d + flops_of_features(shape, m), float(rows * m)

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results."""
        return bytes_of_features(shape, parameters["m"])

    def __init__(
        self,
        m: int,
        shape: Shape,
        seeds: Sequence[int],
        state: Mapping[str, torch.Tensor] | None,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        if state is not None:
            self.projection = state["projection"]
            return
        drawn = [
            torch.randn(m, shape.d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            for seed in seeds
        ]
        self.projection = torch.stack(drawn).to(device, dtype)  # heads x m x d

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """The largest exponent of a query, and of the keys so far, is taken out before the exponential."""
        queries, keys = self._exponents(q), self._exponents(k)
        queries = (queries - queries.amax(2, keepdim=True)).exp()
        if not causal:
            return linear_attention(queries, (keys - keys.amax((1, 2), keepdim=True)).exp(), v)
        scale = keys.amax(2).cummax(1).values
        return causal_linear_attention(queries, (keys - scale[..., None]).exp(), v, scale)

    def kernel(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """phi(Q) phi(K)^T, which estimates exp(q.k)."""
        return self._exponents(q).exp() @ self._exponents(k).exp().mT / self.projection.shape[1]

    def _exponents(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.projection.mT - (x * x).sum(2, keepdim=True) / 2

    def state(self) -> dict[str, torch.Tensor]:
        """The projection vectors, [heads, m, d]."""
        return {"projection": self.projection}
