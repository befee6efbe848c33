"""out_i = phi(q_i).S_i / phi(q_i).z_i with S_i = sum_j phi(k_j) v_j^T and z_i = sum_j phi(k_j) over the keys that row i sees."""

from __future__ import annotations

import math

import torch

from attnbench.method import Shape

CHUNK = 128  # rows of the causal scan that see each other by a matrix of weights
GROUP = 64  # chunks whose states one product adds up
ALIGNED = 8  # numbers of half precision in 16 bytes, which the fast products of a GPU read at once


def flops_of_features(shape: Shape, features: int) -> float:
    """FLOPs of linear attention once it has its features: the state, its products, and under a causal mask the weights
    within chunks and the sums of their states."""
    each = 2.0 * features * (shape.dv + 1)
    if not shape.causal:
        return (shape.keys + shape.nq) * each
    within = 2.0 * CHUNK * (features + shape.dv)
    sums = min(GROUP, math.ceil(shape.nq / CHUNK)) / CHUNK * each
    return shape.keys * each + shape.nq * (each + within + sums)


def bytes_of_features(shape: Shape, features: int) -> float:
    """Bytes beyond inputs and results: features of queries and keys, and two tensors on the way to them; under a causal
    mask also weights and states of all chunks, each with two tensors on the way. A processor multiplies half precision in
    float.
    """
    numbers = float((shape.nq + 3 * shape.nk) * features)
    if shape.causal:
        chunk = min(CHUNK, shape.nk)
        numbers += 3.0 * shape.nk * (chunk + features * shape.dv / chunk)
    return max(4, shape.itemsize) * numbers


def linear_attention(queries: torch.Tensor, keys: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Every row sees every key. Features [heads, n, F], values [heads, n, dv]."""
    return (queries @ (keys.mT @ v)) / (queries @ keys.sum(1, keepdim=True).mT)


def causal_linear_attention(
    queries: torch.Tensor, keys: torch.Tensor, v: torch.Tensor, log_scale: torch.Tensor | None = None
) -> torch.Tensor:
    """Row i sees the keys up to i. log_scale [heads, n]: it never falls, and key j's features are keys_j exp(log_scale_j).

    All chunks at once: the state that a chunk begins with is the sum of the states of the chunks before it, and products
    add these up (a loop over 512 chunks was 20 times slower than exact attention on a GPU). A row is computed at its own
    scale, so that no later key has a part in it.
    """
    heads, n, features = keys.shape
    chunk, columns = min(CHUNK, n), v.shape[2]
    # A value of 1 makes the denominator, in the same products: fewer of them, which is the time of a short sequence.
    counted = torch.cat([v, v.new_ones(heads, n, ALIGNED)], 2)
    q, k, values = (_in_parts(x, chunk) for x in (queries, keys, counted))  # heads x chunks x chunk x columns
    reading, weights, ends = q, q @ k.mT, None
    if log_scale is not None:
        scale = _in_parts(log_scale[..., None], chunk, repeat_last=True)[..., 0]
        ends = scale[..., -1]
        weights = weights * (scale[..., None, :] - scale[..., None]).clamp(max=0).exp()
        reading = q * (_before(scale)[..., None] - scale).exp()[..., None]
        k = k * (scale - ends[..., None]).exp()[..., None]
    # float16 ends at 65504. Beyond it 0 times a later state would be NaN; a product itself adds up in float32 in any case.
    wide = torch.float32 if v.dtype == torch.float16 else v.dtype
    states = (k.mT.to(wide) @ values.to(wide)).flatten(2)
    state = _sums_before(states, None if ends is None else ends.to(wide)).unflatten(2, (features, -1)).to(v.dtype)
    # Rows that fill the last chunk are cut off first: they would divide 0 by 0, and gradients of that would spread.
    sums = (reading @ state + weights.tril() @ values).flatten(1, 2)[:, :n]
    return sums[..., :columns] / sums[..., columns : columns + 1]


def _in_parts(x: torch.Tensor, size: int, repeat_last: bool = False) -> torch.Tensor:
    """[heads, n, columns] as [heads, parts, size, columns]. The last part is filled with zeros, or with the last row."""
    behind = -x.shape[1] % size
    if behind:
        filling = x[:, -1:].expand(-1, behind, -1) if repeat_last else x.new_zeros(x.shape[0], behind, x.shape[2])
        x = torch.cat([x, filling], 1)
    return x.unflatten(1, (-1, size))


def _before(scale: torch.Tensor) -> torch.Tensor:
    """[heads, parts, size] to [heads, parts]: the scale at the end of the part before. The first part has its own first
    one, the least of all."""
    return torch.cat([scale[:, :1, 0], scale[:, :-1, -1]], 1)


def _sums_before(states: torch.Tensor, ends: torch.Tensor | None) -> torch.Tensor:
    """sum over b < c of states_b exp(ends_b - ends_(c-1)) for each c: [heads, c, numbers] to the same. ends [heads, c]
    never falls; None is 0.

    In groups, so that time is linear in the number of states: sums within each by one product, whose last row is the
    whole group's, and those of the groups before by the same function.
    """
    count = states.shape[1]
    group = min(GROUP, count)
    parts = _in_parts(states, group)
    if ends is None:
        last = None
        decays = states.new_ones(group + 1, group).tril(-1).expand(*parts.shape[:2], -1, -1)
    else:
        scale = _in_parts(ends[..., None], group, repeat_last=True)[..., 0]
        last = scale[..., -1]
        at = torch.cat([_before(scale)[..., None], scale], 2)  # the scale of each sum
        decays = (scale[..., None, :] - at[..., None]).clamp(max=0).exp().tril(-1)
    within = decays @ parts
    if parts.shape[1] > 1:
        earlier = _sums_before(within[:, :, -1], last)[:, :, None]
        within = within + (earlier if ends is None else (at[..., :1] - at).exp()[..., None] * earlier)
    return within[:, :, :-1].flatten(1, 2)[:, :count]
