#!/usr/bin/python3
"""Seconds and peak memory of whole `attnbench run rank` commands, compared with their targets.

    scripts/bench/spectra.py [--repeats N]

Each runs N times into a new results file; the medians are printed with their distribution-free 95 % intervals.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from table import Line

PROGRAM = Path(__file__).resolve().parents[2] / "build/release/attnbench"
# Name, arguments, target in seconds, target in MiB.
RUNS = (
    ("performer m=256, n = 65536, from factors", ["--method", "performer:m=256", "-n", "65536"], 5.0, 1024.0),
    ("softmax, n = 2048, dense", ["--method", "softmax", "-n", "2048"], 3.0, None),
)


def measure(arguments: list[str]) -> tuple[float, float]:
    """Seconds and peak MiB of one run into a new results file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(PROGRAM), "run", "rank", *arguments, "--results", f"{folder}/r.db"]
        quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        started = time.monotonic()
        child = os.posix_spawn(PROGRAM, command, os.environ, file_actions=quiet)
        _, status, usage = os.wait4(child, 0)
        seconds = time.monotonic() - started
    if status != 0:
        sys.exit(f"spectra.py: {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="runs of each (default 7)")
    repeats = parser.parse_args().repeats
    if repeats < 1:
        parser.error("--repeats: expected a number from 1")
    print(f"{'spectra, double, d = 64, all cores':<62} {'asked':>9}   measured")
    for what, arguments, seconds_asked, mebibytes_asked in RUNS:
        seconds, mebibytes = np.array([measure(arguments) for _ in range(repeats)]).T
        print(Line(f"seconds: {what}", seconds_asked, seconds, more=False).text())
        print(Line(f"MiB: {what}", mebibytes_asked, mebibytes, more=False).text())


if __name__ == "__main__":
    main()
