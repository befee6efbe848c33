"""Exact softmax attention as one fused kernel in Triton, tile by tile with a running maximum and sum (Dao et al. 2022,
arXiv:2205.14135, algorithm 1): a class in PyTorch whose work is no PyTorch operation.

On a GPU it is compiled; with TRITON_INTERPRET=1 it runs on the processor, slowly.
"""

import torch
import triton
import triton.language as tl
from attnbench.torch_methods.softmax import TorchSoftmax

ROWS, KEYS = 64, 64  # of a tile


@triton.jit
def attend_tile(Q, K, V, Out, n, nk, D: tl.constexpr, DV: tl.constexpr, causal: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):  # fmt: skip
    head = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    channels, values = tl.arange(0, D), tl.arange(0, DV)
    q = tl.load(Q + head * n * D + rows[:, None] * D + channels[None, :], mask=rows[:, None] < n, other=0.0)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    out = tl.zeros((ROWS, DV), tl.float32)
    end = tl.minimum(nk, (tl.program_id(0) + 1) * ROWS) if causal else nk
    for first in range(0, end, KEYS):
        keys = first + tl.arange(0, KEYS)
        there = keys[:, None] < nk
        k = tl.load(K + head * nk * D + keys[:, None] * D + channels[None, :], mask=there, other=0.0)
        v = tl.load(V + head * nk * DV + keys[:, None] * DV + values[None, :], mask=there, other=0.0)
        logits = tl.dot(q, tl.trans(k), input_precision="ieee")
        seen = keys[None, :] < nk
        if causal:
            seen = seen & (keys[None, :] <= rows[:, None])
        logits = tl.where(seen, logits, -float("inf"))
        larger = tl.maximum(largest, tl.max(logits, 1))
        kept = tl.exp(largest - larger)
        weights = tl.exp(logits - larger[:, None])
        total = total * kept + tl.sum(weights, 1)
        out = out * kept[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        largest = larger
    tl.store(
        Out + head * n * DV + rows[:, None] * DV + values[None, :],
        (out / total[:, None]).to(Out.dtype.element_ty),
        mask=rows[:, None] < n,
    )


class TritonSoftmax:
    """Exact softmax attention by a fused kernel in Triton.

    A_ij = exp(q_i.k_j) / sum_l exp(q_i.k_l)
    """

    backend = "torch"
    printed, family = "Softmax (exact), Triton", "exact"
    reference = "Dao et al. 2022, arXiv:2205.14135, algorithm 1"
    claims = {
        "row_stochastic": True,
        "non_negative": True,
        "permutation_equivariant": True,
        "exact_when": "compile=false is softmax",
    }

    cost = staticmethod(TorchSoftmax.cost)
    gradients = None  # there is no backward kernel

    @staticmethod
    def memory(parameters, shape):
        return 2.0**20

    def attend(self, q, k, v, causal):
        if q.dtype == torch.float64:  # Triton multiplies no such matrices: the formula
            return TorchSoftmax("auto").attend(q, k, v, causal)
        heads, n, d = q.shape
        width = max(16, triton.next_power_of_2(d))  # of a tile, which a product needs; the rest is 0
        value_width = max(16, triton.next_power_of_2(v.shape[2]))
        q, k = (torch.nn.functional.pad(x, (0, width - d)).contiguous() for x in (q, k))
        padded = torch.nn.functional.pad(v, (0, value_width - v.shape[2])).contiguous()
        out = torch.empty(heads, n, value_width, device=q.device, dtype=q.dtype)
        grid = (triton.cdiv(n, ROWS), heads)
        attend_tile[grid](q, k, padded, out, n, k.shape[1], width, value_width, causal, ROWS, KEYS)
        return out[:, :, : v.shape[2]]
