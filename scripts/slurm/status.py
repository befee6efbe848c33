#!/usr/bin/python3
"""Shows the progress of a submission of submit.py: the published results of each shard, beside its state in the queue.

Only the results count: a shard is complete when its file holds all of its cells, even if its job failed. Exit codes: 0
everything is measured and merged, 3 not yet, 1 Slurm does not answer, 2 misuse.
"""

from __future__ import annotations

import argparse
import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from submission import Count, Job, Misuse, SlurmError, Submission, ranges, slurm


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Locks the folder: two status.py at once would both resubmit missing shards. Throws Misuse if it is not writable."""
    try:
        lock = open(folder / "lock", "r+")
        fcntl.lockf(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise Misuse(f"{folder}: {error.strerror}; expected a submission's folder that can be written") from None
    with lock:
        yield


def state_of(complete: bool, jobs: list[Job], queue_known: bool) -> str:
    states = []
    for job in jobs:
        where = f" on {job.node}" if job.node else ""
        reason = f": {job.reason}" if job.state == "PENDING" and job.reason != "None" else ""
        mend = f" (mend: {job.stuck()})" if job.stuck() else ""
        states.append(f"{job.state}{where}{reason}{mend}, job {job.id}")
    if complete:
        states.insert(0, "complete")
    elif not jobs:
        states.append("missing" if queue_known else "not complete; the queue is unknown")
    return "; ".join(states)


def is_complete(count: Count | None) -> bool:
    return count is not None and count.complete


def print_table(submission: Submission, counts: dict[int, Count | None], queue: list[Job] | None) -> None:
    print(f"{submission.name}, commit {submission.commit}")
    print(f"{'shard':>6} {'done':>8} {'total':>8}  state")
    for shard, count in counts.items():
        jobs = [job for job in queue or [] if job.shard == shard]
        done, total = (count.done, count.total) if count else ("-", "-")
        print(f"{shard:>6} {done:>8} {total:>8}  {state_of(is_complete(count), jobs, queue is not None)}")
    print(f"{'all':>6} {sum(count.done for count in counts.values() if count):>8} {submission.total:>8}")


def queue_or_none(submission: Submission) -> list[Job] | None:
    try:
        return submission.queue()
    except SlurmError as error:
        print(f"status.py: {error}; what is done is known all the same", file=sys.stderr)
        return None


def resubmit(submission: Submission, counts: dict[int, Count | None], queue: list[Job]) -> None:
    """Queues every shard that is neither complete nor in the queue, and releases jobs that Slurm itself holds (after a
    failed launch). Jobs that a person holds stay held."""
    for job in queue:
        if job.held_by_slurm():
            slurm("scontrol", "release", job.id)
            print(f"released shard {job.shard}, job {job.id}: {job.reason}")
    queued = {job.shard for job in queue}
    missing = [shard for shard, count in counts.items() if not is_complete(count) and shard not in queued]
    if not missing:
        print("nothing to resubmit")
        return
    entry = submission.submit(missing)
    print(f"resubmitted shards {ranges(missing)} as job {entry['array']}, merge is job {entry['merge']}")


def merge(submission: Submission) -> None:
    if subprocess.run(["bash", str(submission.folder / "merge.sh")]).returncode != 0:
        raise SlurmError("the merge failed, as it says above; results.db is as it was")


def report(submission: Submission, options: argparse.Namespace) -> int:
    # Reads the queue before the results: a task that ends in between then counts as queued and is not resubmitted.
    queue = queue_or_none(submission)
    counts = submission.counts()
    print_table(submission, counts, queue)
    if options.resubmit:
        if queue is None:
            raise SlurmError("nothing was resubmitted, since what is queued is unknown; try again when Slurm answers")
        resubmit(submission, counts, queue)
    if options.merge:
        merge(submission)
    return summary(submission, counts, queue, options.resubmit)


def summary(submission: Submission, counts: dict[int, Count | None], queue: list[Job] | None, resubmitted: bool) -> int:
    """Prints what is merged and what to do next; returns the exit code."""
    unmerged = submission.unmerged()
    there = submission.merged.exists()
    lacking = f"lacks shards {ranges(unmerged)}" if unmerged else "has all that is published"
    print(f"{submission.merged}: {lacking if there else 'not yet there'}")
    merging = [job for job in queue or [] if job.shard is None]
    for job in merging:
        print(f"merge: {state_of(False, [job], True)}")
    incomplete = {shard for shard, count in counts.items() if not is_complete(count)}
    if queue is not None and not resubmitted and incomplete - {job.shard for job in queue}:
        print(f"--resubmit submits what is missing; {submission.folder}/logs/SHARD.log may say why it is")
    elif not incomplete and not merging and unmerged:
        print("--merge merges what is there")
    return 3 if incomplete or unmerged or not there else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="status.py", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what submit.py was given as --results")
    parser.add_argument("--resubmit", action="store_true", help="submit what is neither complete nor queued")
    parser.add_argument("--merge", action="store_true", help="merge what is there now into FOLDER/results.db")
    options = parser.parse_args()
    try:
        with alone(options.folder) if options.resubmit else nullcontext():
            return report(Submission.load(options.folder), options)
    except Misuse as misuse:
        print(f"status.py: {misuse}", file=sys.stderr)
        return 2
    except SlurmError as error:
        print(f"status.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
