#!/usr/bin/python3
"""Write one self-contained HTML page from results files, with its figures as SVG, PDF and CSV beside it.

Verdicts and figures work without JavaScript. With it, readers can filter the verdicts, and see every cell of the
results in a plot and a table. The page loads nothing from the network. Equal results give an equal page. Prints the
page's path.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
from bundle import bundle
from inline_svg import NAMES, inline_svg, with_classes
from plot import Drawn, chosen_figures, draw_all, write_files
from plotly.offline import get_plotlyjs
from results import Misuse, Reproduction, Results, Verdict, read, split_spec
from style import DARK_COLOURS
from summaries import packed, packed_summaries

PAGE = "index.html"
PARTS = Path(__file__).resolve().parent / "page"  # style, markup and scripts of the page
SCRIPTS = ("fragment.js", "unpack.js", "verdicts.js", "cells.js", "table.js", "points.js", "explorer.js", "start.js")
DARK_PAPER = {"ink": "#e8e6e3", "faint": "#a8a8a3", "rule": "#34383d", "paper": "#16191d"}


@dataclass(frozen=True)
class Recipe:
    """A recipe of the results: its figures, its verdicts, and the cells that these use."""

    name: str
    drawings: list[Drawn]
    verdicts: list[Verdict]
    reproduction: Reproduction | None
    cells: list[str]  # keys

    @property
    def title(self) -> str:
        return self.first("recipe_title") or self.name

    @property
    def anchor(self) -> str:
        return f"recipe-{_anchor(self.name)}"

    @property
    def smoke(self) -> bool:
        """Whether it ran at smoke sizes, which show only that everything runs: no verdict is compared with what is
        expected."""
        return self.reproduction is not None and self.reproduction.size == "smoke"

    def unexpected(self, verdict: Verdict) -> bool:
        return verdict.contradicts and not self.smoke

    def first(self, key: str) -> str:
        """The first non-empty value of an optional key in the descriptions of its figures."""
        return next((str(d.figure.description[key]) for d in self.drawings if d.figure.description.get(key)), "")


def page(results: Results, drawings: list[Drawn]) -> str:
    """The whole page. With fewer drawings than the results have figures, only the recipes of the drawings are on it."""
    recipes = _recipes(results, drawings)
    sections, classes = with_classes("\n".join(map(_recipe, recipes)))
    script = f'"use strict";\n{"".join(map(_part, SCRIPTS))}'
    methods = results.cells["method"].map(lambda spec: split_spec(spec)[0])
    return Template(_part("page.html")).substitute(
        light=_variables((name, colour) for colour, name in NAMES.items()),
        dark=_variables([*DARK_PAPER.items(), *((f"series-{i}", c) for i, c in enumerate(DARK_COLOURS))]),
        style=f"{_part('style.css')}{classes}",
        summary=escape(_summary(results)),
        contents=_contents(results),
        recipe_list=_recipe_list(recipes),
        notices=_notices(results, recipes),
        verdicts=_verdicts(recipes, methods),
        recipes=sections,
        cells=_part("cells.html") if len(results.cells) else "",
        methods=_methods(results, recipes, methods),
        endings=_endings(results),
        runs=_runs(results),
        script_hashes=f"{_hash_of(script)} {_hash_of(get_plotlyjs())}",
        scripts=_scripts(results, recipes, script),
    )


def _part(name: str) -> str:
    return (PARTS / name).read_text()


def _hash_of(script: str) -> str:
    """As a content security policy names it: the browser runs the page's own scripts, and none that a results file
    might bring."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _scripts(results: Results, recipes: list[Recipe], script: str) -> str:
    """The page's scripts, and the packed data that they unpack when needed: the summaries of cells, and Plotly."""
    if len(results.cells) == 0:
        return ""
    cells = {recipe.name: recipe.cells for recipe in recipes}
    return (
        f'<script type="text/plain" id="packed-cells">{packed_summaries(results, cells)}</script>\n'
        f'<script type="text/plain" id="packed-plotly">{packed(get_plotlyjs())}</script>\n'
        f"<script>{script}</script>"
    )


def _recipes(results: Results, drawings: list[Drawn]) -> list[Recipe]:
    drawn = {
        recipe: list(group) for recipe, group in itertools.groupby(drawings, key=lambda drawn: drawn.figure.recipe)
    }
    names = set(drawn)
    if len(drawings) == len(results.figures):
        names |= {verdict.recipe for verdict in results.verdicts} | set(results.reproductions)
    recipes = []
    for name in sorted(names):
        reproduction = results.reproductions.get(name)
        panels = [panel for drawing in drawn.get(name, []) for panel in drawing.figure.description["panels"]]
        figures = [panel.get("cells", []) for panel in panels]
        recipes.append(
            Recipe(
                name,
                drawn.get(name, []),
                [verdict for verdict in results.verdicts if verdict.recipe == name],
                reproduction,
                sorted({*(reproduction.cells if reproduction else []), *itertools.chain(*figures)}),
            )
        )
    return recipes


def _variables(pairs: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in pairs)


def _summary(results: Results) -> str:
    done = int((results.replicates["ending"] == "done").sum())
    words = [
        f"{_count(len(results.cells), 'cell')}, {_count(len(results.replicates), 'replicate')}, {done:,} of them done"
    ]
    if results.superseded:
        words.append(f"{_count(results.superseded, 'cell')} of older source versions left out")
    return "; ".join(words) + "."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _anchor(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "section"


def _contents(results: Results) -> str:
    links = [("verdicts", "Verdicts")]
    if len(results.cells):
        links += [("cells", "Explore the cells"), ("methods", "Methods")]
    links += [("endings", "Not done"), ("runs", "Runs and environment")]
    return "\n".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in links)


def _recipe_list(recipes: list[Recipe]) -> str:
    if not recipes:
        return ""
    links = "\n".join(f'<li><a href="#{recipe.anchor}">{escape(recipe.title)}</a></li>' for recipe in recipes)
    return f"<details><summary>{_count(len(recipes), 'recipe')}</summary><ol>\n{links}\n</ol></details>"


def _notices(results: Results, recipes: list[Recipe]) -> str:
    notices = []
    smoke = [recipe.name for recipe in recipes if recipe.smoke]
    if smoke:
        which = "All recipes" if len(smoke) == len(recipes) else ", ".join(smoke)
        notices.append(
            f"{escape(which)}: run at smoke sizes, which show only that everything runs. Their verdicts are "
            "not compared with what is expected. <code>attnbench reproduce</code> runs sizes that support conclusions."
        )
    machines = sorted(set(results.cells["machine"]) - {""})
    if len(machines) > 1:
        names = "; ".join(map(escape, machines))
        notices.append(f"Timings of {len(machines)} machines, which are separate everywhere: {names}.")
    if len(results.cells) and not (results.replicates["ending"] == "done").any():
        notices.append('Nothing was done: <a href="#endings">why</a>.')
    return "\n".join(f'<p class="notice" role="note">{notice}</p>' for notice in notices)


def _verdicts(recipes: list[Recipe], methods: pd.Series[str]) -> str:
    """The table of all verdicts, and its filters."""
    judged = [(recipe, verdict) for recipe in recipes for verdict in recipe.verdicts]
    if not judged:
        return _nothing(recipes, len(methods))
    tested = {recipe.name: sorted(set(methods.reindex(recipe.cells).dropna())) for recipe in recipes}
    outcomes = Counter(verdict.outcome for _, verdict in judged)
    unexpected = sum(recipe.unexpected(verdict) for recipe, verdict in judged)
    words = [_by_outcome(outcomes)]
    words += [f"{unexpected} not as expected"] if not all(recipe.smoke for recipe in recipes) else []
    rows = "\n".join(_verdict_row(recipe, verdict, tested[recipe.name]) for recipe, verdict in judged)
    return (
        '<section aria-labelledby="verdicts"><h2 id="verdicts">Verdicts</h2>\n'
        f"<p>{_count(len(judged), 'verdict')}: {', '.join(words)}.</p>\n"
        '<form class="controls" id="verdict-form" hidden>'
        f"{_select('Outcome', 'outcome', [*sorted(outcomes), *(['not as expected'] if unexpected else [])])}"
        f"{_select('Source', 'source', sorted({verdict.source_words for _, verdict in judged}))}"
        f"{_select('Method', 'tested', sorted({*itertools.chain(*tested.values())}))}"
        '<label>Text <input name="text" type="search" autocomplete="off"></label>'
        '<p><button type="button" data-reset>Reset</button> '
        '<span id="verdict-words" role="status" aria-live="polite"></span></p>'
        "</form>\n"
        '<table class="verdicts"><caption>Verdicts</caption><thead><tr><th scope="col">Outcome</th>'
        '<th scope="col">Statement, and the numbers that decide</th><th scope="col">Source</th>'
        '<th scope="col">Expected</th><th scope="col">Evidence</th><th scope="col">Seconds</th></tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></section>"
    )


def _by_outcome(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {escape(outcome)}" for outcome, count in sorted(outcomes.items()))


def _select(label: str, name: str, values: list[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{label} <select name="{name}"><option value="">any</option>{options}</select></label>'


def _verdict_row(recipe: Recipe, verdict: Verdict, methods: list[str]) -> str:
    unexpected = recipe.unexpected(verdict)
    outcomes = [verdict.outcome, *(["not as expected"] if unexpected else [])]
    expected = "–" if recipe.smoke or verdict.expected == "OPEN" else verdict.expected
    seconds = f"{recipe.reproduction.seconds:.1f}" if recipe.reproduction else "–"
    return (
        f'<tr data-outcome="{escape("|".join(outcomes))}" data-source="{escape(verdict.source_words)}" '
        f'data-tested="{escape("|".join(methods))}">'
        f"<td>{_outcome(recipe, verdict)}</td>"
        f"<td>{_statement(verdict)}</td>"
        f'<td class="source" data-label="Source">{escape(verdict.source_words)}</td>'
        f'<td data-label="Expected">{escape(expected)}</td>'
        f'<td data-label="Evidence"><a href="#{recipe.anchor}">{escape(recipe.name)}</a> '
        f'<a href="{_cells_link("recipe", recipe.name)}" aria-label="Cells of {escape(recipe.name)}">cells</a></td>'
        f'<td class="number" data-label="Seconds, of the recipe">{seconds}</td></tr>'
    )


def _outcome(recipe: Recipe, verdict: Verdict) -> str:
    mark = '<span class="unexpected">not as expected</span>' if recipe.unexpected(verdict) else ""
    return f'<span class="outcome {escape(verdict.outcome.lower())}">{escape(verdict.outcome)}</span>{mark}'


def _statement(verdict: Verdict) -> str:
    region = f' <span class="region">({escape(verdict.region)})</span>' if verdict.region else ""
    return f'{escape(verdict.statement)}{region} <span class="numbers">{escape(verdict.numbers)}</span>'


def _cells_link(kind: str, name: str) -> str:
    """A link within the page to the cells of a recipe, a method, ...; the page's script shows them."""
    return f"#cells={kind}:{escape(name)}"


def _recipe(recipe: Recipe) -> str:
    statement = recipe.first("statement")
    parts = [
        f'<section aria-labelledby="{recipe.anchor}">',
        f'<h2 id="{recipe.anchor}">{escape(recipe.title)}</h2>',
    ]
    if statement:
        parts.append(f'<p class="statement">{escape(statement)}</p>')
    if recipe.verdicts:
        parts += ['<dl class="verdicts">', *(_verdict(recipe, verdict) for verdict in recipe.verdicts), "</dl>"]
    parts.append(_how_to_run(recipe))
    return "\n".join([*parts, *map(_figure, recipe.drawings), "</section>"])


def _verdict(recipe: Recipe, verdict: Verdict) -> str:
    source = f' <span class="source">[{escape(verdict.source_words)}]</span>'
    return (
        f"<div><dt>{_outcome(recipe, verdict)}</dt>"
        f"<dd>{_statement(verdict)}{source}{_explanation(verdict)}{_compared(verdict)}</dd></div>"
    )


def _explanation(verdict: Verdict) -> str:
    """The source's statement and how it was judged, in a collapsed element."""
    expected = f"{verdict.expected}, because {verdict.because}" if verdict.because else ""
    quoted = f"<blockquote>{escape(verdict.quotation)}</blockquote>" if verdict.quotation else ""
    rows = [
        ("The source says", quoted or escape(verdict.paraphrase)),
        ("Measured", escape(verdict.definition)),
        ("Threshold", escape(verdict.threshold)),
        ("Expected", escape(expected)),
    ]
    words = "".join(f"<p><b>{name}.</b> {text}</p>" for name, text in rows if text)
    return f'<details class="explanation"><summary>How it was judged</summary>{words}</details>' if words else ""


def _compared(verdict: Verdict) -> str:
    """Every comparison behind the verdict, in a collapsed element."""
    compared = json.loads(verdict.compared)
    if len(compared) < 2:
        return ""
    rows = "".join(
        f'<tr><td>{escape(one["what"])}</td><td>{escape(one["side"])}</td>'
        f'<td class="number">{_number(one["value"])}</td>'
        f'<td class="number">{_number(one["low"])}</td><td class="number">{_number(one["high"])}</td>'
        f'<td class="number">{escape(str(one["count"]))}</td></tr>'
        for one in compared
    )
    return (
        f'<details class="explanation"><summary>{len(compared)} comparisons</summary><div class="wide"><table><thead><tr>'
        '<th scope="col">Setting</th><th scope="col">Side</th><th scope="col">Value</th><th scope="col">from</th>'
        f'<th scope="col">to</th><th scope="col">Samples</th></tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _number(value: float | None) -> str:
    """JSON has null for infinite values and NaN."""
    return "–" if value is None else f"{value:.4g}"


def _how_to_run(recipe: Recipe) -> str:
    """The cells of the recipe and its command. Without JavaScript, links to the cells lead here."""
    link = _cells_link("recipe", recipe.name)
    words = f'<a href="{link}">{_count(len(recipe.cells), "cell")}</a>'
    if recipe.reproduction and recipe.reproduction.command:
        words += (
            f", {recipe.reproduction.seconds:.1f} s, {escape(recipe.reproduction.size)} size: "
            f"<code>{escape(recipe.reproduction.command)}</code>"
        )
    return f'<p class="run" id="{link[1:]}">{words}</p>'


def _figure(drawn: Drawn) -> str:
    description = drawn.figure.description
    title = escape(str(description.get("title") or drawn.figure.name))
    files = " ".join(
        f'<a href="{drawn.stem}.{ending}" download>{words}</a>'
        for ending, words in (("csv", "CSV"), ("svg", "SVG"), ("pdf", "PDF"))
    )
    missing = [(panel.description.get("title", ""), panel.missing) for panel in drawn.panels if panel.missing]
    empty = "".join(
        f'<p class="missing">{escape(str(where))}: <code>{escape(why)}</code></p>' for where, why in missing
    )
    return (
        f'<figure id="figure-{_anchor(drawn.stem)}">\n<h3>{title}</h3>\n{inline_svg(drawn)}\n'
        f"<figcaption><p>{escape(str(description.get('caption', '')))}</p>{empty}"
        f'<p class="files">{files}</p></figcaption>\n</figure>'
    )


def _nothing(recipes: list[Recipe], cells: int) -> str:
    """The section in place of the verdicts of a report without any."""
    has = "There are no results yet" if not cells else "The results have cells, but no verdict"
    has += "" if any(recipe.drawings for recipe in recipes) else ", and no figure"
    return (
        f'<section aria-labelledby="verdicts"><h2 id="verdicts">Verdicts</h2><p class="statement">{has}. They come '
        "with the published statements that attnbench reproduces:</p><pre><code>attnbench reproduce</code></pre></section>"
    )


def _methods(results: Results, recipes: list[Recipe], methods: pd.Series[str]) -> str:
    """An element per method: its measurements, and the recipes that judge it."""
    if len(methods) == 0:
        return ""
    done = results.replicates["ending"] == "done"
    replicates = pd.DataFrame({"done": done, "key": results.replicates["key"]}).groupby("key")["done"]
    counted = pd.DataFrame({"done": replicates.sum(), "all": replicates.size()}).reindex(results.cells.index).fillna(0)
    measured = results.cells[["method"]].assign(
        name=methods, experiment=results.cells["experiment"].map(lambda spec: split_spec(spec)[0]), **counted
    )
    by_key = {key: name for key, name in methods.items()}
    judged: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        for name in sorted({by_key[key] for key in recipe.cells if key in by_key}):
            judged.setdefault(name, []).append(recipe)
    pages = [_method(str(name), cells, judged.get(str(name), [])) for name, cells in measured.groupby("name")]
    return (
        '<section class="methods" aria-labelledby="methods"><h2 id="methods">Methods</h2>\n'
        + "\n".join(pages)
        + "</section>"
    )


def _method(name: str, cells: pd.DataFrame, recipes: list[Recipe]) -> str:
    link = _cells_link("method", name)
    rows = [
        [str(experiment), f"{len(group):,}", f"{group['done'].sum():,.0f} of {group['all'].sum():,.0f}"]
        for experiment, group in cells.groupby("experiment")
    ]
    evidence = []
    for recipe in recipes:
        words = _by_outcome(Counter(verdict.outcome for verdict in recipe.verdicts))
        evidence.append(f'<li><a href="#{recipe.anchor}">{escape(recipe.title)}</a>{words and f": {words}"}</li>')
    return (
        f'<details id="method={escape(name)}"><summary><code>{escape(name)}</code> '
        f"{_count(cells['method'].nunique(), 'spec')}, {_count(len(cells), 'cell')}</summary>\n"
        + _table(f"Measurements of {name}", ["Experiment", "Cells", "Replicates done"], rows)
        + f'<p id="{link[1:]}"><a href="{link}">Its cells</a>; what it is: '
        f"<code>attnbench describe {escape(name)}</code></p>"
        + (f"<p>Recipes that use it:</p><ul>{''.join(evidence)}</ul>" if evidence else "")
        + "</details>"
    )


def _table(caption: str, header: list[str], rows: list[list[str]], row_heads: bool = False) -> str:
    """An HTML table; cells are text. row_heads: the first column names the row."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = []
    for row in rows:
        first = f'<th scope="row">{escape(row[0])}</th>' if row_heads else f"<td>{_breakable(row[0])}</td>"
        body.append(f"<tr>{first}{''.join(f'<td>{_breakable(cell)}</td>' for cell in row[1:])}</tr>")
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(body) + "\n</tbody></table></div>"
    )


def _breakable(text: str) -> str:
    """Escaped text that browsers may also break after the separators of a spec."""
    return "<wbr>".join(map(escape, re.split(r"(?<=[:,])(?=\S)", text)))


def _endings(results: Results) -> str:
    """Cells that were not done: one row for each ending and reason, with the number of replicates."""
    ended = results.replicates[results.replicates["ending"] != "done"]
    if len(ended) == 0:
        return "<p>Every replicate was done.</p>"
    ended = ended.assign(reason=ended["reason"].fillna("")).merge(results.cells, left_on="key", right_index=True)
    groups = ended.groupby(
        ["ending", "reason", "experiment", "method", "input", "n", "d", "causal", "threads"], dropna=False
    )
    counts = groups["replicate"].size()
    rows = [
        [*map(str, values[:5]), _problem(*values[5:]), f"{count:,}"]
        for values, count in zip(counts.index.to_list(), counts)
    ]
    header = ["Ending", "Reason", "Experiment", "Method", "Input", "Problem", "Replicates"]
    return _table("Cells with another ending than done", header, rows)


def _problem(n: int, d: int, causal: int, threads: int) -> str:
    words = [f"n\u00a0=\u00a0{n}", f"d\u00a0=\u00a0{d}"] + ["causal"] * bool(causal)
    return ", ".join(words + [_count(threads, "thread")] * bool(threads))


def _flat(environment: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested objects as dotted names, values as text."""
    flat: dict[str, str] = {}
    for name, value in environment.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        elif isinstance(value, bool):
            flat[prefix + name] = "yes" if value else "no"
        elif isinstance(value, int):
            flat[prefix + name] = f"{value:,}"
        elif isinstance(value, list):
            flat[prefix + name] = ", ".join(map(str, value))
        else:
            flat[prefix + name] = str(value)
    return flat


def _runs(results: Results) -> str:
    """The runs with their command lines, and each different environment once."""
    if len(results.runs) == 0:
        return "<p>No run is recorded.</p>"
    environments: list[dict[str, str]] = []
    rows = []
    for _, run in results.runs.iterrows():
        environment = _flat(run["environment"])
        if environment not in environments:
            environments.append(environment)
        letter = _letters(environments.index(environment))
        rows.append([Path(run["file"]).name, str(run["id"]), str(run["started"]), letter, str(run["command"])])
    parts = [_table("Runs", ["File", "Run", "Started", "Environment", "Command"], rows)]
    names = list(dict.fromkeys(name for environment in environments for name in environment))
    table = [[name, *(environment.get(name, "–") for environment in environments)] for name in names]
    if table:
        parts.append(
            _table("Environments", ["", *(_letters(i) for i in range(len(environments)))], table, row_heads=True)
        )
    return "\n".join(parts)


def _letters(i: int) -> str:
    """A, B, ..., Z, A1, B1, ..."""
    return chr(ord("A") + i % 26) + (str(i // 26) if i >= 26 else "")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULTS", help="results files of attnbench, read as one"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help=f"where {PAGE} and the figures go"
    )
    parser.add_argument(
        "--bundle", action="store_true", help="also write the verdicts, the environment and the results files"
    )
    parser.add_argument(
        "--figure", nargs="+", default=[], metavar="NAME", help="only these: NAME, RECIPE or RECIPE/NAME"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        results = read(options.results)
        drawings = draw_all(results, chosen_figures(results, options.figure))
        files = {name: content for drawn in drawings for name, content in drawn.named_files().items()}
        if options.bundle:
            files |= bundle(results, options.output)
        # Write the page last, so that the files it links to exist.
        write_files(options.output, {**files, PAGE: page(results, drawings).encode()})
    except Misuse as misuse:
        print(f"report.py: {misuse}", file=sys.stderr)
        return 2
    print(options.output / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
