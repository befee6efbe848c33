import numpy as np

import attnbench


class NumpyPositive:
    """Positive random features for the softmax kernel, iid.

    phi(x) = m^-1/2 exp(W x - |x|^2/2), rows of W from N(0, I); phi(q).phi(k) estimates exp(q.k)
    """

    reference = "Choromanski et al. 2021, arXiv:2009.14794, Lemma 1"
    parameters = {"m": attnbench.Parameter(64, "features", minimum=1, budget=True)}
    claims = {"unbiased": True, "non_negative": True}
    exponents = True  # logarithms of features: they are stabilised before they are exponentiated

    def __init__(self, m, shape, seed, state=None):
        drawn = np.random.default_rng(seed).standard_normal((m, shape.d))
        self.W = drawn if state is None else state["W"]

    def features_q(self, x):
        return x @ self.W.T - (x**2).sum(axis=1, keepdims=True) / 2 - np.log(len(self.W)) / 2

    features_k = features_q

    def state(self):
        return {"W": self.W}

    @staticmethod
    def kernel_variance(parameters, q, k):
        return np.exp(2 * q @ k) * np.expm1((q + k) @ (q + k)) / parameters["m"]


class NumpyPositiveTwice(NumpyPositive):
    """The same with attend by itself: what its features say of it is a second path."""

    def attend(self, q, k, v, causal):
        weights = np.exp(self.features_q(q)) @ np.exp(self.features_k(k)).T
        if causal:
            weights = np.tril(weights)
        return (weights @ v) / weights.sum(axis=1, keepdims=True)


class NumpyPositiveBiased(NumpyPositive):
    """The mistake that is most often made: the norm is missing, so exp(q.k + |q|^2/2 + |k|^2/2) is estimated."""

    def features_q(self, x):
        return x @ self.W.T - np.log(len(self.W)) / 2

    features_k = features_q
