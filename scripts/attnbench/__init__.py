"""The yardstick for attention approximations, from Python.

    import attnbench
    attnbench.attend("performer:m=256", q, k, v)         # C++ methods on your arrays
    attnbench.check(MyMethod)                            # is a class of yours right?
    attnbench.run("attention-error", ["performer", "uniform"], n=[256, 512])    # a pandas.DataFrame
    attnbench.read("results/attnbench.db", metric="relative_output_error")      # the same table, of a results file
    attnbench.plot("results/attnbench.db", y="relative_output_error", x="m")    # as the page draws it

Arrays are [n, d], [heads, n, d] or [batch, heads, n, d]. A spec names a method with its parameters, as on the command
line; wherever one is wanted, a class with attend (see attnbench.Method) may be given as well.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = [
    "Applied",
    "Calibration",
    "Experiment",
    "Input",
    "Method",
    "Misuse",
    "Need",
    "NumericallyInvalid",
    "Parameter",
    "Picture",
    "Report",
    "Shape",
    "Sizes",
    "Skip",
    "Theory",
    "__version__",
    "attend",
    "attention_matrix",
    "check",
    "describe",
    "kernel",
    "list",
    "load",
    "plot",
    "read",
    "record",
    "register",
    "run",
    "state",
    "theory",
]


def _why_not(error: ImportError) -> str:
    """One line for a package that cannot be imported."""
    if error.name in ("numpy", "pandas"):
        return f"{sys.executable} has no {error.name}, which attnbench needs; install it there, or take another interpreter"
    built = sorted(path.name.split(".")[1] for path in Path(__file__).parent.glob("_native.*.so"))
    if not built:
        return f"{Path(__file__).parent} holds no built module; build it: scripts/build.sh release attnbench_python"
    own = sys.implementation.cache_tag
    if all(own not in tag for tag in built):
        return (
            f"built for {built[0]}, and {sys.executable} is {own}; take that Python, or build with -DATTNBENCH_PYTHON"
        )
    return f"its extension module cannot be loaded: {error}"


try:
    from attnbench._native import (
        Misuse,
        NumericallyInvalid,
        __version__,
    )  # isort: skip: of another version, nothing else matters

    import numpy as _numpy  # noqa: F401
except ImportError as _error:
    if sys.orig_argv[1:3] == ["-m", "attnbench.worker"]:  # the runner that started it wants one line
        print(f"attnbench: {_why_not(_error)}", file=sys.stderr, flush=True)
        os._exit(2)
    raise ImportError(f"attnbench: {_why_not(_error)}") from None

from attnbench.catalogue import Theory, describe, list, theory
from attnbench.checking import Report, check
from attnbench.experiments import Applied, Experiment
from attnbench.failures import Skip
from attnbench.heads import attend, attention_matrix, kernel, state
from attnbench.inputs import Input, Sizes
from attnbench.loading import load, register
from attnbench.method import Calibration, Method, Need, Parameter, Shape
from attnbench.plotting import Picture, plot
from attnbench.recording import record
from attnbench.running import read, run
