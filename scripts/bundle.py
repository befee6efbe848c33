"""The files beside a page with its sources: the verdicts as tables, the environments of the runs, and the store."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Hashable
from contextlib import closing
from pathlib import Path
from typing import Any

import verdicts
from results import Results
from results_file import open_results


def bundle(results: Results, folder: Path) -> dict[str, bytes]:
    """Files by name. A results file that is already in the folder is not copied."""
    copied = {} if results.file.resolve().parent == folder.resolve() else {"results.db": store(results.file)}
    return {
        **copied,
        "verdicts.csv": verdicts.as_csv(results).encode(),
        "verdicts.md": verdicts.as_markdown(results).encode(),
        "verdicts.tex": verdicts.as_latex(results).encode(),
        "environment.json": environment(results).encode(),
    }


def environment(results: Results) -> str:
    """Each different environment once, and the runs. Each run has the position of its environment, and its load average
    and free memory, which change from run to run."""
    environments: list[dict[str, Any]] = []
    runs = []
    for run in results.runs.to_dict("records"):
        lasting = copy.deepcopy(run.pop("environment"))
        load = lasting.pop("load_average", None)
        available = lasting.get("memory", {}).pop("available_bytes", None)
        if lasting not in environments:
            environments.append(lasting)
        place: dict[Hashable, Any] = {"environment": environments.index(lasting)}
        runs.append({**place, **run, "load_average": load, "available_bytes": available})
    return json.dumps({"environments": environments, "runs": runs}, indent=2, ensure_ascii=False) + "\n"


def store(path: Path) -> bytes:
    """A consistent copy of a results file, even while a run writes to it: it includes SQLite's write-ahead log."""
    with closing(open_results(path)) as source:
        with closing(sqlite3.connect(":memory:")) as whole:
            source.backup(whole)
            return whole.serialize()
