"""Methods whose attend takes torch tensors: `tensors = True`."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import torch
from numpy.typing import NDArray

Array = NDArray[Any]

# Arrays are read-only, as they should be, and torch warns of that.
warnings.filterwarnings("ignore", message="The given NumPy array is not writ")


def attend(function: Callable[..., Any]) -> Callable[..., Array]:
    """attend of an instance, from arrays to an array."""

    def called(*given: Array | bool) -> Array:
        with torch.no_grad():
            out: Array = _tensor(function(*map(_as_tensor, given))).numpy()
        return out

    return called


def gradients(
    function: Callable[..., Any], q: Array, k: Array, v: Array, further: tuple[Array | bool, ...], g: Array
) -> tuple[Array, ...]:
    """Gradients of <g, attend(q, k, v, *further)>, by autograd, for attend of an instance."""
    given = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    with torch.enable_grad():
        out = _tensor(function(*given, *map(_as_tensor, further)))
    if not out.requires_grad:
        raise TypeError("attend gave a tensor without a graph, so autograd has no gradients; remove no_grad and detach")
    found = torch.autograd.grad(out, given, torch.from_numpy(g).to(out.dtype), allow_unused=True)
    return tuple((torch.zeros_like(x) if dx is None else dx).numpy() for x, dx in zip(given, found))


def _as_tensor(given: Array | bool) -> torch.Tensor | bool:
    return given if isinstance(given, bool) else torch.from_numpy(given)


def _tensor(out: Any) -> torch.Tensor:
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"attend returned a {type(out).__name__}; expected a torch tensor, because tensors = True")
    return out
