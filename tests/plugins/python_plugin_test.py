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
ABILITIES = SOURCES.parents[1] / "mistakes/abilities.py"
BUILD = Path()
ATTEND = "    def attend(self, q, k, v, causal):\n        return v\n"

# Files that are not plugins, and the message that refuses each, behind its path.
REFUSED = {
    "syntax_error": ("class Mine:\n    def attend(self q):\n", r"SyntaxError: .* \(syntax_error.py:2\)"),
    "not_python": ("\x00\x01\x02", r"(SyntaxError|ValueError): source code .*null bytes"),
    "no_class": (
        "def attend(q, k, v, causal):\n    return v\n",
        r"it defines no class that is a method, an input or an experiment: a method has attend",
    ),
    "private_class": (
        f"class _Mine:\n{ATTEND}",
        r"it defines no class that is a method, an input or an experiment: a method has attend",
    ),
    "features_of_one_side": (
        "class Mine:\n    def features_q(self, x):\n        return x\n",
        r"it defines no class that is a method",
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
    "bad_name": (
        f"class Mine:\n    name = 'a b'\n{ATTEND}",
        r"class Mine: name = 'a b' cannot be .*; expected letters",
    ),
    "empty_name": (f"class Mine:\n    name = ''\n{ATTEND}", r"class Mine: name = '' cannot be .*; expected letters"),
    "bad_parameter": (
        f"class Mine:\n    parameters = {{'a b': 1}}\n{ATTEND}",
        r"class Mine: parameter 'a b' cannot be written in a spec; expected letters, digits, - and _",
    ),
    "bad_parameters": (f"class Mine:\n    parameters = {{'a=b': 1}}\n{ATTEND}", r"parameter 'a=b' cannot be written"),
    "empty_parameter": (f"class Mine:\n    parameters = {{'': 1}}\n{ATTEND}", r"parameter '' cannot be written"),
    "parameter_of_two_defaults": (
        f"class Mine:\n    parameters = {{'m': 1}}\n    def __init__(self, m=2):\n        pass\n{ATTEND}",
        r"class Mine: parameter m is declared twice: 1 in `parameters`, 2 in the constructor; keep one",
    ),
    "parameter_of_a_size": (
        f"class Mine:\n    def __init__(self, heads=2):\n        pass\n{ATTEND}",
        r"class Mine: parameter 'heads' has the name of a size; --sweep would vary either",
    ),
    "parameter_of_the_engine": (
        "class Mine:\n    def __init__(self, inputs=2):\n        pass\n"
        "    def features_q(self, x):\n        return x\n    features_k = features_q\n",
        r"class Mine: parameter 'inputs' is also one of method 'linear', which may name this entry as features; rename",
    ),
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
        r"parameter 'seed' has the name of what attnbench gives the constructor; rename it",
    ),
    "needs_without_attend": (
        "class Mine:\n    needs = {'gate': ('n', 1)}\n    def features_q(self, x):\n        return x\n"
        "    features_k = features_q\n",
        r"class Mine has needs and features, .*kernel\(self, q, k, gate\) instead",
    ),
    "needs_that_attend_does_not_take": (
        f"class Mine:\n    needs = {{'gate': ('n', 1)}}\n{ATTEND.replace(', causal', '')}",
        r"attend\(q, k, v\) beside self; expected attend\(self, q, k, v, causal, gate\), or attend\(self, q, k, v, gate\)",
    ),
    "needs_an_unknown_axis": (
        f"class Mine:\n    needs = {{'gate': ('m', 1)}}\n{ATTEND}",
        r"array gate has the axis 'm'; expected n \(one a key\)",
    ),
    "needs_other_values": (
        f"class Mine:\n    needs = {{'gate': ('n', 1, 'gamma')}}\n{ATTEND}",
        r"array gate has values 'gamma'; expected normal, uniform or positions",
    ),
    "needs_no_dict": (
        f"class Mine:\n    needs = ['gate']\n{ATTEND}",
        r"needs is a list; expected a dict, such as needs = \{\"gate\": \(\"n\", 1\)\}",
    ),
    "departure_is_no_text": (f"class Mine:\n    departure = True\n{ATTEND}", r"departure is a bool; expected the text"),
    "printed_is_no_text": (
        f"class Mine:\n    printed = 3\n{ATTEND}",
        r"printed is a int; expected its name in figures",
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
    "kernel_of_one": (
        f"class Mine:\n    def kernel(self, x):\n        return x\n{ATTEND}",
        r"class Mine: kernel\(self, x\); expected kernel\(self, q, k\)",
    ),
    "gradients_without_g": (
        f"class Mine:\n    def gradients(self, q, k, v, causal):\n        return q, k, v\n{ATTEND}",
        r"class Mine: gradients\(self, q, k, v, causal\); expected gradients\(self, q, k, v, causal, g\)",
    ),
    "kernel_is_a_text": (
        f"class Mine:\n    kernel = 'gaussian'\n{ATTEND}",
        r"class Mine: kernel is a str; expected a function kernel\(self, q, k\)",
    ),
    "decoder_of_features": (
        "class Mine:\n    def features_q(self, x):\n        return x\n    features_k = features_q\n"
        "    def decoder(self, shape):\n        return self\n",
        r"class Mine has decoder and no attend: linear attention runs its features",
    ),
    "input_without_draw": (
        "import attnbench\nclass Mine(attnbench.Input):\n    def drew(self, shape, seed):\n        pass\n",
        r"class Mine is an input and has no draw\(self, shape, seed\)",
    ),
    "input_without_seed": (
        "import attnbench\nclass Mine(attnbench.Input):\n    def draw(self, shape):\n        pass\n",
        r"class Mine: draw\(self, shape\); expected draw\(self, shape, seed\)",
    ),
    "input_that_wants_a_seed": (
        "import attnbench\nclass Mine(attnbench.Input):\n    def __init__(self, seed):\n        pass\n",
        r"its constructor wants 'seed', which nothing gives; there are parameters",
    ),
    "input_that_attends": (
        f"import attnbench\nclass Mine(attnbench.Input):\n{ATTEND}",
        r"class Mine is of two kinds: a method has attend",
    ),
    "taken_input": (
        "import attnbench\nclass Gaussian(attnbench.Input):\n    def draw(self, shape, seed):\n        pass\n",
        r"it registers a name that is taken: input 'gaussian'",
    ),
    "experiment_without_metrics": (
        "import attnbench\nclass Mine(attnbench.Experiment):\n    def measure(self, applied):\n        pass\n",
        r"class Mine: metrics = \{\}; expected a dict of units by name",
    ),
    "experiment_without_a_unit": (
        "import attnbench\nclass Mine(attnbench.Experiment):\n    metrics = {'x': ''}\n"
        "    def measure(self, applied):\n        pass\n",
        r"class Mine: metric x = ''; expected its unit",
    ),
    "experiment_with_a_bad_metric": (
        "import attnbench\nclass Mine(attnbench.Experiment):\n    metrics = {'x y': '1'}\n"
        "    def measure(self, applied):\n        pass\n",
        r"class Mine: metric 'x y'; expected a name of letters",
    ),
    "biased_without_features": (
        f"class Mine:\n    claims = {{'unbiased': True}}\n{ATTEND}",
        r"has neither kernel\(self, q, k\) nor features_q and features_k",
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

# How the methods of tests/plugins/python/hostile.py end.
HOSTILE = {
    "patches-numpy": ("done", "^$"),
    "forges-now": ("crashed", "^sent a message that answers no request while measuring$"),
    "forges-without-a-number": ("crashed", "^sent a message that answers no request while measuring$"),
    "forges-later": ("done|crashed", "^$|^sent a message that answers no request while"),
    "nests": ("crashed", "^sent a message that answers no request while measuring$"),
    "sends-a-million-values": ("crashed", "^sent a message that answers no request while measuring$"),
    "floods": ("crashed", r"^sent more than 16\.\d MB to the runner while measuring$"),
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

    def rows(self, *words: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.done("export", self.results, *words))))

    def values(self, metric: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for row in self.rows("--arrays"):
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
        self.assertRegex(" ".join(told.split()), r"in Python 3\.\d+\.\d+ \(/\S+\), NumPy \d")
        self.assertIn("numpy-positive", self.done("list", "deterministic-features", *plugin("positive_features")))

    def test_at_bf16_what_multiplies_in_python_is_skipped_beside_the_others(self) -> None:
        methods = ("numpy-softmax", "numpy-positive", "linear:features=numpy-positive", "softmax")
        attnbench(
            *("run", "attention-error", "-n", "16", "-d", "4", "--precision", "bf16", "--results", self.results),
            *(word for method in methods for word in ("--method", method)),
            *plugin("numpy_softmax"),
            *plugin("positive_features"),
        )
        for row in self.rows():
            if row["method"] == "softmax":
                self.assertEqual((row["ending"], row["precision"]), ("done", "bf16"))
                continue
            self.assertEqual(row["ending"], "skipped", row)
            self.assertRegex(
                row["reason"],
                "its products are Python's, which --precision bf16 does not round; expected f32 or f64, such as "
                "--precision f32$",
            )
        self.assertEqual(len({row["method"] for row in self.rows()}), 4)

    def test_what_is_right_passes_check(self) -> None:
        for name, file in (("numpy-softmax", "numpy_softmax"), ("numpy-positive:m=24", "positive_features")):
            report = self.done("check", name, *plugin(file))
            self.assertNotIn("FAIL", report)
            self.assertRegex(report, r"causal +PASS")
        for claim in ("second-paths", "unbiased", "variance", "finite", "inputs-kept"):
            self.assertIn(claim, report)
        self.assertRegex(report, r"unbiased +PASS")
        self.assertRegex(report, r"variance +PASS")
        # NumPy's own exp overflows, which is found as well.
        report = self.done("check", "numpy-positive-twice:m=24", *plugin("positive_features"), code=1)
        self.assertRegex(report, r"second-paths +PASS")
        self.assertEqual(re.findall(r"(\S+) +FAIL ", report), ["finite"])

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

    def test_a_class_has_the_name_and_the_colour_in_figures_that_it_gives(self) -> None:
        file = self.written(
            f"class Mine:\n    printed, family = 'My method, 2026', 'sparse'\n{ATTEND}class Plain:\n{ATTEND}"
        )
        words = ["--method", "mine", "--method", "plain", "--method", "local", "-n", "16,32", "-d", "4"]
        self.done("run", "attention-error", *words, "--results", self.results, "--plugin", file)
        figures = str(self.folder / "figures")
        self.done("plot", self.results, "--y", "relative_output_error", "--format", "svg", "--table", "markdown",
                  "-o", figures, "--style", "paper", "--plugin", file)  # fmt: skip
        (drawn,) = Path(figures).glob("*.json")
        (looks,) = (panel["series"] for panel in json.loads(drawn.read_text())["panels"])
        self.assertEqual(looks["mine"]["name"], "My method, 2026")
        self.assertEqual(looks["mine"]["family"], looks["local"]["family"])
        self.assertEqual((looks["plain"]["name"], looks["plain"]["family"]), ("Plain", "python"))

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
            "run", "attention-error", *methods, "-n", "32", "-d", "8", "--results", self.results, "--timeout", "600",
            *plugin("faults"), code=1,
        )  # fmt: skip
        found = {row["method"]: row for row in self.rows()}
        self.assertEqual(set(found), set(ENDINGS))
        for name, (ending, words) in ENDINGS.items():
            with self.subTest(name=name):
                self.assertEqual(found[name]["ending"], ending, found[name]["reason"])
                self.assertRegex(found[name]["reason"], words)
                self.assertNotIn("\n", found[name]["reason"])

    def test_a_plugin_that_attacks_changes_no_number_of_another_method(self) -> None:
        innocent = ["numpy-softmax", "numpy-positive", "linear", "softmax", "performer"]
        words = [word for name in innocent for word in ("--method", name)] + ["-n", "32", "-d", "8", "-r", "3"]
        words += ["--threads", "1", *plugin("numpy_softmax"), *plugin("positive_features")]
        methods = [word for name in HOSTILE for word in ("--method", name)]
        alone, beside = str(self.folder / "alone.db"), str(self.folder / "beside.db")
        self.done("run", "attention-error", *words, "--results", alone)
        # Behind a hostile method in its worker, and in front of it.
        for hostile_words in ([*plugin("hostile"), *methods, *words], [*words, *methods, *plugin("hostile")]):
            Path(beside).unlink(missing_ok=True)
            self.done("run", "attention-error", *hostile_words, "--results", beside, "--timeout", "600", code=1)
            lines = {
                file: [
                    line
                    for line in self.done("export", file, "--arrays").splitlines()
                    if any(f"attention-error,{name}," in line for name in innocent)
                ]
                for file in (alone, beside)
            }
            self.assertGreater(len(lines[alone]), 100)
            self.assertEqual(lines[alone], lines[beside])
            found = list(csv.DictReader(io.StringIO(self.done("export", beside))))
            for name, (ending, reason) in HOSTILE.items():
                with self.subTest(name=name):
                    own = [row for row in found if row["method"] == name]
                    self.assertGreater(len(own), 0)
                    for row in own:
                        self.assertRegex(row["ending"], rf"^({ending})$")
                        self.assertRegex(row["reason"], reason)
                        self.assertNotEqual(row["value"], "42")

    def test_an_audit_finds_numbers_that_depend_on_what_ran_before(self) -> None:
        words = [
            "run",
            "attention-error",
            "-n",
            "16",
            "-d",
            "4",
            "-r",
            "3",
            "--threads",
            "1",
            "--results",
            self.results,
        ]
        words += [*plugin("hostile"), *plugin("numpy_softmax")]
        methods = ["--method", "counts-calls", "--method", "numpy-softmax"]
        self.done(*words, *methods)
        said = self.done(*words, *methods, "--audit", code=1)
        self.assertRegex(said, r"(?m)^counts-calls +16 +gaussian +relative_output_error +1 .*\(the first of 2\)$")
        self.assertNotRegex(said, r"(?m)^numpy-softmax")
        self.assertIn("measured again", self.done(*words, *methods[2:], "--audit"))

    def test_a_flood_of_messages_ends_at_its_limit_and_costs_the_runner_megabytes(self) -> None:
        for name in ("floods", "floods-with-messages", "sends-a-million-values", "nests"):
            with self.subTest(name=name):
                words = ["run", "attention-error", "--method", name, "-n", "16", "-d", "4", "--results", self.results]
                words += [*plugin("hostile"), "--timeout", "600"]
                runner = subprocess.Popen([str(BUILD / "attnbench"), *words], stdout=subprocess.DEVNULL)
                peak = 0
                while runner.poll() is None:
                    status = Path(f"/proc/{runner.pid}/status").read_text()
                    peak = max(peak, *(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line), 0)
                    time.sleep(0.005)
                self.assertEqual(runner.returncode, 1)
                self.assertLess(peak, 200_000)  # kB
                self.assertEqual([row["ending"] for row in self.rows()], ["crashed"])
                Path(self.results).unlink()

    def test_a_worker_loads_the_plugins_of_its_cell_and_no_others(self) -> None:
        says = "import sys\n\nNAMES = ','.join(sorted(m for m in sys.modules if m.startswith('attnbench_plugin_')))\n"
        method = f"{says}\n\nclass {{}}:\n    def attend(self, q, k, v, causal):\n        raise ValueError(NAMES)\n"
        files = [self.written(method.format(name.title()), name) for name in ("one", "two")]
        specs = ["one", "two", "per-head:[one],[two]"]
        words = [word for spec in specs for word in ("--method", spec)]
        words += [word for file in files for word in ("--plugin", file)]
        self.done("run", "attention-error", *words, "-n", "16", "-d", "4", "--results", self.results, code=1)
        reasons = {row["method"]: row["reason"].split(" (")[0] for row in self.rows()}
        self.assertEqual(reasons["one"], "ValueError: attnbench_plugin_one")
        self.assertEqual(reasons["two"], "ValueError: attnbench_plugin_two")
        self.assertEqual(len(reasons), 3)
        self.assertIn("attnbench_plugin_one", [r for m, r in reasons.items() if "per-head" in m][0])

    def test_two_plugins_with_one_name_are_refused_in_one_line(self) -> None:
        files = [self.written(f"class Mine:\n{ATTEND}", name) for name in ("one", "two")]
        made = attnbench("list", "methods", "--plugin", files[0], "--plugin", files[1])
        self.assertEqual(made.returncode, 2)
        self.assertRegex(
            made.stderr,
            rf"\Aattnbench: plugin {re.escape(files[1])}: it registers a name that is taken: method 'mine' .*\n\Z",
        )

    def test_an_import_that_takes_long_is_in_no_limit(self) -> None:
        file = self.written(f"import time\n\ntime.sleep(9)\n\n\nclass Slow:\n{ATTEND}")
        begin = time.monotonic()
        words = ["--method", "slow", "-n", "16", "-d", "4", "--results", self.results, "--timeout", "8"]
        self.done("run", "attention-error", *words, "--plugin", file)
        self.assertGreater(time.monotonic() - begin, 9)
        self.assertEqual({row["ending"] for row in self.rows()}, {"done"})

    def test_a_method_that_hangs_is_timed_out(self) -> None:
        words = ["--method", "hangs", "-n", "16", "-d", "4", "--timeout", "1"]
        self.done("run", "attention-error", *words, "--results", self.results, *plugin("faults"), code=1)
        self.assertEqual([row["ending"] for row in self.rows()], ["timed out"])

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
    """The transcription proves the formula of a method that has only attend."""

    def checked(self, attend: str, more: str = "") -> str:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        file = folder / "mine.py"
        file.write_text(
            "import numpy as np\n\n\n"
            "class Mine:\n"
            "    def attend(self, q, k, v, causal):\n"
            f"        A = {attend}\n"
            "        A = np.where(np.tri(len(A)), A, -np.inf) if causal else A\n"
            "        A = np.exp(A - A.max(axis=1, keepdims=True))\n"
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


class AbilitiesTest(unittest.TestCase):
    """kernel, decoder and gradients of a class serve the experiments that ask a method for them."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def values(self, experiment: str, method: str, *words: str, file: Path = ABILITIES) -> dict[str, float]:
        results = str(self.folder / f"{len(list(self.folder.iterdir()))}.db")
        words = ("--method", method, *words, "-n", "96", "-d", "8", "--results", results, "--plugin", str(file))
        made = attnbench("run", experiment, *words)
        self.assertEqual(made.returncode, 0, made.stderr)
        rows = list(csv.DictReader(io.StringIO(attnbench("export", results).stdout)))
        self.assertEqual({row["ending"] for row in rows}, {"done"}, rows[0]["reason"])
        return {row["metric"]: float(row["value"]) for row in rows if row["method"].startswith(method)}

    def test_right_abilities_pass_check(self) -> None:
        report = attnbench("check", "recurrent", "--plugin", str(ABILITIES)).stdout
        for claim in ("second-paths", "decoder", "gradients", "formula"):
            self.assertRegex(report, rf"{claim} +PASS")
        self.assertNotIn("FAIL", report)

    def test_a_decoder_is_timed_and_equals_causal_attention(self) -> None:
        values = self.values("decode:blocks=5,turn=1", "recurrent", "--causal", "--precision", "f64")
        self.assertLess(values["rounding_error"], 1e-12)
        self.assertEqual(values["state_bytes"], 8 * (8 * 8 + 8))
        plain = self.folder / "plain.py"  # without prefill: a prompt is taken in step by step
        plain.write_text(ABILITIES.read_text().replace("def prefill(", "def unused("))
        values = self.values("decode:blocks=5,turn=1", "recurrent", "--causal", "--precision", "f64", file=plain)
        self.assertLess(values["rounding_error"], 1e-12)

    def test_gradients_are_those_of_the_built_in_method(self) -> None:
        own = self.values("gradient-rounding", "recurrent", "--precision", "f32")
        built_in = self.values("gradient-rounding", "linear", "--precision", "f32")
        self.assertEqual(set(own), set(built_in))
        self.assertLess(max(own.values()), 1e-4)

    def test_a_kernel_is_measured_beside_its_closed_form(self) -> None:
        values = self.values("kernel-error:draws=512", "estimated:m=32")
        self.assertLess(abs(values["relative_bias"]), 0.2)

    def test_what_an_ability_returns_is_checked(self) -> None:
        for body, claim, words in (
            ("    def kernel(self, q, k):\n        return q\n", "second-paths", r"kernel\(q, k\) returned an array of shape"),
            ("    def kernel(self, q, k):\n        self.k = k\n        return q @ k.T\n", "second-paths", "kernel keeps k"),
            ("    def decoder(self, shape):\n        return 3\n", "decoder", r"returned a int without step\(self, q, k, v\)"),
            (
                "    def decoder(self, shape):\n        return self\n    def bytes(self):\n        return 0\n"
                "    def step(self, q, k, v):\n        return v[0]\n",
                "decoder",
                r"step\(q, k, v\) returned an array of shape \(5,\); expected an array of shape \(1, 5\)",
            ),
            (
                "    def gradients(self, q, k, v, causal, g):\n        return q\n",
                "gradients",
                r"returned a ndarray; expected three arrays \(dq, dk, dv\)",
            ),
            (
                "    def gradients(self, q, k, v, causal, g):\n        return q, k, q\n",
                "gradients",
                r"the third of gradients\(q, k, v, causal, g\) returned an array of shape",
            ),
        ):  # fmt: skip
            with self.subTest(words=words):
                file = self.folder / "mine.py"
                file.write_text(f"class Mine:\n{ATTEND}{body}")
                made = attnbench("check", "mine", "--plugin", str(file))
                self.assertRegex(made.stdout, rf"{claim} +FAIL .*{words}")

    def test_heads_are_timed_in_one_call(self) -> None:
        file, calls = self.folder / "mine.py", self.folder / "calls"
        file.write_text(
            "class Mine:\n    batched = True\n    def __init__(self, seeds):\n        self.seeds = seeds\n"
            "    def attend(self, q, k, v, causal):\n"
            f"        with open({str(calls)!r}, 'a') as calls:\n"
            "            print(len(q), len(set(self.seeds)), q.dtype, file=calls)\n"
            "        return 1.0 * v\n"
        )
        results = str(self.folder / "results.db")
        words = ["run", "speed:blocks=5,turn=1", "--method", "mine", "-n", "32", "-d", "8", "--sweep", "heads=6"]
        made = attnbench(*words, "--results", results, "--plugin", str(file))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertNotIn("not done", made.stdout)
        # Once for the comparison of float with double, of one head; all others are of six draws.
        self.assertEqual(set(calls.read_text().splitlines()), {"6 6 float32", "1 1 float64"})

    def test_an_array_without_heads_is_refused(self) -> None:
        file = self.folder / "mine.py"
        file.write_text(
            "class Mine:\n    batched = True\n    def attend(self, q, k, v, causal):\n        return v[0]\n"
        )
        made = attnbench("check", "mine", "--plugin", str(file))
        self.assertRegex(
            made.stdout,
            r"repeatable +FAIL .*attend returned an array of shape \(48, 5\); expected \[1, n, dv\], because",
        )

    def test_tensors_without_torch_are_refused(self) -> None:
        if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0:
            self.skipTest("this interpreter has torch")
        (self.folder / "mine.py").write_text(f"class Mine:\n    tensors = True\n{ATTEND}")
        made = attnbench("list", "methods", "--plugin", str(self.folder / "mine.py"))
        self.assertEqual(made.returncode, 2)
        self.assertRegex(made.stderr, r"class Mine has tensors = True, and \S+ has no torch: .* --python")


class NeedsTest(unittest.TestCase):
    """Arrays beside q, k and v."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def done(self, *words: str, code: int = 0) -> str:
        made = attnbench(*words, *plugin("gates"))
        self.assertEqual(made.returncode, code, made.stdout[-3000:] + made.stderr[-3000:])
        return made.stderr if code == 2 else made.stdout

    def rows(self, experiment: str, *words: str, code: int = 0) -> list[dict[str, str]]:
        results = str(self.folder / f"{len(list(self.folder.iterdir()))}.db")
        self.done("run", experiment, *words, "-d", "8", "--results", results, code=code)
        return list(csv.DictReader(io.StringIO(attnbench("export", results).stdout)))

    def ending(self, experiment: str, *words: str, code: int = 0) -> str:
        row = self.rows(experiment, *words, code=code)[0]
        return f"{row['ending']} {row['reason']}".strip()

    def difference(self, experiment: str, *words: str) -> float:
        (row,) = (r for r in self.rows(experiment, *words) if r["metric"] == "relative_output_difference")
        return float(row["value"])

    def heads(self, *leading: int, **more: NDArray[Any]) -> dict[str, NDArray[Any]]:
        generator = np.random.default_rng(1)
        arrays = {name: generator.standard_normal((*leading, 20, 8)) for name in "qkv"}
        return {**arrays, "gate": generator.random((*leading, 20, 1)), **more}

    def attended(self, spec: str, arrays: dict[str, NDArray[Any]], *words: str) -> NDArray[Any]:
        file, output = self.folder / "in.npz", self.folder / "out.safetensors"
        np.savez(file, allow_pickle=False, **arrays)
        self.done("attend", spec, "--input", str(file), "--output", str(output), "--precision", "f64", *words)
        return read_safetensors(output)["out"]

    def test_all_claims_are_tested(self) -> None:
        report = self.done("check", "gated", "gated-heads", "weighted-keys")
        for claim in ("formula", "decoder", "gradients", "second-paths", "heads", "causal", "padding", "permutation"):
            self.assertRegex(report, rf"{claim} +PASS")
        self.assertNotIn("FAIL", report)
        report = self.done("check", "later-gate", code=1)
        self.assertEqual(set(re.findall(r"(\S+) +FAIL ", report)), {"causal", "permutation"})

    def test_a_gate_of_a_file_is_that_of_its_head(self) -> None:
        for leading in ((), (3,), (2, 3)):
            arrays = self.heads(*leading)
            for words in ([], ["--causal"]):
                want = self.attended("softmax", {**arrays, "v": arrays["gate"] * arrays["v"]}, *words)
                for spec in ("gated", "gated-heads"):
                    got = self.attended(spec, arrays, *words)
                    np.testing.assert_allclose(got, want, atol=1e-12)
        shared = self.heads(3, gate=self.heads()["gate"])  # one for all heads
        want = self.attended("softmax", {**shared, "v": shared["gate"] * shared["v"]})
        np.testing.assert_allclose(self.attended("gated", shared), want, atol=1e-12)

    def test_a_gate_that_is_missing_or_has_another_shape_is_misuse(self) -> None:
        file, output = str(self.folder / "in.npz"), str(self.folder / "out.safetensors")
        for gate, words in (
            (
                {},
                r"gated needs 'gate' of shape n x 1 = 20 x 1, and \S+ does not give it; put an array 'gate' of shape ",
            ),
            ({"gate": np.ones((19, 1))}, r"gate has the shape \[19, 1\]; expected \[20, 1\] \(n x 1\)"),
        ):
            arrays = {name: array for name, array in self.heads().items() if name != "gate"}
            np.savez(file, allow_pickle=False, **arrays, **gate)
            self.assertRegex(self.done("attend", "gated", "--input", file, "--output", output, code=2), words)

    def test_an_input_gives_it_or_the_cell_is_skipped_with_the_reason(self) -> None:
        words = ["--method", "gated", "-n", "20"]
        self.assertEqual(self.ending("attention-error", *words, "--input", "gated-gaussian"), "done")
        self.assertRegex(
            self.ending("attention-error", *words, code=1),
            "^skipped gated needs 'gate' of shape n x 1 = 20 x 1, and the input gaussian does not give it; inputs that "
            "do: gated-gaussian, file:PATH with an array 'gate' beside q, k and v",
        )
        np.savez(self.folder / "in.npz", allow_pickle=False, **self.heads())
        file = f"file:path={self.folder / 'in.npz'}"
        self.assertEqual(self.ending("attention-error", *words[:2], "-n", "12", "--input", file), "done")
        words += ["--input", "gated-gaussian"]
        self.assertEqual(self.ending("decode", *words, "--causal"), "done")
        self.assertRegex(
            self.ending("depth:layers=2", *words, code=1),
            "^skipped gated needs 'gate' .*, and a layer of a transformer does not give it; run an experiment on single",
        )

    def test_describe_says_what_is_needed_and_given(self) -> None:
        told = " ".join(self.done("describe", "gated").split())
        self.assertIn("needs gate (n x 1): of each value", told)
        self.assertIn("departure The paper gates after attention; here values are gated.", told)
        told = " ".join(self.done("describe", "gated-gaussian").split())
        self.assertIn("provides gate (n x 1): between 0 and 1", told)
        self.assertIn("needs gate (n x 1)", " ".join(self.done("describe", "truncated:base=weighted-keys").split()))

    def test_a_plugin_is_a_base_by_its_kernel(self) -> None:
        words = ["-n", "40", "--input", "gated-gaussian"]
        # A band of all keys is the whole matrix.
        wide = "truncated:base=weighted-keys,window=40"
        self.assertLess(self.difference("agreement:[weighted-keys]", *words, "--method", wide), 1e-6)
        (self.folder / "exponential.py").write_text(
            "import numpy as np\nclass Exponential:\n    claims = {'permutation_equivariant': True}\n"
            "    def attend(self, q, k, v, causal):\n        weights = self.kernel(q, k)\n"
            "        weights = np.tril(weights) if causal else weights\n"
            "        return weights @ v / weights.sum(axis=1, keepdims=True)\n"
            "    def kernel(self, q, k):\n        return np.exp(q @ k.T)\n"
            "class Unnormalised(Exponential):\n    claims = {'permutation_equivariant': True, 'normaliser': 'none'}\n"
            "    def attend(self, q, k, v, causal):\n        weights = self.kernel(q, k)\n"
            "        return (np.tril(weights) if causal else weights) @ v\n"
        )
        other = ["--plugin", str(self.folder / "exponential.py")]
        for spec, same in (
            ("truncated:base=exponential,window=5", "local:window=5"),
            ("combine:[local:window=5],[exponential]", "softmax"),
        ):
            self.assertLess(self.difference(f"agreement:[{same}]", "--method", spec, "-n", "40", *other), 1e-6)
        for spec in ("combine:[local],[unnormalised]", "truncated:base=unnormalised"):
            said = self.done("run", "attention-error", "--method", spec, "-n", "40", *other, code=2)
            self.assertRegex(said, r"\[unnormalised\] has the normaliser none; expected row_sums")


class EntriesTest(unittest.TestCase):
    """Inputs and experiments in Python are used as built-in ones are."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def rows(self, experiment: str, *words: str, file: Path = SOURCES / "heavy_tails.py") -> list[dict[str, str]]:
        results = str(self.folder / f"{len(list(self.folder.iterdir()))}.db")
        made = attnbench("run", experiment, *words, "-d", "8", "--results", results, "--plugin", str(file))
        rows = list(csv.DictReader(io.StringIO(attnbench("export", results, "--arrays").stdout)))
        self.assertEqual(made.returncode, 0 if {row["ending"] for row in rows} == {"done"} else 1, made.stderr)
        return rows

    def values(self, experiment: str, *words: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for row in self.rows(experiment, *words):
            self.assertEqual(row["ending"], "done", row["reason"])
            found.setdefault(row["metric"], []).append(float(row["value"]))
        return found

    def test_they_are_listed_and_described(self) -> None:
        for kind, name, words in (
            ("inputs", "heavy-tails", ("Keys of heavy tails.", "K_ij ~ t(freedom)", "freedom       ")),
            ("experiments", "overlap", ("How many of", "overlap                           [1] share of the k")),
        ):
            self.assertIn(f"  {name} ", attnbench("list", kind, *plugin("heavy_tails")).stdout)
            told = attnbench("describe", name, *plugin("heavy_tails")).stdout
            for text in words:
                self.assertIn(text, told)

    def test_an_experiment_is_given_the_method_applied_and_the_exact_result(self) -> None:
        for mask in ("--causal", "--bidirectional"):
            words = ("--method", "performer:m=16", "--input", "heavy-tails:freedom=5", "-n", "40", mask, "-r", "2")
            for metric, values in self.values("identities", *words).items():
                self.assertLess(max(values), 1e-12, metric)
        found = self.values("overlap:k=4", "--method", "softmax", "--input", "heavy-tails", "-n", "32")
        self.assertEqual(found["overlap"], [1])
        self.assertEqual(found["per_row"], [4] * 32)
        rows = self.rows("overlap", "--method", "uniform", "-n", "32")
        self.assertEqual({row["metric"]: row["unit"] for row in rows}, {"overlap": "1", "per_row": "keys"})
        found = self.values("overlap:k=4", "--method", "uniform", "--input", "heavy-tails", "-n", "32")
        self.assertLess(found["overlap"][0], 0.5)

    def test_an_input_depends_on_seed_and_replicate_and_is_scaled_once(self) -> None:
        words = ("--method", "uniform", "--input", "heavy-tails", "-n", "64", "-r", "2")
        first, again, other = (self.values("head", *words, "--seed", seed) for seed in ("1", "1", "2"))
        self.assertEqual(first, again)
        self.assertEqual((first["seed"], first["replicate"], other["seed"]), ([1, 1], [0, 1], [2, 2]))
        for tensor, deviation in (("q", 8**-0.25), ("v", 1)):
            one, two = np.reshape(first[tensor], (2, -1))
            self.assertFalse(np.array_equal(one, two))
            self.assertFalse(np.array_equal(one, np.reshape(other[tensor], (2, -1))[0]))
            self.assertAlmostEqual(np.std(one) / deviation, 1, delta=6 / np.sqrt(2 * one.size))
        self.assertGreater(np.max(np.abs(first["k"])), 4 * np.max(np.abs(first["q"])) / 2)

    def test_a_fitted_method_learns_from_another_head_of_the_input(self) -> None:
        file = self.folder / "learner.py"
        file.write_text(
            (SOURCES / "heavy_tails.py").read_text() + "\n\nclass Learner:\n"
            "    def __init__(self, calibration):\n        self.v = calibration.v.copy()\n\n"
            "    def attend(self, q, k, v, causal):\n        assert not np.array_equal(self.v, v)\n        return v\n"
        )
        rows = self.rows("attention-error", "--method", "learner", "--input", "heavy-tails", "-n", "16", file=file)
        self.assertEqual({row["ending"] for row in rows}, {"done"}, rows[0]["reason"])
        self.assertEqual(rows[0]["calibration"], "held out")

    def test_needles_and_the_mask_of_an_input(self) -> None:
        words = ("--method", "softmax", "--method", "uniform", "--input", "pointed", "-n", "32")
        rows = self.rows("attention-error", *words)
        found = {row["method"]: float(row["value"]) for row in rows if row["metric"] == "needle_found"}
        self.assertEqual(found["softmax"], 1)
        self.assertLess(found["uniform"], 0.1)
        self.assertEqual({row["causal"] for row in rows}, {"1"})

    def test_what_they_return_is_checked(self) -> None:
        begin = "import attnbench\nimport numpy as np\n\n\n"
        ending = "\n    def draw(self, shape, seed):\n        return "
        measuring = "\n    metrics = {'x': '1'}\n    def measure(self, applied):\n        return "
        for kind, body, ends, words in (
            ("Input", f"{ending}3", "failed", r"returned a int; expected three arrays \(q, k, v\)"),
            ("Input", f"{ending}[np.ones((2, 2))] * 3", "failed", r"q of draw\(shape, seed\) returned an array of shape \(2, 2\)"),
            ("Input", f"{ending}[np.full((16, 8), np.nan)] * 3", "failed", r"Q\(0, 0\) is nan once scaled"),
            ("Experiment", f"{measuring}3", "failed", r"returned a int; expected a dict of numbers by metric"),
            ("Experiment", f"{measuring}{{'y': 3}}", "failed", r"returned the metric 'y'; its `metrics` are x"),
            ("Experiment", f"{measuring}{{'x': 'a'}}", "failed", r"returned a str as x; expected a number or numbers"),
            ("Experiment", f"{measuring}{{'x': np.nan}}", "invalid", r"x is not a number"),
            ("Experiment", f"{measuring}{{'x': applied.attention}}", "failed", r"write|`matrices = True`"),
            ("Experiment", "\n    matrices = True" + f"{measuring}{{'x': 1}}", "skipped", r"has no attention matrix"),
        ):  # fmt: skip
            with self.subTest(words=words):
                file = self.folder / "mine.py"
                file.write_text(f"{begin}class Mine(attnbench.{kind}):{body}\n")
                chosen = ["attention-error", "--input", "mine"] if kind == "Input" else ["mine"]
                method = "gmlp" if ends == "skipped" else "uniform"
                rows = self.rows(*chosen, "--method", method, "-n", "16", file=file)
                self.assertEqual(rows[0]["ending"], ends, rows[0]["reason"])
                self.assertRegex(rows[0]["reason"], words)

    def test_their_file_counts_as_their_source(self) -> None:
        file = self.folder / "mine.py"
        file.write_text((SOURCES / "heavy_tails.py").read_text())
        for experiment, source in (("attention-error", "heavy-tails"), ("overlap", "gaussian")):
            words = ["run", experiment, "--input", source, "--method", "uniform", "-n", "16", "-d", "4"]
            words += ["--results", str(self.folder / "results.db"), "--plugin", str(file)]
            self.assertIn("1 run", attnbench(*words).stdout)
            self.assertIn("0 run", attnbench(*words).stdout)
            file.write_text(file.read_text() + "# changed\n")
            self.assertIn("1 run", attnbench(*words).stdout)


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


class FormsTest(unittest.TestCase):
    """A plugin may be a folder of files, a package, or a class that Python can import."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        package = self.folder / "mine"
        (package / "deep").mkdir(parents=True)
        (package / "__init__.py").write_text("from .core import Half, Third\n\nSEVEN = 7\n")
        (package / "core.py").write_text(
            "from mine.deep.factors import FACTOR\n\n\n"
            "class Half:\n    def attend(self, q, k, v, causal):\n        return FACTOR * v\n\n\n"
            "class Third(Half):\n    pass\n"
        )
        (package / "deep/__init__.py").write_text("")
        (package / "deep/factors.py").write_text("FACTOR = 0.5\n")
        self.package = package

    def listed(self, *words: str, **environment: str) -> set[str]:
        made = attnbench("list", "methods", *words, **environment)
        self.assertEqual(made.returncode, 0, made.stderr)
        known = {line.split()[0] for line in attnbench("list", "methods").stdout.splitlines() if line.strip()}
        return {line.split()[0] for line in made.stdout.splitlines() if line.strip()} - known

    def refused(self, *words: str, **environment: str) -> str:
        made = attnbench("list", "methods", *words, **environment)
        self.assertEqual(made.returncode, 2, made.stdout + made.stderr)
        self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
        return made.stderr

    def test_a_package(self) -> None:
        self.assertEqual(self.listed("--plugin", str(self.package)), {"half", "third"})
        self.assertEqual(self.listed("--plugin", str(self.package) + "/"), {"half", "third"})
        report = attnbench("check", "half", "--plugin", str(self.package))
        self.assertRegex(report.stdout, r"linear +PASS")

    def test_a_class(self) -> None:
        path = {"PYTHONPATH": str(self.folder)}
        self.assertEqual(self.listed("--plugin", "mine.core:Half", **path), {"half"})
        self.assertEqual(
            self.listed("--plugin", "mine.core:Third", "--plugin", "mine.core:Half", **path), {"half", "third"}
        )
        (self.folder / "other.py").write_text(f"class Other:\n{ATTEND}")
        plugins = f"mine.core:Half:{self.folder / 'other.py'}:mine:Third"
        self.assertEqual(self.listed(ATTNBENCH_PLUGINS=plugins, **path), {"half", "other", "third"})

    def test_a_folder_of_files(self) -> None:
        files = self.folder / "several"
        files.mkdir()
        for name in ("one", "two", "_three"):
            (files / f"{name}.py").write_text(f"class {name.strip('_').title()}:\n{ATTEND}")
        (files / "notes.txt").write_text("none")
        self.assertEqual(self.listed("--plugin", str(files)), {"one", "two"})
        (files / "helper.py").write_text("X = 1\n")
        self.assertRegex(self.refused("--plugin", str(files)), rf"plugin {files}/helper.py: it defines no class")
        for file in files.glob("*.py"):
            if not file.name.startswith("_"):
                file.unlink()
        self.assertIn("no .py or .so file whose name begins without _", self.refused("--plugin", str(files)))

    def test_a_package_that_is_installed_elsewhere_counts_by_its_version(self) -> None:
        site, ran = self.folder / "site", self.folder / "ran"
        for name in ("large", "large-1.5.dist-info"):
            (site / name).mkdir(parents=True)
        shout = f"open({str(ran)!r}, 'a').write(__name__ + ' ')\n"
        (site / "large/__init__.py").write_text(shout + "from large import part\n")
        (site / "large/part.py").write_text(shout + "import own\n")
        (site / "own.py").write_text("")  # nobody installed it
        metadata = site / "large-1.5.dist-info/METADATA"
        metadata.write_text("Metadata-Version: 2.1\nName: large\nVersion: 1.5\n")
        (site / "large-1.5.dist-info/RECORD").write_text("large/__init__.py,,\nlarge/part.py,,\n")
        plugin = self.folder / "uses.py"
        plugin.write_text(f"import own\nclass Uses:\n    def late(self):\n        import large.part.none\n{ATTEND}")
        script = "import sys, attnbench.imported as i; print(i.imported_files(sys.argv[1]))"
        told = subprocess.run(
            [sys.executable, "-c", script, str(plugin)],
            env={**os.environ, "PYTHONPATH": f"{BUILD / 'python'}:{site}"},
            capture_output=True,
            text=True,
        )
        self.assertEqual(told.stdout.strip(), str(sorted([str(metadata), str(site / "own.py")])), told.stderr)
        self.assertFalse(ran.exists())  # nothing is imported to find out

    def test_what_cannot_be_opened_is_one_line(self) -> None:
        path = {"PYTHONPATH": str(self.folder)}
        self.assertRegex(
            self.refused("--plugin", "mein.core:Half", **path),
            r"plugin mein.core:Half: there is no module mein; put the folder that holds mein on PYTHONPATH, or install",
        )
        self.assertIn("there is no module mine.cores", self.refused("--plugin", "mine.cores:Half", **path))
        self.assertRegex(
            self.refused("--plugin", "mine.core:Hälf", **path), "expected a shared library .*package.module:Class"
        )
        self.assertRegex(
            self.refused("--plugin", "mine.core:Halve", **path), r"module mine.core .* has no class 'Halve'"
        )
        self.assertRegex(self.refused("--plugin", "mine:SEVEN", **path), r"module mine .* has no class 'SEVEN'")
        self.assertRegex(
            self.refused("--plugin", "attnbench:Parameter"), r"class Parameter is of no kind: a method has attend"
        )
        self.package.rename(self.folder / "my-methods")
        self.assertIn("rename the folder to a word", self.refused("--plugin", str(self.folder / "my-methods")))
        (self.folder / "my-methods").rename(self.folder / "json")
        self.assertRegex(self.refused("--plugin", str(self.folder / "json")), "another module is called 'json'")
        (self.folder / "json").rename(self.package)
        (self.package / "core.py").write_text("import no_such_package\n")
        self.assertRegex(
            self.refused("--plugin", str(self.package)), r"No module named 'no_such_package'; \S+ has no such package"
        )

    def test_each_file_of_a_package_counts_as_its_source(self) -> None:
        for plugin, environment in ((str(self.package), {}), ("mine:Half", {"PYTHONPATH": str(self.folder)})):
            with self.subTest(plugin=plugin):
                results = str(self.folder / f"{len(environment)}.db")
                words = ["run", "attention-error", "--method", "half", "--method", "softmax", "-n", "16", "-d", "4"]
                words += ["--results", results, "--plugin", plugin]
                self.assertIn("2 run", attnbench(*words, **environment).stdout)
                self.assertIn("0 run", attnbench(*words, **environment).stdout)
                file = self.package / "deep/factors.py"
                file.write_text(file.read_text() + "# changed\n")
                self.assertIn("1 run", attnbench(*words, **environment).stdout)
                file = self.package / "__init__.py"
                file.write_text(file.read_text() + "# changed\n")
                self.assertIn("1 run", attnbench(*words, **environment).stdout)
                file = self.package / "deep/__init__.py"
                file.write_text(file.read_text() + "# changed\n")
                self.assertIn("1 run", attnbench(*words, **environment).stdout)

    def test_a_package_that_is_installed_counts_as_a_whole(self) -> None:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        installed = self.folder / "lib" / version / "site-packages"
        installed.mkdir(parents=True)
        shutil.move(self.package, installed / "mine")
        for name, text in (("alone", f"class Alone:\n{ATTEND}"), ("__init__", "")):
            (installed / f"mine/{name}.py").write_text(text)
        words = ["run", "attention-error", "-n", "16", "-d", "4", "--results", str(self.folder / "results.db")]
        for plugin, method, file in (
            ("mine.core:Half", "half", "deep/factors"),
            ("mine.alone:Alone", "alone", "__init__"),  # which Python runs before it imports mine.alone
        ):
            with self.subTest(plugin=plugin):
                given = [*words, "--method", method, "--plugin", plugin]
                self.assertIn("1 run", attnbench(*given, PYTHONUSERBASE=str(self.folder)).stdout)
                self.assertIn("0 run", attnbench(*given, PYTHONUSERBASE=str(self.folder)).stdout)
                path = installed / f"mine/{file}.py"
                path.write_text(path.read_text() + "# changed\n")
                self.assertIn("1 run", attnbench(*given, PYTHONUSERBASE=str(self.folder)).stdout)


class ParametersTest(unittest.TestCase):
    """Keywords of the constructor become parameters with their names and types."""

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
