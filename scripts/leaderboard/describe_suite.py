#!/usr/bin/python3
"""List the suites, or print the runs of one as command lines and the tables that a leaderboard makes of them."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suite import BASELINE, EXACT, Misuse, Suite, find_suite, names


def described(suite: Suite) -> str:
    lines = [f"suite {suite.name}: {suite.title}", "", "runs, each beside exact attention and the mean of V"]
    for run in suite.runs:
        words = shlex.join(["attnbench", "run", *run.words(), "--method", "METHOD"])
        lines += [f"  {run.name}: {run.title}", f"    {words} --method {EXACT} --method {BASELINE}"]
    for regime in suite.regimes:
        lines += ["", f"table {regime.name}: {regime.title}", f"  {regime.words}"]
        lines += [
            f"  {'ranked by' if place == 0 else 'also'}: {column.label} ({column.metric} of {', '.join(column.runs)})"
            for place, column in enumerate(regime.columns)
        ]
    return "\n".join(lines)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("suite", nargs="?", help="name or file")
    arguments = words.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this without a word
    try:
        if arguments.suite is None:
            for name in names():
                print(f"{name:<20}{find_suite(name).title}")
        else:
            print(described(find_suite(arguments.suite)))
    except Misuse as misuse:
        print(f"attnbench: suite: {misuse}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
