#!/usr/bin/python3
"""Runs tests of what changed since REV under the address and undefined behaviour sanitizers.

Chosen are the files of tests that include a changed file, directly or over other files, and for a changed method the tests
that go over all methods, for this method alone; if many methods changed, every test, as in scripts/full_gate.sh. Builds the
library and what was chosen with clang (preset sanitize-changed) and runs it.

Exit codes: 0 every test passed or no C++ file changed, 1 a test failed or the build did, 2 misuse.

  scripts/sanitize_changed.py                  since the commit that scripts/base_commit.sh prints
  scripts/sanitize_changed.py HEAD~3 --list    prints the tests, builds and runs nothing
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from covering_tests import Tests

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("approximations", "experiments", "harness", "tests")
PRESET = "sanitize-changed"
MOST_METHODS = 8  # that are tested one by one; a change to more of them runs every test
NOT_BUILT = ("harness/python/",)  # the extension module: the interpreter would need sanitizers as well


def run(*command: str, stdout: int | None = None, **environment: str) -> int:
    return subprocess.run(command, cwd=ROOT, stdout=stdout, env={**os.environ, **environment}).returncode


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed_since(revision: str) -> list[str]:
    """Sources in C++ that changed since the revision and still exist; all of them if it is empty."""
    patterns = [f"{folder}/*.{ending}" for folder in FOLDERS for ending in ("cpp", "hpp")]
    names = (
        output("git", "diff", "--name-only", "--diff-filter=d", revision, "--", *patterns)
        if revision
        else output("git", "ls-files", "--", *patterns)
    )
    return [name for name in names.splitlines() if not name.startswith(NOT_BUILT)]


def tests_of(changed: list[str]) -> dict[str, set[str]]:
    """Files of tests, and single tests, by the method that they are narrowed to ("" for all)."""
    tests = Tests(ROOT)
    chosen: dict[str, set[str]] = defaultdict(set)
    for file in changed:
        for test, only in tests.covering(file):
            if not test.endswith(".py"):
                chosen[only].add(test)
    return chosen


def files_of(names: set[str]) -> list[str]:
    """The files to build for these names. A name is a file's, or that of one test in it."""
    return sorted(
        {name for name in names if name.endswith(".cpp")}
        | {file for file, cases in Tests(ROOT).cases.items() for case in cases if case.name in names}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", metavar="REV")
    parser.add_argument("--list", action="store_true", help="print the tests and do nothing")
    options = parser.parse_args()
    revision = options.revision or output("scripts/base_commit.sh").strip()
    known = subprocess.run(["git", "cat-file", "-e", f"{revision}^{{commit}}"], cwd=ROOT, capture_output=True)
    if revision and known.returncode != 0:
        print(
            f"sanitize_changed.py: {revision}: git knows no such commit; expected one, such as HEAD~3", file=sys.stderr
        )
        return 2
    changed = changed_since(revision)
    chosen = tests_of(changed)
    print(f"{len(changed)} sources in C++ changed since {revision or 'the first commit'}")
    if options.list:
        for only, names in sorted(chosen.items()):
            print(f"{only or 'all methods'}: {', '.join(sorted(names))}")
        return 0
    if not chosen:
        return 0
    every = len(chosen) > MOST_METHODS
    names = set() if every else set().union(*chosen.values())
    choice = f"-DATTNBENCH_TESTS={';'.join(files_of(names))}"
    if run("cmake", "--preset", PRESET, choice, stdout=subprocess.DEVNULL) != 0:
        return 1
    if run("scripts/build.sh", PRESET, "attnbench_tests", "attnbench") != 0:
        return 1
    if every:
        return 1 if run("ctest", "--preset", PRESET) else 0
    files = "|".join(re.escape(name.removesuffix(".cpp")) for name in sorted(chosen.pop("", set())))
    status = run("ctest", "--preset", PRESET, "-R", f"/({files}) ") if files else 0
    for only, names in sorted(chosen.items()):
        spec = ",".join(re.sub(r'([\\,\[\]"*~])', r"\\\1", name) for name in sorted(names))
        print(f"tests over all methods, for {only}", flush=True)
        status |= run(
            f"build/{PRESET}/attnbench_tests", spec, "~[numbers]", "--warn", "NoTests", ATTNBENCH_TEST_ONLY=only
        )
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
