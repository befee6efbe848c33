"""Softmax attention over keys and values of a few bits."""

from __future__ import annotations

from typing import Any

import torch

from attnbench.method import Parameter, Shape
from attnbench.torch_methods.softmax import TorchSoftmax, of_one_query


class TorchQuantised:
    """Softmax over keys and values that are kept in a few bits and a scale a token, in PyTorch.

    softmax(q, k^, v^), x^ = s round(x / s), s = max |x| / (2^(bits-1) - 1) of a token
    """

    backend = "torch"
    printed, family = "Quantised cache, PyTorch", "quantised"
    reference = "Liu et al. 2024, KIVI, arXiv:2402.02750"
    departure = "keys have a scale a token and not a channel, so that tokens are rounded as they come; the grid is symmetric about 0"
    parameters = {"bits": Parameter(4, "of a number; up to 4 are packed two to a byte", minimum=2, maximum=8)}
    gradients = None  # rounding has no derivative

    def __init__(self, bits: int, device: torch.device, dtype: torch.dtype) -> None:
        self.bits = bits
        self.device, self.dtype = device, dtype
        self.softmax = TorchSoftmax("auto")

    @staticmethod
    def claims(parameters: dict[str, Any], shape: Shape) -> dict[str, Any]:
        """As those of the C++ method with softmax, values of as many bits, and a scale a token."""
        bits = parameters["bits"]
        return {
            "row_stochastic": True,
            "non_negative": True,
            "permutation_equivariant": True,
            "linear_in_v": False,
            "scales_with_v": True,
            "no_attention_matrix": "its values are rounded",
            "exact_when": f"compile=false is quantised:[softmax],bits={bits},values={bits},granularity=token",
        }

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        """Those of exact attention."""
        return TorchSoftmax.cost({"implementation": "auto"}, shape)

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        """Bytes beyond inputs and results: keys or values in more bits while they are rounded, and both when they are."""
        wide = max(8 if shape.itemsize >= 4 else 4, shape.itemsize)
        return 2.0**21 + shape.nk * (2.0 * wide * max(shape.d, shape.dv) + shape.itemsize * (shape.d + shape.dv))

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        """Exact attention to what the cache gives back."""
        k, v = (numbers_of(*codes_of(x, self.bits), self.bits, x.shape[2]) for x in (k, v))
        return self.softmax.attend(q, k, v, causal)

    def decoder(self, shape: Shape) -> QuantisedCache:
        """The codes and scales of all tokens."""
        return QuantisedCache(self, shape)


def codes_of(x: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[heads, n, columns] to codes, bytes [heads, n, columns or half of them], and scales [heads, n, 1].

    A code is an integer from 1 to 2^bits - 1; 2^(bits - 1) stands for 0. Two codes of up to 4 bits share a byte: its low half
    holds a column of the first half of the columns, its high half one of the second. Rounding is decided in float64 for float32, as in C++.
    """
    middle = 2 ** (bits - 1)
    wide = x.double() if x.dtype in (torch.float32, torch.float64) else x.float()
    scale = wide.abs().amax(2, keepdim=True) / (middle - 1)
    steps = (wide / torch.where(scale > 0, scale, 1)).round().clamp(1 - middle, middle - 1)
    codes = (steps + middle).to(torch.uint8)
    if bits <= 4:
        low, high = torch.nn.functional.pad(codes, (0, codes.shape[2] % 2)).chunk(2, 2)
        codes = low | (high << 4)
    return codes, scale.to(x.dtype)


def numbers_of(codes: torch.Tensor, scale: torch.Tensor, bits: int, columns: int) -> torch.Tensor:
    """The numbers of codes and scales, [heads, n, columns]."""
    if bits <= 4:
        codes = torch.cat([codes & 15, codes >> 4], 2)[..., :columns]
    return (codes.to(scale.dtype) - 2 ** (bits - 1)) * scale


class QuantisedCache:
    """Codes and scales of keys and values, of one head. A step reads the codes of all tokens."""

    def __init__(self, method: TorchQuantised, shape: Shape) -> None:
        self._bits = method.bits
        self._columns = shape.d, shape.dv
        nothing = (torch.zeros(1, shape.nk, x, device=method.device, dtype=method.dtype) for x in self._columns)
        self._kept = [codes_of(x, method.bits) for x in nothing]
        self._came = 0

    def prefill(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Takes in one or more tokens."""
        end = self._came + k.shape[1]
        for (codes, scale), x in zip(self._kept, (k, v)):
            codes[:, self._came : end], scale[:, self._came : end] = codes_of(x, self._bits)
        self._came = end

    def step(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """A token's q and k [1, 1, d] and v [1, 1, dv] to its row [1, 1, dv]."""
        self.prefill(q, k, v)
        k, v = (
            numbers_of(codes[:, : self._came], scale[:, : self._came], self._bits, columns)
            for (codes, scale), columns in zip(self._kept, self._columns)
        )
        return of_one_query(q, k, v)

    def bytes(self) -> int:
        """Codes and scales of the tokens that came."""
        return sum(x[:, : self._came].nbytes for kept in self._kept for x in kept)
