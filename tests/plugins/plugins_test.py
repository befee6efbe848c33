#!/usr/bin/python3
"""Plugins in C++: built as a user builds them, against an installed attnbench, and used by the installed program.

A plugin that breaks costs a cell or gives one message, and nothing else is lost. Run as tests/plugins/plugins_test.py
BUILD_FOLDER.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import shlex
import shutil
import sqlite3
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

    def test_a_build_folder_as_prefix_is_told_to_be_installed(self) -> None:
        words = ["-S", str(SOURCES), "-B", str(self.folder / "build"), f"-DCMAKE_PREFIX_PATH={BUILD.resolve()}"]
        done = subprocess.run(["cmake", *words], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(" ".join(done.stderr.split()), r"is a build folder; install it first, by .cmake --install /")

    def test_the_library_calls_its_own_copies_of_inline_functions(self) -> None:
        library = FOLDER / "prefix/lib/attnbench/libattnbench.so"
        listed = subprocess.run(["readelf", "-rW", library], check=True, capture_output=True, text=True).stdout
        called = re.findall(r"JUMP_SL\w*\s+\S+\s+(\S+)", listed)
        self.assertIn("malloc", {name.partition("@")[0] for name in called})
        ours = {name for name in called if re.match(r"_ZNK?(5Eigen|9attnbench)", name)}
        replaceable = {"_ZN9attnbench11build_factsEv", "_ZN9attnbench7sourcesB5cxx11Ev"}
        self.assertLessEqual(ours, replaceable)
        # clang calls a function over its address where it calls it several times.
        self.assertLessEqual(replaceable, set(re.findall(r"(?:JUMP_SL|GLOB_DA)\w*\s+\S+\s+(\S+)", listed)))

    def test_entries_are_listed_and_described_as_built_in_ones(self) -> None:
        for kind, name in (
            ("deterministic-features", "elu-twin"),
            ("features", "positive-twin"),
            ("inputs", "ones"),
            ("projections", "zero"),
            ("key-scores", "latest"),
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

    def test_a_score_of_a_plugin_chooses_keys(self) -> None:
        entries = ["--plugin", plugin("entries")]
        self.assertNotIn("FAIL", self.done("check", "evict:score=latest,keep=8", *entries))
        for spec, last_row in (("latest,keep=8", "....########"), ("latest,every=2,keep=6", "#.#.#.#.#.##")):
            drawn = self.done("describe", "--pattern", f"evict:score={spec}", "-n", "12", *entries)
            self.assertEqual(drawn.splitlines()[-1], last_row)
        made = attnbench("run", "rank", "--method", "evict:score=latest,every=1001", "-n", "32", *entries)
        self.assertEqual(made.returncode, 2, made.stdout)
        self.assertIn("latest: every is at most 1000", made.stderr)

    def test_an_experiment_and_an_input_of_a_plugin_run(self) -> None:
        methods = ["--method", "softmax", "--method", "performer:projection=zero"]
        words = ["--input", "ones", "-n", "32", "-d", "8", "--results", self.results, "--plugin", plugin("entries")]
        self.done("run", "largest-output", *methods, *words)
        rows = self.rows()
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertAlmostEqual(float(row["value"]), 1, places=6)

    def test_the_bias_of_an_ensemble_that_states_no_law_is_measured(self) -> None:
        # All its vectors are 0 and q = k = 1: the estimate is exp(-1) where the target exp(q.k) is e.
        words = ["--method", "performer:projection=zero,m=4", "--input", "ones", "-n", "8", "-d", "1"]
        self.done("run", "kernel-error:draws=64", *words, "--results", self.results, "--plugin", plugin("entries"))
        bias = [float(row["value"]) for row in self.rows() if row["metric"] == "relative_bias"]
        self.assertEqual(len(bias), 1)
        self.assertAlmostEqual(bias[0], math.exp(-2) - 1, places=12)
        report = attnbench("check", "performer:projection=zero,m=4", "--plugin", plugin("entries")).stdout
        self.assertRegex(report, r"unbiased +SKIPPED .* the target is exp\(q.k\); the largest bias of \d+ pairs is \d")

    def test_recipes_and_bibtex_beside_a_plugin_go_with_it(self) -> None:
        copy = self.folder / "mine.so"
        shutil.copy(plugin("entries"), copy)

        def recipe(file: str, name: str, source: str) -> None:
            (self.folder / file).write_text(f"""name = "{name}"
title = "Title of {name}"
question = "How large?"
[[runs]]
experiment = "largest-output"
method = ["softmax", "uniform"]
input = "ones"
n = 16
d = 4
[[statements]]
text = "{name} is below 2"
source = "{source}"
paraphrase = "small"
threshold = "2"
because = "means of ones are 1"
metric = "largest"
take = "exact"
each = "method"
below = 2
""")

        recipe("mine.recipe.toml", "of-mine", "Doe 2026, arXiv:2601.00001, section 2")
        recipe("mine.more.recipe.toml", "more-of-mine", "Roe 2026, arXiv:2601.00002")
        recipe("minetoo.recipe.toml", "of-another", "nobody")
        (self.folder / "mine.bib").write_text("@article{doe, title = {A title}, year = 2026, eprint = {2601.00001}}\n")
        beside = ["--plugin", str(copy)]
        listed = self.done("list", "recipes", *beside)
        self.assertRegex(listed, r"(?m)^  of-mine +Title of of-mine$")
        self.assertIn("more-of-mine", listed)
        self.assertNotIn("of-another", listed)
        self.assertNotIn("of-mine", self.done("list", "recipes"))
        self.assertIn("1. of-mine is below 2 [Doe 2026", self.done("describe", "of-mine", *beside))
        words = ["reproduce", "of-mine", "more-of-mine", "--quick", "--results", self.results]
        made = self.done(*words, "-o", str(self.folder / "page"), *beside)
        self.assertRegex(made, r"of-mine +1 HOLDS +2 run")
        self.assertRegex(made, r"more-of-mine +1 HOLDS +0 run +2 there already")
        self.assertIn("2 HOLDS\nnot in the reference: 2 verdicts, 0 not as expected\n", made)
        cited = self.done("report", "--cite", self.results, *beside)
        self.assertIn("@article{doe, title = {A title}, year = 2026, eprint = {2601.00001}}\n", cited)
        self.assertIn("% Roe 2026, arXiv:2601.00002\n", cited)
        self.assertIn("% Doe 2026", self.done("report", "--cite", self.results, "--plugin", plugin("entries")))
        with sqlite3.connect(self.results) as store:
            commands = [command for (command,) in store.execute("SELECT command FROM reproduction ORDER BY recipe")]
        file = self.folder / "mine.recipe.toml"
        self.assertEqual(commands[1], f"attnbench reproduce {file} --quick --plugin {copy}")
        reference = FOLDER.resolve() / "prefix/share/attnbench/results/reference/verdicts.csv"
        away = reference.rename(reference.with_suffix(".away"))
        self.addCleanup(away.rename, reference)
        again = self.done(*shlex.split(commands[1])[1:], "--results", self.results, "-o", str(self.folder))
        self.assertIn("0 run", again)
        self.assertIn(f"not compared with the reference: {reference} is missing\n", again)
        file.write_text(file.read_text().replace("below = 2", "belo = 2"))
        for broken in (["list"], ["describe", "of-mine"]):
            refused = attnbench(*broken, *beside)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(
                refused.stderr, r"mine\.recipe\.toml, line 19: a statement has no 'belo'; did you mean below\?"
            )
            self.assertEqual(refused.stderr.count("\n"), 1)

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

    def test_a_plugin_that_replaces_a_built_in_method_changes_no_number_of_it(self) -> None:
        words = ["run", "attention-error", "--method", "uniform", "-n", "32", "-d", "8", "--threads", "1"]
        lines = []
        for more in ([], ["--method", "zero-twin", "--plugin", plugin("replaces_uniform")]):
            self.done(*words, *more, "--results", self.results)
            exported = self.done("export", self.results, "--arrays").splitlines()
            lines.append([line for line in exported if line.startswith("attention-error,uniform,")])
            Path(self.results).unlink()
        self.assertGreater(len(lines[0]), 30)
        self.assertEqual(*lines)

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
            (str(text), 2, "it is not a shared library"),
            (plugin("no_plugin"), 2, "no plugin"),
            (plugin("other_headers"), 2, "headers: 0123456789abcdef of attnbench 0.0.1, where this program has"),
            (
                plugin("other_headers"),
                2,
                f"cmake -B build -DCMAKE_PREFIX_PATH={FOLDER / 'prefix'} && cmake --build build",
            ),
            (plugin("other_headers"), 2, "Eigen's alignment: 128, where this program has"),
            (plugin("registers_nothing"), 2, "registers nothing"),
            (plugin("taken_name"), 2, "method 'performer'"),
            (plugin("one_precision"), 2, "'in-float' lacks f64"),
            (plugin("unusable_name"), 2, "its method 'my method': the name 'my method' cannot be written in a spec"),
            (
                plugin("shared_parameter"),
                2,
                "shared_parameter.so: its feature map 'shifted': parameter 'backward' is also one of method 'performer', "
                "which may name this entry as features; rename it",
            ),
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
