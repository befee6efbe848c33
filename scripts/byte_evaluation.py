"""Held-out bits per byte of the models of scripts/train_byte_lm.py, and the price of a shorter window.

A window of w lets row i of every head see |i - j| <= w, as the method local:window=w does. Its price is the difference
to full attention, paired by byte. Means are over texts of 1024 bytes of different held-out documents; intervals are
percentiles of 10,000 bootstrap samples of texts, because bytes of one text depend on each other.

A model can lose by a window only because it was never trained with one. So there is also the price of a shorter text:
the model reads the last L bytes of a text alone, and its bits of the last L / 2 are compared with those that it needs
after the whole text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from byte_model import ByteModel
from held_out_texts import Excerpt, tensor_of
from masked_bytes import masked_texts
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

WINDOWS = (64, 128, 256, 512)
LENGTHS = (256, 512)
SAMPLES = 10_000
QUARTERS = 4
Array = NDArray[np.float64]


def evaluation_input(model: ByteModel, texts: Sequence[bytes]) -> tuple[Tensor, Tensor, NDArray[np.bool_]]:
    """The bytes that the model reads, those that it has to predict, and where the loss counts; [texts, n] each."""
    tokens = tensor_of(list(texts))
    if model.causal:
        return torch.from_numpy(tokens[:, :-1]), torch.from_numpy(tokens[:, 1:]), np.ones(tokens[:, 1:].shape, bool)
    hidden, where = masked_texts(tokens)
    return torch.from_numpy(hidden), torch.from_numpy(tokens), where


@torch.no_grad()
def bits(model: ByteModel, texts: Sequence[bytes], window: int | None = None, length: int | None = None) -> Array:
    """Bits of each byte, [texts, n]; NaN where a byte is not masked. With a length, of the last bytes, read alone."""
    said, meant, counts = (each[:, -(length or 0) :] for each in evaluation_input(model, texts))
    rows = []
    for i in range(len(said)):
        logits = model(said[i : i + 1], window)[0]
        rows.append(functional.cross_entropy(logits, meant[i], reduction="none").double().numpy() / math.log(2))
    return np.where(counts, np.stack(rows), np.nan)


def interval(per_text: Array, confidence: float = 0.95) -> list[float]:
    generator = np.random.default_rng(1)
    means = per_text[generator.integers(0, len(per_text), (SAMPLES, len(per_text)))].mean(axis=1)
    return [float(x) for x in np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])]


def estimate(per_text: Array) -> dict[str, Any]:
    return {"mean": float(per_text.mean()), "interval": interval(per_text), "texts": len(per_text)}


def bigram_bits(training: Sequence[NDArray[np.uint8]], texts: Sequence[bytes]) -> Array:
    """Bits per byte of each text in the add-one bigram model: a causal network that needs as many has learnt nothing."""
    counts = np.ones((256, 256))
    for text in training:
        counts += np.bincount(text[:-1].astype(np.int64) * 256 + text[1:], minlength=256 * 256).reshape(256, 256)
    log_p = np.log2(counts / counts.sum(axis=1, keepdims=True))
    return np.array([-log_p[row[:-1], row[1:]].mean() for row in tensor_of(list(texts))])


def evaluate(model: ByteModel, texts: Sequence[Excerpt], training: Sequence[NDArray[np.uint8]]) -> dict[str, Any]:
    """Bits per byte at full context and by quarter of it, the bigram's bits, and the prices of windows and of shorter
    texts; over all texts and by kind."""
    excerpts = [each.text for each in texts]
    kinds = {"all": np.ones(len(texts), dtype=bool)}
    kinds |= {kind: np.array([each.kind == kind for each in texts]) for kind in dict.fromkeys(t.kind for t in texts)}
    full = bits(model, excerpts)
    bigram = bigram_bits(training, excerpts)
    prices = {window: bits(model, excerpts, window) - full for window in WINDOWS}
    shorter = {length: bits(model, excerpts, length=length) - full[:, -length:] for length in LENGTHS}
    quarters = np.array_split(np.arange(full.shape[1]), QUARTERS)

    def of_kind(which: NDArray[np.bool_]) -> dict[str, Any]:
        return {
            "bits_per_byte": estimate(np.nanmean(full[which], axis=1)),
            "by_quarter_of_context": [float(np.nanmean(full[which][:, quarter])) for quarter in quarters],
            "bigram_bits_per_byte": float(bigram[which].mean()),
            "window_costs": {str(w): estimate(np.nanmean(price[which], axis=1)) for w, price in prices.items()},
            "shorter_text_costs": {
                str(length): estimate(np.nanmean(price[which, length // 2 :], axis=1))
                for length, price in shorter.items()
            },
        }

    return {kind: of_kind(which) for kind, which in kinds.items()}
