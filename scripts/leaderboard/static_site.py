"""The static site of a board: pages of HTML, and all of it as JSON and CSV. Equal boards give equal bytes."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from board import Board, Entry, Number, Row, Table, Timed
from front_figure import front_figure
from medians import LEVEL
from page_frame import dark_colours, hash_of, light_colours
from standings import ERROR_RATE
from suite import BASELINE, EXACT, Column
from tables import comma_separated
from ticks import byte_label, number_label
from verification import Submission

PARTS = Path(__file__).resolve().parent / "page"
STYLE = PARTS.parents[1] / "page" / "style.css"
SORTING = PARTS.parents[1] / "page" / "compared.js"
MACHINES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def pages(board: Board, refused: Sequence[tuple[str, str]]) -> dict[str, bytes]:
    """By path within the site. refused: name of a bundle and reason."""
    style = Template((PARTS / "style.css").read_text()).substitute(light=light_colours(), dark=dark_colours())
    files = {"index.html": _index(board, refused).encode(), "style.css": (STYLE.read_text() + style).encode()}
    for entry in board.entries:
        files[f"methods/{entry.slug}.html"] = _method_page(board, entry).encode()
    for table in board.tables:
        for machine, svg in front_figure(table).items():
            files[_figure_path(board, table, machine)] = svg
    for one in board.submissions:
        if one.bundle.manifest.bibtex.strip():
            files[_bibliography(one)] = (one.bundle.manifest.bibtex.strip() + "\n").encode()
    files["data/leaderboard.json"] = (json.dumps(_as_data(board), indent=1, ensure_ascii=False) + "\n").encode()
    files["data/leaderboard.csv"] = _csv(_ranked_rows(board))
    files["data/numbers.csv.gz"] = gzip.compress(_csv(_all_numbers(board)), mtime=0)
    return files


def _bibliography(submission: Submission) -> str:
    return f"data/{submission.bundle.digest[:12]}.bib"


def _figure_path(board: Board, table: Table, machine: str) -> str:
    return f"figures/{table.regime.name}-{_letter(board, machine)}.svg"


def _letter(board: Board, machine: str) -> str:
    place = board.machines.index(machine)
    return MACHINES[place] if place < len(MACHINES) else str(place + 1)


def _page(title: str, body: str, contents: str, depth: int) -> str:
    """depth: of its folder within the site. Only pages with several tables have a script."""
    script = SORTING.read_text() + (PARTS / "filter.js").read_text() + "addCompared();\naddFilter();\n"
    script = script if contents else ""
    return Template((PARTS / "page.html").read_text()).substitute(
        title=escape(title),
        style="../" * depth + "style.css",
        contents=contents,
        body=body,
        script=script,
        script_hash=hash_of(script),
        home="../" * depth + "index.html",
    )


def _index(board: Board, refused: Sequence[tuple[str, str]]) -> str:
    links = "".join(
        f'<li><a href="#{table.regime.name}">{escape(table.regime.title)}</a></li>' for table in board.tables
    )
    body = Template((PARTS / "index.html").read_text()).substitute(
        suite=escape(board.suite.title),
        name=escape(board.suite.name),
        count=sum(entry.submitted for entry in board.entries),
        bundles=_count(len(board.submissions), "bundle"),
        rate=f"{ERROR_RATE:.0%}",
        level=f"{LEVEL:.0%}",
        machines=_machines(board),
        tables="\n".join(_table(board, table) for table in board.tables),
        submissions=_submissions(board),
        refused=_refused(refused),
    )
    return _page(f"attnbench leaderboard: {board.suite.title}", body, links, 0)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _machines(board: Board) -> str:
    if not board.machines:
        return "<p>No bundle has timings.</p>"
    items = "".join(f"<dt>{_letter(board, one)}</dt><dd>{escape(one)}</dd>" for one in board.machines)
    return f"<dl>{items}</dl>"


def _table(board: Board, table: Table) -> str:
    columns = ["method", "rank", *(column.label for column in table.regime.columns)]
    head = "".join(f'<th scope="col"><button type="button">{escape(column)}</button></th>' for column in columns)
    ranked = [row for row in table.rows if row.standing or row.entry.method == EXACT]
    if not any(cell for row in ranked for cell in row.cells):
        ranked = []
    body = "\n".join(_row(board, table, row) for row in ranked)
    without = [row for row in table.rows if row not in ranked]
    listed = "".join(f"<li>{_link(row.entry, 0)}: {escape(row.reason)}</li>" for row in without)
    below = f"<details><summary>Not ranked: {len(without)}</summary><ul>{listed}</ul></details>" if without else ""
    what = "heads" if table.regime.columns[0].blocks == "heads" else "texts"
    figures = "".join(
        f'<figure><img src="{_figure_path(board, table, machine)}" loading="lazy" width="620" height="400" '
        f'alt="Error and speedup of each method on machine {_letter(board, machine)}; those that no other beats in '
        f'both: {escape(_names(table, machine))}"></figure>'
        for machine in sorted(table.front)
    )
    shown = (
        f'<div class="wide" tabindex="0" role="region" aria-label="Table: {escape(table.regime.title)}"><table class="compared">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )
    counted = f" Ranks compare {table.blocks} {what}." if ranked else " No method has these numbers yet."
    return (
        f'<section aria-labelledby="{table.regime.name}"><h2 id="{table.regime.name}">{escape(table.regime.title)}</h2>\n'
        f"<p>{escape(table.regime.words)}{counted}</p>\n{shown if ranked else ''}\n{below}{figures}</section>"
    )


def _names(table: Table, machine: str) -> str:
    return ", ".join(row.entry.method for row in table.rows if row.entry.slug in table.front[machine])


def _link(entry: Entry, depth: int) -> str:
    place = "" if depth else "methods/"
    authors = "" if not entry.source else f" <small>({escape(', '.join(_authors(entry)))})</small>"
    return f'<a href="{place}{entry.slug}.html"><code>{escape(entry.method)}</code></a>{authors}'


def _authors(entry: Entry) -> list[str]:
    return list(dict.fromkeys(author for one in entry.submissions for author in one.bundle.manifest.authors))


def _row(board: Board, table: Table, row: Row) -> str:
    rank = _rank(row)
    place = row.standing.rank if row.standing else 0
    kind = ' class="reference"' if row.entry.method in (EXACT, BASELINE) else ""
    cells = "".join(
        _cell(board, table, row, column, cell) for column, cell in zip(table.regime.columns, row.cells, strict=True)
    )
    return f'<tr{kind}><th scope="row">{_link(row.entry, 0)}</th><td class="number" data-value="{place}">{rank}</td>{cells}</tr>'


def _rank(row: Row) -> str:
    if row.standing is None:
        return "exact"
    first, last = row.standing.rank, row.standing.last_rank
    return str(first) if first == last else f"{first}\N{EN DASH}{last}"


def _cell(board: Board, table: Table, row: Row, column: Column, cell: Number | list[Timed] | None) -> str:
    """Intervals are shown of what decides: the number that ranks, and the speedup. The method's page has all of them."""
    if cell is None:
        return "<td></td>"
    first = column is table.regime.columns[0]
    if isinstance(cell, Number):
        return f'<td class="number" data-value="{cell.value!r}">{_interval(column, cell, first)}</td>'
    several, front = len(board.machines) > 1, column is table.speed
    lines = "<br>".join(
        _interval(column, one.number, front)
        + (f" {_letter(board, one.machine)}" if several else "")
        + (" ★" if front and row.entry.slug in table.front.get(one.machine, ()) else "")
        for one in cell
    )
    return f'<td class="number" data-value="{cell[0].number.value!r}">{lines}</td>'


def _interval(column: Column, number: Number, with_ends: bool = True) -> str:
    shown = byte_label if column.unit == "B" else digits
    if not with_ends or math.isnan(number.low) or number.low == number.high:
        return shown(number.value)
    return f"{shown(number.value)} <small>[{shown(number.low)}, {shown(number.high)}]</small>"


def digits(value: float) -> str:
    """Three significant digits."""
    return number_label(float(f"{value:.3g}"))


def _places(submission: Submission) -> str:
    return "; ".join(submission.machines) or "no timing"


def _submissions(board: Board) -> str:
    rows = "".join(
        f'<tr><th scope="row"><code>{one.bundle.digest[:12]}</code></th>'
        f"<td>{escape(', '.join(one.bundle.manifest.authors))}</td>"
        f"<td>{_count(len(one.bundle.manifest.methods), 'method')}</td>"
        f"<td>{escape(one.bundle.manifest.licence)}</td><td>{escape(one.bundle.manifest.attnbench)}</td>"
        f"<td>{escape(_places(one))}</td></tr>"
        for one in board.submissions
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("SHA-256", "by", "of", "licence", "with", "on"))
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Table of submissions"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _refused(refused: Sequence[tuple[str, str]]) -> str:
    if not refused:
        return ""
    items = "".join(f"<li><code>{escape(name)}</code>: {escape(reason)}</li>" for name, reason in refused)
    return f'<section aria-labelledby="refused"><h2 id="refused">Refused</h2><ul>{items}</ul></section>'


def _method_page(board: Board, entry: Entry) -> str:
    parts = [f"<h1><code>{escape(entry.method)}</code></h1>", _origin(board, entry)]
    parts += [_standing(board, table, entry) for table in board.tables]
    parts += [_claims(entry), _endings(entry), _measured_by(board, entry), _source(entry)]
    return _page(f"{entry.method} - attnbench leaderboard", "\n".join(filter(None, parts)), "", 1)


def _origin(board: Board, entry: Entry) -> str:
    if not entry.submitted:
        what = "Exact attention, which every error is against." if entry.method == EXACT else "The mean of V."
        return f"<p>{what} It is measured beside every method.</p>"
    if not entry.source:
        return f"<p>Built into attnbench: <code>attnbench describe {escape(entry.method)}</code> says what it computes.</p>"
    return (
        f"<p>A plugin by {escape(', '.join(_authors(entry)))}. attnbench did not run it to make this page: its numbers are "
        "those of the bundle. Its source is below; to measure it again, read it, save it, and run</p>"
        f"<pre><code>attnbench submit {escape(entry.method)} --plugin FILE --suite {escape(board.suite.name)} "
        "--author YOU --licence LICENCE</code></pre>"
    )


def _standing(board: Board, table: Table, entry: Entry) -> str:
    row = next((row for row in table.rows if row.entry.slug == entry.slug), None)
    if row is None:  # a table of the other kind of machines
        return ""
    if row.standing is None and entry.method != EXACT:
        words = f"<p>Not ranked: {escape(row.reason)}</p>" if row.reason else ""
    else:
        items = "".join(
            f"<dt>{escape(column.label)}</dt><dd>{_described(column, cell)}</dd>"
            for column, cell in zip(table.regime.columns, row.cells, strict=True)
            if cell is not None
        )
        words = f"<dl><dt>rank</dt><dd>{_rank(row)}{_group(board, row)}</dd>{items}</dl>{_strip(table, row)}"
    return f'<section class="regime"><h2>{escape(table.regime.title)}</h2>{words}</section>'


def _strip(table: Table, row: Row) -> str:
    """A figure: a dot for each block that a rank compares, a line at the mean, and a dashed one at that of the mean of V."""
    reference = next((one for one in table.rows if one.entry.method == BASELINE and one.by_block), None)
    if reference is None or not row.by_block or row.entry.method == EXACT:
        return ""
    log = table.regime.columns[0].scale == "log"
    means = [sum(one.by_block) / len(one.by_block) for one in (row, reference)]
    low, high = min(*row.by_block, *means), max(*row.by_block, *means)

    def place(value: float) -> float:
        return 10 + 480 * (value - low) / (high - low or 1)

    def words(value: float) -> str:
        return escape(digits(math.exp(value) if log else value))

    dots = "".join(f'<circle cx="{place(value):.1f}" cy="12" r="4"/>' for value in row.by_block)
    what = escape(table.regime.columns[0].label)
    blocks = "heads" if table.regime.columns[0].blocks == "heads" else "texts"
    caption = (
        f"{what} on each of {len(row.by_block)} {blocks}{', on a logarithmic axis' if log else ''}, from {words(low)} to "
        f"{words(high)}. The line is its mean, {words(means[0])}; the dashed line that of the mean of V, {words(means[1])}."
    )
    return (
        f'<figure><svg class="strip" viewBox="0 0 500 24" role="img" aria-label="{caption}">{dots}'
        f'<path d="M{place(means[0]):.1f} 1V23"/><path class="reference" d="M{place(means[1]):.1f} 1V23"/></svg>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _described(column: Column, cell: Number | list[Timed]) -> str:
    if isinstance(cell, Number):
        return _interval(column, cell)
    return "<br>".join(f"{_interval(column, one.number)} on {escape(one.machine)}" for one in cell)


def _group(board: Board, row: Row) -> str:
    if row.standing is None or not row.standing.equals:
        return ""
    by_slug = {entry.slug: entry for entry in board.entries}
    names = ", ".join(f"<code>{escape(by_slug[slug].method)}</code>" for slug in row.standing.equals)
    return f"; cannot be told apart from {names}"


def _claims(entry: Entry) -> str:
    """A row a claim, with the outcome that decides it."""
    if not entry.submitted:
        return ""
    by_claim: dict[str, list[dict[str, Any]]] = {}
    for one in entry.submissions[0].checks[entry.method]:
        by_claim.setdefault(str(one.get("claim", "")), []).append(one)
    rows = "".join(
        f'<tr><th scope="row">{escape(claim)}</th><td>{escape(_outcome(results))}</td><td class="number">{len(results)}</td>'
        f"<td>{escape(str(results[0].get('reason', results[0].get('implied', ''))))}</td></tr>"
        for claim, results in by_claim.items()
    )
    return (
        '<section><h2 id="claims">Claims</h2><p>What <code>attnbench check</code> says of each.</p>'
        '<div class="wide" tabindex="0" role="region" aria-label="Table of claims"><table><thead><tr><th scope="col">claim</th>'
        '<th scope="col">outcome</th><th scope="col">tests</th><th scope="col">why</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _outcome(results: list[dict[str, Any]]) -> str:
    """The worst of them; no claim of a submission fails."""
    outcomes = {str(one["outcome"]) for one in results}
    return next((word for word in ("UNDECIDED", "PASS", "IMPLIED", "SKIPPED") if word in outcomes), "unknown")


def _endings(entry: Entry) -> str:
    reasons: dict[str, int] = {}
    for one in entry.submissions[0].methods[entry.method].values():
        if one.ending != "done":
            words = f"{one.ending}: {one.reason}"
            reasons[words] = reasons.get(words, 0) + 1
    if not reasons:
        return ""
    items = "".join(f"<li>{escape(words)} ({_count(count, 'row')})</li>" for words, count in sorted(reasons.items()))
    return f"<section><h2>Not done</h2><ul>{items}</ul></section>"


def _measured_by(board: Board, entry: Entry) -> str:
    if not entry.submitted:
        return ""
    items = "".join(
        f"<li>{escape(', '.join(one.bundle.manifest.authors))}, with {escape(one.bundle.manifest.attnbench)}, on "
        f"{escape(one.machine_of(entry.method))}; {escape(one.bundle.manifest.licence)}; bundle <code>{one.bundle.digest}</code>"
        f"{'. ' + escape(one.bundle.manifest.note) if one.bundle.manifest.note else ''}</li>"
        for one in entry.submissions
    )
    cited = [one for one in entry.submissions if one.bundle.manifest.bibtex.strip()]
    link = (
        f'<p>To cite: <a href="../{_bibliography(cited[0])}">the papers of this bundle (BibTeX)</a>.</p>'
        if cited
        else ""
    )
    return f"<section><h2>Measured by</h2><ul>{items}</ul>{link}</section>"


def _source(entry: Entry) -> str:
    if not entry.source:
        return ""
    texts = "".join(
        f"<details><summary><code>{escape(name)}</code></summary><pre><code>{escape(text)}</code></pre></details>"
        for name, text in entry.submissions[0].bundle.plugin_sources.items()
    )
    return f"<section><h2>Source</h2>{texts}</section>"


def _as_data(board: Board) -> dict[str, Any]:
    return {
        "suite": board.suite.name,
        "error_rate": ERROR_RATE,
        "level": LEVEL,
        "submissions": [
            {
                "sha256": one.bundle.digest,
                "authors": one.bundle.manifest.authors,
                "licence": one.bundle.manifest.licence,
                "attnbench": one.bundle.manifest.attnbench,
                "machine": _places(one),
                "methods": one.bundle.manifest.methods,
            }
            for one in board.submissions
        ],
        "tables": [
            {
                "name": table.regime.name,
                "title": table.regime.title,
                "blocks": table.blocks,
                "rows": [_row_as_data(table, row) for row in table.rows],
            }
            for table in board.tables
        ],
    }


def _row_as_data(table: Table, row: Row) -> dict[str, Any]:
    one = row.standing
    return {
        "method": row.entry.method,
        "page": f"methods/{row.entry.slug}.html",
        "rank": one.rank if one else None,
        "last_rank": one.last_rank if one else None,
        "cannot_be_told_apart_from": list(one.equals) if one else [],
        "reason": row.reason,
        "numbers": {
            column.label: _numbers_as_data(cell)
            for column, cell in zip(table.regime.columns, row.cells, strict=True)
            if cell is not None
        },
    }


def _numbers_as_data(cell: Number | list[Timed]) -> Any:
    if isinstance(cell, Number):
        return {name: _finite(getattr(cell, name)) for name in ("value", "low", "high")}
    return [{"machine": one.machine, **_numbers_as_data(one.number)} for one in cell]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _csv(rows: Iterable[Sequence[Any]]) -> bytes:
    header, *lines = ([str(value) for value in row] for row in rows)
    return comma_separated(header, lines).encode()


def _ranked_rows(board: Board) -> Iterable[Sequence[Any]]:
    yield ("table", "method", "rank", "last_rank", "number", "machine", "value", "low", "high", "reason")
    for table in board.tables:
        for row in table.rows:
            ranks = (row.standing.rank, row.standing.last_rank) if row.standing else ("", "")
            for column, cell in zip(table.regime.columns, row.cells, strict=True):
                found = cell if isinstance(cell, list) else [Timed("", cell)] if cell else []
                for one in found:
                    numbers = (one.number.value, one.number.low, one.number.high)
                    yield (table.regime.name, row.entry.method, *ranks, column.label, one.machine, *numbers, row.reason)


def _all_numbers(board: Board) -> Iterable[Sequence[Any]]:
    shown = {column.metric for table in board.tables for column in table.regime.columns}
    yield ("bundle", "method", "run", "input", "n", "replicate", "ending", "reason", "metric", "values", "median")
    for submission in board.submissions:
        for method, replicates in sorted(submission.methods.items()):
            for condition, one in sorted(replicates.items()):
                where = (submission.bundle.digest[:12], method, condition.run, condition.input, condition.n)
                told = (*where, condition.replicate, one.ending, one.reason)
                for metric, values in sorted(one.numbers.items()):
                    if metric not in shown:
                        continue
                    yield (*told, metric, len(values), one.number(metric))
                if not one.numbers:
                    yield (*told, "", 0, "")
