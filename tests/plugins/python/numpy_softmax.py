import numpy as np


class NumpySoftmax:
    """Exact softmax, as NumPy has it.

    A = softmax(q k^T), causal: over j <= i
    """

    reference = "Vaswani et al. 2017, arXiv:1706.03762, eq. 1"
    claims = {"row_stochastic": True, "non_negative": True, "permutation_equivariant": True}

    def attend(self, q, k, v, causal):
        logits = q @ k.T
        if causal:
            logits[np.triu_indices_from(logits, 1)] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (weights @ v) / weights.sum(axis=1, keepdims=True)
