"""The statements of the literature on the page: grouped by paper, each with its outcome and, folded away, its evidence."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from results import Reproduction, Verdict

ROOT = Path(__file__).resolve().parents[1]
OUTCOMES = ("HOLDS", "REFUTED", "NOT SEEN", "DEPENDS", "OPEN", "MEASURED")  # in this order on the page
KINDS = {"paper": "claims of papers", "code": "tests of this code", "own": "findings of this project"}  # in this order
OWN, CODE = "Findings of this project", "Published code and other sources"
# "Wang et al. 2020, arXiv:2006.04768" at the beginning of a source; a repository or a lecture has no year there.
PAPER = re.compile(r"(?P<authors>[^,;]*? \d{4}), (?P<place>arXiv:[\w./-]+|[\w.-]+\.[a-z]+/\S+?(?=,|;|$))")


@dataclass(frozen=True)
class Judged:
    """A statement with what is around it on the page."""

    verdict: Verdict
    made: Reproduction | None
    recipe_anchor: str
    tested: list[str]  # names of the methods
    number: int  # on the page, from 1

    @property
    def smoke(self) -> bool:
        """Whether it was judged at smoke sizes, which show only that everything runs."""
        return self.made is not None and self.made.size == "smoke"

    @property
    def unexpected(self) -> bool:
        return self.verdict.contradicts and not self.smoke

    @property
    def anchor(self) -> str:
        return f"claim-{self.number}"


def literature(judged: list[Judged]) -> str:
    """The section of all statements with its filters."""
    outcomes = Counter(one.verdict.outcome for one in judged)
    unexpected = sum(one.unexpected for one in judged)
    compared = "" if all(one.smoke for one in judged) else f" {unexpected} not as expected."
    sources = sorted({group_of(one.verdict) for one in judged})
    tested = sorted({*itertools.chain(*(one.tested for one in judged))})
    by_paper: dict[str, list[Judged]] = {}
    for one in judged:
        by_paper.setdefault(group_of(one.verdict), []).append(one)
    order = sorted(by_paper, key=lambda group: (group == OWN, group == CODE, -len(by_paper[group]), group))
    papers = "\n".join(_paper(group, by_paper[group]) for group in order)
    return (
        '<section aria-labelledby="literature"><h2 id="literature" tabindex="-1">The literature</h2>\n'
        f"<p>{len(judged)} statement{'' if len(judged) == 1 else 's'}, judged by the measurements of this report.{compared}"
        f"</p>\n{_counts(judged)}\n{_legend(outcomes)}"
        '<form class="controls" id="verdict-form" hidden>'
        f"{_select('Outcome', 'outcome', [*in_order(outcomes), *(['not as expected'] if unexpected else [])])}"
        f"{_select('Paper', 'source', sources)}"
        f"{_select('Method', 'tested', tested)}"
        '<label>Text <input name="text" type="search" autocomplete="off"></label>'
        '<p><button type="button" data-reset>Reset</button> '
        '<span id="verdict-words" role="status" aria-live="polite"></span></p>'
        f"</form>\n{papers}\n</section>"
    )


MEANINGS = {
    "HOLDS": "true wherever it was measured",
    "REFUTED": "measured to be wrong, in the source's own setting",
    "NOT SEEN": "it fails here, in another setting than the source's, which refutes no source",
    "DEPENDS": "true in some settings, which it names",
    "OPEN": "the intervals do not decide",
    "MEASURED": "the source gives no threshold, so the value is reported",
}


def _legend(outcomes: Counter[str]) -> str:
    words = "; ".join(f"{badge(name)} {MEANINGS[name]}" for name in in_order(outcomes) if name in MEANINGS)
    return f'<p class="meanings">{words}.</p>\n' if words else ""


def in_order(outcomes: Iterable[str]) -> list[str]:
    """The outcomes in the order in which they are listed everywhere."""
    return sorted(outcomes, key=lambda name: (OUTCOMES.index(name) if name in OUTCOMES else len(OUTCOMES), name))


def badge(outcome: str) -> str:
    return _badge(outcome, outcome)


def _badge(outcome: str, words: str) -> str:
    return f'<span class="outcome {escape(outcome.lower().replace(" ", "-"))}">{escape(words)}</span>'


def badges(outcomes: Counter[str]) -> str:
    """Each outcome with its number."""
    return " ".join(_badge(name, f"{outcomes[name]} {name}") for name in in_order(outcomes))


def _counts(judged: list[Judged]) -> str:
    """How many statements there are of each kind, and their outcomes."""
    of_kinds = {kind: Counter(one.verdict.outcome for one in judged if one.verdict.kind == kind) for kind in KINDS}
    lines = "".join(
        f"<li>{outcomes.total()} {KINDS[kind]}: {badges(outcomes)}</li>"
        for kind, outcomes in of_kinds.items()
        if outcomes
    )
    return f'<ul class="kinds">{lines}</ul>'


def group_of(verdict: Verdict) -> str:
    """The paper that the statement is of: its authors, year and place."""
    if not verdict.source:
        return OWN
    found = PAPER.match(verdict.source)
    return f"{found['authors']}, {found['place']}" if found else CODE


@cache
def _titles() -> dict[str, str]:
    """The titles of papers by their arXiv number, from the bibliographies of the source tree, as far as it is there."""
    titles = {}
    for file in ROOT.glob("*/**/references.bib"):
        if "build" in file.relative_to(ROOT).parts:
            continue
        for entry in file.read_text(encoding="utf-8").split("\n@"):
            title = re.search(r"^\s*title = \{(.*)\},?$", entry, re.M)
            number = re.search(r"^\s*eprint = \{(.*?)\}", entry, re.M)
            if title and number:
                titles[number[1]] = re.sub(r"[{}]", "", title[1])
    return titles


def _paper(group: str, judged: list[Judged]) -> str:
    title = _titles().get(group.rpartition("arXiv:")[2], "") if "arXiv:" in group else ""
    name = f"<b>{escape(title)}</b> <span>{escape(group)}</span>" if title else f"<b>{escape(group)}</b>"
    return (
        f'<details class="paper"><summary><span class="name">{name}</span> '
        f'<span class="counts">{badges(Counter(one.verdict.outcome for one in judged))}</span></summary>\n'
        + "\n".join(map(_claim, judged))
        + "</details>"
    )


def _claim(one: Judged) -> str:
    verdict = one.verdict
    outcomes = [verdict.outcome, *(["not as expected"] if one.unexpected else [])]
    mark = ' <span class="unexpected">not as expected</span>' if one.unexpected else ""
    region = f' <span class="region">({escape(verdict.region)})</span>' if verdict.region else ""
    return (
        f'<details class="claim" id="{one.anchor}" data-outcome="{escape("|".join(outcomes))}" '
        f'data-source="{escape(group_of(verdict))}" data-tested="{escape("|".join(one.tested))}">'
        f"<summary>{badge(verdict.outcome)}{mark} <span>{escape(verdict.statement)}{region}</span></summary>\n"
        f"{_evidence(one)}</details>"
    )


def _evidence(one: Judged) -> str:
    verdict = one.verdict
    quoted = f"<blockquote>{escape(verdict.quotation)}</blockquote>" if verdict.quotation else ""
    expected = f"{verdict.expected}, because {verdict.because}" if verdict.because else verdict.expected
    rows = [
        ("Numbers", escape(verdict.numbers)),
        ("The source says", quoted or escape(verdict.paraphrase)),
        ("Source", escape(verdict.source_words)),
        ("Measured", escape(verdict.definition)),
        ("Threshold", escape(verdict.threshold)),
        ("Expected", "" if one.smoke or verdict.expected == "OPEN" else escape(expected)),
    ]
    words = "".join(f"<p><b>{name}.</b> {text}</p>" for name, text in rows if text)
    links = (
        f'<p class="evidence"><a href="#{one.recipe_anchor}">Figures of {escape(verdict.recipe)}</a> '
        f'<a href="#cells=recipe:{escape(verdict.recipe)}" aria-label="Cells of {escape(verdict.recipe)}">Cells</a></p>'
    )
    return words + _compared(one) + links


# The most comparisons of a verdict that the page itself shows; more are in a file beside it.
ON_THE_PAGE = 40
COLUMNS = {"what": "Setting", "side": "Side", "value": "Value", "low": "from", "high": "to", "count": "Samples"}


def comparison_files(judged: list[Judged]) -> dict[str, bytes]:
    """A table in CSV for each verdict whose comparisons are too many for the page."""
    return {_file_of(one): _in_csv(compared) for one in judged if len(compared := _comparisons(one)) > ON_THE_PAGE}


def _comparisons(one: Judged) -> list[dict[str, Any]]:
    compared: list[dict[str, Any]] = json.loads(one.verdict.compared)
    return compared


def _file_of(one: Judged) -> str:
    return f"{one.anchor}.csv"


def _in_csv(compared: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(compared)
    return text.getvalue().encode()


def _compared(one: Judged) -> str:
    """Every comparison behind the verdict: in a collapsed element, or in a file if they are many."""
    compared = _comparisons(one)
    if len(compared) < 2:
        return ""
    if len(compared) > ON_THE_PAGE:
        return f'<p class="files">{len(compared)} comparisons: <a href="{_file_of(one)}" download>CSV</a></p>'
    rows = "".join(
        f'<tr><td>{escape(row["what"])}<td>{escape(row["side"])}'
        f'<td class="number">{_number(row["value"])}'
        f'<td class="number">{_number(row["low"])}<td class="number">{_number(row["high"])}'
        f'<td class="number">{escape(str(row["count"]))}'
        for row in compared
    )
    header = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS.values())
    return (
        f'<details class="compared"><summary>{len(compared)} comparisons</summary><div class="wide">'
        f'<table aria-label="Comparisons"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _number(value: float | None) -> str:
    """JSON has null for infinite values and NaN."""
    return "–" if value is None else f"{value:.4g}"


def _select(label: str, name: str, values: list[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{label} <select name="{name}"><option value="">any</option>{options}</select></label>'
