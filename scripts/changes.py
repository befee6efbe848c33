"""The changes of a user to a figure for a paper: names, words, size, type, and the order of the legend."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import re
import shutil
from dataclasses import dataclass, replace

from panel import Panel
from results import Misuse
from style import SIZES, Layout


@dataclass(frozen=True)
class Changes:
    """Of `attnbench plot`: an empty member changes nothing."""

    rename: tuple[tuple[str, str], ...] = ()
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    legend_order: tuple[str, ...] = ()
    facet: bool = False


def add_changes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for your own paper")
    group.add_argument(
        "--rename", action="append", default=[], type=_renaming, metavar="SERIES=NAME", help="a series in the legend"
    )
    group.add_argument("--title", default="", metavar="TEXT", help="of the figure")
    group.add_argument("--xlabel", default="", metavar="TEXT", help="of every x axis")
    group.add_argument("--ylabel", default="", metavar="TEXT", help="of every y axis")
    group.add_argument("--size", type=_size, metavar="WxH", help="of the figure in inches, such as 3.3x2.4")
    group.add_argument("--font", default="", metavar="FAMILY", help="such as serif or a font's name")
    group.add_argument("--tex", action="store_true", help="LaTeX sets the words")
    group.add_argument("--legend-order", default="", metavar="A;B", help="the first series of the legend")
    group.add_argument("--facet", action="store_true", help="a panel for each series")


def changes_in(options: argparse.Namespace) -> Changes:
    return Changes(
        tuple(options.rename),
        options.title,
        options.xlabel,
        options.ylabel,
        tuple(filter(None, (name.strip() for name in options.legend_order.split(";")))),
        options.facet,
    )


def changed_layout(layout: Layout, options: argparse.Namespace) -> Layout:
    settings = dict(layout.settings)
    if options.font:
        settings["font.family"] = options.font
    if options.tex:
        if not shutil.which("latex"):
            raise Misuse("--tex: there is no latex; expected TeX Live, such as Debian's texlive-latex-extra")
        settings["text.usetex"] = True
    if options.size and options.size[0] < 3:
        settings |= {name: min(settings[name], 7.0) for name in SIZES}
    return replace(layout, settings=settings, size=options.size)


def changed(panels: list[Panel], changes: Changes) -> list[Panel]:
    """The panels with these changes. Throws Misuse for a series that no panel has."""
    if changes.facet:
        panels = [one for panel in panels for one in _facets(panel)]
    names = {series for panel in panels for series in panel.points["series"]}
    printed = {panel.printed(series): series for panel in panels for series in panel.points["series"]}
    for asked in (*(old for old, _ in changes.rename), *changes.legend_order):
        if asked not in names and asked not in printed:
            near = difflib.get_close_matches(asked, [*names, *printed], 3) or sorted(printed)
            raise Misuse(f"'{asked}': no series of the figure is called so; expected one of: {', '.join(near)}")
    new = {printed.get(old, old): name for old, name in changes.rename}
    words = {key: text for key, text in (("x_label", changes.x_label), ("y_label", changes.y_label)) if text}
    return [
        replace(
            panel,
            description={**panel.description, **words},
            series={name: replace(series, name=new.get(name, series.name)) for name, series in panel.series.items()},
        )
        for panel in panels
    ]


def _facets(panel: Panel) -> list[Panel]:
    """A panel for each measured series; references and what was not done stay with their own."""
    if panel.description["kind"] not in ("curve", "profile", "histogram"):
        raise Misuse(f"--facet: a {panel.description['kind']} has no curves; expected a figure of curves or histograms")
    measured = list(dict.fromkeys(panel.points.loc[panel.points["role"] == "measured", "series"]))
    shared = panel.points["role"] == "reference"
    return [
        dataclasses.replace(
            panel,
            description={**panel.description, "title": panel.printed(series)},
            points=panel.points[shared | (panel.points["series"] == series)],
        )
        for series in measured
    ] or [panel]


def _renaming(text: str) -> tuple[str, str]:
    # A spec has equals signs as well: the last one separates.
    old, equals, new = text.rpartition("=")
    if not old or not equals or not new:
        raise argparse.ArgumentTypeError(f"'{text}': expected SERIES=NAME, such as performer=FAVOR+")
    return old, new


def _size(text: str) -> tuple[float, float]:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)", text)
    if not found or not all(1 <= float(side) <= 40 for side in found.groups()):
        raise argparse.ArgumentTypeError(f"'{text}': expected width and height in inches, such as 3.3x2.4")
    return float(found[1]), float(found[2])
