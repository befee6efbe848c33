"""Calls of attention inside a PyTorch model, handed to a function.

Models of transformers look their attention up by name (AttentionInterface): while a context is open, theirs is the name
"attnbench". Other models call torch.nn.functional.scaled_dot_product_attention, which is replaced while they run, in all
modules that have imported it.
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
UNDERSTOOD = {
    "dropout", "scaling", "is_causal",
    # The mask says the same: windows, and several texts in one row.
    "sliding_window", "position_ids", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "cu_seqlens",
    # The model hands these down from its own call.
    "use_cache", "cache_position", "output_attentions", "output_hidden_states", "output_router_logits", "return_dict",
    "num_items_in_batch", "deterministic", "seq_idx",
}  # fmt: skip
"""Arguments of the interface beside q, k, v and the mask that change nothing. Anything else is refused: models that
choose their keys hand the choice over (indices, block_indices), and later ones will have other names."""
REFUSED = {
    "position_bias": "adds a bias by position to its logits",
    "softcap": "caps its logits",
    "s_aux": "has a sink beside its keys",
    "sinks": "has a sink beside its keys",
    "indices": "chooses the keys of each query",
    "block_indices": "chooses the blocks of keys of each query",
}
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
    causal: bool | None
    """with mask None: the last query sees all keys, each earlier one a key less. Of one query with a mask that shows all
    keys: whether it is that of the last key; None: nothing tells"""
    scaling: float
    """of the logits"""
    same_tokens: bool
    """queries and keys are of the same tokens, as far as the module's name tells"""
    layers: int = 0
    """how many layers the model has; 0: it does not use the interface, and nothing tells"""


Handler = Callable[[Call], Any]
"""The output [batch, heads, nq, dv]; None if the model's own attention shall compute it."""

# By id of a module: its layer, how many there are, its name, and who is asked, last to first.
_open: dict[int, list[tuple[int, int, str, Handler]]] = {}
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
        f"{kind}: no attention was found, by transformers' attention interface or by a module's name for "
        "torch.nn.functional.scaled_dot_product_attention; call that function, or name the modules that attend: "
        "scripts/capture_qkv.py --attention captures them, and attnbench.attend takes their q, k and v"
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
        _open.setdefault(id(module), []).append((layer, len(names), name, handler))
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
    for layer, layers, name, handler in reversed(_open.get(id(module), [])):
        where = f"layer {layer} ({name})"
        crossed = CROSSED.search(name) is not None
        causal, scaling = _causal(module, query, given, crossed), _scaling(query, given)
        tensors = _broadcast(where, query, key, value, attention_mask)
        call = Call(layer, where, *tensors, causal, scaling, not crossed, layers)
        refuse_unknown(where, given)
        output = handler(call)
        if output is not None:
            return output.transpose(1, 2).contiguous(), None
    return _own_attention(module, query, key, value, attention_mask, given)


def _causal(module: Any, query: Any, given: dict[str, Any], crossed: bool) -> bool | None:
    """Models tell torch of one query that it is not causal, so that it sees all keys; the module knows better."""
    said, known = given.get("is_causal"), getattr(module, "is_causal", None)
    if query.shape[2] > 1:
        return bool(known if said is None else said)
    return False if crossed else (known or said or (None if known is None else False))


def _broadcast(where: str, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any, Any, Any]:
    """All as Call has them. Any axis of a mask may be 1 or missing, and batches and heads may be 1 beside larger ones."""
    batch = max(x.shape[0] for x in (q, k, v))
    if mask is not None:
        mask = mask[(None,) * (4 - mask.dim())]
        if any(given not in (1, wanted) for given, wanted in zip(mask.shape[2:], (q.shape[2], k.shape[2]))):
            raise Misuse(
                f"{where}: its mask of shape {list(mask.shape)} does not fit its {q.shape[2]} queries and {k.shape[2]} keys; "
                "leave the layer out of layers="
            )
        batch = max(batch, mask.shape[0])
        mask = mask.expand(batch, -1, q.shape[2], k.shape[2])
    shared = max(x.shape[1] for x in (k, v))
    heads = max(shared, q.shape[1], 1 if mask is None else mask.shape[1])
    q = q.expand(batch, heads, -1, -1)
    k, v = (x.expand(batch, shared, -1, -1) for x in (k, v))
    return q, k, v, mask


def _scaling(query: Any, given: dict[str, Any]) -> float:
    said = given.get("scaling")
    return float(query.shape[-1] ** -0.5 if said is None else said)


def refuse_unknown(where: str, given: dict[str, Any]) -> None:
    """Raises Misuse if a model gives its attention more than q, k, v, a mask and what changes nothing beside them."""
    if given.get("dropout"):
        raise Misuse(
            f"{where}: its attention drops weights at random (dropout = {given['dropout']}); call model.eval()"
        )
    for name, value in given.items():
        if value is not None and name not in UNDERSTOOD:
            meaning = REFUSED.get(name, "takes an argument that attnbench does not know")
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
        if not calls:
            return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **given)
        number, calls[0] = calls[0], calls[0] + 1
        nq, nk = query.shape[-2], key.shape[-2]
        mask = attn_mask
        if is_causal and nq != nk:  # torch counts from the first key
            mask = torch.ones(nq, nk, dtype=torch.bool).tril()
        given_axes = [x if x is None else x[(None,) * (3 - x.dim())] for x in (query, key, value, mask)]
        leading = torch.broadcast_shapes(*(x.shape[:-3] for x in given_axes if x is not None))
        q, k, v, mask = (
            x if x is None else x.expand(*leading, *x.shape[-3:]).reshape(-1, *x.shape[-3:]) for x in given_axes
        )
        scaling = query.shape[-1] ** -0.5 if scale is None else scale
        causal = is_causal or (None if nq == 1 else False)
        where = f"call {number} of attention"
        refuse_unknown(where, {"dropout": dropout_p, **{x: y for x, y in given.items() if x != "enable_gqa"}})
        output = handler(Call(number, where, *_broadcast(where, q, k, v, mask), causal, scaling, False))
        if output is None:
            return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **given)
        output = output.reshape(*leading, *output.shape[1:])
        return output[0] if query.dim() == 2 else output

    hooks = [
        model.register_forward_pre_hook(lambda module, given: calls.__setitem__(slice(None), [0])),
        model.register_forward_hook(lambda module, given, output: calls.clear(), always_call=True),
    ]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it computes whole layers without calling this function
    named = [
        (module, name)
        for module in [*sys.modules.values()]
        for name, value in [*vars(module).items()]
        if value is own and not module.__name__.startswith("torch._C")
    ]
    for module, name in named:
        setattr(module, name, product)
    try:
        yield
    finally:
        for module, name in named:
            setattr(module, name, own)
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()
