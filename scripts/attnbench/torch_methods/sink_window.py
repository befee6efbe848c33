"""Softmax attention over the first tokens and a sliding window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from attnbench.method import Parameter, Shape
from attnbench.torch_methods.local import NO_WORK, claims_of_window

ROWS = 64  # of a chunk at least: a chunk is one product
ALIGNED = 8  # numbers of half precision in 16 bytes, which the fast products of a GPU read at once


class TorchSinkWindow:
    """Softmax over the first tokens and a sliding window, in PyTorch: chunks of rows, each with copies of the keys that they see.

    A_ij = exp(q_i.k_j) / sum over l < s or |i - l| <= w of exp(q_i.k_l), for such j
    """

    backend = "torch"
    printed, family = "Sinks and window, PyTorch", "sparse"
    reference = "Xiao et al. 2023, StreamingLLM, arXiv:2309.17453, section 3.2"
    departure = "positions do not move with the window: q and k are taken as given"
    parameters = {
        "sinks": Parameter(4, "first tokens that every row sees", minimum=0),
        "window": Parameter(64, "half width w: row i sees |i - j| <= w", minimum=0, budget=True),
    }

    def __init__(self, sinks: int, window: int, device: torch.device, dtype: torch.dtype) -> None:
        self.sinks, self.window = sinks, window
        self.device, self.dtype = device, dtype

    @staticmethod
    def claims(parameters: dict[str, Any], shape: Shape) -> dict[str, Any]:
        """As those of the C++ method of the same sinks and window."""
        return claims_of_window(f"sink-window:sinks={parameters['sinks']},window={parameters['window']}", shape)

    no_work = NO_WORK

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Those of the pairs that rows see, though the chunks hold more."""
        position = np.arange(shape.nq) + shape.offset
        visible = np.minimum(position + 1, shape.keys) if shape.causal else np.full(shape.nq, shape.keys)
        first = np.minimum(parameters["sinks"], visible)
        begin = np.maximum(position - parameters["window"], first)
        end = np.minimum(position + parameters["window"] + 1, visible)
        pairs = float((first + np.maximum(end - begin, 0)).sum())
        return 2 * pairs * (shape.d + shape.dv), pairs

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results: of each chunk scores, weights, and copies of keys and values. A processor multiplies
        half precision in float."""
        reach = min(int(parameters["window"]), max(shape.keys - 1, 0))
        chunk = min(max(ROWS, reach), max(shape.nq, 1))
        keys = min(int(parameters["sinks"]), shape.keys) + chunk + (1 if shape.causal else 2) * reach
        numbers = math.ceil(shape.nq / chunk) * keys * (3 * chunk + shape.d + shape.dv)
        return float(max(4, shape.itemsize) * numbers)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """In O(n (w + s) (d + dv)) time."""
        n = q.shape[1]
        reach = min(self.window, n - 1)
        chunk = min(max(ROWS, reach), n)
        rows, keys = self._read(n, reach, chunk, causal, q.device)
        queries = torch.nn.functional.pad(q, (0, 0, 0, -n % chunk)).unflatten(1, (-1, chunk))
        k, v = (x[:, keys.clamp(min=0)] for x in (k, v))  # heads x chunks x keys of a chunk x columns
        i, j = rows[..., None], keys[:, None]
        seen = (j >= 0) & ((j < self.sinks) | ((i - j).abs() <= self.window))
        if causal:
            seen &= j <= i
        weights = (queries @ k.mT).masked_fill(~seen, -math.inf).softmax(-1)
        return (weights @ v).flatten(1, 2)[:, :n]

    def _read(
        self, n: int, reach: int, chunk: int, causal: bool, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions of each chunk's rows [chunks, chunk] and keys [chunks, keys]; -1 is no key. Each key is there once.

        Rows that only fill the last chunk are the last row again: a softmax over nothing is NaN.
        """
        sinks = min(self.sinks, n)
        first = torch.arange(0, n, chunk, device=device)[:, None]
        window = first + torch.arange(-reach, chunk if causal else chunk + reach, device=device)
        window = window.masked_fill((window < sinks) | (window >= n), -1)
        filling = -(sinks + window.shape[1]) % ALIGNED
        keys = [torch.arange(sinks, device=device), torch.full((filling,), -1, device=device)]
        rows = (first + torch.arange(chunk, device=device)).clamp(max=n - 1)
        return rows, torch.cat([*(x.expand(len(first), -1) for x in keys), window], 1)

    def decoder(self, shape: Shape) -> Recent:
        """The keys and values that later rows see."""
        size = min(self.sinks + self.window + 1, shape.nk)
        k, v = (torch.empty(1, size, columns, device=self.device, dtype=self.dtype) for columns in (shape.d, shape.dv))
        return Recent(k, v, min(self.sinks, size))


class Recent:
    """The first tokens and the most recent ones, which take the place of older ones. k [1, tokens, d], v [1, tokens, dv]."""

    def __init__(self, k: torch.Tensor, v: torch.Tensor, sinks: int) -> None:
        self.k, self.v, self.sinks = k, v, sinks
        self.came = 0

    def prefill(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Takes in several tokens."""
        come, size = k.shape[1], self.k.shape[1]
        j = torch.arange(self.came, self.came + come, device=k.device)
        kept = (j < self.sinks) | (j >= self.came + come - (size - self.sinks))
        place = torch.where(j < self.sinks, j, self.sinks + (j - self.sinks) % max(size - self.sinks, 1))[kept]
        self.k[:, place], self.v[:, place] = k[:, kept], v[:, kept]
        self.came += come

    def step(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """A token's q and k [1, 1, d] and v [1, 1, dv] to its row [1, 1, dv]."""
        j = self.came
        place = j if j < self.sinks else self.sinks + (j - self.sinks) % (self.k.shape[1] - self.sinks)
        self.k[:, place], self.v[:, place] = k[:, 0], v[:, 0]
        self.came += 1
        count = min(self.came, self.k.shape[1])
        return (q @ self.k[:, :count].mT).softmax(-1) @ self.v[:, :count]

    def bytes(self) -> int:
        """Of the tokens that it keeps."""
        count = min(self.came, self.k.shape[1])
        return int(count * (self.k.shape[2] + self.v.shape[2]) * self.k.element_size())
