#!/usr/bin/python3
"""Says which source files may be compiled as one: scripts/compile_together.py MOST LINES EDITED FILE...

The compiler then reads headers and instantiates templates once for a group. A group has files of one folder, so that an
edit compiles only neighbours, at most MOST files and LINES lines. Files that EDITED lists, one per line, are compiled alone.

A file of a group must not see what an earlier one defines for itself: none of these names occurs in the later file. The order
within a group is chosen so that this holds. Nor may a header that any of them includes declare such a name. Nobody sees names
in a namespace of the file's own (namespace attnbench::time_recipe). Names are found by how clang-format lays code out: a
declaration in a namespace begins a line. Prints the files in the order in which they are to be compiled, each with the number
of its group, or 'alone'.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
INNER_NAMESPACE = re.compile(r"^namespace \w+::\w+ \{$", re.MULTILINE)
# Comments, strings, members and parts of std: text before the file does not change what their words mean.
NOT_LOOKED_UP = re.compile(r'//.*|"(?:[^"\\\n]|\\.)*"|(?:\.|->|std::)[A-Za-z_]\w*')


def names_defined(text: str) -> set[str]:
    """Of every declaration that begins a line the last word before a bracket or an equals sign, except members: these have
    their class before them."""
    heads = re.findall(r"^(?!namespace|using namespace|template|//|#)[A-Za-z][^({=;\n]*", text, re.MULTILINE)
    names = [re.search(r"(::)?\b([A-Za-z_]\w*)\W*$", re.sub(r" (final )?: .*", "", head)) for head in heads]
    # CMake renames `registered` (UNITY_BUILD_UNIQUE_ID), and Catch2 numbers the tests.
    return {name[2] for name in names if name and not name[1]} - {"registered", "TEST_CASE", "TEMPLATE_TEST_CASE"}


@cache
def declared_in(header: Path) -> frozenset[str]:
    return frozenset(names_defined(header.read_text()))


def names_of_headers(text: str) -> set[str]:
    """Names declared by the project's headers that the text includes, directly or through other headers."""
    headers: set[Path] = set()
    waiting = [text]
    while waiting:
        for header in {ROOT / name for name in INCLUDE.findall(waiting.pop())} - headers:
            if header.exists():
                headers.add(header)
                waiting.append(header.read_text())
    return set().union(*map(declared_in, headers))


@dataclass(frozen=True)
class Source:
    path: str
    defined: frozenset[str]  # the names that it defines, without a namespace of its own
    words: frozenset[str]
    in_headers: frozenset[str]
    lines: int


def in_order(files: list[Source]) -> list[Source] | None:
    """So that none sees names of an earlier one; None if there is no such order."""
    if any(one.defined & other.in_headers for one in files for other in files if other is not one):
        return None
    later = {one: {other for other in files if other is not one and one.defined & other.words} for one in files}
    try:
        return list(TopologicalSorter(later).static_order())
    except CycleError:
        return None


def main() -> None:
    most, most_lines, edited = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    alone = {str(ROOT / name) for name in edited.read_text().splitlines()} if edited.exists() else set()
    texts = {path: Path(path).read_text() for path in sys.argv[4:]}
    namespaces = Counter(name for text in texts.values() for name in set(INNER_NAMESPACE.findall(text)))
    groups: list[list[Source]] = []
    for path, text in texts.items():
        own_namespace = any(namespaces[name] == 1 for name in INNER_NAMESPACE.findall(text))
        in_headers = frozenset(names_of_headers(text))
        # A name that a header declares is the same for all who include it.
        defined = frozenset() if own_namespace else frozenset(names_defined(text)) - in_headers
        words = frozenset(WORD.findall(NOT_LOOKED_UP.sub("", text)))
        source = Source(path, defined, words, in_headers, text.count("\n"))
        for i, group in enumerate(groups):
            joined = [*group, source]
            fits = len(joined) <= most and sum(one.lines for one in joined) <= most_lines
            if fits and Path(path).parent == Path(group[0].path).parent and (ordered := in_order(joined)):
                groups[i] = ordered
                break
        else:
            groups.append([source])
    for number, group in enumerate(groups):
        for source in group:  # an edited file leaves its group, and no other file changes its own
            print("alone" if len(group) == 1 or source.path in alone else number, source.path)


if __name__ == "__main__":
    main()
