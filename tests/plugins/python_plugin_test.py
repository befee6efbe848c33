#!/usr/bin/python3
"""Plugins in Python: methods of a file are used as built-in ones are, and what they break costs a cell or one message.

Run as tests/plugins/python_plugin_test.py BUILD_FOLDER.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SOURCES = Path(__file__).resolve().parent / "python"
BUILD = Path()
ATTEND = "    def attend(self, q, k, v, causal):\n        return v\n"

# What each file that is no plugin is refused with, behind its path.
REFUSED = {
    "syntax_error": ("class Mine:\n    def attend(self q):\n", r"SyntaxError: .* \(syntax_error.py:2\)"),
    "not_python": ("\x00\x01\x02", r"(SyntaxError|ValueError): source code .*null bytes"),
    "no_class": ("def attend(q, k, v, causal):\n    return v\n", r"it defines no class with attend"),
    "private_class": (f"class _Mine:\n{ATTEND}", r"it defines no class with attend"),
    "features_of_one_side": (
        "class Mine:\n    def features_q(self, x):\n        return x\n",
        r"it defines no class with",
    ),
    "missing_package": (
        "import os\nimport no_such_package\n",
        r"ModuleNotFoundError: No module named 'no_such_package'; \S+ has no such package: .* \(missing_package.py:2\)",
    ),
    "raises": ("def f():\n    1 / 0\n\nf()\n", r"ZeroDivisionError: division by zero \(raises.py:2 in f\)"),
    "exits": ("import sys\nsys.exit(3)\n", r"SystemExit: 3 \(exits.py:2\)"),
    "taken_name": (
        f"class Softmax:\n{ATTEND}",
        r"it registers a name that is taken: method 'softmax' \(.*taken_name.py\)",
    ),
    "twice": (f"class Mine:\n{ATTEND}class mine:\n{ATTEND}", r"two of its classes are called 'mine'"),
    "bad_name": (f"class Mine:\n    name = 'a b'\n{ATTEND}", r"class Mine: name = 'a b'; expected letters"),
    "attend_of_two": (
        "class Mine:\n    def attend(self, q, k):\n        return q\n",
        r"attend\(q, k\) beside self; expected",
    ),
    "attend_with_a_keyword": (
        "class Mine:\n    def attend(self, q, k, v, *, causal):\n        return v\n",
        r"attend\(q, k, v, causal\) beside self; expected",
    ),
    "unknown_argument": (
        f"class Mine:\n    def __init__(self, weights):\n        pass\n{ATTEND}",
        r"its constructor wants 'weights', which nothing gives; there are parameters, shape, seed",
    ),
    "unknown_claim": (
        f"class Mine:\n    claims = {{'non_negativ': True}}\n{ATTEND}",
        r"unknown claim .*did you mean non_negative",
    ),
    "claim_of_a_wrong_type": (
        f"class Mine:\n    claims = {{'rank_at_most': 'm'}}\n{ATTEND}",
        r"claim rank_at_most = 'm'; expected int",
    ),
    "parameter_of_a_wrong_type": (
        f"class Mine:\n    parameters = {{'m': [1]}}\n{ATTEND}",
        r"parameter m = \[1\] is a list",
    ),
    "takes_a_name_of_ours": (
        f"class Mine:\n    parameters = {{'seed': 1}}\n{ATTEND}",
        r"a parameter cannot be called 'seed'",
    ),
    "unknown_normaliser": (
        f"class Mine:\n    claims = {{'normaliser': 'rows'}}\n{ATTEND}",
        r"claim normaliser = 'rows'; expected row_sums, none, l2",
    ),
    "reference_is_a_function": (
        f"class Mine:\n    def reference(self, q, k, v, causal):\n        return v\n{ATTEND}",
        r"reference is a function; .*transcription\(self, q, k, v, causal\)",
    ),
    "transcription_of_two": (
        f"class Mine:\n    def transcription(self, q, k):\n        return q\n{ATTEND}",
        r"transcription takes 3 arguments; expected 5",
    ),
    "biased_without_features": (
        f"class Mine:\n    claims = {{'unbiased': True}}\n{ATTEND}",
        r"has no features_q and features_k",
    ),
}

# How the faults of tests/plugins/python/faults.py end, and what is said of each.
ENDINGS = {
    "wrong-shape": ("failed", r"attend\(q, k, v, causal\) returned an array of shape \(31, 8\); expected .* \(32, 8\)"),
    "no-array": ("failed", r"returned a str; expected an array of shape \(32, 8\) and type float64"),
    "returns-nothing": ("failed", r"returned None; expected an array"),
    "wrong-type": ("failed", r"returned an array of type complex128"),
    "not-a-number": ("invalid", r"nan at row 0, column 0"),
    "modifies-inputs": ("failed", r"ValueError: output array is read-only; .* \(faults.py:\d+ in fault\)"),
    "keeps-inputs": ("failed", r"attend keeps k, or a view of it, beyond the call.*k.copy\(\)"),
    "prints": ("done", "^$"),
    "raises": ("failed", r"ValueError: no luck today \(faults.py:\d+ in fault\)"),
    "skips": ("skipped", r"^not on a Sunday$"),
    "forks": ("done", "^$"),
    "starts-threads": ("done", "^$"),
    "leaves": ("crashed", r"exited with code 3 while"),
    "exits": ("failed", r"SystemExit: 4 \(faults.py:\d+ in fault\)"),
    "interrupts": ("failed", r"KeyboardInterrupt \(faults.py:\d+ in fault\)"),
    "segfaults": ("crashed", r"SIGSEGV while"),
    "takes-memory": ("out of memory", r"refused|limit"),
    "fails-to-draw": ("failed", r"OSError: no weights for d = 8 \(faults.py:\d+ in __init__\)"),
    "softmax": ("done", "^$"),
    "uniform": ("done", "^$"),
}


def attnbench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BUILD / "attnbench"), *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=600,
    )


def plugin(name: str) -> list[str]:
    return ["--plugin", str(SOURCES / f"{name}.py")]


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]).reshape(
                entry["shape"]
            )
    return tensors


class PythonPluginTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = str(self.folder / "results.db")

    def done(self, *words: str, code: int = 0, **environment: str) -> str:
        made = attnbench(*words, **environment)
        self.assertEqual(made.returncode, code, made.stdout[-3000:] + made.stderr[-3000:])
        return made.stdout

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.done("export", self.results))))

    def values(self, metric: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for row in self.rows():
            if row["metric"] == metric:
                found.setdefault(row["method"], []).append(float(row["value"]))
        return found

    def written(self, text: str, name: str = "mine") -> str:
        path = self.folder / f"{name}.py"
        path.write_text(text)
        return str(path)

    def test_its_methods_are_listed_and_described_with_their_interpreter(self) -> None:
        self.assertIn("numpy-softmax", self.done("list", "methods", *plugin("numpy_softmax")))
        self.assertNotIn("numpy-softmax", self.done("list", "methods"))
        told = self.done("describe", "numpy-positive", *plugin("positive_features"))
        for words in (
            "Positive random features for the softmax kernel, iid.",
            "phi(x) = m^-1/2 exp(W x - |x|^2/2)",
            "arXiv:2009.14794",
            "m             features [default 64; integer from 1 to",
            "FLOPs assumed",
        ):
            self.assertIn(words, told)
        self.assertRegex(told, r"in Python 3\.\d+\.\d+ \(/\S+\), NumPy \d")
        self.assertIn("numpy-positive", self.done("list", "deterministic-features", *plugin("positive_features")))

    def test_what_is_right_passes_check(self) -> None:
        for name, file in (("numpy-softmax", "numpy_softmax"), ("numpy-positive:m=24", "positive_features")):
            report = self.done("check", name, *plugin(file))
            self.assertNotIn("FAIL", report)
            self.assertRegex(report, r"causal +PASS")
        for claim in ("second-paths", "unbiased", "variance", "large-norms", "inputs-kept"):
            self.assertIn(claim, report)
        self.assertRegex(report, r"unbiased +PASS")
        self.assertRegex(report, r"variance +PASS")
        # NumPy's own exp overflows, which is found as well.
        report = self.done("check", "numpy-positive-twice:m=24", *plugin("positive_features"), code=1)
        self.assertRegex(report, r"second-paths +PASS")
        self.assertEqual(re.findall(r"(\S+) +FAIL ", report), ["large-norms"])

    def test_check_finds_a_planted_mistake(self) -> None:
        report = self.done("check", "numpy-positive-biased:m=24", *plugin("positive_features"), code=1)
        self.assertRegex(report, r"unbiased +FAIL")

    def test_check_finds_what_a_method_should_not_do(self) -> None:
        for name, claim in (
            ("not-deterministic", "repeatable"),
            ("keeps-state", "repeatable"),
            ("modifies-inputs-anyway", "inputs-kept"),
            ("wrong-shape", "repeatable"),
            ("raises", "repeatable"),
        ):
            with self.subTest(name=name):
                self.assertRegex(self.done("check", name, *plugin("faults"), code=1), rf"{claim} +FAIL")

    def test_what_it_prints_is_none_of_the_results(self) -> None:
        made = attnbench("check", "prints", "--json", *plugin("faults"))
        self.assertEqual(made.returncode, 0, made.stderr)
        json.loads(made.stdout)
        self.assertIn("nothing to see here", made.stderr)

    def test_files_that_are_no_plugins_are_refused_in_one_line(self) -> None:
        for name, (text, words) in REFUSED.items():
            with self.subTest(name=name):
                file = self.written(text, name)
                made = attnbench("list", "methods", "--plugin", file)
                self.assertEqual(made.returncode, 2, made.stderr)
                self.assertRegex(made.stderr, rf"\Aattnbench: plugin {re.escape(file)}: .*{words}")
                self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
        self.assertIn("there is no such file", attnbench("list", "--plugin", "none.py").stderr)

    def test_a_plugin_that_ends_the_interpreter_is_a_message(self) -> None:
        for text, words in (
            ("import os\nos._exit(5)\n", "exited with code 5 while loading plugins"),
            ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV while loading plugins"),
        ):
            made = attnbench("list", "methods", "--plugin", self.written(text))
            self.assertEqual(made.returncode, 1)
            self.assertIn(words, made.stderr)
            self.assertEqual(made.stderr.count("\n"), 1, made.stderr)

    def test_faults_cost_their_cells_and_no_others(self) -> None:
        methods = [word for name in ENDINGS for word in ("--method", name)]
        self.done(
            "run", "attention-error", *methods, "-n", "32", "-d", "8", "--results", self.results, "--timeout", "60",
            *plugin("faults"),
        )  # fmt: skip
        found = {row["method"]: row for row in self.rows()}
        self.assertEqual(set(found), set(ENDINGS))
        for name, (ending, words) in ENDINGS.items():
            with self.subTest(name=name):
                self.assertEqual(found[name]["ending"], ending, found[name]["reason"])
                self.assertRegex(found[name]["reason"], words)
                self.assertNotIn("\n", found[name]["reason"])

    def test_an_import_that_takes_long_is_in_no_limit(self) -> None:
        file = self.written(f"import time\n\ntime.sleep(3)\n\n\nclass Slow:\n{ATTEND}")
        begin = time.monotonic()
        words = ["--method", "slow", "-n", "16", "-d", "4", "--results", self.results, "--timeout", "2"]
        self.done("run", "attention-error", *words, "--plugin", file)
        self.assertGreater(time.monotonic() - begin, 3)
        self.assertEqual({row["ending"] for row in self.rows()}, {"done"})

    def test_a_method_that_hangs_is_timed_out(self) -> None:
        words = ["--method", "hangs", "--method", "uniform", "-n", "16", "-d", "4", "--timeout", "1"]
        self.done("run", "attention-error", *words, "--results", self.results, *plugin("faults"), code=1)
        self.assertEqual(
            {row["method"]: row["ending"] for row in self.rows()}, {"hangs": "timed out", "uniform": "done"}
        )

    def test_attend_takes_it_and_its_state(self) -> None:
        file = str(self.folder / "in.npz")
        generator = np.random.default_rng(1)
        heads = {name: generator.standard_normal((2, 20, 8)) for name in "qkv"}
        np.savez(file, **heads)
        projection = generator.standard_normal((4, 8))
        outputs = []
        for spec, name, more in (
            ("softmax", "numpy_softmax", []),
            ("numpy-softmax", "numpy_softmax", []),
            ("numpy-positive:m=4", "positive_features", ["--state", str(self.folder / "state.npz")]),
            ("performer:features=positive,m=4", "positive_features", ["--state", str(self.folder / "state.npz")]),
        ):
            tensor = "projection" if spec.startswith("performer") else "W"
            np.savez(self.folder / "state.npz", **{tensor: projection})
            output = self.folder / "out.safetensors"
            self.done(
                "attend", spec, "--input", file, "--output", str(output), "--precision", "f64", *more, *plugin(name)
            )
            outputs.append(read_safetensors(output)["out"])
        np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-12)
        np.testing.assert_allclose(outputs[2], outputs[3], atol=1e-12)

    def test_draws_differ_between_replicates_and_are_equal_for_equal_ones(self) -> None:
        words = ["--method", "numpy-positive", "--method", "numpy-positive-twice", "-n", "32", "-d", "8"]
        self.done("run", "attention-error", *words, "-r", "3", "--results", self.results, *plugin("positive_features"))
        first = self.values("relative_frobenius")
        self.assertEqual(len(set(first["numpy-positive"])), 3)
        os.remove(self.results)
        self.done("run", "attention-error", *words, "-r", "3", "--results", self.results, *plugin("positive_features"))
        self.assertEqual(self.values("relative_frobenius"), first)

    def test_statistics_of_its_kernel_stand_beside_its_closed_form(self) -> None:
        words = ["--method", "numpy-positive:m=32", "-n", "16", "-d", "8", "--results", self.results]
        self.done("run", "kernel-error:draws=512", *words, *plugin("positive_features"))
        self.assertTrue({"bias", "relative_bias"} & {row["metric"] for row in self.rows()} or len(self.rows()) > 5)

    def test_the_same_numbers_as_the_built_in_method(self) -> None:
        words = ["--method", "numpy-softmax", "-n", "48", "-d", "8", "--causal", "--results", self.results]
        self.done("run", "attention-error", *words, *plugin("numpy_softmax"))
        for value in self.values("relative_frobenius")["numpy-softmax"]:
            self.assertLess(value, 1e-13)

    def test_conversion_is_not_timed_and_the_interpreter_is_told(self) -> None:
        words = ["--method", "numpy-softmax", "-n", "64", "-d", "16", "--results", self.results]
        told = self.done("run", "speed:blocks=5,turn=2", *words, *plugin("numpy_softmax"))
        self.assertIn("numpy-softmax is Python: of its seconds", told)
        seconds, conversion, interpreter = (
            self.values(metric)["numpy-softmax"] for metric in ("seconds", "conversion_seconds", "interpreter_seconds")
        )
        self.assertEqual(len(seconds), 5)
        self.assertTrue(0 < interpreter[0] < 1e-5, interpreter)
        self.assertTrue(0 < conversion[0] < 1e-4, conversion)
        self.assertTrue(all(second > interpreter[0] for second in seconds))
        with sqlite3.connect(self.results) as database:
            environment = json.loads(database.execute("SELECT environment FROM run").fetchone()[0])
        self.assertRegex(environment["python"]["version"], r"^3\.")
        self.assertTrue(Path(environment["python"]["executable"]).is_file())
        self.assertIn("numpy", environment["python"])

    def test_a_file_that_has_changed_is_measured_anew(self) -> None:
        file = self.written(f"class Mine:\n{ATTEND}")
        words = ["--method", "mine", "--method", "softmax", "-n", "16", "-d", "4", "--results", self.results]
        self.assertIn("2 run", self.done("run", "attention-error", *words, "--plugin", file))
        self.assertIn("0 run", self.done("run", "attention-error", *words, "--plugin", file))
        self.written(f"class Mine:\n{ATTEND}".replace("v\n", "2 * v\n"))
        self.assertIn("1 run", self.done("run", "attention-error", *words, "--plugin", file))

    def test_a_module_that_it_imports_counts_as_its_source(self) -> None:
        (self.folder / "inner.py").write_text("FACTOR = 1\n")
        (self.folder / "scaling.py").write_text("import inner\n\ndef scaled(v):\n    return inner.FACTOR * v\n")
        (self.folder / "stranger.py").write_text("FACTOR = 1\n")
        file = self.written(
            "import sys\n"
            f"sys.path.insert(0, {str(self.folder)!r})\n"
            "class Mine:\n"
            "    def attend(self, q, k, v, causal):\n"
            "        from scaling import scaled\n"
            "        return scaled(v)\n"
        )
        words = ["--method", "mine", "--method", "softmax", "-n", "16", "-d", "4", "--results", self.results]
        self.assertIn("2 run", self.done("run", "attention-error", *words, "--plugin", file))
        (self.folder / "stranger.py").write_text("FACTOR = 2\n")
        self.assertIn("0 run", self.done("run", "attention-error", *words, "--plugin", file))
        (self.folder / "inner.py").write_text("FACTOR = 2\n")
        self.assertIn("1 run", self.done("run", "attention-error", *words, "--plugin", file))
        outputs = self.values("relative_output_error")["mine"]
        self.assertEqual(len(set(outputs)), 2, "the row of the changed module is another one")

    def test_an_interpreter_without_numpy_or_of_another_version_is_one_line(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.folder / "venv")], check=True)
        python = str(self.folder / "venv/bin/python")
        for words in (["check", "numpy-softmax"], ["list", "methods"]):
            made = attnbench(*words, *plugin("numpy_softmax"), "--python", python)
            self.assertEqual(made.returncode, 1)
            self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
            self.assertIn(f"{python} has no numpy", made.stderr)
        self.assertIn("there is no such program", attnbench("list", "--python", "no-such", *plugin("faults")).stderr)
        # The module of another version is not there by the name that this one looks for.
        package = self.folder / "python/attnbench"
        shutil.copytree(BUILD / "python/attnbench", package, symlinks=True)
        built = next(package.glob("_native.*.so"))
        built.rename(package / "_native.cpython-39-x86_64-linux-gnu.so")
        made = subprocess.run(
            [sys.executable, "-m", "attnbench.worker"], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(package.parent)},
        )  # fmt: skip
        self.assertEqual(made.returncode, 2)
        self.assertRegex(
            made.stderr, rf"\Aattnbench: built for cpython-39.*, and {re.escape(sys.executable)} is cpython-3"
        )
        self.assertEqual(made.stderr.count("\n"), 1, made.stderr)

    def test_parameters_are_checked_as_those_of_built_in_methods(self) -> None:
        for spec, words in (
            ("numpy-positive:m=0", "m=0 is not allowed; expected an integer from 1"),
            ("numpy-positive:k=3", "m"),
            ("numpy-positive:m=x", "m=x is not allowed"),
        ):
            made = attnbench("check", spec, *plugin("positive_features"))
            self.assertEqual(made.returncode, 2)
            self.assertIn(words, made.stderr)


class TranscriptionTest(unittest.TestCase):
    """What proves the formula of a method that has attend alone."""

    def checked(self, attend: str, more: str = "") -> str:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        file = folder / "mine.py"
        file.write_text(
            "import numpy as np\n\n\n"
            "class Mine:\n"
            "    def attend(self, q, k, v, causal):\n"
            f"        A = np.exp({attend})\n"
            "        A = np.tril(A) if causal else A\n"
            "        return A @ v / A.sum(axis=1, keepdims=True)\n"
            f"{more}"
        )
        return attnbench("check", "mine", "--plugin", str(file)).stdout

    def test_a_wrong_formula_is_found_by_the_transcription_alone(self) -> None:
        transcription = (
            "    def transcription(self, q, k, v, causal):\n"
            "        out = np.zeros((len(q), v.shape[1]))\n"
            "        for i in range(len(q)):\n"
            "            weights = [np.exp(q[i] @ k[j]) for j in range(i + 1 if causal else len(k))]\n"
            "            out[i] = sum(w * v[j] for j, w in enumerate(weights)) / sum(weights)\n"
            "        return out\n"
        )
        self.assertRegex(self.checked("q @ k.T", transcription), r"formula +PASS")
        self.assertRegex(self.checked("1.02 * q @ k.T", transcription), r"formula +FAIL")
        unproved = self.checked("1.02 * q @ k.T")
        self.assertRegex(unproved, r"formula +SKIPPED +- +it gives no transcription")
        self.assertIn("nothing proves its formula", unproved)
        self.assertNotIn("FAIL", unproved)
        self.assertRegex(
            self.checked("q @ k.T", "    def transcription(self, q, k, v, causal):\n        return v[:2]\n"),
            r"formula +FAIL .*returned an array of shape \(2, 5\); expected .* \(48, 5\)",
        )

    def test_exact_when_names_a_method(self) -> None:
        claims = (
            "    parameters = {'power': 1.0}\n    claims = {'exact_when': 'power=1 is softmax:form=materialised'}\n"
        )
        self.assertRegex(
            self.checked("q @ k.T", claims), r"exact-when +PASS .*power=1 against softmax:form=materialised"
        )
        self.assertRegex(self.checked("1.01 * q @ k.T", claims), r"exact-when +FAIL")


class ImportedTest(unittest.TestCase):
    def test_a_file_that_imports_its_method_registers_it(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "inner.py").write_text(f"class Mine:\n{ATTEND}")
        (folder / "plugin.py").write_text("from inner import Mine\n")
        (folder / "derived.py").write_text("from inner import Mine\n\n\nclass Other(Mine):\n    pass\n")
        told = attnbench("list", "methods", "--plugin", str(folder / "plugin.py")).stdout
        self.assertRegex(told, r"(?m)^ *mine ")
        told = attnbench("list", "methods", "--plugin", str(folder / "derived.py")).stdout
        self.assertRegex(told, r"(?m)^ *other ")
        self.assertNotRegex(told, r"(?m)^ *mine ")


class ParametersTest(unittest.TestCase):
    """Keywords of the constructor are parameters as they stand, with their types."""

    def test_keywords_of_the_constructor(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "mine.py").write_text(
            "from attnbench import Parameter as P\n\n\n"
            "class Mine:\n"
            "    def __init__(self, m=3, beta=0.5, on=True, mode='a', top=P(9, minimum=1), *, shape, seed, parameters):\n"
            "        assert (m, beta, on, mode, top) == (4, 0.25, False, 'b', 2), (m, beta, on, mode, top)\n"
            "        assert parameters == {'m': 4, 'beta': 0.25, 'on': False, 'mode': 'b', 'top': 2}\n"
            "        assert shape.nq == shape.nk == 16 and shape.d == 4 and not shape.causal, shape\n"
            "        assert 0 <= seed < 2**32\n"
            f"{ATTEND}"
        )
        made = attnbench(
            "run", "attention-error", "--method", "mine:m=4,beta=0.25,on=false,mode=b,top=2", "-n", "16", "-d", "4",
            "--results", str(folder / "results.db"), "--plugin", str(folder / "mine.py"),
        )  # fmt: skip
        self.assertEqual(made.returncode, 0)
        self.assertNotIn("not done", made.stdout)
        refused = attnbench("check", "mine:top=0", "--plugin", str(folder / "mine.py"))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("top=0 is not allowed", refused.stderr)


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
