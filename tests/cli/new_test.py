#!/usr/bin/python3
"""The files that `attnbench new` writes compile, register their entries, and pass their tests.

Run as tests/cli/new_test.py PROGRAM SAMPLES PROGRAM_WITH_SAMPLES. SAMPLES has every template as CMake instantiated it.
PROGRAM_WITH_SAMPLES was built with these.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FAMILIES = ("linear", "logits", "recurrence", "low-rank", "codebook", "sparse", "mixer")
KINDS = {
    **{f"sample-method-{family}": ["method", "--family", family] for family in FAMILIES},
    **{f"sample-{kind}": [kind] for kind in ("feature-map", "projection", "input", "experiment")},
    "sample-recipe": ["recipe", "--cpp"],
}
CHECKED = [
    *(name for name, (kind, *_) in KINDS.items() if kind == "method"),
    "linear:features=sample-feature-map",
    "performer:projection=sample-projection",
]
PROGRAM = PROGRAM_WITH_SAMPLES = ""
SAMPLES = Path()


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True)


class NewTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_what_it_writes_is_what_the_other_tests_build(self) -> None:
        self.assertEqual({path.stem for path in SAMPLES.glob("*.cpp")}, set(KINDS))
        for name, words in KINDS.items():
            with self.subTest(name=name):
                made = run(PROGRAM, "new", words[0], name, *words[1:], "-o", str(self.folder))
                self.assertEqual(made.returncode, 0, made.stderr)
                path = self.folder / (name.replace("-", "_") + ".cpp")
                self.assertTrue(made.stdout.startswith(str(path)))
                camel = "".join(word.capitalize() for word in name.split("-"))
                self.assertEqual(path.read_text().replace(camel, "Sample"), (SAMPLES / f"{name}.cpp").read_text())

    def test_a_file_outside_of_the_tree_has_a_cmakelists_that_builds_it(self) -> None:
        (prefix := self.folder / "prefix").mkdir()
        (prefix / "attnbenchConfig.cmake").write_text(  # in place of the installed one: the samples link the program
            "add_library(attnbench::plugin INTERFACE IMPORTED)\n"
        )
        made = run(PROGRAM, "new", "feature-map", "my-map", "-o", str(self.folder / "new"))
        self.assertEqual(made.returncode, 0, made.stderr)
        lists = self.folder / "new/CMakeLists.txt"
        self.assertEqual(made.stdout.splitlines()[1], str(lists))
        written = lists.read_text()
        self.assertIn("add_library(mine MODULE my_map.cpp)", written)
        (command,) = re.findall(r"^  (cmake .*) && ", made.stdout, re.MULTILINE)
        configured = subprocess.run(
            [*command.split(), f"-Dattnbench_DIR={prefix}"], cwd="/", capture_output=True, text=True
        )
        self.assertEqual(configured.returncode, 0, configured.stderr)
        again = run(PROGRAM, "new", "input", "my-input", "-o", str(self.folder / "new"))
        self.assertEqual(lists.read_text(), written)
        self.assertIn("is there already", again.stdout)
        self.assertIn("\n  add_library(mine MODULE my_input.cpp)\n", again.stdout)
        tutorial = (Path(__file__).parents[2] / "docs/tutorial.md").read_text()
        (block,) = re.findall(r"^```cmake\n# CMakeLists.txt\n(.*?)^```", tutorial, re.MULTILINE | re.DOTALL)
        self.assertEqual(written.replace("my_map", "rademacher"), block)

    def test_a_recipe_in_cpp_elsewhere_is_moved_into_the_tree_first(self) -> None:
        made = run(PROGRAM, "new", "recipe", "my-recipe", "--cpp", "-o", str(self.folder))
        self.assertEqual(made.returncode, 0, made.stderr)
        move, build, use = made.stdout.splitlines()[2:5]
        self.assertRegex(move, rf"^  mv {self.folder}/my_recipe\.cpp .*/experiments/recipes$")
        self.assertEqual(build, "  scripts/build.sh release attnbench")
        self.assertIn("attnbench reproduce my-recipe", use)

    def test_samples_pass_check(self) -> None:
        made = run(PROGRAM_WITH_SAMPLES, "check", *CHECKED)
        self.assertEqual(made.returncode, 0, made.stdout[-2000:] + made.stderr)

    def test_samples_are_proved_by_their_transcriptions(self) -> None:
        for name in (name for name, (kind, *_) in KINDS.items() if kind == "method"):
            with self.subTest(name=name):
                self.assertRegex(run(PROGRAM_WITH_SAMPLES, "check", name).stdout, r"formula +PASS")

    def test_a_class_in_python_passes_check(self) -> None:
        made = run(PROGRAM, "new", "method", "my-method", "--python", "-o", str(self.folder))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("class MyMethod", (self.folder / "my_method.py").read_text())
        command = made.stdout.splitlines()[-1].split()
        self.assertEqual(command[0], "attnbench")
        checked = run(PROGRAM, *command[1:])
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertRegex(checked.stdout, r"formula +PASS")

    def test_an_input_and_an_experiment_in_python_run(self) -> None:
        for kind in ("input", "experiment"):
            made = run(PROGRAM, "new", kind, f"my-{kind}", "--python", "-o", str(self.folder))
            self.assertEqual(made.returncode, 0, made.stderr)
            command = made.stdout.splitlines()[-1].split()
            results = str(self.folder / f"{kind}.db")
            ran = run(PROGRAM, *command[1:], "-n", "32", "-d", "8", "--results", results)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertNotIn("not done", ran.stdout)
        self.assertIn("largest_error", run(PROGRAM, "export", results).stdout)

    def test_a_recipe_file_runs_as_it_is(self) -> None:
        made = run(PROGRAM, "new", "recipe", "my-recipe", "-o", str(self.folder))
        self.assertEqual(made.returncode, 0, made.stderr)
        path = self.folder / "my-recipe.recipe.toml"
        self.assertEqual(made.stdout.splitlines()[0], str(path))
        command = made.stdout.splitlines()[-1].split()
        self.assertEqual(command, ["attnbench", "reproduce", str(path), "--smoke"])
        words = ["--results", str(self.folder / "results.db"), "-o", str(self.folder / "out")]
        ran = run(PROGRAM, *command[1:], *words)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertTrue((self.folder / "out/index.html").is_file())
        # Performer and the mean at two lengths, two draws each.
        exported = run(PROGRAM, "export", str(self.folder / "results.db")).stdout
        self.assertEqual(sum("relative_output_error," in line for line in exported.splitlines()), 8)

    def test_samples_run(self) -> None:
        results = str(self.folder / "results.db")
        words = ["--method", "uniform", "--input", "sample-input", "-n", "64", "-d", "8", "--results", results]
        made = run(PROGRAM_WITH_SAMPLES, "run", "sample-experiment", *words)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("mean_square", run(PROGRAM, "export", results).stdout)
        words = ["--smoke", "--results", results, "-o", str(self.folder / "out")]
        made = run(PROGRAM_WITH_SAMPLES, "reproduce", "sample-recipe", *words)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertTrue((self.folder / "out/index.html").is_file())

    def test_what_cannot_be_is_refused_and_nothing_is_written(self) -> None:
        out = self.folder / "out"
        (self.folder / "there.cpp").write_text("mine")
        for words, said in (
            ([], "expected a kind and a name"),
            (["method"], "expected a kind and a name"),
            (["metod", "mine"], "did you mean method"),
            (["method", "mine"], "--family is missing"),
            (["method", "mine", "--family", "dense"], "no such family"),
            (["input", "mine", "--family", "sparse"], "--family is of methods"),
            (["input", "mine", "--cpp"], "--cpp is of recipes"),
            (["recipe", "mine", "--python"], "--python is of methods, inputs and experiments"),
            (["recipe", "My_Recipe"], "is not a name"),
            (["projection", "mine", "--python"], "--python is of methods, inputs and experiments"),
            (["method", "mine", "--python", "--family", "sparse"], "has no --family"),
            (["input", "gaussian"], "is taken by"),
            (["input", "My_Input"], "is not a name"),
            (["input", "a/b"], "is not a name"),
            (["input", "there", "-o", str(self.folder)], "is there already"),
            (["input", "mine", "-o", str(self.folder / "there.cpp")], "cannot be written"),
        ):
            with self.subTest(words=words):
                made = run(PROGRAM, "new", *words, *([] if "-o" in words or len(words) < 2 else ["-o", str(out)]))
                self.assertEqual(made.returncode, 2, made.stdout + made.stderr)
                self.assertIn(said, made.stderr)
                self.assertEqual(made.stderr.count("\n"), 1)
        self.assertFalse(out.exists())
        self.assertEqual((self.folder / "there.cpp").read_text(), "mine")


if __name__ == "__main__":
    PROGRAM, SAMPLES, PROGRAM_WITH_SAMPLES = sys.argv.pop(1), Path(sys.argv.pop(1)), sys.argv.pop(1)
    unittest.main()
