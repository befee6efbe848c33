"""Attention by collisions of sign hashes (Zeng et al. 2021, arXiv:2111.09714), over its row sums: features are one-hot
buckets of tau signs, in m tables. Written as a plugin's author would. `mistake` plants one mistake by its name."""

import numpy as np


class Collisions:
    """K(q, k) = m^-1 sum_t [signs of W_t q = signs of W_t k], E K = (1 - angle / pi)^tau."""

    reference = "Zeng et al. 2021, arXiv:2111.09714, eq. 4"
    claims = {"non_negative": True, "row_stochastic": False}

    def __init__(self, m=32, tau=3, mistake="none", *, shape, seed, state=None):
        self.mistake = mistake
        if mistake == "sixteen-seeds":
            seed = seed % 16
        if mistake == "one-seed":
            seed = 1
        generator = np.random.default_rng(seed)
        self.m, self.tau = m, tau
        W = generator.standard_normal((m * tau, shape.d))
        if mistake == "uniform-planes":
            W = generator.random((m * tau, shape.d))
        if mistake == "cube-planes":
            W = generator.choice([-1.0, 1.0], (m * tau, shape.d))
        if mistake == "shared-tables":
            W[tau:] = np.tile(W[:tau], (m - 1, 1))
        if mistake == "float-redraw" and shape.dtype == "float32":
            W = generator.standard_normal((m * tau, shape.d))
        if state is not None and "W" in state:
            W = state["W"]
        self.W = W

    def state(self):
        return {"W": -self.W if self.mistake == "negated-state" else self.W}

    def buckets(self, x, side):
        offset = {"offset-planes": 0.3, "offset-keys": 0.3 if side == "k" else 0.0}.get(self.mistake, 0.0)
        signs = x @ self.W.T.astype(x.dtype) > offset
        if self.mistake == "lost-bit":
            signs[:, :: self.tau] = True
        if self.mistake == "norm-counts":
            signs = x @ self.W.T.astype(x.dtype) > 0.2 * np.linalg.norm(x, axis=1, keepdims=True)
        powers = 2 ** np.arange(self.tau)
        return signs.reshape(len(x), self.m, self.tau) @ powers

    def features(self, x, side):
        buckets = self.buckets(x, side)
        hot = np.zeros((len(x), self.m, 2**self.tau), dtype=x.dtype)
        np.put_along_axis(hot, buckets[:, :, None], 1, axis=2)
        scale = {"two-percent": 1.01, "no-root": np.sqrt(self.m / (self.m + 1))}.get(self.mistake, 1.0)
        return scale * hot.reshape(len(x), -1) / np.sqrt(self.m)

    def features_q(self, x):
        return self.features(x, "q")

    def features_k(self, x):
        return self.features(x, "k")

    @staticmethod
    def collision(parameters, q, k):
        cosine = q @ k / np.sqrt((q @ q) * (k @ k))
        power = parameters["tau"] * (1.02 if parameters["mistake"] == "other-power" else 1)
        return (1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi) ** power

    @classmethod
    def kernel_mean(cls, parameters, q, k):
        return cls.collision(parameters, q, k)

    @classmethod
    def kernel_variance(cls, parameters, q, k):
        p = cls.collision(parameters, q, k)
        m = parameters["m"] - (1 if parameters["mistake"] == "other-variance" else 0)
        return p * (1 - p) / (m if parameters["mistake"] != "variance-of-sum" else 1)
