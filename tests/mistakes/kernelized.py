"""Kernelized attention (Chen et al. 2021, arXiv:2111.00035, eq. 3): A = exp(-|q - k|^2 / 2), not normalised, and the same
over its row sums. Written as a plugin's author would. `mistake` plants one mistake by its name."""

import numpy as np


class Kernelized:
    """Gaussian kernel over its row sums.

    A_ij = exp(-|q_i - k_j|^2 / 2) / sum_j exp(-|q_i - k_j|^2 / 2)
    """

    reference = "Chen et al. 2021, arXiv:2111.00035, eq. 3"
    claims = {
        "no_extremes": "its kernel underflows",
        "row_stochastic": True,
        "non_negative": True,
        "permutation_equivariant": True,
    }

    def __init__(self, mistake="none"):
        self.mistake = mistake
        self.kept = None

    def weights(self, q, k):
        scale = {"doubled-logits": 2.0, "two-percent": 1.02, "scaled-twice": q.shape[1] ** -0.5}.get(self.mistake, 1.0)
        if self.mistake == "float-exponent" and q.dtype == np.float32:
            scale = 1.5
        distance = (q**2).sum(1)[:, None] + (k**2).sum(1)[None, :] - 2 * q @ k.T
        if self.mistake == "no-key-norm":
            distance = (q**2).sum(1)[:, None] - 2 * q @ k.T
        if self.mistake == "no-half":
            distance = 2 * distance
        if self.mistake == "absolute":
            distance = np.abs(q[:, None, :] - k[None, :, :]).sum(2)
        return np.exp(-scale * distance / 2)

    def attend(self, q, k, v, causal):
        A = self.weights(q, k)
        if self.mistake == "keeps-first-key":
            self.kept = k[0].copy() if self.kept is None else self.kept
            A[:, 0] = np.exp(-((q - self.kept) ** 2).sum(1) / 2)
        if causal:
            diagonal = {"misses-diagonal": -1, "one-too-many": 1}.get(self.mistake, 0)
            A = np.tril(A, diagonal)
        if self.mistake == "top-half":
            A = np.where(A >= np.median(A, axis=1, keepdims=True), A, 0)
        sums = A.sum(axis=1, keepdims=True)
        if self.mistake == "column-sums":
            sums = A.sum(axis=0)[None, :]
        if self.mistake == "square-root-sums":
            sums = np.sqrt(sums)
        A = A / np.where(sums == 0, 1, sums)
        out = A @ v
        if self.mistake == "float-zeros" and q.dtype == np.float32:
            out = np.zeros_like(out)
        if self.mistake == "float-five-percent" and q.dtype == np.float32:
            out = out * np.float32(1.05)
        if self.mistake == "mean-mixed-in":
            out = 0.99 * out + 0.01 * v.mean(axis=0)
        if self.mistake == "value-residual":
            out = out + 0.01 * v[: len(out)] if len(v) >= len(out) else out
        if self.mistake == "negative":
            out = out.copy()
            out[-1] += v[1] - v[0]
        if self.mistake == "clipped":
            out = np.minimum(out, 1)
        if self.mistake == "last-row-zero":
            out = out.copy()
            out[-1] = 0
        if self.mistake == "half-precision":
            out = out.astype(np.float16).astype(np.float64)
        if self.mistake == "float32-inside":
            out = (A.astype(np.float32) @ v.astype(np.float32)).astype(np.float64)
        if self.mistake == "random-noise":
            out = out + 1e-6 * np.random.default_rng().standard_normal(out.shape)
        return out

    def transcription(self, q, k, v, causal):
        out = np.zeros((len(q), v.shape[1]))
        for i, query in enumerate(q):
            keys = [j for j in range(len(k)) if not causal or j <= i]
            weights = [np.exp(-0.5 * sum((query[c] - k[j, c]) ** 2 for c in range(len(query)))) for j in keys]
            total = sum(weights)
            for weight, j in zip(weights, keys):
                out[i] += weight * v[j] / total
        return out


class Sums:
    """The same without a division: A_ij = exp(-|q_i - k_j|^2 / 2), by features of dimension 1 and exact kernel.

    out = phi(q) phi(k)^T v with phi(x) = (1, x) / sqrt 2, whose kernel is (1 + q.k) / 2.
    """

    claims = {"normaliser": "none"}

    def __init__(self, mistake="none"):
        self.mistake = mistake

    def features_q(self, x):
        return np.hstack([np.ones((len(x), 1)), x]) / np.sqrt(2)

    features_k = features_q

    def attend(self, q, k, v, causal):
        K = (1 + q @ k.T) / (3 if self.mistake == "third" else 2)
        if causal:
            K = np.tril(K)
        if self.mistake == "divided":
            K = K / K.sum(axis=1, keepdims=True)
        return K @ v
