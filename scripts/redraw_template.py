#!/usr/bin/python3
"""Draws a figure from the CSV file beside it, as PDF, with matplotlib alone.

FIGURE describes its look: change it as you like. Title, caption and notes are not drawn; they are for your text.
"""

import csv
from math import inf, isfinite, nan, sqrt
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.ticker import FixedFormatter, FixedLocator

FIGURE = {}


def draw():
    rows = read(Path(__file__).with_suffix(".csv"))
    plt.rcParams.update(FIGURE["settings"])
    picture = plt.figure(figsize=FIGURE["size"])
    for number, panel in enumerate(FIGURE["panels"], start=1):
        axes = picture.add_axes(panel["position"])
        axes.set_title(panel["title"], loc="left")
        for which in "xy":
            set_axis(axes, which, **panel[which])
        drawn = DRAW[panel["kind"]](axes, panel, [row for row in rows if row["panel"] == number], number)
        if panel["bar"]:
            bar = picture.colorbar(drawn, cax=picture.add_axes(panel["bar"]["position"]), extend=panel["bar"]["extend"])
            bar.set_ticks(panel["bar"]["ticks"], labels=panel["bar"]["labels"])
            bar.ax.tick_params(labelsize=panel["bar"]["size"])
            bar.ax.minorticks_off()
            bar.set_label(panel["bar"]["label"])
        for x, y in panel["leaders"]:
            axes.plot(x, y, color="grey", linewidth=0.5, zorder=2.9)
        for x, y, words, how in panel["texts"]:
            axes.text(x, y, words, transform=axes.transAxes, ha="center", va="center", **how)
    if FIGURE["legend"]:
        legend = FIGURE["legend"]
        handles = [plt.Line2D([], [], **entry) for entry in legend["entries"]]
        picture.legend(handles=handles, bbox_to_anchor=legend["anchor"], **legend["how"])
    return picture


def read(path):
    """Rows of the CSV file, with numbers as float and nan for empty fields."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{name: text if name in WORDS else number(text) for name, text in row.items()} for row in rows]


WORDS = ("panel_title", "series", "role", "note", "unit")


def number(text):
    return float(text) if text else nan


def set_axis(axes, which, label, scale, limits, ticks, labels, minor):
    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")(scale)
    getattr(axes, f"set_{which}lim")(limits)
    axis.set_label_text(label)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(labels))
    axis.set_minor_locator(FixedLocator(minor))
    axis.set_minor_formatter(FixedFormatter([]))


def by_series(rows, role):
    """The rows of a role that are drawn, by series, in the order of x."""
    drawn = {}
    for row in sorted(rows, key=lambda row: row["x"] if isfinite(row["x"]) else -inf):
        if row["role"] == role and (role == "ending" or not row["note"]):
            drawn.setdefault(row["series"], []).append(row)
    return [(FIGURE["looks"][series], points) for series, points in drawn.items()]


def column(rows, name):
    return [row[name] for row in rows]


def curves(axes, panel, rows, _):
    """Points with intervals, closed forms as lines, dotted references, and crosses for cells that were not done."""
    if panel["one"]:
        axes.axhline(1, color="black", linewidth=0.8, zorder=1.2)
    references(axes, rows)
    for look, points in by_series(rows, "measured"):
        intervals(axes, look, points)
        x, formula = column(points, "x"), column(points, "theory")
        with_formula = any(map(isfinite, formula))
        line = look["line"] if panel["joined"] else "none"
        every = max(len(x) // 8, 1)
        axes.plot(x, column(points, "y"), color=look["color"], linestyle=line, markevery=every, zorder=3, **mark(look))
        if with_formula:
            axes.plot(
                x,
                formula,
                color=look["color"],
                linestyle=look["line"],
                linewidth=1.1,
                zorder=2,
                marker="_" if len(x) == 1 else "",
                markersize=14,
            )
    for i, (look, points) in enumerate(by_series(rows, "ending")):
        x = [place for place in column(points, "x") if isfinite(place)]
        axes.plot(
            x,
            [0.03 + 0.055 * i] * len(x),
            "x",
            color=look["color"],
            transform=axes.get_xaxis_transform(),
            markersize=5,
            markeredgewidth=1.4,
            clip_on=False,
            zorder=4,
        )


def mark(look):
    return {"marker": look["marker"], "markeredgecolor": "white", "markeredgewidth": 0.4}


def references(axes, rows):
    for look, points in by_series(rows, "reference"):
        how = {"color": look["color"], "linestyle": look["line"], "linewidth": 1.2, "zorder": 1.5}
        for point in points:
            if not isfinite(point["x"]):
                axes.axhline(point["y"], **how)
                if isfinite(point["low"]):
                    axes.axhspan(point["low"], point["high"], color=look["color"], alpha=0.08, linewidth=0, zorder=1)
            elif not isfinite(point["y"]):
                axes.axvline(point["x"], **how)
        curve = [point for point in points if isfinite(point["x"]) and isfinite(point["y"])]
        axes.plot(column(curve, "x"), column(curve, "y"), marker="." if len(curve) == 1 else "", **how)


def intervals(axes, look, points):
    """Bars for few points and a band for many; both end at the edges of the axes."""
    bottom, top = sorted(axes.get_ylim())
    known = [row for row in points if isfinite(row["low"]) and isfinite(row["high"]) and isfinite(row["y"])]
    x = column(known, "x")
    low, high = ([min(max(value, bottom), top) for value in column(known, name)] for name in ("low", "high"))
    if len(points) >= 25:
        axes.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
    elif known:
        axes.vlines(x, low, high, color=look["color"], linewidth=1.1)


def histogram(axes, panel, rows, _):
    """Shares of the bins as steps, with marks that tell lines apart."""
    for look, bins in by_series(rows, "measured"):
        edges = [*column(bins, "x_low"), bins[-1]["x_high"]]
        axes.stairs(column(bins, "y"), edges, baseline=None, color=look["color"], linestyle=look["line"], linewidth=1.3)
        few = bins[look["row"] * 3 % 8 :: 8]
        axes.plot(column(few, "x"), column(few, "y"), linestyle="none", color=look["color"], zorder=4, **mark(look))
    if panel["mark"] is not None:
        axes.axvline(panel["mark"], color="black", linestyle=(0, (1, 1.4)), linewidth=1.2, zorder=2)


def trade(axes, panel, rows, _):
    """One metric against another: circles whose area is a third metric, or the points of series, joined or not."""
    references(axes, rows)
    if not panel["circles"]:
        curves(axes, panel, [row for row in rows if row["role"] == "measured"], _)
        return
    for look, points in by_series(rows, "measured"):
        areas = [max(700 * value / panel["circles"], 9) for value in column(points, "value")]
        intervals(axes, {"color": "grey"}, points)
        axes.scatter(
            column(points, "x"),
            column(points, "y"),
            areas,
            color=look["color"],
            alpha=0.55,
            zorder=3,
            edgecolors="black",
            linewidths=0.6,
        )


def tiles(axes, panel, rows, _):
    """A tile at every point. Its colour shows a number, or its colour and mark show the series with the least value."""
    axes.grid(False)
    rows = [row for row in rows if row["role"] in ("ratio", "value", "winner")]
    if not rows:
        return None
    x, y = sorted(set(column(rows, "x"))), sorted(set(column(rows, "y")))
    x_edges, y_edges = edges(x, axes.get_xscale()), edges(y, axes.get_yscale())
    if panel["colours"] is None:
        for row in rows:
            look, i, j = FIGURE["looks"][row["series"]], x.index(row["x"]), y.index(row["y"])
            how = {"color": look["color"], "alpha": 0.25, "linewidth": 0}
            axes.fill_between(x_edges[i : i + 2], y_edges[j], y_edges[j + 1], **how)
            inside = "white" if row["low"] <= 0 else look["color"]
            axes.plot(
                row["x"],
                row["y"],
                marker=look["marker"],
                color=look["color"],
                markerfacecolor=inside,
                markersize=min(7, 43 * min(2.2 / len(x), 1.7 / len(y))),
                markeredgewidth=0.8,
                zorder=3,
            )
        return None
    name, low, high = panel["colours"]
    value = {(row["x"], row["y"]): min(max(row["value"], low), high) for row in rows}
    grid = [[value.get((a, b), nan) for a in x] for b in y]
    drawn = axes.pcolormesh(x_edges, y_edges, grid, cmap=name, norm=Normalize(low, high), rasterized=True, zorder=1)
    if rows[0]["role"] == "ratio" and min(len(x), len(y)) > 1 and min(value.values()) < 0 < max(value.values()):
        axes.contour(x, y, grid, levels=[0], colors="black", linewidths=1.2, zorder=3)
    return drawn


def edges(places, scale):
    """Edges of tiles: half way between neighbours, and equally far beyond the outermost."""
    if len(places) == 1:
        return [places[0] / 1.5, places[0] * 1.5] if scale == "log" else [places[0] - 0.5, places[0] + 0.5]
    middle = (lambda a, b: sqrt(a * b)) if scale == "log" else (lambda a, b: (a + b) / 2)
    beyond = (lambda a, b: a * sqrt(a / b)) if scale == "log" else (lambda a, b: a + (a - b) / 2)
    return [beyond(*places[:2]), *map(middle, places, places[1:]), beyond(*places[:-3:-1])]


def image(axes, panel, _, number):
    """A two-dimensional array from its own CSV file, with row 0 at the top."""
    axes.grid(False)
    with open(Path(__file__).with_suffix(f".panel-{number}.csv"), newline="") as file:
        values = [list(map(float, row)) for row in csv.reader(file)]
    name, low, high = panel["colours"]
    how = {"origin": "upper", "interpolation": "nearest"}
    if name:
        return axes.imshow(values, cmap=name, norm=Normalize(low, high), **how)
    # Weights are pale to dark on a logarithmic scale with a floor. 0 has no colour, and negative weights are orange.
    blues = ListedColormap([matplotlib.colormaps["Blues"](0.12 + 0.88 * i / 255) for i in range(256)])
    above = [[min(max(value, low), high) if value > 0 else nan for value in row] for row in values]
    drawn = axes.imshow(above, cmap=blues, norm=LogNorm(low, high), **how)
    below = [[1.0 if value < 0 else nan for value in row] for row in values]
    axes.imshow(below, cmap=ListedColormap(["#d75928"]), **how)
    return drawn


DRAW = {"curve": curves, "profile": curves, "histogram": histogram, "trade": trade, "map": tiles, "image": image}

if __name__ == "__main__":
    output = Path(__file__).with_suffix(".pdf")
    draw().savefig(output, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    print(output)
