"""Holds a trained attention to the method of attnbench that its spec names, on its own weights."""

from __future__ import annotations

import numpy as np
import torch
from byte_model import ByteModel
from mixing import Attention, Refused
from numpy.typing import NDArray
from torch import Tensor

# Both sides compute in double, where they differ by rounding alone: 1e-12 was the most for well-conditioned methods.
TOLERANCE = 1e-8


@torch.no_grad()
def captured(model: ByteModel, tokens: Tensor) -> list[dict[str, NDArray[np.float64]]]:
    """q and k (not scaled), v and the mixed values of every layer for one text, [heads, n, width] each, computed in
    double from the hidden states of the model."""
    kept: list[dict[str, NDArray[np.float64]]] = []
    x = model.embedding(tokens[None])
    for layer in model.layers:
        attention = layer.attention
        q, k, v = attention.heads(layer.attention_norm(x))
        scale = attention.sizes.keys**-0.25
        mixed = attention.mixing(q * scale, k * scale, v)
        kept.append({name: each[0].numpy() for name, each in (("q", q), ("k", k), ("v", v), ("mixed", mixed))})
        x = layer(x, None, model.causal)
    return kept


def engine_difference(model: ByteModel, attention: Attention, tokens: Tensor) -> float:
    """The largest relative difference of a layer's mixed values to those of the C++ method (Frobenius norms).

    model: in eval mode; it is double afterwards. Raises Refused without the Python module of attnbench.
    """
    try:
        import attnbench
    except ImportError as error:
        raise Refused(
            f"the module attnbench cannot be imported ({error}), and a curve counts only after its attention was held to "
            "the C++ method; build it (scripts/build.sh release) and give PYTHONPATH=build/release/python"
        ) from error
    largest = 0.0
    for layer, heads in zip(model.double().layers, captured(model, tokens), strict=True):
        state = layer.attention.mixing.state()
        # Fitted methods learn nothing here: the state replaces it.
        own = attnbench.attend(
            attention.spec, heads["q"], heads["k"], heads["v"], causal=model.causal, state=state or None
        )
        difference = float(np.linalg.norm(own - heads["mixed"]) / np.linalg.norm(own))
        largest = max(largest, difference) if np.isfinite(difference) else np.inf
    return largest
