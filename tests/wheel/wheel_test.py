#!/usr/bin/python3
"""Tests the wheel and the tarball where nothing but Debian's smallest system and Python is installed.

usage: wheel_test.py WHEEL TARBALL WHEELHOUSE ROOT PROGRAM    WHEELHOUSE has the wheels of what attnbench needs, ROOT is a
                                        system of debootstrap, and PROGRAM the build that wheel and tarball were made from
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path

WHEEL, TARBALL, HOUSE, ROOT, PROGRAM = (Path(word).resolve() for word in sys.argv[1:6])
HOME = ROOT / "root"

PLUGIN = """
import attnbench
import numpy as np

class Means(attnbench.Method):
    \"\"\"The mean of the values that a row sees.\"\"\"

    def attend(self, q, k, v, causal):
        if causal:
            return np.cumsum(v, axis=0) / np.arange(1, len(v) + 1, dtype=v.dtype)[:, None]
        return np.broadcast_to(v.mean(axis=0), (len(q), v.shape[1]))

    def transcription(self, q, k, v, causal):
        return np.array([v[: i + 1 if causal else None].mean(axis=0) for i in range(len(q))])
"""


def inside(*words: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the small system, which sees no file of this one."""
    mounted = (
        'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" /usr/bin/env -i -C /root "$@"'
    )
    path = "PATH=/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    given = [path, "HOME=/root", *(f"{name}={value}" for name, value in variables.items())]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, str(ROOT), *given, *words], capture_output=True, text=True
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)} exits with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def installed() -> Path:
    (package,) = ROOT.glob("venv/lib/python3.*/site-packages/attnbench")
    return package / "installed"


class TarballTest(unittest.TestCase):
    """Compute nodes need no Python package."""

    @classmethod
    def setUpClass(cls) -> None:
        (ROOT / "opt").mkdir(exist_ok=True)
        shutil.rmtree(ROOT / "opt/attnbench", ignore_errors=True)
        subprocess.run(["tar", "-xzf", TARBALL, "-C", ROOT / "opt"], check=True)
        (unpacked,) = (ROOT / "opt").glob("attnbench-*")
        unpacked.rename(ROOT / "opt/attnbench")

    def test_it_measures(self) -> None:
        program = "/opt/attnbench/bin/attnbench"
        words = "run attention-error --method performer --input model -n 64 --results /tmp/r.db".split()
        (ROOT / "tmp/r.db").unlink(missing_ok=True)
        self.assertIn("1 cells x 1 replicates: 1 run", inside(program, *words).stdout)

    def test_a_copy_of_program_and_libraries_runs(self) -> None:
        """As scripts/slurm/submit.py copies them."""
        sys.path.insert(0, str(Path(__file__).parents[2] / "scripts/slurm"))
        from submit import copy_program

        folder = ROOT / "opt/copy"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        copy_program(ROOT / "opt/attnbench/bin/attnbench", folder / "attnbench")
        self.assertIn("attnbench 0", inside("/opt/copy/attnbench", "--version").stdout)


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        shutil.rmtree(ROOT / "venv", ignore_errors=True)
        shutil.rmtree(ROOT / "house", ignore_errors=True)
        shutil.copytree(HOUSE, ROOT / "house")
        shutil.copy(WHEEL, ROOT / "house")
        inside("python3", "-m", "venv", "/venv")
        inside("pip", "install", "--quiet", "--no-index", "--find-links", "/house", "attnbench")

    def setUp(self) -> None:
        shutil.rmtree(HOME)
        HOME.mkdir()

    def test_the_system_can_build_nothing(self) -> None:
        for tool in ("gcc", "g++", "cc", "clang", "cmake", "make", "ld"):
            self.assertNotEqual(inside("which", tool, check=False).returncode, 0, tool)
        self.assertFalse((ROOT / "usr/include/eigen3").exists())
        self.assertEqual(list((ROOT / "usr/lib/x86_64-linux-gnu").glob("libopenblas*")), [])

    def test_a_method_is_checked(self) -> None:
        report = inside("attnbench", "check", "performer").stdout
        self.assertRegex(report, r"(?m)^PASS: 1 spec, \d+ statistical tests")

    def test_numbers_are_those_of_the_build(self) -> None:
        """Bit by bit: export prints every digit."""
        words = "run attention-error --method performer --method softmax -n 64 -d 16 --replicates 2 --results".split()
        inside("attnbench", *words, "wheel.db")
        subprocess.run([PROGRAM, *words, HOME / "build.db"], check=True, capture_output=True)
        tables = [inside("attnbench", "export", file).stdout for file in ("wheel.db", "build.db")]
        rows = [list(csv.DictReader(io.StringIO(table))) for table in tables]
        # Seconds and the memory of a process differ from run to run.
        measured = {"seconds", "peak_bytes"}
        kept = [[row for row in table if row["metric"] not in measured] for table in rows]
        self.assertGreater(len(kept[0]), 20)
        self.assertEqual(kept[0], kept[1])

    def test_a_run_is_reported(self) -> None:
        inside(*"attnbench run attention-error --method performer --sweep m=16,32 -n 64 -d 16 --results r.db".split())
        inside("attnbench", "report", "r.db", "-o", "page")
        self.assertIn("Performer", (HOME / "page/index.html").read_text())
        self.assertTrue((HOME / "page/runs.attention-error.pdf").read_bytes().startswith(b"%PDF"))

    def test_a_recipe_is_compared_with_the_reference(self) -> None:
        made = inside("attnbench", *"reproduce regularised-softmax --results r.db -o page".split()).stdout
        self.assertIn("compared with the reference: 3 the same\n", made)

    def test_the_suite_of_submissions_is_there(self) -> None:
        self.assertIn("table bidirectional-short", inside("attnbench", "suite", "attnbench-2026").stdout)

    def test_a_plugin_in_python(self) -> None:
        (HOME / "means.py").write_text(PLUGIN)
        report = inside("attnbench", "check", "means", "--plugin", "means.py").stdout
        self.assertRegex(report, r"(?m)^  formula +PASS")
        self.assertRegex(report, r"(?m)^PASS: 1 spec")

    def test_the_module(self) -> None:
        program = """
            import attnbench, numpy as np
            q, k, v = np.random.default_rng(1).standard_normal((3, 9, 4))
            weights = np.exp(q @ k.T / 2)
            expected = weights @ v / weights.sum(axis=1, keepdims=True)
            print(abs(attnbench.attend("softmax", q, k, v) - expected).max() < 1e-12)
            frame = attnbench.run("attention-error", ["performer:m=32"], n=[64])
            print(*frame.method.unique(), *frame.m.unique())
            """
        done = inside("python3", "-W", "error", "-c", textwrap.dedent(program))
        self.assertEqual(done.stdout, "True\nperformer:m=32 32\n")

    def test_another_package_of_that_name_comes_first(self) -> None:
        (HOME / "other/attnbench").mkdir(parents=True)
        (HOME / "other/attnbench/__init__.py").touch()
        done = inside("attnbench", "--version", check=False, PYTHONPATH="/root/other")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/root/other/attnbench/__init__.py is not the installation of this command", done.stderr)

    def test_a_processor_that_lacks_instructions(self) -> None:
        """Emulated: one of 2008."""
        program = ["qemu-x86_64", "-cpu", "Nehalem", str(installed() / "bin/attnbench"), "--version"]
        done = subprocess.run(program, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(
            done.stderr, r"built for processors with [\w-]+.*, which this one lacks; build it here \(.*\)\n$"
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
