"""Commits as programs: each is built once and installed in a folder of its own."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from results_file import Misuse as Misuse

BUILD = "scripts/build.sh release attnbench attnbench_python && cmake --install build/release --prefix {folder} > {folder}.log"
PROGRAM = "bin/attnbench"


@dataclass(frozen=True)
class Commit:
    name: str  # 40 hexadecimal digits
    subject: str

    @property
    def short(self) -> str:
        return self.name[:10]


def git(repository: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *words], text=True, capture_output=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Misuse(f"history: git {words[0]} in {repository}: {said[-1] if said else 'failed'}")
    return done.stdout


def commits_of(repository: Path, words: str) -> list[Commit]:
    """Those of a range such as v1..main, the first parent's line alone, the oldest first. The commit before a range A..B is
    A itself, with which the first is compared. Raises Misuse for fewer than two."""
    lines = git(repository, "log", "--first-parent", "--reverse", "--format=%H %s", words, "--").splitlines()
    if ".." in words:
        start = words.split("..")[0] or "HEAD"
        lines[:0] = git(repository, "log", "-1", "--format=%H %s", start, "--").splitlines()
    commits = [Commit(*line.split(" ", 1)) for line in lines]
    if len(commits) < 2:
        raise Misuse(f"history: {words} has {len(commits)} commits; expected two at least, such as HEAD~10..HEAD")
    return commits


class Builds:
    """Programs by commit. The tree in `folder`/tree is checked out at one commit after another, so that a build compiles what
    changed since the one before."""

    def __init__(self, repository: Path, folder: Path, command: str) -> None:
        self.repository, self.folder, self.command = repository, folder.absolute(), command
        self.failures: dict[str, str] = {}  # by commit, why it has no program

    def program(self, commit: Commit) -> Path | None:
        """None if the commit cannot be built."""
        own = self.folder / commit.short
        program = own / PROGRAM
        if program.exists():
            return program
        if commit.name in self.failures:
            return None
        print(f"build {commit.short} {commit.subject} ... ", end="", flush=True)
        tree = self.folder / "tree"
        if tree.exists():
            git(tree, "checkout", "--quiet", "--force", "--detach", commit.name)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            git(self.repository, "worktree", "prune")
            git(self.repository, "worktree", "add", "--quiet", "--force", "--detach", str(tree), commit.name)
        words = self.command.format(folder=shlex.quote(str(own)))
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", words], cwd=tree, text=True, capture_output=True)
        if done.returncode != 0 or not program.exists():
            said = (done.stderr or done.stdout).strip().splitlines()
            self.failures[commit.name] = said[-1] if said else f"the build made no {PROGRAM}"
            print(f"failed: {self.failures[commit.name]}", flush=True)
            return None
        print("done", flush=True)
        return program
