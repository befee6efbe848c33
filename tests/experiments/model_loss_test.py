#!/usr/bin/python3
"""The experiment `model-loss` against a forward pass in NumPy that shares no code with the program: the formulas are
those of scripts/train_byte_lm.py, and attention is replaced by hand. Sizes are read from the weights.

Run as tests/experiments/model_loss_test.py PROGRAM.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "harness/inputs/model"
PROGRAM = ""
TEXTS = 2  # that the slow comparisons read
Array = NDArray[np.float64]
Attention = Callable[[Array, Array, Array], Array]  # q, k, v of one head, n x d each, to n x d


def read(name: str) -> dict[str, Array]:
    """The float16 tensors of a safetensors file."""
    data = (FOLDER / name).read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for tensor, entry in json.loads(data[8 : 8 + length]).items():
        if tensor != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[tensor] = np.frombuffer(data[begin:end], "<f2").reshape(entry["shape"]).astype(float)
    return tensors


def normalised(x: Array, weights: dict[str, Array], name: str) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    moved: Array = scaled * weights[name + ".weight"] + weights[name + ".bias"]
    return moved


def rotated(x: Array) -> Array:
    """n x d: the pair (channel c, channel d/2 + c) of token i turns by i 10,000^(-2c/d)."""
    half = x.shape[1] // 2
    turn = np.exp(1j * np.arange(len(x))[:, None] * 1e4 ** (-np.arange(half) / half))
    turned = (x[:, :half] + 1j * x[:, half:]) * turn
    return np.concatenate([turned.real, turned.imag], axis=1)


def weighted(visible: Callable[[Array], NDArray[np.bool_]]) -> Attention:
    """Softmax over the earlier keys that `visible` leaves, given the logits of the earlier ones."""

    def attend(q: Array, k: Array, v: Array) -> Array:
        logits = q @ k.T / math.sqrt(q.shape[1])
        logits[~np.tri(len(q), dtype=bool)] = -np.inf
        logits[~visible(logits)] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        out: Array = weights / weights.sum(axis=1, keepdims=True) @ v
        return out

    return attend


def largest(count: int) -> Callable[[Array], NDArray[np.bool_]]:
    """The keys of the `count` largest logits of each row."""

    def visible(logits: Array) -> NDArray[np.bool_]:
        kept = np.zeros(logits.shape, dtype=bool)
        np.put_along_axis(kept, np.argsort(-logits, axis=1, kind="stable")[:, :count], True, axis=1)
        return kept

    return visible


def elu(q: Array, k: Array, v: Array) -> Array:
    """Linear attention with phi(x) = elu(x) + 1 of q and k, both scaled by d^-1/4."""
    scale = q.shape[1] ** -0.25
    phi_q, phi_k = (np.where(x > 0, 1 + x, np.exp(np.minimum(x, 0))) for x in (scale * q, scale * k))
    weights = np.tril(phi_q @ phi_k.T)
    out: Array = weights / weights.sum(axis=1, keepdims=True) @ v
    return out


exact = weighted(lambda logits: np.ones(logits.shape, dtype=bool))
METHODS: dict[str, Attention] = {
    "softmax": exact,
    "local:window=16": weighted(lambda logits: np.subtract.outer(np.arange(len(logits)), np.arange(len(logits))) <= 16),
    "top-k:k=8": weighted(largest(8)),
    "uniform": lambda q, k, v: np.cumsum(v, axis=0) / np.arange(1, len(v) + 1)[:, None],
    "linear": elu,
}
erf = np.vectorize(math.erf, otypes=[float])


class Model:
    def __init__(self, weights: dict[str, Array], heads: int) -> None:
        self.weights, self.heads = weights, heads
        self.layers = sum(name.endswith("attention.qkv.weight") for name in weights)

    def log2_probabilities(self, text: NDArray[np.int64], attend: Callable[[int, int], Attention]) -> Array:
        """n x 256; attend(layer, head) is the attention of that head."""
        weights = self.weights
        x = weights["embedding.weight"][text]
        size = x.shape[1] // self.heads
        for l in range(self.layers):
            layer = f"layers.{l}."
            y = normalised(x, weights, layer + "attention_norm")
            q, k, v = np.split(y @ weights[layer + "attention.qkv.weight"].T, 3, axis=1)
            mixed = np.empty_like(q)
            for h in range(self.heads):
                channels = slice(h * size, (h + 1) * size)
                mixed[:, channels] = attend(l, h)(rotated(q[:, channels]), rotated(k[:, channels]), v[:, channels])
            x = x + mixed @ weights[layer + "attention.out.weight"].T
            y = normalised(x, weights, layer + "feed_forward_norm")
            up = y @ weights[layer + "up.weight"].T + weights[layer + "up.bias"]
            gelu = up * (1 + erf(up / math.sqrt(2))) / 2
            x = x + gelu @ weights[layer + "down.weight"].T + weights[layer + "down.bias"]
        logits = normalised(x, weights, "norm") @ weights["embedding.weight"].T
        most = logits.max(axis=1, keepdims=True)
        log_p: Array = (logits - most - np.log(np.exp(logits - most).sum(axis=1, keepdims=True))) / math.log(2)
        return log_p

    def replaced(self, text: NDArray[np.int64], method: str, heads: Collection[tuple[int, int]] | None = None) -> Array:
        """The same with that method in these heads (None: in all)."""
        return self.log2_probabilities(
            text, lambda l, h: METHODS[method] if heads is None or (l, h) in heads else exact
        )


def losses(log_p: Array, text: NDArray[np.int64]) -> Array:
    """Row i predicts byte i + 1."""
    bits: Array = -log_p[np.arange(len(text) - 1), text[1:]]
    return bits


def attnbench(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ATTNBENCH_MODEL"}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=600)


class ModelLossTest(unittest.TestCase):
    model: Model
    texts: NDArray[np.int64]

    @classmethod
    def setUpClass(cls) -> None:
        heads = json.loads((FOLDER / "model.json").read_text())["architecture"]["heads"]
        cls.model = Model(read("weights.safetensors"), heads)
        cls.texts = read("texts.safetensors")["bytes"].astype(int)

    def measured(self, *words: str) -> dict[tuple[str, str, int], Array]:
        """Runs model-loss: (method, metric, replicate) -> its number or array."""
        with tempfile.TemporaryDirectory() as folder:
            results = str(Path(folder) / "results.db")
            made = attnbench("run", *words, "--input", "model", "--results", results)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            with sqlite3.connect(results) as file:
                rows = file.execute(
                    "SELECT c.method, m.metric, m.replicate, m.value, m.array "
                    "FROM measurement m JOIN cell c ON c.id = m.cell"
                ).fetchall()
            file.close()
        return {
            (method, metric, replicate): np.array(value) if array is None else np.frombuffer(array, "<f8")
            for method, metric, replicate, value, array in rows
        }

    def test_every_number_is_that_of_the_independent_forward_pass(self) -> None:
        n = self.texts.shape[1]
        # Two bytes may be equally probable to float's rounding at one position.
        of_float, of_double = ((1e-4, 1.5 / (n - 1)), (1e-9, 1e-12))
        found = {
            precision: self.measured("model-loss:block=100", "--methods", *METHODS, "--replicates", str(TEXTS),
                                     "--precision", precision)  # fmt: skip
            for precision in ("f32", "f64")
        }
        for which, text in enumerate(self.texts[:TEXTS]):
            reference = self.model.replaced(text, "softmax")
            for method in METHODS:
                log_p = self.model.replaced(text, method)
                bits, excess = losses(log_p, text), losses(log_p, text) - losses(reference, text)
                expected = {
                    "bits_per_byte": bits.mean(),
                    "excess_bits": excess.mean(),
                    "next_byte_kl": (np.exp2(reference[:-1]) * (reference - log_p)[:-1]).sum(axis=1).mean(),
                    "bits_by_position": [bits[i : i + 100].mean() for i in range(0, n - 1, 100)],
                    "excess_bits_by_position": [excess[i : i + 100].mean() for i in range(0, n - 1, 100)],
                }
                agreement = (log_p.argmax(axis=1) == reference.argmax(axis=1))[:-1].mean()
                for precision, (tolerance, of_agreement) in (("f32", of_float), ("f64", of_double)):
                    for metric, value in expected.items():
                        np.testing.assert_allclose(
                            found[precision][method, metric, which],
                            value,
                            rtol=0,
                            atol=tolerance,
                            err_msg=f"{method} {metric}",
                        )
                    same = float(found[precision][method, "top_agreement", which])
                    self.assertLessEqual(abs(same - agreement), of_agreement)

    def test_one_layer_one_head_and_a_list_are_those_heads_and_no_others(self) -> None:
        last = self.model.layers - 1
        whole = {(1, h) for h in range(self.model.heads)}
        text = self.texts[0][:200]
        for words, heads in (
            ("1", whole),
            (f"{last}.1", {(last, 1)}),
            (f"[1,{last}.0,0.{self.model.heads - 1}]", whole | {(last, 0), (0, self.model.heads - 1)}),
        ):
            found = self.measured(f"model-loss:replaced={words}", "--method", "uniform", "-n", "200", "--replicates", "1",
                                  "--precision", "f64")  # fmt: skip
            expected = losses(self.model.replaced(text, "uniform", heads), text).mean()
            np.testing.assert_allclose(found["uniform", "bits_per_byte", 0], expected, rtol=0, atol=1e-9, err_msg=words)

    def test_a_spec_for_every_head_of_the_model_gives_each_its_own(self) -> None:
        count = self.model.layers * self.model.heads
        given = {3: "uniform", count - 2: "local:window=16"}
        spec = "per-head:" + ",".join(f"[{given.get(place, 'softmax')}]" for place in range(count))
        found = self.measured("model-loss", "--method", spec, "-n", "200", "--replicates", "1", "--precision", "f64")
        text = self.texts[0][:200]
        log_p = self.model.log2_probabilities(
            text, lambda l, h: METHODS[given.get(l * self.model.heads + h, "softmax")]
        )
        numbers = [value for (_, metric, _), value in found.items() if metric == "bits_per_byte"]
        np.testing.assert_allclose(numbers, [losses(log_p, text).mean()], rtol=0, atol=1e-9)

    def test_a_fitted_method_learns_from_the_calibration_text_of_its_layer_and_head(self) -> None:
        n, layer, head = 128, self.model.layers - 1, self.model.heads - 1
        # vq:codebook=keys replaces each key by the nearest key of the calibration text. The capture has these keys in
        # float16, which moves a logit by a percent at most.
        codes = read("calibration.safetensors")["k"][layer, head, :n]

        def nearest(q: Array, k: Array, v: Array) -> Array:
            distances = ((k[:, None] - codes) ** 2).sum(axis=2)
            return exact(q, codes[distances.argmin(axis=1)], v)

        found = self.measured(f"model-loss:replaced={layer}.{head}", "--method", "vq:codebook=keys", "-n", str(n),
                              "--replicates", "1", "--precision", "f64")  # fmt: skip
        text = self.texts[0][:n]
        expected = losses(
            self.model.log2_probabilities(text, lambda l, h: nearest if (l, h) == (layer, head) else exact), text
        ) - losses(self.model.replaced(text, "softmax"), text)
        numbers = [value for (_, metric, _), value in found.items() if metric == "excess_bits"]
        np.testing.assert_allclose(numbers, [expected.mean()], rtol=0.02, atol=0)

    def test_the_error_of_a_head_is_that_on_the_q_k_and_v_that_it_gets(self) -> None:
        text, errors = self.texts[0][:200], []

        def noted(q: Array, k: Array, v: Array) -> Array:
            reference, out = exact(q, k, v), METHODS["uniform"](q, k, v)
            errors.append(np.linalg.norm(out - reference) / np.linalg.norm(reference))
            return out

        found = self.measured("model-loss:replaced=[0.1,2]", "--method", "uniform", "-n", "200", "--replicates", "1",
                              "--precision", "f64")  # fmt: skip
        self.model.log2_probabilities(text, lambda l, h: noted if (l, h) == (0, 1) or l == 2 else exact)
        self.assertEqual(len(errors), 1 + self.model.heads)
        np.testing.assert_allclose(found["uniform", "relative_output_error", 0], np.mean(errors), rtol=1e-9)

    def test_a_scale_of_the_logits_holds_for_both_models(self) -> None:
        n = 100
        found = self.measured("model-loss", "--methods", "softmax", "uniform", "-n", str(n), "--replicates", "1",
                              "--logit-scale", "0.25", "--precision", "f64")  # fmt: skip
        text = self.texts[0][:n]
        flatter = losses(self.model.log2_probabilities(text, lambda l, h: lambda q, k, v: exact(q / 4, k, v)), text)
        mean = losses(self.model.replaced(text, "uniform"), text)
        np.testing.assert_allclose(found["softmax", "bits_per_byte", 0], flatter.mean(), rtol=0, atol=1e-9)
        np.testing.assert_allclose(found["uniform", "excess_bits", 0], (mean - flatter).mean(), rtol=0, atol=1e-9)

    def test_the_texts_are_replicates_and_softmax_costs_nothing(self) -> None:
        found = self.measured("model-loss", "--methods", "softmax", "performer:m=16", "-n", "64")
        self.assertEqual(sorted({replicate for _, _, replicate in found}), list(range(16)))
        for which in range(16):
            self.assertEqual(float(found["softmax", "excess_bits", which]), 0)
            self.assertEqual(float(found["softmax", "next_byte_kl", which]), 0)
            self.assertEqual(float(found["softmax", "top_agreement", which]), 1)
            self.assertGreater(float(found["performer:m=16", "excess_bits", which]), 0.1)

    def test_bad_requests_say_what_to_type(self) -> None:
        for words, said in (
            (["model-loss"], "gaussian gives single heads and no model; give --input model"),
            (["model-loss", "--input", "model:layer=0"], "leave out layer="),
            (["model-loss", "--input", "model:head=all"], "leave out head="),
            (["model-loss", "--input", "model", "--bidirectional"], "leave out --bidirectional"),
            (["model-loss", "--input", "model", "-n", "1"], "expected at least 2"),
            (["model-loss", "--input", "model", "-n", "1000000"], "expected nq <= 1024"),
            (["model-loss", "--input", "model", "--heads", "3"], "leave out --heads"),
            (["model-loss:replaced=9.0", "--input", "model"], "'9.0' is not in the model"),
            (["model-loss:replaced=[0,]", "--input", "model"], "'' is not in the model"),
            (["model-loss:replaced=0.x", "--input", "model"], "expected all, a layer (replaced=1)"),
        ):
            made = attnbench("plan", *words, "--method", "uniform")
            self.assertEqual(made.returncode, 2, f"{words}: {made.stdout}{made.stderr}")
            self.assertIn(said, made.stderr)

    def test_a_method_without_a_causal_form_is_skipped_with_the_reason(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = attnbench("run", "model-loss", "--methods", "fnet", "uniform", "--input", "model", "-n", "32",
                             "--results", str(Path(folder) / "results.db"))  # fmt: skip
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("16 skipped", made.stdout)
        self.assertIn("fnet", made.stdout)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
