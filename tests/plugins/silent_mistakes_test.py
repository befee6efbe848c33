#!/usr/bin/python3
"""Methods with one mistake that short tests do not show: `check` names the claim that fails, and passes the right ones.

Run as tests/plugins/silent_mistakes_test.py BUILD_FOLDER.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parent / "python/silent_mistakes.py"
BUILD = Path()
RIGHT = (
    "softpick",
    "scalable-softmax",
    "kept-whole",
    "windowed",
    "learnt-directions",
    "random-signs",
    "running-mean",
    "largest-keys",
    "start-and-window",
)
WRONG = {
    "softpick-without-maximum": "finite",
    "softpick-of-one-percent": "work",
    "scalable-softmax-of-one-scale": "effect",
    "kept-whole-by-token": "lengths",
    "kept-whole-and-never-rounded": "effect",
    "windowed-that-keeps-all": "state-bytes",
    "windowed-that-counts-one-token": "state-bytes",
    "windowed-in-float": "decoder",
    "windowed-of-at-most64": "lengths",
    "windowed-without-maximum-in-steps": "finite",
    "windowed-that-forgets-a-prompt": "decoder",
    "learnt-directions-without-state": "state",
    "learnt-directions-of-no-head": "draws",
    "learnt-directions-of-the-first-head": "draws",
    "random-signs-of-one-seed": "draws",
    "copied-signs": "draws",
    "running-mean-of-two-bytes": "lengths",
    "running-mean-of2048": "lengths",
    "windowed-that-shrinks": "repeatable",
    "windowed-of-float-bytes": "state-bytes",
    "largest-keys-of1024": "exact-when",
    "start-and-window-or-neither": "lengths",
    "softpick-of-more-under-a-mask": "work",
}
NUMBERS_OF_OTHERS = """import sys
sys.path.insert(0, {folder!r})
from silent_mistakes import Softpick

class Anchored(Softpick):
    golden = {golden!r}
"""


def attnbench(*words: str, plugin: Path = SOURCE) -> subprocess.CompletedProcess[str]:
    command = [str(BUILD / "attnbench"), *words, "--plugin", str(plugin)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


class SilentMistakesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def checked(self, *specs: str, code: int) -> dict[str, str]:
        made = attnbench("check", *specs)
        self.assertEqual(made.returncode, code, made.stdout + made.stderr)
        reports = re.split(r"^(?=\S+$)", made.stdout, flags=re.MULTILINE)
        return {report.partition("\n")[0]: report for report in reports if report}

    def test_right_methods_pass(self) -> None:
        for spec, report in self.checked(*RIGHT, code=0).items():
            if spec in RIGHT:
                self.assertRegex(report, r"(?m)^  finite +PASS", spec)
                self.assertRegex(report, r"(?m)^  lengths +PASS", spec)
                self.assertRegex(report, "its formula has no anchor|nothing proves its formula", spec)
        report = self.checked("softpick", code=0)["softpick"]
        self.assertRegex(report, r"work +PASS .* exponentials, 2\.63e\+05 seen and 2\.62e\+05 declared")
        self.assertRegex(report, r"PASS: 1 spec, \d+ claims tested and \d+ skipped")

    def test_each_mistake_fails_the_claim_that_looks_for_it(self) -> None:
        reports = self.checked(*WRONG, code=1)
        for spec, claim in WRONG.items():
            self.assertRegex(reports[spec], rf"(?m)^  {claim} +FAIL", spec)

    def golden(self, file: str) -> subprocess.CompletedProcess[str]:
        plugin = self.folder / "anchored.py"
        plugin.write_text(NUMBERS_OF_OTHERS.format(folder=str(SOURCE.parent), golden=file))
        return attnbench("check", "anchored", plugin=plugin)

    def test_numbers_of_the_authors_code_are_an_anchor(self) -> None:
        spec = importlib.util.spec_from_file_location("silent_mistakes", SOURCE)
        assert spec is not None and spec.loader is not None
        sys.path.insert(0, str(BUILD / "python"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        generator = np.random.default_rng(1)
        q, k, v = (generator.standard_normal((30, 8)).astype(np.float32) for _ in range(3))
        out = module.Softpick().attend(q / 8**0.25, k / 8**0.25, v, True)
        for name, factor in (("right", 1.0), ("wrong", 1.001)):
            np.savez(self.folder / f"{name}.npz", q=q, k=k, v=v, out=(factor * out).astype(np.float32), causal=True)
        made = self.golden("right.npz")
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertRegex(made.stdout, r"golden +PASS .* attend against right\.npz, n = 30, causal")
        self.assertNotIn("no anchor", made.stdout)
        made = self.golden("wrong.npz")
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stdout, r"golden +FAIL .* attend against wrong\.npz")
        # q and k that are scaled already give other numbers.
        np.savez(self.folder / "scaled.npz", q=q / 8**0.25, k=k / 8**0.25, v=v, out=out, causal=True)
        self.assertEqual(self.golden("scaled.npz").returncode, 1)

    def test_a_file_that_cannot_be_an_anchor_is_named(self) -> None:
        np.savez(self.folder / "short.npz", q=np.zeros((4, 2)), k=np.zeros((4, 2)))
        np.savez(self.folder / "axes.npz", **{name: np.zeros((1, 4, 2)) for name in ("q", "k", "v", "out")})
        for file, words in (
            ("absent.npz", r"absent\.npz is not a file; expected an \.npz with q, k, v, out"),
            ("short.npz", r"short\.npz has no v, out; it has q, k"),
            ("axes.npz", r"axes\.npz has q \(1, 4, 2\).*; expected one head"),
        ):
            made = self.golden(file)
            self.assertRegex(made.stdout + made.stderr, words)

    def test_costs_that_are_measured_choose_a_plugins_budget(self) -> None:
        results = str(self.folder / "results.db")
        words = ["-n", "256", "-d", "16", "--causal", "--results", results]
        made = attnbench("run", "attention-error", "--method", "windowed", "--match", "kv-bytes=6400", *words)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        rows = csv.DictReader(io.StringIO(attnbench("export", results).stdout))
        self.assertEqual({row["window"] for row in rows}, {"25"})  # 25 keys and values of 16 numbers in double

    def written(self, text: str, *words: str) -> subprocess.CompletedProcess[str]:
        plugin = self.folder / "mine.py"
        plugin.write_text(text)
        return attnbench("check", "mine", *words, plugin=plugin)

    def test_a_crash_names_the_claim_that_was_tested(self) -> None:
        made = self.written(
            "import os, signal\nclass Mine:\n    def attend(self, q, k, v, causal):\n"
            "        if len(k) == 5000:\n            os.kill(os.getpid(), signal.SIGSEGV)\n        return v[:len(q)]\n"
        )
        self.assertEqual(made.returncode, 1, made.stderr)
        self.assertIn("crashed while testing lengths of mine", made.stderr)

    def test_a_spec_of_which_nothing_is_tested_does_not_pass(self) -> None:
        attend = "    def attend(self, q, k, v, causal):\n        return v\n"
        for claims in ('{"no_form": {"causal": "later"}}', '{"no_form": "not yet"}'):
            made = self.written(f"class Mine:\n    claims = {claims}\n{attend}")
            self.assertNotEqual(made.returncode, 0, made.stdout + made.stderr)
        made = self.written(
            f"class Mine:\n    @staticmethod\n    def claims(parameters, shape):\n        return {{'no_form': 'not yet'}}\n{attend}"
        )
        self.assertEqual(made.returncode, 1, made.stdout + made.stderr)
        self.assertIn("nothing of a spec was tested", made.stdout)

    def test_a_budget_that_match_could_not_choose_is_refused(self) -> None:
        made = self.written(
            "from attnbench import Parameter\nclass Mine:\n    parameters = {'share': Parameter(0.5, budget=True)}\n"
            "    def attend(self, q, k, v, causal):\n        return v\n"
        )
        self.assertEqual(made.returncode, 2)
        self.assertRegex(made.stderr, "parameter share = 0.5 is a budget and no int; --match chooses among integers")


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop())
    unittest.main()
