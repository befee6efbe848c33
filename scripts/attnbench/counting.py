"""Counts the work of one call in NumPy or PyTorch, for `check`."""

from __future__ import annotations

import math
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator
from unittest import mock

import numpy as np

from attnbench.method import Array

EXPONENTIALS = {"exp", "exp2", "expm1"}
ARITHMETIC = {
    "add", "subtract", "multiply", "divide", "true_divide", "square", "maximum", "minimum", "negative", "reciprocal",
}  # fmt: skip


class Tally:
    """The work of one call, as far as it is seen."""

    def __init__(self) -> None:
        self.products = 0.0
        """FLOPs of matrix products: a multiply and an add are two"""
        self.others = 0.0
        """FLOPs of arithmetic on single numbers"""
        self.exps = 0.0


_tally = Tally()  # of the call that is counted now


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Counted) else x


def _counted(x: Any) -> Any:
    return x.view(Counted) if type(x) is np.ndarray else x


def _count_ufunc(ufunc: Any, method: str, inputs: list[Any], result: Any) -> None:
    size = float(np.size(result))
    if ufunc.__name__ == "matmul":
        _tally.products += 2 * size * np.shape(inputs[0])[-1]
    elif ufunc.__name__ in EXPONENTIALS:
        _tally.exps += size
    elif ufunc.__name__ in ARITHMETIC:
        _tally.others += size if method == "__call__" else float(np.size(inputs[0]))


def _count_function(name: str, args: tuple[Any, ...], result: Any) -> None:
    size = float(np.size(result))
    if name in ("dot", "inner", "vdot"):
        shape = np.shape(args[0])
        _tally.products += 2 * size * (shape[-1] if shape else 1)
    elif name == "einsum" and isinstance(args[0], str):
        operands = args[1:]
        letters = args[0].replace(" ", "").split("->")[0].split(",")
        sizes: dict[str, int] = {}
        for word, operand in zip(letters, operands):
            sizes.update(zip(reversed(word.replace("...", "")), reversed(np.shape(operand))))
        if len(operands) > 1:
            _tally.products += 2.0 * math.prod(sizes.values())


class Counted(np.ndarray[Any, Any]):
    """An array whose products, exponentials and arithmetic are counted, as are those of what is made of it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [_plain(x) for x in inputs]
        if "out" in keywords:
            keywords["out"] = tuple(_plain(x) for x in keywords["out"])
        result = getattr(ufunc, method)(*plain, **{name: _plain(x) for name, x in keywords.items()})
        _count_ufunc(ufunc, method, plain, result)
        return tuple(_counted(x) for x in result) if isinstance(result, tuple) else _counted(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = super().__array_function__(func, types, args, kwargs)
        _count_function(func.__name__, args, result)
        return _counted(result)


@contextmanager
def _kept_counted() -> Iterator[None]:
    """np.asarray and its like give the array itself back, and not a plain one that nobody counts."""

    def keeping(function: Callable[..., Any]) -> Callable[..., Any]:
        def made(x: Any, *args: Any, **keywords: Any) -> Any:
            out = function(x, *args, **keywords)
            return _counted(out) if isinstance(x, Counted) else out

        return made

    with ExitStack() as patches:
        for name in ("asarray", "array", "ascontiguousarray"):
            patches.enter_context(mock.patch.object(np, name, keeping(getattr(np, name))))
        yield


def counted_in_numpy(attend: Callable[..., Any], *given: Any) -> tuple[Array, float, float, float]:
    """The output, the FLOPs that are seen without and with arithmetic on single numbers, and the exponentials."""
    global _tally
    _tally = Tally()
    with _kept_counted():
        out = attend(*(_counted(x) for x in given))
    return _plain(np.asanyarray(out)), _tally.products, _tally.products + _tally.others, _tally.exps


def counted_in_torch(attend: Callable[..., Any], *given: Any) -> tuple[Array, float, float, float]:
    """The same by PyTorch's own counter, which knows products and no exponentials."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        out = attend(*given)
    flops = float(counter.get_total_flops())
    return out, flops, math.inf, 0.0
