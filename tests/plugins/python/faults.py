"""Methods that misbehave, for tests: each is 0 otherwise."""

import ctypes
import os
import threading
import time

import numpy as np

import attnbench


class _Zero:
    def fault(self, q, k, v):
        pass

    def attend(self, q, k, v, causal):
        given = self.fault(q, k, v)
        return np.zeros((len(q), v.shape[1]), q.dtype) if given is None else given


class WrongShape(_Zero):
    def fault(self, q, k, v):
        return v[:-1]


class NoArray(_Zero):
    def fault(self, q, k, v):
        return "attention"


class ReturnsNothing:
    def attend(self, q, k, v, causal):
        q @ k.T


class WrongType(_Zero):
    def fault(self, q, k, v):
        return np.zeros_like(v, dtype=complex)


class NotANumber(_Zero):
    def fault(self, q, k, v):
        return np.full_like(v, np.nan)


class ModifiesInputs(_Zero):
    def fault(self, q, k, v):
        q *= 2


class ModifiesInputsAnyway(_Zero):
    def fault(self, q, k, v):
        ctypes.memset(v.ctypes.data, 0, v.dtype.itemsize)


class NotDeterministic(_Zero):
    def fault(self, q, k, v):
        return v + np.random.default_rng().standard_normal(v.shape).astype(v.dtype)


class KeepsState(_Zero):
    calls = 0

    def fault(self, q, k, v):
        self.calls += 1
        return v * self.calls


class KeepsInputs(_Zero):
    def fault(self, q, k, v):
        self.keys = k[1:]


class Prints(_Zero):
    def fault(self, q, k, v):
        print("nothing to see here")


class Raises(_Zero):
    def fault(self, q, k, v):
        raise ValueError("no luck\ntoday")


class Skips(_Zero):
    def fault(self, q, k, v):
        raise attnbench.Skip("not on a Sunday")


class Forks(_Zero):
    def fault(self, q, k, v):
        os.fork()


class StartsThreads(_Zero):
    def fault(self, q, k, v):
        threading.Thread(target=time.sleep, args=(1000,)).start()


class Leaves(_Zero):
    def fault(self, q, k, v):
        os._exit(3)


class Exits(_Zero):
    def fault(self, q, k, v):
        raise SystemExit(4)


class Interrupts(_Zero):
    def fault(self, q, k, v):
        raise KeyboardInterrupt


class Segfaults(_Zero):
    def fault(self, q, k, v):
        ctypes.string_at(0)


class Hangs(_Zero):
    def fault(self, q, k, v):
        while True:
            pass


class TakesMemory(_Zero):
    def fault(self, q, k, v):
        np.ones(1 << 46)


class FailsToDraw(_Zero):
    def __init__(self, shape):
        raise OSError(f"no weights for d = {shape.d}")
