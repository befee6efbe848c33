#!/usr/bin/python3
"""Says which source files may be compiled as one, one after the other: scripts/compile_together.py MOST FILE...

A compiler then reads headers and instantiates templates once for all of them. Two files must not see each other: none of
the names that one defines for itself occurs in the other, or is declared by a header of the project that the other
includes. Nobody sees names in a namespace of the file's own (namespace attnbench::time_recipe). Names are found by how
clang-format lays code out: a declaration in a namespace begins a line. Prints a line for each file that joins others, at most
MOST in all: the group's number and the file.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from functools import cache
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


def words_seen(path: Path) -> set[str]:
    """All words of the file, and what the project's headers declare that it includes, through other headers as well."""
    text = path.read_text()
    seen = set(WORD.findall(NOT_LOOKED_UP.sub("", text)))
    headers: set[Path] = set()
    waiting = [text]
    while waiting:
        for header in {ROOT / name for name in INCLUDE.findall(waiting.pop())} - headers:
            if header.exists():
                headers.add(header)
                waiting.append(header.read_text())
    return seen.union(*map(declared_in, headers))


def main() -> None:
    most = int(sys.argv[1])
    texts = {path: Path(path).read_text() for path in sys.argv[2:]}
    namespaces = Counter(name for text in texts.values() for name in set(INNER_NAMESPACE.findall(text)))
    # Files, the names that they define, the words that they use.
    groups: list[tuple[list[str], set[str], set[str]]] = []
    for path, text in texts.items():
        alone = any(namespaces[name] == 1 for name in INNER_NAMESPACE.findall(text))
        defined = set() if alone else names_defined(text)
        used = words_seen(Path(path))
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
