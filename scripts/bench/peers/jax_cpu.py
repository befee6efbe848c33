#!/usr/bin/python3
"""Exact, linear and Performer attention in JAX, compiled by XLA for the processor.

    attnbench run speed:peer=scripts/bench/peers/jax_cpu.py --method softmax --python VENV/bin/python ...

protocol.py says how attnbench talks to it. The interpreter needs the package jax. XLA takes as many threads as the process may
have cores, so that a process computes with one number of threads.
"""

from __future__ import annotations

import os
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray
from protocol import NoForm, Prepared, Request, serve

CHUNK = 128  # tokens that causal linear attention takes at a time
KNOWN = {"softmax": set[str](), "linear": set[str](), "performer": {"m"}}


def start(threads: int) -> Any:
    """The module jax, in a process that has that many cores."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > threads:
        os.sched_setaffinity(0, cores[:threads])
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    try:
        import jax
    except ImportError as error:
        raise NoForm(f"{error}; pip install jax") from None
    return jax


def softmax(jax: Any, causal: bool) -> Callable[..., Any]:
    """JAX's own attention, which wants [batch, n, heads, d]."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        moved = (x.transpose(1, 0, 2)[None] for x in (q, k, v))
        return jax.nn.dot_product_attention(*moved, scale=1.0, is_causal=causal)[0].transpose(1, 0, 2)

    return attend


def by_features(jax: Any, causal: bool, features: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """phi(q) (phi(k)^T V) / phi(q) (phi(k)^T 1); with a causal mask in chunks, whose states a scan carries on."""
    np_ = jax.numpy

    def attend(q: Any, k: Any, v: Any, *drawn: Any) -> Any:
        queries, keys = features(q, k, *drawn)
        values = np_.concatenate([v, np_.ones_like(v[..., :1])], -1)
        if not causal:
            out = queries @ (keys.swapaxes(1, 2) @ values)
            return out[..., :-1] / out[..., -1:]
        heads, n, _ = q.shape
        chunked = [x.reshape(heads, n // CHUNK, CHUNK, -1).swapaxes(0, 1) for x in (queries, keys, values)]

        def step(state: Any, chunk: tuple[Any, Any, Any]) -> tuple[Any, Any]:
            a, b, c = chunk
            out = a @ state + np_.tril(a @ b.swapaxes(1, 2)) @ c
            return state + b.swapaxes(1, 2) @ c, out

        zero = np_.zeros((heads, queries.shape[-1], values.shape[-1]), np_.float32)
        out = jax.lax.scan(step, zero, tuple(chunked))[1].swapaxes(0, 1).reshape(heads, n, -1)
        return out[..., :-1] / out[..., -1:]

    return attend


def linear_features(jax: Any) -> Callable[..., tuple[Any, Any]]:
    return lambda q, k: (jax.nn.elu(q) + 1, jax.nn.elu(k) + 1)


def positive_features(jax: Any) -> Callable[..., tuple[Any, Any]]:
    """Stabilised by the row's maximum for queries and by the head's for keys, which the normaliser cancels."""
    np_ = jax.numpy

    def features(q: Any, k: Any, projection: Any) -> tuple[Any, Any]:
        a, b = q @ projection.swapaxes(1, 2), k @ projection.swapaxes(1, 2) - 0.5 * (k * k).sum(-1, keepdims=True)
        return np_.exp(a - a.max(-1, keepdims=True)), np_.exp(b - b.max((1, 2), keepdims=True))

    return features


def prepare(request: Request) -> Prepared:
    """The compiled function on arrays of its own."""
    request.require("JAX", KNOWN, set(KNOWN))
    n = request.arrays["q"].shape[1]
    if request.causal and request.name != "softmax" and n % CHUNK:
        raise NoForm(f"n = {n} is not a multiple of the chunk {CHUNK}")
    if "jax" in started and started["jax"][0] != request.threads:
        raise NoForm(f"this process computes with {started['jax'][0]} threads already")
    jax = started.setdefault("jax", (request.threads, start(request.threads)))[1]
    function = {
        "softmax": lambda: softmax(jax, request.causal),
        "linear": lambda: by_features(jax, request.causal, linear_features(jax)),
        "performer": lambda: by_features(jax, request.causal, positive_features(jax)),
    }[request.name]()
    names = ["q", "k", "v", *(["projection"] if request.name == "performer" else [])]
    given = [jax.numpy.asarray(request.arrays[name]) for name in names]
    compiled = jax.jit(function)

    def result(out: Any) -> NDArray[np.float32]:
        return np.asarray(out)

    return Prepared(lambda: compiled(*given).block_until_ready(), result)


started: dict[str, tuple[int, Any]] = {}  # the number of threads, and the module


def library() -> str:
    """Name and version."""
    return f"JAX {started['jax'][1].__version__}"


if __name__ == "__main__":
    serve(__doc__, prepare, library)
