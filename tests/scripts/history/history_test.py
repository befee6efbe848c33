#!/usr/bin/python3
"""History on a repository whose programs take a known time: steps are found at the commits that made them. Run as
history_test.py PROGRAM."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "scripts" / part) for part in ("history", "")]

from builds import Commit
from measuring import Session
from steps import AMBIGUOUS, BETTER, SAME, WORSE, Bisection, Step, step

PROGRAM = str(ROOT / "build/release/attnbench")
# A program whose times are those of times.txt, each with noise of a percent, on a machine that becomes slower with every
# call: by a third in a hundred calls.
FAKE = """#!/usr/bin/python3 -SE
import random, sys
from pathlib import Path
here = Path(__file__).resolve().parent
calls = here.parent.parent / "calls"
if sys.argv[1] == "run":
    count = int(calls.read_text()) if calls.exists() else 0
    calls.write_text(str(count + 1))
    random.seed(count)
    lines = ["experiment,method,input,n,d,causal,heads,threads,precision,metric,value"]
    for line in (here / "times.txt").read_text().splitlines():
        method, time = line.split()
        noise = random.lognormvariate(0, 0.3 if method == "noisy" else 0.01)
        lines.append(f"speed,{method},gaussian,64,8,0,1,1,f32,seconds,{float(time) * noise * 1.003**count}")
    Path(sys.argv[sys.argv.index("--results") + 1]).write_text("\\n".join(lines))
else:
    print(Path(sys.argv[2]).read_text())
"""
BUILD = "mkdir -p {folder}/bin && cp times.txt {folder}/bin/ && cp attnbench {folder}/bin/ && test ! -e broken"


def git(folder: Path, *words: str) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(["git", *words], cwd=folder, text=True, capture_output=True, env={**os.environ, **identity})
    assert done.returncode == 0, done.stderr
    return done.stdout


class HistoryTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        git(self.repository, "init", "--quiet", "--initial-branch=main")

    def commit(self, subject: str, broken: bool = False, **times: float) -> None:
        program = self.repository / "attnbench"
        program.write_text(FAKE)
        program.chmod(0o755)
        lines = [f"{method} {time}" for method, time in times.items()]
        (self.repository / "times.txt").write_text("\n".join(lines))
        (self.repository / "broken").unlink(missing_ok=True)
        if broken:
            (self.repository / "broken").touch()
        git(self.repository, "add", "--all")
        git(self.repository, "commit", "--quiet", "--allow-empty", "-m", subject)

    def history(self, *words: str, range_: str = "main", rounds: int = 6, code: int = 0) -> str:
        command = [
            PROGRAM,
            "history",
            str(self.repository),
            range_,
            "--build",
            BUILD,
            "-o",
            "out",
            "--rounds",
            str(rounds),
            *words,
        ]
        done = subprocess.run(
            [*command, "--", "run", "speed", "--method", "softmax"], cwd=self.folder, text=True, capture_output=True
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def built(self) -> int:
        return len([path for path in (self.folder / "out/builds").iterdir() if (path / "bin").exists()])

    def test_bisection_finds_the_commits_of_two_steps_and_nothing_else(self) -> None:
        for place in range(16):
            self.commit(f"commit {place}", slow=1.3 if place >= 11 else 1.0, fast=0.5 if place >= 3 else 1.0, same=1.0)
        said = self.history(code=1)
        self.assertRegex(said, r"WORSE: slow: 1\.\d+ times \[1\.\d+, 1\.\d+\] at \w+ commit 11")
        self.assertRegex(said, r"BETTER: fast: 0\.\d+ times \[0\.\d+, 0\.\d+\] at \w+ commit 3")
        self.assertNotRegex(said, r"(WORSE|BETTER): same")
        self.assertLessEqual(self.built(), 10)
        self.assertIn("<svg", (self.folder / "out/history.svg").read_text())

    def test_every_commit_against_the_one_before(self) -> None:
        for place, time in enumerate((1.0, 1.0, 1.2, 1.2, 0.8)):
            self.commit(f"commit {place}", only=time)
        said = self.history("--every", code=1)
        rulings = [line.split()[0] for line in said.splitlines() if line.startswith("  ")]
        self.assertEqual(rulings, [SAME, WORSE, SAME, BETTER])
        self.assertEqual(self.built(), 5)

    def test_a_commit_that_cannot_be_built_is_named_and_passed_over(self) -> None:
        for place in range(8):
            self.commit(f"commit {place}", broken=place == 4, only=2.0 if place >= 4 else 1.0)
        said = self.history(code=1)
        self.assertRegex(said, r"WORSE: only: \S+ times .* at one of 2 commits after \w+, up to \w+ commit 5")

    def test_noise_is_ambiguous_and_no_step(self) -> None:
        for place in range(3):
            self.commit(f"commit {place}", noisy=1.0)
        said = self.history("--every", rounds=6)
        self.assertIn("AMBIGUOUS", said)

    def test_what_the_store_has_is_not_measured_again(self) -> None:
        for place in range(3):
            self.commit(f"commit {place}", only=1.0)
        first = self.history("--every", "--store", "kept.jsonl")
        calls = (self.folder / "out/builds/calls").read_text()
        second = self.history("--every", "--store", "kept.jsonl")
        self.assertEqual((self.folder / "out/builds/calls").read_text(), calls)
        self.assertEqual(
            [line for line in first.splitlines() if "SAME" in line],
            [line for line in second.splitlines() if "SAME" in line],
        )
        (self.folder / "kept.jsonl").write_text("{}\n")
        self.assertIn("kept.jsonl, line 1", self.history("--every", "--store", "kept.jsonl", code=2))

    def test_misuse_is_one_line_that_says_what_to_do(self) -> None:
        self.commit("only one", only=1.0)
        self.assertIn("expected two at least, such as HEAD~10..HEAD", self.history(code=2))
        self.assertIn("history: git log", self.history(range_="none..main", code=2))
        self.commit("another", only=1.0)
        self.assertIn("expected 6 at least", self.history(rounds=3, code=2))
        command = [PROGRAM, "history", str(self.repository), "main"]
        done = subprocess.run(command, cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("-- run speed", done.stderr)
        for words, said in (
            ("show x.db", "expected a command that measures"),
            ("run speed --mehtod x", "did you mean"),
        ):
            done = subprocess.run([*command, "--", *words.split()], cwd=self.folder, text=True, capture_output=True)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(said, done.stderr)
            self.assertFalse((self.folder / "results").exists())  # nothing was built


class StepsTest(unittest.TestCase):
    def test_rulings(self) -> None:
        for ratio, low, high, ruling in (
            (1.2, 1.06, 1.3, WORSE),
            (1.2, 1.04, 1.3, AMBIGUOUS),
            (0.8, 0.7, 0.94, BETTER),
            (0.8, 0.7, 0.96, AMBIGUOUS),
            (1.0, 0.96, 1.04, SAME),
            (1.0, float("nan"), float("nan"), AMBIGUOUS),
        ):
            self.assertEqual(Step(ratio, low, high).ruling, ruling)

    def test_a_step_pairs_rounds(self) -> None:
        drift = np.linspace(1, 5, 12)
        session = Session(["a", "b"], {"a": {("c",): drift.tolist()}, "b": {("c",): (1.5 * drift).tolist()}})
        one = step(session, "a", "b", ("c",))
        self.assertAlmostEqual(one.ratio, 1.5)
        self.assertAlmostEqual(one.low, 1.5)
        self.assertAlmostEqual(one.high, 1.5)

    def test_small_steps_that_add_up_are_found_together(self) -> None:
        commits = [Commit(f"{place:040}", f"commit {place}") for place in range(3)]
        commits = [Commit(f"{place}" * 40, one.subject) for place, one in enumerate(commits)]
        times = dict(zip((one.short for one in commits), (1.0, 1.04, 1.08)))

        def measure(asked: list[Commit]) -> Session:
            names = [one.short for one in asked]
            return Session(names, {name: {("c",): [times[name]] * 12} for name in names})

        found = Bisection(commits, measure).run()
        self.assertEqual(
            [(one.before.subject, one.after.subject, one.between) for one in found], [("commit 0", "commit 2", 1)]
        )


if __name__ == "__main__":
    if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
        PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
