import attnbench
import numpy as np


class HeavyTails(attnbench.Input):
    """Keys of heavy tails.

    K_ij ~ t(freedom), Q_ij and V_ij ~ N(0, 1)
    """

    def __init__(self, freedom=3.0):
        self.freedom = freedom

    def draw(self, shape, seed):
        generator = np.random.default_rng(seed)
        q = generator.standard_normal((shape.nq, shape.d))
        k = generator.standard_t(self.freedom, (shape.nk, shape.d))
        return q, k, generator.standard_normal((shape.nk, shape.dv))


class Pointed(attnbench.Input):
    """Query i is aimed at key i // 2."""

    causal = True

    def draw(self, shape, seed):
        k = np.random.default_rng(seed).standard_normal((shape.nk, shape.d))
        k /= np.linalg.norm(k, axis=1, keepdims=True)  # no other key is nearer to a query than the one it is aimed at
        return 30 * np.sqrt(shape.d) * k[self.needles(shape, seed)], k, np.ones((shape.nk, shape.dv))

    def needles(self, shape, seed):
        return np.arange(shape.nq) // 2


class Overlap(attnbench.Experiment):
    """How many of a row's largest weights the method finds."""

    metrics = {"overlap": ("1", "share of the k largest weights of a row"), "per_row": "keys"}
    matrices = True

    def __init__(self, k=8):
        self.k = k

    def measure(self, applied):
        own, exact = (np.argsort(A, axis=1)[:, -self.k :] for A in (applied.attention, applied.exact_attention))
        shares = [len(set(a) & set(b)) / self.k for a, b in zip(own, exact)]
        return {"overlap": np.mean(shares), "per_row": [self.k * share for share in shares]}


class Identities(attnbench.Experiment):
    """Whether what an experiment is given is what it should be: each number is 0."""

    metrics = {"exact": "1", "matrix": "1", "own": "1", "sizes": "1"}
    matrices = True

    def measure(self, applied):
        logits = applied.q @ applied.k.T
        if applied.shape.causal:
            logits = np.where(np.tri(len(logits), dtype=bool), logits, -np.inf)
        A = np.exp(logits - logits.max(axis=1, keepdims=True))
        A /= A.sum(axis=1, keepdims=True)
        return {
            "exact": np.abs(A @ applied.v - applied.exact_output).max(),
            "matrix": np.abs(A - applied.exact_attention).max(),
            "own": np.abs(applied.attention @ applied.v - applied.output).max(),
            "sizes": abs(applied.shape.dv - applied.v.shape[1]) + abs(applied.shape.nq - len(applied.q)),
        }


class Head(attnbench.Experiment):
    """The head itself, and what its draw depends on."""

    metrics = {"q": "1", "k": "1", "v": "1", "seed": "1", "replicate": "1"}

    def measure(self, applied):
        assert applied.method == "uniform" and applied.input.startswith("heavy-tails")
        return {"q": applied.q, "k": applied.k, "v": applied.v, "seed": applied.seed, "replicate": applied.replicate}
