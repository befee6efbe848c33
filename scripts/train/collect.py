#!/usr/bin/python3
"""Gather the finished rows of scripts/train/train.py into the file that the experiment `training` reads.

    scripts/train/collect.py build/train
    scripts/train/collect.py build/train --results results/attnbench.db

Writes rows.jsonl to the output folder, a row a line, numbers with six digits. A row that is in this file already, and whose
run has no row in FOLDER, stays: several machines can train a grid one after another. With --results the rows go into a
results file as well, by attnbench.record, where `attnbench show`, `export` and `compare` find them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "experiments/trained/rows.jsonl"


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def run_of(row: dict[str, Any]) -> list[Any]:
    return [row["settings"][key] for key in ("task", "attention", "redraw", "seed")]


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("*/*/seed-*/row.json")]


def recorded_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = []
    for row in rows:
        measured = {name: rounded(value) for name, value in row["measured"].items()}
        lines.append(json.dumps(row | {"measured": measured}) + "\n")
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(lines))
    temporary.replace(path)


def record_rows(results: Path, rows: list[dict[str, Any]]) -> None:
    import attnbench

    for row in rows:
        settings = row["settings"]
        values = row["measured"] if row["ending"] == "done" else RuntimeError(row["reason"])
        attnbench.record(
            f"training:redraw={settings['redraw']}",
            {settings["attention"]: {settings["seed"] - 1: values}},
            input=f"trained:task={settings['task']}",
            n=settings["context"],
            d=settings.get("key_size", settings["head_size"]),
            causal=settings["causal"],
            results=results,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the --folder of scripts/train/train.py")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=RECORDED.parent,
        help="folder of rows.jsonl (default %(default)s)",
    )
    parser.add_argument("--results", type=Path, help="a results file that gets the rows as well")
    arguments = parser.parse_args()
    rows = rows_in(arguments.folder)
    if not rows:
        print(
            f"collect.py: no run in {arguments.folder} has a row yet; expected FOLDER/TASK/ATTENTION/seed-S/row.json, "
            "which scripts/train/train.py --folder FOLDER writes when a run ends",
            file=sys.stderr,
        )
        return 2
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / RECORDED.name
    trained = [run_of(row) for row in rows]
    rows += [row for row in recorded_rows(path) if run_of(row) not in trained]
    rows.sort(key=run_of)
    write_rows(path, rows)
    failed = sum(row["ending"] != "done" for row in rows)
    print(f"{len(rows)} rows, {len(trained)} of them from {arguments.folder}, {failed} failed, in {path}")
    if arguments.results:
        record_rows(arguments.results, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
