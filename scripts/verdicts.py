#!/usr/bin/python3
"""Print the verdicts of results files as a table: statement, expected outcome, outcome and the numbers that decided it.

Equal results give an equal table. --renew writes them into a folder such as results/reference, whose verdicts.csv keeps
the rows of all other recipes, and writes verdicts.md from both.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from literature import KINDS, in_order
from results import Misuse, Reproduction, Results, Verdict, read
from tables import comma_separated, latex, markdown, markdown_text, text_of_csv

FORMATS = ("markdown", "latex", "csv")
HEADER = ("outcome", "expected", "statement", "numbers", "source", "recipe")
LATEX_COLUMNS = r"llp{0.28\linewidth}p{0.24\linewidth}p{0.14\linewidth}l"


def as_csv(results: Results) -> str:
    """One column per field. `contradicts` marks verdicts that are decided and differ from the expected outcome."""
    explained = ("quotation", "paraphrase", "definition", "threshold", "because")
    header = ("recipe", "kind", "size", *HEADER[:3], "region", *HEADER[3:5], "contradicts", "command", *explained)
    rows = []
    for verdict in results.verdicts:
        made = results.reproductions.get(verdict.recipe)
        size, command = (made.size, made.command) if made else ("", "")
        judged = (verdict.outcome, verdict.expected, verdict.statement, verdict.region, verdict.numbers, verdict.source)
        rows.append(
            (verdict.recipe, verdict.kind, size, *judged, "yes" if _contradicts(results, verdict) else "no", command)
        )
        rows[-1] += tuple(getattr(verdict, name) for name in explained)
    return comma_separated(header, rows)


def as_markdown(results: Results) -> str:
    return f"{markdown_text(heading(results))}\n\n{markdown(HEADER, _rows(results))}"


def as_latex(results: Results) -> str:
    return f"% {heading(results)}\n{latex(HEADER, _rows(results), LATEX_COLUMNS)}"


def heading(results: Results) -> str:
    """Counts the verdicts by kind and outcome, and says which ones claim nothing because their recipes ran at smoke sizes."""
    if not results.verdicts:
        return "No verdicts: 'attnbench reproduce' makes them."
    counts = []
    for kind, name in KINDS.items():
        outcomes = Counter(verdict.outcome for verdict in results.verdicts if verdict.kind == kind)
        if outcomes:
            each = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in in_order(outcomes))
            counts.append(f"{outcomes.total()} {name} ({each})")
    against = sum(_contradicts(results, verdict) for verdict in results.verdicts)
    words = f"{len(results.verdicts)} verdicts: {'; '.join(counts)}. {against} not as expected."
    judged = {verdict.recipe for verdict in results.verdicts}
    smoke = sorted(recipe for recipe in judged if _is_smoke(results, recipe))
    if not smoke:
        return words
    whose = "All are" if len(smoke) == len(judged) else f"Those of {', '.join(smoke)} are"
    return (
        f"{words} {whose} of the smoke sizes, which show that everything runs and nothing else: "
        "they are compared with no expectation."
    )


def _rows(results: Results) -> list[tuple[str, ...]]:
    return [
        (
            verdict.outcome + (" (not as expected)" if _contradicts(results, verdict) else ""),
            "none: smoke" if _is_smoke(results, verdict.recipe) else verdict.expected,
            f"{verdict.statement}: {verdict.region}" if verdict.region else verdict.statement,
            verdict.numbers,
            verdict.source_words,
            verdict.recipe,
        )
        for verdict in results.verdicts
    ]


def _is_smoke(results: Results, recipe: str) -> bool:
    return recipe in results.reproductions and results.reproductions[recipe].size == "smoke"


def _contradicts(results: Results, verdict: Verdict) -> bool:
    return verdict.contradicts and not _is_smoke(results, verdict.recipe)


def renewed(results: Results, table: Path) -> Results:
    """The results' verdicts, and those of all other recipes in a table that as_csv wrote."""
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = [{name: text_of_csv(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
        old = [
            Verdict(**{name: row[name] for name in Verdict.__dataclass_fields__ if name != "compared"}) for row in rows
        ]
        made = {
            row["recipe"]: Reproduction(row["recipe"], row["size"], row["command"], seconds=0, cells=[], written="")
            for row in rows
        }
    except (OSError, KeyError) as error:
        raise Misuse(f"{table}: {error}; expected a table of verdicts.py --format csv") from None
    new = {verdict.recipe for verdict in results.verdicts}
    verdicts = [verdict for verdict in old if verdict.recipe not in new] + results.verdicts
    return replace(
        results,
        verdicts=sorted(verdicts, key=lambda verdict: verdict.recipe),
        reproductions={**made, **results.reproductions},
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results file of attnbench")
    parser.add_argument("--format", choices=FORMATS, default="markdown", help="default: markdown")
    parser.add_argument(
        "--renew", type=Path, metavar="FOLDER", help="put them into the verdicts.csv and verdicts.md of this folder"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        results = read(options.results)
        if options.renew:
            results = renewed(results, options.renew / "verdicts.csv")
    except Misuse as misuse:
        print(f"verdicts.py: {misuse}", file=sys.stderr)
        return 2
    if options.renew:
        (options.renew / "verdicts.csv").write_text(as_csv(results), encoding="utf-8")
        (options.renew / "verdicts.md").write_text(as_markdown(results), encoding="utf-8")
        return 0
    print({"markdown": as_markdown, "latex": as_latex, "csv": as_csv}[options.format](results), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
