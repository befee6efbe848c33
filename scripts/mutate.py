#!/usr/bin/python3
"""Plants one mistake at a time in the sources and runs the tests that must see it.

Without --changed: the records of tests/mutations/ (mutation_catalogue.py). Each names the tests that must fail.
With --changed REV: mistakes by rule (mutation_operators.py) in the lines of product code that changed since REV. The tests
that cover the file (covering_tests.py) run until one fails, the nearest first, for at most --minutes.

Mistakes are planted in the tree itself, not in a copy: the build folder knows the sources by their absolute paths.
Afterwards the file and everything that was built from it are put back.

Exit codes: 0 tests saw every mistake, 1 some survived, did not apply or could not be judged, 2 misuse.

  scripts/mutate.py --changed origin/main                each rule once on each changed line
  scripts/mutate.py --changed HEAD~100 --sample 60 --seed 1 --report build/mutations.md
                                                         one mistake on each of 60 random lines
  scripts/mutate.py --check                              every record applies, and its tests exist; builds nothing
  scripts/mutate.py --only 'k-means-*'                   records by their ids
  scripts/mutate.py --folder harness/statistics          those of a folder
  scripts/mutate.py --only 'hf-*' --python build/torch/bin/python
                                                         mistakes that only tests with PyTorch see (test_torch.sh)
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from types import FrameType

from covering_tests import Tests
from mutation_catalogue import Misuse, Mutation, read_catalogue
from mutation_operators import mutants

KILLED, SURVIVED, NOT_BUILT, NOT_APPLICABLE = "killed", "survived", "did not build", "does not apply"
RED_BEFORE, NOT_RUN, TOO_WIDE = "red without it", "skipped by its test", "not tried"
FAILURES = (SURVIVED, NOT_APPLICABLE, RED_BEFORE)
SKIPPED = 77  # how a file of Python tests says that this machine lacks what it needs
PRODUCT = ("approximations", "experiments", "harness", "scripts")
CPP = (".cpp", ".hpp")
MOST_TESTS = 150  # or files of tests, for one mistake by rule
# A copy of build.ninja, for which ninja does not run CMake first. CMake reads names from sources, which no mistake changes.
MANIFEST = "mutate.ninja"
FACTS = "build_facts.cpp"  # hashes of all sources; a build writes it where they changed
STEPS = 30  # compile steps after a change; headers that more files include are not tried

Test = tuple[str, str]  # and what it is narrowed to


@dataclass
class Outcome:
    mutation: Mutation
    result: str
    why: str = ""
    build_seconds: float = 0
    test_seconds: float = 0

    def place(self) -> str:
        return self.mutation.id or f"{self.mutation.file}:{self.mutation.line}"

    def change(self) -> str:
        lines = f"    - {self.mutation.before.strip()}\n    + {self.mutation.after.strip()}\n"
        return "" if self.mutation.id else lines


@dataclass
class Runner:
    root: Path
    build: Path
    jobs: int
    log: Path
    python: str = ""  # that runs tests in Python; empty: the one that ctest takes
    seconds: dict[Test, float] = field(default_factory=dict)  # of tests that are green without a mistake
    unusable: dict[Test, str] = field(default_factory=dict)  # why others cannot judge
    built: set[str] = field(default_factory=set)

    @cached_property
    def tests(self) -> Tests:
        return Tests(self.root)

    @cached_property
    def ctest_commands(self) -> list[list[str]]:
        if not (self.build / "CTestTestfile.cmake").exists():
            return []
        show = ["ctest", "--show-only=json-v1", "--test-dir", str(self.build)]
        described = json.loads(subprocess.run(show, check=True, capture_output=True, text=True).stdout)
        return [command for entry in described["tests"] if len(command := entry.get("command", [])) > 1]

    def run(self, command: list[str], limit: float | None = None, only: str = "") -> int | None:
        """The exit code, or None beyond the limit in seconds. No process of it stays."""
        with tempfile.TemporaryDirectory() as cache, open(self.log, "ab") as log:
            # Of two versions of a file that were written in one second, Python would take the bytecode of the first.
            environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache} | ({"ATTNBENCH_TEST_ONLY": only} if only else {})
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

    def require_build(self) -> None:
        if not (self.build / "build.ninja").exists():
            raise Misuse(
                f"--build-dir {self.build}: no build.ninja, expected a folder that scripts/build.sh has built in"
            )

    def make(self, targets: set[str], manifest: str = "build.ninja") -> bool:
        if not targets:
            return True
        self.require_build()
        self.built |= targets
        return self.run(["ninja", f"-j{self.jobs}", "-C", str(self.build), "-f", manifest, *sorted(targets)]) == 0

    def manifest(self, mutation: Mutation) -> str:
        return MANIFEST if mutation.file.endswith(CPP) else "build.ninja"

    def make_without_mistake(self, targets: set[str]) -> None:
        if not self.make(targets):
            raise Misuse(f"{' '.join(sorted(targets))}: cannot be built without a mistake, see {self.log}")

    def targets(self, tests: list[Test]) -> set[str]:
        found = set()
        for test, _ in tests:
            python = self.tests.python(test)
            arguments = [Path(argument).resolve() for argument in self._started(python[0])[2:]] if python else []
            found |= set() if python else {"attnbench_tests"}
            for path in arguments:
                if path == self.build.resolve():
                    found |= {"attnbench", "attnbench_python"}
                elif path.is_relative_to(self.build.resolve()) and path.name != "samples":
                    found.add(path.name)
        return found

    def command(self, test: str) -> list[str]:
        if python := self.tests.python(test):
            return [*self._started(python[0]), *(["-k", f"*.{python[1]}"] if python[1] else [])]
        options = ["--abort", "--warn", "NoTests"]
        if case := self.tests.case(test):
            spec = "".join(f"\\{letter}" if letter in '\\,["' else letter for letter in test)
            return [str(self.build / "attnbench_tests"), spec + ("*" if case.template else ""), *options]
        return [str(self.build / "attnbench_tests"), "-#", f"[#{Path(test).stem}]~[.]", *options]

    def _started(self, path: Path) -> list[str]:
        """How ctest starts a file of Python tests, or with the chosen interpreter: that, the file and its arguments."""
        for command in self.ctest_commands:
            if Path(command[1]).name == path.name:
                return [self.python or command[0], *command[1:]]
        return [self.python or sys.executable, str(path)]

    def is_green_without_mistake(self, test: Test, limit: float | None = None) -> bool:
        if test not in self.seconds and test not in self.unusable:
            begin = time.monotonic()
            self.make_without_mistake(self.targets([test]))
            built = time.monotonic()
            code = self.run(self.command(test[0]), limit, test[1])
            if code == 0:
                self.seconds[test] = time.monotonic() - built
            else:
                self.unusable[test] = NOT_RUN if code == SKIPPED else RED_BEFORE
        return test in self.seconds

    @contextmanager
    def planted(self, mutation: Mutation, targets: set[str]) -> Iterator[int]:
        """Plants the mistake, and says how many files must be compiled. Afterwards the file, and what was built, are as before.

        Files that ninja would build again are moved away and later put back, so that nothing is compiled twice.
        """
        path = self.root / mutation.file
        original, times = path.read_bytes(), path.stat()
        moved: list[tuple[Path, Path]] = []
        steps: list[tuple[str, str]] = []
        # In the build folder, because a move to another file system would copy.
        with tempfile.TemporaryDirectory(dir=self.build if self.build.is_dir() else None) as kept:
            try:
                path.write_text(mutation.planted_in(original.decode()))
                steps = self._steps(targets) if path.suffix in CPP and targets else []
                outputs = [self.build / name for name in (*(name for _, name in steps), FACTS)] if steps else []
                for output in [output for output in outputs if output.exists()]:
                    moved.append((output, Path(kept) / str(len(moved))))
                    os.rename(*moved[-1])
                yield sum(kind == "Building" for kind, _ in steps)
            finally:
                path.write_bytes(original)
                for output, place in moved:
                    if place.exists():
                        os.replace(place, output)
                if steps:
                    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _steps(self, targets: set[str]) -> list[tuple[str, str]]:
        """The files that ninja would build, as (Building or Linking, file)."""
        self.require_build()
        shutil.copyfile(self.build / "build.ninja", self.build / MANIFEST)
        words = ["ninja", "-C", str(self.build), "-f", MANIFEST, "-n", *sorted(targets)]
        planned = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return re.findall(r"^\[\d+/\d+\] (Building|Linking) CXX .*?(\S+)$", planned, re.MULTILINE)


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


def try_record(runner: Runner, mutation: Mutation) -> Outcome:
    """Every test that a record names must fail."""
    if problems := mutation.problems(runner.root, runner.tests):
        return Outcome(mutation, NOT_APPLICABLE, "; ".join(problems))
    tests = [(test, mutation.only) for test in mutation.tests]
    for test in tests:
        if not runner.is_green_without_mistake(test):
            return Outcome(mutation, runner.unusable[test], test[0])
    begin = time.monotonic()
    with runner.planted(mutation, targets := runner.targets(tests)):
        made = runner.make(targets, runner.manifest(mutation))
        built = time.monotonic()
        codes = [runner.run(runner.command(test[0]), 60 + 10 * runner.seconds[test], test[1]) for test in tests if made]
    green = [test for (test, _), code in zip(tests, codes, strict=False) if code in (0, SKIPPED)]
    result = NOT_BUILT if not made else SURVIVED if green else KILLED
    why = f"see {runner.log}" if not made else "passed: " + "; ".join(green) if green else ""
    return Outcome(mutation, result, why, built - begin, time.monotonic() - built)


def try_by_rule(runner: Runner, mutation: Mutation, tests: list[Test], minutes: float) -> Outcome:
    """One test must fail that is green without the mistake. Tests run until `minutes` are over."""
    tests = [test for test in tests if test not in runner.unusable][:MOST_TESTS]
    if tests and not runner.is_green_without_mistake(
        tests[0], 60 * minutes
    ):  # its time is the limit for what crashes and hangs
        return try_by_rule(runner, mutation, tests[1:], minutes)
    begin = time.monotonic()
    suspect, code, limit, ran = None, None, 0.0, list[Test]()
    targets = runner.targets(tests) or ({"attnbench_tests"} if mutation.file.endswith(CPP) else set())
    with runner.planted(mutation, targets) as steps:
        if steps > STEPS:
            return Outcome(mutation, TOO_WIDE, f"{steps} files include it")
        if not runner.make(targets, runner.manifest(mutation)):
            return Outcome(mutation, NOT_BUILT, "", time.monotonic() - begin)
        built = time.monotonic()
        for test in tests:
            left = built + 60 * minutes - time.monotonic()
            limit = min(left, 60 + 10 * runner.seconds.get(test, left))
            if limit <= 0:
                break
            code = runner.run(runner.command(test[0]), limit, test[1])
            if code == SKIPPED:
                runner.unusable[test] = NOT_RUN
            elif code != 0:
                suspect = test
                break
            else:
                ran.append(test)
    spent = time.monotonic() - built
    if suspect is None:
        words = f"{sum(runner.tests.count(test) for test, _ in ran)} tests of {len(ran)} passed"
        return Outcome(mutation, SURVIVED, f"{words}: {'; '.join(test for test, _ in ran[:3])}", built - begin, spent)
    # A test that does not end is red if it would have had time for ten times what it takes without the mistake.
    if runner.is_green_without_mistake(suspect, limit) and (code or limit >= 10 * runner.seconds[suspect]):
        return Outcome(mutation, KILLED, suspect[0], built - begin, spent)
    runner.unusable.setdefault(suspect, RED_BEFORE)
    return try_by_rule(runner, mutation, tests, minutes)


def git(root: Path, *words: str) -> str:
    answer = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    if answer.returncode:
        raise Misuse(f"git {words[0]}: {answer.stderr.strip() or 'failed'}; expected a folder that git knows")
    return answer.stdout


def refuse_changed(root: Path, files: list[str]) -> None:
    """Throws Misuse for files that are not as committed: a mistake of an earlier run that was killed, say."""
    changed = [line[3:] for line in git(root, "status", "--porcelain", "--", *files).splitlines()]
    if changed:
        raise Misuse(
            f"{', '.join(changed[:3])}: not as in the last commit; expected no changes, or --allow-dirty to plant mistakes "
            "in files as they are (git checkout -- FILE undoes a mistake that a killed run has left)"
        )


def changed_lines(root: Path, revision: str) -> dict[str, set[int]]:
    """The lines of product code that the tree has and the revision lacks."""
    known = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"]
    if subprocess.run(known, capture_output=True).returncode:
        raise Misuse(
            f"--changed {revision}: git knows no such commit, expected a revision such as origin/main or HEAD~10"
        )
    lines: dict[str, set[int]] = {}
    file = ""
    for line in git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", revision, "--", *PRODUCT).splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif (hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)) and file.endswith((*CPP, ".py")):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + count))
    return {file: numbers for file, numbers in lines.items() if numbers}


def outcomes_by_rule(runner: Runner, options: argparse.Namespace) -> Iterator[Outcome]:
    runner.require_build()
    lines = changed_lines(options.root, options.changed)
    if not options.allow_dirty:
        refuse_changed(options.root, ["."])
    chance = random.Random(options.seed)
    places = []
    for file, numbers in sorted(lines.items()):
        for number, made in mutants(file, (options.root / file).read_text(), numbers).items():
            mutations = [Mutation("", file, rule, before, after, line=number) for rule, before, after in made]
            chance.shuffle(mutations)
            places.append(mutations if options.sample else list({m.mistake: m for m in mutations}.values()))
    if options.sample:
        chance.shuffle(places)
    print(f"{len(places)} of {sum(map(len, lines.values()))} changed lines can be mutated", flush=True)
    judged = 0
    for mutations in places:
        if options.sample and judged >= options.sample:
            return
        tests = runner.tests.covering(mutations[0].file)
        runner.make_without_mistake(runner.targets(tests[:MOST_TESTS]))
        for mutation in mutations:
            outcome = try_by_rule(runner, mutation, tests, options.minutes)
            yield outcome
            judged += outcome.result in (KILLED, SURVIVED)
            if outcome.result == TOO_WIDE or (options.sample and outcome.result != NOT_BUILT):
                break


def outcomes_of_records(runner: Runner, chosen: list[Mutation], options: argparse.Namespace) -> Iterator[Outcome]:
    if not options.allow_dirty:
        refuse_changed(options.root, sorted({mutation.file for mutation in chosen}))
    known = [(test, m.only) for m in chosen if not m.problems(options.root, runner.tests) for test in m.tests]
    runner.make_without_mistake(runner.targets(known))
    for mutation in chosen:
        yield try_record(runner, mutation)


def table(outcomes: list[Outcome]) -> str:
    counts = {result: sum(outcome.result == result for outcome in outcomes) for result in (KILLED, *FAILURES)}
    counts |= {
        result: sum(outcome.result == result for outcome in outcomes) for result in (NOT_BUILT, NOT_RUN, TOO_WIDE)
    }
    lines = [
        f"{len(outcomes)} mistakes, one at a time: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}.",
        "",
    ]
    for outcome in outcomes:
        if outcome.result == SURVIVED and outcome.change():
            lines += [f"{outcome.place()}: {outcome.mutation.mistake}; {outcome.why}\n\n{outcome.change()}"]
    lines += ["| mistake | | outcome | build s | tests s |", "|---|---|---|---:|---:|"]
    for outcome in outcomes:
        result = outcome.result + (f" ({outcome.why})" if outcome.why else "")
        cells = [outcome.place(), outcome.mutation.mistake, result]
        cells += [f"{outcome.build_seconds:.1f}", f"{outcome.test_seconds:.1f}"]
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


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mutate.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--changed", metavar="REV", help="mistakes by rule in lines that changed since this commit")
    add(
        "--sample", type=int, default=0, metavar="N", help="of those one on each of N random lines (default: all lines)"
    )
    add("--seed", type=int, default=1, metavar="S", help="of the random choices (default: 1)")
    add("--minutes", type=float, default=4, metavar="M", help="for the tests of one mistake by rule (default: 4)")
    add("--list", action="store_true", help="print what the chosen records say, and do nothing")
    add("--check", action="store_true", help="say which records no longer apply or name unknown tests")
    add("--only", action="append", default=[], metavar="ID", help="an id or a pattern of ids; repeatable")
    add("--folder", action="append", default=[], metavar="DIR", help="files in this folder; repeatable")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="of ninja (default: all cores)")
    add("--build-dir", type=Path, metavar="DIR", help="default: build/release")
    add("--python", default="", metavar="FILE", help="the interpreter of tests in Python (default: the one of ctest)")
    add("--report", type=Path, metavar="FILE", help="a table in Markdown, written after each mistake")
    add("--allow-dirty", action="store_true", help="also if files are not as in the last commit")
    add("--root", type=Path, default=Path(__file__).resolve().parent.parent, metavar="DIR", help="of another tree")
    options = parser.parse_args()
    options.build_dir = options.build_dir or options.root / "build/release"
    if options.sample < 0 or options.minutes <= 0:
        raise Misuse(f"--sample {options.sample}, --minutes {options.minutes}: expected numbers above 0")
    if options.changed is not None and (options.only or options.folder or options.list or options.check):
        raise Misuse("--changed takes lines from git; expected none of --only, --folder, --list and --check with it")
    return options


def run(options: argparse.Namespace) -> int:
    log = Path(tempfile.gettempdir()) / f"mutate-{os.getpid()}.log"
    runner = Runner(options.root, options.build_dir, options.jobs, log, options.python)
    if options.changed is not None:
        trials = outcomes_by_rule(runner, options)
    else:
        chosen = chosen_of(read_catalogue(options.root), options.only, options.folder)
        if options.list:
            print("\n".join(f"{mutation.id}  {mutation.file}: {mutation.mistake}" for mutation in chosen))
            return 0
        if options.check:
            lines = [f"{m.id}: {problem}" for m in chosen for problem in m.problems(options.root, runner.tests)]
            print("\n".join(lines) or f"{len(chosen)} mutations apply, and their tests exist")
            return 1 if lines else 0
        trials = outcomes_of_records(runner, chosen, options)
    outcomes = list[Outcome]()
    for outcome in trials:
        outcomes.append(outcome)
        seconds = outcome.build_seconds + outcome.test_seconds
        words = [outcome.place(), *([] if outcome.mutation.id else [outcome.mutation.mistake]), outcome.why]
        print(f"{outcome.result:>19} {seconds:6.1f} s  {'  '.join(words)}".rstrip(), flush=True)
        print(outcome.change() if outcome.result == SURVIVED else "", end="", flush=True)
        if options.report:
            options.report.write_text(table(outcomes))
    runner.make_without_mistake(runner.built)
    print(table(outcomes).splitlines()[0] if outcomes else "no line can be mutated")
    records_not_built = options.changed is None and any(outcome.result == NOT_BUILT for outcome in outcomes)
    return 1 if records_not_built or any(outcome.result in FAILURES for outcome in outcomes) else 0


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        return run(parsed())
    except Misuse as misuse:
        print(f"mutate.py: {misuse}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutate.py: interrupted; sources are as they were, scripts/build.sh builds what is not", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
