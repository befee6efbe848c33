#!/usr/bin/python3
"""Writes a program's tests as entries for ctest. Run as tests/discover.py PROGRAM TESTS OUTPUT [--by-file]
[--emulator [COMMAND...]], where COMMAND starts a program of another processor.

An entry is one test, or all tests of one file that are tagged [shared-draws], which would otherwise each draw what takes
a minute, or with --by-file all tests of one file that have the same tags, unless they are tagged [every-method], which costs one
start of the program. Its labels are the tags and the folder below TESTS. Catch2's own script knows no labels.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path


def listed(program: list[str], *words: str) -> list[str]:
    # Catch2 exits with the number of what it lists.
    return subprocess.run([*program, *words], stdout=subprocess.PIPE, text=True).stdout.splitlines()


def tests_of(program: list[str]) -> dict[str, tuple[Path, set[str]]]:
    """File and tags of every test that is not hidden."""
    tests: dict[str, tuple[Path, set[str]]] = {}
    for line in listed(program, "--list-test-names-only", "--verbosity", "high"):
        if line:
            name, _, place = line.rpartition("\t@")
            tests[name] = Path(place.rpartition(":")[0]), set()
    for line in listed(program, "--list-tags"):
        for tag in re.findall(r"\[([^]]+)\]", line):
            for name in listed(program, "--list-test-names-only", f"[{tag}]"):
                if name in tests:
                    tests[name][1].add(tag)
    return tests


def pattern(name: str) -> str:
    """The test of that name and no other, as Catch2 reads it: some characters would mean something."""
    return re.sub(r'([\\,\[\]"*~])', r"\\\1", name)


def quoted(text: str) -> str:
    """A bracket argument of CMake, which nothing in the text ends."""
    return f"[====[{text}]====]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("tests", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--by-file", action="store_true")
    parser.add_argument("--emulator", nargs="*", default=[])
    arguments = parser.parse_args()
    program = [*arguments.emulator, str(arguments.program)]

    entries: dict[str, tuple[list[str], set[str]]] = {}
    for name, (path, tags) in tests_of(program).items():
        file = path.relative_to(arguments.tests)
        # A test that goes over all methods takes a minute under sanitizers: one entry each, so that they share the cores.
        grouped = (arguments.by_file and "every-method" not in tags) or "shared-draws" in tags
        group = f"{file.with_suffix('')} {' '.join(sorted(tags))}" if grouped else name
        names, labels = entries.setdefault(group, ([], set()))
        names.append(name)
        labels |= tags | {folder for folder in [file.parent.as_posix()] if folder != "."}
    if not entries:
        raise SystemExit(f"discover.py: {arguments.program} lists no tests")
    text = ""
    for entry, (names, labels) in entries.items():
        command = [*program, ",".join(map(pattern, names)), "--warn", "NoTests"]
        text += f"add_test({quoted(entry)} {' '.join(map(quoted, command))})\n"
        # The longest begin first, so that none is left alone at the end.
        dear = {"statistics", "second-paths", "every-method"}
        cost = 1000 if "shared-draws" in labels else 100 if labels & dear else 1
        text += (
            f"set_tests_properties({quoted(entry)} PROPERTIES COST {cost} LABELS {quoted(';'.join(sorted(labels)))})\n"
        )
    arguments.output.write_text(text)


if __name__ == "__main__":
    main()
