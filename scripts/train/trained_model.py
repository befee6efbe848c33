"""The model of scripts/byte_model.py with another attention in every layer."""

from __future__ import annotations

import torch
from byte_model import Attention as Heads
from byte_model import ByteModel, Sizes
from mixing import Attention, Mixing, Place, Refused
from torch import Tensor


class MixedHeads(Heads):
    """Multi-head attention with rotary positions and any mixing, which computes in the type of the weights."""

    def __init__(self, sizes: Sizes, mixing: Mixing) -> None:
        super().__init__(sizes)
        self.mixing = mixing

    def forward(self, x: Tensor, seen: Tensor | None, causal: bool) -> Tensor:
        q, k, v = (each.to(self.out.weight.dtype) for each in self.heads(x))
        scale = self.sizes.keys**-0.25
        with torch.autocast(x.device.type, enabled=False):
            mixed = self.mixing(q * scale, k * scale, v)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


def mixings(model: ByteModel) -> list[Mixing]:
    return [layer.attention.mixing for layer in model.layers]


def build(sizes: Sizes, causal: bool, attention: Attention, seed: int) -> ByteModel:
    """Random weights; those that two attentions have in common are equal. Raises Refused."""
    torch.manual_seed(seed)
    model = ByteModel(sizes, causal)
    place = Place(sizes.heads, sizes.keys, sizes.context, causal)
    for layer in model.layers:
        old, mixing = layer.attention, attention.make(place)
        layer.attention = MixedHeads(sizes, mixing)
        layer.attention.qkv, layer.attention.out = old.qkv, old.out
        with torch.no_grad():
            old.out.weight.div_(mixing.gain)
    redraw(model, seed, 0)
    return model


def redraw(model: ByteModel, seed: int, step: int) -> None:
    """Draws the random features of every layer for this step."""
    for number, mixing in enumerate(mixings(model)):
        mixing.redraw(torch.Generator().manual_seed((seed * 1_000_003 + step) * 101 + number))


def load(model: ByteModel, weights: dict[str, Tensor]) -> None:
    """Raises Refused for weights of another model. Those of the mixing stay as they are."""
    own = model.state_dict()
    missing = [name for name in own if name not in weights and ".mixing." not in name]
    other = [name for name, tensor in weights.items() if name not in own or own[name].shape != tensor.shape]
    if missing or other:
        raise Refused(
            f"the weights to begin with are not those of a model with {model.layers[0].attention.sizes}: "
            f"{(missing + other)[0]} is missing or of another shape; restore harness/inputs/model"
        )
    model.load_state_dict(weights, strict=False)
