"""All registered entries, and the facts that are known of each."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbench import _native
from attnbench.loading import name_of


def list(kind: str = "methods") -> dict[str, str]:
    """Names of a kind, each with what it is.

    kind: methods, features, deterministic-features, projections, inputs, experiments or recipes. Raises Misuse.
    """
    return _native.summaries(kind)


class Description(dict[str, Any]):
    """Kind, name, spec, summary, formula, reference, departure, cost and the values of the parameters; prints as `describe` does."""

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__
    text = ""


def describe(spec: str | type) -> Description:
    """All about an entry of any kind, a configuration of it, or a metric. Raises Misuse for an unknown name."""
    spec = name_of(spec)
    _, text = _native.command(["describe", spec], sys.executable)
    kinds = _native.kinds(spec.split(":")[0])
    described = Description(_native.describe(kinds[0], spec) if kinds else {"kind": "metric", "name": spec})
    described.text = text.rstrip()
    return described


class Theory(NamedTuple):
    """Closed forms of a kernel estimate over draws, for pairs of vectors."""

    target: str
    """what the mean is, such as exp(q.k)"""
    mean: NDArray[np.float64]
    """[pairs]"""
    variance: NDArray[np.float64] | None
    """[pairs], mean squared errors about the mean; None: no closed form is known"""
    exact: bool
    """False: the mean is an approximation"""


def theory(spec: str | type, q: ArrayLike, k: ArrayLike, *, scaled: bool = False) -> Theory | None:
    """Closed forms for the estimates of exp(q_p.k_p), [pairs, d] each. None: no closed form is known.

    scaled: q and k are times d^-1/4 already. Raises Misuse.
    """
    q, k = np.atleast_2d(np.asarray(q, dtype=np.float64)), np.atleast_2d(np.asarray(k, dtype=np.float64))
    factor = 1.0 if scaled else q.shape[-1] ** -0.25
    known = _native.theory(name_of(spec), q * factor, k * factor)
    return None if known is None else Theory(*known)
