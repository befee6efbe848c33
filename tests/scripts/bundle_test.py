#!/usr/bin/python3
"""Tests of scripts/bundle.py: the files that report.py --bundle puts beside its page.

Run as tests/scripts/bundle_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import json
import sqlite3
import unittest

from example_stores import InTemporaryDirectory

import bundle
import report
import results


class Bundle(InTemporaryDirectory):
    def test_the_page_comes_with_what_it_rests_on(self) -> None:
        store = self.example()
        out = self.directory / "out"
        self.assertEqual(self.run_script(report, str(store.path), "-o", str(out), "--bundle")[0], 0)
        names = {path.name for path in out.iterdir()}
        self.assertLessEqual({"results.db", "verdicts.csv", "verdicts.md", "verdicts.tex", "environment.json"}, names)
        copied, original = results.read(out / "results.db"), results.read(store.path)
        self.assertEqual(len(copied.of_metric("mse")), len(original.of_metric("mse")))
        environment = json.loads((out / "environment.json").read_text())
        self.assertEqual(environment["environments"], [{"cpu": {"model": "M"}, "clean": True}])
        self.assertEqual(environment["runs"][0]["environment"], 0)

    def test_an_environment_stands_once_whatever_the_load(self) -> None:
        with self.store() as store:
            for i in range(2, 5):
                memory = {"available_bytes": i}
                store.run(i, {"cpu": "M" if i < 4 else "N", "load_average": [i], "memory": memory})
        told = json.loads(bundle.environment(results.read(store.path)))
        self.assertEqual([run["environment"] for run in told["runs"]], [0, 1, 1, 2])
        self.assertEqual([run["load_average"] for run in told["runs"]], [None, [2], [3], [4]])
        self.assertEqual(told["environments"][1], {"cpu": "M", "memory": {}})

    def test_the_copy_has_what_lies_in_the_log_of_a_run_that_goes_on(self) -> None:
        with self.store() as store:
            store.connection.commit()
            store.connection.execute("PRAGMA journal_mode = WAL")
            store.cell("a", [1.0])
            store.seal()
            self.assertGreater((self.directory / "results.db-wal").stat().st_size, 0)
            copy = self.directory / "copy.db"
            copy.write_bytes(bundle.store(store.path))
        self.assertEqual(len(results.read(copy).cells), 1)
        self.assertEqual(sqlite3.connect(copy).execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_a_store_is_copied_unless_it_is_there(self) -> None:
        read = results.read(self.store().path)
        for folder, copied in ((self.directory / "out", ["results.db"]), (self.directory, [])):
            self.assertEqual([name for name in bundle.bundle(read, folder) if name.endswith(".db")], copied)


if __name__ == "__main__":
    unittest.main()
