"""The training text of scripts/train_byte_lm.py and its held-out files: the source of Python's standard library.

Tests and installed packages are left out. The hash of its path decides whether a file is held out (one in twenty);
files to capture are held out as well. The files depend on the Python that runs this.
"""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path

CAPTURES = {"measured": "statistics.py", "calibration": "difflib.py"}
CAPTURE_OFFSET = 4096
HELD_OUT_FRACTION = 20


def read_corpus() -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Training files and held-out files by their paths in the library, in the order of the paths."""
    root = Path(sysconfig.get_path("stdlib"))
    training: dict[str, bytes] = {}
    held_out: dict[str, bytes] = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if any(part in ("test", "tests", "dist-packages", "site-packages") for part in path.parts):
            continue
        chosen = int(hashlib.sha256(name.encode()).hexdigest(), 16) % HELD_OUT_FRACTION == 0
        (held_out if chosen or name in CAPTURES.values() else training)[name] = path.read_bytes()
    return training, held_out
