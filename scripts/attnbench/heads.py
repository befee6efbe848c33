"""Methods on arrays of this process."""

from __future__ import annotations

import warnings
from typing import Any, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbench import _native
from attnbench._native import Misuse
from attnbench.loading import name_of

Array = NDArray[np.floating[Any]]


def _tensor_as_array(given: Any, name: str) -> Any:
    """A tensor of PyTorch as an array, anything else as it is. Raises Misuse for one that this process cannot read."""
    if type(given).__module__.partition(".")[0] != "torch":
        return given
    if given.device.type != "cpu":
        raise Misuse(f"{name} is a tensor on {given.device}; expected one on the CPU: {name}.cpu()")
    if given.requires_grad:
        raise Misuse(f"{name} is a tensor that carries gradients, which end here; expected {name}.detach()")
    if not given.dtype.is_floating_point or given.dtype.itemsize < 4:
        raise Misuse(f"{name} is a tensor of {given.dtype}; expected float32 or float64: {name}.float()")
    return given.numpy()


def _four_axes(array: Array, name: str) -> Array:
    if not 2 <= array.ndim <= 4:
        raise Misuse(f"{name} has shape {array.shape}; expected [n, d], [heads, n, d] or [batch, heads, n, d]")
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _arrays(q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[Array, Array, Array]:
    """float32 when all three are, float64 otherwise."""
    given = [np.asarray(_tensor_as_array(x, name)) for x, name in zip((q, k, v), "qkv")]
    for array, name in zip(given, "qkv"):
        if array.dtype.kind not in "fiu":
            raise Misuse(f"{name} is of type {array.dtype}; expected numbers")
    single = all(x.dtype.itemsize <= 4 and x.dtype.kind == "f" for x in given)
    dtype: type[np.floating[Any]] = np.float32 if single else np.float64
    queries, keys, values = (np.ascontiguousarray(x, dtype=dtype) for x in given)
    return queries, keys, values


def _same_axes(q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[Array, Array, Array]:
    arrays = _arrays(q, k, v)
    axes = [x.ndim for x in arrays]
    if len(set(axes)) > 1:
        raise Misuse(f"q, k and v have {axes[0]}, {axes[1]} and {axes[2]} axes; expected the same number")
    return arrays


def _question_axes(q: Array, k: Array, stacklevel: int) -> None:
    """Warns if the axes of heads and tokens seem exchanged. One query of many heads is what decoding gives."""
    if q.ndim > 2 and all(x.shape[-3] > x.shape[-2] for x in (q, k)):
        warnings.warn(
            f"q has shape {q.shape}, which is {q.shape[-3]} heads of {q.shape[-2]} tokens, and k has shape {k.shape}; "
            "attnbench takes [heads, n, d]: if yours are [n, heads, d], exchange these axes, as "
            "np.swapaxes(q, -3, -2) does",
            stacklevel=stacklevel + 1,
        )


def _learnt(spec: str, calibration: Sequence[ArrayLike] | None, warn: bool) -> list[Array] | None:
    """The calibration head with four axes. Warns if a fitted method would learn from the input."""
    if calibration is None:
        if warn and _native.fitted(spec):
            warnings.warn(
                f"{spec} learns from the input itself (in sample); calibration=(q, k, v) is another", stacklevel=4
            )
        return None
    if len(calibration) != 3:
        raise Misuse(f"calibration: {len(calibration)} arrays; expected (q, k, v)")
    return [_four_axes(np.asarray(x, dtype=np.float64), "calibration") for x in calibration]


def _further(extra: Mapping[str, ArrayLike] | None) -> dict[str, Array]:
    arrays = {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in (extra or {}).items()}
    return {name: _four_axes(array, f"extra '{name}'") for name, array in arrays.items()}


def _applied(
    what: str,
    method: str | type,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    causal: bool,
    seed: int,
    calibration: Sequence[ArrayLike] | None,
    state: Mapping[str, ArrayLike] | None,
    extra: Mapping[str, ArrayLike] | None,
    scaled: bool,
) -> Array:
    spec = name_of(method)
    q, k, v = _same_axes(q, k, v)
    _question_axes(q, k, stacklevel=3)
    learnt = _learnt(spec, calibration, state is None)
    injected = None if state is None else {name: np.asarray(x, dtype=np.float64) for name, x in state.items()}
    result = _native.attend(
        spec, what, _four_axes(q, "q"), _four_axes(k, "k"), _four_axes(v, "v"), causal, seed, scaled, learnt, injected,
        _further(extra), (0, 1),
    )  # fmt: skip
    return result.reshape(q.shape[:-2] + result.shape[-2:])


def attend(
    method: str | type,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    causal: bool = False,
    seed: int = 1,
    calibration: Sequence[ArrayLike] | None = None,
    state: Mapping[str, ArrayLike] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    scaled: bool = False,
) -> Array:
    """Attention by a method: [..., nq, dv] for q [..., nq, d], k [..., nk, d], v [..., nk, dv].

    Leading axes: none, heads, or batch and heads; k and v may have fewer heads, each for as many queries. float32 when
    all are float32, else float64. causal: the last query sees all keys. seed: the draw; equal seeds are equal draws.
    calibration: (q, k, v) that fitted methods learn from, by default the input itself. state: arrays in place of what
    would be drawn, [rows, columns] for all heads or [heads, rows, columns], as `state` returns them. extra: the arrays
    that the method needs beside q, k and v, by name, [rows, columns] for all heads or with the leading axes of q. scaled:
    q and k are times d^-1/4 already, as methods expect them. Raises Misuse for what cannot be, NumericallyInvalid for NaN
    or infinity.
    """
    return _applied("out", method, q, k, v, causal, seed, calibration, state, extra, scaled)


def attention_matrix(
    method: str | type,
    q: ArrayLike,
    k: ArrayLike,
    *,
    causal: bool = False,
    seed: int = 1,
    calibration: Sequence[ArrayLike] | None = None,
    state: Mapping[str, ArrayLike] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    scaled: bool = False,
) -> Array:
    """The matrix A of out = A v, [..., nq, nk], as attend applies it (v = the identity). Otherwise as `attend`."""
    keys = np.asarray(_tensor_as_array(k, "k"))
    return _applied("attention", method, q, keys, keys, causal, seed, calibration, state, extra, scaled)


def kernel(
    method: str | type,
    q: ArrayLike,
    k: ArrayLike,
    *,
    seed: int = 1,
    calibration: Sequence[ArrayLike] | None = None,
    state: Mapping[str, ArrayLike] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    scaled: bool = False,
) -> Array:
    """The estimates of exp(q_i.k_j) before anything is normalised, [..., nq, nk]. Otherwise as `attend`."""
    keys = np.asarray(_tensor_as_array(k, "k"))
    return _applied("kernel", method, q, keys, keys, False, seed, calibration, state, extra, scaled)


def state(
    method: str | type,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike | None = None,
    *,
    causal: bool = False,
    seed: int = 1,
    calibration: Sequence[ArrayLike] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
    scaled: bool = False,
) -> dict[str, Array]:
    """The arrays that a method draws and learns for these heads, by name. `attend(..., state=...)` takes them back.

    float64, [rows, columns] for q of two axes and [heads, rows, columns] otherwise, for the first batch. v: by default k.
    Empty for a method that draws and learns nothing. Otherwise as `attend`.
    """
    spec = name_of(method)
    queries, keys, values = _same_axes(q, k, k if v is None else v)
    _question_axes(queries, keys, stacklevel=2)
    learnt = _learnt(spec, calibration, True)
    given = [_four_axes(x, name) for x, name in zip((queries, keys, values), "qkv")]
    drawn = _native.state(spec, given[0], given[1], given[2], causal, seed, scaled, learnt, _further(extra))
    return {name: arrays[0] if queries.ndim == 2 else np.stack(arrays) for name, arrays in drawn.items()}
