#!/usr/bin/python3
"""Submits a sweep to Slurm: a job array over its shards, each on one node, and a merge of their results.

A plan is a config file of `attnbench run` (--config), or the arguments after --, as you would type them for one machine:

  scripts/slurm/submit.py --tasks 20 --cpus 8 --time 4:00:00 --results /shared/sweep -- \\
      run attention-error --method performer --method uniform --sweep m=16:1024:x2 --replicates 20
  scripts/slurm/submit.py error.cfg rank.cfg --tasks 20 --results /shared/sweep

sbatch's variables, such as SBATCH_ACCOUNT, SBATCH_QOS and SBATCH_CONSTRAINT, apply here as well. The folder holds
everything: job.json, a copy of the program as it is now, the batch scripts, shards/, logs/, and results.db at the end.
scripts/slurm/status.py FOLDER shows the progress and resubmits missing shards.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from batch import merge_script, task_script
from submission import Misuse, SlurmError, Submission, commit_of, count_in, planned

ROOT = Path(__file__).resolve().parent.parent.parent
SET_HERE = {
    "--results": "submit.py --results FOLDER",
    "--shard": "submit.py --tasks K",
    "--help": "attnbench run --help",
}


def positive(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"'{text}': expected an integer of at least 1")
    return int(text)


def arguments(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and the words after --."""
    words = list(words)
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        prog="submit.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.usage = "submit.py [OPTIONS] --results FOLDER (PLAN... | -- run ARGUMENTS...)"
    parser.add_argument("plans", nargs="*", metavar="PLAN", type=Path, help="config files of attnbench run")
    parser.add_argument("--results", required=True, type=Path, metavar="FOLDER", help="new, on the shared file system")
    parser.add_argument(
        "--tasks", type=positive, default=8, metavar="K", help="shards; let each be minutes of work (default 8)"
    )
    parser.add_argument("--cpus", type=positive, default=1, metavar="C", help="of a task, and its threads (default 1)")
    parser.add_argument("--time", metavar="T", help="limit of a task, as sbatch has it (default: the partition's)")
    parser.add_argument("--mem", metavar="M", help="of a task, as sbatch has it (default: the partition's)")
    parser.add_argument("--partition", metavar="P", help="default: the cluster's")
    parser.add_argument(
        "--publish", type=positive, default=300, metavar="S", help="seconds between a task's copies (default 300)"
    )
    parser.add_argument(
        "--program", type=Path, default=ROOT / "build/release/attnbench", help="default: build/release/attnbench"
    )
    return parser.parse_args(words[:at]), words[at + 1 :]


def plan_of_words(words: list[str]) -> list[str]:
    if words[0] != "run" or len(words) < 2:
        raise Misuse(f"'{' '.join(words)}': expected 'run' and its arguments after --, as attnbench has them")
    for word in words:
        option = word.partition("=")[0]
        if option in SET_HERE:
            raise Misuse(f"{word}: not after --; use {SET_HERE[option]}")
    return words[1:]


def resources(options: argparse.Namespace) -> list[str]:
    given = {"time": options.time, "mem": options.mem, "partition": options.partition}
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def make_folder(folder: Path) -> None:
    try:
        if (folder / "job.json").exists() and Submission.load(folder).submitted:
            raise Misuse(
                f"{folder}: holds a submission; expected a new folder; "
                f"'status.py {folder} --resubmit' goes on with that one"
            )
        for part in ("shards", "logs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "lock").touch()
    except OSError as error:
        raise Misuse(
            f"{folder}: {error.strerror}; expected a folder on the shared file system that can be written; "
            "give another with --results"
        ) from None


def copy_program(program: Path, to: Path) -> None:
    """Copies the program, the libraries that it loads from its own folder (those of others are there in a tarball of
    cpack), and the Python files that run plugins."""
    shutil.copy(program, to)
    for folder in (program.parent, program.parent.parent / "lib/attnbench"):  # in a build tree, and installed
        if (folder / "libattnbench.so").is_file():
            for library in folder.glob("lib*.so*"):
                shutil.copy(library, to.parent, follow_symlinks=False)
            if (folder / "python").is_dir():
                shutil.copytree(folder / "python", to.parent / "python", dirs_exist_ok=True)
            return


def prepared(options: argparse.Namespace, words: list[str]) -> Submission:
    """Makes the folder with everything that the jobs need. It copies the program and the config files, so that builds
    and edits while the jobs wait do not change what runs."""
    if not options.plans and not words:
        raise Misuse("nothing to run; expected config files, or -- run ARGUMENTS...")
    if shutil.which("sbatch") is None:
        raise Misuse(
            "sbatch: there is no such command here; expected a login node of a Slurm cluster; without Slurm, "
            "share the work out with attnbench run --shard i/k (docs/cluster.md)"
        )
    folder, program = options.results.resolve(), options.program.resolve()
    plans = [["--config", str(path.resolve())] for path in options.plans]
    plans += [plan_of_words(words)] if words else []
    nothing = ["--results", str(folder / "results.db")]
    answers = [planned(program, [*plan, *nothing], os.getcwd(), options.cpus) for plan in plans]  # misuse shows here
    make_folder(folder)
    for i, path in enumerate(options.plans):
        plans[i][-1] = str(shutil.copy(path, folder / f"plan-{i + 1}.cfg"))
    submission = Submission(
        folder=folder,
        name=f"attnbench-{secrets.token_hex(4)}",
        directory=os.getcwd(),
        commit=commit_of(ROOT),
        plans=plans,
        total=count_in("".join(answers)).total,
        tasks=options.tasks,
        options=resources(options),
        cpus=options.cpus,
        environment={name: value for name, value in os.environ.items() if name.startswith("SBATCH_")},
    )
    copy_program(program, submission.program)
    task = task_script(submission.name, submission.program, folder, options.tasks, plans, options.publish)
    (folder / "task.sh").write_text(task)
    (folder / "merge.sh").write_text(merge_script(submission.name, submission.program, folder))
    submission.save()
    return submission


def main() -> int:
    options, words = arguments(sys.argv[1:])
    try:
        submission = prepared(options, words)
        entry = submission.submit(range(1, submission.tasks + 1))
    except Misuse as misuse:
        print(f"submit.py: {misuse}", file=sys.stderr)
        return 2
    except (SlurmError, OSError) as error:
        print(f"submit.py: {error}", file=sys.stderr)
        return 1
    print(f"{submission.name}: {submission.tasks} tasks are job {entry['array']}, their merge is job {entry['merge']}")
    print(f"scripts/slurm/status.py {submission.folder} says how far they are")
    return 0


if __name__ == "__main__":
    sys.exit(main())
