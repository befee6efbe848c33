"""Exact softmax attention, which speedups on a device are over."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from attnbench.failures import Skip
from attnbench.method import Parameter, Shape

IMPLEMENTATIONS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
ROWS = 1024  # of a block in float64 on a GPU


def by_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """The formula for ROWS rows at a time, so that float64 needs no n x n weights: 34 GB at 65536 tokens."""
    outputs = []
    for first in range(0, q.shape[1], ROWS):
        logits = q[:, first : first + ROWS] @ k.mT
        if causal:
            later = torch.ones(logits.shape[1:], dtype=torch.bool, device=q.device).triu(first + 1)
            logits = logits.masked_fill_(later, -torch.inf)
        outputs.append(logits.softmax(-1) @ v)
    return torch.cat(outputs, 1)


def of_one_query(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The formula for a step of decoding, q [heads, 1, d] over all keys. PyTorch's choice on a GPU took 50 ms a step from
    4096 keys on: cuDNN plans for each number of keys that it has not seen.
    """
    return (q @ k.mT).softmax(-1) @ v


class TorchSoftmax:
    """Exact softmax attention by PyTorch's scaled_dot_product_attention.

    A_ij = exp(q_i.k_j) / sum_l exp(q_i.k_l)
    """

    backend = "torch"
    printed, family = "Softmax (exact), PyTorch", "exact"
    reference = "Vaswani et al. 2017, arXiv:1706.03762, eq. 1"
    parameters = {
        "implementation": Parameter(
            "auto",
            "which of PyTorch's; auto: PyTorch chooses. In float64 it always does, and on a GPU rows go in blocks",
            choices=("auto", *IMPLEMENTATIONS),
            numerics=True,
        )
    }

    def __init__(self, implementation: str) -> None:
        self.implementation = implementation

    @staticmethod
    def claims(parameters: dict[str, Any], shape: Shape) -> dict[str, Any]:
        """Those of exact attention, by every implementation."""
        return {
            "row_stochastic": True,
            "non_negative": True,
            "permutation_equivariant": True,
            "exact_when": f"implementation={parameters['implementation']} is softmax",
        }

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Those of the pairs that a mask leaves; PyTorch's plain implementation computes all of them."""
        masked = shape.causal and parameters["implementation"] != "math"
        pairs = shape.nq * shape.keys * (0.5 if masked else 1.0)
        return 2 * pairs * (shape.d + shape.dv), pairs

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results: tiles in a fused implementation, and otherwise scores and weights in float. A
        processor reorders keys and values of half precision for its products."""
        if parameters["implementation"] == "math":
            return 2.0 * max(4, shape.itemsize) * shape.nq * shape.nk
        return 2.0**21 + (2.0 * shape.nk * (shape.d + shape.dv) * shape.itemsize if shape.itemsize == 2 else 0)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """Skips where PyTorch has no such implementation, for this device, type and shape."""
        if q.dtype == torch.float64 and q.is_cuda:  # of PyTorch's, only "math" has this, with all weights at once
            return by_rows(q, k, v, causal)
        try:
            with self._chosen(q):
                return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, scale=1.0)[0]
        except RuntimeError as error:
            if not any(said in str(error) for said in ("No available kernel", "No viable backend")):
                raise
            raise Skip(
                f"PyTorch {torch.__version__} has no {self.implementation} implementation for {q.dtype} on {q.device}"
            ) from None

    def backend_of(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> str:
        """The one that PyTorch takes: "flash_attention", "efficient_attention", "cudnn_attention" or "math"."""
        if self.implementation != "auto":
            return str(IMPLEMENTATIONS[self.implementation].name).lower()
        chosen = torch._fused_sdp_choice(q[None], k[None], v[None], is_causal=causal, scale=1.0)
        return str(SDPBackend(chosen).name).lower()

    def _chosen(self, q: torch.Tensor) -> AbstractContextManager[None]:
        if self.implementation == "auto" or q.dtype == torch.float64:
            return nullcontext()
        chosen: AbstractContextManager[None] = sdpa_kernel(IMPLEMENTATIONS[self.implementation])
        return chosen

    def decoder(self, shape: Shape) -> KeyValueCache:
        """The keys and values of all tokens."""
        return KeyValueCache(self, shape)


class KeyValueCache:
    """Keys and values of one head. A step is attention of its query to all of them."""

    def __init__(self, method: TorchSoftmax, shape: Shape) -> None:
        self._method, self._shape = method, shape
        self._kept: list[torch.Tensor] = []  # of the first tokens' type and device
        self._came = 0

    def prefill(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Takes in one or more tokens."""
        if not self._kept:
            self._kept = [x.new_empty(1, self._shape.nk, x.shape[2]) for x in (k, v)]
        end = self._came + k.shape[1]
        for kept, x in zip(self._kept, (k, v)):
            kept[:, self._came : end] = x
        self._came = end

    def step(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """A token's q and k [1, 1, d] and v [1, 1, dv] to its row [1, 1, dv]."""
        self.prefill(q, k, v)
        keys, values = (x[:, : self._came] for x in self._kept)
        if self._method.implementation == "auto":
            return of_one_query(q, keys, values)
        return self._method.attend(q, keys, values, False)

    def bytes(self) -> int:
        """Of the tokens that came."""
        return sum(x[:, : self._came].nbytes for x in self._kept)
