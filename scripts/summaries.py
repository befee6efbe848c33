"""The data of the page's table and explorer: one row per cell and metric, stored by column, and packed for a browser.

attnbench computes the numbers (table summary): the mean over replicates (an array counts as its mean) and the median of all
samples, with their 95 % intervals, as in figures. `attnbench export --arrays` writes the single samples.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import pandas as pd
from panel import axis_names
from results import PROBLEM, SPECS, Results, parameter_columns, plain

DIGITS, OF_INTERVALS = 5, 4  # significant digits of centres and of the ends of intervals, which need fewer


def summaries(results: Results, recipes: dict[str, list[str]]) -> dict[str, Any]:
    """
    columns  names of the columns of a cell
    cells    these columns, each a list with one value per cell; "key", "done" (replicates) and "other" (other endings)
    metrics  [name, unit]; the numbers in `rows` are positions in this list
    rows     columns of equal length: "cell" and "metric" (positions), "mean", "low", "high", "median", "median_low",
             "median_high", "replicates", "samples"; null for missing values
    recipes  positions of the cells that each recipe uses
    panels   [recipe, x, y, interval, label] of the panels that draw points: the explorer offers these views first; label
             is that of y, "" if y is divided by something or has a remark beside it
    """
    cells = results.cells
    place = {key: i for i, key in enumerate(cells.index)}
    names = [name for name in (*SPECS, *PROBLEM, *parameter_columns(cells), "source_version") if name in cells]
    rows = results.summaries
    metrics = sorted(set(zip(rows["metric"], rows["unit"])))
    number = {metric: i for i, metric in enumerate(metrics)}
    numbers = ["mean", "low", "high", "median", "median_low", "median_high"]
    return {
        "columns": names,
        "cells": {"key": list(cells.index), **{name: _values(cells[name]) for name in names}, **_endings(results)},
        "metrics": metrics,
        "rows": {
            "cell": [place[key] for key in rows["key"]],
            "metric": [number[metric] for metric in zip(rows["metric"], rows["unit"])],
            **{
                name: [_short(value, DIGITS if name in ("mean", "median") else OF_INTERVALS) for value in rows[name]]
                for name in numbers
            },
            **{name: rows[name].tolist() for name in ("replicates", "samples")},
        },
        "recipes": {
            recipe: sorted(place[key] for key in set(keys) if key in place) for recipe, keys in sorted(recipes.items())
        },
        "panels": [
            [figure.recipe, axis_names(panel), panel["y"], panel.get("interval", "mean"), _label(panel)]
            for figure in results.figures
            for panel in figure.description["panels"]
            if panel["kind"] in ("curve", "trade")
        ],
    }


def _label(panel: dict[str, Any]) -> str:
    plain_metric = panel["kind"] == "curve" and not panel.get("ratio_to")
    return " ".join(str(panel.get("y_label", "")).split()) if plain_metric else ""


def _endings(results: Results) -> dict[str, list[Any]]:
    """The number of done replicates of each cell, and the endings of the others, such as "crashed (2): signal 11"."""
    replicates = results.replicates
    done = replicates[replicates["ending"] == "done"].groupby("key").size().reindex(results.cells.index, fill_value=0)
    others: dict[str, list[str]] = {}
    ended = replicates[replicates["ending"] != "done"].fillna({"reason": ""})
    counts = ended.groupby(["key", "ending", "reason"]).size()
    for (key, ending, reason), count in zip(counts.index.to_list(), counts):
        others.setdefault(key, []).append(f"{ending} ({count}){f': {reason}' if reason else ''}")
    return {"done": done.tolist(), "other": ["; ".join(others.get(key, [])) for key in results.cells.index]}


def _values(column: pd.Series[Any]) -> list[Any]:
    """One spelling per value: numbers as numbers, text as text, null if a cell lacks the parameter."""
    return [_json(value) if isinstance(value, float) else value for value in map(plain, column)]


def _short(value: float, digits: int) -> float | int | str | None:
    return _json(float(f"{value:.{digits}g}"))


def _json(value: float) -> float | int | str | None:
    if value != value:  # NaN
        return None
    if abs(value) == np.inf:
        return "Infinity" if value > 0 else "-Infinity"  # JSON has none; a browser's Number() reads it
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def packed(text: str) -> str:
    """Text as base64 of gzip, which a browser's DecompressionStream unpacks. Equal texts give equal results.

    Level 7 packs Plotly in a third of the time of level 9, and 0.4 % larger.
    """
    return base64.b64encode(gzip.compress(text.encode(), 7, mtime=0)).decode()


def packed_json(value: Any) -> str:
    return packed(json.dumps(value, separators=(",", ":"), allow_nan=False))
