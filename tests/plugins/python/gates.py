"""Methods that need more than q, k and v, and an input that gives it."""

import attnbench
import numpy as np


def softmax(q, k, causal):
    logits = q @ k.T
    if causal:
        logits = np.where(np.tri(len(q), len(k), dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


class Gated:
    """Softmax attention of gated values.

    out = softmax(Q K^T) (gate * V)
    """

    needs = {"gate": ("n", 1, "uniform", "of each value")}
    departure = """The paper gates after attention;
        here values are gated."""
    claims = {"non_negative": True, "permutation_equivariant": True}

    def attend(self, q, k, v, causal, gate):
        return softmax(q, k, causal) @ (gate * v)

    def transcription(self, q, k, v, causal, gate):
        out = np.zeros((len(q), v.shape[1]))
        for i in range(len(q)):
            weights = np.exp(q[i] @ k[: i + 1 if causal else len(k)].T)
            for j, weight in enumerate(weights):
                out[i] += weight * gate[j, 0] * v[j] / weights.sum()
        return out

    def gradients(self, q, k, v, causal, g, gate):
        weights, of_values = softmax(q, k, causal), gate * v
        of_weights = g @ of_values.T
        of_logits = weights * (of_weights - (weights * of_weights).sum(axis=1, keepdims=True))
        return of_logits @ k, of_logits.T @ q, gate * (weights.T @ g)

    def decoder(self, shape):
        return Cache(self, shape)


class Cache:
    def __init__(self, method, shape):
        self.method = method
        self.k, self.v, self.gate = (np.zeros((0, width)) for width in (shape.d, shape.dv, 1))

    def prefill(self, q, k, v, gate):
        self.k, self.v, self.gate = (
            np.concatenate(pair) for pair in ((self.k, k), (self.v, v), (self.gate, gate))
        )  # fmt: skip

    def step(self, q, k, v, gate):
        self.prefill(q, k, v, gate)
        return softmax(q, self.k, False) @ (self.gate * self.v)

    def bytes(self):
        return self.k.nbytes + self.v.nbytes + self.gate.nbytes


class GatedHeads:
    """The same, of all heads in one call."""

    needs = Gated.needs
    claims = Gated.claims
    batched = True

    def attend(self, q, k, v, causal, gate):
        logits = q @ k.swapaxes(1, 2)
        if causal:
            logits = np.where(np.tri(q.shape[1], k.shape[1], dtype=bool), logits, -np.inf)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        return weights / weights.sum(axis=2, keepdims=True) @ (gate * v)


class WeightedKeys:
    """Softmax with a weight for each key, by its kernel."""

    needs = {"gate": ("n", 1, "uniform")}
    claims = {
        "row_stochastic": True, "non_negative": True, "permutation_equivariant": True,
        "no_extremes": "its kernel has no maximum to subtract",
    }  # fmt: skip

    def attend(self, q, k, v, causal, gate):
        weights = self.kernel(q, k, gate)
        if causal:
            weights = np.tril(weights)
        return weights @ v / weights.sum(axis=1, keepdims=True)

    def kernel(self, q, k, gate):
        return np.exp(q @ k.T) * gate.T


class LaterGate:
    """Reads the gate of the next value."""

    needs = Gated.needs
    claims = Gated.claims

    def attend(self, q, k, v, causal, gate):
        return softmax(q, k, causal) @ (np.roll(gate, -1, axis=0) * v)


class GatedGaussian(attnbench.Input):
    """Normal queries, keys and values, and gates between 0 and 1."""

    provides = {"gate": ("n", 1, "uniform", "between 0 and 1")}

    def draw(self, shape, seed):
        generator = np.random.default_rng(seed)
        q = generator.standard_normal((shape.nq, shape.d))
        k = generator.standard_normal((shape.nk, shape.d))
        v = generator.standard_normal((shape.nk, shape.dv))
        return q, k, v, {"gate": generator.random((shape.nk, 1))}
