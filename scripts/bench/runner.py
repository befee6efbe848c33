#!/usr/bin/python3
"""The overhead of a run (worker start, messages, store), from experiments that measure nothing.

    scripts/bench/runner.py [--repeats N] [--cells N]

The program is build/release/attnbench_faulty, which the tests build. Each sweep runs N times, always from an empty
results file; the medians are printed with their distribution-free 95 % intervals.
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

PROGRAM = Path(__file__).resolve().parents[2] / "build/release/attnbench_faulty"
DEATHS = 50


def resident(process: int) -> float:
    """Resident MiB of a process; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def has_workers(process: int) -> bool:
    """Whether the run has finished planning and started workers."""
    try:
        return bool(Path(f"/proc/{process}/task/{process}/children").read_text())
    except OSError:
        return False


def sweep(arguments: list[str], threads: int) -> tuple[float, list[float]]:
    """Seconds of one run into a new results file, and the MiB of the runner every 20 ms while it has workers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(PROGRAM), "run", *arguments, "--threads", str(threads), "--results", f"{folder}/r.db"]
        quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        started = time.monotonic()
        child = os.posix_spawn(PROGRAM, command, os.environ, file_actions=quiet)
        memory: list[float] = []
        while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if has_workers(child):
                memory.append(resident(child))
            time.sleep(0.02)
        seconds = time.monotonic() - started
        _, status = os.waitpid(child, 0)
    if status != 0:
        sys.exit(f"runner.py: {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return seconds, memory


def no_op(cells: int) -> list[str]:
    """A sweep of cells that cost nothing."""
    return ["no-op", "--method", "uniform", "-n", "8", "-d", "4", "--sweep", f"cell=1:{cells}:+1"]


def deaths(method: str) -> list[str]:
    """Cells whose worker dies; with the method zero it survives."""
    return ["attention-error", "--method", method, "-n", "8", "-d", "4", "--replicates", str(DEATHS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="runs of each (default 7)")
    parser.add_argument("--cells", type=int, default=2000, metavar="N", help="cells of a sweep (default 2000)")
    arguments = parser.parse_args()
    if arguments.repeats < 1 or arguments.cells < 20:
        parser.error("--repeats: expected a number from 1; --cells: from 20")
    repeats, cells = range(arguments.repeats), arguments.cells
    print(f"{f'a run of {cells} cells that measure nothing':<62} {'asked':>9}   measured")
    for threads in (1, os.cpu_count() or 1):
        each = np.array([1000 * sweep(no_op(cells), threads)[0] / cells for _ in repeats])
        print(Line(f"ms a cell, threads: {threads}", 15.0, each, more=False).text())
    growth = []
    for _ in repeats:
        memory = sweep(no_op(cells), 1)[1]
        tenth = max(1, len(memory) // 10)
        growth.append(np.median(memory[-tenth:]) - np.median(memory[:tenth]))
    print(Line("MiB that the runner grows by while its workers work", 1.0, np.array(growth), more=False).text())
    died = np.array([sweep(deaths("exit"), 1)[0] - sweep(deaths("zero"), 1)[0] for _ in repeats])
    print(Line("ms from a worker's death to the next one's first cell", 50.0, 1000 * died / DEATHS, more=False).text())


if __name__ == "__main__":
    main()
