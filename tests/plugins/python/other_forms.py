"""Methods whose functions have another form than attend(self, q, k, v, causal) on scaled q and k."""

from __future__ import annotations

from typing import Any

import numpy as np

import attnbench
from attnbench.method import Array, Shape


def visible(logits: Array, causal: bool) -> Array:
    return np.where(np.tri(len(logits), logits.shape[1], dtype=bool), logits, -np.inf) if causal else logits


def softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


class Cache:
    """Keys and values, as a decoder keeps them."""

    def __init__(self) -> None:
        self.k: list[Array] = []
        self.v: list[Array] = []

    def bytes(self) -> int:
        return sum(x.nbytes for x in [*self.k, *self.v])

    def row(self, logits_of: Any, k: Array, v: Array) -> Array:
        self.k.append(np.array(k))
        self.v.append(np.array(v))
        return np.asarray(softmax(logits_of(np.concatenate(self.k))) @ np.concatenate(self.v))


class UnscaledCache(Cache):
    def step(self, q: Array, k: Array, v: Array, scale: float) -> Array:
        return self.row(lambda keys: scale * (q @ keys.T), k, v)


class Unscaled:
    """Softmax by functions that scale q and k themselves."""

    claims = {"row_stochastic": True, "exact_when": "always"}

    def attend(self, q: Array, k: Array, v: Array, causal: bool, scale: float) -> Array:
        return softmax(visible(scale * (q @ k.T), causal)) @ v

    def kernel(self, q: Array, k: Array, scale: float) -> Array:
        return np.asarray(np.exp(scale * (q @ k.T)))

    def transcription(self, q: Array, k: Array, v: Array, causal: bool, scale: float) -> Array:
        out = np.zeros((len(q), v.shape[1]))
        for i, query in enumerate(q):
            seen = i + 1 if causal else len(k)
            weights = [np.exp(scale * (query @ key)) for key in k[:seen]]
            out[i] = sum(w * value for w, value in zip(weights, v)) / sum(weights)
        return out

    def gradients(
        self, q: Array, k: Array, v: Array, causal: bool, g: Array, scale: float
    ) -> tuple[Array, Array, Array]:
        weights = softmax(visible(scale * (q @ k.T), causal))
        of_weights = g @ v.T
        of_logits = weights * (of_weights - (weights * of_weights).sum(axis=1, keepdims=True))
        return scale * of_logits @ k, scale * of_logits.T @ q, weights.T @ g

    def decoder(self, shape: Shape) -> UnscaledCache:
        return UnscaledCache()


class UnscaledThatScalesTwice(Unscaled):
    """The mistake that an author makes who does not know that q and k are scaled."""

    def attend(self, q: Array, k: Array, v: Array, causal: bool, scale: float) -> Array:
        return super().attend(q, k, v, causal, scale**2)


class StaticUnscaled:
    """The same in a static function."""

    claims = {"exact_when": "always"}

    @staticmethod
    def attend(q: Array, k: Array, v: Array, causal: bool, scale: float) -> Array:
        return softmax(visible(scale * (q @ k.T), causal)) @ v


class DecayingCache(Cache):
    def step(self, q: Array, k: Array, v: Array, gate: Array) -> Array:
        self.gates = [*getattr(self, "gates", []), float(gate[0, 0])]
        since = np.cumsum(self.gates[::-1])[::-1] - self.gates  # the gates behind each token
        return self.row(lambda keys: q @ keys.T - since.astype(q.dtype), k, v)


class ByItsDecoder:
    """Softmax of logits less the gates since, by a decoder alone."""

    needs = {"gate": ("n", 1, "uniform")}
    claims = {"row_stochastic": True, "non_negative": True}

    def decoder(self, shape: Shape) -> DecayingCache:
        assert shape.causal
        return DecayingCache()

    def transcription(self, q: Array, k: Array, v: Array, causal: bool, gate: Array) -> Array:
        out = np.zeros((len(q), v.shape[1]))
        for i, query in enumerate(q):
            weights = [np.exp(query @ k[j] - gate[j + 1 : i + 1].sum()) for j in range(i + 1)]
            out[i] = sum(w * value for w, value in zip(weights, v)) / sum(weights)
        return out


class SoftmaxCache(Cache):
    def step(self, q: Array, k: Array, v: Array) -> Array:
        return self.row(lambda keys: q @ keys.T, k, v)


class SoftmaxByItsDecoder:
    claims = {"exact_when": "always"}

    def decoder(self, shape: Shape) -> SoftmaxCache:
        return SoftmaxCache()


class OfItsLayer:
    """Ends by saying in which layer it is."""

    def __init__(self, layer: int, layers: int) -> None:
        self.place = f"layer {layer} of {layers}"

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        raise attnbench.Skip(self.place)


class Skipping:
    """Softmax for the queries longer than the median, and 0 for the others: data decide what it does."""

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        out = np.zeros((len(q), v.shape[1]), q.dtype)
        lengths = (np.asarray(q) ** 2).sum(axis=1)
        kept = lengths > np.median(lengths)
        out[np.asarray(kept)] = softmax(q[np.asarray(kept)] @ k.T) @ v
        return out

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> Any:
        most = 2.0 * shape.nq * shape.nk * (shape.d + shape.dv)
        return (0.0, most), 1.0 * shape.nq * shape.nk


class SkippingAsIfItDidNot(Skipping):
    """The same without a least: more than is seen."""

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> Any:
        (_, most), exps = Skipping.cost(parameters, shape)
        return most, exps


class SkippingLess(Skipping):
    """A most that is exceeded."""

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> Any:
        (least, most), exps = Skipping.cost(parameters, shape)
        return (least, most / 4), exps


class SharedKeys:
    """Softmax that reads each key once for all heads that share it."""

    batched = True
    claims = {"row_stochastic": True, "exact_when": "always"}

    def __init__(self, seeds: list[int], kv_heads: int) -> None:
        self.group = len(seeds) // kv_heads

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        heads, nq, d = q.shape
        keys, values = k[:: self.group], v[:: self.group]
        of_groups = q.reshape(len(keys), self.group * nq, d)
        return np.asarray(softmax(of_groups @ np.swapaxes(keys, 1, 2)) @ values).reshape(heads, nq, v.shape[2])


class SharedKeysOfTheFirst(SharedKeys):
    """It takes all heads to share one."""

    def __init__(self, seeds: list[int], kv_heads: int) -> None:
        super().__init__(seeds, 1)


class SharedKeysOfAnotherGroup(SharedKeys):
    """It takes the key of head g for group g."""

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        first = np.arange(len(k)) // self.group
        return super().attend(q, k[first], v[first])


class OneChoice:
    """The 8 keys of the largest logits over all heads that share keys, for all of these heads."""

    batched = True
    mixes_heads = True

    def __init__(self, seeds: list[int], kv_heads: int) -> None:
        self.kv_heads = kv_heads

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        logits = q @ np.swapaxes(k, 1, 2)
        out = np.zeros((*q.shape[:2], v.shape[2]), q.dtype)
        for group in np.split(np.arange(len(q)), self.kv_heads):
            keys = np.argsort(-logits[group].max(axis=(0, 1)))[:8]
            out[group] = softmax(logits[group][:, :, keys]) @ v[group][:, keys]
        return out

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        out = np.zeros((*q.shape[:2], v.shape[2]))
        size = len(q) // self.kv_heads
        for first in range(0, len(q), size):
            largest = [max((q[first + h] @ k[first, j]).max() for h in range(size)) for j in range(k.shape[1])]
            keys = sorted(range(k.shape[1]), key=lambda j: -largest[j])[:8]
            for h in range(first, first + size):
                out[h] = softmax(q[h] @ k[h, keys].T) @ v[h, keys]
        return out


class OneChoiceOfTheFirst(OneChoice):
    """The first head of a group chooses for all."""

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        return super().attend(np.repeat(q[:: len(q) // self.kv_heads], len(q) // self.kv_heads, axis=0), k, v)


class OneChoiceOfAll(OneChoice):
    """It takes all heads to share one choice."""

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        groups, self.kv_heads = self.kv_heads, 1
        out = super().attend(q, k, v)
        self.kv_heads = groups
        return out


class Forgetting:
    """Softmax whose weights decay by the gates since: at gates of 1, softmax."""

    needs = {"keep": ("n", 1, "uniform")}

    def attend(self, q: Array, k: Array, v: Array, causal: bool, keep: Array) -> Array:
        since = np.cumsum(np.log(np.asarray(keep, np.float64)[:, 0]))
        return softmax(visible(q @ k.T + (since[:, None] - since).astype(q.dtype), causal)) @ v


class SharedKeysInAnotherOrder(SharedKeys):
    """It repeats the keys as np.tile does: the head reads those of another group."""

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        logits = q @ np.swapaxes(np.tile(k[:: self.group], (self.group, 1, 1)), 1, 2)
        return np.asarray(softmax(logits) @ np.tile(v[:: self.group], (self.group, 1, 1)))
