"""Single mistakes that tests must see: those of tests/mutations/*.toml, which no rule would invent, one table for each.

    ["harness/statistics/intervals.cpp".intervals-normal-quantile]  # the file and an id, unique in the catalogue
    mistake = "the interval of a mean takes the normal quantile, not Student's"
    before = "t_quantile(1 - error / 2, n - 1)"  # exactly once in the file
    after = "normal_quantile(1 - error / 2)"
    tests = ["an interval of the mean is Student's"]  # each must fail
    only = "nystrom"  # optional: tests over all methods take specs with this text only

covering_tests.py says how a test is named. mutation_operators.py makes further mistakes by rule.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from covering_tests import Tests

FOLDER = Path("tests/mutations")
NEEDED = {"mistake", "before", "after", "tests"}


class Misuse(Exception):
    """One line: what was given and what was expected."""


@dataclass(frozen=True)
class Mutation:
    id: str
    file: str
    mistake: str
    before: str
    after: str
    tests: tuple[str, ...] = ()
    only: str = ""  # given to the tests as ATTNBENCH_TEST_ONLY
    line: int = 0  # of a mistake by rule, because other lines may have the same text

    def planted_in(self, text: str) -> str:
        if not self.line:
            return text.replace(self.before, self.after)
        lines = text.splitlines(keepends=True)
        lines[self.line - 1] = lines[self.line - 1].replace(self.before, self.after)
        return "".join(lines)

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
    """All records by their files, so that what is built for one serves the next. Throws Misuse."""
    mutations: dict[str, Mutation] = {}
    for path in sorted((root / FOLDER).glob("*.toml")):
        where = path.relative_to(root)
        try:
            files = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise Misuse(f"{where}: {error}; expected TOML") from None
        for file, records in files.items():
            for id, record in records.items() if isinstance(records, dict) else [("", records)]:
                if id in mutations:
                    raise Misuse(f"{where}: the id {id} is there twice, expected once in the catalogue")
                mutations[id] = _mutation(file, id, record, str(where))
    if not mutations:
        raise Misuse(f"{root / FOLDER}: no mutations, expected TOML files with some")
    return sorted(mutations.values(), key=lambda mutation: mutation.file)


def _mutation(file: str, id: str, record: object, where: str) -> Mutation:
    if not isinstance(record, dict):
        raise Misuse(f'{where}: {file} {id} = {record!r}; expected tables ["FILE".ID]')
    if wrong := record.keys() ^ NEEDED - {"only"} if record.keys() - {"only"} != NEEDED else set():
        raise Misuse(f"{where}: {id} has or lacks {', '.join(sorted(wrong))}; expected {', '.join(sorted(NEEDED))}")
    texts = {key: value for key, value in record.items() if key != "tests"}
    if not isinstance(record["tests"], list) or not all(isinstance(value, str) for value in texts.values()):
        raise Misuse(f"{where}: {id}: expected tests as a list, and text elsewhere")
    return Mutation(id, file, tests=tuple(map(str, record["tests"])), **texts)
