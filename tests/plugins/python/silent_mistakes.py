"""Methods that attnbench does not have, each once as it is right and then with one mistake that changes no short test.

Each wrong class names the claim of `check` that must fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbench import Parameter
from attnbench.method import Array, Shape


def logits(q: Array, k: Array, causal: bool) -> Array:
    z = np.asarray(q @ k.T)
    if causal:
        z = np.where(np.tril(np.ones(z.shape, bool), len(k) - len(q)), z, -np.inf)
    return z


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


class Softpick:
    """exp(z) - 1 where it is above 0, over the sum of its magnitudes."""

    claims = {"causal_exact": True, "linear_in_v": True}
    epsilon = 1e-6

    def top(self, z: Array) -> Array:
        return np.asarray(np.maximum(z.max(axis=1, keepdims=True), 0))

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        z = logits(q, k, causal)
        top = self.top(z)
        e = np.where(z == -np.inf, 0, np.exp(z - top) - np.exp(-top))
        return np.asarray(np.maximum(e, 0) / (np.abs(e).sum(axis=1, keepdims=True) + self.epsilon) @ v)

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        out = np.zeros((len(q), v.shape[1]))
        for i, query in enumerate(q):
            seen = i + 1 + len(k) - len(q) if causal else len(k)
            z = k[:seen] @ query
            top = max(float(z.max()), 0.0)
            e = np.exp(z - top) - np.exp(-top)
            out[i] = np.maximum(e, 0) @ v[:seen] / (np.abs(e).sum() + self.epsilon)
        return out

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        pairs = shape.nq * shape.nk
        return 2.0 * pairs * (shape.d + shape.dv), 1.0 * pairs

    @staticmethod
    def memory(parameters: dict[str, Any], shape: Shape) -> float:
        return 5.0 * shape.nq * shape.nk * shape.itemsize


class SoftpickWithoutMaximum(Softpick):
    """finite"""

    def top(self, z: Array) -> Array:
        return np.zeros((len(z), 1), z.dtype)


class SoftpickOfOnePercent(Softpick):
    """work"""

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        flops, exps = Softpick.cost(parameters, shape)
        return flops / 100, exps


class ScalableSoftmax:
    """Softmax of s log(n) times the logits, n keys that a row sees."""

    claims = {"causal_exact": True, "row_stochastic": True, "non_negative": True}

    def __init__(self, s: float = 0.43) -> None:
        self.s = s

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        z = logits(q, k, causal)
        seen = np.isfinite(z).sum(axis=1, keepdims=True).astype(z.dtype)
        return softmax((self.s * np.log(seen) + 1).astype(z.dtype) * z) @ v

    def transcription(
        self, q: Array, k: Array, v: Array, causal: bool, parameters: dict[str, Any] | None = None
    ) -> Array:
        assert parameters is not None
        out = np.zeros((len(q), v.shape[1]))
        for i, query in enumerate(q):
            seen = i + 1 + len(k) - len(q) if causal else len(k)
            z = (parameters["s"] * np.log(seen) + 1) * (k[:seen] @ query)
            weights = np.exp(z - z.max())
            out[i] = weights @ v[:seen] / weights.sum()
        return out


class ScalableSoftmaxOfOneScale(ScalableSoftmax):
    """effect"""

    parameters = {"s": 0.43}

    def __init__(self, s: float = 0.43) -> None:
        super().__init__(0.43)


class KeptWhole:
    """Keys in few bits by channel, but for the last `residual`, which are kept whole."""

    claims = {"row_stochastic": True, "non_negative": True}
    parameters = {"bits": Parameter(2, minimum=1, maximum=8), "residual": Parameter(128, minimum=1)}

    def __init__(self, bits: int, residual: int) -> None:
        self.bits, self.residual = bits, residual

    axis = 0

    def rounded(self, k: Array) -> Array:
        old, new = k[: -self.residual], k[-self.residual :]
        if len(old) == 0:
            return k
        low, high = old.min(axis=self.axis, keepdims=True), old.max(axis=self.axis, keepdims=True)
        step = np.maximum((high - low) / (2**self.bits - 1), 1e-12).astype(k.dtype)
        return np.concatenate([np.round((old - low) / step) * step + low, new])

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        return softmax(q @ self.rounded(k).T) @ v

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        keys = np.array(k)
        old = len(k) - self.residual
        for channel in range(k.shape[1] if old > 0 else 0):
            low, high = min(k[:old, channel]), max(k[:old, channel])
            step = max((high - low) / (2**self.bits - 1), 1e-12)
            keys[:old, channel] = np.round((k[:old, channel] - low) / step) * step + low
        weights = np.exp(q @ keys.T)
        return np.asarray(weights @ v / weights.sum(axis=1, keepdims=True))


class KeptWholeByToken(KeptWhole):
    """lengths"""

    axis = 1


class KeptWholeAndNeverRounded(KeptWhole):
    """effect"""

    def rounded(self, k: Array) -> Array:
        super().rounded(k)
        return k

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return softmax(q @ k.T) @ v


class WindowCache:
    """The newest `window` keys and values."""

    def __init__(self, window: int, forgets: bool = True, kind: Any = None) -> None:
        self.window, self.forgets, self.kind = window, forgets, kind
        self.keys: list[Array] = []
        self.values: list[Array] = []

    def step(self, q: Array, k: Array, v: Array) -> Array:
        kept = self.kind or k.dtype
        self.keys.append(np.array(k[0], kept))
        self.values.append(np.array(v[0], kept))
        if self.forgets:
            del self.keys[: -self.window], self.values[: -self.window]
        keys, values = np.array(self.keys[-self.window :], k.dtype), np.array(self.values[-self.window :], v.dtype)
        return np.asarray(softmax(q @ keys.T) @ values)

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.keys + self.values)


class Windowed:
    """Softmax over the newest `window` keys, with a cache of them."""

    causal_only = True
    claims = {"causal_exact": True, "row_stochastic": True, "non_negative": True}
    parameters = {"window": Parameter(32, minimum=1, budget=True)}

    def __init__(self, window: int) -> None:
        self.window = window

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        out = np.empty((len(q), v.shape[1]), v.dtype)
        for i, query in enumerate(q):
            at = i + len(k) - len(q)
            first, seen = max(0, at - self.window + 1), at + 1 if causal else len(k)
            z = k[first:seen] @ query
            weights = np.exp(z - z.max())
            out[i] = weights @ v[first:seen] / weights.sum()
        return out

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        z = logits(q, k, causal)
        i, j = np.indices(z.shape)
        return softmax(np.where(i + len(k) - len(q) - j < self.window, z, -np.inf)) @ v

    def decoder(self, shape: Shape) -> Any:
        return WindowCache(self.window)

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        pairs = shape.nq * min(parameters["window"], shape.nk)
        return 2.0 * pairs * (shape.d + shape.dv), 1.0 * pairs

    @staticmethod
    def decoder_bytes(parameters: dict[str, Any], shape: Shape) -> float:
        return float(min(parameters["window"], shape.nk) * (shape.d + shape.dv) * shape.itemsize)


class WindowedThatKeepsAll(Windowed):
    """state-bytes"""

    def decoder(self, shape: Shape) -> Any:
        return WindowCache(self.window, forgets=False)


class WindowedThatCountsOneToken(Windowed):
    """state-bytes"""

    parameters = {"window": Parameter(1024, minimum=1, budget=True)}

    def decoder(self, shape: Shape) -> Any:
        class Small(WindowCache):
            def bytes(self) -> int:
                return 4 * (shape.d + shape.dv)

        return Small(self.window)


class WindowedInFloat(Windowed):
    """decoder"""

    def decoder(self, shape: Shape) -> Any:
        return WindowCache(self.window, kind=np.float32)


class WindowedOfAtMost64(Windowed):
    """lengths"""

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return Windowed(min(self.window, 64)).attend(q, k, v, causal)

    def decoder(self, shape: Shape) -> Any:
        return WindowCache(min(self.window, 64))


class WindowedWithoutMaximumInSteps(Windowed):
    """finite"""

    def decoder(self, shape: Shape) -> Any:
        class Naive(WindowCache):
            def step(self, q: Array, k: Array, v: Array) -> Array:
                super().step(q, k, v)
                weights = np.exp(q @ np.array(self.keys).T)
                return np.asarray(weights @ np.array(self.values) / weights.sum())

        return Naive(self.window)


class WindowedThatForgetsAPrompt(Windowed):
    """decoder"""

    def decoder(self, shape: Shape) -> Any:
        class Overwritten(WindowCache):
            def prefill(self, q: Array, k: Array, v: Array) -> None:
                self.keys = [np.array(key) for key in k[-self.window :]]
                self.values = [np.array(value) for value in v[-self.window :]]

        return Overwritten(self.window)


class LearntDirections:
    """Softmax of keys in the two directions of the largest energy of another head."""

    claims = {"row_stochastic": True, "non_negative": True}

    def __init__(self, calibration: Any = None, state: Any = None) -> None:
        self.directions = self.learnt(calibration) if state is None else np.array(state["directions"])

    @staticmethod
    def learnt(calibration: Any) -> Array:
        return np.asarray(np.linalg.eigh(calibration.k.T @ calibration.k)[1][:, -2:])

    def state(self) -> dict[str, Array]:
        return {"directions": self.directions}

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        P = self.directions.astype(q.dtype)
        return softmax((q @ P) @ (k @ P).T) @ v

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        weights = np.exp(q @ self.directions @ self.directions.T @ k.T)
        return np.asarray(weights @ v / weights.sum(axis=1, keepdims=True))


class LearntDirectionsWithoutState(LearntDirections):
    """state"""

    def __init__(self, calibration: Any = None, state: Any = None) -> None:
        super().__init__(calibration)


class LearntDirectionsOfNoHead(LearntDirections):
    """draws"""

    @staticmethod
    def learnt(calibration: Any) -> Array:
        return np.eye(calibration.k.shape[1], 2)


class LearntDirectionsOfTheFirstHead(LearntDirections):
    """draws"""

    kept: Any = None

    @classmethod
    def learnt(cls, calibration: Any) -> Array:
        if cls.kept is None:
            cls.kept = LearntDirections.learnt(calibration)
        return np.array(cls.kept)


class RandomSigns:
    """Softmax of queries and keys whose entries get random signs, where a flag asks for them."""

    def __init__(self, flipped: float = 0.5, signs: bool = False, *, shape: Shape, seed: int) -> None:
        draws = self.generator(seed).random((2, shape.d))
        self.of_q, self.of_k = np.where(signs & (draws < flipped), -1.0, 1.0)

    def generator(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(seed)

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return softmax(logits(q * self.of_q.astype(q.dtype), k * self.of_k.astype(k.dtype), causal)) @ v


class RandomSignsOfOneSeed(RandomSigns):
    """Every draw is the same."""

    def generator(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(1)


class CopiedSigns(RandomSigns):
    """Random signs for each channel, which are all drawn at once."""

    def __init__(self, *, shape: Shape, seed: int) -> None:
        self.draws = self.generator(seed).random((8, 1)).repeat(shape.d, axis=1)
        self.of_q, self.of_k = np.where(self.draws[:2] < 0.5, -1.0, 1.0)

    def state(self) -> dict[str, Array]:
        return {"draws": self.draws}


class RunningMean:
    """The mean of the values so far."""

    claims = {"causal_exact": True, "row_stochastic": True, "non_negative": True}

    def rows(self, n: int) -> Array:
        return np.arange(1, n + 1)

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        if not causal:
            return np.repeat(v.mean(axis=0, keepdims=True), len(q), axis=0)
        return np.asarray(np.cumsum(v, axis=0, dtype=np.float64) / self.rows(len(k))[:, None]).astype(v.dtype)

    def transcription(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return np.array([v[: i + 1 if causal else len(v)].mean(axis=0) for i in range(len(q))])

    def decoder(self, shape: Shape) -> Any:
        return MeanOfSteps(shape)


class MeanOfSteps:
    kind: Any = np.int64

    def __init__(self, shape: Shape) -> None:
        self.count, self.sum = np.zeros(1, self.kind), np.zeros(shape.dv)

    def prefill(self, q: Array, k: Array, v: Array) -> None:
        self.count += np.array(len(v)).astype(self.kind)
        self.sum += v.sum(axis=0)

    def step(self, q: Array, k: Array, v: Array) -> Array:
        self.prefill(q, k, v)
        return np.asarray(self.sum / self.count)[None].astype(v.dtype)

    def bytes(self) -> int:
        return self.count.nbytes + self.sum.nbytes


class RunningMeanOfTwoBytes(RunningMean):
    """Its decoder counts in 16 bits."""

    def decoder(self, shape: Shape) -> Any:
        class Short(MeanOfSteps):
            kind = np.int16

        return Short(shape)


class RunningMeanOf2048(RunningMean):
    """It counts to 2048."""

    def rows(self, n: int) -> Array:
        return np.minimum(super().rows(n), 2048)


class WindowedThatShrinks(Windowed):
    """A short head makes the window shorter for good."""

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        self.window = min(self.window, len(k))
        return super().attend(q, k, v, causal)


class WindowedOfFloatBytes(Windowed):
    """Its decoder keeps twice as much in double as it declares."""

    @staticmethod
    def decoder_bytes(parameters: dict[str, Any], shape: Shape) -> float:
        return float(min(parameters["window"], shape.nk) * (shape.d + shape.dv) * 4)


class LargestKeys:
    """Softmax over the keys of the largest logits of each row."""

    claims = {"exact_when": "keep=1000000000"}
    parameters = {"keep": Parameter(16, minimum=1, budget=True)}
    most = 10**9

    def __init__(self, keep: int) -> None:
        self.keep = keep

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        z = q @ k.T
        keep = min(self.keep, self.most, len(k))
        z[z < np.partition(z, len(k) - keep, axis=1)[:, len(k) - keep, None]] = -np.inf
        return softmax(z) @ v


class LargestKeysOf1024(LargestKeys):
    """Never more than 1024."""

    most = 1024


class StartAndWindow:
    """Softmax over the first keys and those near by."""

    parameters = {"first": Parameter(3, minimum=0), "window": Parameter(16, minimum=0)}

    def __init__(self, first: int, window: int) -> None:
        self.first, self.window = first, window

    def attend(self, q: Array, k: Array, v: Array) -> Array:
        i, j = np.indices((len(q), len(k)))
        seen = np.where((j < self.first) | (abs(i - j) <= self.window) | (j == len(k) - 1), q @ k.T, -np.inf)
        return softmax(seen) @ v

    def transcription(self, q: Array, k: Array, v: Array, causal: bool, parameters: dict[str, int]) -> Array:
        out = np.zeros((len(q), v.shape[1]))
        for i, query in enumerate(q):
            near = range(max(0, i - parameters["window"]), min(len(k), i + parameters["window"] + 1))
            keys = sorted({*range(min(len(k), parameters["first"])), *near, len(k) - 1})
            out[i] = softmax(query[None] @ k[keys].T)[0] @ v[keys]
        return out


class StartAndWindowOrNeither(StartAndWindow):
    """Without a window the first keys are lost as well."""

    def __init__(self, first: int, window: int) -> None:
        super().__init__(first if window > 0 else 0, window)


class SoftpickOfMoreUnderAMask(Softpick):
    """It declares twice as much as it does where the mask is causal."""

    @staticmethod
    def cost(parameters: dict[str, Any], shape: Shape) -> tuple[float, float]:
        flops, exponentials = Softpick.cost(parameters, shape)
        return flops * (2 if shape.causal else 1), exponentials
