"""Softmax attention over the pages of keys whose logits may be largest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from attnbench.method import Parameter, Shape

ROWS = 2048  # that pages are chosen for at once: copies of their keys are 0.3 GB for 8 heads of 64 in half precision


class TorchQuest:
    """Softmax over the row's own page of keys and the pages whose logits have the largest bounds, in PyTorch.

    A_ij = exp(q_i.k_j) / sum over the pages kept of exp(q_i.k_l), page score sum_c max(q_c max_c, q_c min_c) over its keys
    """

    backend = "torch"
    printed, family = "Quest, PyTorch", "selection"
    reference = "Tang et al. 2024, arXiv:2406.10774, algorithm 1"
    departure = (
        "every row is treated as a decoding step is there; the row's own page counts among those kept, as in the authors' "
        "kernels; in half precision the page of equal scores is the one that torch.topk gives"
    )
    parameters = {
        "page": Parameter(16, "keys of a page", minimum=1),
        "keep": Parameter(8, "pages of a row, its own included", minimum=1, budget=True),
    }

    def __init__(self, page: int, keep: int, device: torch.device, dtype: torch.dtype) -> None:
        self.page, self.keep = page, keep
        self.device, self.dtype = device, dtype

    @staticmethod
    def claims(parameters: dict[str, Any], shape: Shape) -> dict[str, Any]:
        """As those of the C++ method of the same pages. That weights are not negative is true but not claimed: `speed` holds
        such methods in half precision to an eighth of float64's output, and other pages of nearly equal scores make 27 % at
        4096 tokens in bfloat16."""
        return {
            "row_stochastic": True,
            "exact_when": f"compile=false is quest:page={parameters['page']},keep={parameters['keep']}",
        }

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Scores of all pages that the last row of a block sees, and the keys of the pages kept."""
        page, keep = parameters["page"], parameters["keep"]
        position = np.arange(shape.nq) + shape.offset
        seen = np.minimum(position + 1, shape.keys) if shape.causal else np.full(shape.nq, shape.keys)
        last = np.minimum(np.arange(shape.nq) // ROWS * ROWS + ROWS, shape.nq) - 1
        scored = float(np.ceil(seen[last] / page).sum())
        own = np.where(position < seen, np.minimum(page, seen - position // page * page), page)
        pairs = float(np.where(np.ceil(seen / page) <= keep, seen, (keep - 1) * page + own).sum())
        return 4 * scored * shape.d + 2 * pairs * (shape.d + shape.dv), pairs

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results: of a block of rows scores of pages, and copies of the keys and values kept."""
        page = int(parameters["page"])
        pages = math.ceil(shape.nk / page)
        kept = min(int(parameters["keep"]), pages) * page
        of_rows = min(shape.nq, ROWS) * (4 * pages + kept * (shape.d + shape.dv + 8))
        return float(shape.itemsize * (of_rows + 2 * pages * shape.d))

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """In O(n^2 d / page + n keep page (d + dv)) time."""
        n = k.shape[1]
        keys, values = self._in_pages(k), self._in_pages(v)
        extremes = extremes_of(keys)
        rows = []
        for first in range(0, q.shape[1], ROWS):
            queries = q[:, first : first + ROWS]
            i = torch.arange(first, first + queries.shape[1], device=q.device)
            seen = min(n, first + queries.shape[1]) if causal else n
            scores = bounds(queries, extremes[:, : math.ceil(seen / self.page)])
            pages = torch.arange(scores.shape[2], device=q.device)
            own = torch.where(i < n, i // self.page, -1)[:, None]  # a row beyond the keys has no page of its own
            scores = scores.masked_fill(pages == own, math.inf)
            if causal:
                scores = scores.masked_fill(pages > own, -math.inf)
            limit = (i + 1).clamp(max=n) if causal else torch.full_like(i, n)
            rows.append(over_pages(queries, keys, values, largest(scores, self.keep), limit))
        return torch.cat(rows, 1)

    def _in_pages(self, x: torch.Tensor) -> torch.Tensor:
        """[heads, n, columns] as [heads, pages, page, columns]. The last page is filled with its last row, so that its
        extremes are its own."""
        behind = -x.shape[1] % self.page
        filled = torch.cat([x, x[:, -1:].expand(-1, behind, -1)], 1) if behind else x
        return filled.unflatten(1, (-1, self.page))

    def decoder(self, shape: Shape) -> Paged:
        """Keys, values and extremes of their pages."""
        pages = math.ceil(shape.nk / self.page)
        k, v = (
            torch.zeros(1, pages, self.page, columns, device=self.device, dtype=self.dtype)
            for columns in (shape.d, shape.dv)
        )
        return Paged(k, v, self.keep)


def extremes_of(pages: torch.Tensor) -> torch.Tensor:
    """The greatest and the least number of each channel: [heads, pages, page, d] to [heads, pages, 2 d]."""
    return torch.cat([pages.amax(2), pages.amin(2)], 2)


def bounds(q: torch.Tensor, extremes: torch.Tensor) -> torch.Tensor:
    """Of the logits of each page's keys: [heads, n, d], [heads, pages, 2 d] to [heads, n, pages]."""
    return torch.cat([q.clamp(min=0), q.clamp(max=0)], 2) @ extremes.mT


def largest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """The pages of the largest scores, [heads, n, pages] to [heads, n, count]. Of equal ones the first, as in C++, but in
    half precision, where rounding makes them equal anyway and a stable sort of all would take most of the time."""
    count = min(count, scores.shape[2])
    if scores.dtype in (torch.float16, torch.bfloat16):
        return scores.topk(count, sorted=False).indices
    return scores.sort(descending=True, stable=True).indices[..., :count]


def over_pages(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, chosen: torch.Tensor, limit: torch.Tensor
) -> torch.Tensor:
    """Softmax over the keys j < limit_i of each row's pages: q [heads, n, d], keys and values [heads, pages, page, columns],
    chosen [heads, n, pages of a row], limit [n]."""
    page = keys.shape[2]
    head = torch.arange(len(q), device=q.device)[:, None, None]
    read = [x[head, chosen].flatten(2, 3) for x in (keys, values)]  # heads x n x keys of a row x columns
    j = (chosen[..., None] * page + torch.arange(page, device=q.device)).flatten(2)
    scores = (q[:, :, None] @ read[0].mT).masked_fill((j >= limit[:, None])[:, :, None], -math.inf)
    return (scores.softmax(-1) @ read[1])[:, :, 0]


class Paged:
    """A cache of keys and values in pages, [1, pages, page, columns] each, with the extremes of the keys of each page."""

    def __init__(self, k: torch.Tensor, v: torch.Tensor, keep: int) -> None:
        self.k, self.v, self.keep = k, v, keep
        d = k.shape[3]
        self.extremes = k.new_full((1, k.shape[1], 2 * d), -math.inf)
        self.extremes[..., d:] = math.inf
        self.came = 0

    def prefill(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Takes in several tokens."""
        end, page = self.came + k.shape[1], self.k.shape[2]
        for cache, given in ((self.k, k), (self.v, v)):
            cache.flatten(1, 2)[:, self.came : end] = given
        whole = end // page
        first = self.came // page
        self.extremes[:, first:whole] = extremes_of(self.k[:, first:whole])
        if end % page:
            self.extremes[:, whole : whole + 1] = extremes_of(self.k[:, whole : whole + 1, : end % page])
        self.came = end

    def step(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """A token's q and k [1, 1, d] and v [1, 1, dv] to its row [1, 1, dv]."""
        own, place = divmod(self.came, self.k.shape[2])
        self.k[:, own, place], self.v[:, own, place] = k[:, 0], v[:, 0]
        of_own, d = self.extremes[:, own], k.shape[2]
        torch.maximum(of_own[:, :d], k[:, 0], out=of_own[:, :d])
        torch.minimum(of_own[:, d:], k[:, 0], out=of_own[:, d:])
        self.came += 1
        scores = bounds(q, self.extremes[:, : own + 1])
        scores[..., own] = math.inf
        limit = torch.full((1,), self.came, device=q.device)
        return over_pages(q, self.k, self.v, largest(scores, self.keep), limit)

    def bytes(self) -> int:
        """Keys and values that came, and the extremes of their pages."""
        d, pages = self.k.shape[3], math.ceil(self.came / self.k.shape[2])
        return int((self.came * (d + self.v.shape[3]) + pages * 2 * d) * self.k.element_size())
