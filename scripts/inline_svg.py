"""A figure's SVG as an element of a page: named for screen readers, coloured by the page's names, its words as text.

Matplotlib draws words glyph by glyph, so that they look the same everywhere, and writes coordinates to a millionth of a
point. On the page, words are text of the same width, which readers can search and copy, and coordinates are rounded to
hundredths. That takes a third of the bytes.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape

from matplotlib.font_manager import findfont, get_font
from matplotlib.ft2font import LOAD_NO_HINTING, LOAD_NO_SCALE
from plot import Drawn
from style import COLOURS, FAINT, GRID, INK, PAPER

SCREEN_SCALE = 1.28  # figures have the type sizes of print; a full-width one then fills the page
# The page defines these colours by name, so that figures follow its light or dark background.
NAMES = {INK: "ink", FAINT: "faint", GRID: "rule", PAPER: "paper", **{c: f"series-{i}" for i, c in enumerate(COLOURS)}}
# A line of words: its place, its size, and its glyphs at hundredths of the size. GLYPHS matches their definitions.
GLYPHS = re.compile(r'<defs>\s*(?:<path id="DejaVuSans-[^>]*>\s*)+</defs>')
WORDS = re.compile(
    r'<g(?P<style> style="[^"]*")? transform="(?P<place>[^"]*?) scale\((?P<size>[\d.]+) -[\d.]+\)">\s*'
    r'(?P<glyphs>(?:<use xlink:href="#DejaVuSans-[^>]*>\s*)+)</g>'
)


def inline_svg(drawn: Drawn) -> str:
    """The figure as an element of the page."""
    text = drawn.files["svg"].decode()
    text = text[text.index("<svg") :]
    width, height = re.findall(r'viewBox="0 0 (\S+) (\S+)"', text)[0]
    text = text[text.index(">") + 1 :]
    for left_out in (r"<title>.*?</title>", r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        text = re.sub(left_out, "", text, flags=re.S)
    text = re.sub(r'( d="[^"]*)"', lambda found: re.sub(r"\s*\n", " ", found.group()), text)
    text = WORDS.sub(_words, GLYPHS.sub("", text)).replace("xlink:href", "href")
    # Keep the ids that something refers to: they are hashes of the figure's name. Nothing uses the others.
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found.group() if found.group(1) in used else "", text)
    text = re.sub(r"(?<![\w.])-?\d+\.\d{3,}(?!\w)", _rounded, text)
    text = re.sub("|".join(NAMES), lambda found: f"var(--{NAMES[found.group()]})", text)
    text = re.sub(r'style="[^"]*"', lambda found: found.group().replace(": ", ":").replace("; ", ";"), text)
    text = re.sub(r">\s+<", "><", text)
    groups = 1
    while groups:  # removes groups without attributes, innermost first: they are two of three elements
        text, groups = re.subn(r"<g>((?:(?!</?g\b).)*)</g>", r"\1", text, flags=re.S)
    description = drawn.figure.description
    label = f"{description.get('title') or drawn.figure.name}. {description.get('caption', '')}".strip()
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" '
        f'style="width: {float(width) * SCREEN_SCALE:g}pt">{text.strip()}'
    )


def with_classes(figures: str) -> tuple[str, str]:
    """Replaces each style by a class, and returns the figures with the classes. Few different styles occur often."""
    classes: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        return f' class="{classes.setdefault(found.group(1), f"s{len(classes)}")}"'

    figures = re.sub(r' style="(?!width)([^"]*)"', named, figures)  # the width is a figure's own
    return figures, "\n".join(f".{name} {{{style}}}" for style, name in classes.items())


def _words(found: re.Match[str]) -> str:
    glyphs = re.findall(r'#DejaVuSans-([0-9a-f]+)"(?: x="([\d.]+)")?', found["glyphs"])
    codes = [int(code, 16) for code, _ in glyphs]
    size = 100 * float(found["size"])
    length = size * (float(glyphs[-1][1] or 0) / 100 + _advance(codes[-1]))
    words = escape("".join(map(chr, codes)))
    return (
        f'<text{found["style"] or ""} transform="{found["place"]}" font-size="{size:g}" textLength="{length:.2f}">'
        f"{words}</text>"
    )


@cache
def _advance(code: int) -> float:
    """The width of a character over the size of the type."""
    font = get_font(findfont("DejaVu Sans"))
    return float(font.load_char(code, flags=LOAD_NO_HINTING | LOAD_NO_SCALE).horiAdvance / font.units_per_EM)


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found.group()):.2f}".rstrip("0").rstrip(".")
