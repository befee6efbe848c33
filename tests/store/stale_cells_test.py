#!/usr/bin/python3
"""Which cells of a results file are measured again when a source of the program changes.

Each test edits one source in a copy of the tree, writes the facts of that build as the build does, and gives them to the
program in place of its own. So the whole program answers as one that was built from the edited sources would.

Run as tests/store/stale_cells_test.py PROGRAM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ""
SIZES = ["-n", "16", "-d", "4"]


class StaleCellsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = str(self.folder / "results.db")
        for folder in ("harness", "approximations", "experiments"):
            shutil.copytree(ROOT / folder, self.folder / "tree" / folder, ignore=shutil.ignore_patterns("model"))

    def facts(self) -> str:
        """A library with the facts of a build from the copied tree."""
        source, library = self.folder / "facts.cpp", self.folder / f"facts{len(list(self.folder.glob('*.so')))}.so"
        subprocess.run(
            [
                "cmake",
                f"-DSOURCE_DIR={self.folder / 'tree'}",
                f"-DOUTPUT={source}",
                "-DVERSION=0.1.0",
                "-DCOMPILER=a compiler",
                "-DFLAGS=flags",
                "-DBUILD_TYPE=Release",
                "-P",
                str(ROOT / "harness/store/build_facts.cmake"),
            ],
            check=True,
        )
        compile_it = ["c++", "-std=c++20", "-shared", "-fPIC", f"-I{ROOT}", str(source), "-o", str(library)]
        subprocess.run(compile_it, check=True)
        return str(library)

    def ran(self, facts: str, experiment: str, *methods: str) -> int:
        """How many replicates a run of one replicate a cell measured."""
        words = [PROGRAM, "run", experiment, *SIZES, "--results", self.results]
        for method in methods:
            words += ["--method", method]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": facts})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return int(done.stdout.split(" replicates: ")[1].split(" run")[0])

    def edit(self, source: str) -> None:
        with open(self.folder / "tree" / source, "a", encoding="utf-8") as file:
            file.write("// an edit\n")

    def test_a_file_that_records_for_an_experiment_makes_its_cells_stale_and_no_others(self) -> None:
        before = self.facts()
        self.assertEqual(self.ran(before, "rank", "linear", "softmax"), 2)
        self.assertEqual(self.ran(before, "attention-error", "linear"), 1)
        self.assertEqual(self.ran(before, "rank", "linear", "softmax"), 0)
        self.edit("experiments/rank_records.cpp")
        after = self.facts()
        self.assertEqual(self.ran(after, "attention-error", "linear"), 0)
        self.assertEqual(self.ran(after, "rank", "linear", "softmax"), 2)
        self.assertEqual(self.ran(after, "rank", "linear", "softmax"), 0)

    def test_a_file_of_one_method_makes_that_method_stale_alone(self) -> None:
        methods = ["linear", "performer", "local", "uniform"]
        self.assertEqual(self.ran(self.facts(), "attention-error", *methods), 4)
        self.edit("approximations/linear/performer.cpp")
        self.assertEqual(self.ran(self.facts(), "attention-error", *methods), 1)
        self.edit("harness/experiment/cell.cpp")
        self.assertEqual(self.ran(self.facts(), "attention-error", *methods), 4)
        self.edit("harness/cli/export.cpp")
        self.assertEqual(self.ran(self.facts(), "attention-error", *methods), 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
