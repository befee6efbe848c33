#!/usr/bin/python3
"""Measure methods on a suite and pack what a leaderboard needs into one zip file.

`attnbench submit` calls this with its own path as --program. Plugins come in ATTNBENCH_PLUGINS. Measured cells stay in
the results file, so the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from archive import CHECK, RESULTS, SUITE, Manifest, Refused, json_object, pack
from suite import BASELINE, EXACT, Misuse, Run, Suite, find_suite
from ticks import byte_label
from verification import verify

UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0}  # in seconds
PLUGIN_SOURCES = (".py", ".cpp", ".hpp", ".txt", ".bib", ".toml", ".md")


class Failed(Exception):
    """A part of the submission failed; the message says why. Exit code 1."""


class Program:
    """The attnbench that measures."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.path, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def said(self, *words: str, may_fail: bool = False) -> str:
        """Its output. Raises Misuse for its exit code 2, with what it said, and Failed for others unless they may be."""
        done = self(*words)
        error = done.stderr.strip().removeprefix("attnbench: ")
        if done.returncode == 2:
            raise Misuse(error)
        if done.returncode == 130:
            raise KeyboardInterrupt
        if done.returncode != 0 and not may_fail:
            raise Failed(f"{' '.join(words[:2])} ended with exit code {done.returncode}: {error or done.stdout[-500:]}")
        return done.stdout


def checked(program: Program, methods: list[str]) -> bytes:
    """The report of `check`, as JSON. Raises Failed if a claim fails: no leaderboard would take the method."""
    done = program("check", "--json", *methods)
    if done.returncode == 2:
        raise Misuse(done.stderr.strip().removeprefix("attnbench: "))
    report = json_object(done.stdout.encode(), "the output of `attnbench check --json`")
    failing = [
        f"{subject['spec']}: {result['claim']} {result.get('reason', '')}".strip()
        for subject in report["subjects"]
        for result in subject["results"]
        if result["outcome"] == "FAIL"
    ]
    if failing:
        raise Failed(
            f"`attnbench check {' '.join(methods)}` finds {len(failing)} claims that fail, and a leaderboard takes "
            f"methods of which none does; the first: {failing[0]}"
        )
    return done.stdout.encode()


def forecast(program: Program, suite: Suite, methods: list[str], results: Path) -> float:
    """Seconds that all missing cells will take, as `attnbench plan` estimates them."""
    total = 0.0
    for run in suite.runs:
        said = program.said("plan", *command(run, methods, results))
        if found := re.search(r"are missing[^:]*: about (\S+) (\w+)", said):
            total += float(found[1]) * UNITS[found[2]]
    return total


def measure(program: Program, suite: Suite, methods: list[str], results: Path) -> None:
    for number, run in enumerate(suite.runs, 1):
        print(f"{number} of {len(suite.runs)}: {run.title} ... ", end="", flush=True)
        started = time.monotonic()
        # Exit code 1: some cells failed. They are rows with a reason, which the leaderboard shows.
        program.said("run", *command(run, methods, results), may_fail=True)
        print(f"{time.monotonic() - started:.0f} s", flush=True)


def command(run: Run, methods: list[str], results: Path) -> list[str]:
    asked = [*methods, *(one for one in (EXACT, BASELINE) if one not in methods)]
    return [*run.words(), *(word for method in asked for word in ("--method", method)), "--results", str(results)]


def require_taken(bundle: Path, suite: Suite, methods: list[str]) -> None:
    """Verifies the bundle as a leaderboard would, and that there is something to rank. Raises Failed."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = verify(bundle, suite, {method.partition(":")[0] for method in methods}, Path(scratch))
        except Refused as refused:
            raise Failed(f"a leaderboard would refuse the bundle: {refused}; give another --results file") from None
    for method in methods:
        endings = [one for one in found.methods[method].values() if one.ending != "done"]
        if len(endings) == len(found.methods[method]):
            raise Failed(f"nothing of {method} is done, so that there is nothing to rank: {endings[0].reason}")


def plugin_files() -> dict[str, bytes]:
    """The sources of the plugins in ATTNBENCH_PLUGINS: the file, or the texts in the folder of a library's sources."""
    found: dict[str, bytes] = {}
    for word in filter(None, os.environ.get("ATTNBENCH_PLUGINS", "").split(":")):
        path = Path(word)
        if path.suffix == ".py":
            sources = [path, path.with_suffix(".bib")]
        else:
            sources = sorted(one for one in source_folder(path).glob("*") if one.suffix in PLUGIN_SOURCES)
        for source in sources:
            if source.is_file():
                found[f"plugin/{source.name}"] = source.read_bytes()
    return found


def source_folder(plugin: Path) -> Path:
    """Of a library in a build folder of CMake the folder that it builds, otherwise the library's own."""
    folder = plugin if plugin.is_dir() else plugin.parent
    cache = folder / "CMakeCache.txt"
    home = (
        re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    )
    return Path(home[1]) if home else folder


def submit(arguments: argparse.Namespace) -> None:
    program, suite, methods = Program(arguments.program), find_suite(arguments.suite), arguments.method
    if BASELINE in methods or EXACT in methods:
        raise Misuse(f"submit: {EXACT} and {BASELINE} are measured beside every method; leave them out")
    results = arguments.results or arguments.output.with_suffix(".db")
    print(f"suite {suite.name}: {suite.title}")
    print(f"check {' '.join(methods)} ... ", end="", flush=True)
    report = checked(program, methods)
    print("no claim fails", flush=True)
    expected = forecast(program, suite, methods, results)
    words = f"{expected / 60:.1f} minutes" if expected >= 60 else f"{expected:.0f} seconds"
    print(f"{len(suite.runs)} runs, about {words}, with an error of a factor of a few", flush=True)
    measure(program, suite, methods, results)
    specs = [subject["spec"] for subject in json.loads(report)["subjects"]]
    manifest = Manifest(
        suite.name,
        specs,
        arguments.author,
        arguments.licence,
        arguments.note,
        program.said("report", "--cite", str(results), may_fail=True),
        program.said("--version").strip(),
    )
    pack(
        arguments.output,
        manifest,
        {SUITE: suite.content, RESULTS: results.read_bytes(), CHECK: report, **plugin_files()},
    )
    try:
        require_taken(arguments.output, suite, specs)
    except Failed:
        arguments.output.unlink()
        raise
    print(f"{arguments.output}: {byte_label(arguments.output.stat().st_size)}; what was measured stays in {results}")
    print(f"see your rows: attnbench leaderboard {arguments.output} -o site")


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("method", nargs="+")
    words.add_argument("--program", required=True, help="the attnbench that measures")
    words.add_argument("--suite", help="name or file (default: the newest)")
    words.add_argument("--author", action="append", required=True, help="who submits (repeatable)")
    words.add_argument("--licence", required=True, help="of the plugin's source and of the numbers, such as Apache-2.0")
    words.add_argument("--note", default="", help="anything that readers should know")
    words.add_argument("--results", type=Path, help="results file (default: the bundle's name with .db)")
    words.add_argument("--output", "-o", type=Path, default=Path("bundle.zip"), help="(default %(default)s)")
    return words


def main() -> int:
    arguments = parser().parse_args()
    try:
        submit(arguments)
    except Misuse as misuse:
        print(f"\nattnbench: {misuse}", file=sys.stderr)
        return 2
    except (Failed, Refused, OSError) as failed:
        print(f"\nattnbench: submit: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
