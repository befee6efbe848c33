#!/usr/bin/python3
"""Tests of scripts/mutate.py on a tree of a few lines: what it says of each mistake, and that no mistake stays.

Run as tests/scripts/mutate_test.py; needs git and ninja, and no attnbench.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MUTATE = Path(__file__).resolve().parents[2] / "scripts/mutate.py"

SOURCE = "def twice(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n"
PYTHON_TEST = """
import sys, time, unittest
sys.path.insert(0, "scripts")
import source

class Source(unittest.TestCase):
    def test_twice(self):
        self.assertEqual(source.twice(3), 6)
    def test_half_is_a_number(self):
        self.assertGreater(source.half(3), 0)
    def test_waits(self):
        time.sleep(600 if source.twice(1) == 3 else 0)
    def test_is_wrong(self):
        self.fail()

if "--lacking" in sys.argv:
    sys.exit(77)
unittest.main()
"""
# A program in C++ as far as mutate.py can tell: it is "compiled" by ninja, and takes the name of a test.
PROGRAM = """#!/bin/sh
test "$1" = 'one\\, two' || exit 9
test $((1 + 1)) = 2
"""
NINJA = """rule compile
  command = sh -n $in && cp $in $out
build attnbench_tests: compile {}
"""


Fields = dict[str, str | list[str]]
HALF: Fields = {"before": "x / 2", "after": "x / 3", "tests": ["source_test.py: test_half_is_a_number"]}


def record(name: str, **fields: str | list[str]) -> str:
    whole: Fields = {
        "id": name,
        "file": "scripts/source.py",
        "mistake": "it is wrong",
        "before": "2 * x",
        "after": "3 * x",
        "tests": ["source_test.py: test_twice"],
        **fields,
    }
    return "[[mutation]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in whole.items())


class Mutate(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        for name, text in {
            "scripts/source.py": SOURCE,
            "tests/scripts/source_test.py": PYTHON_TEST,
            "tests/program_test.cpp": 'TEST_CASE("one, "\n          "two", "[unit]") {\n',
            "harness/program.sh": PROGRAM,
            "build/release/build.ninja": NINJA.format(self.root / "harness/program.sh"),
        }.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        (self.root / "harness/program.sh").chmod(0o755)
        self.git("init", "--quiet")
        self.git("add", "scripts", "tests", "harness")

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.root), *words], check=True, capture_output=True)

    def catalogue(self, *records: str) -> None:
        (self.root / "tests/mutations").mkdir(exist_ok=True)
        (self.root / "tests/mutations/scripts.toml").write_text("\n".join(records))

    def command(self, *words: str) -> list[str]:
        return [sys.executable, str(MUTATE), "--root", str(self.root), *words]

    def mutate(self, *words: str) -> tuple[int, str, str]:
        answer = subprocess.run(self.command(*words), capture_output=True, text=True)
        return answer.returncode, answer.stdout, answer.stderr

    def outcomes(self, *words: str) -> tuple[int, dict[str, str]]:
        """The exit code, and by id what the report's table says."""
        report = self.root / "report.md"
        code, _, err = self.mutate("--report", str(report), *words)
        self.assertTrue(report.exists(), err)
        rows = [line.split(" | ") for line in report.read_text().splitlines() if line.startswith("| ")][1:]
        self.assertEqual((self.root / "scripts/source.py").read_text(), SOURCE)
        self.assertEqual((self.root / "harness/program.sh").read_text(), PROGRAM)
        return code, {row[0].removeprefix("| "): row[3] for row in rows}

    def test_what_comes_of_a_mistake(self) -> None:
        self.catalogue(
            record("seen"),
            record("unseen", **HALF),
            record("argued", **HALF, survives="any number will do"),
            record("seen-though-argued", survives="nobody looks"),
            record("seen-by-one-of-two", tests=["source_test.py: test_twice", "source_test.py: test_half_is_a_number"]),
            record("moved", before="4 * x"),
            record("of-no-test", tests=["source_test.py: test_thrice"]),
            record("judged-by-a-red-test", tests=["source_test.py: test_is_wrong"]),
            record("by-the-whole-file", tests=["source_test.py"]),
        )
        code, outcomes = self.outcomes()
        self.assertEqual(code, 1)
        self.assertEqual(outcomes["seen"], "killed")
        self.assertEqual(outcomes["unseen"], "survived (passed: source_test.py: test_half_is_a_number)")
        self.assertEqual(outcomes["argued"], "survived, as argued (any number will do)")
        self.assertEqual(outcomes["seen-though-argued"], "killed (although its record argues that it survives)")
        self.assertIn("survived (passed: source_test.py: test_half_is_a_number)", outcomes["seen-by-one-of-two"])
        self.assertIn("does not apply (its text before stands 0 times", outcomes["moved"])
        self.assertIn("does not apply (no test is called", outcomes["of-no-test"])
        self.assertIn("red without it", outcomes["judged-by-a-red-test"])
        self.assertIn("red without it", outcomes["by-the-whole-file"])

    def test_only_failures_make_its_exit_code(self) -> None:
        self.catalogue(
            record("seen"), record("argued", **HALF, survives="any number will do"), record("unseen", **HALF)
        )
        self.assertEqual(self.outcomes("--only", "seen", "--only", "arg*")[0], 0)
        self.assertEqual(self.outcomes("--only", "unseen")[0], 1)

    def test_what_is_built_is_built_anew_for_each_mistake_and_after_the_last(self) -> None:
        program: Fields = {"file": "harness/program.sh", "before": "= 2\n", "tests": ["one, two"]}
        self.catalogue(
            record("seen", **program, after="= 3\n"),
            record("unseen", **program, after="= 2 # two\n"),
            record("no-program", **program, after="= $((\n"),
        )
        code, outcomes = self.outcomes("--folder", "harness", "--jobs", "1")
        self.assertEqual(code, 1)
        self.assertEqual(outcomes["seen"], "killed")
        self.assertEqual(outcomes["unseen"], "survived (passed: one, two)")
        self.assertIn("did not build", outcomes["no-program"])
        self.assertEqual((self.root / "build/release/attnbench_tests").read_text(), PROGRAM)

    def test_a_file_that_lacks_what_it_needs_judges_nothing(self) -> None:
        path = self.root / "tests/scripts/source_test.py"
        path.write_text(path.read_text().replace('"--lacking" in sys.argv', "True"))
        self.catalogue(record("seen"))
        self.assertEqual(self.outcomes(), (0, {"seen": "skipped by its test (source_test.py: test_twice)"}))

    def test_tests_in_python_run_in_the_chosen_interpreter(self) -> None:
        self.catalogue(record("seen"))
        interpreter = self.root / "interpreter"
        interpreter.write_text(f'#!/bin/sh\nexec {sys.executable} "$@" --lacking\n')
        interpreter.chmod(0o755)
        skipped = {"seen": "skipped by its test (source_test.py: test_twice)"}
        self.assertEqual(self.outcomes("--python", str(interpreter)), (0, skipped))
        self.assertEqual(self.outcomes(), (0, {"seen": "killed"}))

    def test_no_mistake_stays_when_it_is_interrupted(self) -> None:
        self.catalogue(record("waits", tests=["source_test.py: test_waits"]))
        source = self.root / "scripts/source.py"
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
                for _ in range(6000):  # five minutes
                    if "3 * x" in source.read_text():
                        break
                    time.sleep(0.05)
                self.assertIn("3 * x", source.read_text())
                run.send_signal(number)
                self.assertIn("interrupted", run.communicate(timeout=600)[1])
            self.assertEqual((run.returncode, source.read_text()), (130, SOURCE))

    def test_check_builds_and_runs_nothing(self) -> None:
        (self.root / "build/release/build.ninja").unlink()
        program = record("of-the-program", file="harness/program.sh", before="= 2\n", after="= 3\n", tests=["one, two"])
        self.catalogue(record("seen"), program)
        self.assertEqual(self.mutate("--check")[0], 0)
        self.catalogue(record("seen", after="2 * x"), record("gone", file="scripts/absent.py"))
        code, out, _ = self.mutate("--check")
        self.assertEqual(code, 1)
        self.assertIn("seen: it changes nothing", out)
        self.assertIn("gone: scripts/absent.py does not exist", out)
        self.assertEqual(self.mutate("--list")[0], 0)

    def test_what_cannot_be_run_is_refused_in_one_line(self) -> None:
        def refused(*words: str) -> str:
            code, out, err = self.mutate(*words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            return err

        self.assertIn("no [[mutation]]", refused())
        self.catalogue(record("seen"), record("seen"))
        self.assertIn("there twice", refused())
        self.catalogue(record("seen", wrong="field"))
        self.assertIn("wrong = 'field'", refused())
        self.catalogue('[[mutation]]\nid = "seen"\n')
        self.assertIn("lacks file", refused())
        self.catalogue("[[mutation")
        self.assertIn("expected TOML", refused())
        self.catalogue(record("seen"))
        self.assertIn("--list prints", refused("--only", "unknown"))
        self.assertIn("--list prints", refused("--folder", "harness"))
        (self.root / "scripts/source.py").write_text(SOURCE + "# changed\n")
        self.assertIn("scripts/source.py: not as in git's index", refused())
        self.assertEqual(self.mutate("--allow-dirty")[0], 0)
        self.assertEqual((self.root / "scripts/source.py").read_text(), SOURCE + "# changed\n")


if __name__ == "__main__":
    unittest.main()
