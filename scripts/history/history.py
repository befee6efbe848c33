#!/usr/bin/python3
"""Find the commits that changed a number: build commits, measure them in turns, and say where a step is decided.

Without --every, the ends of the range are compared and the commits that made their differences are found by bisection.
Afterwards all commits that have a program are measured once more side by side: that table and figure come last. Numbers are
those of which less is better, such as seconds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from builds import BUILD, Builds, Commit, Misuse, commits_of
from measuring import CELL, Cell, Session, Store, run_session
from series_figure import series_figure
from steps import FEWEST_ROUNDS, WORSE, Bisection, Found, step


class History:
    """The commits, the programs and the command of one call."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.words, self.metric, self.rounds = arguments.words, arguments.metric, arguments.rounds
        self.commits = commits_of(arguments.repository, arguments.range)
        self.builds = Builds(arguments.repository, arguments.output / "builds", arguments.build)
        self.store = Store(arguments.store)

    def measure(self, commits: list[Commit]) -> Session:
        """Side by side, unless the store has it. Commits without a program are failures of the session."""
        names = [commit.short for commit in commits]
        if kept := self.store.find(names, self.words, self.metric, self.rounds):
            return kept
        programs = {commit.short: self.builds.program(commit) for commit in commits}
        there = {name: program for name, program in programs.items() if program is not None}
        session = run_session(there, self.words, self.metric, self.rounds, seed=len(names))
        session.programs = names
        session.failures |= {
            commit.short: f"cannot be built: {self.builds.failures[commit.name]}"
            for commit in commits
            if programs[commit.short] is None
        }
        self.store.keep(session, self.words, self.metric, self.rounds)
        return session

    def built(self) -> list[Commit]:
        return [commit for commit in self.commits if (self.builds.folder / commit.short / "bin/attnbench").exists()]


def labels_of(session: Session) -> dict[Cell, str]:
    """A cell by what tells it from the others."""
    cells = session.cells()
    telling = [place for place in range(len(CELL)) if len({cell[place] for cell in cells}) > 1] or [
        CELL.index("method")
    ]
    return {
        cell: ", ".join(cell[place] if CELL[place] == "method" else f"{CELL[place]}={cell[place]}" for place in telling)
        for cell in cells
    }


def table_of(session: Session, commits: list[Commit], labels: dict[Cell, str]) -> str:
    """Each commit against the one before."""
    lines = []
    for before, after in zip(commits, commits[1:]):
        lines.append(f"{after.short} {after.subject}")
        for cell in session.cells():
            one = step(session, before.short, after.short, cell)
            lines.append(f"  {one.ruling:<10}{one.ratio:6.3f} [{one.low:.3f}, {one.high:.3f}]  {labels[cell]}")
    return "\n".join(lines)


def finding(found: Found, labels: dict[Cell, str]) -> str:
    where = f"{found.after.short} {found.after.subject}"
    if found.between:
        where = f"one of {found.between + 1} commits after {found.before.short}, up to {where}"
    one = found.step
    label = labels.get(found.cell, " ".join(found.cell))
    return f"{one.ruling}: {label}: {one.ratio:.3f} times [{one.low:.3f}, {one.high:.3f}] at {where}"


def report(history: History, session: Session, found: list[Found] | None, output: Path) -> int:
    """Prints and writes what was found, and returns the exit code: 1 if something is significantly worse."""
    commits = [commit for commit in history.commits if commit.short in session.programs]
    for commit in commits:
        if commit.short in session.failures:
            print(f"{commit.short} {commit.subject}: {session.failures[commit.short]}")
    commits = [commit for commit in commits if commit.short not in session.failures]
    if len(commits) < 2 or not session.cells():
        print(
            "attnbench: history: fewer than two commits measured the same cells; nothing can be compared",
            file=sys.stderr,
        )
        return 1
    labels = labels_of(session)
    words = table_of(session, commits, labels)
    if found is not None:
        lines = [finding(one, labels) for one in found]
        words += "\n\n" + "\n".join(lines or ["no step between the ends of the range is decided"])
    (output / "history.txt").write_text(words + "\n")
    (output / "history.svg").write_bytes(series_figure(session, commits, labels, history.metric))
    print(f"{words}\n{output}/history.svg")
    rulings = {
        step(session, before.short, after.short, cell).ruling
        for before, after in zip(commits, commits[1:])
        for cell in session.cells()
    }
    return 1 if WORSE in rulings | {one.step.ruling for one in found or []} else 0


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("repository", type=Path)
    words.add_argument("range", help="such as HEAD~10..HEAD")
    words.add_argument("words", nargs="+", help="of attnbench, such as: run speed --method softmax")
    words.add_argument("--metric", default="seconds", help="of which less is better (default %(default)s)")
    words.add_argument("--rounds", type=int, default=12, help="turns of every program (default %(default)s)")
    words.add_argument("--every", action="store_true", help="build every commit of the range")
    words.add_argument("--store", type=Path, help="a file that keeps what was measured, for the next call")
    words.add_argument(
        "--build", default=BUILD, help="builds a commit and installs it in {folder} (default: %(default)s)"
    )
    words.add_argument("--output", "-o", type=Path, default=Path("results/history"), help="(default %(default)s)")
    return words


def main() -> int:
    arguments = parser().parse_args()
    try:
        if arguments.rounds < FEWEST_ROUNDS:
            raise Misuse(
                f"history: --rounds {arguments.rounds}: expected {FEWEST_ROUNDS} at least, for an interval of 95 %"
            )
        history = History(arguments)
        arguments.output.mkdir(parents=True, exist_ok=True)
        found = None
        if not arguments.every:
            found = Bisection(history.commits, history.measure).run()
        return report(
            history, history.measure(history.commits if arguments.every else history.built()), found, arguments.output
        )
    except Misuse as misuse:
        print(f"attnbench: {misuse}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on with what is built")
        return 130


if __name__ == "__main__":
    sys.exit(main())
