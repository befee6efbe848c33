import numpy as np


class Mean:
    """The mean of v."""

    claims = {"row_stochastic": True}

    def attend(self, q, k, v, causal):
        if causal:
            return v.cumsum(0) / np.arange(1, len(v) + 1, dtype=v.dtype)[:, None]
        return np.tile(v.mean(0), (len(q), 1))


class Leaky:
    """Not causal, though it says so."""

    def attend(self, q, k, v, causal):
        return np.tile(v.mean(0), (len(q), 1))
