#!/usr/bin/python3
"""Tests of the catalogue in tests/mutations/: every record can be tried on the sources as they are.

Run as tests/scripts/mutations_test.py; needs no attnbench.
"""

from __future__ import annotations

import sys
import unittest
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from covering_tests import Tests
from mutation_catalogue import FOLDER, Mutation, read_catalogue
from mutation_operators import mutants

LEAST, MOST = 100, 150  # records
# Folders whose every subfolder has records of its own, and folders that have some.
DIVIDED = ("approximations", "harness")
WHOLE = ("experiments", "experiments/recipes", "scripts", "scripts/attnbench", "scripts/slurm")
BY_RULE = {"harness/errors"}  # one file, with no mistake but those of rules


class Catalogue(unittest.TestCase):
    @cached_property
    def mutations(self) -> list[Mutation]:
        return read_catalogue(ROOT)  # throws for an id that is there twice

    def test_every_record_applies_and_names_tests_that_exist(self) -> None:
        tests = Tests(ROOT)
        for mutation in self.mutations:
            with self.subTest(mutation.id):
                self.assertEqual(mutation.problems(ROOT, tests), [])

    def test_every_record_says_a_mistake_in_one_line(self) -> None:
        for mutation in self.mutations:
            with self.subTest(mutation.id):
                self.assertRegex(mutation.id, r"^[a-z0-9]+(-[a-z0-9]+)+$")
                self.assertRegex(mutation.mistake, r"^\S[^\n]*\S$")

    def test_no_record_is_a_mistake_that_a_rule_makes(self) -> None:
        for mutation in [one for one in self.mutations if one.file.endswith((".cpp", ".hpp", ".py"))]:
            text = (ROOT / mutation.file).read_text()
            planted = mutation.planted_in(text).splitlines()
            changed = [n for n, pair in enumerate(zip(text.splitlines(), planted), 1) if pair[0] != pair[1]]
            made = mutants(mutation.file, text, set(changed[:1])).get(changed[0], [])
            with self.subTest(mutation.id):
                self.assertFalse(len(changed) == 1 and planted[changed[0] - 1] in [after for _, _, after in made])

    def test_every_folder_has_mistakes(self) -> None:
        self.assertTrue(LEAST <= len(self.mutations) <= MOST, len(self.mutations))
        folders = [path for folder in DIVIDED for path in (ROOT / folder).iterdir() if path.is_dir()]
        expected = {str(path.relative_to(ROOT)) for path in folders if any(path.rglob("*.cpp"))} | set(WHOLE)
        parents = {str(parent) for mutation in self.mutations for parent in Path(mutation.file).parents}
        self.assertEqual(expected - parents - BY_RULE, set(), f"folders without a record in {FOLDER}")

    def test_each_file_of_the_catalogue_is_of_one_folder(self) -> None:
        """So that the folder of a mistake says which file its record goes to."""
        for path in (ROOT / FOLDER).glob("*.toml"):
            tables = [line for line in path.read_text().splitlines() if line.startswith("[")]
            self.assertEqual([line for line in tables if not line.startswith(f'["{path.stem}/')], [])


if __name__ == "__main__":
    unittest.main()
