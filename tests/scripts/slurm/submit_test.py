#!/usr/bin/python3
"""Tests of scripts/slurm/submit.py and status.py with a Slurm and a program made of a few lines each.

Run as tests/scripts/slurm/submit_test.py; needs neither Slurm nor attnbench. slurm_test.py is the same on a real Slurm.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

SLURM = Path(__file__).resolve().parents[3] / "scripts" / "slurm"
sys.path.insert(0, str(SLURM))

from submission import Count, Job, Submission, ranges

# A results file is lines of text, one for each cell that is done; a sweep is 20 cells. While a file "held" is there, a run
# waits after three cells; while "held plan" is there, a plan of what is to be published waits.
PROGRAM = """#!/usr/bin/python3
import json, os, pathlib, signal, sys, time
command, *words = sys.argv[1:]
here = pathlib.Path(os.environ["STUBS"])
with open(here / "program.jsonl", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
option = lambda name: words[words.index(name) + 1] if name in words else ""
lines = lambda path: path.read_text().split() if path.exists() else []
shard, _, shards = option("--shard").partition("/")
results = pathlib.Path(option("--results"))
if command == "plan":
    if "refused" in words:
        sys.exit("attnbench: --sweep refused: expected otherwise")
    while results.name == "whole.db" and (here / "held plan").exists():
        time.sleep(0.02)
    cells, done = 20 // int(shards or 1), len(lines(results)) if results.suffix else 0
    print(f"{cells} cells x 1 replicates, {done} done already; and more")
    print(f"{cells - done} replicates are missing: a second" if done < cells else "nothing is missing")
elif command == "run":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    for cell in range(20 // int(shards)):
        while cell == 3 and (here / "held").exists():
            time.sleep(0.02)
        name = f"{shard}.{cell}"
        if name not in lines(results):
            for path in (results, here / "measured"):
                with open(path, "a") as file:
                    file.write(name + "\\n")
        if (here / "slow").exists():
            time.sleep(0.2)
elif command == "merge":
    time.sleep(1.5 if (here / "slow merge").exists() else 0)
    target, *sources = map(pathlib.Path, words)
    union = {line for path in [target, *sources] for line in lines(path)}
    target.write_text("".join(line + "\\n" for line in sorted(union)))
"""
SBATCH = """#!/usr/bin/python3
import json, os, pathlib, sys
here = pathlib.Path(os.environ["STUBS"])
if (here / "refuse").exists():
    sys.exit("sbatch: error: invalid partition specified: fast")
with open(here / "sbatch.jsonl", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
print(f"{len((here / 'sbatch.jsonl').read_text().splitlines())};cluster")
"""
# Answers as squeue --name does: with what was written into the file, where names match.
SQUEUE = """#!/usr/bin/python3
import os, pathlib, sys
here = pathlib.Path(os.environ["STUBS"])
if (here / "away").exists():
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
names = next(word for word in sys.argv if word.startswith("--name=")).removeprefix("--name=").split(",")
for line in (here / "queue").read_text().splitlines() if (here / "queue").exists() else []:
    if line.split("|")[0] in names:
        print(line)
"""
SCONTROL = """#!/usr/bin/python3
import os, pathlib, sys
with open(pathlib.Path(os.environ["STUBS"]) / "scontrol.txt", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
"""


class WithStubs(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="it's a $HOME ")
        self.addCleanup(directory.cleanup)
        self.stubs = Path(directory.name)
        for name, text in {"attnbench": PROGRAM, "sbatch": SBATCH, "squeue": SQUEUE, "scontrol": SCONTROL}.items():
            (self.stubs / name).write_text(text)
            (self.stubs / name).chmod(0o755)
        self.folder = self.stubs / "sweep"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))},
            "STUBS": str(self.stubs),
            "PATH": f"{self.stubs}:/usr/bin:/bin",
        }

    def call(self, script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SLURM / script), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=self.stubs)

    def submit(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return self.call("submit.py", "--program", self.stubs / "attnbench", "--results", self.folder, *words)

    def submitted(self, *words: str) -> Submission:
        answer = self.submit("--tasks", "4", *(words or ("--", "run", "rank")))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return Submission.load(self.folder)

    def status(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.call("status.py", self.folder, *words)

    def calls(self, name: str) -> list[list[str]]:
        path = self.stubs / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def task(self, shard: int) -> subprocess.Popen[bytes]:
        """The task of that shard, as Slurm would start it."""
        ids = {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": str(shard)}
        command = ["bash", str(self.folder / "task.sh")]
        with open(self.folder / "logs" / f"{shard}.log", "a") as log:
            return subprocess.Popen(command, env=self.environment | ids, stdout=log, stderr=log)

    def publish(self, shard: int, cells: int) -> None:
        path = self.folder / "shards" / f"{shard}.db"
        path.write_text("".join(f"{shard}.{cell}\n" for cell in range(cells)))

    def in_queue(self, *lines: str) -> None:
        (self.stubs / "queue").write_text("".join(line + "\n" for line in lines))


class Submitting(WithStubs):
    def test_an_array_over_the_shards_and_a_merge_after_it(self) -> None:
        self.environment["SBATCH_ACCOUNT"] = "lab"
        submission = self.submitted("--cpus", "3", "--time", "1:00:00", "--mem", "4G", "--", "run", "rank")
        array, merge = self.calls("sbatch")
        resources = ["--parsable", "--time=1:00:00", "--mem=4G"]
        self.assertEqual(array[:3], resources)
        self.assertEqual(merge[:3], resources)
        for option in (f"--job-name={submission.name}", "--array=1-4", "--cpus-per-task=3", "--signal=B:TERM@60"):
            self.assertIn(option, array)
        for option in (f"--job-name={submission.name}-merge", "--dependency=afterany:1", "--kill-on-invalid-dep=yes"):
            self.assertIn(option, merge)
        for job in (array, merge):
            self.assertLessEqual({"--requeue", "--open-mode=append", f"--chdir={self.stubs}"}, set(job))
        self.assertEqual(submission.environment, {"SBATCH_ACCOUNT": "lab"})
        self.assertEqual([(entry["array"], entry["merge"]) for entry in submission.submitted], [("1", "2")])

    def test_names_differ_between_submissions(self) -> None:
        first = self.submitted()
        self.folder = self.stubs / "another"
        self.assertNotEqual(first.name, self.submitted().name)

    def test_arguments_reach_the_program_as_they_were_typed(self) -> None:
        words = ["{x}", "per-head:[local:window=8],[performer]", "it's", "$HOME", "a  b", "*", "", '"', "\\", "`id`"]
        submission = self.submitted("--", "run", "rank", *words)
        self.assertEqual(self.task(2).wait(), 0)
        run = next(call for call in self.calls("program") if call[0] == "run")
        self.assertEqual(run[: 2 + len(words)], ["run", "rank", *words])
        self.assertEqual(run[2 + len(words) : -1], ["--shard", "2/4", "--results"])
        self.assertEqual(submission.shard_file(2).read_text().split(), [f"2.{cell}" for cell in range(5)])

    def test_plans_are_config_files_and_copied(self) -> None:
        for name in ("a.cfg", "b.cfg"):
            (self.stubs / name).write_text("experiment=rank\n")
        submission = self.submitted("a.cfg", "b.cfg", "--", "run", "rank")
        copies = [str(self.folder / f"plan-{i}.cfg") for i in (1, 2)]
        self.assertEqual(submission.plans, [["--config", path] for path in copies] + [["rank"]])
        self.assertEqual(Path(copies[0]).read_text(), "experiment=rank\n")
        self.assertEqual(self.task(1).wait(), 0)
        self.assertEqual(len([call for call in self.calls("program") if call[0] == "run"]), 3)

    def test_the_program_is_the_one_that_was_submitted(self) -> None:
        (self.stubs / "libattnbench.so").write_text("as it was")
        submission = self.submitted()
        (self.stubs / "attnbench").write_text("#!/bin/sh\nexit 9\n")
        (self.stubs / "libattnbench.so").write_text("built anew")
        self.assertEqual(self.task(1).wait(), 0)
        self.assertTrue(submission.shard_file(1).exists())
        self.assertEqual(submission.program.with_name("libattnbench.so").read_text(), "as it was")

    def test_what_cannot_be_submitted_is_refused_in_one_line(self) -> None:
        (self.stubs / "file").write_text("")
        plan = ("--", "run", "rank")
        for expected, words in {
            "nothing to run": (),
            "expected 'run'": ("--", "reproduce", "rank"),
            "expected 'run' and its arguments": ("--", "run"),
            "--tasks K": ("--", "run", "rank", "--shard", "1/2"),
            "--results FOLDER": ("--", "run", "rank", "--results=x.db"),
            "--sweep refused": ("--", "run", "refused"),
            "expected the program": ("--program", "absent", *plan),
            "integer of at least 1": ("--tasks", "0", *plan),
            "'-3': expected an integer": ("--cpus=-3", *plan),
            "another with --results": ("--results", self.stubs / "file" / "sweep", *plan),
        }.items():
            with self.subTest(expected):
                answer = self.submit(*words)
                self.assertEqual((answer.returncode, answer.stdout), (2, ""), answer.stderr)
                self.assertIn(expected, answer.stderr.splitlines()[-1])
        self.assertFalse(self.folder.exists())
        self.submitted()
        self.assertIn("--resubmit", self.submit(*plan).stderr)
        self.assertEqual(len(self.calls("sbatch")), 2)

    def test_without_slurm_it_says_what_to_do(self) -> None:
        (self.stubs / "sbatch").unlink()
        self.environment["PATH"] = str(self.stubs)
        answer = self.submit("--", "run", "rank")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("--shard i/k", answer.stderr)
        self.assertFalse(self.folder.exists())

    def test_what_slurm_refuses_can_be_submitted_again(self) -> None:
        (self.stubs / "refuse").touch()
        answer = self.submit("--", "run", "rank")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("invalid partition", answer.stderr)
        (self.stubs / "refuse").unlink()
        self.submitted()

    def test_ranges(self) -> None:
        self.assertEqual(ranges([1, 2, 3, 4]), "1-4")
        self.assertEqual(ranges([9, 1, 3, 2, 7]), "1-3,7,9")


class Tasks(WithStubs):
    def test_what_was_published_before_is_gone_on_from_and_kept(self) -> None:
        submission = self.submitted()
        submission.shard_file(3).write_text("3.0\n3.1\nfrom-another-task\n")
        task = self.task(3)
        self.assertEqual(task.wait(), 0)
        self.assertEqual(len(submission.shard_file(3).read_text().split()), 6)
        self.assertEqual((self.stubs / "measured").read_text().split(), ["3.2", "3.3", "3.4"])
        self.assertEqual({path.name for path in (self.folder / "shards").iterdir()}, {"3.db", "3.count"})
        self.assertEqual(submission.shard_file(3).stat().st_mode & 0o777, 0o444)

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        for _ in range(6000):  # five minutes
            if condition():
                return
            time.sleep(0.05)
        self.fail(f"still not: {what}")

    def until(self, path: Path, lines: int) -> None:
        self.wait(lambda: path.exists() and len(path.read_text().split()) >= lines, f"{path} has {lines} lines")

    def test_it_publishes_as_it_goes(self) -> None:
        (self.stubs / "held").touch()
        submission = self.submitted("--publish", "1", "--tasks", "1", "--", "run", "rank")
        task = self.task(1)
        self.until(submission.shard_file(1), 3)
        self.assertIsNone(task.poll())
        (self.stubs / "held").unlink()
        self.assertEqual(task.wait(), 0)
        self.until(submission.shard_file(1), 20)

    def test_it_ends_though_publishing_takes_longer_than_the_time_between(self) -> None:
        for name in ("slow", "slow merge"):
            (self.stubs / name).touch()
        submission = self.submitted("--publish", "1", "--tasks", "1", "--", "run", "rank")
        self.assertEqual(self.task(1).wait(timeout=600), 0)
        self.until(submission.shard_file(1), 20)
        self.assertEqual(len(list((self.folder / "shards").iterdir())), 2)

    def test_told_to_stop_it_stops_the_program_and_publishes(self) -> None:
        (self.stubs / "held").touch()
        submission = self.submitted("--publish", "1", "--tasks", "1", "--", "run", "rank")
        task = self.task(1)
        self.until(submission.shard_file(1), 3)
        task.send_signal(signal.SIGTERM)
        self.assertEqual(task.wait(), 1)
        self.assertIn("told to stop", (self.folder / "logs" / "1.log").read_text())
        self.assertEqual(len(submission.shard_file(1).read_text().split()), 3)

    def test_told_to_stop_while_it_counts_it_says_so_in_the_log_and_counts_correctly(self) -> None:
        submission = self.submitted("--publish", "1", "--tasks", "1", "--", "run", "rank")
        for name in ("held", "held plan"):
            (self.stubs / name).touch()
        task = self.task(1)
        self.wait(
            lambda: any(call[0] == "plan" and call[-1].endswith("whole.db") for call in self.calls("program")),
            "the task counts what it is about to publish",
        )
        task.send_signal(signal.SIGTERM)
        (self.stubs / "held plan").unlink()
        self.assertEqual(task.wait(), 1)
        self.assertIn("told to stop", (self.folder / "logs" / "1.log").read_text())
        self.assertNotIn("told to stop", submission.shard_file(1).with_suffix(".count").read_text())

    def test_a_merge_unites_what_there_is_however_often(self) -> None:
        submission = self.submitted()
        merge = ["bash", str(self.folder / "merge.sh")]
        self.assertEqual(subprocess.run(merge, env=self.environment, stderr=subprocess.DEVNULL).returncode, 1)
        for shard, cells in ((1, 5), (2, 3)):
            self.publish(shard, cells)
        for _ in range(2):
            self.assertEqual(subprocess.run(merge, env=self.environment).returncode, 0)
            self.assertEqual(len(submission.merged.read_text().split()), 8)


class Status(WithStubs):
    def test_missing_is_what_is_neither_complete_nor_queued(self) -> None:
        name = self.submitted().name
        self.publish(1, 5)
        self.publish(2, 3)
        # Ids given out again to others, a task that has ended between, and a merge.
        waiting = f"{name}-merge|2|N/A|PENDING||Dependency"
        self.in_queue(f"{name}|1_2|2|RUNNING|n1|None", "others|1_3|3|RUNNING|n2|None", waiting)
        answer = self.status()
        self.assertEqual(answer.returncode, 3)
        states = [line.split()[:4] for line in answer.stdout.splitlines()[2:7]]
        self.assertEqual(
            states,
            [["1", "5", "5", "complete"], ["2", "3", "5", "RUNNING"], ["3", "-", "-", "missing"]]
            + [["4", "-", "-", "missing"], ["all", "8", "20"]],
        )
        self.assertIn("--resubmit", answer.stdout)
        self.assertEqual(len(self.calls("sbatch")), 2)

        self.assertIn("resubmitted shards 3-4", self.status("--resubmit").stdout)
        array, merge = self.calls("sbatch")[2:]
        self.assertIn("--array=3-4", array)
        self.assertIn(f"--job-name={name}", array)
        self.assertIn("--dependency=afterany:3", merge)

        self.in_queue(*(f"{name}|3_{shard}|{shard}|PENDING||Priority" for shard in (2, 3, 4)))
        self.assertIn("nothing to resubmit", self.status("--resubmit").stdout)
        self.assertEqual(len(self.calls("sbatch")), 4)

    def test_a_count_is_believed_of_the_file_that_it_counted_only(self) -> None:
        submission = self.submitted()
        self.assertEqual(self.task(1).wait(), 0)
        counted = self.folder / "shards" / "1.count"
        counted.write_text(counted.read_text().replace("5 cells", "9 cells").replace("5 done", "9 done"))
        with mock.patch.dict(os.environ, self.environment):
            self.assertEqual(submission.counts()[1], Count(9, 9))
            submission.shard_file(1).chmod(0o644)
            self.publish(1, 3)
            self.assertEqual(submission.counts()[1], Count(3, 5))

    def test_nothing_is_resubmitted_while_the_queue_is_unknown(self) -> None:
        self.submitted()
        (self.stubs / "away").touch()
        self.publish(1, 5)
        answer = self.status("--resubmit")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("Unable to contact", answer.stderr)
        self.assertIn("the queue is unknown", answer.stdout)
        self.assertEqual(len(self.calls("sbatch")), 2)

    def test_what_waits_for_ever_says_how_to_mend_it(self) -> None:
        def stuck(reason: str, state: str = "PENDING") -> str:
            return Job("7_1", 1, state, "", reason).stuck()

        self.assertIn("scontrol release 7_1", stuck("JobHeldUser"))
        self.assertIn("--resubmit", stuck("launch failed requeued held"))
        self.assertIn("scancel 7_1", stuck("DependencyNeverSatisfied"))
        self.assertIn("sinfo", stuck("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher"))
        self.assertEqual(stuck("Priority"), "")
        self.assertEqual(stuck("None", "RUNNING"), "")

    def test_what_slurm_holds_is_released_and_what_people_hold_is_not(self) -> None:
        name = self.submitted().name
        reasons = ("launch failed requeued held", "JobHeldUser", "JobHeldAdmin", "Priority")
        self.in_queue(*(f"{name}|1_{i}|{i}|PENDING||{reason}" for i, reason in enumerate(reasons, 1)))
        self.assertIn("released shard 1", self.status("--resubmit").stdout)
        self.assertEqual((self.stubs / "scontrol.txt").read_text(), "release 1_1\n")
        self.assertEqual(len(self.calls("sbatch")), 2)

    def test_merging_by_hand(self) -> None:
        submission = self.submitted()
        for shard in (1, 2, 3, 4):
            self.publish(shard, 5)
        self.assertIn("--merge", self.status().stdout)
        self.assertEqual(self.status("--merge").returncode, 0)
        self.assertEqual(self.status().returncode, 0)
        self.assertEqual(len(submission.merged.read_text().split()), 20)
        self.publish(4, 6)
        self.assertIn("lacks shards 4", self.status().stdout)

    def test_a_folder_without_a_submission_is_refused(self) -> None:
        for folder in (self.stubs, self.stubs / "absent"):
            answer = self.call("status.py", folder)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""))
            self.assertIn("expected the folder that submit.py was given", answer.stderr)


if __name__ == "__main__":
    unittest.main()
