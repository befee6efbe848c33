"""A sweep on Slurm: its folder on the shared file system, its record there, its jobs in the queue, its results.

Jobs are identified by a name that no other submission has, never by their ids alone: a controller that was killed loses
its latest jobs and assigns their ids again. Only the published results tell which cells are done.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

WARNING = 60  # seconds before its time limit that a task is told to stop and publish


class Misuse(Exception):
    """Says in one line what was given, what was expected and how to fix it. Exit code 2."""


class SlurmError(Exception):
    """Quotes Slurm's answer in one line. Exit code 1."""


def slurm(*command: str, environment: dict[str, str] | None = None) -> str:
    """Standard output of a Slurm command. Throws Misuse if Slurm is not installed, SlurmError if the command fails."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    except FileNotFoundError:
        raise Misuse(
            f"{command[0]}: there is no such command here; expected a login node of a Slurm cluster; without Slurm, "
            "share the work out with attnbench run --shard i/k (docs/cluster.md)"
        ) from None
    if answer.returncode != 0:
        raise SlurmError(f"{command[0]}: {' '.join(answer.stderr.split()) or f'exit code {answer.returncode}'}")
    return answer.stdout


@dataclass(frozen=True)
class Job:
    """One element of an array, or a merge, that is still in the queue."""

    id: str
    shard: int | None  # None: a merge
    state: str
    node: str
    reason: str

    def stuck(self) -> str:
        """How to fix a job that will not start by itself; empty if it will."""
        if self.state != "PENDING":
            return ""
        if self.held_by_slurm():
            return "--resubmit releases it"
        if "Held" in self.reason:
            return f"scontrol release {self.id}"
        if self.reason in ("DependencyNeverSatisfied", "BadConstraints"):
            return f"scancel {self.id}"
        if "DOWN" in self.reason or self.reason.startswith("ReqNodeNotAvail"):
            return "sinfo -R tells why nodes are away"
        return ""

    def held_by_slurm(self) -> bool:
        """Whether Slurm holds it after a failed launch, as on a node where another job with the same id still runs."""
        return self.state == "PENDING" and self.reason == "launch failed requeued held"


@dataclass(frozen=True)
class Count:
    """How many replicates of cells have ended, successfully or not, and how many there are."""

    done: int
    total: int

    @property
    def complete(self) -> bool:
        return self.done == self.total


@dataclass
class Submission:
    folder: Path  # absolute
    name: str  # of the jobs
    directory: str  # where the program runs; relative paths of the plans start there
    commit: str  # of the sources beside the program
    plans: list[list[str]]  # arguments of attnbench run
    total: int  # replicates of cells
    tasks: int  # shards
    options: list[str]  # of sbatch, for every job
    cpus: int  # of a task
    environment: dict[str, str]  # SBATCH_...: what sbatch read beside its options
    submitted: list[dict[str, Any]] = field(default_factory=list)  # when, shards, ids of array and merge: for people

    @property
    def program(self) -> Path:
        return self.folder / "attnbench"

    @property
    def merged(self) -> Path:
        return self.folder / "results.db"

    def shard_file(self, shard: int) -> Path:
        return self.folder / "shards" / f"{shard}.db"

    def save(self) -> None:
        record = asdict(self)
        del record["folder"]
        part = self.folder / "job.json.part"
        part.write_text(json.dumps(record, indent=2) + "\n")
        part.replace(self.folder / "job.json")

    @classmethod
    def load(cls, folder: Path) -> Submission:
        """Reads the record. Throws Misuse if the folder has none."""
        path = folder / "job.json"
        try:
            return cls(folder=folder.resolve(), **json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise Misuse(f"{path}: {error}; expected the folder that submit.py was given with --results") from None

    def submit(self, shards: Sequence[int]) -> dict[str, Any]:
        """Queues these shards, and a merge that runs once all have ended, successfully or not. Records and returns both."""
        logs = str(self.folder / "logs").replace("%", "%%")
        common = [f"--chdir={self.directory}", f"--comment={self.folder}", "--requeue", "--open-mode=append"]
        array = self._sbatch(
            f"--job-name={self.name}",
            f"--array={ranges(shards)}",
            f"--output={logs}/%a.log",
            f"--signal=B:TERM@{WARNING}",
            "--ntasks=1",
            f"--cpus-per-task={self.cpus}",
            *common,
            script="task.sh",
        )
        entry = {"time": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}", "shards": ranges(shards), "array": array}
        self.submitted.append(entry)
        self.save()
        entry["merge"] = self._sbatch(
            f"--job-name={self.name}-merge",
            f"--dependency=afterany:{array}",
            "--kill-on-invalid-dep=yes",
            f"--output={logs}/merge.log",
            *common,
            script="merge.sh",
        )
        self.save()
        return entry

    def _sbatch(self, *options: str, script: str) -> str:
        words = ["sbatch", "--parsable", *self.options, *options, str(self.folder / script)]
        return slurm(*words, environment=self.environment).strip().split(";")[0]  # id;cluster

    def queue(self) -> list[Job]:
        """All queued jobs of this submission, resubmitted ones included. Throws SlurmError if Slurm does not answer."""
        names = (self.name, f"{self.name}-merge")
        lines = slurm("squeue", "--noheader", "--array", f"--name={','.join(names)}", "--format=%j|%i|%K|%T|%N|%r")
        jobs = []
        for line in lines.splitlines():
            name, id, index, state, node, reason = line.split("|", 5)
            jobs.append(Job(id, None if name == names[1] else int(index), state, node, reason))
        return jobs

    def counts(self) -> dict[int, Count | None]:
        """The count of every shard, from its published results; None: nothing published yet."""
        return {shard: self._count_of(shard) for shard in range(1, self.tasks + 1)}

    def _count_of(self, shard: int) -> Count | None:
        file = self.shard_file(shard)
        if not file.exists():
            return None
        try:
            identity, _, counted = file.with_suffix(".count").read_text().partition("\n")
            if identity == identity_of(file):
                return count_in(counted)
        except OSError:
            pass  # the task ended after publishing the file, before its count
        where = ["--shard", f"{shard}/{self.tasks}", "--results", str(file)]
        answers = [planned(self.program, [*plan, *where], self.directory, self.cpus) for plan in self.plans]
        return count_in("".join(answers))

    def unmerged(self) -> list[int]:
        """Shards whose published results are missing from the merged file."""
        try:
            merged = set((self.folder / "results.of").read_text().splitlines()) if self.merged.exists() else set()
        except OSError:
            merged = set()
        files = {shard: self.shard_file(shard) for shard in range(1, self.tasks + 1)}
        published = {shard: file for shard, file in files.items() if file.exists()}
        return [shard for shard, file in published.items() if f"{file} {identity_of(file)}" not in merged]


def identity_of(file: Path) -> str:
    """Identifies a version of a published file: files are replaced, never written to."""
    facts = file.stat()
    return f"{facts.st_ino} {facts.st_size} {int(facts.st_mtime)}"


def count_in(answers: str) -> Count:
    """The sum of the counts in several answers of `attnbench plan`."""
    done = sum(map(int, re.findall(r"(\d+)(?: replicates)? done already", answers)))
    missing = sum(map(int, re.findall(r"^(\d+) replicates are missing", answers, re.MULTILINE)))
    return Count(done, done + missing)


def planned(program: Path, arguments: Sequence[str], directory: str, cpus: int) -> str:
    """The output of `attnbench plan` with the cores of a task. Throws Misuse for arguments that it refuses."""
    environment = {**os.environ, "SLURM_CPUS_PER_TASK": str(cpus)}
    command = [str(program), "plan", *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, cwd=directory, env=environment)
    except OSError as error:
        raise Misuse(
            f"{program}: {error.strerror}; expected the program; build it, or name it with --program"
        ) from None
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
        raise Misuse(f"{' '.join(command[1:])}: {lines[-1].removeprefix('attnbench: ')}")
    return answer.stdout


def ranges(numbers: Iterable[int]) -> str:
    """Formats 1,2,3,5 as 1-3,5, for sbatch --array."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def commit_of(directory: Path) -> str:
    """The commit checked out there, and whether files were modified; "unknown" outside a repository."""
    if shutil.which("git") is None:
        return "unknown"
    git = ["git", "-C", str(directory)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    if head.returncode != 0:
        return "unknown"
    changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True)
    return head.stdout.strip() + (" (modified)" if changed.stdout.strip() else "")
