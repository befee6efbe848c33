"""A figure that the user asks for: one metric against one axis, of the cells that meet conditions."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
from aggregate import aggregate
from results import PROBLEM, SPECS, Figure, Misuse, Results, parameter_columns


def add_query(parser: argparse.ArgumentParser) -> None:
    """The options of a query."""
    group = parser.add_argument_group("your own figure, instead of those in the results")
    group.add_argument("--x", metavar="NAME", help="a size (n, d, ...) or a parameter")
    group.add_argument("--y", metavar="METRIC", help="such as seconds; the median if a replicate has several values")
    group.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="only these cells, such as experiment=speed; the same name again allows another value (repeatable)",
    )
    group.add_argument("--series", nargs="+", metavar="NAME", help="columns that name a curve (default: method)")
    group.add_argument("--log", choices=("x", "y", "x,y"), help="logarithmic axes")


def query(results: Results, options: argparse.Namespace) -> Figure | None:
    """The figure that the options ask for; None if they ask for none."""
    if options.x is None and options.y is None:
        if options.where or options.series or options.log:
            raise Misuse("--where, --series and --log belong to a query: give --x NAME and --y METRIC as well")
        return None
    if options.x is None or options.y is None:
        raise Misuse("a query has both axes: expected --x NAME and --y METRIC")
    if options.figure:
        raise Misuse(f"--figure {options.figure[0]} beside --x and --y: expected one of them; draw the other by itself")
    columns = [*PROBLEM, *SPECS, *parameter_columns(results.cells)]
    conditions = _conditions(options.where)
    series = options.series or ["method"]
    for name in (options.x, *conditions, *series):
        _require_known(name, columns, "no size, spec or parameter of the cells is called so")
    _require_known(options.y, sorted(results.measurements["metric"].unique()), "no measurement is called so")
    measured = results.measurements.loc[results.measurements["metric"] == options.y, "values"]
    logarithmic = (options.log or "").split(",")
    panel = {
        "title": "",
        "kind": "curve",
        "where": conditions,
        "x": [options.x],
        "x_scale": "log2" if "x" in logarithmic else "linear",
        "y": options.y,
        "y_scale": "log10" if "y" in logarithmic else "linear",
        "interval": "median" if any(np.ndim(values) for values in measured) else "mean",
        "series": series,
    }
    missing = aggregate(results, panel).missing
    if missing:
        raise Misuse(missing)
    name = f"{options.y} over {options.x}"
    return Figure("query", name, 0, {"title": name, "panels": [panel]})


def _conditions(words: list[str]) -> dict[str, list[str]]:
    conditions: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise Misuse(f"--where {word}: expected NAME=VALUE, such as experiment=speed")
        conditions.setdefault(name, []).append(value)
    return conditions


def _require_known(name: str, known: Iterable[Any], problem: str) -> None:
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, 3) or names
        raise Misuse(f"'{name}': {problem}; expected one of: {', '.join(near) or '(there are none)'}")
