#!/usr/bin/python3
"""Write NAME.baseline.csv beside a new suite NAME.json: its conditions, and what the mean of V gives under each.

A suite that was published is never pinned again: numbers that changed belong to a suite of another name.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measured import IDENTITY
from results_file import open_results
from submitting import Program, command
from suite import BASELINE, Suite, read_suite


def rows_of(program: Program, suite: Suite) -> list[list[str]]:
    """Measures the baseline with the program. Times have no number here."""
    first: dict[str, str] = {}  # the metric that a run is pinned by: the first column that reads it
    for regime in suite.regimes:
        for column in regime.columns:
            for name in column.runs:
                first.setdefault(name, column.metric)
    rows = []
    for run in suite.runs:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "baseline.db"
            program.said("run", *command(run, [], results), may_fail=True)
            with closing(open_results(results)) as connection:
                found = connection.execute(
                    f"SELECT {', '.join(f'c.{name}' for name in IDENTITY)}, r.replicate, r.ending, "
                    "(SELECT value FROM measurement m WHERE m.cell = c.id AND m.replicate = r.replicate AND metric = ?) "
                    "FROM replicate r JOIN cell c ON c.id = r.cell WHERE c.method = ? ORDER BY c.id, r.replicate",
                    [first[run.name], BASELINE],
                ).fetchall()
        for *problem, replicate, ending, value in found:
            pinned = "nan" if run.timed or ending != "done" or value is None else repr(value)
            rows.append([run.name, *map(str, problem), str(replicate), first[run.name], pinned])
        print(f"{run.name}: {len(found)} rows", flush=True)
    return rows


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("suite", type=Path)
    words.add_argument("--program", required=True, help="the attnbench that measures")
    arguments = words.parse_args()
    suite = read_suite(arguments.suite, pinned=False)
    file = arguments.suite.with_suffix(".baseline.csv")
    if file.exists():
        print(f"{file} exists: a published suite keeps its numbers; give the suite another name", file=sys.stderr)
        return 2
    rows = rows_of(Program(arguments.program), suite)
    with open(file, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([["run", *IDENTITY, "replicate", "metric", "value"], *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
