"""Softmax attention over a sliding window."""

from __future__ import annotations

import math
from typing import Any

import torch

from attnbench.method import Parameter, Shape

NO_WORK = "its chunks hold more pairs than rows see; cost is of those that rows see, as the C++ method's"


def claims_of_window(spec: str, shape: Shape) -> dict[str, Any]:
    """Those of softmax over a window, with the C++ method that it equals."""
    made: dict[str, Any] = {
        "row_stochastic": True,
        "non_negative": True,
        "exact_when": f"compile=false is {spec}",
    }
    if shape.nq != shape.keys:
        made["no_form"] = "a window is around a query's own key, and there are more of one than of the other"
    return made


class TorchLocal:
    """Softmax over a sliding window, in PyTorch: chunks of a window's length, each with the chunks beside it.

    A_ij = exp(q_i.k_j) / sum over |i - l| <= w of exp(q_i.k_l), for |i - j| <= w
    """

    backend = "torch"
    printed, family = "Local window, PyTorch", "sparse"
    reference = "Beltagy et al. 2020, arXiv:2004.05150, section 3.1"
    parameters = {"window": Parameter(64, "half width w: row i sees |i - j| <= w", minimum=0, budget=True)}

    def __init__(self, window: int) -> None:
        self.window = window

    @staticmethod
    def claims(parameters: dict[str, Any], shape: Shape) -> dict[str, Any]:
        """As those of the C++ method of the same window."""
        return claims_of_window(f"local:window={parameters['window']}", shape)

    no_work = NO_WORK

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Those of the pairs inside the window, though the chunks hold more."""
        reach = min(parameters["window"], shape.keys - 1)
        behind = shape.nq * reach - reach * (reach + 1) / 2  # the first rows have fewer
        pairs = shape.nq + (1 if shape.causal else 2) * behind
        return 2 * pairs * (shape.d + shape.dv), pairs

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results, of three chunks a query: scores and weights, and copies of keys and values."""
        chunk = max(int(parameters["window"]), 1)
        return 3.0 * shape.itemsize * shape.nq * (3 * chunk + shape.d + shape.dv)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """In O(n w (d + dv)) time."""
        heads, n, d = q.shape
        chunk = min(max(self.window, 1), n)
        behind = -n % chunk  # rows that fill the last chunk
        queries = torch.nn.functional.pad(q, (0, 0, 0, behind)).view(heads, -1, chunk, d)
        beside = 0 if causal else chunk
        keys, values = (
            torch.nn.functional.pad(x, (0, 0, chunk, behind + beside)).unfold(1, 2 * chunk + beside, chunk)
            for x in (k, v)
        )
        scores = (queries @ keys).masked_fill(self._outside(chunk, n, causal, q.device), -math.inf)
        out = scores.softmax(-1) @ values.mT
        return out.reshape(heads, n + behind, -1)[:, :n]

    def _outside(self, chunk: int, n: int, causal: bool, device: torch.device) -> torch.Tensor:
        """[chunks, chunk, keys of a chunk]: the pairs without weight. Row 0 of a chunk is at place `chunk` of its keys."""
        i = torch.arange(chunk, device=device)[:, None]
        j = torch.arange((2 if causal else 3) * chunk, device=device)[None] - chunk
        key = torch.arange(0, n, chunk, device=device)[:, None, None] + j[None]
        inside = (i - j).abs() <= self.window
        if causal:
            inside &= j <= i
        inside = inside & (key >= 0) & (key < n)
        # A row that only fills the last chunk sees itself: a softmax over nothing is NaN.
        return ~(inside | ((i == j) & (key >= n)))
