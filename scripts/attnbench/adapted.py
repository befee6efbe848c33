"""Classes as the harness calls them: on queries and keys that are scaled, and with attend."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Callable

from attnbench._native import Misuse
from attnbench.entry import own
from attnbench.method import Method, Shape

OF_QUERIES_AND_KEYS = ("attend", "kernel", "transcription", "gradients")  # functions whose arguments begin with q and k


def computes_attention(cls: type) -> bool:
    """Whether a class is a method: it has attend, a decoder, or features_q and features_k."""
    return bool(own(cls, Method, "attend") or own(cls, Method, "decoder") or _has_features(cls))


def adapted(cls: type[Any]) -> type[Any]:
    """The class with functions that take scaled q and k where its own name `scale`, and with an attend that runs its
    decoder where it has a decoder alone. The class itself where nothing is to do.
    """
    scaled = [name for name in OF_QUERIES_AND_KEYS if _names_scale(own(cls, Method, name))]
    decodes = own(cls, Method, "decoder") is not None
    decoder_alone = decodes and own(cls, Method, "attend") is None and not _has_features(cls)
    if not scaled and not decodes:
        return cls
    same = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    made: type[Any] = types.new_class(cls.__name__, (cls,), exec_body=lambda body: body.update(same))
    for name in scaled:
        setattr(made, name, _on_scaled(made, cls, name))
    if decodes:
        setattr(made, "decoder", _decoder_on_scaled(made, cls))
    if decoder_alone:
        setattr(made, "attend", _attend_by_steps(cls))
        setattr(made, "causal_only", True)
    return made


def _has_features(cls: type) -> bool:
    return bool(own(cls, Method, "features_q") and own(cls, Method, "features_k"))


def _names_scale(function: Any) -> bool:
    try:
        return function is not None and "scale" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # no function, or one that is written in C
        return False


def _called_with_scale(function: Callable[..., Any], q: Any, k: Any, *others: Any, **named: Any) -> Any:
    """function(q, k, ...) for q and k that are scaled by d^-1/4 each."""
    d = q.shape[-1]
    return function(q * d**0.25, k * d**0.25, *others, scale=d**-0.5, **named)


def _on_scaled(made: type, cls: type, name: str) -> Callable[..., Any]:
    function = getattr(cls, name)

    @functools.wraps(function)
    def called(self: Any, q: Any, k: Any, *others: Any, **named: Any) -> Any:
        out = _called_with_scale(getattr(super(made, self), name), q, k, *others, **named)
        if name != "gradients":
            return out
        dq, dk, dv = out
        up = q.shape[-1] ** 0.25
        return dq * up, dk * up, dv

    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name != "scale"]
    if isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod)):  # called has a self of its own
        kept.insert(0, inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY))
    setattr(called, "__signature__", signature.replace(parameters=kept))
    return called


class _Steps:
    """A decoder whose functions take q and k that are scaled."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        for name in ("step", "prefill"):
            function: Any = getattr(inner, name, None)
            if _names_scale(function):
                setattr(self, name, functools.partial(_called_with_scale, function))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _decoder_on_scaled(made: type, cls: type) -> Callable[..., Any]:
    @functools.wraps(getattr(cls, "decoder"))
    def decoder(self: Any, shape: Shape) -> Any:
        inner = getattr(super(made, self), "decoder")(shape)
        scaled = any(_names_scale(getattr(inner, name, None)) for name in ("step", "prefill"))
        return _Steps(inner) if scaled else inner

    return decoder


def _attend_by_steps(cls: type) -> Callable[..., Any]:
    """attend(self, q, k, v, causal, ...) of a class that has a decoder alone: each row is a step's."""
    for name in ("batched", "tensors"):
        if getattr(cls, name, False):
            raise Misuse(
                f"class {cls.__name__} has {name} = True and a decoder alone; add attend(self, q, k, v, causal)"
            )
    needs = dict(getattr(cls, "needs", None) or {})
    for name, given in needs.items():
        if isinstance(given, tuple) and given[:1] not in (("n",), ("nq",)):
            raise Misuse(
                f"class {cls.__name__} has a decoder alone, and its array {name} has the rows {given[:1]}; expected one row "
                'per token, ("n", 1), or an attend of its own'
            )

    def attend(self: Any, q: Any, k: Any, v: Any, causal: bool, *needed: Any) -> Any:
        dtype = str(q.dtype).removeprefix("torch.")
        n, d, dv = q.shape[-2], q.shape[-1], v.shape[-1]
        decoder = self.decoder(Shape(n, n, d, dv, True, 0, n, dtype))
        out = v * 0  # NumPy's or PyTorch's
        for t in range(n):
            token = (x[..., t : t + 1, :] for x in (q, k, v, *needed))
            out[..., t : t + 1, :] = decoder.step(*token)
        return out

    places = ["self", "q", "k", "v", "causal", *needs]
    kinds = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in places]
    setattr(attend, "__signature__", inspect.Signature(kinds))
    return attend
