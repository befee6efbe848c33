"""Calls of attention inside a PyTorch model, handed to a function.

Models of transformers look their attention up by name (AttentionInterface): while a context is open, theirs is the name
"attnbench". Other models call torch.nn.functional.scaled_dot_product_attention, which is replaced while they run.
"""

from __future__ import annotations

import inspect
import re
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple

import torch

from attnbench._native import Misuse

NAME = "attnbench"  # of the attention interface
CROSSED = re.compile("cross|encoder_attn|EncDec", re.IGNORECASE)  # modules whose keys are of other tokens


class Call(NamedTuple):
    """One call of attention."""

    layer: int
    """the place of its layer in `layers_of`, or the number of the call, from 0, if the model does not use the interface"""
    where: str
    """its layer, for messages"""
    q: Any
    """[batch, heads, nq, d]"""
    k: Any
    """[batch, heads of keys, nk, d]"""
    v: Any
    """[batch, heads of keys, nk, dv]"""
    mask: Any
    """[batch, heads or 1, nq, nk], of booleans or of numbers that are added to the logits; None: see causal"""
    causal: bool
    """with mask None: the last query sees all keys, each earlier one a key less"""
    scaling: float
    """of the logits"""
    same_tokens: bool
    """queries and keys are of the same tokens, as far as the module's name tells"""


Handler = Callable[[Call], Any]
"""The output [batch, heads, nq, dv]; None if the model's own attention shall compute it."""

_open: dict[int, list[tuple[int, str, Handler]]] = (
    {}
)  # by id of a module: its layer, its name, and who is asked last to first
_own: dict[int, str] = {}  # by id of a module: the name of the model's own attention


def layers_of(model: Any) -> list[str]:
    """The names of the modules that call the attention interface, in the order of model.named_modules()."""
    return [name for name, module in model.named_modules() if _uses_interface(type(module))]


def _uses_interface(cls: type) -> bool:
    try:
        return "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(cls.forward)  # type: ignore[attr-defined]
    except (OSError, TypeError, AttributeError):
        return False


@contextmanager
def intercepted(model: Any, handler: Handler) -> Iterator[None]:
    """While it is open, the handler gets every call of the model's attention. Contexts may be nested: the innermost
    handler is asked first. Raises Misuse after the model's first call if no attention was found in it."""
    names = layers_of(model)
    found = [0]

    def counted(call: Call) -> Any:
        found[0] += 1
        if model.training:
            raise Misuse(
                f"{type(model).__name__} is in training mode, and its attention drops weights at random; call model.eval()"
            )
        return handler(call)

    def refuse_no_attention(module: Any, given: Any, output: Any) -> None:
        if found[0] == 0:
            raise Misuse(_not_found(model))

    hook = model.register_forward_hook(refuse_no_attention)
    try:
        with _by_interface(model, names, counted) if names else _by_product(model, counted):
            yield
    finally:
        hook.remove()


def _not_found(model: Any) -> str:
    kind = type(model).__name__
    config = getattr(model, "config", None)
    if getattr(config, "alibi", False) or getattr(config, "model_type", "") in ("bloom", "mpt"):
        return (
            f"{kind} adds ALiBi biases to its logits inside its attention, which attnbench cannot replace; take a model "
            "with rotary or absolute positions"
        )
    return (
        f"{kind}: no attention was found, since it calls neither transformers' attention interface nor "
        "torch.nn.functional.scaled_dot_product_attention; scripts/capture_qkv.py --attention captures the modules that "
        "you name, and attnbench.attend takes their q, k and v"
    )


@contextmanager
def _by_interface(model: Any, names: list[str], handler: Handler) -> Iterator[None]:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    def whole_mask(*args: Any, **kwargs: Any) -> Any:
        return sdpa_mask(*args, **{**kwargs, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, whole_mask)
    modules = [(layer, name, model.get_submodule(name)) for layer, name in enumerate(names)]
    before = {id(module): module.config._attn_implementation for _, _, module in modules}
    outermost = not any(id(module) in _open for _, _, module in modules)
    if outermost:
        _own.update(before)
        model.set_attn_implementation(NAME)
    for layer, name, module in modules:
        _open.setdefault(id(module), []).append((layer, name, handler))
    try:
        yield
    finally:
        for _, _, module in modules:
            _open[id(module)].pop()
            if not _open[id(module)]:
                del _open[id(module)], _own[id(module)]
        if outermost:
            for _, _, module in modules:
                module.config._attn_implementation = before[id(module)]
            model.set_attn_implementation(next(iter(before.values())))


def _attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **given: Any) -> tuple[Any, Any]:
    """The function of the interface: [batch, n, heads, dv], and no weights."""
    for layer, name, handler in reversed(_open.get(id(module), [])):
        where = f"layer {layer} ({name})"
        causal, scaling = _causal(module, query, given), _scaling(query, given)
        call = Call(layer, where, query, key, value, attention_mask, causal, scaling, not CROSSED.search(name))
        refuse_other_logits(where, given)
        output = handler(call)
        if output is not None:
            return output.transpose(1, 2).contiguous(), None
    return _own_attention(module, query, key, value, attention_mask, given)


def _causal(module: Any, query: Any, given: dict[str, Any]) -> bool:
    said = given.get("is_causal")
    return bool(getattr(module, "is_causal", False) if said is None else said) and query.shape[2] > 1


def _scaling(query: Any, given: dict[str, Any]) -> float:
    said = given.get("scaling")
    return float(query.shape[-1] ** -0.5 if said is None else said)


def refuse_other_logits(where: str, given: dict[str, Any]) -> None:
    """Raises Misuse if a model does more to its logits than methods know."""
    for name, meaning in (
        ("position_bias", "adds a bias by position to its logits"),
        ("softcap", "caps its logits"),
        ("s_aux", "has a sink beside its keys"),
    ):
        if given.get(name) is not None:
            raise Misuse(
                f"{where}: its attention {meaning} ({name}), and methods take q, k and v alone; take a model without, or "
                "capture q, k and v where the model makes them"
            )


def _own_attention(module: Any, query: Any, key: Any, value: Any, mask: Any, given: dict[str, Any]) -> tuple[Any, Any]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if _own.get(id(module)) != "eager" or eager is None:
        output: tuple[Any, Any] = sdpa_attention_forward(module, query, key, value, mask, **given)
        return output
    if mask is not None and mask.dtype == torch.bool:  # eager attention adds its mask to the logits
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, torch.finfo(query.dtype).min)
    output = eager(module, query, key, value, mask, **given)
    return output


@contextmanager
def _by_product(model: Any, handler: Handler) -> Iterator[None]:
    """Calls are counted from the model's call on, and only those that happen in it are intercepted."""
    functional = torch.nn.functional
    own = functional.scaled_dot_product_attention
    calls: list[int] = []  # the number of the next call; empty outside of the model

    def product(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, **given: Any,
    ) -> Any:  # fmt: skip
        if not calls or query.dim() != 4:
            return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **given)
        number, calls[0] = calls[0], calls[0] + 1
        mask = attn_mask
        if is_causal and query.shape[2] != key.shape[2]:  # torch counts from the first key
            mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril()
        if mask is not None:
            mask = mask[(None,) * (4 - mask.dim())].expand(query.shape[0], -1, query.shape[2], key.shape[2])
        scaling = query.shape[-1] ** -0.5 if scale is None else scale
        output = handler(
            Call(number, f"call {number} of attention", query, key, value, mask, is_causal, scaling, False)
        )
        if output is None:
            output = own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **given)
        return output

    hooks = [
        model.register_forward_pre_hook(lambda module, given: calls.__setitem__(slice(None), [0])),
        model.register_forward_hook(lambda module, given, output: calls.clear(), always_call=True),
    ]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it computes whole layers without calling this function
    functional.scaled_dot_product_attention = product
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = own
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()
