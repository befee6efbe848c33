"""The notes under a figure: intervals, fits, endings, and the notes of each panel."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from panel import LEVEL, MOST_SERIES, Panel, axis_names, series_in_grey
from panels import BAND_FROM
from ticks import number_label

LISTED_ENDINGS = 6
LONGEST_REASON = 110  # characters; the CSV file has the whole reason


def notes(panels: list[Panel]) -> list[str]:
    """The sentences under the figure."""
    trades = [panel for panel in panels if panel.description["kind"] == "trade"]
    without_interval = ("trade", "histogram", "image")
    said = _interval_notes([panel for panel in panels if panel.description["kind"] not in without_interval])
    said += _trade_notes(trades) + _map_notes(panels) + _histogram_notes(panels) + _image_notes(panels)
    said += _exponent_notes(panels)
    if any(panel.points["crossing"].notna().any() for panel in panels):
        said.append(
            "Above 1: for good, between points on straight lines in logarithms, sample by sample; ± to the farther end of "
            f"the {LEVEL} interval of the median."
        )
    said += _grey_notes(panels)
    said += _ending_notes(panels)
    by_words: dict[str, list[str]] = {}
    for panel in panels:
        for words in panel.notes:
            by_words.setdefault(words, []).append(str(panel.description.get("title", "")))
    for words, titles in by_words.items():
        everywhere = len(titles) == len(panels)
        said.append(words if everywhere else f"{', '.join(titles)}: {words[0].lower()}{words[1:]}")
    return said


def absent(panels: list[Panel]) -> list[str]:
    """Sentences about everything that the panels leave out: points, panels without data, and cells that were not done."""
    titles = [str(panel.description.get("title") or f"panel {i}") for i, panel in enumerate(panels, start=1)]
    words = [f"{title}: {panel.missing}" for title, panel in zip(titles, panels) if panel.missing]
    words += [
        f"{title}: {note}"
        for title, panel in zip(titles, panels)
        for note in panel.notes
        if not note.startswith("Each point pools")
    ]
    return words + _ending_notes(panels)


def _exponent_notes(panels: list[Panel]) -> list[str]:
    """Says how exponents were fitted, and whether they have an interval."""
    points = pd.concat([panel.points for panel in panels])
    if not points["exponent"].notna().any():
        return []
    words = "Exponents: least squares on logarithms over the last three points, sample by sample"
    if points["exponent_low"].notna().any():
        return [f"{words}; ± to the farther end of the {LEVEL} interval."]
    return [f"{words}; too few for an interval."]


def _interval_notes(panels: list[Panel]) -> list[str]:
    notes = []
    for kind, centre, method in (
        ("mean", "mean", "Student t, wider where samples are skewed"),
        ("median", "median", "order statistics"),
    ):
        drawn = [
            p.points[p.points["role"].isin(["measured", "reference"]) & p.points["y"].notna()]
            for p in panels
            if p.description.get("interval", "mean") == kind
        ]
        points = pd.concat(drawn) if drawn else pd.DataFrame()
        if len(points) == 0:
            continue
        of = "replicates" if kind == "mean" else "samples"
        least, most = int(points[of].min()), int(points[of].max())
        count = f"{least}" if least == most else f"{least} to {most}"
        words = f"Points: {centre} of {count} {of if most > 1 else of[:-1]}"
        if points["low"].notna().any():
            notes.append(f"{words}; {_interval_marks(points)}: its {LEVEL} interval ({method}).")
        else:
            notes.append(f"{words}, too few for an interval.")
    return notes


def _grey_notes(panels: list[Panel]) -> list[str]:
    grey = series_in_grey(panels)
    return (
        [f"Grey: {len(grey)} series beyond the {MOST_SERIES} of a panel with the best values at their end."]
        if grey
        else []
    )


def _trade_notes(trades: list[Panel]) -> list[str]:
    drawn = [panel for panel in trades if len(panel.role("measured"))]
    if not drawn:
        return []
    notes = [
        f"Points: geometric mean over replicates and inputs, bars: its {LEVEL} interval (Student t on logarithms); along x the "
        "median."
    ]
    labels = (str(panel.description.get("area_label") or panel.description.get("area", "")) for panel in drawn)
    for label in dict.fromkeys(labels):
        if label:
            notes.append(f"Area of a circle: {label}, of the largest in its panel; dots stand for less than 1 %.")
    return notes


def _map_notes(panels: list[Panel]) -> list[str]:
    roles = set().union(*(panel.points["role"] for panel in panels))
    notes = []
    if "ratio" in roles:
        notes.append("Hatched: the ratio is below 1; the line is at 1.")
    if "winner" in roles:
        notes.append(f"Tiles: the least, by its mark; hollow: the {LEVEL} interval of its ratio to the next holds 1.")
    return notes


def _histogram_notes(panels: list[Panel]) -> list[str]:
    drawn = [p.role("measured") for p in panels if p.description["kind"] == "histogram" and len(p.role("measured"))]
    if not drawn:
        return []
    samples, bins = pd.concat(drawn)["samples"], drawn[0].groupby("series").size().max()
    count = f"{samples.min():,}" if samples.min() == samples.max() else f"{samples.min():,} to {samples.max():,}"
    return [f"Histograms: shares of {count} values a line in {bins} bins; marks tell lines apart."]


def _image_notes(panels: list[Panel]) -> list[str]:
    images = [panel for panel in panels if panel.image is not None]
    notes = []
    for floor in sorted({float(p.description["floor"]) for p in images if p.description.get("floor")}):
        notes.append(
            f"Weights: colours are logarithmic from {number_label(floor)}; what is less is as pale as that, 0 has none."
        )
    if any(not panel.description.get("floor") for panel in images):
        notes.append("Differences: colours are linear up to the 99 % quantile of the magnitudes, beyond it as dark.")
    return notes


def _interval_marks(points: pd.DataFrame) -> str:
    """Bars for series of few points, bands for series of many points and for horizontal lines."""
    drawn = points[points["low"].notna()]
    lengths = drawn[drawn["x"].notna() & (drawn["role"] == "measured")].groupby("series").size()
    words = ["bars"] * bool((lengths < BAND_FROM).any())
    words += ["bands"] * bool((lengths >= BAND_FROM).any() or drawn["x"].isna().any())
    return " and ".join(words) or "not drawn"


def _ending_notes(panels: list[Panel]) -> list[str]:
    """Says which series did not end as done, where and why. A long list is cut, and the last line counts the rest."""
    places: dict[tuple[str, str], list[str]] = {}
    for panel in panels:
        rows = panel.points[panel.points["role"] == "ending"].sort_values(["series", "x"])
        axis = "" if panel.description["kind"] == "table" else "/".join(axis_names(panel.description))
        for series, why, x in zip(rows["series"], rows["note"], rows["x"]):
            why = textwrap.shorten(why, LONGEST_REASON, placeholder="…")
            at = f"{axis} = {number_label(x)}" if axis and np.isfinite(x) else ""
            found = places.setdefault((panel.printed(series), why), [])
            if at not in found:
                found.append(at)
    lines = [f"× {series}{_places(at)}: {why.rstrip(' .')}." for (series, why), at in places.items()]
    rest = len(lines) - LISTED_ENDINGS
    return lines if rest <= 0 else [*lines[:LISTED_ENDINGS], f"× and {rest} more endings: see the CSV file."]


def _places(at: list[str]) -> str:
    named = [place for place in at if place]
    axes = {place.split(" = ")[0] for place in named}
    if len(axes) == 1:  # m = 16, 32
        return f", {axes.pop()} = {', '.join(place.split(' = ')[1] for place in named)}"
    return f", {', '.join(named)}" if named else ""
