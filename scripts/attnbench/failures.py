"""A Python exception in one line."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import TracebackType

LONGEST = 400  # characters of a message


class Skip(Exception):
    """Raised by a method for what it has no form of; recorded as skipped, with the message as its reason."""


SKIPS = (Skip, NotImplementedError)


def _place(error: BaseException, trace: TracebackType | None, file: str | None) -> str:
    """The last frame in the plugin's own file, and the one where it was raised when that is another."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    ours = str(Path(__file__).parent)
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith((ours, "<frozen"))]
    if not frames:
        return Path(file).name if file else ""
    own = [f for f in frames if file and f.filename == file]
    shown = [*own[-1:], *(f for f in frames[-1:] if f not in own[-1:])]
    return ", ".join(
        f"{Path(f.filename).name}:{f.lineno}" + ("" if f.name == "<module>" else f" in {f.name}") for f in shown
    )


def one_line(error: BaseException, trace: TracebackType | None = None, file: str | None = None) -> str:
    """`ValueError: what it says (mine.py:12 in attend)`. file: the plugin that it came from, when it is known."""
    try:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # its own __str__ raises
        said = "its message cannot be printed"
    text = " ".join(said.split())
    if len(text) > LONGEST:
        text = text[:LONGEST] + "..."
    name = type(error).__name__
    if isinstance(error, ModuleNotFoundError):
        text += f"; {sys.executable} has no such package: install it there, or name another interpreter with --python"
    elif "read-only" in text:
        text += "; q, k, v and x are the caller's: copy what is to be changed"
    # Messages of the project's own exceptions need neither a place nor the exception's name.
    if name in ("Misuse", "Skip"):
        return text
    place = _place(error, trace if trace is not None else error.__traceback__, file)
    return f"{name}{': ' if text else ''}{text}" + (f" ({place})" if place else "")
