"""Linear attention with its kernel, decoder and gradients (Katharopoulos et al. 2020, arXiv:2006.16236, eq. 8 to 15), and a
kernel that estimates exp(q.k). Written as a plugin's author would. `mistake` plants one mistake by its name."""

import numpy as np


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def slope(x):
    return np.where(x > 0, 1, np.exp(np.minimum(x, 0)))


class Recurrent:
    """out_i = sum_j (phi(q_i).phi(k_j)) v_j / sum_j phi(q_i).phi(k_j), phi = elu + 1."""

    reference = "Katharopoulos et al. 2020, arXiv:2006.16236, eq. 8 to 15"
    claims = {"row_stochastic": True, "non_negative": True, "permutation_equivariant": True}

    def __init__(self, mistake="none"):
        self.mistake = mistake
        self.shared = None

    def attend(self, q, k, v, causal):
        K = phi(q) @ phi(k).T
        K = np.tril(K) if causal else K
        return K @ v / K.sum(axis=1, keepdims=True)

    def kernel(self, q, k):
        K = phi(q) @ phi(k).T
        if self.mistake == "kernel-of-scaled":
            K = phi(1.01 * q) @ phi(k).T
        if self.mistake == "kernel-swapped":
            K = phi(k) @ phi(q).T if len(q) == len(k) else K
        if self.mistake == "kernel-divided":
            K = K / K.sum(axis=0)
        return K

    def decoder(self, shape):
        if self.mistake == "decoder-shared":
            self.shared = self.shared or Decoder(self.mistake, shape)
            return self.shared
        return Decoder(self.mistake, shape)

    def gradients(self, q, k, v, causal, g):
        a, b = phi(q), phi(k)
        K = np.tril(a @ b.T) if causal else a @ b.T
        sums = K.sum(axis=1, keepdims=True)
        P = K / sums
        dP = g @ v.T
        dK = (dP - (dP * P).sum(axis=1, keepdims=True)) / sums
        if self.mistake == "gradients-of-numerators":
            dK = dP / sums
        if self.mistake != "gradients-see-later-tokens":
            dK = np.tril(dK) if causal else dK
        dq, dk, dv = dK @ b * slope(q), dK.T @ a * slope(k), P.T @ g
        if self.mistake == "gradients-without-slope":
            dk = dK.T @ a
        if self.mistake == "gradients-half":
            dq = dq / 2
        if self.mistake == "gradients-of-all-values":
            dv = (a @ b.T / (a @ b.T).sum(axis=1, keepdims=True)).T @ g
        if self.mistake == "gradients-swapped" and q.shape == k.shape:
            dq, dk = dk, dq
        if self.mistake == "gradients-in-float-zero" and q.dtype == np.float32:
            dv = 0 * dv
        if self.mistake == "gradients-negative":
            dv = -dv
        return dq, dk, dv

    def transcription(self, q, k, v, causal):
        out, a, b = np.zeros((len(q), v.shape[1])), phi(q), phi(k)
        for i in range(len(q)):
            keys = range(i + 1 if causal else len(k))
            weights = [a[i] @ b[j] for j in keys]
            out[i] = sum(w * v[j] for w, j in zip(weights, keys)) / sum(weights)
        return out


class Decoder:
    """S = sum_j phi(k_j) v_j^T and z = sum_j phi(k_j) of the tokens so far."""

    def __init__(self, mistake, shape):
        self.mistake = mistake
        self.S, self.z = np.zeros((shape.d, shape.dv)), np.zeros(shape.d)
        self.count = 0

    def prefill(self, q, k, v):
        if self.mistake == "prefill-drops-last":
            k, v = k[:-1], v[:-1]
        if self.mistake == "prefill-restarts":
            self.S, self.z = 0 * self.S, 0 * self.z
        self.S = self.S + phi(k).T @ v
        if self.mistake != "prefill-forgets-norm":
            self.z = self.z + phi(k).sum(axis=0)
        if self.mistake == "prefill-first-64":
            self.S = phi(k[:64]).T @ v[:64]

    def step(self, q, k, v):
        self.count += 1
        if self.mistake == "step-reads-first":
            out = phi(q) @ self.S / np.maximum(phi(q) @ self.z, 1e-300)[:, None]
        self.S = self.S + phi(k).T @ v
        self.z = self.z + phi(k)[0]
        if self.mistake == "step-decays":
            self.S, self.z = 0.999 * self.S, 0.999 * self.z
            self.S = self.S + 0.001 * np.outer(phi(k)[0], v[0])
        if self.mistake == "step-in-half":
            self.S = self.S.astype(np.float16).astype(np.float64)
        if self.mistake == "step-after-100" and self.count > 100:
            self.z = self.z - phi(k)[0]
        if self.mistake != "step-reads-first":
            out = phi(q) @ self.S / (phi(q) @ self.z)[:, None]
        return out

    def bytes(self):
        return self.S.nbytes + self.z.nbytes


class Estimated:
    """exp(q.k) by positive random features, as a kernel alone: K_ij = mean_w exp(w.q_i + w.k_j - |q_i|^2/2 - |k_j|^2/2)."""

    reference = "Choromanski et al. 2020, arXiv:2009.14794, Lemma 1"
    claims = {"unbiased": True, "non_negative": True, "row_stochastic": True, "permutation_equivariant": True}

    def __init__(self, m=16, mistake="none", *, shape, seed):
        self.mistake = mistake
        self.W = np.random.default_rng(seed).standard_normal((m, shape.d))
        if mistake == "wider":
            self.W *= 1.02
        if mistake == "uniform":
            self.W = np.sqrt(12) * (np.random.default_rng(seed).random((m, shape.d)) - 0.5)
        if mistake == "shared-rows":
            self.W[1::2] = self.W[::2]
        if mistake == "antithetic":
            self.W[1::2] = -self.W[::2]

    def exponents(self, x, norm=0.5):
        return x @ self.W.T.astype(x.dtype) - norm * (x**2).sum(axis=1, keepdims=True) - np.log(len(self.W)) / 2

    def kernel(self, q, k):
        K = np.exp(self.exponents(q)) @ np.exp(self.exponents(k, 0.49 if self.mistake == "key-norm" else 0.5)).T
        return K * (1.03 if self.mistake == "three-percent" else 1)

    def attend(self, q, k, v, causal):
        a, b = self.exponents(q), self.exponents(k, 0.49 if self.mistake == "key-norm" else 0.5)
        logits = a[:, None, :] + b[None, :, :]  # one row a query, one column a key, one entry a feature
        if causal:
            logits = np.where(np.tri(len(q), dtype=bool)[:, :, None], logits, -np.inf)
        K = np.exp(logits - logits.max(axis=(1, 2), keepdims=True)).sum(axis=2)
        return K @ v / K.sum(axis=1, keepdims=True)

    @staticmethod
    def kernel_variance(parameters, q, k):
        m = parameters["m"] * (2 if parameters["mistake"] == "half-variance" else 1)
        return np.exp(2 * q @ k) * (np.exp((q + k) @ (q + k)) - 1) / m


class Joint:
    """Positive random features of all heads at once: each head has its own W, and its own sums."""

    batched = True
    claims = {"row_stochastic": True, "non_negative": True, "permutation_equivariant": True}

    def __init__(self, m=8, mistake="none", *, shape, seeds, state=None):
        self.mistake = mistake
        draws = [np.random.default_rng(seed).standard_normal((m, shape.d)) for seed in seeds]
        self.W = np.stack(draws) if state is None else state["W"]
        if mistake == "one-draw":
            self.W = np.stack(draws[:1] * len(draws))
        if mistake == "reversed-draws":
            self.W = self.W[::-1]

    def state(self):
        return {"W": self.W}

    def exponents(self, x):
        return x @ self.W.swapaxes(1, 2).astype(x.dtype) - (x**2).sum(axis=2, keepdims=True) / 2

    def attend(self, q, k, v, causal):
        if self.mistake == "first-queries":
            q = np.repeat(q[:1], len(q), axis=0)
        logits = self.exponents(q)[:, :, None, :] + self.exponents(k)[:, None, :, :]
        if causal:
            seen = np.tri(q.shape[1], dtype=bool)[None, :, :, None]
            if self.mistake == "causal-first":
                seen = seen | (np.arange(len(q)) > 0)[:, None, None, None]
            logits = np.where(seen, logits, -np.inf)
        K = np.exp(logits - logits.max(axis=(2, 3), keepdims=True)).sum(axis=3)
        sums = K.sum(axis=2, keepdims=True)
        if self.mistake == "mean-sums":
            sums = sums.mean(axis=0, keepdims=True)
        return K @ (np.repeat(v[:1], len(v), axis=0) if self.mistake == "first-values" else v) / sums
