#!/usr/bin/python3
"""Tests of scripts/results_file.py: files that it refuses, and digests. tests/store/tampered_test.py has files of attnbench.

Run as tests/scripts/results_file_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import re
import sqlite3
import unittest
from collections.abc import Callable
from contextlib import closing
from unittest import mock

from example_stores import SCRIPTS, InTemporaryDirectory, seal

import bundle
import plot
import report
import results
import results_file
import verdicts


class Digests(unittest.TestCase):
    def test_they_are_those_that_were_computed_by_hand(self) -> None:
        # tests/store/digest_test.cpp has the same.
        records = [b"", b"a", b"a" * 64, b"a" * 65, bytes(i % 251 for i in range(5000))]
        expected = [
            "9fb3ead23c8c0206",
            "c977875341c301e6",
            "c0ec7c7004e81535",
            "6aa71173b074b57e",
            "5c4d1a158045ea59",
        ]
        self.assertEqual(results_file.digests(records), expected)
        self.assertEqual([results_file.digests([record])[0] for record in records], expected)
        self.assertEqual(results_file.digests([]), [])

    def test_the_tables_are_those_of_the_program(self) -> None:
        source = (SCRIPTS.parent / "harness" / "store" / "schema.cpp").read_text()
        tables = re.search(r'R"sql\((.*?)\)sql"', source, re.DOTALL)
        version = re.search(r"schema_version = (\d+);", source)
        assert tables and version
        self.assertEqual((tables[1], int(version[1])), (results_file.TABLES, results_file.SCHEMA))


class Refusals(InTemporaryDirectory):
    def refusal(self, change: Callable[[sqlite3.Connection], object], sealed: bool = True) -> str:
        """The message about a file after the change, with digests of what it then holds."""
        path = self.example(results.Verdict("recipe", "HOLDS", "s", "n")).path
        with closing(sqlite3.connect(path)) as connection:
            change(connection)
            if sealed:
                seal(connection)
            connection.commit()
        errors = set()
        for script, words in (
            (report, ["-o", str(self.directory / "out")]),
            (plot, ["-o", str(self.directory / "out")]),
            (verdicts, []),
        ):
            code, out, err = self.run_script(script, str(path), *words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            errors.add(err.partition(": ")[2])
        with self.assertRaises(results.Misuse):
            results.read(path)
        path.unlink()
        self.assertEqual(len(errors), 1)
        return errors.pop()

    def test_json_that_is_none_or_of_another_kind_is_refused_although_its_digest_agrees(self) -> None:
        for table, column, what in (
            ("run", "environment", "the environment of a run is not a JSON object"),
            ("cell", "parameters", "the parameters of a cell is not a JSON object"),
            ("reproduction", "cells", "the cells of a reproduction is not a JSON list"),
            ("verdict", "compared", "the comparisons of a verdict is not a JSON list"),
        ):
            wrong = "[]" if "object" in what else "{}"
            for text in ("", "{", wrong, "[" * 100_000):
                with self.subTest(column=column, text=text[:9]):
                    sql = f"UPDATE {table} SET {column} = ?"
                    self.assertIn(what, self.refusal(lambda connection: connection.execute(sql, [text])))
        lacking = "UPDATE verdict SET compared = '[{\"what\": 1}]'"
        self.assertIn("lacks a part", self.refusal(lambda connection: connection.execute(lacking)))

    def test_what_a_digest_covers(self) -> None:
        for sql in (
            "UPDATE measurement SET value = 1 + 1e-15 WHERE metric = 'mse'",
            "DELETE FROM measurement WHERE metric = 'mse' AND replicate = 1",
            "UPDATE replicate SET reason = 'other' WHERE ending = 'crashed'",
            "UPDATE cell SET method = 'other'",
            "UPDATE run SET environment = '{}'",
            "UPDATE figure SET json = replace(json, 'mse', 'MSE')",
            "UPDATE verdict SET outcome = 'REFUTED'",
            "UPDATE reproduction SET size = 'full'",
            "DELETE FROM reproduction",
        ):
            with self.subTest(sql):
                error = self.refusal(lambda connection: connection.execute(sql), sealed=False)
                self.assertIn("has another digest than its values", error)

    def test_a_folder_that_cannot_be_written_is_read_from_and_left_as_it_is(self) -> None:
        path = self.example().path
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        with mock.patch("os.access", return_value=False):
            with closing(results_file.open_results(path)) as connection:
                self.assertEqual(connection.execute("SELECT count(*) FROM run").fetchone(), (1,))
                self.assertEqual(list(self.directory.iterdir()), [path])

    def test_a_run_that_records_meanwhile_changes_nothing_for_a_reader(self) -> None:
        path = self.example().path
        with closing(sqlite3.connect(path)) as writer:
            writer.execute("PRAGMA journal_mode = WAL")
            with closing(results_file.open_results(path)) as reader:
                writer.execute("DELETE FROM measurement")
                writer.commit()
                self.assertTrue(reader.execute("SELECT count(*) FROM measurement").fetchone()[0])
                self.assertFalse(writer.execute("SELECT count(*) FROM measurement").fetchone()[0])

    def test_the_copy_in_a_bundle_is_checked_as_well(self) -> None:
        path = self.example().path
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE VIEW mine AS SELECT 1")
        with self.assertRaisesRegex(results.Misuse, "a foreign view is not as attnbench makes it"):
            bundle.store(path)


if __name__ == "__main__":
    unittest.main()
