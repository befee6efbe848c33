#!/usr/bin/python3
"""The same attention methods in PyTorch, written as an expert user would, to be timed beside attnbench.

`attnbench run speed:peer=scripts/bench/pytorch.py ...` starts this program, sends it the heads that attnbench times,
checks that both compute the same, and lets it take turns with its own methods. This program answers each JSON line on
its input with one JSON line:

  {"prepare": SPEC, "tensors": FILE, "causal": false, "threads": 1}   -> {"id": 0, "output": FILE} or {"none": REASON}
  {"run": ID, "iterations": 3}                                        -> {"seconds": 0.0123}, of one call

Tensors are safetensors: q, k, v of shape [heads, n, d] (q and k scaled by d^-1/4 each) and a method's random tensors, of
shape [heads, ...]. Everything is batched over heads; causal linear attention works in chunks; no loop runs over tokens.

PyTorch is measured at its best: on processors with AVX-512 the program sets OPENBLAS_CORETYPE for an OpenBLAS that does
not detect them, and it uses the faster of two chunk sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if "OPENBLAS_CORETYPE" not in os.environ and "avx512f" in Path("/proc/cpuinfo").read_text():
    os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"  # OpenBLAS reads it when it is loaded, below

try:
    import torch
    from torch import Tensor
except ImportError:
    torch = None

Tensors = dict[str, "Tensor"]
Method = Callable[[Tensors, "Options"], "Tensor"]


class Options:
    """One spec: its name, its parameters, and how it is called."""

    def __init__(self, spec: str, causal: bool) -> None:
        self.name, _, rest = spec.partition(":")
        self.parameters = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
        self.causal = causal
        self.chunk = 128

    def get(self, name: str, default: str) -> str:
        return self.parameters.get(name, default)


def read_tensors(path: str) -> Tensors:
    """The float32 tensors of a safetensors file."""
    raw = bytearray(Path(path).read_bytes())
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(bytes(raw[8 : 8 + length]))
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(raw, dtype=torch.float32, count=(end - begin) // 4, offset=8 + length + begin)
        tensors[name] = values.reshape(entry["shape"]).clone()
    return tensors


def write_tensor(path: str, name: str, tensor: Tensor) -> None:
    """One float32 tensor as a safetensors file."""
    data = tensor.contiguous().numpy().tobytes()
    header = json.dumps({name: {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(header)) + header + data)


def hidden(n: int, device: Tensor) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool, device=device.device).triu_(1)


def softmax(t: Tensors, o: Options) -> Tensor:
    if o.get("form", "tiled") == "tiled" and hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        fused = torch.nn.functional.scaled_dot_product_attention
        return fused(t["q"], t["k"], t["v"], is_causal=o.causal, scale=1.0)
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
        raise ValueError(f"n = {n} is not a multiple of the chunk {o.chunk}")
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
        raise ValueError(f"n = {n} is not a multiple of {m} landmarks")
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
        raise ValueError(f"n = {n} is not a multiple of the window {w}")
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
    if o.name == "softmax" and o.causal:
        return {"hidden": hidden(n, t["q"])}
    if o.name == "local":
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


def refusal(o: Options) -> str | None:
    """Why this method has no PyTorch form; None if it has one."""
    if o.name not in METHODS:
        return f"there is no PyTorch form of {o.name} here"
    unknown = set(o.parameters) - KNOWN[o.name]
    if unknown:
        return f"the PyTorch form of {o.name} has no {', '.join(sorted(unknown))}"
    if o.name == "performer" and o.get("features", "positive") not in ("positive", "trig"):
        return f"there is no PyTorch form of {o.get('features', '')} features here"
    if o.causal and o.name not in CAUSAL:
        return f"there is no causal PyTorch form of {o.name} here"
    return None


class Server:
    """The prepared calls, by number."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], Tensor]] = []

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        options = Options(request["prepare"], request["causal"])
        if torch is None:
            return {"none": "PyTorch is not installed for " + sys.executable}
        if reason := refusal(options):
            return {"none": reason}
        torch.set_num_threads(request["threads"])
        tensors = read_tensors(request["tensors"])
        tensors.update(masks(tensors, options))
        method = METHODS[options.name]
        if options.causal and options.name in ("linear", "performer"):
            options.chunk = self.faster_chunk(method, tensors, options)
        try:
            output = method(tensors, options)
        except ValueError as error:
            return {"none": str(error)}
        path = request["tensors"] + ".output"
        write_tensor(path, "out", output)
        self.calls.append(lambda: method(tensors, options))
        return {"id": len(self.calls) - 1, "output": path, "version": torch.__version__}

    @staticmethod
    def faster_chunk(method: Method, tensors: Tensors, options: Options) -> int:
        n = tensors["q"].shape[1]
        times = {}
        for options.chunk in [c for c in (64, 128) if n % c == 0] or [n]:
            method(tensors, options)
            start = time.perf_counter()
            method(tensors, options)
            times[options.chunk] = time.perf_counter() - start
        return min(times, key=lambda chunk: times[chunk])

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        call = self.calls[request["run"]]
        start = time.perf_counter()
        for _ in range(request["iterations"]):
            call()
        return {"seconds": (time.perf_counter() - start) / request["iterations"]}


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        if line.strip():
            yield json.loads(line)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    server = Server()
    if torch is not None:
        torch.set_grad_enabled(False)
    for request in requests():
        answer = server.prepare(request) if "prepare" in request else server.run(request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
