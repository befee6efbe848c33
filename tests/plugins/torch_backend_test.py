#!/usr/bin/python3
"""Classes with backend = "torch", on the processor: tests/plugins/python/tensor_classes.py and scripts/attnbench/torch_methods.

Run as tests/plugins/torch_backend_test.py BUILD_FOLDER. Without torch: exit code 77. The processor also takes the part of a
device (TENSOR_CLASSES_PRETEND_CUDA), for what the runner does with one.
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

if find_spec("torch") is None:
    print("skipped: this Python has no torch; scripts/test_torch.sh installs one and runs this test")
    sys.exit(77)

SOURCE = Path(__file__).resolve().parent / "python/tensor_classes.py"
BUILD = Path()


def attnbench(*words: str, plugin: Path = SOURCE, pretend: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"TENSOR_CLASSES_PRETEND_CUDA": "1"} if pretend else {})}
    command = [str(BUILD / "attnbench"), *words, "--plugin", str(plugin), "--python", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


class TorchBackendTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = str(self.folder / "results.db")

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(attnbench("export", self.results, "--clock").stdout)))

    def values(self, metric: str) -> dict[str, float]:
        return {row["method"]: float(row["value"]) for row in self.rows() if row["metric"] == metric}

    def measured(self, *words: str, pretend: bool = False) -> subprocess.CompletedProcess[str]:
        made = attnbench("run", *words, "--results", self.results, pretend=pretend)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        return made

    # --- check ---

    def checked(self, *specs: str, code: int = 0, pretend: bool = False) -> dict[str, str]:
        """The report of each spec, from one command: to import torch takes longer than a check."""
        made = attnbench("check", *specs, pretend=pretend)
        self.assertEqual(made.returncode, code, made.stdout + made.stderr)
        reports = re.split(r"^(?=\S+$)", made.stdout, flags=re.MULTILINE)
        return {report.partition("\n")[0]: report for report in reports if report}

    def test_a_right_class_passes_in_every_type(self) -> None:
        for spec, report in self.checked(
            "relu", *(f"relu:dtype={x}" for x in ("float32", "float16", "bfloat16"))
        ).items():
            for claim in ("formula", "precision", "causal", "heads", "gradients"):
                self.assertRegex(report, rf"{claim} +PASS", spec)
            if spec.endswith("bfloat16"):
                self.assertRegex(report, r"precision +PASS .*bfloat16 against double")

    def test_what_a_class_may_have_gets_tensors(self) -> None:
        for spec, report in self.checked("sums", "sums:dtype=bfloat16").items():
            for claim in ("second-paths", "state", "draws", "decoder", "gradients", "heads"):
                self.assertRegex(report, rf"{claim} +PASS", spec)

    def test_a_planted_mistake_fails(self) -> None:
        planted = {
            "wrong-formula": r"formula +FAIL",
            "wrong-in-half": r"precision +PASS",
            "wrong-in-half:dtype=bfloat16": r"precision +FAIL .*bfloat16 against double",
            "wrong-in-half:dtype=float16": r"precision +FAIL .*float16 against double",
            "leaks-in-half:dtype=bfloat16": r"causal +FAIL",
            "leaks-in-half:dtype=float16": r"causal +PASS",
        }
        reports = self.checked(*planted, code=1)
        for spec, said in planted.items():
            self.assertRegex(reports[spec], said, spec)
            self.assertEqual(re.search(r"^  \S+ +FAIL", reports[spec], re.M) is not None, "FAIL" in said, reports[spec])

    def test_the_methods_that_come_with_it(self) -> None:
        specs = [
            "torch-softmax", "torch-linear", "torch-local:window=5", "torch-sink-window:sinks=2,window=5",
            "torch-quest:page=4,keep=3", "torch-quantised",
        ]  # fmt: skip
        in_half = [
            "torch-softmax:dtype=bfloat16", "torch-linear:dtype=bfloat16", "torch-local:dtype=bfloat16,window=5",
            "torch-sink-window:dtype=bfloat16,sinks=2,window=5", "torch-quest:page=8,keep=1,dtype=bfloat16",
            "torch-linear:dtype=float16",
        ]  # fmt: skip
        reports = self.checked(*specs, *in_half)
        self.assertEqual(len(reports), 12)
        for spec in specs:
            self.assertIn("exact-when    PASS", reports[spec])
            self.assertRegex(reports[spec], r"causal +PASS")
        for spec in ("torch-softmax", *specs[3:]):
            self.assertRegex(reports[spec], r"decoder +PASS")
        # A key far away makes a state of float16 infinite. 0 times this must not reach earlier rows.
        self.assertRegex(reports["torch-linear:dtype=float16"], r"causal +PASS")

    def test_two_plugins_in_pytorch_share_the_methods_that_come_with_them(self) -> None:
        (self.folder / "second.py").write_text(
            "class Second:\n    backend = 'torch'\n\n    def attend(self, q, k, v, causal):\n        return v.clone()\n"
        )
        words = ("--plugin", str(self.folder / "second.py"))
        self.measured(
            "attention-error", "-n", "16", "-d", "4", *words,
            *(word for spec in ("second", "relu", "torch-softmax") for word in ("--method", spec)),
        )  # fmt: skip
        self.assertEqual(len(self.values("relative_output_error")), 3)

    def test_memory_of_a_device_is_that_of_its_allocator(self) -> None:
        """The pretended one gives 4096 bytes. PyTorch's formula declares 34 MB."""
        spec = "torch-softmax:implementation=math,device=cuda:2"
        self.assertRegex(
            self.checked(spec, code=1, pretend=True)[spec], r"memory +FAIL +3\.15e\+07 .* declared 33\.6 MB, n = 2048"
        )

    def test_memory_is_declared_in_the_type_that_is_computed_in(self) -> None:
        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.entries import entry_of
        from attnbench.torch_declaration import TorchDeclaration
        from attnbench.torch_methods.local import TorchLocal

        declared = entry_of(TorchLocal, "local.py")
        assert isinstance(declared, TorchDeclaration)
        values = {"window": 64, "device": "cpu", "compile": False}
        for cell, dtype, size in (("float64", "precision", 8), ("float32", "precision", 4), ("float32", "bfloat16", 2)):
            shape = (4096, 4096, 64, 64, False, 0, 4096, cell)
            self.assertEqual(declared.memory({**values, "dtype": dtype}, shape), size * 3 * 4096 * (3 * 64 + 128))

    def test_blocks_of_rows_are_exact_attention(self) -> None:
        """A GPU computes float64 by them."""
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.torch_methods import softmax

        q, k = torch.randn(2, 2, 20, 8, dtype=torch.float64)
        v = torch.randn(2, 20, 5, dtype=torch.float64)
        for causal in (False, True):
            exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)
            with mock.patch.object(softmax, "ROWS", 7):
                self.assertLess((softmax.by_rows(q, k, v, causal) - exact).abs().max().item(), 1e-12)

    def test_a_class_may_have_a_backward_pass_of_its_own_or_none(self) -> None:
        reports = self.checked("by-hand", "forward-only")
        self.assertRegex(reports["by-hand"], r"gradients +PASS")
        self.assertRegex(reports["forward-only"], r"gradients +SKIPPED")

    def test_a_kernel_in_triton_is_exact_attention(self) -> None:
        """Triton's interpreter runs it on the processor, where bfloat16 is not right."""
        code = (
            "import torch\n"
            "from torch.nn.functional import scaled_dot_product_attention as exact\n"
            "from triton_softmax import TritonSoftmax\n"
            "for d, dv in ((20, 9), (16, 32)):\n"
            "    arrays = torch.randn(2, 100, d), torch.randn(2, 100, d), torch.randn(2, 100, dv)\n"
            "    for dtype, limit in ((torch.float32, 2e-6), (torch.float16, 1e-3), (torch.float64, 1e-12)):\n"
            "        q, k, v = (x.to(dtype) for x in arrays)\n"
            "        for causal in (False, True):\n"
            "            out = TritonSoftmax().attend(q, k, v, causal).double()\n"
            "            meant = exact(*(x.double()[None] for x in (q, k, v)), is_causal=causal, scale=1.0)[0]\n"
            "            difference = ((out - meant).norm() / meant.norm()).item()\n"
            "            assert out.shape == meant.shape and difference < limit, (d, dv, dtype, causal, difference)\n"
            "print('equal')\n"
        )
        path = f"{SOURCE.parent}:{BUILD / 'python'}"
        environment = {**os.environ, "PYTHONPATH": path, "TRITON_INTERPRET": "1"}
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        self.assertEqual(made.stdout, "equal\n", made.stderr)

    def test_an_implementation_of_softmax_is_what_was_asked_for(self) -> None:
        specs = [f"torch-softmax:implementation={one}" for one in ("math", "flash", "cudnn")]
        made = self.measured(
            "speed:blocks=2,turn=1", "-n", "64", "-d", "16", "--threads", "1",
            *(word for spec in specs for word in ("--method", spec)),
        )  # fmt: skip
        self.assertIn("torch-softmax:implementation=math was computed by the backend math", made.stdout + made.stderr)
        self.assertRegex(made.stdout, r"implementation=cudnn +64 +skipped +PyTorch \S+ has no cudnn implementation")
        self.assertIn("implementation=flash was computed by the backend flash_attention", made.stdout + made.stderr)
        self.assertEqual(set(self.values("seconds")), set(specs[:2]))

    def test_a_class_that_is_named_by_its_module_runs(self) -> None:
        plugin = Path("attnbench.torch_methods.softmax:TorchSoftmax")
        words = ("--method", "torch-softmax", "--method", "torch-linear", "--results", self.results)
        made = attnbench("run", "attention-error", "-n", "32", "-d", "8", *words, plugin=plugin)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertEqual(len(self.values("relative_output_error")), 2)

    def test_their_work_is_that_of_the_methods_in_cpp(self) -> None:
        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.method import Shape
        from attnbench.torch_methods import METHODS

        n, d = 4096, 64  # the shape of `describe`
        shape = Shape(nq=n, nk=n, d=d, dv=d, causal=False, offset=0, keys=n, dtype="float32")
        specs = (
            "softmax", "linear", "performer:m=256", "local:window=64", "sink-window:window=64", "quest:page=16,keep=8",
            "quantised:[softmax],bits=4,values=4,granularity=token",
        )  # fmt: skip
        parameters: dict[str, object] = {
            "implementation": "auto", "m": 256, "window": 64, "sinks": 4, "page": 16, "keep": 8, "bits": 4,
        }  # fmt: skip
        classes: tuple[Any, ...] = METHODS
        for spec, cls in zip(specs, classes, strict=True):
            described = subprocess.run(
                [str(BUILD / "attnbench"), "describe", spec], capture_output=True, text=True
            ).stdout
            flops, exps = cls.cost(parameters, shape)
            self.assertIn(f"work of one call at that shape: {flops:.3g} FLOPs, {exps:.3g} exponentials", described)
        # Linear attention has chunks of another length under a causal mask, and so other work; so has quest.
        pairs = (
            ("softmax", "torch-softmax"),
            ("local:window=7", "torch-local:window=7"),
            ("sink-window:window=7", "torch-sink-window:window=7"),
        )
        words = ("speed:blocks=2,turn=1", "-n", "300", "-d", "16", "--threads", "1", "--causal")
        self.measured(*words, *(word for pair in pairs for spec in pair for word in ("--method", spec)))
        for metric in ("flops", "exps"):
            values = self.values(metric)
            for cpp, torch_method in pairs:
                self.assertEqual(values[cpp], values[torch_method], metric)

    def test_chunks_of_a_causal_scan_are_the_formula(self) -> None:
        """out_i = sum_(j <= i) w_ij v_j / sum_(j <= i) w_ij with w_ij = q_i.k_j exp(scale_j), over whole and partial chunks,
        and one and several groups of chunks; and its gradients. exp(800) is beyond float64.
        """
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.torch_methods import linear_attention

        def formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            """By the scale of each row."""
            weights = (q @ k.mT) * (scale[:, None] - scale[..., None]).clamp(max=0).exp()
            weights = weights.tril()
            return (weights @ v) / weights.sum(2, keepdim=True)

        generator = torch.Generator().manual_seed(1)
        for n in (1, 3, 4, 26, 61):
            q, k = (torch.rand(2, n, 6, generator=generator, dtype=torch.float64) for _ in range(2))
            v, weights = torch.randn(2, 2, n, 3, generator=generator, dtype=torch.float64)
            rising = torch.rand(2, n, generator=generator, dtype=torch.float64).cumsum(1)
            rising[:, 2 * n // 3 :] += 800
            for scale in (None, rising):
                inputs = [x.clone().requires_grad_() for x in (q, k, v)]
                with mock.patch.multiple(linear_attention, CHUNK=4, GROUP=3):
                    out = linear_attention.causal_linear_attention(inputs[0], inputs[1], inputs[2], scale)
                    gradients = torch.autograd.grad(out, inputs, weights)
                copies = [x.clone().requires_grad_() for x in (q, k, v)]
                given = torch.zeros(2, n, dtype=torch.float64) if scale is None else scale
                meant = formula(copies[0], copies[1], copies[2], given)
                self.assertLess((out - meant).abs().max().item(), 1e-12)
                for mine, right in zip(gradients, torch.autograd.grad(meant, copies, weights)):
                    self.assertLess((mine - right).abs().max().item(), 1e-10 * max(1.0, right.abs().max().item()))

    def test_a_causal_scan_in_bfloat16_does_not_lose_precision_with_length(self) -> None:
        """0.37 % at 512 and 0.38 % at 16384 tokens. A state that adds up in bfloat16 was at 0.66 % there."""
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.torch_methods.linear import TorchLinear

        n = 16384
        q, k, v = torch.randn(3, 1, n, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        exact = TorchLinear().attend(q, k, v, True)
        half = TorchLinear().attend(q.bfloat16(), k.bfloat16(), v.bfloat16(), True).double()
        self.assertLess(((half - exact)[:, -512:].norm() / exact[:, -512:].norm()).item(), 0.005)

    def test_four_bits_are_packed_two_to_a_byte(self) -> None:
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.torch_methods.quantised import codes_of, numbers_of

        x = torch.tensor([[[7.0, -7.0, 0.4, 2.5, -3.5], [0.0, 0.0, 0.0, 0.0, 0.0], [14.0, 1.0, 3.0, -1.0, 5.0]]])
        codes, scale = codes_of(x, 4)  # code 8 is 0; the first three columns are low, halves go to the even integer
        self.assertEqual(codes.dtype, torch.uint8)
        self.assertEqual(codes[0, 0].tolist(), [15 + 16 * 10, 1 + 16 * 4, 8])
        self.assertEqual(scale[0].flatten().tolist(), [1, 0, 2])
        self.assertEqual(
            numbers_of(codes, scale, 4, 5)[0].tolist(), [[7, -7, 0, 2, -4], [0, 0, 0, 0, 0], [14, 0, 4, 0, 4]]
        )
        codes, scale = codes_of(127 * x / 7, 8)
        self.assertEqual(codes[0, 0].tolist(), [255, 1, 135, 173, 64])

    def test_what_decoders_keep(self) -> None:
        """At position 64, in float: 64 tokens of 8 + 8 numbers; 4 + 16 + 1 of them; all of them and 4 pages of 16; 4 + 4
        bytes and 2 scales a token."""
        words = ("decode:blocks=2,turn=1", "-n", "64", "-d", "8", "--threads", "1", "--causal")
        bytes_of = {
            "torch-softmax": 64 * 16 * 4,
            "torch-sink-window:window=16": 21 * 16 * 4,
            "torch-quest": 64 * 16 * 4 + 4 * 16 * 4,
            "torch-quantised": 64 * (8 + 2 * 4),
        }
        self.measured(*words, *(word for spec in bytes_of for word in ("--method", spec)))
        self.assertEqual(self.values("state_bytes"), bytes_of)

    def test_performer_draws_normal_vectors_for_each_head(self) -> None:
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench.method import Shape
        from attnbench.torch_methods.performer import TorchPerformer

        m, d = 20_000, 3
        shape = Shape(nq=8, nk=8, d=d, dv=d, causal=False, offset=0, keys=8, dtype="float64")
        drawn = TorchPerformer(m, shape, [1, 2], None, torch.device("cpu"), torch.float64).projection
        self.assertEqual(tuple(drawn.shape), (2, m, d))
        # Means have the standard error m^-1/2, and products of two entries at most (2 / m)^1/2: 6 of them are 1 in 10^9.
        self.assertLess(drawn.mean(1).abs().max().item(), 6 * m**-0.5)
        self.assertLess((drawn.mT @ drawn / m - torch.eye(d)).abs().max().item(), 6 * (2 / m) ** 0.5)
        self.assertLess((drawn[0].T @ drawn[1] / m).abs().max().item(), 6 * m**-0.5)

    def test_they_equal_those_in_cpp_with_the_same_state(self) -> None:
        code = (
            "import sys, attnbench, numpy as np\n"
            f"attnbench.load({str(SOURCE)!r})\n"
            "arrays = np.random.default_rng(1).standard_normal((3, 2, 300, 16))\n"
            "state = attnbench.state('performer:m=24', arrays[0], arrays[1])\n"
            "for ours, theirs, given in (('torch-softmax', 'softmax', None), ('torch-linear', 'linear', None),\n"
            "                            ('torch-local:window=7', 'local:window=7', None),\n"
            "                            ('torch-performer:m=24', 'performer:m=24', state),\n"
            "                            ('torch-sink-window:sinks=3,window=7', 'sink-window:sinks=3,window=7', None),\n"
            "                            ('torch-quest:page=8,keep=4', 'quest:page=8,keep=4', None),\n"
            "                            ('torch-quantised:bits=3',\n"
            "                             'quantised:[softmax],bits=3,values=3,granularity=token', None),\n"
            "                            ('torch-quantised',\n"
            "                             'quantised:[softmax],bits=4,values=4,granularity=token', None)):\n"
            "    for causal in (False, True):\n"
            "        for kind, limit in ((np.float64, 1e-12), (np.float32, 2e-5)):\n"
            "            q, k, v = arrays.astype(kind)\n"
            "            a, b = (attnbench.attend(s, q, k, v, causal=causal, state=given) for s in (ours, theirs))\n"
            "            assert abs(a - b).max() < limit, (ours, causal, kind, abs(a - b).max())\n"
            "print('equal')\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        self.assertEqual(made.stdout, "equal\n", made.stderr)

    # --- measure ---

    def test_errors_in_the_type_that_was_asked(self) -> None:
        shared = ("attention-error", "-n", "64", "-d", "8", "--method", "torch-softmax")
        self.measured(*shared, "--method", "torch-softmax:dtype=float16")
        self.measured(*shared, "--dtype", "bfloat16")
        errors = {
            row["parameters.dtype"] if "parameters.dtype" in row else row["dtype"]: float(row["value"])
            for row in self.rows()
            if row["metric"] == "relative_output_error"
        }
        self.assertLess(errors["precision"], 1e-14)
        self.assertTrue(1e-5 < errors["float16"] < 1e-3 < errors["bfloat16"] < 2e-2, errors)

    def test_rank_decode_training_and_whole_models(self) -> None:
        self.measured("rank", "-n", "64", "-d", "8", "--method", "torch-performer:m=8")
        self.measured("gradient-rounding", "-n", "64", "-d", "8", "--method", "torch-linear", "--precision", "f32")
        timed = ("blocks=2,turn=1", "-n", "64", "-d", "8", "--threads", "1")
        self.measured("training-step:" + timed[0], *timed[1:], "--method", "torch-linear", "--method", "torch-softmax")
        words = ("--method", "sums", "--input", "gated", "--causal")
        gated = (
            "import attnbench\nimport numpy as np\n\n\nclass Gated(attnbench.Input):\n    provides = {'gate': ('n', 1)}\n\n"
            "    def draw(self, shape, seed):\n        g = np.random.default_rng(seed)\n"
            "        q, k = (g.standard_normal((n, shape.d)) for n in (shape.nq, shape.nk))\n"
            "        return q, k, g.standard_normal((shape.nk, shape.dv)), {'gate': g.random((shape.nk, 1))}\n"
        )
        (self.folder / "gated.py").write_text(gated)
        self.measured("decode:" + timed[0], *timed[1:], *words, "--plugin", str(self.folder / "gated.py"))
        self.measured("model-loss", "--input", "model", "--method", "torch-local:window=16", "-n", "64", "-r", "2")
        done = {row["experiment"].partition(":")[0] for row in self.rows() if row["ending"] == "done"}
        self.assertEqual(done, {"rank", "gradient-rounding", "training-step", "decode", "model-loss"})

    def test_all_heads_are_one_call(self) -> None:
        made = attnbench(
            "run", "speed:blocks=2,turn=1", "--method", "heads", "-n", "32", "-d", "8", "--heads", "5", "--results",
            self.results,
        )  # fmt: skip
        self.assertRegex(made.stdout, r"heads +32 +skipped +5 heads in one call")

    def test_times_have_conversion_apart_and_rounding_against_float64(self) -> None:
        words = ("speed:blocks=2,turn=1", "-n", "128", "-d", "16", "--heads", "3", "--threads", "1")
        made = self.measured(*words, "--method", "torch-softmax", "--method", "relu", "--dtype", "bfloat16")
        self.assertIn("was computed by the backend", made.stdout + made.stderr)
        rounding = self.values("rounding_error")
        self.assertEqual(set(rounding), {"torch-softmax:dtype=bfloat16", "relu:dtype=bfloat16"})
        for value in rounding.values():
            self.assertTrue(1e-4 < value < 5e-2, rounding)
        self.assertTrue(all(value > 0 for value in self.values("conversion_seconds").values()))

    def test_compiled(self) -> None:
        words = ("speed:blocks=2,turn=1", "-n", "64", "-d", "8", "--heads", "2", "--threads", "1")
        self.measured(*words, "--method", "relu", "--method", "relu:compile=true")
        errors = self.values("rounding_error")
        self.assertEqual(set(errors), {"relu", "relu:compile=true"})
        self.assertTrue(all(0 < error < 1e-5 for error in errors.values()), errors)

    # --- devices ---

    def test_without_the_device_a_cell_is_skipped(self) -> None:
        import torch

        if torch.cuda.is_available():
            self.skipTest("there is a CUDA device")
        made = attnbench(
            "run", "attention-error", "--method", "relu", "-n", "32", "--device", "cuda:1", "--results", self.results
        )
        self.assertRegex(made.stdout, r"relu\S* +32 +skipped .*no CUDA device")
        self.assertEqual({row["ending"] for row in self.rows()}, {"skipped"})
        made = attnbench("check", "relu", "--device", "cuda")
        self.assertIn("no CUDA device", made.stdout)
        self.assertNotRegex(made.stdout, "PASS ")

    def test_a_device_is_a_machine_of_its_own_with_softmax_of_its_own(self) -> None:
        words = ("speed:blocks=2,turn=1", "-n", "64", "-d", "8", "--threads", "1")
        self.measured(*words, "--method", "relu", "--device", "cuda:2", pretend=True)
        self.measured(*words, "--method", "relu")
        speedups = [row for row in self.rows() if row["metric"] == "speedup"]
        self.assertEqual(len({row["machine"] for row in speedups}), 2)
        self.assertEqual(sum(row["machine"].endswith(", cuda:2") for row in speedups), 1)
        # Exact softmax is a member of the session on the device, and takes the turns that the speedup is over.
        self.measured(*words, "--method", "relu", "--method", "torch-softmax", "--device", "cuda:3", pretend=True)
        exact = [
            row["method"] for row in self.rows() if row["machine"].endswith(", cuda:3") and row["metric"] == "speedup"
        ]
        self.assertIn("torch-softmax:device=cuda:3", exact)
        # The device's own clock says how long a call took; the inputs of a turn's calls move there once.
        on_device = [row for row in self.rows() if row["machine"].endswith((", cuda:2", ", cuda:3"))]
        seconds = [float(row["value"]) for row in on_device if row["metric"] == "seconds"]
        self.assertEqual(len(seconds), 3)
        for one in seconds:
            self.assertAlmostEqual(one, 0.0025, 12)
        metrics = {row["metric"] for row in on_device}
        self.assertIn("conversion_seconds", metrics)
        self.assertNotIn("interpreter_seconds", metrics)
        # Memory and the roofline are those of the device.
        of_device = {
            (row["metric"], float(row["value"]))
            for row in self.rows()
            if row["machine"].endswith(", cuda:3")
            and row["metric"] in ("peak_bytes", "fma_peak", "exp_rate", "bandwidth")
        }
        self.assertEqual(of_device, {("peak_bytes", 4096), ("fma_peak", 1e15), ("exp_rate", 2e15), ("bandwidth", 3e15)})

    def test_a_training_step_takes_all_heads_in_one_call(self) -> None:
        """By the clock of the pretended device, each pass takes 2.5 ms, however many heads there are."""
        words = ("training-step:blocks=3,turn=1", "-n", "64", "-d", "8", "--heads", "3", "--threads", "1")
        self.measured(*words, "--method", "relu", "--method", "by-hand", "--device", "cuda:2", pretend=True)
        for spec in ("relu:device=cuda:2", "by-hand:device=cuda:2"):  # by autograd, and by the class's own gradients
            self.assertAlmostEqual(self.values("seconds")[spec], 0.005, 12)
            self.assertAlmostEqual(self.values("backward_over_forward")[spec], 1, 12)
            self.assertEqual(self.values("peak_bytes")[spec], 4096)

    def test_a_device_is_timed_by_its_own_events(self) -> None:
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench import torch_backend

        now = [0.0]  # milliseconds of the device

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self, stream: str) -> None:
                self.at = now[0] if stream == "stream of cuda:1" else float("nan")

            def elapsed_time(self, end: Event) -> float:
                return end.at - self.at

        place = torch_backend.Place(torch.device("cuda:1"), torch.float32, False)
        waited: list[torch.device] = []
        with mock.patch.multiple(
            torch.cuda, Event=Event, synchronize=waited.append, current_stream=lambda device: f"stream of {device}"
        ):
            watch = torch_backend.Watch(place)
            now[0] += 2.5
            self.assertEqual(watch.seconds(), 0.0025)
        self.assertEqual(waited, [place.device, place.device])

    def test_rates_are_of_the_place(self) -> None:
        import torch

        sys.path.insert(0, str(BUILD / "python"))
        from attnbench import torch_backend

        cpu = torch.device("cpu")
        amounts = []

        class Second(torch_backend.Watch):
            def seconds(self) -> float:
                return 1.0

        with mock.patch.object(torch_backend, "Watch", Second):
            for dtype in (torch.float32, torch.bfloat16):
                amounts.append(torch_backend.rates_of(torch_backend.Place(cpu, dtype, False)))
        n = 512
        self.assertEqual(amounts, [(2.0 * n**3, n**2, 2.0 * 32 * n**2 * size) for size in (4, 2)])

    def test_a_lost_device_fails_its_own_cell(self) -> None:
        words = ("run", "attention-error", "-n", "32", "-d", "8", "--threads", "1", "--results", self.results)
        made = attnbench(*words, "--method", "lost", "--method", "lost:fails=false")
        self.assertRegex(made.stdout, r"lost +32 +failed +AcceleratorError: CUDA error: an illegal memory access")
        self.assertEqual(
            {row["fails"]: row["ending"] for row in self.rows()}, {"true": "failed", "false": "done"}, made.stdout
        )

    # --- misuse ---

    def test_a_wrong_result_says_what_to_do(self) -> None:
        mistakes = {
            "array": r"failed +TypeError: attend returned a ndarray; expected a torch tensor, because backend = .torch.",
            "device": r"failed +TypeError: attend returned a tensor on meta; expected one on cpu, .* device=q.device",
            "shape": r"failed +TypeError: attend returned a tensor of shape \[32, 8\]; expected \[1, 32, 8\]",
            "dtype": r"failed +TypeError: attend returned torch.float64; expected torch.float32, .* dtype=q.dtype",
            "gradient": r"failed +TypeError: attend returned a tensor that carries gradients, .*detach\(\)",
            "memory": r"out of memory +MemoryError: CUDA out of memory. Tried to allocate 80.00 GiB",
        }
        words = ["-n", "32", "-d", "8", "--dtype", "float32", "--results", self.results]
        made = attnbench(
            "run", "attention-error", *words, *(f"--method=result:mistake={mistake}" for mistake in mistakes)
        )
        for mistake, said in mistakes.items():
            spec = "result:" if mistake == "array" else f"result:mistake={mistake},"  # array is the default
            self.assertRegex(made.stdout, rf"{spec}dtype=float32 +32 +{said}")

    def test_a_result_need_not_be_contiguous(self) -> None:
        self.measured("attention-error", "-n", "32", "-d", "8", "--method", "not-contiguous", "--method", "relu")
        errors = self.values("relative_output_error")
        self.assertAlmostEqual(errors["not-contiguous"], errors["relu"], delta=1e-14)

    def test_a_tensor_that_is_kept(self) -> None:
        made = attnbench("run", "attention-error", "-n", "32", "-d", "8", "--method", "kept", "--results", self.results)
        self.assertRegex(made.stdout, r"failed +attend keeps k, or a view of it, beyond the call")

    def test_what_is_refused_before_anything_runs(self) -> None:
        run = ("run", "attention-error", "-n", "32", "--results", self.results)
        for words, said in (
            (
                (*run, "--method", "performer", "--device", "cuda"),
                r"--device cuda: performer computes in C\+\+ or NumPy",
            ),
            (
                (*run, "-m", "performer", "-m", "softmax", "--compile"),
                r"--compile: performer, softmax compute in C\+\+",
            ),
            (("check", "performer", "--dtype", "float16"), r"--dtype float16: performer computes in C\+\+ or NumPy"),
            ((*run, "--method", "performer:device=cuda"), r"device"),
            ((*run, "--method", "relu", "--dtype", "int8"), r"dtype.*int8.*float16"),
            ((*run, "--method", "relu", "--device", "tpu"), r"device.*tpu.*cuda"),
            (
                (*run, "--method", "relu:dtype=float16", "--dtype", "float32"),
                r"--dtype float32 and relu:dtype=float16 both say",
            ),
        ):
            with self.subTest(words=words):
                made = attnbench(*words)
                self.assertEqual(made.returncode, 2, made.stdout + made.stderr)
                self.assertRegex(made.stderr, said)
        self.assertFalse(Path(self.results).exists())

    def test_classes_that_are_refused(self) -> None:
        attend = "    def attend(self, q, k, v, causal):\n        return v\n"
        for body, said in (
            ("    backend = 'jax'\n\n" + attend, r"backend = 'jax'; expected \"torch\", or no backend"),
            ("    backend = 'torch'\n    parameters = {'compile': 1}\n\n" + attend, r"parameter 'compile' has the name"),
            (
                "    backend = 'torch'\n\n    def features_q(self, x):\n        return x\n\n    features_k = features_q\n",
                r"backend = \"torch\" and features_q and features_k, which linear attention in C\+\+ would run",
            ),
        ):  # fmt: skip
            with self.subTest(body=body):
                file = self.folder / "mine.py"
                file.write_text(f"class Mine:\n{body}")
                made = attnbench("describe", "mine", plugin=file)
                self.assertEqual(made.returncode, 2)
                self.assertRegex(made.stderr, said)

    def test_without_torch_the_interpreter_is_named(self) -> None:
        command = [str(BUILD / "attnbench"), "describe", "relu", "--plugin", str(self.folder / "mine.py")]
        (self.folder / "mine.py").write_text(
            "class Relu:\n    backend = 'torch'\n\n    def attend(self, q, k, v):\n        return v\n"
        )
        (self.folder / "hidden").mkdir()
        (self.folder / "hidden/sitecustomize.py").write_text(
            "import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "hidden")}
        made = subprocess.run([*command, "--python", sys.executable], capture_output=True, text=True, env=environment)
        self.assertEqual(made.returncode, 2)
        self.assertRegex(made.stderr, r"has no torch: install it there, or name another interpreter with --python")

    def test_tensors_that_attend_of_the_module_refuses(self) -> None:
        code = (
            "import attnbench, torch\nx = torch.randn(2, 8, 4)\n"
            "print(attnbench.attend('softmax', x, x, x.mT.contiguous().mT).shape)\n"
            "for q in (x.clone().requires_grad_(), x.to('meta'), x.bfloat16(), x.int()):\n"
            "    try:\n        attnbench.attend('softmax', q, x, x)\n"
            "    except attnbench.Misuse as error:\n        print(error)\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        self.assertEqual(
            made.stdout.splitlines(),
            [
                "(2, 8, 4)",
                "q is a tensor that carries gradients, which end here; expected q.detach()",
                "q is a tensor on meta; expected one on the CPU: q.cpu()",
                "q is a tensor of torch.bfloat16; expected float32 or float64: q.float()",
                "q is a tensor of torch.int32; expected float32 or float64: q.float()",
            ],
            made.stderr,
        )


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
