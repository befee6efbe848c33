"""Words of figures that LaTeX sets (--tex): LaTeX prints them unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.texmanager import TexManager
from tables import latex_text


def for_latex(words: str) -> str:
    """The words with LaTeX's special characters escaped. Words with a $ or a backslash are TeX that a user gave: no
    sentence of ours has one."""
    return words if "$" in words or "\\" in words else latex_text(words)


@contextmanager
def words_for_latex() -> Iterator[None]:
    """Matplotlib hands all words to LaTeX as they are, so that a % would hide the rest of its line. Everything that it
    sets by LaTeX goes through TexManager.make_dvi."""
    make_dvi = TexManager.make_dvi

    def make_escaped(_: type[TexManager], tex: str, fontsize: float) -> str:
        made: str = make_dvi(for_latex(tex), fontsize)
        return made

    TexManager.make_dvi = classmethod(make_escaped)
    try:
        yield
    finally:
        TexManager.make_dvi = make_dvi
