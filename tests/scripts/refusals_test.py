#!/usr/bin/python3
"""Tests of the files and words that scripts/plot.py and report.py refuse, and of the error that they print.

Run as tests/scripts/refusals_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import sqlite3
import unittest
from types import ModuleType
from unittest import mock

from example_stores import CURVE, MAP, InTemporaryDirectory, drawn

import plot
import report


class Refusals(InTemporaryDirectory):
    def expect_misuse(self, script: ModuleType, *words: str) -> str:
        code, out, err = self.run_script(script, *words)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        return err

    def test_what_is_no_results_file_is_refused(self) -> None:
        text = self.directory / "text.db"
        text.write_text("no database, but long enough to be taken for one " * 40)
        other = self.directory / "other.db"
        sqlite3.connect(other).executescript("CREATE TABLE t(x)").close()
        with self.store("newer.db") as newer:
            newer.connection.execute("PRAGMA user_version = 10")
        with self.store("older.db") as older:
            older.connection.execute("PRAGMA user_version = 8")
        broken = self.store("broken.db")
        broken.connection.executescript("DROP TABLE measurement").close()
        with self.store("malformed.db") as malformed:
            malformed.connection.execute("INSERT INTO figure VALUES('r', 'f', 1, '{\"panels\": [{}]}', '', '')")
        with self.store("map.db") as flat:
            flat.figure("f", {**MAP, "y_axis": []})
        for path in (
            self.directory / "missing.db",
            self.directory,
            text,
            other,
            newer.path,
            older.path,
            broken.path,
            malformed.path,
            flat.path,
        ):
            for script in (plot, report):
                with self.subTest(path=path.name, script=script.__name__):
                    error = self.expect_misuse(script, str(path), "-o", str(self.directory / "out"))
                    self.assertIn(str(path), error)
                    self.assertIn("expected", error)
        self.assertFalse((self.directory / "out").exists())

    def test_an_output_that_cannot_be_written_leaves_nothing(self) -> None:
        with self.store() as store:
            store.figure("f", CURVE)
        drawn(store.path)
        for script in (plot, report):
            self.assertIn("-o DIR", self.expect_misuse(script, str(store.path), "-o", str(store.path)))
        with mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
            self.assertIn("No space", self.expect_misuse(report, str(store.path), "-o", str(self.directory / "out")))
        self.assertEqual(list((self.directory / "out").iterdir()), [])

    def test_an_unknown_figure_is_answered_with_the_known(self) -> None:
        with self.store() as store:
            store.figure("spectrum", CURVE)
        self.assertIn("spectrum", self.expect_misuse(plot, str(store.path), "--figure", "spektrum"))


if __name__ == "__main__":
    unittest.main()
