"""One subset of a font for all PDF files: making a subset takes as long as writing all else of a figure."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from matplotlib.backends import _backend_pdf_ps

# The characters that figures use. A figure with others gets a subset of its own.
SHARED = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("±²³×·–…⁰⁴⁵⁶⁷⁸⁹⁻−∝≤≥")

_make_subset = functools.lru_cache(maxsize=8)(_backend_pdf_ps.get_glyphs_subset)


def _shared_subset(font_file: str, characters: str) -> Any:
    return _make_subset(font_file, "".join(sorted(SHARED.union(characters))))


def share_subsets() -> None:
    """Makes matplotlib embed shared subsets. It has no setting for this. Since 3.11 it asks for glyphs in place of characters,
    which differ between fonts, and each figure gets a subset of its own."""
    if list(inspect.signature(_backend_pdf_ps.get_glyphs_subset).parameters) == ["fontfile", "characters"]:
        _backend_pdf_ps.get_glyphs_subset = _shared_subset
