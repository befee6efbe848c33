#!/usr/bin/python3
"""Methods since 2022 in PyTorch's operations, to be timed beside attnbench: without a mask, batched over heads.

    attnbench run speed:peer=scripts/bench/peers/pytorch_since_2022.py --method hyper --method quest ...

protocol.py says how attnbench talks to it. Each form is written as an expert would write it for a processor, with fused
attention where the method allows it. Where rows choose keys of their own there are two ways, and the faster one counts: to
gather the keys of a few rows at a time, or to compute all logits of these rows and hide the rest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from protocol import NoForm, Prepared, Request, serve

try:
    import torch
    from torch import Tensor
except ImportError:
    torch = None

ROWS_TOGETHER = 64  # rows whose keys are gathered, or whose logits are held, at once


@dataclass
class Given:
    """The heads' tensors, [heads, n, d], what the method drew, in double, and whether chosen keys are gathered."""

    q: Tensor
    k: Tensor
    v: Tensor
    drawn: dict[str, Tensor]
    request: Request
    gather: bool = True

    def integer(self, name: str, default: int) -> int:
        return int(self.request.get(name, str(default)))


Method = Callable[[Given], "Tensor"]


def softmax_over(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """Exact attention of q, scaled as attnbench scales it. bias: added to the logits."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)


def chosen(g: Given, keys_of: Callable[[int, int], Tensor], log_counts: bool = False) -> Tensor:
    """Softmax over keys of each row's own. keys_of(begin, end): [heads, rows, k]. log_counts: keys may be drawn twice."""
    heads, n, d = g.q.shape
    out = torch.empty(heads, n, g.v.shape[-1])
    for begin in range(0, n, ROWS_TOGETHER):
        end = min(n, begin + ROWS_TOGETHER)
        keys, rows = keys_of(begin, end), g.q[:, begin:end]
        if g.gather:
            of_head = torch.arange(heads)[:, None, None]
            logits = torch.matmul(g.k[of_head, keys], rows.unsqueeze(-1)).squeeze(-1)
            weights = torch.softmax(logits, -1)
            out[:, begin:end] = torch.matmul(weights.unsqueeze(-2), g.v[of_head, keys]).squeeze(-2)
            continue
        shape = (heads, end - begin, g.k.shape[1])
        if log_counts:
            bias = torch.zeros(shape).scatter_add_(-1, keys, torch.ones(keys.shape)).log_()
        else:
            bias = torch.full(shape, -math.inf).scatter_(-1, keys, 0.0)
        out[:, begin:end] = softmax_over(rows, g.k, g.v, bias)
    return out


def sampled(g: Given) -> Tensor:
    if g.request.get("law", "uniform") != "uniform" or g.request.get("replacement", "true") != "true":
        raise NoForm("there is a PyTorch form of uniform draws with replacement alone")
    n = g.k.shape[1]
    keys = (g.drawn["u"] * n).long().clamp_(max=n - 1)
    return chosen(g, lambda begin, end: keys[:, begin:end], log_counts=True)


def paged(g: Given, size: int, keep: int, scores_of: Callable[[Tensor], Tensor]) -> Tensor:
    """Rows keep their own page and those of the largest scores."""
    n = g.k.shape[1]
    if n % size or g.q.shape[1] != n:
        raise NoForm(f"n = {n} is not a multiple of the page {size}")
    within = torch.arange(size)

    def keys_of(begin: int, end: int) -> Tensor:
        scores = scores_of(g.q[:, begin:end])
        own = (torch.arange(begin, end) // size).view(1, -1, 1).expand(scores.shape[0], -1, 1)
        scores.scatter_(-1, own, math.inf)
        pages = scores.topk(min(keep, scores.shape[-1]), dim=-1, sorted=False).indices
        return (pages.unsqueeze(-1) * size + within).flatten(-2)

    return chosen(g, keys_of)


def quest(g: Given) -> Tensor:
    size = g.integer("page", 16)
    heads, n, d = g.k.shape
    pages = g.k[:, : n // size * size].view(heads, -1, size, d)
    largest, least = pages.amax(2).transpose(1, 2), pages.amin(2).transpose(1, 2)
    return paged(g, size, g.integer("keep", 8), lambda q: q.clamp(min=0) @ largest + q.clamp(max=0) @ least)


def moba(g: Given) -> Tensor:
    size = g.integer("block", 64)
    heads, n, d = g.k.shape
    means = g.k[:, : n // size * size].view(heads, -1, size, d).mean(2).transpose(1, 2)
    return paged(g, size, g.integer("keep", 3), lambda q: q @ means)


def loki(g: Given) -> Tensor:
    basis = g.drawn["basis"].float().transpose(1, 2)
    queries, keys, k = g.q @ basis, (g.k @ basis).transpose(1, 2), min(g.integer("k", 64), g.k.shape[1])
    return chosen(g, lambda begin, end: (queries[:, begin:end] @ keys).topk(k, dim=-1, sorted=False).indices)


def sparq(g: Given) -> Tensor:
    n = g.k.shape[1]
    r, k, local = min(g.integer("r", 16), g.q.shape[-1]), min(g.integer("k", 64), n), g.integer("local", 16)
    if 2 * local - 1 > k:
        raise NoForm(f"local = {local} leaves rows of k = {k} keys nothing to choose")
    sizes = g.q.abs()
    largest = sizes.topk(r, dim=-1)
    scale = (largest.values.sum(-1, keepdim=True) / sizes.sum(-1, keepdim=True)).sqrt_()
    # All channels but the largest become 0: a product of matrices is faster here than reading channels of each row's own.
    queries = torch.zeros_like(g.q).scatter_(-1, largest.indices, g.q.gather(-1, largest.indices)) / scale
    keys, positions = g.k.transpose(1, 2), torch.arange(n)
    shares = torch.empty(*g.q.shape[:2], 1)

    def keys_of(begin: int, end: int) -> Tensor:
        scores = queries[:, begin:end] @ keys
        near = (torch.arange(begin, end)[:, None] - positions).abs() < local
        found = scores.masked_fill(near, math.inf).topk(k, dim=-1, sorted=False).indices
        shares[:, begin:end] = torch.softmax(scores, -1).gather(-1, found).sum(-1, keepdim=True)
        return found

    out = chosen(g, keys_of)
    if g.request.get("mean", "true") == "false":
        return out
    return out * shares + (1 - shares) * g.v.mean(1, keepdim=True)


def evict(g: Given) -> Tensor:
    """SnapKV's score: one set of keys for all rows, and each row's own key."""
    heads, n, d = g.q.shape
    keep, rows = min(g.integer("keep", 128), n), 64
    if keep <= rows or n <= rows:
        raise NoForm(f"the last {rows} keys are kept before all others; more than {rows} have a PyTorch form")
    seen = torch.softmax(g.q[:, n - rows :] @ g.k.transpose(1, 2), -1).sum(1, keepdim=True)
    pooled = torch.nn.functional.avg_pool1d(seen[..., : n - rows], 5, stride=1, padding=2)[:, 0]
    best = pooled.topk(keep - rows, dim=-1, sorted=False).indices
    kept = torch.cat([best, torch.arange(n - rows, n).expand(heads, -1)], -1)
    each = kept.unsqueeze(-1).expand(-1, -1, d)
    logits = g.q @ g.k.gather(1, each).transpose(1, 2)
    own = (g.q * g.k).sum(-1, keepdim=True).scatter_(1, kept.unsqueeze(-1), -math.inf)
    weights = torch.softmax(torch.cat([logits, own], -1), -1)
    values = g.v.gather(1, kept.unsqueeze(-1).expand(-1, -1, g.v.shape[-1]))
    return weights[..., :-1] @ values + weights[..., -1:] * g.v


def places(x: Tensor, planes: Tensor) -> Tensor:
    """The place of each token's pattern of signs in the Gray code. In double: a sign decides the order of all tokens."""
    signs = (x.double() @ planes.transpose(1, 2)) > 0
    place = (signs.long() << torch.arange(planes.shape[1])).sum(-1)
    for shift in (1, 2, 4, 8, 16):
        place = place ^ (place >> shift)
    return place


def hashed(g: Given, drawn: Tensor, log_weights: Tensor) -> Tensor:
    """Softmax within hashed blocks; drawn keys, [heads, s], outside of a row's block add to it with these weights."""
    heads, n, d = g.q.shape
    size, s = g.integer("block", 256), drawn.shape[-1]
    if n % size or g.k.shape[1] != n or s >= n:
        raise NoForm(f"n = {n} is not a multiple of the block {size}, or has no more than s = {s} keys")
    planes = g.drawn["planes"]
    of_keys, of_queries = (places(x, planes).argsort(dim=-1, stable=True) for x in (g.k, g.q))
    blocks = n // size

    def in_blocks(x: Tensor, order: Tensor) -> Tensor:
        return x.gather(1, order.unsqueeze(-1).expand(-1, -1, x.shape[-1])).view(heads, blocks, size, -1)

    block_of_key = torch.empty_like(of_keys).scatter_(1, of_keys, (torch.arange(n) // size).expand(heads, -1))
    own = block_of_key.gather(1, drawn).unsqueeze(1) == torch.arange(blocks).view(1, -1, 1)
    bias = log_weights.unsqueeze(1).expand(-1, blocks, -1).masked_fill(own, -math.inf)
    bias = torch.cat([torch.zeros(heads, blocks, size), bias], -1).unsqueeze(2)
    of_drawn = drawn.unsqueeze(-1).expand(-1, -1, d)
    keys, values = (
        torch.cat([in_blocks(x, of_keys), x.gather(1, of_drawn).unsqueeze(1).expand(-1, blocks, -1, -1)], 2)
        for x in (g.k, g.v)
    )
    found = softmax_over(in_blocks(g.q, of_queries), keys, values, bias.expand(-1, -1, size, -1)).view(heads, n, -1)
    return torch.empty_like(found).scatter_(1, of_queries.unsqueeze(-1).expand_as(found), found)


def hyper(g: Given) -> Tensor:
    n, u = g.k.shape[1], g.drawn["u"][:, 0]
    keys = (u * n).long().clamp_(max=n - 1)
    return hashed(g, keys, torch.full(keys.shape, math.log(n / u.shape[-1])))


def kdeformer(g: Given) -> Tensor:
    n, u, v = g.k.shape[1], g.drawn["u"][:, 0], g.v.double()
    squared_norm = torch.linalg.eigvalsh(v.transpose(1, 2) @ v)[:, -1:]
    weights = (v * v).sum(-1) / squared_norm + 1 / n
    sums = weights.cumsum(-1)
    keys = torch.searchsorted(sums, u * sums[:, -1:], right=True).clamp_(max=n - 1)
    return hashed(g, keys, -(u.shape[-1] * weights.gather(1, keys) / sums[:, -1:]).log().float())


def segment_means(x: Tensor, ends: Tensor) -> Tensor:
    """Means of consecutive rows that end before `ends`."""
    sums = torch.nn.functional.pad(x.double().cumsum(1), (0, 0, 1, 0))[:, torch.nn.functional.pad(ends, (1, 0))]
    counts = torch.diff(ends, prepend=torch.zeros(1, dtype=ends.dtype))
    return torch.diff(sums, dim=1) / counts.unsqueeze(-1)


def lara(g: Given) -> Tensor:
    n, count = g.k.shape[1], min(g.integer("c", 64), g.q.shape[1], g.k.shape[1])
    ends_of = [torch.arange(1, count + 1) * rows // count for rows in (g.q.shape[1], n)]
    near = segment_means(g.q, ends_of[0])
    centres = near + segment_means(g.k, ends_of[1])
    w = centres + g.drawn["z"]
    wf, near = w.float(), near.float()
    logits = wf @ g.k.transpose(1, 2) - (g.k * g.k).sum(-1).mul_(0.5).unsqueeze(1)
    log_sums = torch.logsumexp(logits, -1)
    means = torch.softmax(logits, -1) @ g.v
    between = w @ centres.transpose(1, 2) - (centres * centres).sum(-1).mul_(0.5).unsqueeze(1)
    own = between.diagonal(dim1=1, dim2=2)
    balance = (own - torch.logsumexp(between, -1)).exp_().float()
    weights = torch.softmax(g.q @ wf.transpose(1, 2) + (log_sums - own.float()).unsqueeze(1), -1)
    favour = torch.softmax(g.q @ near.transpose(1, 2), -1) + (balance - 1 / count).unsqueeze(1)
    weights = weights.mul_(favour.clamp_(min=1e-8))
    return weights @ means / weights.sum(-1, keepdim=True)


def eva(g: Given) -> Tensor:
    heads, n, d = g.k.shape
    w = g.integer("window", 64)
    windows = n // w
    parts = min(g.integer("c", 64) // max(1, windows), w)
    if n % w or g.q.shape[1] != n or parts == 0 or windows == 1:
        raise NoForm(f"the PyTorch form has whole windows, and a chunk in each at least; n = {n}, window = {w}")
    begins = (torch.arange(windows)[:, None] * w + torch.arange(parts) * w // parts).flatten()
    ends = torch.cat([begins[1:], torch.tensor([n])])
    chunk_of = torch.repeat_interleave(torch.arange(windows * parts), ends - begins)
    keys = segment_means(g.k, ends)
    proposals = (keys + segment_means(g.q, ends) + g.drawn["z"][:, : windows * parts]).float()
    xi = (proposals[:, chunk_of] * g.k).sum(-1) - 0.5 * (g.k * g.k).sum(-1)
    index = chunk_of.expand(heads, -1)
    largest = torch.full((heads, windows * parts), -math.inf).scatter_reduce_(1, index, xi, "amax")
    xi = (xi - largest[:, chunk_of]).exp_()
    sums = torch.zeros(heads, windows * parts).scatter_add_(1, index, xi)
    values = torch.zeros(heads, windows * parts, g.v.shape[-1]).index_add_(1, chunk_of, xi.unsqueeze(-1) * g.v)
    values = values / sums.unsqueeze(-1)
    far = g.q @ keys.float().transpose(1, 2) + (ends - begins).float().log()
    own = (torch.arange(n)[:, None] // w) == (torch.arange(windows * parts) // parts)
    near = g.q.view(heads, windows, w, d) @ g.k.view(heads, windows, w, d).transpose(2, 3)
    weights = torch.softmax(torch.cat([far.masked_fill_(own, -math.inf), near.view(heads, n, w)], -1), -1)
    of_window = weights[..., windows * parts :].reshape(heads, windows, w, w) @ g.v.view(heads, windows, w, -1)
    return weights[..., : windows * parts] @ values + of_window.view(heads, n, -1)


def skyformer(g: Given) -> Tensor:
    """In double, as attnbench computes it: the inverse of landmarks near each other has large numbers."""
    q, k, v = g.q.double(), g.k.double(), g.v.double()
    x = torch.stack([torch.cat([q[h], k[h]])[order] for h, order in enumerate(g.drawn["order"])])
    half = (x * x).sum(-1).mul_(0.5)
    between = x @ x.transpose(1, 2) - half.unsqueeze(1) - half.unsqueeze(2)
    factor = torch.linalg.cholesky(between.exp_())
    logits = x @ k.transpose(1, 2) - half.unsqueeze(-1)
    weights = logits.sub_(logits.amax((1, 2), keepdim=True)).exp_()
    sums = torch.cholesky_solve(torch.cat([weights @ v, weights.sum(-1, keepdim=True)], -1), factor)
    logits = q @ x.transpose(1, 2) - half.unsqueeze(1)
    found = logits.sub_(logits.amax(-1, keepdim=True)).exp_() @ sums
    return (found[..., :-1] / found[..., -1:]).float()


def landmarks(uniforms: Tensor, rows: int) -> Tensor:
    """The rows that Fisher and Yates' shuffle draws with these numbers, of each head."""
    drawn = []
    for numbers in uniforms[..., 0].tolist():
        order = list(range(rows))
        for t, u in enumerate(numbers):
            other = min(rows - 1, t + int(u * (rows - t)))
            order[t], order[other] = order[other], order[t]
        drawn.append(order[: len(numbers)])
    return torch.tensor(drawn)


METHODS: dict[str, Method] = {
    f.__name__: f for f in (sampled, hyper, kdeformer, lara, eva, skyformer, quest, moba, loki, sparq, evict)
}
KNOWN = {
    "sampled": {"law", "s", "replacement"},
    "hyper": {"block", "s", "bits"},
    "kdeformer": {"block", "s", "bits"},
    "lara": {"c"},
    "eva": {"c", "window"},
    "skyformer": {"landmarks"},
    "quest": {"page", "keep"},
    "moba": {"block", "keep"},
    "loki": {"r", "k"},
    "sparq": {"r", "k", "local", "mean"},
    "evict": {"keep"},
}
CHOOSING = {"sampled", "quest", "moba", "loki", "sparq"}


def prepare(request: Request) -> Prepared:
    """The method on tensors of its own."""
    request.require("PyTorch", KNOWN, set())
    if torch is None:
        raise NoForm("no module torch; pip install torch")
    torch.set_grad_enabled(False)
    torch.set_num_threads(request.threads)
    heads = [torch.from_numpy(request.arrays[name]) for name in "qkv"]
    drawn = {name: torch.from_numpy(array) for name, array in request.drawn.items()}
    if request.name == "skyformer":
        drawn["order"] = landmarks(drawn["uniforms"], heads[0].shape[1] + heads[1].shape[1])
    given, method = Given(heads[0], heads[1], heads[2], drawn, request), METHODS[request.name]
    if request.name in CHOOSING:
        given.gather = gathering_is_faster(method, given)
    return Prepared(lambda: method(given), lambda out: np.asarray(out.numpy(), np.float32))


def gathering_is_faster(method: Method, given: Given) -> bool:
    times = []
    for given.gather in (True, False):
        method(given)
        start = time.perf_counter()
        method(given)
        times.append(time.perf_counter() - start)
    return times[0] < times[1]


def library() -> str:
    """Name and version."""
    return f"PyTorch {torch.__version__}"


if __name__ == "__main__":
    serve(__doc__, prepare, library)
