#!/usr/bin/python3
"""Tests of what the gate asks of a change: since when it is one, and which tests it concerns. Needs no attnbench.

Run as tests/scripts/gate_test.py.
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
sys.path.insert(0, str(ROOT / "scripts"))

from covering_tests import Tests
from sanitize_changed import files_of, tests_of


def run(*command: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


class BaseCommit(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name) / "clone"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts/base_commit.sh", self.root / "scripts")
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str, **environment: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = run("git", *identity, *words, folder=self.root, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def commit(self, hour: int) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", "x", GIT_COMMITTER_DATE=f"2026-01-02T{hour:02}:00:00Z")
        return self.git("rev-parse", "HEAD")

    def base(self) -> str:
        done = run("scripts/base_commit.sh", folder=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_where_head_left_the_remote(self) -> None:
        published = self.commit(1)
        self.git("update-ref", "refs/remotes/origin/main", published)
        self.commit(2)
        self.commit(9)
        self.assertEqual(self.base(), published)

    def test_on_main_itself_the_last_commit_four_hours_before(self) -> None:
        self.assertEqual((self.commit(1), self.base())[1], "")
        before = self.commit(2)
        self.commit(7)
        head = self.commit(9)
        self.git("update-ref", "refs/remotes/origin/main", head)
        self.assertEqual(self.base(), before)

    def test_other_words_are_misuse(self) -> None:
        self.assertEqual(run("scripts/base_commit.sh", "HEAD").returncode, 2)


class Concerned(unittest.TestCase):
    def test_a_method_concerns_its_tests_and_those_over_all_methods_for_it_alone(self) -> None:
        chosen = tests_of(["approximations/sparse/local.cpp"])
        self.assertIn("patterns_test.cpp", chosen[""])
        over_all = {case.name for cases in Tests(ROOT).cases.values() for case in cases} & chosen["local"]
        self.assertTrue(any(name.startswith("every method agrees") for name in over_all), over_all)
        self.assertNotIn("intervals_test.cpp", chosen[""])

    def test_a_header_concerns_whoever_includes_it_over_others(self) -> None:
        chosen = tests_of(["harness/statistics/moments.hpp"])
        self.assertLessEqual({"intervals_test.cpp", "judge_test.cpp"}, chosen[""])

    def test_single_tests_are_built_with_their_files(self) -> None:
        names = {"intervals_test.cpp", "every registered method has a transcription"}
        self.assertEqual(files_of(names), ["intervals_test.cpp", "methods_test.cpp"])
        self.assertEqual(files_of(set()), [])

    def test_nothing_concerns_nothing(self) -> None:
        self.assertEqual(tests_of([]), {})

    def test_misuse_is_one_line_and_exit_code_2(self) -> None:
        for command in (["scripts/sanitize_changed.py", "no-such-revision"], ["scripts/full_gate.sh", "no-such-part"]):
            done = run(*command)
            self.assertEqual(done.returncode, 2, done)
            self.assertRegex(done.stderr, r"^[^\n]*no-such-[^\n]*expected[^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
