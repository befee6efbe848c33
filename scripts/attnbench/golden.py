"""Outputs of the authors' own code, to which `check` compares a method."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, NamedTuple

import numpy as np

from attnbench._native import Misuse
from attnbench.method import Array


class Golden(NamedTuple):
    """One head and the output that the authors' code gave for it. q and k are scaled by d^-1/4."""

    name: str
    q: Array
    k: Array
    v: Array
    causal: bool
    needed: dict[str, Array]
    out: Array
    spacing: float
    """of the numbers at 1 in the type of `out`"""


def golden_files(said: Any, where: str) -> dict[str, Mapping[str, Any]]:
    """The files of `golden = "softpick.npz"` or `golden = {"softpick.npz": {"epsilon": 0.0}}`, with the parameters of each."""
    if said is None:
        return {}
    if isinstance(said, str):
        return {said: {}}
    if isinstance(said, Mapping) and all(isinstance(one, Mapping) for one in said.values()):
        return {str(name): dict(parameters) for name, parameters in said.items()}
    raise Misuse(
        f"{where}: golden = {said!r}; expected the name of a .npz file, or a dict of such names, each with the parameters "
        'that its numbers belong to: {"softpick.npz": {"epsilon": 0.0}}'
    )


def read_golden(path: Path, needed: list[str]) -> Golden:
    """A file with q, k and v as the authors' code took them, not scaled, its output `out`, and optionally `causal`."""
    if not path.is_file():
        raise Misuse(f"golden: {path} is not a file; expected an .npz with q, k, v, out")
    with np.load(path, allow_pickle=False) as arrays:
        missing = [name for name in ("q", "k", "v", "out", *needed) if name not in arrays]
        if missing:
            raise Misuse(f"golden: {path} has no {', '.join(missing)}; it has {', '.join(arrays)}")
        q, k, v, out = (np.asarray(arrays[name]) for name in ("q", "k", "v", "out"))
        if any(array.ndim != 2 for array in (q, k, v, out)) or out.shape != (len(q), v.shape[1]) or len(k) != len(v):
            raise Misuse(
                f"golden: {path} has q {q.shape}, k {k.shape}, v {v.shape} and out {out.shape}; expected one head: [nq, d], "
                "[n, d], [n, dv] and [nq, dv]"
            )
        scale = float(q.shape[1]) ** -0.25
        further = {name: np.atleast_2d(np.asarray(arrays[name], np.float64)) for name in needed}
        spacing = float(np.finfo(out.dtype).eps) if out.dtype.kind == "f" else 0.0
        causal = bool(arrays["causal"]) if "causal" in arrays else False
    as_double = [np.asarray(array, np.float64) for array in (scale * q.astype(float), scale * k.astype(float), v, out)]
    return Golden(path.name, as_double[0], as_double[1], as_double[2], causal, further, as_double[3], spacing)
