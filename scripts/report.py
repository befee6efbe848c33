"""Write a page from a results file: index.html, with its figures as SVG, PDF and CSV and its data beside it.

The page loads nothing from the network. Claims, figures and tables work without JavaScript. With it, readers can filter
the claims, enlarge figures, and see every cell of the results in a plot and a table. Equal results give an equal page.
Prints the page's path.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

import pandas as pd
from bundle import bundle
from compared import compared
from interactive import method_looks, packed_figures
from literature import Judged, badge, badges, comparison_files, literature
from page_frame import dark_colours, hash_of, light_colours
from panel import axis_names, is_log, panels_of
from panels import axis_label
from plot import Drawn, chosen_figures, draw_all, write_files
from plotly.offline import get_plotlyjs
from results import Misuse, Reproduction, Results, Verdict, read, split_spec
from summaries import packed_json, summaries

PAGE = "index.html"
PARTS = Path(__file__).resolve().parent / "page"  # style, markup and scripts of the page
# The scripts of the page, in the order in which they need each other.
SCRIPTS = tuple(
    f"{name}.js"
    for name in "fragment loading verdicts finding figures compared cells table points cell explorer start".split()
)
SCREEN_SCALE = 1.28  # figures have the type sizes of print; a full-width one then fills the page
CARDS = 4
MOST_NAMES = 4  # of experiments or methods in the title


@dataclass(frozen=True)
class Recipe:
    """A recipe of the results: its figures, its statements, and the cells that these use."""

    name: str
    drawings: list[Drawn]
    judged: list[Judged]
    reproduction: Reproduction | None
    cells: list[str]  # keys
    topic: str  # the experiment that most of its cells ask

    @property
    def title(self) -> str:
        return self.first("recipe_title") or self.name

    @property
    def anchor(self) -> str:
        return _recipe_anchor(self.name)

    @property
    def place(self) -> int:
        """Of its question among the cards of the first screen."""
        return int(self.first("place") or 0)

    @property
    def smoke(self) -> bool:
        return self.reproduction is not None and self.reproduction.size == "smoke"

    def first(self, key: str) -> str:
        """The first non-empty value of an optional key in the descriptions of its figures."""
        return next((str(d.figure.description[key]) for d in self.drawings if d.figure.description.get(key)), "")


def page(results: Results, recipes: list[Recipe]) -> str:
    """The whole page."""
    methods = _names(results)
    judged = [one for recipe in recipes for one in recipe.judged]
    script = f'"use strict";\n{"".join(map(_part, SCRIPTS))}'
    return Template(_part("page.html")).substitute(
        light=light_colours(),
        dark=dark_colours(),
        style=_part("style.css"),
        title=escape(_page_title(results, recipes)),
        summary=_summary(results),
        contents=_contents(results, bool(judged), recipes),
        notices=_notices(results, recipes),
        cards=_cards(recipes),
        compared=_compared(recipes),
        literature=literature(judged) if judged else "" if len(methods) else _nothing(),
        figures=_figures(recipes),
        cells=_explorer(results),
        methods=_methods(results, recipes, methods),
        endings=_endings(results),
        runs=_runs(results) + ("" if judged or not len(methods) else _unjudged(recipes)),
        script_hash=hash_of(script),
        scripts=f"<script>{script}</script>",
    )


def data_files(results: Results, recipes: list[Recipe]) -> dict[str, bytes]:
    """The files that the page's scripts load when a reader asks for a plot (the points of the figures, the summaries of
    the cells, and Plotly), and the tables of comparisons that are too long for the page."""
    if not len(results.cells):
        return {}
    packed = {"figures.js": ("packedFigures", packed_figures([one for recipe in recipes for one in recipe.drawings]))}
    if _summarised(results):
        cells = summaries(results, {recipe.name: recipe.cells for recipe in recipes})
        cells["looks"] = method_looks(results)
        packed["cells.js"] = ("packedCells", packed_json(cells))
    files = {name: f"const {word} = {json.dumps(text)};\n".encode() for name, (word, text) in packed.items()}
    comparisons = comparison_files([one for recipe in recipes for one in recipe.judged])
    return {**files, **comparisons, "plotly.js": get_plotlyjs().encode()}


def _summarised(results: Results) -> bool:
    """attnbench summarises no file with more cells than a browser can show (harness/figures/draw_figures.hpp)."""
    return len(results.summaries) > 0 or not (results.replicates["ending"] == "done").any()


def _explorer(results: Results) -> str:
    if _summarised(results):
        return _part("cells.html") if len(results.cells) else ""
    return (
        '<section aria-labelledby="cells"><h2 id="cells">Explore the cells</h2>'
        f"<p>{_count(len(results.cells), 'cell')} are more than a browser can show here. "
        "<code>attnbench show</code> and <code>attnbench export</code> take <code>--where NAME=VALUE</code>.</p></section>"
    )


def _part(name: str) -> str:
    return (PARTS / name).read_text()


def _names(results: Results) -> pd.Series[str]:
    """By cell, the name of its method without parameters."""
    return results.cells["method"].map(lambda spec: split_spec(spec)[0])


def recipes_of(results: Results, drawings: list[Drawn]) -> list[Recipe]:
    """The recipes of the page. With fewer drawings than the results have figures, only those of the drawings."""
    methods = _names(results)
    drawn = {
        recipe: list(group) for recipe, group in itertools.groupby(drawings, key=lambda drawn: drawn.figure.recipe)
    }
    names = set(drawn)
    if len(drawings) == len(results.figures):
        names |= {verdict.recipe for verdict in results.verdicts} | set(results.reproductions)
    experiments = results.cells["experiment"].map(lambda spec: split_spec(spec)[0])
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in results.verdicts:
        verdicts.setdefault(verdict.recipe, []).append(verdict)
    recipes, number = [], itertools.count(1)
    for name in sorted(names):
        made = results.reproductions.get(name)
        panels = [panel for drawing in drawn.get(name, []) for panel in drawing.figure.description["panels"]]
        cells = sorted({*(made.cells if made else []), *itertools.chain(*(panel.get("cells", []) for panel in panels))})
        tested = sorted(set(methods.reindex(cells).dropna()))
        asked = [str(panel.get("where", {}).get("experiment", "")) for panel in panels]
        topics = Counter([*experiments.reindex(cells).dropna(), *(split_spec(spec)[0] for spec in asked if spec)])
        recipes.append(
            Recipe(
                name,
                drawn.get(name, []),
                [Judged(v, made, _recipe_anchor(name), tested, next(number)) for v in verdicts.get(name, [])],
                made,
                cells,
                topics.most_common(1)[0][0] if topics else "closed forms",
            )
        )
    return recipes


def _recipe_anchor(name: str) -> str:
    return f"recipe-{_anchor(name)}"


def _page_title(results: Results, recipes: list[Recipe]) -> str:
    """The recipes, or the experiments and the methods that were run. Of none or too many, the file's name."""
    reproduced = [recipe.name for recipe in recipes if recipe.reproduction]
    if reproduced:
        return f"Reproduced: {_few(reproduced, 'recipe')}"
    experiments = sorted({split_spec(spec)[0] for spec in results.cells["experiment"]})
    if not 0 < len(experiments) <= MOST_NAMES:
        return results.file.name
    return f"{', '.join(map(_heading, experiments))}: {_few(sorted(set(_names(results))), 'method')}"


def _few(names: list[str], noun: str) -> str:
    return ", ".join(names) if len(names) <= MOST_NAMES else _count(len(names), noun)


def _summary(results: Results) -> str:
    """How much was measured, where and when, in a line."""
    done = int((results.replicates["ending"] == "done").sum())
    words = [f"{_count(len(results.cells), 'cell')}, {_count(done, 'replicate')} done"]
    if done < len(results.replicates):
        words[-1] += f" of {len(results.replicates):,}"
    if results.superseded:
        words.append(f"{_count(results.superseded, 'cell')} of older source versions left out")
    environments = [environment for environment in results.runs["environment"] if environment]
    models = {str(environment.get("processor", {}).get("model", "")) for environment in environments} - {""}
    words += sorted(models)
    if len(results.runs):
        days = sorted({str(started)[:10] for started in results.runs["started"]})
        words.append(days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    return escape("; ".join(words)) + "."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _anchor(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "section"


def _contents(results: Results, judged: bool, recipes: list[Recipe]) -> str:
    links = [("top", "Top")] + [("literature", "The literature")] * judged
    if any(recipe.drawings for recipe in recipes):
        links.append(("figures", "Figures"))
    if len(results.cells):
        links += [("cells", "Explore the cells"), ("methods", "Methods")]
    links += [("endings", "Not done"), ("runs", "Runs and environment")]
    return "\n".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in links)


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


def _cells_link(kind: str, name: str) -> str:
    """A link within the page to the cells of a recipe, a method, ...; the page's script shows them."""
    return f"#cells={kind}:{escape(name)}"


def _cards(recipes: list[Recipe]) -> str:
    """The questions of the first screen, each with a figure, an answer and its number. If no recipe asks one, the first
    figures."""
    drawn = [recipe for recipe in recipes if recipe.drawings]
    asking = sorted((recipe for recipe in drawn if recipe.first("headline")), key=lambda recipe: recipe.place)
    asked = [(recipe.first("headline"), recipe.drawings[0], recipe.judged[:1]) for recipe in asking]
    first: list[tuple[str, Drawn, list[Judged]]] = [(_title(d), d, []) for recipe in drawn for d in recipe.drawings]
    cards = "\n".join(_card(*card) for card in (asked or first)[:CARDS])
    return f'<section class="cards" aria-label="At a glance">\n{cards}\n</section>' if cards else ""


def _card(heading: str, drawn: Drawn, judged: list[Judged]) -> str:
    answer = "".join(
        f'<p>{badge(one.verdict.outcome)} <a href="#{one.anchor}">{escape(one.verdict.statement)}</a></p>'
        f'<p class="numbers">{escape(one.verdict.numbers)}</p>'
        for one in judged
    )
    link = f'<a href="#figure-{_anchor(drawn.stem)}">{_picture(drawn)}</a>'
    return f'<article class="card"><h2>{escape(heading)}</h2>{link}{answer}</article>'


def _compared(recipes: list[Recipe]) -> str:
    """The tables of methods that recipes describe as figures of kind "table"."""
    drawings = [drawn for recipe in recipes for drawn in recipe.drawings if drawn.panels]
    drawings.sort(key=lambda drawn: -len(drawn.panels))  # the table that says most of a method comes first
    tables = [
        compared(_title(drawn), str(drawn.figure.description.get("caption", "")), drawn.panels)
        for drawn in drawings
        if drawn.panels[0].description["kind"] == "table" and not all(panel.missing for panel in drawn.panels)
    ]
    if not tables:
        return ""
    return (
        '<section aria-labelledby="compared"><h2 id="compared">Methods at equal cost</h2>\n'
        + "\n".join(tables)
        + "</section>"
    )


def _figures(recipes: list[Recipe]) -> str:
    """The figures by topic, which is the experiment that they measure."""
    if not recipes:
        return ""
    topics = sorted({recipe.topic for recipe in recipes})
    links = ", ".join(f'<a href="#topic-{_anchor(topic)}">{escape(_heading(topic))}</a>' for topic in topics)
    search = _part("finding.html") if sum(len(recipe.drawings) for recipe in recipes) > 1 else ""
    parts = [
        '<section aria-labelledby="figures"><h2 id="figures" tabindex="-1">Figures</h2>\n'
        f'<p class="topics">{links}</p>{search}</section>'
    ]
    for topic in topics:
        inside = "\n".join(_recipe(recipe) for recipe in recipes if recipe.topic == topic)
        anchor = f"topic-{_anchor(topic)}"
        parts.append(
            f'<section class="topic" aria-labelledby="{anchor}"><h2 id="{anchor}">{escape(_heading(topic))}</h2>\n'
            f"{inside}</section>"
        )
    return "\n".join(parts)


def _heading(topic: str) -> str:
    """ "kernel-error" is "Kernel error"."""
    words = topic.replace("-", " ")
    return words[:1].upper() + words[1:]


def _recipe(recipe: Recipe) -> str:
    statement = recipe.first("statement")
    parts = [
        f'<section class="recipe" aria-labelledby="{recipe.anchor}">',
        f'<h3 id="{recipe.anchor}">{escape(recipe.title)}</h3>',
    ]
    if statement:
        parts.append(f'<p class="statement">{escape(statement)}</p>')
    if recipe.judged:
        claims = "".join(
            f'<li>{badge(one.verdict.outcome)} <a href="#{one.anchor}">{escape(one.verdict.statement)}</a></li>'
            for one in recipe.judged
        )
        parts.append(f'<ul class="claims">{claims}</ul>')
    parts.append(_how_to_run(recipe))
    return "\n".join([*parts, *map(_figure, recipe.drawings), "</section>"])


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


def _title(drawn: Drawn) -> str:
    """With a capital letter, unless it begins with a symbol such as the n of "n = 64"."""
    title = str(drawn.figure.description.get("title") or drawn.figure.name)
    return re.sub(r"^[a-z]{2}", lambda first: first[0].capitalize(), title)


def _picture(drawn: Drawn) -> str:
    """The figure as an image that is loaded when it scrolls into view and keeps its room until then."""
    width, height = re.findall(rb'viewBox="0 0 (\S+) (\S+)"', drawn.files["svg"])[0]
    words = f"{_title(drawn)}. {drawn.figure.description.get('caption', '')}".strip()
    sides = " ".join(
        f'{name}="{float(side) * SCREEN_SCALE * 4 / 3:.0f}"' for name, side in (("width", width), ("height", height))
    )
    return f'<img src="{drawn.stem}.svg" alt="{escape(words)}" {sides} loading="lazy" decoding="async">'


def _view(drawn: Drawn) -> str:
    """The explorer with the axes of the figure's first panel, as a fragment; "" if no panel is of points along an axis."""
    panels = [panel.description for panel in drawn.panels if panel.description["kind"] in ("curve", "trade")]
    if not panels:
        return ""
    first = panels[0]
    experiment = split_spec(str(first.get("where", {}).get("experiment", "")))[0]
    # A recipe's figure lists its own cells; one of a user's runs has those of its experiment.
    of_experiment = experiment and ("cells" not in first or drawn.figure.recipe == "runs")
    series = first.get("series") or ["method"]
    along = axis_names(first)
    view = {
        "cells": f"experiment:{experiment}" if of_experiment else f"recipe:{drawn.figure.recipe}",
        "y": str(first["y"]),
        "x": f"metric:{first['x_metric']}" if first.get("x_metric") else along[0] if along else "",
        "series": series[0] if len(series) == 1 and series != ["method"] else "",
        "logx": "" if is_log(first.get("x_scale")) else "off",
        "logy": "" if is_log(first.get("y_scale")) else "off",
    }
    return "#" + "&".join(f"{name}={quote(value, safe=':,')}" for name, value in view.items() if value)


def _words(drawn: Drawn) -> str:
    """The words of the picture that a reader may look for: what its curves and axes are called."""
    words = [panel.printed(str(series)) for panel in drawn.panels for series in panel.points["series"].unique()]
    words += [axis_label(panel, axis) for panel in drawn.panels for axis in "xy"]
    return " ".join(dict.fromkeys(words))


def _figure(drawn: Drawn) -> str:
    files = " ".join(
        f'<a href="{drawn.stem}.{ending}" download>{words}</a>'
        for ending, words in (("csv", "CSV"), ("svg", "SVG"), ("pdf", "PDF"))
    )
    missing = [(panel.description.get("title", ""), panel.missing) for panel in drawn.panels if panel.missing]
    empty = "".join(
        f'<p class="missing">{escape(str(where))}: <code>{escape(why)}</code></p>' for where, why in missing
    )
    return (
        f'<figure id="figure-{_anchor(drawn.stem)}" data-words="{escape(_words(drawn))}">\n'
        f"<h4>{escape(_title(drawn))}</h4>\n"
        f'<a class="picture" href="{drawn.stem}.svg" data-view="{escape(_view(drawn))}">{_picture(drawn)}</a>\n'
        f"<figcaption><p>{escape(str(drawn.figure.description.get('caption', '')))}</p>{empty}"
        f'<p class="files">{files}</p></figcaption>\n</figure>'
    )


def _nothing() -> str:
    """The section of a report without any results."""
    return (
        '<section aria-labelledby="literature"><h2 id="literature">Statements</h2><p class="statement">There are no results '
        "yet. They come with the published statements that attnbench reproduces:</p>"
        "<pre><code>attnbench reproduce</code></pre></section>"
    )


def _unjudged(recipes: list[Recipe]) -> str:
    """The last line of a report of a user's own runs."""
    figure = "" if any(recipe.drawings for recipe in recipes) else ", and there is no figure"
    return (
        f'<p class="run">No statement of the literature was judged here{figure}: <code>attnbench reproduce</code> '
        "judges them.</p>"
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
        counts = badges(Counter(one.verdict.outcome for one in recipe.judged))
        evidence.append(f'<li><a href="#{recipe.anchor}">{escape(recipe.title)}</a> {counts}</li>')
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
        rows.append([str(run["id"]), str(run["started"]), letter, str(run["command"])])
    parts = [_table("Runs", ["Run", "Started", "Environment", "Command"], rows)]
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
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results file of attnbench, with drawn points")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help=f"where {PAGE} and the figures go"
    )
    parser.add_argument(
        "--bundle", action="store_true", help="also write the verdicts, the environment and the results file"
    )
    parser.add_argument(
        "--figure", nargs="+", default=[], metavar="NAME", help="only these: NAME, RECIPE or RECIPE/NAME"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        results = read(options.results)
        drawings = draw_all([(one, panels_of(results, one)) for one in chosen_figures(results, options.figure)])
        files = {name: content for drawn in drawings for name, content in drawn.named_files().items()}
        recipes = recipes_of(results, drawings)
        files |= data_files(results, recipes)
        if options.bundle:
            files |= bundle(results, options.output)
        # Write the page last, so that the files it links to exist.
        write_files(options.output, {**files, PAGE: page(results, recipes).encode()})
    except Misuse as misuse:
        print(f"report.py: {misuse}", file=sys.stderr)
        return 2
    print(options.output / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
