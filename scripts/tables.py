"""Tables as text: Markdown, LaTeX (a plain tabular, which needs no package) and CSV. Cells are plain text, escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from results_file import printable

Rows = Sequence[Sequence[str]]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # pdfLaTeX's encodings lack these.
    **{"≤": r"$\leq$", "≥": r"$\geq$", "×": r"$\times$", "±": r"$\pm$", "∝": r"$\propto$", "∞": r"$\infty$"},
    **{"−": "$-$", "…": r"\ldots{}", "–": "--", "\u00a0": "~", "²": "$^{2}$", "³": "$^{3}$"},
    **{power: f"$^{{{plain}}}$" for power, plain in zip("⁻⁰¹⁴⁵⁶⁷⁸⁹", "-01456789")},
}


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def markdown_text(text: str) -> str:
    """One line that Markdown shows unchanged, also inside a table."""
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", _one_line(text))


def latex_text(text: str) -> str:
    """One line that LaTeX prints unchanged."""
    return "".join(_LATEX.get(character, character) for character in " ".join(re.split(r"[ \t\n\r]+", text.strip())))


def markdown(header: Sequence[str], rows: Rows) -> str:
    head, *body = ([markdown_text(cell) for cell in line] for line in (header, *rows))
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *body))


def latex(header: Sequence[str], rows: Rows, columns: str) -> str:
    """columns: as tabular takes them, such as "lrr" or "lp{6cm}"."""
    head, *body = (" & ".join(map(latex_text, line)) + " \\\\\n" for line in (header, *rows))
    return f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{head}\\hline\n{''.join(body)}\\hline\n\\end{{tabular}}\n"


def csv_text(text: str) -> str:
    """A cell that every program shows as text: spreadsheets compute a cell that begins like a formula, so an apostrophe
    comes before it. Numbers stay as they are. attnbench export does the same (harness/store/export.cpp)."""
    formula = text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


def text_of_csv(cell: str) -> str:
    """Undoes csv_text."""
    return cell[1:] if cell.startswith("'") and csv_text(cell[1:]) == cell else cell


def comma_separated(header: Sequence[str], rows: Rows) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([map(csv_text, row) for row in (header, *rows)])
    return text.getvalue()
