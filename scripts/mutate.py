#!/usr/bin/python3
"""Plants one mistake at a time in the sources and runs the tests that must see it.

The catalogue is tests/mutations/ (scripts/mutation_catalogue.py says what a record holds). For each record a run writes
the mistake into its file, builds what its tests need, runs them and puts the file back as it was. The tests of all chosen
records are run once without a mistake before. Mistakes are planted in the tree itself, not in a copy: the build folder
knows the sources by their absolute paths, so that a copy would have to be compiled as a whole.

Exit codes: 0 every mistake was seen, 1 some were not, could not be built or do not apply, 2 misuse.

  scripts/mutate.py --check                              every record applies, and its tests exist; builds nothing
  scripts/mutate.py --only 'k-means-*' --only vq-ties    mistakes by their ids
  scripts/mutate.py --folder harness/statistics          those of a folder
  scripts/mutate.py --report build/mutations.md          all of them (hours), and a table of what came of each
  scripts/mutate.py --only 'hf-*' --python build/torch/bin/python
                                                         mistakes that only tests with PyTorch see (test_torch.sh)
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from mutation_catalogue import Misuse, Mutation, Tests, read_catalogue

KILLED, SURVIVED, ARGUED = "killed", "survived", "survived, as argued"
NOT_BUILT, NOT_APPLICABLE = "did not build", "does not apply"
RED_BEFORE, NOT_RUN = "red without it", "skipped by its test"
FAILURES = (SURVIVED, NOT_BUILT, NOT_APPLICABLE, RED_BEFORE)
SKIPPED = 77  # how a file of Python tests says that this machine lacks what it needs


@dataclass
class Outcome:
    mutation: Mutation
    result: str
    why: str = ""
    build_seconds: float = 0
    test_seconds: float = 0


@contextmanager
def planted(mutation: Mutation, root: Path) -> Iterator[None]:
    """Plants the mistake in the file. Afterwards, also after an error, the file has its bytes again."""
    path = root / mutation.file
    original = path.read_bytes()
    try:
        path.write_bytes(original.replace(mutation.before.encode(), mutation.after.encode()))
        yield
    finally:
        path.write_bytes(original)


@dataclass
class Runner:
    root: Path
    build: Path
    jobs: int
    tests: Tests
    log: Path
    python: str = ""  # that runs tests in Python; empty: the one that ctest takes
    built: set[str] = field(default_factory=set)

    def run(self, command: list[str], limit: float | None = None, only: str = "") -> int | None:
        """The exit code, or None beyond the limit in seconds. No process of it stays."""
        with tempfile.TemporaryDirectory() as cache, open(self.log, "ab") as log:
            # Of two versions of a file that were written in one second, Python would take the bytecode of the first.
            environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
            if only:
                environment["ATTNBENCH_TEST_ONLY"] = only
            log.write(f"\n$ {' '.join(command)}\n".encode())
            log.flush()
            with subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=log, stderr=log, start_new_session=True
            ) as process:
                try:
                    return process.wait(limit)
                except subprocess.TimeoutExpired:
                    return None
                finally:
                    _end(process)

    def make(self, targets: set[str]) -> bool:
        if not targets:
            return True
        if not (self.build / "build.ninja").exists():
            raise Misuse(
                f"--build-dir {self.build}: no build.ninja, expected a folder that scripts/build.sh has built in"
            )
        self.built |= targets
        return self.run(["ninja", f"-j{self.jobs}", "-C", str(self.build), *sorted(targets)]) == 0

    def targets(self, test: str) -> set[str]:
        python = self.tests.python(test)
        if python is None:
            faulty = {"attnbench_faulty"} if self.tests.cpp[test].starts_faulty else set()
            return {"attnbench_tests"} | faulty
        arguments = [Path(argument).resolve() for argument in self._started(python.path)[2:]]
        return {
            target
            for path in arguments
            for target in (["attnbench", "attnbench_python"] if path == self.build.resolve() else [path.name])
            if path.is_relative_to(self.build.resolve()) and target != "samples"
        }

    def command(self, test: str) -> list[str]:
        python = self.tests.python(test)
        if python is not None:
            name = ["-k", f"*.{python.name}"] if python.name else []
            return [*self._started(python.path), *name]
        spec = "".join(f"\\{letter}" if letter in '\\,["' else letter for letter in test)
        everything = "*" if self.tests.cpp[test].template else ""
        return [str(self.build / "attnbench_tests"), spec + everything, "--abort", "--warn", "NoTests"]

    def _started(self, path: Path) -> list[str]:
        """How ctest starts a file of Python tests, or with the chosen interpreter: that, the file and its arguments."""
        if not hasattr(self, "_entries"):
            self._entries: list[list[str]] = []
            if (self.build / "CTestTestfile.cmake").exists():
                show = ["ctest", "--show-only=json-v1", "--test-dir", str(self.build)]
                described = json.loads(subprocess.run(show, check=True, capture_output=True, text=True).stdout)
                self._entries = [entry.get("command", []) for entry in described["tests"]]
        for command in self._entries:
            if len(command) > 1 and Path(command[1]).name == path.name:
                return [self.python or command[0], *command[1:]]
        return [self.python or sys.executable, str(path)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ninja removes what it has half written when it is told to end; what does not listen is killed."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@dataclass
class Trial:
    """Tries mutations; knows what each test does without a mistake."""

    runner: Runner
    # By test, and what it is narrowed to.
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)  # of those that are green without a mistake
    unusable: dict[tuple[str, str], str] = field(default_factory=dict)  # why others cannot judge

    def without_mistake(self, mutations: list[Mutation]) -> None:
        tests = sorted({(test, mutation.only) for mutation in mutations for test in mutation.tests})
        targets = {target for test, _ in tests for target in self.runner.targets(test)}
        if not self.runner.make(targets):
            raise Misuse(f"{' '.join(sorted(targets))}: cannot be built without a mistake, see {self.runner.log}")
        for test, only in tests:
            begin = time.monotonic()
            code = self.runner.run(self.runner.command(test), only=only)
            if code == SKIPPED:
                self.unusable[test, only] = NOT_RUN
            elif code != 0:
                self.unusable[test, only] = RED_BEFORE
            else:
                self.seconds[test, only] = time.monotonic() - begin

    def judge(self, mutation: Mutation) -> Outcome:
        for test in mutation.tests:
            if (test, mutation.only) in self.unusable:
                return Outcome(mutation, self.unusable[test, mutation.only], test)
        outcome = Outcome(mutation, KILLED)
        begin = time.monotonic()
        with planted(mutation, self.runner.root):
            targets = {target for test in mutation.tests for target in self.runner.targets(test)}
            made = self.runner.make(targets)
            outcome.build_seconds = time.monotonic() - begin
            if not made:
                outcome.result, outcome.why = NOT_BUILT, f"see {self.runner.log}"
                return outcome
            green = [test for test in mutation.tests if self._passes(test, mutation.only)]
        outcome.test_seconds = time.monotonic() - begin - outcome.build_seconds
        if green and mutation.survives:
            outcome.result, outcome.why = ARGUED, mutation.survives
        elif green:
            outcome.result, outcome.why = SURVIVED, "passed: " + "; ".join(green)
        elif mutation.survives:
            outcome.why = "although its record argues that it survives"
        return outcome

    def _passes(self, test: str, only: str) -> bool:
        limit = 60 + 10 * self.seconds[test, only]
        return self.runner.run(self.runner.command(test), limit, only) in (0, SKIPPED)


def refuse_changed(mutations: list[Mutation], root: Path) -> None:
    """Throws Misuse for a file that git does not have as it is: a mistake of an earlier run that was killed, say."""
    files = sorted({mutation.file for mutation in mutations})
    command = ["git", "-C", str(root), "ls-files", "--modified", "--others", "-z", "--", *files]
    changed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
    if changed:
        raise Misuse(
            f"{', '.join(changed)}: not as in git's index; expected files without changes, or --allow-dirty to plant "
            "mistakes in them as they are (git checkout -- FILE undoes a mistake that a killed run has left)"
        )


def table(outcomes: list[Outcome]) -> str:
    counts = {
        result: sum(outcome.result == result for outcome in outcomes) for result in (KILLED, *FAILURES, ARGUED, NOT_RUN)
    }
    said = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    lines = [
        f"{len(outcomes)} mistakes, one at a time: {said}.",
        "",
        "| id | file | mistake | outcome | build s | tests s | tests |",
        "|---|---|---|---|---:|---:|---|",
    ]
    for outcome in outcomes:
        mutation = outcome.mutation
        result = outcome.result + (f" ({outcome.why})" if outcome.why else "")
        cells = [mutation.id, mutation.file, mutation.mistake, result]
        cells += [f"{outcome.build_seconds:.1f}", f"{outcome.test_seconds:.1f}", "; ".join(mutation.tests)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def chosen_of(catalogue: list[Mutation], only: list[str], folders: list[str]) -> list[Mutation]:
    chosen = [
        mutation
        for mutation in catalogue
        if (not only or any(fnmatchcase(mutation.id, pattern) for pattern in only))
        and (not folders or any(Path(mutation.file).is_relative_to(folder) for folder in folders))
    ]
    if not chosen:
        raise Misuse(f"{' '.join([*only, *folders])}: no such mutation, expected ids or folders that --list prints")
    return chosen


def try_all(chosen: list[Mutation], options: argparse.Namespace) -> list[Outcome]:
    tests = Tests(options.root)
    log = Path(tempfile.gettempdir()) / f"mutate-{os.getpid()}.log"
    runner = Runner(options.root, options.build_dir, options.jobs, tests, log, options.python)
    problems = {mutation.id: mutation.problems(options.root, tests) for mutation in chosen}
    sound = [mutation for mutation in chosen if not problems[mutation.id]]
    if not options.allow_dirty:
        refuse_changed(sound, options.root)
    print(f"{len(chosen)} mistakes; what builds and tests print goes to {log}", flush=True)
    outcomes = []
    trial = Trial(runner)
    try:
        trial.without_mistake(sound)
        for mutation in chosen:
            why = "; ".join(problems[mutation.id])
            outcome = Outcome(mutation, NOT_APPLICABLE, why) if why else trial.judge(mutation)
            outcomes.append(outcome)
            seconds = outcome.build_seconds + outcome.test_seconds
            print(f"{outcome.result:>19} {seconds:6.1f} s  {mutation.id}  {outcome.why}".rstrip(), flush=True)
            if options.report:
                options.report.write_text(table(outcomes))
    except KeyboardInterrupt:
        print(
            f"mutate.py: interrupted; sources are as they were, {options.build_dir} is not: build it again",
            file=sys.stderr,
        )
        raise
    if not runner.make(runner.built):
        raise Misuse(f"{options.build_dir}: cannot be built after the last mistake, see {log}")
    return outcomes


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="mutate.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print what the chosen records say, and do nothing")
    parser.add_argument("--check", action="store_true", help="say which records no longer apply or name unknown tests")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="an id or a pattern of ids; repeatable"
    )
    parser.add_argument("--folder", action="append", default=[], metavar="DIR", help="files in this folder; repeatable")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="of ninja (default: all cores)"
    )
    parser.add_argument("--build-dir", type=Path, metavar="DIR", help="default: build/release")
    parser.add_argument(
        "--python", default="", metavar="FILE", help="the interpreter of tests in Python (default: the one of ctest)"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="a table in Markdown, written after each mistake")
    parser.add_argument("--allow-dirty", action="store_true", help="also in files that git's index has otherwise")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parent.parent, metavar="DIR", help="of another tree"
    )
    options = parser.parse_args()
    options.build_dir = options.build_dir or options.root / "build/release"
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        chosen = chosen_of(read_catalogue(options.root), options.only, options.folder)
        if options.list:
            for mutation in chosen:
                print(f"{mutation.id}  {mutation.file}: {mutation.mistake}")
            return 0
        if options.check:
            tests = Tests(options.root)
            lines = [f"{m.id}: {problem}" for m in chosen for problem in m.problems(options.root, tests)]
            print("\n".join(lines) or f"{len(chosen)} mutations apply, and their tests exist")
            return 1 if lines else 0
        outcomes = try_all(chosen, options)
    except Misuse as misuse:
        print(f"mutate.py: {misuse}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(table(outcomes).splitlines()[0])
    return 1 if any(outcome.result in FAILURES for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
