"""From replicates to the data of a panel: points with intervals, references, endings, and notes about them.

A ratio of two methods is computed replicate by replicate; its mean and interval are those of the log ratio, transformed
back. Exponents and crossings are computed once per sample (a block of turns, or a replicate). Exponents then have the
panel's interval. Crossings have the interval of the median, because they may lie beyond the points.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from intervals import (
    INTERVALS,
    Array,
    fitted_exponents,
    last_rise_through_one,
    mean_interval,
    median_interval,
    ratio_interval,
)
from results import PROBLEM, SPECS, Results, parameter_columns, plain, select, split_spec, without_parameters

COLUMNS = (
    "series",
    "role",
    "x",
    "x_low",
    "x_high",
    "y",
    "low",
    "high",
    "theory",
    "value",
    "replicates",
    "samples",
    "exponent",
    "exponent_low",
    "exponent_high",
    "crossing",
    "crossing_low",
    "crossing_high",
    "note",
)
HISTOGRAM_BINS = 40
# How `attnbench run` spells a condition on a cell; all others are --name VALUE.
OPTIONS = {"n": "-n", "d": "-d", "logit_scale": "--logit-scale"}


@dataclass
class Panel:
    """The data of one panel.

    points   COLUMNS, one row a point: role is "measured", "reference" (a method without the x axis has x = NaN) or
             "ending" (a cell that was not done: y is NaN and the note says why). A point with a note is not drawn.
             A trade has the metric of its circles in value; its "reference" rows are bounds, and methods whose y is not
             above zero (drawn at their x). A map has a tile at x, y with its value: "value" (the metric itself),
             "ratio" (log10 of the ratio) or "winner" (log10 of the factor between the least and the next, low and high
             its interval if it was measured). A histogram has a bin at its centre x from x_low to x_high, y its share.
             An image has one row "image".
    missing  why there is nothing to draw, and the command that would change it; "" if there is something
    samples  the samples behind a measured point of a curve, by series and x
    image    the numbers [rows, columns] of an image
    """

    description: dict[str, Any]
    points: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    missing: str = ""
    unit: str = "1"
    samples: dict[tuple[str, float], Array] = field(default_factory=dict)
    image: Array | None = None

    @property
    def has_theory(self) -> bool:
        """Whether lines are closed forms. Points are then not joined."""
        return bool(self.points["theory"].notna().any())

    def role(self, name: str) -> pd.DataFrame:
        """The rows of one role that are drawn."""
        chosen = (self.points["role"] == name).to_numpy()
        return self.points[chosen if name == "ending" else chosen & (self.points["note"] == "").to_numpy()]


def aggregate(results: Results, description: dict[str, Any]) -> Panel:
    """The numbers of one panel of a figure description."""
    panel = Panel(description, pd.DataFrame(columns=list(COLUMNS)))
    cells = _panel_cells(results.cells, description)
    measured = _with_values(results, cells, description["y"])
    if description["kind"] == "profile":
        rows = _profile_rows(panel, measured, results)
    elif description["kind"] == "histogram":
        rows = _histogram_rows(panel, measured)
    elif description["kind"] == "image":
        rows = _image_rows(panel, measured)
    elif description["kind"] == "trade":
        rows = _trade_rows(results, cells, description)
    else:
        rows = (_map_rows if description["kind"] == "map" else _curve_rows)(
            panel, _with_gaps(results, cells, measured), results
        )
    endings = _ending_rows(results, cells)
    if description["kind"] == "trade":  # a cell that was not done has no place along a metric
        endings = [{**row, "x": np.nan} for row in endings]
    rows += endings
    if rows:
        panel.points = pd.DataFrame(rows, columns=list(COLUMNS))
    _mark_undrawable(panel)
    _say_what_lies_far_below(panel)
    _say_what_is_absent(panel, results, cells, measured)
    if description.get("slope") and description["kind"] == "curve":
        _fit_exponents(panel)
    if description.get("crossing") and description["kind"] == "curve":
        _find_crossings(panel)
    if len(measured) and not description.get("ratio_to"):
        panel.unit = str(measured["unit"].iloc[0])
    return panel


def _panel_cells(cells: pd.DataFrame, description: dict[str, Any]) -> pd.DataFrame:
    """Cells of the panel with columns x, upwards (the second axis of a map), series and role."""
    if "cells" in description:
        cells = _without_absent(cells[cells.index.isin(description["cells"])])
    where = description.get("where", {})
    axes = [*axis_names(description), *axis_names(description, "y_axis")]
    references = [*description.get("references", []), *filter(None, [description.get("ratio_to")])]
    chosen = select(cells, where, axes)
    # A reference lacks the parameters of the methods beside it, so only conditions on the problem bind it.
    problem = {name: value for name, value in where.items() if name in (*PROBLEM, "experiment", "input")}
    baseline = select(cells, {**problem, "method": references}) if references else cells.iloc[:0]
    if len(baseline):
        chosen = pd.concat([chosen[~chosen.index.isin(baseline.index)], baseline])
    chosen = _without_absent(chosen)
    series = _series(chosen, description.get("series", ["method"]), axes)
    timed = chosen["machine"] != ""
    if chosen.loc[timed, "machine"].nunique() > 1:  # timings of two machines are no sample of one
        series[timed] += " on " + chosen.loc[timed, "machine"]
    return chosen.assign(
        x=_along(chosen, axis_names(description)),
        upwards=_along(chosen, axis_names(description, "y_axis")),
        series=series,
        role=np.where(chosen.index.isin(baseline.index), "reference", "measured"),
    )


def _without_absent(cells: pd.DataFrame) -> pd.DataFrame:
    """The same without the parameters that none of these cells has. A store has a hundred parameters, and each merge
    copies every column."""
    absent = cells.isna().to_numpy().all(axis=0)
    parameters = set(parameter_columns(cells))
    return cells.loc[:, [not (none and name in parameters) for none, name in zip(absent, cells.columns)]]


def axis_names(description: dict[str, Any], axis: str = "x") -> list[str]:
    """The columns that may give x (or y_axis). The first one that a cell has counts: budgets have many names."""
    names = description.get(axis) or []
    return names if isinstance(names, list) else [names]


def _along(cells: pd.DataFrame, names: list[str]) -> pd.Series[float]:
    """The place of each cell on an axis of these names; NaN if the cell has none of them."""
    place = pd.Series(np.nan, cells.index)
    for name in names:
        if name in cells:
            place = place.fillna(pd.to_numeric(cells[name].map(plain), errors="coerce"))
    return place


def _series(cells: pd.DataFrame, columns: list[str], axes: list[str]) -> pd.Series[str]:
    """The name of the curve of each cell: its specs without the parameters that the axes sweep, and each other column
    that the cell has as name=value."""
    parts = [["" for _ in range(len(cells))]]
    for column in columns:
        if column in cells:
            names = {value: _part(column, plain(value), axes) for value in cells[column].dropna().unique()}
            parts.append(list(cells[column].map(names).fillna("")))
    return pd.Series([" ".join(filter(None, of_cell)) for of_cell in zip(*parts)], cells.index, dtype=object)


def _part(column: str, value: Any, axes: list[str]) -> str:
    if column in SPECS:
        return without_parameters(value, axes)
    return f"{column}={value:.15g}" if isinstance(value, float) else f"{column}={value}"


def _with_values(results: Results, cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One row per replicate that has the metric: the columns of its cell, replicate, unit and values."""
    rows = results.of_metric(metric)
    return rows[rows["key"].isin(cells.index)].merge(cells, left_on="key", right_index=True, suffixes=("", " of cell"))


def _with_gaps(results: Results, cells: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """`measured`, and a row with the value NaN and no unit for every done replicate that lacks the metric. It could not
    be estimated there, so the mean of the other replicates would be biased."""
    there = pd.MultiIndex.from_frame(measured[["key", "replicate"]])
    done = results.done.loc[results.done["key"].isin(cells.index), ["key", "replicate"]]
    gaps = done[~pd.MultiIndex.from_frame(done).isin(there)].merge(cells, left_on="key", right_index=True)
    if len(gaps) == 0:
        return measured.reset_index(drop=True)
    return pd.concat([measured, gaps.assign(values=[np.array(np.nan)] * len(gaps))], ignore_index=True)


def _row(series: str, role: str, **values: Any) -> dict[str, Any]:
    blank = dict.fromkeys(COLUMNS, np.nan)
    return {**blank, "series": series, "role": role, "replicates": 0, "samples": 0, "note": "", **values}


def _curve_rows(panel: Panel, measured: pd.DataFrame, results: Results) -> list[dict[str, Any]]:
    """One row for each series and x. A replicate's array counts as its mean, or with all its samples for a median."""
    description = panel.description
    kind = description.get("interval", "mean")
    theory = _theory_by_replicate(results, description, measured)
    if description.get("ratio_to"):
        measured, theory = _divided(panel, measured, theory)
    without_axis = measured[measured["x"].isna() & (measured["role"] == "measured")]
    if len(without_axis):
        specs = without_axis.groupby(without_axis["method"].map(lambda spec: split_spec(spec)[0]))["series"].nunique()
        names = ", ".join(f"{name} ({count} specs)" if count > 1 else str(name) for name, count in specs.items())
        panel.notes.append(f"Not drawn, no number for {' or '.join(axis_names(description)) or 'x'}: {names}.")
    drawn = measured[measured["x"].notna() | (measured["role"] != "measured")]
    rows, pooled, lacking = [], set(), 0
    for (role, series, x), group in drawn.groupby(["role", "series", "x"], dropna=False):
        samples = np.concatenate([np.ravel(v) if kind == "median" else [np.mean(v)] for v in group["values"]])
        y, low, high = ratio_interval(np.log(samples)) if description.get("ratio_to") else INTERVALS[kind](samples)
        closed = [theory[key] for key in zip(group["key"], group["replicate"]) if key in theory]
        gaps = int(group["unit"].isna().sum())
        lacking += gaps > 0
        if gaps and not closed:
            continue
        if role == "measured":
            panel.samples[series, x] = samples
        rows.append(
            _row(
                series,
                role,
                x=x,
                y=float(y),
                low=float(low),
                high=float(high),
                theory=float(np.mean(closed)) if closed else np.nan,
                replicates=len(group) - gaps,
                samples=len(samples) - gaps,
            )
        )
        pooled |= _varying(group)
    _say_what_is_pooled(panel, pooled)
    if lacking:
        what = f"ratio to {description['ratio_to']}" if description.get("ratio_to") else description["y"]
        panel.notes.append(f"{lacking} point{'s' if lacking > 1 else ''} not drawn: a replicate has no {what}.")
    return rows


def _divided(
    panel: Panel, measured: pd.DataFrame, theory: dict[tuple[str, int], Array]
) -> tuple[pd.DataFrame, dict[tuple[str, int], Array]]:
    """Divides values and closed forms by those of the method `ratio_to`: of the same replicate, input and problem, at
    the same x, or at every x if that method has none. A ratio that is not positive is a gap."""
    name = panel.description["ratio_to"]
    axes = axis_names(panel.description)
    where = ["replicate", "input", *(column for column in PROBLEM if column in measured)]
    below = measured[measured["method"].map(lambda spec: without_parameters(spec, axes)) == name]
    by_place = {
        (x, *place): (float(np.mean(values)), theory.get((key, replicate)))
        for key, replicate, values, x, *place in zip(
            below["key"], below["replicate"], below["values"], below["x"].fillna(np.inf), *(below[c] for c in where)
        )
    }
    rest = measured.drop(below.index)
    ratios, closed = [], {}
    for key, replicate, values, x, *place in zip(
        rest["key"], rest["replicate"], rest["values"], rest["x"], *(rest[c] for c in where)
    ):
        denominator, formula = by_place.get((x, *place)) or by_place.get((np.inf, *place)) or (np.nan, None)
        ratio = float(np.mean(values)) / denominator if denominator else np.nan
        ratios.append(ratio if ratio > 0 else np.nan)
        if formula and (key, replicate) in theory:
            closed[key, replicate] = theory[key, replicate] / formula
    return rest.assign(values=[np.array(r) for r in ratios], unit=rest["unit"].where(np.isfinite(ratios))), closed


def _map_rows(panel: Panel, measured: pd.DataFrame, results: Results) -> list[dict[str, Any]]:
    """One row per tile. Its value is the closed form if the description names one that the cell has, else measured."""
    description = panel.description
    theory = _theory_by_replicate(results, description, measured)
    values = [
        float(theory.get((key, r), np.mean(v)))
        for key, r, v in zip(measured["key"], measured["replicate"], measured["values"])
    ]
    drawn = measured.assign(number=values)[measured["x"].notna().to_numpy() & measured["upwards"].notna().to_numpy()]
    rows = []
    for (x, y), tile in drawn.groupby(["x", "upwards"]):
        by_series = {
            series: group.groupby("replicate")["number"].mean()
            for series, group in tile.groupby("series")
            if group["number"].notna().all()
        }
        if description.get("winner"):
            row = _winner_row(by_series)
        else:
            row = _ratio_row(by_series, description["ratio"]) if description.get("ratio") else _value_row(by_series)
        if row:
            rows.append({**row, "x": x, "y": y})
    return rows


def _samples_by_point(
    results: Results, cells: pd.DataFrame, metric: str, points: list[str]
) -> dict[tuple[Any, ...], Array]:
    """(series, method spec, values of the columns `points`) to all samples of a metric, over replicates and all other
    differences of cells."""
    measured = _with_values(results, cells, metric)
    return {
        key: np.concatenate([np.ravel(v) for v in group["values"]])
        for key, group in measured.groupby(["series", "method", *points])
    }


def _trade_rows(results: Results, cells: pd.DataFrame, description: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per method spec, or per value of `points`: the median of one metric against the geometric mean of
    another, over all experiments."""
    along, bounded, upwards, areas = (
        (
            _samples_by_point(results, cells, description[name], description.get("points", []))
            if description.get(name)
            else {}
        )
        for name in ("x_metric", "bound_x", "y", "area")
    )
    rows = []
    for point, samples in upwards.items():
        series, spec = point[:2]
        bound = split_spec(spec)[0] in description.get("bound", [])
        level = spec in description.get("references", [])
        places = None if level else (bounded if bound else along).get(point)
        if places is None and not level:
            continue
        x, x_low, x_high = (np.nan,) * 3 if places is None else (float(v) for v in median_interval(places))
        exact = not np.all(samples > 0)
        y, low, high = (np.nan,) * 3 if exact else ratio_interval(np.log(samples))
        area = areas.get(point)
        rows.append(
            _row(
                f"{series} (keys given)" if bound else series,
                "reference" if exact or bound or level else "measured",
                x=x,
                x_low=x_low,
                x_high=x_high,
                y=y,
                low=low,
                high=high,
                value=np.nan if area is None else float(np.median(area)),
                replicates=len(samples),
                samples=len(samples),
            )
        )
    return rows


def _log10_ratio(a: pd.Series[float], b: pd.Series[float]) -> tuple[float, float, float, int]:
    """Mean of log10 a / b over the replicates that both have, its interval, and their number. Closed forms may be zero:
    the mean is then infinite, or NaN if both are zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10((a / b).dropna().to_numpy(float))
        value, low, high = mean_interval(logs) if len(logs) else (np.nan,) * 3
    return float(value), float(low), float(high), len(logs)


def _ratio_row(by_series: dict[str, pd.Series[float]], methods: list[str]) -> dict[str, Any] | None:
    if not set(methods) <= set(by_series):
        return None
    value, low, high, count = _log10_ratio(*(by_series[method] for method in methods))
    if np.isnan(value):
        return None
    return _row(" / ".join(methods), "ratio", value=value, low=low, high=high, replicates=count, samples=count)


def _value_row(by_series: dict[str, pd.Series[float]]) -> dict[str, Any] | None:
    """The mean of the one series that a map of values has."""
    if len(by_series) != 1:
        return None
    ((series, samples),) = by_series.items()
    value, low, high = (float(v) for v in mean_interval(samples.to_numpy(float)))
    return _row(series, "value", value=value, low=low, high=high, replicates=len(samples), samples=len(samples))


def _winner_row(by_series: dict[str, pd.Series[float]]) -> dict[str, Any] | None:
    """The method with the least mean, and its distance from the next."""
    order = sorted(by_series, key=lambda series: (by_series[series].mean(), series))
    if not order:
        return None
    if len(order) == 1:
        return _row(order[0], "winner", value=np.inf, replicates=len(by_series[order[0]]))
    value, low, high, count = _log10_ratio(by_series[order[1]], by_series[order[0]])
    return _row(order[0], "winner", value=value, low=low, high=high, replicates=count, samples=count)


def _theory_by_replicate(
    results: Results, description: dict[str, Any], measured: pd.DataFrame
) -> dict[tuple[str, int], Array]:
    """(key, replicate) of the measured cells to the closed form: its mean for a curve, the array for a profile."""
    rows = results.of_metric(description.get("theory") or "")
    rows = rows[rows["key"].isin(measured["key"])]
    whole = description["kind"] == "profile"
    return {(key, r): v if whole else np.mean(v) for key, r, v in zip(rows["key"], rows["replicate"], rows["values"])}


def _profile_rows(panel: Panel, measured: pd.DataFrame, results: Results) -> list[dict[str, Any]]:
    """One row for each series and index (from first_index, or 1). Arrays of different lengths are different series."""
    description = panel.description
    theory = _theory_by_replicate(results, description, measured)
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
        x = (np.arange(length) + description.get("first_index", 1)) / (length if description.get("normalise_x") else 1)
        y, low, high = INTERVALS[description.get("interval", "mean")](stacked)
        points = _row(
            name, role, x=x, y=y, low=low, high=high, theory=formula, replicates=len(group), samples=len(group)
        )
        rows += [{str(name): value for name, value in row.items()} for row in pd.DataFrame(points).to_dict("records")]
        pooled |= _varying(group)
    _say_what_is_pooled(panel, pooled)
    return rows


def _histogram_rows(panel: Panel, measured: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each series and bin: the share of the series' elements, of all replicates, that lie in it."""
    groups = {
        key: (np.concatenate([np.ravel(v) for v in group["values"]]), group)
        for key, group in measured.groupby(["role", "series"])
    }
    finite = [values[np.isfinite(values)] for values, _ in groups.values()]
    inside = np.concatenate(finite) if finite else np.empty(0)
    if len(inside) == 0:
        return []
    scale, unscale = (np.log, np.exp) if is_log(panel.description.get("x_scale")) else (np.asarray, np.asarray)
    inside = inside[inside > 0] if scale is np.log else inside
    ends = panel.description.get("range")
    edges = np.histogram_bin_edges(scale(inside), HISTOGRAM_BINS, tuple(scale(ends)) if ends else None)
    middles, edges = unscale((edges[:-1] + edges[1:]) / 2), unscale(edges)
    rows, pooled, beyond = [], set(), 0
    for (role, series), (values, group) in groups.items():
        counts, _ = np.histogram(values[np.isfinite(values)], edges)
        beyond += len(values) - int(counts.sum())
        for x, low, high, count in zip(middles, edges[:-1], edges[1:], counts):
            place = {"x": x, "x_low": low, "x_high": high, "y": count / len(values)}
            rows.append(_row(series, role, **place, replicates=len(group), samples=len(values)))
        pooled |= _varying(group)
    if beyond:
        panel.notes.append(f"{beyond} of {sum(len(v) for v, _ in groups.values())} values lie beyond the axis.")
    _say_what_is_pooled(panel, pooled)
    return rows


def _image_rows(panel: Panel, measured: pd.DataFrame) -> list[dict[str, Any]]:
    """Stores the array of the first replicate of the one cell in the panel, and returns a row for it."""
    flat = measured[measured["values"].map(np.ndim) == 2].sort_values("replicate", kind="stable")
    if len(flat) == 0:
        return []
    if flat["key"].nunique() > 1:
        panel.notes.append(f"Drawn is the first of {flat['key'].nunique()} cells.")
    first = flat.iloc[0]
    panel.image = first["values"]
    negative = int(np.count_nonzero(panel.image < 0))
    if panel.description.get("floor") and negative:
        panel.notes.append(f"{100 * negative / panel.image.size:.1f} % of the weights are negative, in orange.")
    return [_row(first["series"], "image", replicates=1, samples=panel.image.size)]


def _varying(group: pd.DataFrame) -> set[str]:
    """The columns in which the cells behind one point differ: parameters and problem, or otherwise the specs."""
    columns = [*PROBLEM, *(c for c in parameter_columns(group) if c not in _ADDED)]
    if group["key"].nunique() == 1:
        return set()
    varying = {column for column in columns if column in group and group[column].nunique(dropna=False) > 1}
    return varying or {column for column in SPECS if group[column].nunique() > 1}


_ADDED = {"key", "replicate", "metric", "unit", "values", "x", "upwards", "series", "role", "length"}


def _say_what_is_pooled(panel: Panel, columns: set[str]) -> None:
    if columns:
        panel.notes.append(f"Each point pools cells that differ in {', '.join(sorted(columns))}.")


def _ending_rows(results: Results, cells: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each series, x, ending and reason other than done; replicates counts them."""
    ended = results.not_done[results.not_done["key"].isin(cells.index)]
    if len(ended) == 0:
        return []
    ended = ended.merge(cells, left_on="key", right_index=True, suffixes=("", " of cell"))
    ended["reason"] = ended["reason"].fillna("")
    return [
        _row(series, "ending", x=x, replicates=len(group), note=f"{ending}: {reason}" if reason else ending)
        for (series, x, ending, reason), group in ended.groupby(["series", "x", "ending", "reason"], dropna=False)
    ]


def series_of(points: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of every series, in the order of their names."""
    for series, rows in points.groupby("series"):
        yield str(series), rows


def is_log(scale: str | None) -> bool:
    """Whether an axis scale of a description is logarithmic."""
    return str(scale).startswith("log")


def _mark_undrawable(panel: Panel) -> None:
    """Notes on points that the axes cannot show, and a sentence that counts them."""
    points, description = panel.points, panel.description
    if description["kind"] == "trade":  # a method without error is drawn at its x
        _say_what_lies_beyond(panel)
        return
    # A point whose measurement has gaps (NaN) stays for its closed form.
    value = points["role"].isin(["measured", "reference"]) & (points["y"].notna() | points["theory"].isna())
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


def _say_what_lies_beyond(panel: Panel) -> None:
    """Lists the points of a trade above y_most in a note. Drawn, they would flatten the rest."""
    points, most = panel.points, panel.description.get("y_most") or np.inf
    beyond = points[(points["role"] == "measured") & (points["y"] > most)]
    points.loc[beyond.index, "note"] = f"above {most:g}"
    words = []
    for series, rows in series_of(beyond):
        y = rows["y"]
        low, high = (f"{float(f'{value:.2g}'):g}" for value in (y.min(), y.max()))
        words.append(f"{series} ({low}" + (f" to {high})" if len(y) > 1 else ")"))
    if words:
        panel.notes.append(f"Beyond the axes: {', '.join(words)}.")


def _fit_exponents(panel: Panel) -> None:
    """The exponent of every series with its interval, from one fit per sample: the first of each point, and so on."""
    interval = INTERVALS[panel.description.get("interval", "mean")]
    for group, x, samples in _curves(panel):
        exponents = fitted_exponents(x, samples)
        if len(exponents):
            columns = ["exponent", "exponent_low", "exponent_high"]
            for column, value in zip(columns, interval(exponents)):
                panel.points.loc[group.index, column] = float(value)


def _find_crossings(panel: Panel) -> None:
    """From where every series stays above 1, with the interval of the median, from one crossing per sample."""
    for group, x, samples in _curves(panel):
        if (samples <= 0).any():
            continue
        crossings = np.array([last_rise_through_one(x, samples[:, b]) for b in range(samples.shape[1])])
        columns = ["crossing", "crossing_low", "crossing_high"]
        for column, value in zip(columns, median_interval(crossings)):
            panel.points.loc[group.index, column] = float(value)


def _curves(panel: Panel) -> Iterator[tuple[pd.DataFrame, Array, Array]]:
    """For each measured series: its rows, its x in order, and the samples [points, samples] that all points have."""
    for series, group in series_of(panel.role("measured")):
        x = np.sort(group["x"].to_numpy(float))
        samples = [panel.samples[series, place] for place in x]
        shared = min(len(of_point) for of_point in samples)
        yield group, x, np.stack([of_point[:shared] for of_point in samples])


def _say_what_lies_far_below(panel: Panel) -> None:
    """Mentions a line more than two decades below all points, such as the rounding error of float, in a note. Drawn, it
    would flatten the rest."""
    measured = panel.role("measured")["y"]
    if panel.description["kind"] != "curve" or not is_log(panel.description.get("y_scale")) or measured.dropna().empty:
        return
    levels = panel.role("reference")
    far = levels[levels["x"].isna() & (levels["y"] < measured.min() / 100)]
    for place, level in far.iterrows():
        panel.points.loc[place, "note"] = "far below"
        panel.notes.append(f"{level['series']} lies far below the axes, at {level['y']:.1e}.")


def _say_what_is_absent(panel: Panel, results: Results, cells: pd.DataFrame, measured: pd.DataFrame) -> None:
    description = panel.description
    seen = set(measured[measured["role"] == "reference"]["method"])
    absent = [name for name in description.get("references", []) if name not in seen]
    drawn = points_of(panel)
    if len(drawn) == 0:
        panel.missing = _what_is_needed(results, cells, description)
    elif absent:
        panel.notes.append(f"No data for the reference {', '.join(absent)}.")


def points_of(panel: Panel) -> pd.DataFrame:
    """The rows that are neither references nor endings: points, the tiles of a map, or an image."""
    points = panel.points
    drawn = points["role"].isin(["measured", "ratio", "winner", "value", "image"]) & (points["note"] == "")
    return points[drawn.to_numpy()]


def _what_is_needed(results: Results, cells: pd.DataFrame, description: dict[str, Any]) -> str:
    """Says why a panel is empty, and which command would fill it."""
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
    if description["kind"] == "map":
        axis += f" and {' or '.join(axis_names(description, 'y_axis'))}"
    return f"no data: no value of {description['y']} can be drawn against {axis}"


def needed_command(description: dict[str, Any]) -> str:
    """The `attnbench run` that makes the cells of a panel, as far as its description determines them."""
    where = dict(description.get("where", {}))
    experiment = where.pop("experiment", "EXPERIMENT")
    words = ["attnbench run", shlex.quote(str(experiment[0] if isinstance(experiment, list) else experiment))]
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
    if description["kind"] not in ("profile", "histogram", "image"):
        for names in (axis_names(description), axis_names(description, "y_axis")):
            words += ["--sweep", f"{names[0]}=..."] if names else []
    if where:  # parameters that the user writes inside the specs
        words.append(f"# with {', '.join(f'{name}={wanted}' for name, wanted in where.items())}")
    return " ".join(words)
