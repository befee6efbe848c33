"""Markdown files, as the tests of the documents read them: prose without code, headings, anchors and links."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(
    r'\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\[[^\]]+\]:\s*(\S+)|\b(?:src|href)="([^"]+)"', re.MULTILINE
)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)


class Link(NamedTuple):
    file: str
    line: int
    target: str


def tracked_files(*endings: str) -> list[Path]:
    """The files of the project with these endings, without what was built."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
    else:  # an archive or a copy, which may have been built in
        paths = [path for path in ROOT.rglob("*") if path.relative_to(ROOT).parts[0] != "build"]
    return [path for path in paths if path.suffix in endings and path.is_file()]


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """The text with spaces in place of each match, so that every line keeps its number."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def prose(text: str) -> str:
    """The text with spaces in place of blocks of code and of code within lines."""
    return blank(blank(text, FENCE), INLINE_CODE)


def anchors(text: str) -> list[str]:
    return ANCHOR.findall(text)


def places(text: str) -> set[str]:
    """The fragments that a link into the text may have: its anchors, and its headings as code hosts name them."""
    found = set(anchors(text))
    seen: dict[str, int] = {}
    for heading in HEADING.findall(blank(text, FENCE)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", shown.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return found


def links(file: str, text: str) -> Iterator[Link]:
    shown = prose(text)
    for found in LINK.finditer(shown):
        yield Link(file, shown.count("\n", 0, found.start()) + 1, found[1] or found[2] or found[3])
