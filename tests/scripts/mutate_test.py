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
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from covering_tests import Tests

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
        time.sleep(600 if source.twice(1) == 4 else 0)
    def test_is_wrong(self):
        self.assertNotIn("--wrong", sys.argv)

if "--lacking" in sys.argv:
    sys.exit(77)
unittest.main(argv=[word for word in sys.argv if word != "--wrong"])
"""
# A program in C++ as far as mutate.py can tell: ninja "compiles" it, and it takes the name of a test or a tag of a file.
PROGRAM = """#!/bin/sh -e
test "$1" = 'one\\, two' || test "$2" = '[#program_test]~[.]' || exit 9
test $((1 + 1)) = 2
test $((4 + 3)) != 5
"""
NINJA = """rule compile
  command = sh -n $in && cp $in $out && echo compiled >> log
  description = Building CXX object $out
build attnbench_tests: compile {}
"""

HALF: dict[str, Any] = {"before": "x / 2", "after": "x / 3", "tests": ["source_test.py: test_half_is_a_number"]}


def record(name: str, file: str = "scripts/source.py", **fields: Any) -> str:
    whole: dict[str, Any] = {
        "mistake": "it is wrong",
        "before": "2 * x",
        "after": "3 * x",
        "tests": ["source_test.py: test_twice"],
    }
    return f'["{file}".{name}]\n' + "".join(f"{key} = {json.dumps(value)}\n" for key, value in (whole | fields).items())


class Mutate(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name) / "tree"
        for name, text in {
            "scripts/source.py": SOURCE.replace("2", "1"),
            "tests/scripts/source_test.py": PYTHON_TEST,
            "tests/program_test.cpp": '#include "harness/program.hpp"\nTEST_CASE("one, "\n          "two", "[unit]") {\n',
            "harness/program.hpp": "",
            "harness/program.cpp": "",
            ".gitignore": "build\n__pycache__\n",
            "build/release/build.ninja": NINJA.format(self.root / "harness/program.cpp"),
        }.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.git("init", "--quiet")
        self.commit({})
        self.commit({"scripts/source.py": SOURCE, "harness/program.cpp": PROGRAM})
        (self.root / "harness/program.cpp").chmod(0o755)
        self.commit({})

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=one", "-c", "user.email=one@example.org"]
        subprocess.run(["git", "-C", str(self.root), *who, *words], check=True, capture_output=True)

    def commit(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", "change")

    def catalogue(self, *records: str) -> None:
        self.commit({"tests/mutations/all.toml": "\n".join(records)})

    def command(self, *words: str) -> list[str]:
        return [sys.executable, str(ROOT / "scripts/mutate.py"), "--root", str(self.root), *words]

    def mutate(self, *words: str) -> tuple[int, str, str]:
        answer = subprocess.run(self.command(*words), capture_output=True, text=True)
        return answer.returncode, answer.stdout, answer.stderr

    def rows(self, *words: str) -> tuple[int, list[tuple[str, str, str]]]:
        """The exit code; of each row of the report the place, the mistake and the outcome."""
        report = self.root.parent / "report.md"
        code, _, err = self.mutate("--report", str(report), *words)
        self.assertTrue(report.exists(), err)
        rows = [line.removeprefix("| ").split(" | ") for line in report.read_text().splitlines() if line[:2] == "| "]
        self.assertEqual((self.root / "scripts/source.py").read_text(), SOURCE)
        self.assertEqual((self.root / "harness/program.cpp").read_text(), PROGRAM)
        return code, [(row[0], row[1], row[2]) for row in rows[1:]]

    def outcomes(self, *words: str) -> tuple[int, dict[str, str]]:
        code, rows = self.rows(*words)
        return code, {place: outcome for place, _, outcome in rows}

    def test_the_outcome_of_a_record(self) -> None:
        self.catalogue(
            record("seen"),
            record("unseen", **HALF),
            record("seen-by-one-of-two", tests=["source_test.py: test_twice", "source_test.py: test_half_is_a_number"]),
            record("moved", before="4 * x"),
            record("of-no-test", tests=["source_test.py: test_thrice"]),
        )
        code, outcomes = self.outcomes()
        self.assertEqual(code, 1)
        self.assertEqual(outcomes["seen"], "killed")
        self.assertEqual(outcomes["unseen"], "survived (passed: source_test.py: test_half_is_a_number)")
        self.assertIn("survived (passed: source_test.py: test_half_is_a_number)", outcomes["seen-by-one-of-two"])
        self.assertIn("does not apply (its text before stands 0 times", outcomes["moved"])
        self.assertIn("does not apply (no test is called", outcomes["of-no-test"])
        self.assertEqual(self.outcomes("--only", "seen")[0], 0)
        self.assertEqual(self.outcomes("--only", "unse*")[0], 1)

    def test_a_test_that_fails_or_is_skipped_without_a_mistake_judges_nothing(self) -> None:
        self.catalogue(record("seen", tests=["source_test.py"]))
        interpreter = self.root.parent / "interpreter"
        for option, outcome in (("--wrong", "red without it"), ("--lacking", "skipped by its test")):
            interpreter.write_text(f'#!/bin/sh\nexec {sys.executable} "$@" {option}\n')
            interpreter.chmod(0o755)
            words = ("--python", str(interpreter))
            self.assertEqual(self.outcomes(*words)[1], {"seen": f"{outcome} (source_test.py)"})
            by_rule = self.outcomes("--changed", "HEAD~3", "--sample", "9", *words)[1]
            self.assertEqual(by_rule["scripts/source.py:2"], "survived (0 tests of 0 passed: )")
        self.assertEqual(self.outcomes(), (0, {"seen": "killed"}))

    def test_each_mistake_is_built_and_what_was_built_is_put_back(self) -> None:
        fields: dict[str, Any] = {"file": "harness/program.cpp", "before": "= 2\n", "tests": ["one, two"]}
        self.catalogue(
            *(record(name, after=after, **fields) for name, after in (("seen", "= 3\n"), ("unseen", "= 2 # two\n"))),
            record("no-program", after="= $((\n", **fields),
        )
        code, outcomes = self.outcomes("--folder", "harness", "--jobs", "1")
        self.assertEqual(code, 1)
        self.assertEqual(outcomes["seen"], "killed")
        self.assertEqual(outcomes["unseen"], "survived (passed: one, two)")
        self.assertIn("did not build", outcomes["no-program"])
        build = self.root / "build/release"
        self.assertEqual((build / "attnbench_tests").read_text(), PROGRAM)
        # Once before, and once for each of the two mistakes that compile: nothing is compiled to put it back.
        self.assertEqual((build / "log").read_text().count("compiled"), 3)
        ninja = subprocess.run(["ninja", "-C", str(build)], capture_output=True, text=True)
        self.assertIn("no work to do", ninja.stdout)

    def test_rules_on_changed_lines(self) -> None:
        code, rows = self.rows("--changed", "HEAD~2")
        found = {(place, mistake): outcome for place, mistake, outcome in rows}
        self.assertEqual(
            {place for place, _, _ in rows},
            {f"scripts/source.py:{n}" for n in (2, 6)} | {f"harness/program.cpp:{n}" for n in (2, 3, 4)},
        )
        self.assertEqual(code, 1)
        self.assertEqual(found["scripts/source.py:2", "change a constant"], "killed (source_test.py)")
        survived = "survived (4 tests of 1 passed: source_test.py)"
        self.assertEqual(found["scripts/source.py:6", "swap an arithmetic operator"], survived)
        self.assertEqual(found["harness/program.cpp:3", "swap an arithmetic operator"], "killed (program_test.cpp)")
        passed = "survived (1 tests of 1 passed: program_test.cpp)"
        self.assertEqual(found["harness/program.cpp:4", "swap an arithmetic operator"], passed)
        report = (self.root.parent / "report.md").read_text()
        self.assertIn("    - return x / 2\n    + return x * 2\n", report)
        self.assertEqual((self.root / "build/release/attnbench_tests").read_text(), PROGRAM)

    def test_a_sample_is_of_as_many_lines_and_its_seed_repeats_it(self) -> None:
        samples = [self.rows("--changed", "HEAD~2", "--sample", "2", "--seed", seed)[1] for seed in "1123456"]
        self.assertEqual(samples[0], samples[1])
        self.assertEqual({len({place for place, _, _ in sample}) for sample in samples}, {2})
        self.assertGreater(len({tuple(sample) for sample in samples}), 1)
        code, out, _ = self.mutate("--changed", "HEAD")
        self.assertEqual((code, out.splitlines()[-1]), (0, "no line can be mutated"))

    def test_no_mistake_stays_when_it_is_interrupted(self) -> None:
        self.catalogue(record("waits", after="4 * x", tests=["source_test.py: test_waits"]))
        source = self.root / "scripts/source.py"
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
                for _ in range(6000):  # five minutes
                    if "4 * x" in source.read_text():
                        break
                    time.sleep(0.05)
                self.assertIn("4 * x", source.read_text())
                run.send_signal(number)
                self.assertIn("interrupted", run.communicate(timeout=600)[1])
            self.assertEqual((run.returncode, source.read_text()), (130, SOURCE))

    def test_check_builds_and_runs_nothing(self) -> None:
        (self.root / "build/release/build.ninja").unlink()
        fields: dict[str, Any] = {
            "file": "harness/program.cpp",
            "before": "= 2\n",
            "after": "= 3\n",
            "tests": ["one, two"],
        }
        self.catalogue(record("seen"), record("of-the-program", **fields))
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

        self.assertIn("no mutations", refused())
        self.catalogue(record("seen"), record("seen", file="harness/program.cpp"))
        self.assertIn("there twice", refused())
        self.catalogue(record("seen", wrong="field"))
        self.assertIn("seen has or lacks wrong", refused())
        self.catalogue('["scripts/source.py".seen]\nbefore = "2"')
        self.assertIn("seen has or lacks after", refused())
        self.catalogue("seen = 1")
        self.assertIn('expected tables ["FILE".ID]', refused())
        self.catalogue("[[mutation")
        self.assertIn("expected TOML", refused())
        self.catalogue(record("seen"))
        self.assertIn("--list prints", refused("--only", "unknown"))
        self.assertIn("--list prints", refused("--folder", "harness"))
        self.assertIn("--changed abc: git knows no such commit", refused("--changed", "abc"))
        self.assertIn("--changed --help: git knows no such commit", refused("--changed=--help"))
        self.assertIn("expected none of --only", refused("--changed", "HEAD", "--only", "seen"))
        (self.root / "scripts/source.py").write_text(SOURCE + "# changed\n")
        self.assertIn("scripts/source.py: not as in the last commit", refused())
        self.assertIn("scripts/source.py: not as in the last commit", refused("--changed", "HEAD~1"))
        self.assertEqual(self.mutate("--allow-dirty")[0], 0)
        self.assertEqual((self.root / "scripts/source.py").read_text(), SOURCE + "# changed\n")
        (self.root / "build/release/build.ninja").unlink()
        self.assertIn("no build.ninja", refused("--changed", "HEAD~1", "--allow-dirty"))


class Covering(unittest.TestCase):
    """Of files of this tree, whose nearest tests are known."""

    tests = Tests(ROOT)

    def nearest(self, file: str, count: int = 1) -> list[tuple[str, str]]:
        return self.tests.covering(file)[:count]

    def test_a_test_of_the_same_name_is_the_nearest_and_then_those_that_include_the_header(self) -> None:
        self.assertEqual(self.nearest("harness/statistics/intervals.cpp"), [("intervals_test.cpp", "")])
        self.assertEqual(self.nearest("scripts/ticks.py"), [("ticks_test.py", "")])
        for test, _ in self.nearest("harness/linalg/products.cpp", 2):
            self.assertIn('#include "harness/linalg/products.hpp"', self.tests.texts[self.tests.files[test]])

    def test_a_method_is_covered_by_what_goes_over_all_methods_and_its_second_paths_first(self) -> None:
        nearest = self.nearest("approximations/baselines/uniform.cpp", 40)
        self.assertIn(("kernel, rows and factors are second paths to what attend computes", "uniform"), nearest[:6])
        self.assertIn(("claim padding: padded keys and values change no bit", "uniform"), nearest)

    def test_a_file_is_reached_over_others(self) -> None:
        self.assertIn(("export_test.cpp", ""), self.nearest("harness/cli/export.cpp", 3))
        self.assertIn(("hf_test.py", ""), self.tests.covering("scripts/attnbench/visible_keys.py"))


if __name__ == "__main__":
    unittest.main()
