"""Numbers that the caller measured, as rows of a results file."""

from __future__ import annotations

import operator
import os
import sys
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attnbench import _native
from attnbench._native import Misuse, NumericallyInvalid
from attnbench.failures import Skip, one_line
from attnbench.loading import name_of
from attnbench.running import read

if TYPE_CHECKING:
    import pandas

Values = Mapping[str, ArrayLike] | Exception
Row = tuple[int, str, str, float, list[tuple[str, Any]]]


def record(
    experiment: str | type,
    measured: Mapping[str, Sequence[Values] | Mapping[int, Values]],
    *,
    input: str | type,
    n: int,
    d: int,
    dv: int | None = None,
    heads: int = 1,
    causal: bool = False,
    precision: str = "f32",
    seed: int = 1,
    seconds: Mapping[str, Sequence[float]] | None = None,
    results: str | os.PathLike[str],
) -> pandas.DataFrame:
    """Records numbers of an experiment that this process measured itself, and returns their table as `read` does.

    experiment, input: specs, or classes derived from Experiment and Input, whose code need not run: they name the
    metrics with their units, and where the numbers come from. measured: by the spec of a method, what each replicate
    gave, in order or by its number: numbers or arrays by metric, or an exception that says why they are missing (Skip:
    skipped; NumericallyInvalid: invalid; others: failed). n, d, dv, heads, causal, precision ("f32" or "f64"), seed: of
    the cell. seconds: of each replicate by method, by default 0. A replicate that was recorded stays as it is. Page,
    figures and `compare` read these rows like any others. Raises Misuse before anything is written.
    """
    if precision not in ("f32", "f64"):
        raise Misuse(f"record: precision = {precision!r}; expected 'f32' or 'f64'")
    n, d, dv, heads, seed = (
        _whole(name, x)
        for name, x in (("n", n), ("d", d), ("dv", d if dv is None else dv), ("heads", heads), ("seed", seed))
    )
    if min(n, d, dv, heads) < 1 or seed < 0:
        raise Misuse(
            f"record: n = {n}, d = {d}, dv = {dv}, heads = {heads}, seed = {seed}; expected numbers above 0, and a seed from 0"
        )
    whole = isinstance(measured, Mapping) and all(isinstance(x, (Mapping, Sequence)) and x for x in measured.values())
    if not whole or not measured:
        raise Misuse("record: nothing was measured; give {METHOD: [{METRIC: NUMBER}, ...]}")
    given = []
    for method, replicates in measured.items():
        each = replicates.items() if isinstance(replicates, Mapping) else enumerate(replicates)
        numbered = {_whole("a replicate", at): values for at, values in each}
        if min(numbered) < 0:
            raise Misuse(f"record: replicate {min(numbered)} of {name_of(method)}; expected numbers from 0")
        took = dict(zip(numbered, (seconds or {}).get(method, ())))
        if not all(0 <= x < np.inf for x in took.values()):
            raise Misuse(f"record: seconds of {name_of(method)} are {[*took.values()]}; expected numbers from 0")
        given.append((name_of(method), [_row(at, values, took.get(at, 0.0)) for at, values in numbered.items()]))
    specs = name_of(experiment), name_of(input)
    _native.record(
        os.fspath(results), f"attnbench.record of {os.path.basename(sys.argv[0]) or 'an interpreter'}", sys.executable,
        *specs, (n, n, d, dv, heads), causal, precision == "f32", seed, given,
    )  # fmt: skip
    return read(results, where={"experiment": specs[0].partition(":")[0]})


def _whole(name: str, number: Any) -> int:
    """A whole number of Python or NumPy."""
    if not hasattr(number, "__index__") or isinstance(number, (bool, np.bool_)) or number >= 2**63:
        raise Misuse(f"record: {name} = {number!r:.60}; expected a whole number")
    return operator.index(number)


def _row(replicate: int, values: Values, seconds: float) -> Row:
    if isinstance(values, Exception):
        ending = "skipped" if isinstance(values, Skip) else "failed"
        ending = "invalid" if isinstance(values, NumericallyInvalid) else ending
        said = isinstance(values, (Skip, Misuse, NumericallyInvalid)) and str(values)
        return replicate, ending, said or one_line(values), seconds, []
    if not isinstance(values, Mapping) or not values:
        raise Misuse(f"record: replicate {replicate} is {values!r:.60}; expected numbers by metric, or an exception")
    return replicate, "done", "", seconds, [(name, _numbers(name, value)) for name, value in values.items()]


def _numbers(name: str, value: ArrayLike) -> Any:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise Misuse(f"record: {name} is of type {array.dtype}; expected a number or an array of numbers")
    return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
