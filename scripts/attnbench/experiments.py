"""Experiments in Python: what is measured of a method on an input."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from attnbench._native import Misuse
from attnbench.entry import NAME, Entry
from attnbench.method import Array, Shape


class Applied:
    """A method applied to a head, and softmax attention on the same head. Arrays are float64.

    q, k and v are the head, scaled by d^-1/4; output and exact_output are [nq, dv].
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        shape: tuple[Any, ...],
        method: str,
        input: str,
        seed: int,
        replicate: int,
    ) -> None:
        self.q, self.k, self.v = arrays["q"], arrays["k"], arrays["v"]
        self.output, self.exact_output = arrays["output"], arrays["exact_output"]
        self._matrices = arrays
        self.shape = Shape(*shape)
        self.method, self.input = method, input
        """specs"""
        self.seed, self.replicate = seed, replicate
        """the run's seed, and the number of the replicate, from 0"""

    @property
    def attention(self) -> Array:
        """The method's attention matrix, [nq, nk]. The class of the experiment has `matrices = True`."""
        return self._matrix("attention")

    @property
    def exact_attention(self) -> Array:
        """The attention matrix of softmax, [nq, nk]. The class of the experiment has `matrices = True`."""
        return self._matrix("exact_attention")

    def _matrix(self, name: str) -> Array:
        if name not in self._matrices:
            raise AttributeError(f"applied.{name} is there if the class of the experiment has `matrices = True`")
        return self._matrices[name]


class Experiment:
    """The base of an experiment. One instance measures one replicate of one cell.

    The constructor's keywords are its parameters, as those of a method. `raise attnbench.Skip("why")` where a method
    cannot be measured.
    """

    metrics: Mapping[str, str | tuple[str, str]] = {}
    """By name, the unit of what is measured ("1" for ratios and counts), or the unit and a text. The first one is what a
    figure of a run shows."""

    matrices: bool = False
    """measure reads the attention matrices. Methods without one are then skipped."""

    def measure(self, applied: Applied) -> Mapping[str, Any]:
        """Of some or all metrics, the number, or an array of numbers."""
        raise NotImplementedError


class ExperimentDeclaration(Entry):
    """A class as an experiment of the registry."""

    kind = "experiment"
    base = Experiment

    def __init__(self, cls: type[Any], file: str, module: str = "") -> None:
        super().__init__(cls, file, module)
        self._require("measure(self, applied)")
        self.matrices = bool(getattr(cls, "matrices", False))
        said = getattr(cls, "metrics", None)
        if not isinstance(said, Mapping) or not said:
            raise Misuse(
                f'{self.where}: metrics = {said!r}; expected a dict of units by name, such as {{"error": "1"}}'
            )
        self.metrics = [self._metric(name, unit) for name, unit in said.items()]
        """name, unit and text of each"""

    def _metric(self, name: Any, said: Any) -> tuple[str, str, str]:
        unit, text = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise Misuse(f"{self.where}: metric {name!r}; expected a name of letters, digits, - and _")
        if not isinstance(unit, str) or not unit or not isinstance(text, str):
            raise Misuse(
                f'{self.where}: metric {name} = {said!r}; expected its unit, such as "1" or "s", or (unit, text)'
            )
        return name, unit, text

    def measure(self, values: dict[str, Any], *facts: Any) -> list[tuple[str, str, Array]]:
        """Name, unit and numbers of each metric that a new instance measures."""
        said = self._made(values).measure(Applied(*facts))
        if not isinstance(said, Mapping) or not said:
            raise TypeError(f"measure(applied) returned a {type(said).__name__}; expected a dict of numbers by metric")
        units = {name: unit for name, unit, _ in self.metrics}
        for name, value in said.items():
            if name not in units:
                raise TypeError(f"measure(applied) returned the metric {name!r}; its `metrics` are {', '.join(units)}")
            kind = np.asarray(value).dtype.kind
            if kind not in "fiub":
                raise TypeError(
                    f"measure(applied) returned a {type(value).__name__} as {name}; expected a number or numbers"
                )
        return [(name, units[name], np.array(value, dtype=np.float64, order="C")) for name, value in said.items()]
