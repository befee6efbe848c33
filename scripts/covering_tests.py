"""The tests of tests/, by name, and those that cover a source file, the nearest first.

A test is named by its TEST_CASE, or by its file and, in Python, its function: "intervals_test.cpp", "ticks_test.py",
"ticks_test.py: test_name". Files of tests are found by their names alone, so that they may move between folders.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CASE = re.compile(r'^(TEMPLATE_)?TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:from|import) ([^\n]+)", re.MULTILINE)
ENTRY = re.compile(r'\.name = "([\w-]+)"')
OVER_ALL_METHODS = re.compile(r"\[every-method\]|\[second-paths\]|all_variants\(|for_each_case\(")
FOLDERS = ("approximations", "experiments", "harness", "scripts", "tests")
PROGRAMS = {"faults", "fuzz", "mistakes", "plugins", "threads"}  # folders whose C++ is not in attnbench_tests
ENTRIES = 3  # of a file that many entries use, the nearest ones are tested


@dataclass(frozen=True)
class Case:
    name: str
    template: bool  # Catch2 then knows it by its name and a type
    text: str


class Tests:
    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def texts(self) -> dict[str, str]:
        """All sources by their paths from the root."""
        paths = [path for folder in FOLDERS for path in sorted((self.root / folder).rglob("*.[chp]*"))]
        named = {path.relative_to(self.root).as_posix(): path for path in paths if path.is_file()}
        return {name: path.read_text() for name, path in named.items() if name.endswith((".cpp", ".hpp", ".py"))}

    @cached_property
    def files(self) -> dict[str, str]:
        """The paths of the files of tests, by their names."""
        paths = [path for path in self.texts if path.startswith("tests/") and path.endswith(("_test.cpp", "_test.py"))]
        return {Path(path).name: path for path in paths if path.endswith(".py") or not PROGRAMS & {*Path(path).parts}}

    @cached_property
    def cases(self) -> dict[str, list[Case]]:
        """The tests of each file in C++."""
        found: dict[str, list[Case]] = {}
        for name in [name for name in self.files if name.endswith(".cpp")]:
            text = self.texts[self.files[name]]
            starts = [*CASE.finditer(text)]
            ends = [*(match.start() for match in starts[1:]), len(text)]
            found[name] = []
            for match, end in zip(starts, ends, strict=True):
                literals = re.findall(r'"((?:[^"\\]|\\.)*)"', match[2])
                case = Case("".join(literals).replace('\\"', '"'), bool(match[1]), text[match.end() : end])
                found[name].append(case)
        return found

    def case(self, test: str) -> Case | None:
        return next((case for cases in self.cases.values() for case in cases if case.name == test), None)

    def python(self, test: str) -> tuple[Path, str] | None:
        """The file and the function, or ""; None for tests in C++."""
        file, _, name = test.partition(": ")
        return (self.root / self.files[file], name) if file.endswith(".py") and file in self.files else None

    def known(self, test: str) -> bool:
        if python := self.python(test):
            return not python[1] or f"def {python[1]}(" in python[0].read_text()
        return test in self.files or self.case(test) is not None

    def count(self, test: str) -> int:
        file = self.files.get(test, "")
        return len(self.cases[test]) if file.endswith(".cpp") else self.texts.get(file, "def test_").count("def test_")

    @cached_property
    def users(self) -> dict[str, set[str]]:
        """By file, those that include or import it, start it by its name, or are the header of what it implements."""
        users: dict[str, set[str]] = defaultdict(set)
        modules = defaultdict(set)
        for path in self.texts:
            if path.endswith(".py"):
                modules[Path(path).stem].add(path)
        for path, text in self.texts.items():
            if path.endswith(".py"):
                words = {word for line in IMPORT.findall(text) for word in re.findall(r"\w+", line)}
                words |= {name for name in re.findall(r"(\w+)\.py\b", text) if path in self.files.values()}
                for used in {used for word in words & modules.keys() for used in modules[word]} - {path}:
                    users[used].add(path)
                continue
            headers = {name for name in INCLUDE.findall(text) if name in self.texts}
            own = path.removesuffix("cpp") + "hpp"
            beside = {name for name in headers if Path(name).parent == Path(path).parent}
            for header in headers:
                users[header].add(path)
            if path.endswith(".cpp"):
                users[path] |= {own} if own in self.texts else beside
        return users

    def _distances(self, file: str) -> dict[str, int]:
        """The files that use it, and over how many others."""
        distances, waiting = {file: 0}, deque([file])
        while waiting:
            here = waiting.popleft()
            for user in sorted(self.users[here] - distances.keys()):
                is_header = here.endswith(".cpp") and user.endswith(".hpp")
                distances[user] = distances[here] + (not is_header)
                (waiting.appendleft if is_header else waiting.append)(user)
        return distances

    def covering(self, file: str) -> list[tuple[str, str]]:
        """Tests with what they are narrowed to (ATTNBENCH_TEST_ONLY) or "", the nearest first.

        Near is a test that includes or imports the file, names its entry in quotes, or goes over all methods if the file
        is one; then those that reach it over other files. Without any, the tests in a folder of the same name.
        """
        distances = self._distances(file)
        near: dict[tuple[str, str], tuple[int, int]] = {}  # distance, and minus how often the entry is named
        entries = [(d, path, ENTRY.search(self.texts[path])) for path, d in distances.items() if path[:6] != "tests/"]
        for distance, path, match in sorted(entries, key=lambda entry: entry[:2]):
            if match is None or len({only for _, only in near}) > ENTRIES:
                continue
            named = re.compile(rf'["=\[,]{match[1]}(?=["\s:,\]])')
            for name, place in self.files.items():
                if distance < 2 and (times := len(named.findall(self.texts[place]))):
                    near.setdefault((name, ""), (distance + 1, -times))
            for case in [case for cases in self.cases.values() for case in cases if path.startswith("approximations/")]:
                if OVER_ALL_METHODS.search(case.text):
                    near.setdefault(
                        (case.name, match[1]), (distance + 1, -2000 if "[second-paths]" in case.text else -1000)
                    )
        for name, place in self.files.items():
            if place in distances:
                near[name, ""] = min((distances[place], 0), near.get((name, ""), (99, 0)))
        folders = Path(file).parent.parts
        if not near:
            near = {(name, ""): (0, 0) for name, place in self.files.items() if Path(place).parent.name in folders[1:]}

        def rank(test: tuple[str, str]) -> tuple[object, ...]:
            name, (distance, times) = test[0], near[test]
            other_language = name.endswith(".py") != file.endswith(".py")
            elsewhere = Path(self.files.get(name, "")).parent.name not in folders
            return Path(name).stem != Path(file).stem + "_test", distance, other_language, times, elsewhere, test

        return sorted(near, key=rank)
