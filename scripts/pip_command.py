#!python
"""The command `attnbench` of a pip installation: runs the program inside the package, with this interpreter for its scripts.

pip puts this interpreter into the first line. Does not import the package, which takes longer than most commands.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    found = importlib.util.find_spec("attnbench")
    if found is None or found.origin is None:
        sys.exit(f"attnbench: {sys.executable} has no package attnbench; install it there: pip install attnbench")
    program = Path(found.origin).parent / "installed" / "bin" / "attnbench"
    if not program.exists():  # a path in PYTHONPATH comes first
        sys.exit(
            f"attnbench: {found.origin} is not the installation of this command; remove its folder from PYTHONPATH, or run "
            "the program of that build"
        )
    os.environ["ATTNBENCH_INTERPRETER"] = sys.executable
    os.execv(program, [str(program), *sys.argv[1:]])


main()
