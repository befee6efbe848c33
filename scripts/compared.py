"""The page's table of methods: a row for each series, a column for each panel of kind "table", intervals as bars."""

from __future__ import annotations

import math
from html import escape

from panel import Panel, is_log
from panels import axis_label
from rows import row_names
from ticks import byte_label, number_label

BAR = 44  # width of a bar's drawing in pixels


def compared(title: str, caption: str, panels: list[Panel]) -> str:
    """The table as HTML. The page's script sorts it by the buttons of its header."""
    scales = [_scale(panel) for panel in panels]
    rows = []
    for name, printed in row_names(panels).items():
        cells = "".join(_cell(panel, name, scale) for panel, scale in zip(panels, scales))
        rows.append(f'<tr><th scope="row" title="{escape(name)}">{escape(printed)}</th>{cells}</tr>')
    head = "".join(
        f'<th scope="col"><button type="button">{escape(words)}</button></th>'
        for words in ("Method", *(axis_label(panel, "y") for panel in panels))
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}">'
        f'<table class="compared"><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>\n<tbody>'
        + "\n".join(rows)
        + f"</tbody></table></div>\n<p>{escape(caption)}</p>"
    )


def _scale(panel: Panel) -> tuple[float, float, bool]:
    """The ends of a column's bars, and whether they are of logarithms."""
    points = panel.role("measured")
    values = [float(v) for name in ("y", "low", "high", "theory") for v in points[name] if math.isfinite(v)]
    log = is_log(panel.description.get("y_scale"))
    values = [value for value in values if value > 0] if log else values
    if not values:
        return 0.0, 1.0, False
    low, high = min(values), max(values)
    return (math.log(low), math.log(high), True) if log else (min(low, 0.0), high, False)


def _place(value: float, scale: tuple[float, float, bool]) -> float:
    low, high, log = scale
    if log and value <= 0:
        return 2.0
    share = ((math.log(value) if log else value) - low) / (high - low or 1)
    return 2 + (BAR - 4) * min(max(share, 0), 1)


def _cell(panel: Panel, name: str, scale: tuple[float, float, bool]) -> str:
    points = panel.role("measured")
    found = points[points["series"] == name]
    if len(found) == 0:
        ended = panel.points[(panel.points["series"] == name) & (panel.points["role"] == "ending")]["note"]
        why = escape(str(ended.iloc[0])) if len(ended) else "not measured"
        return f'<td class="number" title="{why}">– <svg width="{BAR}" height="10" aria-hidden="true"></svg></td>'
    y, low, high = (float(found[column].iloc[0]) for column in ("y", "low", "high"))
    line = ""
    if math.isfinite(low) and math.isfinite(high):
        interval = f"{_text(panel, low)} to {_text(panel, high)}"
        line = f'<path d="M{_place(low, scale):.1f} 5H{_place(high, scale):.1f}"/>'
    else:
        interval = "no interval"
    theory = float(found["theory"].iloc[0])
    if math.isfinite(theory):
        interval += f"; closed form {_text(panel, theory)}"
        line += f'<path class="theory" d="M{_place(theory, scale):.1f} 1V9"/>'
    dot = f'<circle cx="{_place(y, scale):.1f}" cy="5" r="2.5"/>' if math.isfinite(y) else ""
    value = f' data-value="{y:.6g}"' if math.isfinite(y) else ""
    return (
        f'<td class="number"{value} title="{interval}">{_text(panel, y) if value else "–"} '
        f'<svg width="{BAR}" height="10" role="img" aria-label="{interval}">{line}{dot}</svg></td>'
    )


def _text(panel: Panel, value: float) -> str:
    if panel.unit == "B":
        return byte_label(value)
    return number_label(float(f"{value:.3g}"))
