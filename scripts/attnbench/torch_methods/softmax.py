"""Exact softmax attention, which speedups on a device are over."""

from __future__ import annotations

import torch
from torch.nn.attention import SDPBackend
from torch.nn.functional import scaled_dot_product_attention


class TorchSoftmax:
    """Exact softmax attention by PyTorch's scaled_dot_product_attention.

    A_ij = exp(q_i.k_j) / sum_l exp(q_i.k_l)
    """

    backend = "torch"
    reference = "Vaswani et al. 2017, arXiv:1706.03762, eq. 1"
    claims = {
        "row_stochastic": True,
        "non_negative": True,
        "permutation_equivariant": True,
        "exact_when": "compile=false is softmax",
    }

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """By the implementation that PyTorch chooses."""
        return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, scale=1.0)[0]

    def backend_of(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> str:
        """That implementation: "flash_attention", "efficient_attention", "cudnn_attention" or "math"."""
        chosen = torch._fused_sdp_choice(q[None], k[None], v[None], is_causal=causal, scale=1.0)
        return str(SDPBackend(chosen).name).lower()
