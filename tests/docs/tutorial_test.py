#!/usr/bin/python3
"""README.md and the pages of docs/ that are named below are true: this test writes their files into an empty folder, runs
their commands there and compares the output.

Run as tests/docs/tutorial_test.py BUILD_FOLDER. A cpp, cmake, python, toml or bibtex block is the file that its first comment names. The
test applies a diff block and runs an sh block. The sh block before a text block has to print each of its lines; numbers may differ, and dots
cut a line off. The test does not run a console block.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILD = Path()


def words_of(line: str) -> str:
    """A line without its numbers and its alignment."""
    return " ".join(re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", line).split())


class PagesTest(unittest.TestCase):
    def test_the_tutorial(self) -> None:
        self.assertTrue({"cpp", "cmake", "sh", "text", "diff"} <= self.kinds_of("docs/tutorial.md"))

    def test_the_page_about_python(self) -> None:
        self.require_python()
        self.assertTrue({"python", "sh", "text"} <= self.kinds_of("docs/python.md"))

    def test_the_page_about_sharing(self) -> None:
        self.require_python()
        self.assertTrue({"python", "bibtex", "toml", "cmake", "sh", "text"} <= self.kinds_of("docs/sharing.md"))

    def test_the_page_about_leaderboards(self) -> None:
        self.assertTrue({"sh", "text", "console"} <= self.kinds_of("docs/leaderboard.md"))

    def test_the_page_about_hugging_face(self) -> None:
        self.require_python()
        if find_spec("torch") is None or find_spec("transformers") is None:
            self.skipTest("no torch or no transformers; scripts/test_torch.sh installs both and runs this test")
        self.assertTrue({"python", "sh", "text", "console"} <= self.kinds_of("docs/hugging-face.md"))

    def test_the_pages_about_pytorch(self) -> None:
        self.require_python()
        if find_spec("torch") is None:
            self.skipTest("no torch; scripts/test_torch.sh installs it and runs this test")
        for page in ("pytorch", "did-it-do-anything"):
            self.assertTrue({"python", "sh", "text"} <= self.kinds_of(f"docs/{page}.md"))

    def test_the_guide(self) -> None:
        self.assertTrue({"python", "toml", "sh", "text", "console"} <= self.kinds_of("docs/guide.md"))

    def test_the_readme(self) -> None:
        self.require_python()
        self.assertTrue({"python", "sh", "text", "console"} <= self.kinds_of("README.md"))

    def require_python(self) -> None:
        if not (BUILD / "python/attnbench").exists():
            self.skipTest("built without the Python module")

    def kinds_of(self, page: str) -> set[str]:
        """Does what a page says in a new folder; returns the kinds of its blocks."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        prefix = folder / "prefix"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        work = folder / "work"
        work.mkdir()
        environment = {
            **os.environ,
            "PATH": f"{prefix / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CMAKE_PREFIX_PATH": str(prefix),
        }
        printed, exports = "", ""
        kinds = set()
        for kind, text in BLOCK.findall((ROOT / page).read_text()):
            kinds.add(kind)
            with self.subTest(block=text[:60]):
                if kind in ("cpp", "cmake", "python", "toml", "bibtex"):
                    name = re.match(r"(?://|#|%) (\S+)\n", text)
                    assert name
                    (work / name[1]).write_text(text)
                elif kind == "diff":
                    done = subprocess.run(["git", "apply", "-p0"], cwd=work, input=text, capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                elif kind == "sh":
                    done = subprocess.run(
                        ["bash", "-euo", "pipefail", "-c", exports + text],
                        cwd=work,
                        env=environment,
                        capture_output=True,
                        text=True,
                    )
                    printed = done.stdout
                    self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
                    exports += "".join(re.findall(r"^export .*\n", text, re.MULTILINE))
                elif kind == "text":
                    lines = [words_of(line) for line in printed.splitlines()]
                    for line in text.splitlines():
                        begin, cut = words_of(line).removesuffix("..."), line.endswith("...")
                        found = any(words.startswith(begin) if cut else words == begin for words in lines)
                        self.assertTrue(found, f"{line}\nis not in\n{printed}")
        return kinds


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop())
    unittest.main()
