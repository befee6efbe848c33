"""Inputs in Python: where the queries, keys and values of an experiment come from."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

import numpy as np

from attnbench.entry import Entry
from attnbench.method import Array, Need


class Sizes(NamedTuple):
    """Sizes of the head that is to be drawn."""

    nq: int
    """queries: q is [nq, d]"""
    nk: int
    """keys: k is [nk, d], v is [nk, dv]"""
    d: int
    dv: int


class Input:
    """The base of an input. One instance is one configuration; each call of draw is one head.

    The constructor's keywords are its parameters, as those of a method.
    """

    causal: bool = False
    """Runs are causal unless --bidirectional is given: the heads are those of a causal model."""

    provides: Mapping[str, Need | tuple[Any, ...]] = {}
    """Arrays beside q, k and v that a method may need: {"gate": ("n", 1)}. draw then returns a dict of them as its
    fourth result."""

    def draw(self, shape: Sizes, seed: int) -> tuple[Any, ...]:
        """q [nq, d], k [nk, d], v [nk, dv], **not** scaled by d^-1/4: attnbench does that.

        Equal seeds give equal heads. Replicates, heads and the head that fitted methods learn from have other seeds.
        """
        raise NotImplementedError

    def needles(self, shape: Sizes, seed: int) -> Array:
        """The key, from 0, at which each of the nq queries of that head is aimed: it may be left out."""
        raise NotImplementedError


class InputDeclaration(Entry):
    """A class as an input of the registry."""

    kind = "input"
    base = Input

    def __init__(self, cls: type[Any], file: str, module: str = "") -> None:
        super().__init__(cls, file, module)
        self._require("draw(self, shape, seed)")
        self.aims = self._has("needles(self, shape, seed)")
        self.causal = bool(getattr(cls, "causal", False))
        self.provides = self._needs("provides")

    def draw(self, values: dict[str, Any], sizes: tuple[int, ...], seed: int) -> tuple[Any, ...]:
        """q, k and v of a new instance, and the dict of what it provides beside them."""
        said = self._made(values).draw(Sizes(*sizes), seed)
        names = [name for name, *_ in self.provides]
        expected = "three arrays (q, k, v)"
        if names:
            expected = "(q, k, v, {" + ", ".join(f'"{name}": array' for name in names) + "})"
        if not isinstance(said, (tuple, list)) or len(said) != (4 if names else 3):
            count = f" of {len(said)}" if isinstance(said, (tuple, list)) else ""
            raise TypeError(f"draw(shape, seed) returned a {type(said).__name__}{count}; expected {expected}")
        if names and (not isinstance(said[3], Mapping) or set(said[3]) != set(names)):
            raise TypeError(f"draw(shape, seed) returned {said[3]!r:.80} as its fourth result; expected {expected}")
        return tuple(said)

    def needles(self, values: dict[str, Any], sizes: tuple[int, ...], seed: int) -> list[int]:
        """The keys that the queries of the same draw are aimed at."""
        keys = np.asarray(self._made(values).needles(Sizes(*sizes), seed))
        nq, nk = sizes[:2]
        if keys.shape != (nq,) or keys.dtype.kind not in "iu" or keys.min() < 0 or keys.max() >= nk:
            raise TypeError(
                f"needles(shape, seed) returned an array of shape {keys.shape} and type {keys.dtype}; expected {nq} "
                f"integers from 0 to {nk - 1}"
            )
        return [int(key) for key in keys]
