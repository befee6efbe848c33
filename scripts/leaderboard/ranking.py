#!/usr/bin/python3
"""Make a static site of ranks from bundles that `attnbench submit` wrote.

Each bundle is verified first, and those that are refused are listed with the reason. Nothing in a bundle is run. Equal
bundles give an equal site. `attnbench leaderboard` calls this with the names of its methods.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from board import make_board
from archive import Refused
from static_site import pages
from suite import Misuse, Suite, find_suite
from verification import Submission, contradiction, verify


def taken(paths: list[Path], suite: Suite, built_in: set[str]) -> tuple[list[Submission], list[tuple[str, str]]]:
    """The submissions that are shown, and those that are refused with the reason, both in the order of their names. Of two
    that contradict each other neither is shown: nobody can say which is right without measuring again."""
    verified: dict[str, Submission] = {}
    refused: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(paths, key=lambda path: path.name):
            try:
                one = verify(path, suite, built_in, Path(scratch))
                if any(one.bundle.digest == other.bundle.digest for other in verified.values()):
                    raise Refused("it was given twice")
                verified[path.name] = one
            except Refused as reason:
                refused[path.name] = str(reason)
    for name, one in verified.items():
        for other in verified.values():
            if words := contradiction(suite, built_in, one, other):
                refused.setdefault(name, words)
    shown = [one for name, one in verified.items() if name not in refused]
    return shown, sorted(refused.items())


def write(files: dict[str, bytes], folder: Path) -> None:
    """Also removes what an earlier site in that folder had and this one has not."""
    if (folder / "data/leaderboard.json").exists():
        for pattern in ("methods/*.html", "figures/*.svg", "data/*.bib"):
            for path in folder.glob(pattern):
                if str(path.relative_to(folder)) not in files:
                    path.unlink()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("bundle", nargs="+", type=Path)
    words.add_argument("--built-in", required=True, help="names of the methods that need no source, with commas")
    words.add_argument("--suite", help="name or file (default: the newest)")
    words.add_argument("--output", "-o", type=Path, default=Path("results/leaderboard"), help="(default %(default)s)")
    arguments = words.parse_args()
    try:
        suite = find_suite(arguments.suite)
    except Misuse as misuse:
        print(f"attnbench: leaderboard: {misuse}", file=sys.stderr)
        return 2
    built_in = set(arguments.built_in.split(","))
    submissions, refused = taken(arguments.bundle, suite, built_in)
    for name, reason in refused:
        print(f"refused: {name}: {reason}")
    if not submissions:
        print("attnbench: leaderboard: no bundle is left, so that no site was written", file=sys.stderr)
        return 1
    board = make_board(suite, submissions, built_in)
    write(pages(board, refused), arguments.output)
    methods = sum(entry.submitted for entry in board.entries)
    print(f"{methods} methods in {len(board.tables)} tables: {arguments.output}/index.html")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
