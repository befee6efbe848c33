#!/usr/bin/python3
"""The same attention methods in PyTorch, written as an expert user would, to be timed beside attnbench.

    attnbench run speed:peer=scripts/bench/peers/pytorch.py --method softmax --method performer ...

protocol.py says how attnbench talks to it. Everything is batched over heads; causal linear attention works in chunks; no loop
runs over tokens. Softmax is scaled_dot_product_attention where PyTorch has it.

PyTorch is measured at its best: on processors with AVX-512 the program sets OPENBLAS_CORETYPE for an OpenBLAS that does
not detect them, and it uses the faster of two chunk sizes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from protocol import NoForm, Prepared, Request, serve

if "OPENBLAS_CORETYPE" not in os.environ and "avx512f" in Path("/proc/cpuinfo").read_text():
    os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"  # OpenBLAS reads it when it is loaded, below

try:
    import torch
    from torch import Tensor
except ImportError:
    torch = None

Tensors = dict[str, "Tensor"]
Method = Callable[[Tensors, "Options"], "Tensor"]


@dataclass
class Options:
    """A request, and the chunk in which causal linear attention works."""

    request: Request
    chunk: int = 128

    @property
    def causal(self) -> bool:
        return self.request.causal

    def get(self, name: str, default: str) -> str:
        return self.request.get(name, default)


def hidden(n: int, device: Tensor) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool, device=device.device).triu_(1)


def softmax(t: Tensors, o: Options) -> Tensor:
    if o.get("form", "tiled") == "tiled" and hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        fused = torch.nn.functional.scaled_dot_product_attention
        batched = (t[name][None] for name in "qkv")  # its fused kernel takes four dimensions alone
        return fused(*batched, is_causal=o.causal, scale=1.0)[0]
    scores = torch.bmm(t["q"], t["k"].transpose(1, 2))
    if o.causal:
        scores.masked_fill_(t["hidden"], -math.inf)
    return torch.bmm(torch.softmax(scores, -1), t["v"])


def linear_attention(queries: Tensor, keys: Tensor, v: Tensor, o: Options) -> Tensor:
    """phi(q) (phi(k)^T V) / phi(q) (phi(k)^T 1)."""
    if not o.causal:
        state = torch.bmm(keys.transpose(1, 2), v)
        return torch.bmm(queries, state) / torch.bmm(queries, keys.sum(1).unsqueeze(-1))
    heads, n, features = queries.shape
    whole = n // o.chunk * o.chunk
    if whole != n:
        raise NoForm(f"n = {n} is not a multiple of the chunk {o.chunk}")
    q = queries.view(heads, -1, o.chunk, features)
    k = keys.view(heads, -1, o.chunk, features)
    values = v.view(heads, -1, o.chunk, v.shape[-1])
    states = torch.matmul(k.transpose(2, 3), values)
    states = states.cumsum(1).sub_(states)
    sums = k.sum(2)
    sums = sums.cumsum(1).sub_(sums)
    weights = torch.matmul(q, k.transpose(2, 3)).tril_()
    numerators = torch.matmul(q, states).add_(torch.matmul(weights, values))
    normalisers = torch.matmul(q, sums.unsqueeze(-1)).add_(weights.sum(-1, keepdim=True))
    return (numerators / normalisers).view(heads, n, -1)


def linear(t: Tensors, o: Options) -> Tensor:
    def features(x: Tensor) -> Tensor:
        return torch.nn.functional.elu(x).add_(1)

    return linear_attention(features(t["q"]), features(t["k"]), t["v"], o)


def performer(t: Tensors, o: Options) -> Tensor:
    w = t["projection"].transpose(1, 2)
    q, k = torch.bmm(t["q"], w), torch.bmm(t["k"], w)
    half = (t["k"] * t["k"]).sum(-1, keepdim=True).mul_(0.5)
    if o.get("features", "positive") == "trig":
        scale = half.sub_(half.amax((1, 2), keepdim=True)).exp_()
        return linear_attention(
            torch.cat([q.cos(), q.sin()], -1), torch.cat([k.cos(), k.sin()], -1).mul_(scale), t["v"], o
        )
    q = q.sub_(q.amax(-1, keepdim=True)).exp_()
    k = k.sub_(half)
    k = k.sub_(k.amax((1, 2), keepdim=True)).exp_()
    return linear_attention(q, k, t["v"], o)


def linformer(t: Tensors, _: Options) -> Tensor:
    scores = torch.bmm(t["q"], torch.bmm(t["E"], t["k"]).transpose(1, 2))
    return torch.bmm(torch.softmax(scores, -1), torch.bmm(t["F"], t["v"]))


def nystrom(t: Tensors, o: Options) -> Tensor:
    """Landmarks by reshaping; each head begins Newton-Schulz at its own norms."""
    q, k = t["q"], t["k"]
    heads, n, d = q.shape
    m = min(int(o.get("landmarks", "64")), n)
    if n % m:
        raise NoForm(f"n = {n} is not a multiple of {m} landmarks")
    ql, kl = (x.view(heads, m, n // m, d).mean(2) for x in (q, k))
    between = torch.softmax(torch.bmm(ql, kl.transpose(1, 2)), -1)
    norms = between.sum(1).amax(-1) * between.sum(2).amax(-1)
    z = between.transpose(1, 2) / norms[:, None, None]
    eye = torch.eye(m)
    for _ in range(int(o.get("iterations", "6"))):
        az = torch.bmm(between, z)
        z = 0.25 * torch.bmm(z, 13 * eye - torch.bmm(az, 15 * eye - torch.bmm(az, 7 * eye - az)))
    pooled = torch.bmm(torch.softmax(torch.bmm(ql, k.transpose(1, 2)), -1), t["v"])
    return torch.bmm(torch.softmax(torch.bmm(q, kl.transpose(1, 2)), -1), torch.bmm(z, pooled))


def vq(t: Tensors, _: Options) -> Tensor:
    codebook = t["codebook"]
    distances = torch.baddbmm(
        (codebook * codebook).sum(-1).mul_(0.5).unsqueeze(1), t["k"], codebook.transpose(1, 2), alpha=-1
    )
    codes = distances.argmin(-1)
    heads, count, _ = codebook.shape
    values = torch.zeros(heads, count, t["v"].shape[-1]).scatter_add_(
        1, codes.unsqueeze(-1).expand(t["v"].shape), t["v"]
    )
    counts = torch.zeros(heads, count).scatter_add_(1, codes, torch.ones_like(codes, dtype=torch.float32))
    weights = torch.bmm(t["q"], codebook.transpose(1, 2))
    weights = weights.sub_(weights.amax(-1, keepdim=True)).exp_()
    return torch.bmm(weights, values) / torch.bmm(weights, counts.unsqueeze(-1))


def local(t: Tensors, o: Options) -> Tensor:
    """Query chunks of one window's length, each with the chunks beside it."""
    w = int(o.get("window", "64"))
    heads, n, d = t["q"].shape
    if n % w:
        raise NoForm(f"n = {n} is not a multiple of the window {w}")
    chunks, beside = n // w, 1 if o.causal else 2
    pad = (0, 0, w, 0 if o.causal else w)
    keys, values = (torch.nn.functional.pad(t[name], pad).unfold(1, (1 + beside) * w, w) for name in "kv")
    scores = torch.matmul(t["q"].view(heads, chunks, w, d), keys)
    scores = torch.softmax(scores.masked_fill_(t["outside"], -math.inf), -1)
    return torch.matmul(scores, values.transpose(2, 3)).reshape(heads, n, -1)


METHODS: dict[str, Method] = {f.__name__: f for f in (softmax, linear, performer, linformer, nystrom, vq, local)}
KNOWN = {
    "softmax": {"form"},
    "linear": set(),
    "performer": {"m", "features", "projection"},
    "linformer": {"r"},
    "nystrom": {"landmarks", "iterations"},
    "vq": {"codes", "codebook", "sweeps", "update", "decay"},
    "local": {"window"},
}
CAUSAL = {"softmax", "linear", "performer", "local"}


def masks(t: Tensors, o: Options) -> Tensors:
    """The masks, which depend only on shapes: made once, as a model would keep them."""
    n = t["q"].shape[1]
    if o.request.name == "softmax" and o.causal:
        return {"hidden": hidden(n, t["q"])}
    if o.request.name == "local":
        w = int(o.get("window", "64"))
        width = (2 if o.causal else 3) * w
        i = torch.arange(w)[:, None]
        j = torch.arange(width)[None] - w
        key = torch.arange(0, n, w)[:, None, None] + j[None]
        inside = (i - j).abs() <= w
        if o.causal:
            inside &= j <= i
        return {"outside": ~(inside[None] & (key >= 0) & (key < n))}
    return {}


def prepare(request: Request) -> Prepared:
    """The method on tensors of its own."""
    request.require("PyTorch", KNOWN, CAUSAL)
    if request.name == "performer" and request.get("features", "positive") not in ("positive", "trig"):
        raise NoForm(f"there is no PyTorch form of {request.get('features', '')} features here")
    if torch is None:
        raise NoForm("no module torch; pip install torch, or apt-get install python3-torch")
    torch.set_grad_enabled(False)
    torch.set_num_threads(request.threads)
    options = Options(request)
    tensors = {name: torch.from_numpy(array) for name, array in request.arrays.items()}
    tensors.update(masks(tensors, options))
    method = METHODS[request.name]
    if request.causal and request.name in ("linear", "performer"):
        options.chunk = faster_chunk(method, tensors, options)

    def result(out: Tensor) -> NDArray[np.float32]:
        found: NDArray[np.float32] = out.numpy()
        return found

    return Prepared(lambda: method(tensors, options), result)


def faster_chunk(method: Method, tensors: Tensors, options: Options) -> int:
    n = tensors["q"].shape[1]
    times = {}
    for options.chunk in [c for c in (64, 128) if n % c == 0] or [n]:
        method(tensors, options)
        start = time.perf_counter()
        method(tensors, options)
        times[options.chunk] = time.perf_counter() - start
    return min(times, key=lambda chunk: times[chunk])


def library() -> str:
    """Name and version."""
    return f"PyTorch {torch.__version__}"


if __name__ == "__main__":
    serve(__doc__, prepare, library)
