"""The common parts of all pages: colours by name in light and in dark, and the scripts that a page allows itself."""

from __future__ import annotations

import base64
import hashlib

from style import COLOURS, DARK, FAINT, GRID, INK, PAPER

# Style sheets and scripts of a page draw with these names.
NAMES = {"ink": INK, "faint": FAINT, "rule": GRID, "paper": PAPER, **{f"series-{i}": c for i, c in enumerate(COLOURS)}}


def light_colours() -> str:
    return _variables(NAMES)


def dark_colours() -> str:
    return _variables({name: DARK[colour] for name, colour in NAMES.items()})


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def hash_of(script: str) -> str:
    """As a content security policy names it: the browser runs the page's own scripts, and none that a results file might
    bring."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
