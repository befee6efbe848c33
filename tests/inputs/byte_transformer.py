"""The byte-level transformers of the inputs `model` and `masked-model` in NumPy, in double. Written from the formulas in
scripts/byte_model.py, and shares no code with the program."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
CAUSAL, MASKED = ROOT / "harness/inputs/model", ROOT / "harness/inputs/masked_model"
MASK = 255  # what a masked byte reads
Array = NDArray[np.float64]
Text = NDArray[np.int64]
Attention = Callable[[Array, Array, Array], Array]  # q, k, v of one head, n x d each, to n x d


def read(path: Path) -> dict[str, Array]:
    """The float16 tensors of a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for tensor, entry in json.loads(data[8 : 8 + length]).items():
        if tensor != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[tensor] = np.frombuffer(data[begin:end], "<f2").reshape(entry["shape"]).astype(float)
    return tensors


def weights_of(logits: Array, visible: NDArray[np.bool_]) -> Array:
    """Softmax of each row over the keys that it sees."""
    seen = np.where(visible, logits, -np.inf)
    weights: Array = np.exp(seen - seen.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def attention_matrix(q: Array, k: Array, causal: bool, window: int | None = None) -> Array:
    """Row i sees |i - j| <= window, and j <= i if causal."""
    behind = np.subtract.outer(np.arange(len(q)), np.arange(len(k)))
    visible = (behind >= 0) | (not causal)
    if window is not None:
        visible &= abs(behind) <= window
    return weights_of(q @ k.T / math.sqrt(q.shape[1]), visible)


def exact(causal: bool, window: int | None = None) -> Attention:
    return lambda q, k, v: attention_matrix(q, k, causal, window) @ v


def _rotated(x: Array) -> Array:
    """n x d: the pair (channel c, channel d/2 + c) of token i turns by i 10,000^(-2c/d)."""
    half = x.shape[1] // 2
    turn = np.exp(1j * np.arange(len(x))[:, None] * 1e4 ** (-np.arange(half) / half))
    turned = (x[:, :half] + 1j * x[:, half:]) * turn
    return np.concatenate([turned.real, turned.imag], axis=1)


_erf = np.vectorize(math.erf, otypes=[float])


class ByteTransformer:
    """A model from a file of weights, which says how many heads a layer has and whether it is causal."""

    def __init__(self, path: Path) -> None:
        self.weights = read(path)
        self.layers = sum(name.endswith("attention.qkv.weight") for name in self.weights)
        self.heads = int(self.weights["attention.heads"][0])
        self.causal = bool(self.weights["attention.causal"][0])

    def _normalised(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        moved: Array = scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]
        return moved

    def forward(
        self, text: Text, attend: Callable[[int, int], Attention] | None = None
    ) -> tuple[list[list[tuple[Array, Array, Array]]], Array]:
        """q, k and v by layer and head, n x d each, and log2 of the probability of each byte in each row, n x 256.
        attend(layer, head) is the attention of that head; None: the model's own."""
        weights, all_heads = self.weights, []
        x = weights["embedding.weight"][text]
        size = x.shape[1] // self.heads
        for l in range(self.layers):
            layer = f"layers.{l}."
            y = self._normalised(x, layer + "attention_norm")
            qkv = np.split(y @ weights[layer + "attention.qkv.weight"].T, 3, axis=1)
            heads, outs = [], []
            for h in range(self.heads):
                q, k, v = (each[:, h * size : (h + 1) * size] for each in qkv)
                heads.append((_rotated(q), _rotated(k), v))
                outs.append((attend(l, h) if attend else exact(self.causal))(*heads[-1]))
            all_heads.append(heads)
            x = x + np.concatenate(outs, axis=1) @ weights[layer + "attention.out.weight"].T
            y = self._normalised(x, layer + "feed_forward_norm")
            up = y @ weights[layer + "up.weight"].T + weights[layer + "up.bias"]
            gelu = up * (1 + _erf(up / math.sqrt(2))) / 2
            x = x + gelu @ weights[layer + "down.weight"].T + weights[layer + "down.bias"]
        logits = self._normalised(x, "norm") @ weights["embedding.weight"].T
        most = logits.max(axis=1, keepdims=True)
        log_p: Array = (logits - most - np.log(np.exp(logits - most).sum(axis=1, keepdims=True))) / math.log(2)
        return all_heads, log_p


def next_byte_bits(log_p: Array, text: Text) -> Array:
    """The bits of every byte after the first: row i predicts byte i + 1."""
    bits: Array = -log_p[np.arange(len(text) - 1), text[1:]]
    return bits


def masked_byte_bits(log_p: Array, text: Text, masked: Text) -> Array:
    """The bits of every byte that is masked."""
    at = np.flatnonzero(masked != text)
    bits: Array = -log_p[at, text[at]]
    return bits
