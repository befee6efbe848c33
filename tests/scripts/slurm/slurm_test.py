#!/usr/bin/python3
"""A sweep on a real Slurm of three nodes: what a killed node or controller costs is time, never a row.

Starts the private Slurm of scripts/slurm/testbed.sh. Run as tests/scripts/slurm/slurm_test.py PROGRAM; exit code 77 (skipped) where
Slurm's packages are missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

SLURM = Path(__file__).resolve().parents[3] / "scripts" / "slurm"
sys.path.insert(0, str(SLURM))

from submission import Submission

PROGRAM = ""
# 60 cells of about 0.1 s; 12 tasks of 4 to 6.
SWEEP = ["run", "attention-error", "--method", "performer", "--input", "gaussian", "--input", "sphere", "-d", "64"]
SWEEP += ["--sweep", "n=512,768", "--sweep", "m=" + ",".join(str(m) for m in range(64, 1024, 64))]
CELLS, TASKS = 60, 12
PATIENCE = 300  # seconds for what takes 40 on an idle machine


def completed(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def output(*command: str | Path) -> str:
    answer = completed(*command)
    if answer.returncode != 0:
        raise AssertionError(f"{command} ended with {answer.returncode}: {answer.stdout}{answer.stderr}")
    return answer.stdout


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE} s still not: {what}")
        time.sleep(0.2)


def pid_in(path: Path) -> int:
    return int(path.read_text())


def processes_of(name: str, node: str) -> dict[int, bool]:
    """Processes of a job on a node, and the daemons that watch over them: whether it is such a daemon, by pid."""
    found: dict[int, bool] = {}
    for process in Path("/proc").iterdir():
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            if not {f"SLURM_JOB_NAME={name}".encode(), f"SLURMD_NODENAME={node}".encode()} <= set(environment):
                continue
            found[int(process.name)] = False
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if (Path("/proc") / str(parent) / "comm").read_text() == "slurmstepd\n":
                found[parent] = True
        except (OSError, ValueError):
            continue  # ended, or no process
    return found


class Sweeps(unittest.TestCase):
    folder: Path
    expected: str  # every row of the same sweep on one machine

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(os.environ["SLURM_CONF"]).parent.parent
        output(PROGRAM, *SWEEP, "--results", cls.folder / "single.db")
        cls.expected = output(PROGRAM, "export", cls.folder / "single.db", "--arrays")

    def submitted(self, name: str) -> Submission:
        folder = self.folder / name
        output(
            *(SLURM / "submit.py", "--program", PROGRAM, "--tasks", str(TASKS), "--publish", "1", "--results", folder),
            *("--", *SWEEP),
        )
        return Submission.load(folder)

    def status(self, submission: Submission, *options: str) -> subprocess.CompletedProcess[str]:
        return completed(SLURM / "status.py", submission.folder, *options)

    def daemon(self, name: str) -> Path:
        return self.folder / "bed" / "run" / f"{name}.pid"

    def require_whole(self, submission: Submission) -> None:
        """Every row of the single machine, each once, bit for bit."""
        status = self.status(submission)
        self.assertEqual(status.returncode, 0, status.stdout + status.stderr)
        self.assertEqual(sum(count.total for count in submission.counts().values() if count), CELLS)
        self.assertEqual(submission.total, CELLS)
        self.assertEqual(output(PROGRAM, "export", submission.merged, "--arrays"), self.expected)

    def test_a_node_that_dies_costs_no_row(self) -> None:
        submission = self.submitted("node")

        def victims() -> dict[int, bool]:
            begun = len(list((submission.folder / "shards").glob("*.db"))) >= 2
            found = processes_of(submission.name, "n2") if begun else {}
            return found if len(set(found.values())) == 2 else {}

        wait_until(lambda: bool(victims()), "two shards have published and a task is on n2")
        # The daemon of the node first: it would tell the controller that its task has ended.
        os.kill(pid_in(self.daemon("slurmd.n2")), signal.SIGKILL)
        killed = victims()
        for pid in sorted(killed, key=lambda pid: not killed[pid]):
            with contextlib.suppress(ProcessLookupError):  # a worker is gone with the program that started it
                os.kill(pid, signal.SIGKILL)
        self.assertFalse(submission.merged.exists())

        wait_until(lambda: not submission.queue(), "all tasks and the merge have ended")
        logs = "".join(path.read_text() for path in (submission.folder / "logs").iterdir())
        self.assertIn("restarts 1", logs)
        self.require_whole(submission)
        output("slurmd", "-N", "n2", "-f", os.environ["SLURM_CONF"])

    def test_a_controller_that_forgets_costs_no_row_and_nothing_is_submitted_twice(self) -> None:
        state, before = self.folder / "bed" / "state", self.folder / "state before"
        shutil.copytree(state, before)
        submission = self.submitted("controller")
        wait_until(lambda: any((submission.folder / "shards").glob("*.db")), "a shard has published")
        # Killed before it saved what it was told: it starts again with the state from before the submission.
        controller = pid_in(self.daemon("slurmctld"))
        os.kill(controller, signal.SIGKILL)
        wait_until(lambda: completed("scontrol", "ping").returncode != 0, "the controller is away")
        away = self.status(submission, "--resubmit")
        self.assertEqual(away.returncode, 1, away.stdout + away.stderr)
        self.assertIn("nothing was resubmitted", away.stderr)
        shutil.rmtree(state)
        shutil.copytree(before, state)
        output("slurmctld", "-i", "-f", os.environ["SLURM_CONF"])
        wait_until(lambda: completed("scontrol", "ping").returncode == 0, "the controller is back")
        self.assertEqual(submission.queue(), [])
        self.assertIn("missing", self.status(submission).stdout)

        first = self.status(submission, "--resubmit")
        self.assertIn("resubmitted shards", first.stdout)
        self.assertIn("nothing to resubmit", self.status(submission, "--resubmit").stdout)

        def ended() -> bool:
            # The ids were given out again: nodes where the first holder still ran refuse the second and are drained,
            # and its task is held. The administrator repairs nodes; --resubmit handles held tasks.
            for node in output("sinfo", "--noheader", "--Node", "--states=drained", "--format=%N").split():
                output("scontrol", "update", f"nodename={node}", "state=resume")
            queue = submission.queue()
            if any(job.stuck() for job in queue):
                self.assertNotIn("resubmitted", self.status(submission, "--resubmit").stdout)
            return not queue

        wait_until(ended, "all tasks and the merge have ended")
        self.assertIn("nothing to resubmit", self.status(submission, "--resubmit").stdout)
        self.assertEqual(len(Submission.load(submission.folder).submitted), 2)
        self.require_whole(submission)


if __name__ == "__main__":
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        print(f"slurm_test.py: skipped, since {', '.join(missing)} are missing; scripts/setup.sh --ci installs them")
        sys.exit(77)
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the testbed is stopped however this ends
    with tempfile.TemporaryDirectory(prefix="slurm") as folder:
        bed = Path(folder) / "bed"
        os.environ["SLURM_CONF"] = str(bed / "slurm.conf")
        output(SLURM / "testbed.sh", "start", bed, "3", "1")
        try:
            unittest.main(verbosity=2)
        finally:
            output(SLURM / "testbed.sh", "stop", bed)
