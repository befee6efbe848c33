#!/usr/bin/python3
"""Write one self-contained HTML page from results files, with its figures as SVG, PDF and CSV beside it.

The page asks nothing of the network and needs no script. Equal results give an equal page. Prints the page's path.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from bundle import bundle
from plot import Drawn, chosen_figures, draw_all, write_files
from results import Misuse, Results, Verdict, read
from style import COLOURS, DARK_COLOURS, FAINT, GRID, INK, PAPER

PAGE = "index.html"
SCREEN_SCALE = 1.28  # figures have the type sizes of print; a full-width one then fills the page
# Colours of a figure that the page sets by name, so that figures follow its light or dark paper.
PAPER_NAMES = {INK: "ink", FAINT: "faint", GRID: "rule", PAPER: "paper"}
DARK_PAPER = {"ink": "#e8e6e3", "faint": "#a8a8a3", "rule": "#34383d", "paper": "#16191d"}


def page(results: Results, drawings: list[Drawn]) -> str:
    """The whole page."""
    recipes = [
        (recipe, list(group)) for recipe, group in itertools.groupby(drawings, key=lambda drawn: drawn.figure.recipe)
    ]
    sections = [
        _recipe(recipe, group, [verdict for verdict in results.verdicts if verdict.recipe == recipe])
        for recipe, group in recipes
    ] or [_nothing(results)]
    return TEMPLATE.substitute(
        light=_variables([*PAPER_NAMES.items(), *((c, f"series-{i}") for i, c in enumerate(COLOURS))]),
        dark=_variables(
            [
                *((DARK_PAPER[name], name) for name in PAPER_NAMES.values()),
                *((c, f"series-{i}") for i, c in enumerate(DARK_COLOURS)),
            ]
        ),
        summary=escape(_summary(results)),
        contents=_contents(recipes),
        sections="\n".join(sections),
        endings=_endings(results),
        runs=_runs(results),
    )


def _variables(pairs: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"--{name}: {colour};" for colour, name in pairs)


def _summary(results: Results) -> str:
    done = int((results.replicates["ending"] == "done").sum())
    words = [
        f"{_count(len(results.cells), 'cell')}, {_count(len(results.replicates), 'replicate')}, {done} of them done"
    ]
    if results.superseded:
        words.append(f"{_count(results.superseded, 'cell')} of older source versions left out")
    return "; ".join(words) + "."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _anchor(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "section"


def _recipe_title(recipe: str, drawings: list[Drawn]) -> str:
    return _first(drawings, "recipe_title") or recipe


def _first(drawings: list[Drawn], key: str) -> str:
    """The first non-empty value of an optional key in the descriptions of a recipe's figures."""
    return next((str(d.figure.description[key]) for d in drawings if d.figure.description.get(key)), "")


def _contents(recipes: list[tuple[str, list[Drawn]]]) -> str:
    links = [(f"recipe-{_anchor(recipe)}", _recipe_title(recipe, group)) for recipe, group in recipes]
    links += [("endings", "Not done"), ("runs", "Runs and environment")]
    return "\n".join(f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title in links)


def _recipe(recipe: str, drawings: list[Drawn], verdicts: list[Verdict]) -> str:
    anchor = f"recipe-{_anchor(recipe)}"
    statement = _first(drawings, "statement")
    parts = [
        f'<section aria-labelledby="{anchor}">',
        f'<h2 id="{anchor}">{escape(_recipe_title(recipe, drawings))}</h2>',
    ]
    if statement:
        parts.append(f'<p class="statement">{escape(statement)}</p>')
    if verdicts:
        parts += ['<dl class="verdicts">', *map(_verdict, verdicts), "</dl>"]
    return "\n".join([*parts, *map(_figure, drawings), "</section>"])


def _verdict(verdict: Verdict) -> str:
    return (
        f'<div><dt class="{escape(verdict.outcome.lower())}">{escape(verdict.outcome)}</dt>'
        f'<dd>{escape(verdict.statement)} <span class="numbers">{escape(verdict.numbers)}</span></dd></div>'
    )


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


def inline_svg(drawn: Drawn) -> str:
    """The figure's SVG as an element of the page: named for screen readers, ids of its own, colours by name."""
    text = drawn.files["svg"].decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"<title>.*?</title>\s*", "", text, count=1, flags=re.S)
    prefix = f"{_anchor(drawn.stem)}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", text)
    names = {**PAPER_NAMES, **{colour: f"series-{i}" for i, colour in enumerate(COLOURS)}}
    text = re.sub("|".join(names), lambda found: f"var(--{names[found.group()]}, {found.group()})", text)
    description = drawn.figure.description
    label = f"{description.get('title') or drawn.figure.name}. {description.get('caption', '')}".strip()
    width, height = re.findall(r'viewBox="0 0 (\S+) (\S+)"', text)[0]
    opening = (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" '
        f'style="width: {float(width) * SCREEN_SCALE:g}pt">'
    )
    text = opening + text[text.index(">") + 1 :]
    return text.replace("xlink:href", "href")


def _nothing(results: Results) -> str:
    has = "The results have cells, but no figure" if len(results.cells) else "There are no results yet, and no figure"
    return (
        f'<section aria-label="Figures"><p class="statement">{has}. Figures come with the published statements that '
        "attnbench reproduces:</p><pre><code>attnbench reproduce</code></pre></section>"
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
    """Escaped text that may also break after the separators of a spec."""
    return "<wbr>".join(map(escape, re.split(r"(?<=[:,])(?=\S)", text)))


def _endings(results: Results) -> str:
    """Cells that were not done, one row for each ending and reason, with the replicates it happened to."""
    ended = results.replicates[results.replicates["ending"] != "done"]
    if len(ended) == 0:
        return "<p>Every replicate was done.</p>"
    ended = ended.assign(reason=ended["reason"].fillna("")).merge(results.cells, left_on="key", right_index=True)
    groups = ended.groupby(
        ["ending", "reason", "experiment", "method", "input", "n", "d", "causal", "threads"], dropna=False
    )
    rows = [
        [*map(str, values[:5]), _problem(*values[5:]), f"{count:,}"]
        for values, count in groups["replicate"].size().items()
    ]
    header = ["Ending", "Reason", "Experiment", "Method", "Input", "Problem", "Replicates"]
    return _table("Cells that ended otherwise than done", header, rows)


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


TEMPLATE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>attnbench report</title>
<style>
:root { $light }
@media screen and (prefers-color-scheme: dark) { :root { $dark } }
* { box-sizing: border-box; }
html { background: var(--paper); color: var(--ink); font: 100%/1.55 system-ui, sans-serif; }
body { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
a { color: inherit; text-decoration-color: var(--faint); text-underline-offset: .2em; }
a:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--series-0); outline-offset: 3px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.4rem; line-height: 1.25; margin: 3.5rem 0 .5rem; padding-top: 1rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 0 0 .6rem; }
header p, .files, figcaption { color: var(--faint); }
nav ol { list-style: none; margin: 1.4rem 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; }
.statement { max-width: 46rem; font-size: 1.06rem; margin: .4rem 0 0; }
.verdicts { max-width: 52rem; margin: 1.1rem 0 0; }
.verdicts div { display: grid; grid-template-columns: 7.6rem 1fr; gap: 0 1rem; padding: .45rem 0;
  border-top: 1px solid var(--rule); }
.verdicts dt { font-size: .78rem; font-weight: 700; letter-spacing: .05em; padding-top: .2rem; }
.verdicts dt.fail { text-decoration: underline 3px; text-underline-offset: .2em; }
.verdicts dt.ambiguous { color: var(--faint); }
.verdicts dd { margin: 0; }
.verdicts .numbers { color: var(--faint); }
figure { margin: 2.2rem 0 0; break-inside: avoid; }
figure svg { display: block; max-width: 100%; height: auto; }
figcaption { font-size: .92rem; max-width: 46rem; }
figcaption p { margin: .5rem 0 0; }
.files a { margin-right: 1rem; }
.wide { overflow-x: auto; margin-top: 1.2rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { text-align: left; vertical-align: top; padding: .32rem 1.1rem .32rem 0; border-bottom: 1px solid var(--rule); }
thead th { font-weight: 600; }
tbody th { font-weight: 400; color: var(--faint); }
code, pre { font: .92em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; border: 1px solid var(--rule); border-radius: .3rem; display: inline-block; }
@media print {
  html { font-size: 10pt; } body { max-width: none; padding: 0; } nav, .skip, .files { display: none; }
  h2, h3 { break-after: avoid; } tr { break-inside: avoid; } .wide { overflow: visible; }
}
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the figures</a>
<header>
<h1>attnbench report</h1>
<p>$summary</p>
<nav aria-label="Contents"><ol>
$contents
</ol></nav>
</header>
<main id="main">
$sections
<section aria-labelledby="endings">
<h2 id="endings">Not done</h2>
$endings
</section>
<section aria-labelledby="runs">
<h2 id="runs">Runs and environment</h2>
$runs
</section>
</main>
</body>
</html>
"""
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULTS", help="results files of attnbench, read as one"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help=f"where {PAGE} and the figures go"
    )
    parser.add_argument(
        "--bundle", action="store_true", help="also what the page rests on: the verdicts and the environment"
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
        # The page comes last, so that what it links to is there.
        write_files(options.output, {**files, PAGE: page(results, drawings).encode()})
    except Misuse as misuse:
        print(f"report.py: {misuse}", file=sys.stderr)
        return 2
    print(options.output / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
