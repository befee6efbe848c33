#!/usr/bin/python3
"""A PyTorch module as a method, in ten lines: tests/plugins/python/torch_module.py. Without torch: exit code 77.

Run as tests/plugins/torch_plugin_test.py BUILD_FOLDER. It must be what the built-in `linear` is.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

if find_spec("torch") is None:
    print("skipped: this Python has no torch; scripts/test_torch.sh installs one and runs this test")
    sys.exit(77)

PLUGIN = [
    "--plugin",
    str(Path(__file__).resolve().parent / "python/torch_module.py"),
    "--python",
    sys.executable,
]
PROGRAM = ""


def attnbench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True)


class TorchPluginTest(unittest.TestCase):
    def test_it_passes_check(self) -> None:
        made = attnbench("check", "torch-linear", *PLUGIN)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertRegex(made.stdout, r"gradients +PASS")
        self.assertNotIn("Warning", made.stderr)

    def test_tensors_of_all_heads(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "mine.py").write_text(
            "import torch\n\n\nclass Sdpa:\n    tensors = batched = True\n\n"
            "    claims = {'exact_when': 'half=false is softmax'}\n\n"
            "    def __init__(self, half=False):\n        self.factor = 0.5 if half else 1.0\n\n"
            "    def attend(self, q, k, v, causal):\n"
            "        attend = torch.nn.functional.scaled_dot_product_attention\n"
            "        return attend(q[None], k[None], v[None], is_causal=causal, scale=self.factor)[0]\n"
        )
        made = attnbench("check", "sdpa", "--plugin", str(folder / "mine.py"), "--python", sys.executable)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        for claim in ("exact-when", "heads", "gradients"):
            self.assertRegex(made.stdout, rf"{claim} +PASS")

    def test_gradients_that_a_graph_lacks_are_found(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        text = (
            "import torch\n\n\nclass Constant:\n    tensors = True\n\n    def attend(self, q, k, v):\n"
            "        K = torch.exp(q @ k.mT)\n        return K @ v / K.sum(1, keepdim=True).detach()\n\n\n"
            "class Cut:\n    tensors = True\n\n    @torch.no_grad()\n    def attend(self, q, k, v):\n"
            "        return torch.exp(q @ k.mT) @ v\n\n\n"
            "class Arrays:\n    tensors = True\n\n    def attend(self, q, k, v, causal):\n        return v.numpy()\n\n\n"
            "class Unused:\n    tensors = True\n\n    def attend(self, q, k, v, causal):\n        return 2 * v\n"
        )
        (folder / "mine.py").write_text(text)
        words = ["--plugin", str(folder / "mine.py"), "--python", sys.executable]
        for name, said in (
            ("constant", r"gradients +FAIL .*along a direction of Q"),
            ("cut", r"gradients +FAIL .*without a graph, so autograd has no gradients; remove no_grad"),
            (
                "arrays",
                r"repeatable +FAIL .*attend returned a ndarray; expected a torch tensor, because tensors = True",
            ),
            ("unused", r"gradients +PASS"),
        ):
            with self.subTest(name=name):
                self.assertRegex(attnbench("check", name, *words).stdout, said)

    def test_it_is_linear_attention(self) -> None:
        results = str(Path(self.enterContext(tempfile.TemporaryDirectory())) / "results.db")
        methods = ["--method", "torch-linear", "--method", "linear:features=elu", "--timeout", "600"]
        made = attnbench("run", "attention-error", *methods, "-n", "64", "-d", "8", "--results", results, *PLUGIN)
        self.assertEqual(made.returncode, 0, made.stderr)
        values: dict[str, dict[str, float]] = {}
        for row in csv.DictReader(io.StringIO(attnbench("export", results).stdout)):
            self.assertEqual(row["ending"], "done", row["reason"])
            values.setdefault(row["metric"], {})[row["method"]] = float(row["value"])
        own, built_in = values["relative_frobenius"]["torch-linear"], values["relative_frobenius"]["linear"]
        self.assertAlmostEqual(own, built_in, delta=1e-12)

    def test_tensors_are_arrays_and_those_with_a_graph_say_what_to_do(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        text = (
            "import torch\n\n\nclass Plain:\n    def attend(self, q, k, v, causal):\n"
            "        return torch.from_numpy(v) * 1\n\n\n"
            "class Graph:\n    def __init__(self):\n        self.w = torch.nn.Parameter(torch.ones(1))\n\n"
            "    def attend(self, q, k, v, causal):\n        return torch.from_numpy(v) * self.w\n"
        )
        (folder / "mine.py").write_text(text)
        words = [
            "--plugin",
            str(folder / "mine.py"),
            "--python",
            sys.executable,
            "--results",
            str(folder / "results.db"),
        ]
        methods = ["--method", "plain", "--method", "graph"]
        made = attnbench("run", "attention-error", *methods, "-n", "32", "-d", "8", *words)
        self.assertRegex(made.stdout, r"1 not done \(1 failed\)")
        self.assertRegex(made.stdout, r"graph +32 +failed +RuntimeError: .*detach\(\)")


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve() / "attnbench")
    unittest.main()
