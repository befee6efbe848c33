#!/usr/bin/python3
"""Plugins in C++: built as a user builds them, against an installed attnbench, and used by the installed program.

Run as tests/plugins/plugins_test.py BUILD_FOLDER. What they break costs a cell or gives one message, and nothing else is lost.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "cpp"
BUILD = Path()
FOLDER = Path()  # of this run: prefix/, plugins/
SANITIZED = False


def cached(name: str) -> str:
    found = re.search(rf"^{name}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else ""


def setUpModule() -> None:
    global FOLDER, SANITIZED
    SANITIZED = bool(cached("ATTNBENCH_SANITIZE"))
    FOLDER = Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    for words in (
        ["--install", str(BUILD), "--prefix", str(FOLDER / "prefix")],
        ["-S", str(SOURCES), "-B", str(FOLDER / "plugins"), "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={FOLDER / 'prefix'}"]
        + [f"-D{name}={cached(name)}" for name in ("CMAKE_CXX_COMPILER", "CMAKE_CXX_COMPILER_LAUNCHER")],
        ["--build", str(FOLDER / "plugins")],
    ):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stdout[-4000:] + done.stderr[-4000:])


def plugin(name: str) -> str:
    return str(FOLDER / "plugins" / f"{name}.so")


def attnbench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = str(FOLDER / "prefix/bin/attnbench")
    own = {"ASAN_OPTIONS": "handle_segv=0"}  # a crash is the system's to tell, as without a sanitizer
    return subprocess.run([program, *words], capture_output=True, text=True, env={**os.environ, **own, **environment})


class PluginsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = str(self.folder / "results.db")

    def done(self, *words: str, code: int = 0, **environment: str) -> str:
        made = attnbench(*words, **environment)
        self.assertEqual(made.returncode, code, made.stdout[-3000:] + made.stderr[-3000:])
        return made.stdout

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.done("export", self.results))))

    def test_entries_are_listed_and_described_as_built_in_ones(self) -> None:
        for kind, name in (
            ("deterministic-features", "elu-twin"),
            ("features", "positive-twin"),
            ("inputs", "ones"),
            ("projections", "zero"),
            ("experiments", "largest-output"),
        ):
            with self.subTest(kind=kind):
                self.assertIn(name, self.done("list", kind, "--plugin", plugin("entries")))
                self.assertNotIn(name, self.done("list", kind))
                self.assertIn(name, self.done("describe", name, "--plugin", plugin("entries")))
        self.assertIn("elu-twin", self.done("list", "deterministic-features", ATTNBENCH_PLUGINS=plugin("entries")))
        self.assertIn("--plugin FILE", self.done("list", "--help"))

    def test_a_map_of_a_plugin_gives_what_the_same_built_in_map_gives(self) -> None:
        maps = ["--method", "linear:features=elu", "--method", "linear:features=elu-twin"]
        words = ["-n", "64", "-d", "8", "--results", self.results, "--plugin", plugin("entries")]
        self.done("run", "attention-error", *maps, *words)
        values: dict[str, list[str]] = {}
        for row in self.rows():
            values.setdefault(row["method"], []).append(row["value"])
        self.assertEqual(len(values), 2)
        own, twin = values.values()
        self.assertGreater(len(own), 5)
        self.assertEqual(own, twin)

    def test_what_a_plugin_says_is_right_passes_check(self) -> None:
        specs = ["linear:features=elu-twin", "performer:features=positive-twin,m=32"]
        self.assertNotIn("FAIL", self.done("check", *specs, "--plugin", plugin("entries")))

    def test_an_experiment_and_an_input_of_a_plugin_run(self) -> None:
        methods = ["--method", "softmax", "--method", "performer:projection=zero"]
        words = ["--input", "ones", "-n", "32", "-d", "8", "--results", self.results, "--plugin", plugin("entries")]
        self.done("run", "largest-output", *methods, *words)
        rows = self.rows()
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertAlmostEqual(float(row["value"]), 1, places=6)

    def test_a_plugin_that_has_changed_is_measured_anew(self) -> None:
        copy = self.folder / "mine.so"
        shutil.copy(plugin("entries"), copy)
        words = ["run", "largest-output", "--method", "softmax", "--method", "linear:features=elu-twin"]
        words += ["-n", "16", "-d", "4", "--results", self.results, "--plugin", str(copy)]
        self.assertIn("2 run", self.done(*words))
        self.assertIn("0 run", self.done(*words))
        with copy.open("ab") as file:
            file.write(b"\0")
        self.assertIn("2 run", self.done(*words))  # the experiment is the plugin's as well

    def test_a_crash_costs_a_row_and_leaves_nineteen_curves(self) -> None:
        built_in = ["softmax", "uniform", "linear", "efficient", "cosformer", "local", "linformer", "nystrom", "vq"]
        built_in += ["performer", "performer:m=16", "performer:m=32", "performer:m=64", "performer:features=trig"]
        built_in += ["linear:features=relu", "local:window=4", "local:window=8", "linformer:r=16", "linformer:r=8"]
        methods = [word for spec in [*built_in, "segfault"] for word in ("--method", spec)]
        words = ["-n", "32", "-n", "64", "-d", "8", "--results", self.results, "--plugin", plugin("methods")]
        made = self.done("run", "attention-error", *methods, *words, code=1)
        self.assertRegex(made, r"segfault .*crashed +SIGSEGV while")
        rows = self.rows()
        done = {row["method"] for row in rows if row["ending"] == "done"}
        self.assertEqual(len(done), 19)
        others = [row for row in rows if row["ending"] != "done"]
        self.assertEqual({(row["method"], row["ending"]) for row in others}, {("segfault", "crashed")})
        self.assertEqual(len(others), 2)  # one a cell
        self.assertIn("died of SIGSEGV", attnbench("check", "segfault", "--plugin", plugin("methods")).stderr)

    def test_check_finds_what_a_method_should_not_do(self) -> None:
        for method, claim, words in (
            ("modifies-inputs", "inputs-kept", "a call changed"),
            ("not-deterministic", "repeatable", "when it is called again"),
            ("keeps-state", "repeatable", "called for another head before"),
            ("nan", "row-sums", ""),
            ("throws", "repeatable", "no luck today"),
        ):
            with self.subTest(method=method):
                report = self.done("check", method, "--plugin", plugin("methods"), code=1)
                self.assertRegex(report, rf"{claim} +FAIL.*{words}")
        self.assertNotIn("FAIL", self.done("check", "prints", "--plugin", plugin("methods")))

    def test_what_goes_wrong_in_a_cell_is_its_ending(self) -> None:
        endings = {"nan": "invalid", "throws": "failed", "prints": "done"}
        if SANITIZED:
            endings["freed-memory"] = "crashed"
        methods = [word for name in [*endings, "softmax"] for word in ("--method", name)]
        words = ["-n", "32", "-d", "8", "--results", self.results, "--plugin", plugin("methods")]
        made = self.done("run", "attention-error", *methods, *words, code=1)
        found = {row["method"]: row["ending"] for row in self.rows()}
        self.assertEqual(found, {**endings, "softmax": "done"})
        self.assertIn("no luck today", made)
        if SANITIZED:
            self.assertIn(
                "heap-use-after-free", attnbench("check", "freed-memory", "--plugin", plugin("methods")).stderr
            )

    def test_what_is_no_plugin_is_refused_in_one_line(self) -> None:
        text = self.folder / "text.so"
        text.write_text("not a library")
        for file, code, said in (
            (str(self.folder / "none.so"), 2, "there is no such file"),
            (str(SOURCES / "methods.cpp"), 2, "expected a shared library"),
            (str(text), 2, "it is no shared library"),
            (plugin("no_plugin"), 2, "no plugin"),
            (plugin("other_headers"), 2, "headers: 0123456789abcdef, where this program has"),
            (plugin("other_headers"), 2, "Eigen's alignment: 128, where this program has"),
            (plugin("registers_nothing"), 2, "registers nothing"),
            (plugin("taken_name"), 2, "method 'performer'"),
            (plugin("one_precision"), 2, "'in-float' lacks f64"),
            (plugin("throws_while_registering"), 2 if SANITIZED else 1, "no registration today"),
            (plugin("crashes_while_registering"), 1, "SIGSEGV"),
        ):
            for words in (["list", "methods"], ["check", "softmax"]):
                with self.subTest(file=file, said=said, words=words):
                    made = attnbench(*words, "--plugin", file)
                    self.assertEqual(made.returncode, code, made.stderr)
                    self.assertIn(said, made.stderr)
                    self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
        for words, said in (
            (["list", "--plugin"], "plugin"),
            (["list", "--python", "no-such-python", "--plugin", str(self.folder / "x.py")], "no such"),
        ):
            made = attnbench(*words)
            self.assertEqual(made.returncode, 2)
            self.assertIn(said, made.stderr)

    def test_a_plugin_that_dies_when_it_is_asked_gives_one_message(self) -> None:
        words = ["-n", "16", "-d", "4", "--results", self.results, "--plugin", plugin("dies_when_asked")]
        made = attnbench("run", "attention-error", "--method", "dies-when-asked", *words)
        self.assertEqual(made.returncode, 1, made.stdout)
        self.assertRegex(made.stderr, r"dies_when_asked\.so: SIGSEGV while telling the caveats of 'dies-when-asked'")
        self.assertEqual(made.stderr.count("\n"), 1)


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1))
    unittest.main()
