"""The catalogue of single mistakes that tests must see: tests/mutations/**/*.toml, one record a mistake.

    [[mutation]]
    id = "intervals-normal-quantile"         # unique in the whole catalogue
    file = "harness/statistics/intervals.cpp"
    mistake = "the interval of a mean takes the normal quantile, not Student's"
    before = "t_quantile(1 - error / 2, n - 1)"  # exactly once in the file
    after = "normal_quantile(1 - error / 2)"
    tests = ["an interval of the mean is Student's"]  # each must go red
    only = "nystrom"                         # optional: of tests over all methods, only for specs with this text
    survives = "..."                         # only where no test can see it: the reason

A test is the name of a TEST_CASE, or a file of Python tests with the name of one: "ticks_test.py: test_name". Files of
tests are found by their names alone, so that they may move between folders.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

FOLDER = Path("tests/mutations")


class Misuse(Exception):
    """One line: what was given and what was expected."""


@dataclass(frozen=True)
class Mutation:
    id: str
    file: str
    mistake: str
    before: str
    after: str
    tests: tuple[str, ...]
    only: str = ""  # given to the tests as ATTNBENCH_TEST_ONLY
    survives: str = ""

    def problems(self, root: Path, tests: Tests) -> list[str]:
        """Why it cannot be tried on the tree as it is."""
        found = [f"no test is called {test!r}" for test in self.tests if not tests.known(test)]
        if not self.tests:
            found.append("it names no test")
        if self.before == self.after:
            found.append("it changes nothing")
        if not (root / self.file).is_file():
            return [f"{self.file} does not exist", *found]
        times = (root / self.file).read_text().count(self.before)
        if times != 1:
            found.insert(0, f"its text before stands {times} times in {self.file}, expected once")
        return found


def read_catalogue(root: Path) -> list[Mutation]:
    """All records, those of one file together, so that what is built for one serves the next. Throws Misuse."""
    mutations: dict[str, Mutation] = {}
    for path in sorted((root / FOLDER).rglob("*.toml")):
        where = path.relative_to(root)
        try:
            records = tomllib.loads(path.read_text()).get("mutation", [])
        except tomllib.TOMLDecodeError as error:
            raise Misuse(f"{where}: {error}; expected TOML") from None
        for record in records:
            mutation = _mutation(record, str(where))
            if mutation.id in mutations:
                raise Misuse(f"{where}: the id {mutation.id} is there twice, expected once in the catalogue")
            mutations[mutation.id] = mutation
    if not mutations:
        raise Misuse(f"{root / FOLDER}: no [[mutation]], expected TOML files with some")
    return sorted(mutations.values(), key=lambda mutation: mutation.file)


def _mutation(record: dict[str, object], where: str) -> Mutation:
    name = record.get("id", f"a record at {record.get('file', 'no file')}")
    types = {field.name: list if field.name == "tests" else str for field in fields(Mutation)}
    for key, value in record.items():
        if key not in types or not isinstance(value, types[key]):
            raise Misuse(
                f"{where}: {name}: {key} = {value!r}; expected text in {', '.join(types)}, and tests as a list"
            )
    lacking = [key for key in types if key not in record and key not in ("only", "survives")]
    if lacking:
        raise Misuse(f"{where}: {name} lacks {', '.join(lacking)}")
    tests = record["tests"]
    assert isinstance(tests, list)
    texts = {key: str(value) for key, value in record.items() if key != "tests"}
    return Mutation(tests=tuple(str(test) for test in tests), **texts)


@dataclass(frozen=True)
class CppTest:
    template: bool  # Catch2 then knows it by its name and a type
    starts_faulty: bool  # its file starts the program with the planted faults


@dataclass(frozen=True)
class PythonTest:
    path: Path
    name: str  # "" for all of the file


class Tests:
    """The tests that there are in tests/, read from their sources."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def cpp(self) -> dict[str, CppTest]:
        found = {}
        case = re.compile(r'(TEMPLATE_)?TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
        for path in (self.root / "tests").rglob("*_test.cpp"):
            text = path.read_text()
            for template, literals in case.findall(text):
                name = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')
                found[name] = CppTest(bool(template), "ATTNBENCH_FAULTY" in text)
        return found

    @cached_property
    def python_files(self) -> dict[str, Path]:
        return {path.name: path for path in (self.root / "tests").rglob("*_test.py")}

    def python(self, test: str) -> PythonTest | None:
        """None for the name of a test in C++, or of a file that does not exist."""
        file, _, name = test.partition(": ")
        return PythonTest(self.python_files[file], name) if file in self.python_files else None

    def known(self, test: str) -> bool:
        python = self.python(test)
        if python is None:
            return test in self.cpp
        return not python.name or f"def {python.name}(" in python.path.read_text()
