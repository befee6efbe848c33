#!/usr/bin/python3
"""scripts/capture_qkv.py writes what a PyTorch model's attention sees. Run as tests/scripts/capture_test.py PROGRAM.

Exact attention by `attnbench attend` over the captured heads must be the model's own. Without torch: exit code 77.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/capture_qkv.py"
PROGRAM = ""

try:
    import torch
except ModuleNotFoundError:
    print("skipped: this Python has no torch; scripts/test_torch.sh installs one and runs this test")
    sys.exit(77)

import numpy as np

sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests" / "approximations"))
from capture_qkv import Capture, Misuse
from libraries_test import read_safetensors
from torch import Tensor, nn
from torch.nn import functional

BATCH, N, WIDTH, HEADS = 2, 40, 24, 3

MODEL = f"""
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear({WIDTH}, 4 * 16)

    def forward(self, x, *, scale=1.0):
        return self.project(x).mean(-1, keepdim=True) * scale + x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer({WIDTH}, {HEADS}, 32, batch_first=True), 2, enable_nested_tensor=False)
        self.own = Own()

    def forward(self, x):
        return self.own(self.encoder(x), scale=0.5)

def build():
    torch.manual_seed(1)
    return Model(), (torch.randn({BATCH}, {N}, {WIDTH}),)

def heads(module, args, kwargs, output):
    assert kwargs == {{"scale": 0.5}}
    q, k, v, _ = module.project(args[0]).unflatten(-1, (4, 2, 8)).movedim(2, 0).transpose(2, 3)
    return q, k[:, :1], v[:, :1]  # two heads of queries share one of keys

def nothing():
    return 1

def without_attention():
    return nn.Linear(3, 3), (torch.zeros(1, 3),)
"""


class CaptureTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = self.folder / "model.py"
        self.model.write_text(MODEL)

    def script(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)

    def test_exact_attention_over_captured_heads_is_the_modules_own(self) -> None:
        for options in ({}, {"bias": False}, {"kdim": 10, "vdim": 7}, {"add_bias_kv": True}, {"add_zero_attn": True}):
            for batch_first in (True, False):
                with self.subTest(**options, batch_first=batch_first):
                    torch.manual_seed(2)
                    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first, **options)
                    if "add_bias_kv" in options:
                        nn.init.normal_(module.bias_k), nn.init.normal_(module.bias_v)
                    q = torch.randn(BATCH, N, WIDTH)
                    k, v = torch.randn(BATCH, N, module.kdim), torch.randn(BATCH, N, module.vdim)
                    given = [x if batch_first else x.transpose(0, 1) for x in (q, k, v)]
                    with Capture(module) as captured:
                        want, _ = module(given[0], given[1], value=given[2])
                    heads = {name: torch.from_numpy(x) for name, x in captured.calls[""][0].items()}
                    logits = heads["q"] @ heads["k"].transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
                    mixed = (logits.softmax(-1) @ heads["v"]).transpose(1, 2).flatten(-2)
                    out = functional.linear(mixed, module.out_proj.weight, module.out_proj.bias)
                    out = out if batch_first else out.transpose(0, 1)
                    self.assertLess(float((out - want).detach().norm() / want.detach().norm()), 1e-5)

    def test_masks_that_a_module_is_called_with(self) -> None:
        torch.manual_seed(2)
        x, n, d = torch.randn(BATCH, N, WIDTH), N, WIDTH // HEADS
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        same, left, other = (torch.zeros(BATCH, n, dtype=torch.bool) for _ in range(3))
        same[:, -4:], left[:, :3], other[1, -7:] = True, True, True
        low = {dtype: torch.zeros(n, n).masked_fill(later, -1e4).to(dtype) for dtype in (torch.float32, torch.bfloat16)}
        for options in ({}, {"add_bias_kv": True}, {"add_zero_attn": True}):
            module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **options).eval()
            extra = 1 if options else 0
            for masks in (
                {"key_padding_mask": same}, {"key_padding_mask": left}, {"key_padding_mask": other},
                {"key_padding_mask": torch.zeros(BATCH, n).masked_fill(same, -torch.inf)},
                *([] if extra else [
                    {"attn_mask": later, "is_causal": True}, {"attn_mask": later.expand(BATCH * HEADS, n, n)},
                    {"attn_mask": low[torch.float32]}, {"attn_mask": later, "key_padding_mask": other},
                    {"attn_mask": later, "key_padding_mask": left},
                ]),
            ):  # fmt: skip
                with self.subTest(**options, masks=[*masks]):
                    with Capture(module) as captured:
                        want, _ = module(x, x, x, need_weights=False, **masks)
                    padding = masks.get("key_padding_mask", torch.zeros(BATCH, n))
                    calls, causal = captured.calls[""], captured.causal[""]
                    self.assertEqual(len(calls), BATCH if padding is other else 1)
                    self.assertEqual(set(causal), {"attn_mask" in masks})
                    for text in range(BATCH):
                        place, item = (text, 0) if len(calls) > 1 else (0, text)
                        q, k, v = (torch.from_numpy(calls[place][name][item]) for name in "qkv")
                        kept = padding[text] == 0
                        self.assertEqual((q.shape[1], k.shape[1]), (int(kept.sum()), int(kept.sum()) + extra))
                        logits = q @ k.mT / d**0.5
                        if causal[place]:
                            logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), -torch.inf)
                        mixed = (logits.softmax(-1) @ v).transpose(0, 1).flatten(-2)
                        out = functional.linear(mixed, module.out_proj.weight, module.out_proj.bias)
                        self.assertLess(float((out - want[text, kept]).detach().abs().max()), 1e-5)
        module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
        far = torch.ones(n, n, dtype=torch.bool).tril(-5)
        heads = later.repeat(BATCH * HEADS, 1, 1)
        heads[0] = False
        for mask, said in (
            (later | far, r"its mask \(attn_mask\) is neither causal nor that of padding"),
            (heads, "heads have different masks"), (-0.1 * torch.ones(n, n).cumsum(0), "attn_mask adds a bias"),
        ):  # fmt: skip
            with self.subTest(said=said), self.assertRaisesRegex(Misuse, said), Capture(module):
                module(x, x, x, attn_mask=mask)

    def test_a_module_of_ones_own_is_warned_of_its_mask(self) -> None:
        class Own(nn.Module):
            def forward(self, x: Tensor, attention_mask: Tensor | None = None, **given: Any) -> Tensor:
                return x

        heads = torch.zeros(1, 2, 4, 2)
        with (
            Capture(Own(), {"": lambda *_: (heads, heads, heads)}) as captured,
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            captured._modules[0][0](heads, heads)
            captured._modules[0][0](heads, other_mask=heads)
            captured._modules[0][0](heads, attention_mask=None)
        self.assertEqual(
            [str(x.message).split(" was called with ")[1].split(",")[0] for x in said], ["attention_mask", "other_mask"]
        )
        self.assertEqual(captured.causal[""], [None] * 3)

    def test_causal_heads_are_measured_as_such(self) -> None:
        self.model.write_text(
            MODEL.replace("self.encoder(x)", "self.encoder(x, mask=torch.ones(x.shape[1], x.shape[1]).triu(1).bool())")
        )
        made = self.script(f"{self.model}:build", "-o", str(self.folder / "out"))
        *lines, following = made.stdout.splitlines()
        self.assertTrue(all(line.endswith("  causal") for line in lines) and lines, made.stderr)
        self.assertTrue(following.endswith(",head=all --causal"))
        self.assertIn(
            b'"causal": "true"', (self.folder / "out/encoder.layers.0.self_attn.safetensors").read_bytes()[:999]
        )

    def test_a_model_is_itself_again_afterwards(self) -> None:
        module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        x = torch.randn(1, N, WIDTH)
        with Capture(module) as captured:
            module(x, x, x)
        module(x, x, x)
        self.assertEqual(len(captured.calls[""]), 1)
        self.assertNotIn("forward", vars(module))

    def test_the_program_writes_what_attnbench_reads(self) -> None:
        named = f"ow?={self.model}:heads"
        made = self.script(f"{self.model}:build", "-o", str(self.folder / "out"), "--attention", named)
        self.assertEqual(made.returncode, 0, made.stderr)
        *lines, following = made.stdout.splitlines()
        names = [Path(line.split("  ")[0]).name for line in lines]
        layers = [f"encoder.layers.{i}.self_attn.safetensors" for i in range(2)]
        self.assertEqual(sorted(names), [*layers, "own.safetensors"])
        shape = [BATCH, HEADS, N, WIDTH // HEADS]
        self.assertEqual(lines[names.index(layers[1])].split("  ")[1:], [f"{key} {shape}" for key in "qkv"])
        command = following.removeprefix("next: attnbench ").split()
        results = str(self.folder / "results.db")
        ran = subprocess.run([PROGRAM, *command, "--results", results], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f"{3 * HEADS} cells", ran.stdout)  # three methods on every head
        heads = read_safetensors(self.folder / "out" / layers[1])
        self.assertEqual({x.shape for x in heads.values()}, {(BATCH, HEADS, N, WIDTH // HEADS)})
        own = read_safetensors(self.folder / "out/own.safetensors")
        self.assertEqual(own["k"].shape, (BATCH, 2, N, 8))
        np.testing.assert_array_equal(own["k"][:, 0], own["k"][:, 1])
        attended = self.folder / "attended.safetensors"
        subprocess.run(
            [PROGRAM, "attend", "softmax", "--input", str(self.folder / "out" / layers[1]), "--output", str(attended)],
            check=True,
            capture_output=True,
        )
        (out,) = [x for name, x in read_safetensors(attended).items() if name == "out"]
        logits = torch.from_numpy(heads["q"]) @ torch.from_numpy(heads["k"]).transpose(-1, -2)
        want = (logits / (WIDTH // HEADS) ** 0.5).softmax(-1) @ torch.from_numpy(heads["v"])
        np.testing.assert_allclose(out, want.numpy(), rtol=0, atol=1e-5)

    def test_what_is_wrong_is_said_in_one_line(self) -> None:
        out = str(self.folder / "out")
        for words, said in (
            (["nowhere.py:build", "-o", out], "expected FILE.py:FUNCTION"),
            ([f"{self.model}:absent", "-o", out], "no function 'absent'"),
            ([f"{self.model}:nothing", "-o", out], "gave no model"),
            ([f"{self.model}:without_attention", "-o", out], "name its attention modules"),
            ([f"{self.model}:build", "-o", out, "--attention", f"lost={self.model}:heads"], "is called 'lost'"),
            ([f"{self.model}:build", "-o", out, "--attention", "own"], "expected NAME=FILE.py:FUNCTION"),
            ([f"{self.model}:build", "-o", str(self.model)], "give another folder"),
        ):
            with self.subTest(words=words):
                made = self.script(*words)
                self.assertEqual(made.returncode, 2, made.stderr)
                self.assertIn(said, made.stderr)
                self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
        self.assertFalse(Path(out).exists())

    def test_shapes_that_cannot_be_are_refused(self) -> None:
        class Odd(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return x

        for heads, said in (
            (torch.zeros(3), "three tensors"),
            ((torch.zeros(1, 3, 4, 2), torch.zeros(1, 2, 4, 2), torch.zeros(1, 2, 4, 2)), "dividing those of q"),
            ((torch.zeros(1, 2, 4, 2), torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4, 2)), "expected q [b, h, nq, d]"),
            ((torch.full((1, 2, 4, 2), torch.nan), torch.zeros(1, 2, 4, 2), torch.zeros(1, 2, 4, 2)), "not finite"),
        ):
            module = Odd()
            with self.subTest(said=said), self.assertRaisesRegex(Misuse, said.replace("[", r"\[")):
                with Capture(module, {"": lambda *_, heads=heads: heads}):
                    module(torch.zeros(1))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
