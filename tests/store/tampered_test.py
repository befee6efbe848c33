#!/usr/bin/python3
"""Results files that were altered with sqlite3: verify, merge and report name the alteration, each in one line, and no
command runs what a file holds.

Run as tests/store/tampered_test.py PROGRAM.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from example_stores import InTemporaryDirectory

import report
import results_file

PROGRAM = ""
REQUEST = ["attention-error", "--method", "performer:m=8", "--method", "uniform", "-d", "8", "-n", "300"]
# SQL, and what a line about the altered file says.
ALTERED = {
    "a value": "UPDATE measurement SET value = value * (1 + 1e-12) WHERE value <> 0",
    "a unit": "UPDATE measurement SET unit = 's'",
    "a swapped method": "UPDATE cell SET method = CASE id WHEN 1 THEN 'uniform' ELSE 'performer:m=8' END",
    "a moved replicate": "UPDATE replicate SET replicate = replicate + 5; UPDATE measurement SET replicate = replicate + 5",
    "an edited reason": "UPDATE replicate SET reason = 'late' WHERE ending = 'skipped'",
    "a changed environment": "UPDATE run SET environment = '{}'",
    "a flipped bit": "UPDATE measurement SET array = substr(array, 1, 800) || x'ff' || substr(array, 802) "
    "WHERE array IS NOT NULL",
    "a deleted measurement": "DELETE FROM measurement WHERE metric = (SELECT max(metric) FROM measurement)",
    "a figure": "UPDATE figure SET json = replace(json, 'a', 'b')",
    "a verdict": "UPDATE verdict SET outcome = 'HOLDS', numbers = '1'",
}
UNREADABLE = {
    "a text that is not UTF-8": "UPDATE cell SET method = CAST(x'ff' AS TEXT)",
    "a text with NUL": "UPDATE run SET command = 'a' || char(0) || 'b'",
    "a blob as a text": "UPDATE measurement SET unit = x'31'",
    "a text as a number": "UPDATE cell SET n = 'many'",
    "an array that does not fit its shape": "UPDATE measurement SET array = zeroblob(8) WHERE array IS NOT NULL",
    "a shape that is huge": "UPDATE measurement SET shape = '[4611686018427387904,4]' WHERE array IS NOT NULL",
    "a shape that is negative": "UPDATE measurement SET shape = '[-1]' WHERE array IS NOT NULL",
    "a shape that is nested": f"UPDATE measurement SET shape = '{'[' * 9000}' WHERE array IS NOT NULL",
}
FOREIGN = {
    "a trigger that deletes": "CREATE TRIGGER t AFTER INSERT ON replicate BEGIN DELETE FROM measurement; END",
    "a trigger that loops": "CREATE TRIGGER t AFTER INSERT ON run BEGIN INSERT INTO verdict WITH RECURSIVE i(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM i) SELECT x, x, x, x, x, x, x, x, x, x, x, x, x, x, x FROM i; END",
    "a view in place of a table": "DROP TABLE measurement; CREATE VIEW measurement AS WITH RECURSIVE i(cell) AS "
    "(SELECT 1 UNION ALL SELECT cell + 1 FROM i) SELECT * FROM i",
    "a view": "CREATE VIEW mine AS SELECT * FROM cell",
    "a missing table": "DROP TABLE verdict",
    "a missing column": "ALTER TABLE cell DROP COLUMN seed",
    "an extra column": "ALTER TABLE run ADD COLUMN mine TEXT",
    "a removed constraint": "PRAGMA writable_schema = ON; "
    "UPDATE sqlite_master SET sql = replace(sql, 'TEXT NOT NULL', 'TEXT') WHERE name = 'cell'",
}
SCRATCH: tempfile.TemporaryDirectory[str]


def attnbench(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Ends after ten minutes: a file that hangs the program is a failure, not a test that never ends."""
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=600)


def setUpModule() -> None:
    global SCRATCH
    SCRATCH = tempfile.TemporaryDirectory()
    for words in (
        ["run", *REQUEST, "--replicates", "2"],
        ["run", "attention-error", "--method", "nystrom", "--causal", "-n", "64"],
        ["reproduce", "causal-rank", "--smoke", "-o", Path(SCRATCH.name) / "page"],
    ):
        made = attnbench(*words, "--results", whole())
        if made.returncode != ("nystrom" in words):  # 1: its only cell is skipped
            raise AssertionError(made.stdout + made.stderr)


def tearDownModule() -> None:
    SCRATCH.cleanup()


def whole() -> Path:
    return Path(SCRATCH.name) / "whole.db"


class Tampered(InTemporaryDirectory):
    def changed(self, sql: str) -> Path:
        """A copy of the whole file after SQL statements."""
        path = self.directory / "changed.db"
        shutil.copy(whole(), path)
        with closing(sqlite3.connect(path)) as connection:
            before = connection.total_changes
            connection.executescript(sql)
            self.assertTrue(
                connection.total_changes > before or "CREATE" in sql or "TABLE" in sql, "it changed nothing"
            )
        return path

    def refused(self, code: int, out: str, err: str, path: Path) -> str:
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn(str(path), err)
        self.assertIn("expected", err)
        self.assertFalse((self.directory / "out.db").exists())
        return err

    def merge_and_report_refuse(self, path: Path) -> None:
        merged = attnbench("merge", self.directory / "out.db", path)
        self.refused(merged.returncode, merged.stdout, merged.stderr, path)
        self.refused(*self.run_script(report, str(path), "-o", str(self.directory / "page")), path)

    def every_command_refuses(self, path: Path) -> None:
        before = path.read_bytes()
        commands: list[list[str | Path]] = [
            ["run", *REQUEST, "--replicates", "3", "--results", path],
            ["plan", *REQUEST, "--results", path],
            ["export", path],
            ["compare", path, whole()],
            ["merge", path, whole()],
        ]
        for words in commands:
            with self.subTest(command=words[0]):
                answer = attnbench(*words)
                self.refused(answer.returncode, answer.stdout, answer.stderr, path)
        self.merge_and_report_refuse(path)
        self.assertEqual(path.read_bytes(), before)

    def test_an_untouched_file_passes_in_both_languages(self) -> None:
        self.assertIn("whole\n", attnbench("verify", whole()).stdout)
        merged = attnbench("merge", self.directory / "out.db", whole())
        self.assertEqual(merged.returncode, 0, merged.stderr)
        self.assertIn("whole\n", attnbench("verify", self.directory / "out.db").stdout)
        for path in (whole(), self.directory / "out.db"):
            with closing(results_file.open_results(path)) as connection:
                for digests in (results_file.replicate_digests, results_file.reproduction_digests):
                    self.assertGreater(len(list(digests(connection))), 0)

    def test_an_altered_value_is_found(self) -> None:
        for what, sql in ALTERED.items():
            with self.subTest(what):
                path = self.changed(sql)
                verified = attnbench("verify", path)
                self.assertEqual((verified.returncode, verified.stderr), (1, ""))
                self.assertRegex(verified.stdout, r"(?m)^problem: altered: ")
                self.assertNotIn("whole\n", verified.stdout)
                self.merge_and_report_refuse(path)

    def test_values_that_no_program_can_read_are_refused(self) -> None:
        for what, sql in UNREADABLE.items():
            with self.subTest(what):
                path = self.changed(sql)
                self.assertEqual(attnbench("verify", path).returncode, 1)
                self.every_command_refuses(path)

    def test_tables_that_attnbench_does_not_make_are_refused(self) -> None:
        for what, sql in FOREIGN.items():
            with self.subTest(what):
                path = self.changed(sql)
                verified = attnbench("verify", path)
                self.refused(verified.returncode, verified.stdout, verified.stderr, path)
                self.every_command_refuses(path)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
