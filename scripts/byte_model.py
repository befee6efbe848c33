"""The byte-level transformer of scripts/train_byte_lm.py: rotary positions, pre-normalisation, weights tied between
embedding and output (https://arxiv.org/abs/2104.09864, 2002.04745)."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 4
    heads: int = 3
    head_size: int = 64
    context: int = 1024
    key_size: int | None = None  # of q and k; None: head_size, that of v

    @property
    def width(self) -> int:
        return self.heads * self.head_size

    @property
    def keys(self) -> int:
        """The width of q and k in a head."""
        return self.key_size or self.head_size


class Attention(nn.Module):
    """Multi-head attention with rotary positions. [b, n, width] -> [b, n, width]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.parts = [sizes.heads * sizes.keys, sizes.heads * sizes.keys, sizes.width]
        self.qkv = nn.Linear(sizes.width, sum(self.parts), bias=False)
        self.out = nn.Linear(sizes.width, sizes.width, bias=False)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v of shape [b, heads, n, keys], the same and [b, heads, n, head_size]; q and k rotated, not scaled."""
        parts = self.qkv(x).split(self.parts, dim=-1)
        q, k, v = (part.unflatten(-1, (self.sizes.heads, -1)).transpose(1, 2) for part in parts)
        return rotate(q), rotate(k), v

    def forward(self, x: Tensor, seen: Tensor | None, causal: bool) -> Tensor:
        q, k, v = self.heads(x)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=causal and seen is None)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


def rotate(x: Tensor) -> Tensor:
    """Rotary position embedding over the last axis, first half against second half, base 10,000."""
    n, d = x.shape[-2:]
    frequency = 10_000.0 ** (-torch.arange(d // 2, device=x.device) / (d // 2))
    angle = torch.arange(n, device=x.device)[:, None] * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Layer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.width)
        self.attention = Attention(sizes)
        self.feed_forward_norm = nn.LayerNorm(sizes.width)
        self.up = nn.Linear(sizes.width, 4 * sizes.width)
        self.down = nn.Linear(4 * sizes.width, sizes.width)

    def forward(self, x: Tensor, seen: Tensor | None, causal: bool) -> Tensor:
        x = x + self.attention(self.attention_norm(x), seen, causal)
        return x + self.down(functional.gelu(self.up(self.feed_forward_norm(x))))


class ByteModel(nn.Module):
    """Logits of a byte at each position, [b, n, 256], from bytes [b, n]: of the next byte if the model is causal, and
    otherwise of the byte there, which the input masks."""

    def __init__(self, sizes: Sizes, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.embedding = nn.Embedding(256, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * sizes.layers) if residual else 1.0))

    def forward(self, tokens: Tensor, window: int | None = None) -> Tensor:
        """With a window w, row i of each head sees |i - j| <= w: the method local:window=w in every head."""
        seen = None if window is None else self.within(tokens.shape[1], window)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, seen, self.causal)
        return functional.linear(self.norm(x), self.embedding.weight)

    def within(self, n: int, window: int) -> Tensor:
        behind = torch.arange(n)[:, None] - torch.arange(n)
        return (behind.abs() <= window) & (behind >= 0 if self.causal else torch.tensor(True))

    def captured(self, tokens: Tensor) -> dict[str, Tensor]:
        """q, k, v of every layer and head for one text: [layers, heads, n, head_size] each."""
        x = self.embedding(tokens[None])
        kept: list[tuple[Tensor, ...]] = []
        for layer in self.layers:
            kept.append(layer.attention.heads(layer.attention_norm(x)))
            x = layer(x, None, self.causal)
        return {name: torch.cat([heads[i] for heads in kept]) for i, name in enumerate("qkv")}
