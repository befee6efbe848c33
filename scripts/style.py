"""The look of figures: type, and colours, markers and lines that readers can tell apart in grey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

INK, FAINT, GRID, PAPER = "#1c1c1c", "#5f6368", "#e3e3e3", "#ffffff"
GREY = "#b4b4b4"  # of curves beyond those that a panel has colours for
# Eight hues in steps of equal luminance (OKLCH 0.27 to 0.76), which keeps them distinct in grey. The first few are far
# apart. A dark background has their partners.
COLOURS = ("#004c86", "#d75928", "#6c0027", "#dea80b", "#007132", "#964bb4", "#0bb0b8", "#020c77")
DARK_COLOURS = ("#94c8fe", "#de6e46", "#ffc1c9", "#936e03", "#63cd7e", "#c684e3", "#0d969c", "#d8e5ff")
# By the family of a series, its hue: a position in COLOURS. A family of a plugin takes the next hue that is free.
HUES = {
    "positive": 0,
    "trigonometric": 1,
    "clusters": 2,
    "sparse": 3,
    "linear": 4,
    "kernel": 4,
    "low-rank": 5,
    "codebook": 6,
    "mixers": 7,
    "sampling": 1,  # no panel shows sampled keys beside trigonometric features
    "selection": 2,  # nor chosen keys beside clusters
    "quantised": 6,  # nor rounded keys beside codebooks
    "resolution": 7,  # nor blocks at two resolutions beside mixers
    "recurrences": 6,  # nor recurrences beside codebooks
}
# Exact attention and the baselines have no hue: the others are compared with them.
NEUTRAL = {"exact": INK, "baseline": FAINT}
TOWARDS_PAPER, TOWARDS_INK = 0.35, 0.3  # the second and the third shade of a hue, for other methods of the family


def shade(colour: str, number: int, paper: str, ink: str) -> str:
    """The colour itself for 0, a paler one for 1, a darker one for 2, and so on."""
    towards, share = ((colour, 0.0), (paper, TOWARDS_PAPER), (ink, TOWARDS_INK))[number % 3]
    mixed = (round(int(colour[i : i + 2], 16) * (1 - share) + int(towards[i : i + 2], 16) * share) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in mixed)


# By a colour of a figure, its partner in figures and pages on a dark background.
DARK = {INK: "#e8e6e3", FAINT: "#a8a8a3", GRID: "#34383d", PAPER: "#16191d", GREY: "#666a6e"}
DARK |= {
    shade(light, number, PAPER, INK): shade(dark, number, DARK[PAPER], DARK[INK])
    for light, dark in zip(COLOURS, DARK_COLOURS)
    for number in range(3)
}
# Markers tell feature maps and methods of a family apart, lines the ensembles of projections. References and endings use
# dots and crosses.
MARKERS = ("o", "s", "^", "D", "v", "P", "*")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (6, 1.5, 1.2, 1.5)), (0, (9, 2)), (0, (3.5, 1.2, 1, 1.2, 1, 1.2)))
REFERENCE_LINES: tuple[Any, ...] = ((0, (1, 1.4)), (0, (1, 3)), (0, (1, 1.4, 1, 4)))
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titley": 1.0,  # without it, matplotlib measures the tick labels for each title
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.3,
    "hatch.linewidth": 0.5,
    "lines.markersize": 4.6,
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "text.hinting": "no_hinting",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
}


@dataclass(frozen=True)
class Layout:
    """The layout of a figure, sizes in inches."""

    settings: dict[str, Any]  # of matplotlib
    narrow: float  # width of one column of panels
    wide: float  # width of several, and of more than most_series
    most_series: float  # number of series for which the legend of the narrow width has room
    columns: dict[int, int]  # of panels, by their number; else 3
    heights: dict[int, float]  # of a panel, by the number of columns; else 2.45
    with_words: bool  # the title of a single panel, and notes under the figure
    size: tuple[float, float] | None = None  # of the whole figure; None: by its parts
    legend_order: tuple[str, ...] = ()  # printed names or series that come first


REPORT = Layout(STYLE, 5.0, 7.2, float("inf"), {1: 1, 2: 2, 4: 2}, {1: 3.0, 2: 2.7}, with_words=True)
# One column of a two-column page, or its whole width; one size of type. Put the text of the notes into the caption.
SIZES = ("axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
IN_PAPER = Layout(
    {**STYLE, **dict.fromkeys(SIZES, 8.0)}, 3.35, 6.9, 12, {1: 1, 2: 1, 4: 2}, {1: 2.3, 2: 2.3}, with_words=False
)


@dataclass(frozen=True)
class Look:
    """The look of a series, the same in all panels of a figure. Its hue is that of its family in every figure."""

    colour: str
    marker: str
    line: Any
    row: int  # number of the series: crosses of several series are drawn above each other
