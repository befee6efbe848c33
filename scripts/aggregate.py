"""From replicates to what a panel draws: points with intervals, references, endings, and notes about them.

Intervals have level 95 %. "mean": mean over replicates, Student t. "median": median of all samples, with the
distribution-free interval between two order statistics (binomial; David and Nagaraja, Order Statistics, 7.1).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from results import PROBLEM, SPECS, Results, parameter_columns, plain, select, split_spec, without_parameters
from scipy import special

LEVEL = 0.95
COLUMNS = ("series", "role", "x", "y", "low", "high", "theory", "replicates", "samples", "exponent", "note")
EXPONENT_POINTS = 3
# How `attnbench run` spells a condition on a cell; all others are --name VALUE.
OPTIONS = {"n": "-n", "d": "-d", "logit_scale": "--logit-scale"}


@dataclass
class Panel:
    """What one panel draws.

    points   COLUMNS, one row a point: role is "measured", "reference" (a method without the x axis has x = NaN) or
             "ending" (a cell that was not done: y is NaN and the note says why). A point with a note is not drawn.
    missing  why there is nothing to draw, and the command that would change it; "" when there is something
    """

    description: dict[str, Any]
    points: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    missing: str = ""
    unit: str = "1"

    @property
    def has_theory(self) -> bool:
        """Whether lines are closed forms, so that points are not joined."""
        return bool(self.points["theory"].notna().any())

    def role(self, name: str) -> pd.DataFrame:
        """Rows of one role that are drawn."""
        return self.points[(self.points["role"] == name) & ((self.points["note"] == "") | (name == "ending"))]


def mean_interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and its Student t interval over the first axis of samples [r, ...]; no interval (NaN) for fewer than two."""
    r = len(samples)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite samples give a mean that is marked as not finite
        mean = np.mean(samples, axis=0)
        if r < 2:
            return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
        half = special.stdtrit(r - 1, (1 + LEVEL) / 2) * np.std(samples, axis=0, ddof=1) / np.sqrt(r)
        return mean, mean - half, mean + half


def median_interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Median over the first axis of samples [r, ...] and the narrowest symmetric pair of order statistics that covers
    it with at least 95 %; no interval (NaN) for fewer than six, where no pair does."""
    r = len(samples)
    ordered = np.sort(samples, axis=0)
    median = np.median(ordered, axis=0)
    # P(at most k of r samples lie under the median), k = 0, 1, ...: the pair of rank k + 1 misses it twice as often.
    misses = special.bdtr(np.arange(r // 2), r, 0.5)
    rank = int(np.count_nonzero(misses <= (1 - LEVEL) / 2))
    if rank == 0:
        return median, np.full_like(median, np.nan), np.full_like(median, np.nan)
    return median, ordered[rank - 1], ordered[r - rank]


INTERVALS = {"mean": mean_interval, "median": median_interval}


def fitted_exponent(x: np.ndarray, y: np.ndarray) -> float:
    """Least-squares slope of log y over log x at the last points; NaN for fewer than two."""
    kept = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    x, y = x[kept][-EXPONENT_POINTS:], y[kept][-EXPONENT_POINTS:]
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if len(x) > 1 else np.nan


def aggregate(results: Results, description: dict[str, Any]) -> Panel:
    """The numbers of one panel of a figure description."""
    panel = Panel(description, pd.DataFrame(columns=list(COLUMNS)))
    cells = _panel_cells(results.cells, description)
    measured = _with_values(results, cells, description["y"])
    rows = (
        _profile_rows(panel, measured, results)
        if description["kind"] == "profile"
        else _curve_rows(panel, measured, results)
    )
    rows += _ending_rows(results, cells)
    if rows:
        panel.points = pd.DataFrame(rows, columns=list(COLUMNS))
    _mark_undrawable(panel)
    _say_what_is_absent(panel, results, cells, measured)
    if description.get("slope"):
        _fit_exponents(panel)
    if len(measured):
        panel.unit = str(measured["unit"].iloc[0])
    return panel


def _panel_cells(cells: pd.DataFrame, description: dict[str, Any]) -> pd.DataFrame:
    """Cells of the panel with columns x, series and role."""
    where = description.get("where", {})
    axes = axis_names(description)
    references = description.get("references", [])
    chosen = select(cells, where, axes)
    # A reference lacks the parameters of the methods beside it, so only conditions on the problem bind it.
    problem = {name: value for name, value in where.items() if name in (*PROBLEM, "experiment", "input")}
    baseline = select(cells, {**problem, "method": references})
    chosen = pd.concat([chosen[~chosen.index.isin(baseline.index)], baseline])
    x = pd.Series(np.nan, chosen.index)
    for axis in axes:
        if axis in chosen:
            x = x.fillna(pd.to_numeric(chosen[axis].map(plain), errors="coerce"))
    series = description.get("series", ["method"])
    return chosen.assign(
        x=x,
        series=[_series(cell, series, axes) for _, cell in chosen.iterrows()],
        role=np.where(chosen.index.isin(baseline.index), "reference", "measured"),
    )


def axis_names(description: dict[str, Any]) -> list[str]:
    """The columns that may give x: of a list, the first that a cell has (budgets go by many names)."""
    axis = description.get("x") or []
    return axis if isinstance(axis, list) else [axis]


def _series(cell: pd.Series, columns: list[str], axes: list[str]) -> str:
    """The name of a curve: its specs without the parameters that the x axis sweeps; other columns as name=value."""
    parts = []
    for column in columns:
        value = plain(cell.get(column))
        if column in SPECS:
            parts.append(without_parameters(value, axes))
        else:
            parts.append(f"{column}={value:.15g}" if isinstance(value, float) else f"{column}={value}")
    return " ".join(parts)


def _with_values(results: Results, cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One row a replicate that has the metric: the columns of its cell, replicate, unit and values."""
    rows = results.measurements[results.measurements["metric"] == metric]
    return rows.merge(cells, left_on="key", right_index=True, suffixes=("", " of cell"))


def _row(series: str, role: str, **values: Any) -> dict[str, Any]:
    blank = {"x": np.nan, "y": np.nan, "low": np.nan, "high": np.nan, "theory": np.nan, "replicates": 0, "samples": 0}
    return {"series": series, "role": role, **blank, "exponent": np.nan, "note": "", **values}


def _curve_rows(panel: Panel, measured: pd.DataFrame, results: Results) -> list[dict[str, Any]]:
    """One row for each series and x. A replicate's array counts as its mean, or with all its samples for a median."""
    description = panel.description
    kind = description.get("interval", "mean")
    theory = _theory_by_replicate(results, description)
    without_axis = measured[measured["x"].isna() & (measured["role"] == "measured")]
    if len(without_axis):
        specs = without_axis.groupby(without_axis["method"].map(lambda spec: split_spec(spec)[0]))["series"].nunique()
        names = ", ".join(f"{name} ({count} specs)" if count > 1 else name for name, count in specs.items())
        panel.notes.append(f"Not drawn, no number for {' or '.join(axis_names(description)) or 'x'}: {names}.")
    drawn = measured.drop(without_axis.index)
    rows, pooled = [], set()
    for (role, series, x), group in drawn.groupby(["role", "series", "x"], dropna=False):
        samples = np.concatenate([np.ravel(v) if kind == "median" else [np.mean(v)] for v in group["values"]])
        y, low, high = INTERVALS[kind](samples)
        closed = [theory[key] for key in zip(group["key"], group["replicate"]) if key in theory]
        rows.append(
            _row(
                series,
                role,
                x=x,
                y=float(y),
                low=float(low),
                high=float(high),
                theory=float(np.mean(closed)) if closed else np.nan,
                replicates=len(group),
                samples=len(samples),
            )
        )
        pooled |= _varying(group)
    _say_what_is_pooled(panel, pooled)
    return rows


def _theory_by_replicate(results: Results, description: dict[str, Any]) -> dict[tuple[str, int], np.ndarray]:
    """(key, replicate) to the closed form: its mean for a curve, the array itself for a profile."""
    name = description.get("theory") or None
    rows = results.measurements[results.measurements["metric"] == name]
    whole = description["kind"] == "profile"
    return {(key, r): v if whole else np.mean(v) for key, r, v in zip(rows["key"], rows["replicate"], rows["values"])}


def _profile_rows(panel: Panel, measured: pd.DataFrame, results: Results) -> list[dict[str, Any]]:
    """One row for each series and index (from 1). Arrays of different lengths are different series."""
    description = panel.description
    theory = _theory_by_replicate(results, description)
    flat = measured["values"].map(np.ndim) == 1
    if not flat.all():
        panel.notes.append(
            f"Not drawn: {int((~flat).sum())} replicates whose {description['y']} has not one dimension."
        )
    measured = measured[flat].assign(length=[len(v) for v in measured["values"][flat]])
    several = measured.groupby(["role", "series"])["length"].nunique()
    rows, pooled = [], set()
    for (role, series, length), group in measured.groupby(["role", "series", "length"]):
        if length == 0:
            continue
        name = f"{series} ({length} values)" if several[role, series] > 1 else series
        stacked = np.stack(list(group["values"]))  # replicates x length
        closed = [theory[key] for key in zip(group["key"], group["replicate"]) if key in theory]
        closed = [v for v in closed if np.shape(v) == (length,)]
        formula = np.mean(closed, axis=0) if closed else np.full(length, np.nan)
        x = np.arange(1, length + 1) / (length if description.get("normalise_x") else 1)
        y, low, high = INTERVALS[description.get("interval", "mean")](stacked)
        points = _row(
            name, role, x=x, y=y, low=low, high=high, theory=formula, replicates=len(group), samples=len(group)
        )
        rows += pd.DataFrame(points).to_dict("records")
        pooled |= _varying(group)
    _say_what_is_pooled(panel, pooled)
    return rows


def _varying(group: pd.DataFrame) -> set[str]:
    """Columns in which the cells behind one point differ: parameters and problem, or else the specs."""
    columns = [*PROBLEM, *(c for c in parameter_columns(group) if c not in _ADDED)]
    if group["key"].nunique() == 1:
        return set()
    varying = {column for column in columns if column in group and group[column].nunique(dropna=False) > 1}
    return varying or {column for column in SPECS if group[column].nunique() > 1}


_ADDED = {"key", "replicate", "metric", "unit", "values", "x", "series", "role", "length"}


def _say_what_is_pooled(panel: Panel, columns: set[str]) -> None:
    if columns:
        panel.notes.append(f"Each point pools cells that differ in {', '.join(sorted(columns))}.")


def _ending_rows(results: Results, cells: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each series, x, ending and reason other than done; replicates counts them."""
    ended = results.replicates[results.replicates["ending"] != "done"].merge(
        cells, left_on="key", right_index=True, suffixes=("", " of cell")
    )
    ended["reason"] = ended["reason"].fillna("")
    return [
        _row(series, "ending", x=x, replicates=len(group), note=f"{ending}: {reason}" if reason else ending)
        for (series, x, ending, reason), group in ended.groupby(["series", "x", "ending", "reason"], dropna=False)
    ]


def is_log(scale: str | None) -> bool:
    """Whether an axis scale of a description is logarithmic."""
    return str(scale).startswith("log")


def _mark_undrawable(panel: Panel) -> None:
    """Notes on points that the axes cannot show, and a sentence that counts them."""
    points, description = panel.points, panel.description
    value = points["role"] != "ending"
    not_finite = value & (~np.isfinite(points["y"].astype(float)) | np.isinf(points["x"].astype(float)))
    not_positive = (
        value
        & ~not_finite
        & (
            (is_log(description.get("y_scale")) & (points["y"] <= 0))
            | (is_log(description.get("x_scale")) & (points["x"] <= 0))
        )
    )
    for chosen, words in ((not_finite, "not finite"), (not_positive, "not positive on a log axis")):
        points.loc[chosen, "note"] = words
        if chosen.any():
            panel.notes.append(f"{int(chosen.sum())} point{'s' if chosen.sum() > 1 else ''} not drawn: {words}.")


def _fit_exponents(panel: Panel) -> None:
    for _, group in panel.role("measured").groupby("series"):
        group = group.sort_values("x")
        panel.points.loc[group.index, "exponent"] = fitted_exponent(
            group["x"].to_numpy(float), group["y"].to_numpy(float)
        )


def _say_what_is_absent(panel: Panel, results: Results, cells: pd.DataFrame, measured: pd.DataFrame) -> None:
    description = panel.description
    seen = set(measured[measured["role"] == "reference"]["method"])
    absent = [name for name in description.get("references", []) if name not in seen]
    if len(panel.role("measured")) == 0:
        panel.missing = _what_is_needed(results, cells, description)
    elif absent:
        panel.notes.append(f"No data for the reference {', '.join(absent)}.")


def _what_is_needed(results: Results, cells: pd.DataFrame, description: dict[str, Any]) -> str:
    """Why a panel is empty, and which command would fill it."""
    if len(cells) == 0:
        return f"no data: {needed_command(description)}"
    endings = results.replicates[results.replicates["key"].isin(cells.index)]["ending"]
    if len(endings) and (endings != "done").all():
        return "no data: nothing was done, see below"
    there = results.measurements[results.measurements["key"].isin(cells.index)]["metric"].unique()
    if description["y"] not in there:
        found = ", ".join(sorted(there)) or "no measurement"
        return f"no data: none of the cells ({len(cells)}) has {description['y']}; they have {found}"
    axis = " or ".join(axis_names(description)) or "its index"
    return f"no data: no value of {description['y']} can be drawn against {axis}"


def needed_command(description: dict[str, Any]) -> str:
    """The attnbench run that makes the cells of a panel, as far as its description fixes them."""
    where = dict(description.get("where", {}))
    words = ["attnbench run", shlex.quote(str(where.pop("experiment", "EXPERIMENT")))]
    methods = where.pop("method", "SPEC")
    words += ["--method", *(shlex.quote(str(m)) for m in (methods if isinstance(methods, list) else [methods]))]
    words += [shlex.quote(reference) for reference in description.get("references", [])]
    causal = where.pop("causal", 0)
    inputs = {name: where.pop(name) for name in list(where) if name == "input" or name in PROBLEM}
    for name, wanted in inputs.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        words += [OPTIONS.get(name, f"--{name}"), *(shlex.quote(str(value)) for value in values)]
    if causal not in (0, False, "0"):
        words.append("--causal")
    if description["kind"] == "curve" and axis_names(description):
        words += ["--sweep", f"{axis_names(description)[0]}=..."]
    if where:  # parameters of the specs, which stand in the specs
        words.append(f"# with {', '.join(f'{name}={wanted}' for name, wanted in where.items())}")
    return " ".join(words)
