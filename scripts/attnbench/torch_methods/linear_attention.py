"""out_i = phi(q_i).S_i / phi(q_i).z_i with S_i = sum_j phi(k_j) v_j^T and z_i = sum_j phi(k_j) over the keys that row i sees."""

from __future__ import annotations

import torch

from attnbench.method import Shape

CHUNK = 128  # rows of the causal scan that one product computes


def flops_of_features(shape: Shape, features: int) -> float:
    """FLOPs of linear attention once it has its features: the state, its products, and within chunks the weights."""
    each = 2.0 * features * (shape.dv + 1)
    within = 2.0 * CHUNK * (features + shape.dv) if shape.causal else 0.0
    return shape.keys * each + shape.nq * (each + within)


def bytes_of_features(shape: Shape, features: int) -> float:
    """Bytes beyond inputs and results: features of queries and keys, and two tensors on the way to them. A processor
    multiplies half precision in float.
    """
    return float(max(4, shape.itemsize) * (shape.nq + 3 * shape.nk) * features)


def linear_attention(queries: torch.Tensor, keys: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Every row sees every key. Features [heads, n, F], values [heads, n, dv]."""
    return (queries @ (keys.mT @ v)) / (queries @ keys.sum(1, keepdim=True).mT)


def causal_linear_attention(
    queries: torch.Tensor, keys: torch.Tensor, v: torch.Tensor, log_scale: torch.Tensor | None = None
) -> torch.Tensor:
    """Row i sees the keys up to i. log_scale [heads, n]: it never falls, and key j's features are keys_j exp(log_scale_j).

    A row is computed at its own scale, so that no later key has a part in it.
    """
    heads, n, features = keys.shape
    scale = v.new_zeros(heads, n) if log_scale is None else log_scale
    state, sums, end = v.new_zeros(heads, features, v.shape[2]), v.new_zeros(heads, features, 1), scale[:, :1]
    rows = []
    for first in range(0, n, CHUNK):
        q, k, values, s = (x[:, first : first + CHUNK] for x in (queries, keys, v, scale))
        weights = (q @ k.mT) * (s[:, None] - s[..., None]).clamp(max=0).exp()
        weights = weights.tril()
        before = (end - s).exp()[..., None]
        numerators = before * (q @ state) + weights @ values
        rows.append(numerators / (before * (q @ sums) + weights.sum(2, keepdim=True)))
        last = s[:, -1:]
        kept, added = (end - last).exp()[..., None], k * (s - last).exp()[..., None]
        state, sums, end = kept * state + added.mT @ values, kept * sums + added.sum(1)[..., None], last
    return torch.cat(rows, 1)
