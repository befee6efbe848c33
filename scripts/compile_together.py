#!/usr/bin/python3
"""Says which source files may be compiled as one, the one after the other: scripts/compile_together.py MOST FILE...

A compiler then reads headers and instantiates templates once for all of them. Two files must not see each other: none of
the names that one defines for itself occurs in the other or in the project's headers that the other includes. Names in a namespace of the file's own (namespace
attnbench::time_recipe) are seen by nobody. Names are found by how clang-format lays code out: what stands in a namespace
begins a line. Prints a line for each file that has company, of at most MOST files: the group's number and the file.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
# Comments, strings, members and parts of std: their words mean the same whatever stands before the file.
NOT_LOOKED_UP = re.compile(r'//.*|"(?:[^"\\\n]|\\.)*"|(?:\.|->|std::)[A-Za-z_]\w*')


def names_defined(text: str) -> set[str]:
    """Of every declaration that begins a line the last word before a bracket or an equals sign. Members have their class before them."""
    if re.search(r"^namespace \w+::\w+ \{$", text, re.MULTILINE):
        return set()
    heads = re.findall(r"^(?!namespace|using namespace|template|//|#)[A-Za-z][^({=;\n]*", text, re.MULTILINE)
    names = [re.search(r"(::)?\b([A-Za-z_]\w*)\W*$", re.sub(r" (final )?: .*", "", head)) for head in heads]
    return {name[2] for name in names if name and not name[1]} - {
        "registered"
    }  # CMake renames it (UNITY_BUILD_UNIQUE_ID)


@cache
def words_used(path: Path) -> frozenset[str]:
    """Of the file and, through all of its includes, of the project's headers."""
    used: set[str] = set()
    waiting, seen = [path], {path}
    while waiting:
        text = waiting.pop().read_text()
        used |= words_of(text)
        found = {ROOT / name for name in INCLUDE.findall(text)} - seen
        seen |= found
        waiting += [header for header in found if header.exists()]
    return frozenset(used)


@cache
def words_of(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(NOT_LOOKED_UP.sub("", text)))


def main() -> None:
    most = int(sys.argv[1])
    # Files, the names that they define, the words that they use.
    groups: list[tuple[list[str], set[str], set[str]]] = []
    for path in sys.argv[2:]:
        text = Path(path).read_text()
        defined = names_defined(text)
        used = set(words_used(Path(path)))
        for files, others_define, others_use in groups:
            if len(files) < most and not (defined & others_use or used & others_define):
                files.append(path)
                others_define |= defined
                others_use |= used
                break
        else:
            groups.append(([path], defined, used))
    for number, (files, _, _) in enumerate(groups):
        for path in files if len(files) > 1 else []:
            print(number, path)


if __name__ == "__main__":
    main()
