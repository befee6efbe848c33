#!/usr/bin/python3
"""The experiment `model-loss` against a forward pass in NumPy that shares no code with the program: the formulas are
in byte_transformer.py, and attention is replaced by hand.

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

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "inputs"))

from byte_transformer import (  # noqa: E402 (needs sys.path)
    CAUSAL,
    MASKED,
    Array,
    Attention,
    ByteTransformer,
    Text,
    exact,
    masked_byte_bits,
    next_byte_bits,
    read,
    weights_of,
)

PROGRAM = ""
TEXTS = 2  # that the slow comparisons read


def weighted(visible: Callable[[Array], NDArray[np.bool_]]) -> Attention:
    """Softmax over the earlier keys that `visible` leaves, given the logits of the earlier ones."""

    def attend(q: Array, k: Array, v: Array) -> Array:
        earlier = np.tri(len(q), dtype=bool)
        logits = np.where(earlier, q @ k.T / math.sqrt(q.shape[1]), -np.inf)
        return weights_of(logits, earlier & visible(logits)) @ v

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


METHODS: dict[str, Attention] = {
    "softmax": exact(causal=True),
    "local:window=16": exact(causal=True, window=16),
    "top-k:k=8": weighted(largest(8)),
    "uniform": lambda q, k, v: np.cumsum(v, axis=0) / np.arange(1, len(v) + 1)[:, None],
    "linear": elu,
}
softmax = METHODS["softmax"]
BIDIRECTIONAL: dict[str, Attention] = {
    "softmax": exact(causal=False),
    "local:window=16": exact(causal=False, window=16),
    "uniform": lambda q, k, v: np.broadcast_to(v.mean(axis=0), v.shape),
}


class Model(ByteTransformer):
    def replaced(self, text: Text, method: str, heads: Collection[tuple[int, int]] | None = None) -> Array:
        """log2 of the probability of each byte in each row, with that method in these heads (None: in all)."""
        methods = METHODS if self.causal else BIDIRECTIONAL
        return self.mixed(text, lambda l, h: methods[method if heads is None or (l, h) in heads else "softmax"])

    def mixed(self, text: Text, attend: Callable[[int, int], Attention]) -> Array:
        """The same with attend(layer, head) in each head."""
        return self.forward(text, attend)[1]


def attnbench(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("ATTNBENCH_MODEL", "ATTNBENCH_MASKED_MODEL")
    }
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=600)


class ModelLossTest(unittest.TestCase):
    model: Model
    texts: Text

    @classmethod
    def setUpClass(cls) -> None:
        cls.model = Model(CAUSAL / "weights.safetensors")
        cls.texts = read(CAUSAL / "texts.safetensors")["bytes"].astype(int)

    def measured(self, *words: str, model: str = "model") -> dict[tuple[str, str, int], Array]:
        """Runs model-loss: (method, metric, replicate) -> its number or array."""
        with tempfile.TemporaryDirectory() as folder:
            results = str(Path(folder) / "results.db")
            made = attnbench("run", *words, "--input", model, "--results", results)
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
                bits, excess = next_byte_bits(log_p, text), next_byte_bits(log_p, text) - next_byte_bits(
                    reference, text
                )
                expected = {
                    "bits_per_byte": bits.mean(),
                    "excess_bits": excess.mean(),
                    "prediction_kl": (np.exp2(reference[:-1]) * (reference - log_p)[:-1]).sum(axis=1).mean(),
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

    def test_a_bidirectional_model_predicts_the_bytes_that_are_masked(self) -> None:
        model, n = Model(MASKED / "weights.safetensors"), 400
        masked = read(MASKED / "texts.safetensors")["masked"].astype(int)
        found = self.measured("model-loss", "--methods", *BIDIRECTIONAL, "-n", str(n), "--replicates", str(TEXTS),
                              "--precision", "f64", model="masked-model")  # fmt: skip
        for which in range(TEXTS):
            text, seen = self.texts[which, :n], masked[which, :n]
            reference = model.replaced(seen, "softmax")
            at = np.flatnonzero(seen != text)
            for method in BIDIRECTIONAL:
                log_p = model.replaced(seen, method)
                bits, exactly = (masked_byte_bits(each, text, seen) for each in (log_p, reference))
                expected = {
                    "bits_per_byte": bits.mean(),
                    "excess_bits": (bits - exactly).mean(),
                    "top_agreement": (log_p.argmax(axis=1) == reference.argmax(axis=1))[at].mean(),
                    "prediction_kl": (np.exp2(reference) * (reference - log_p))[at].sum(axis=1).mean(),
                }
                for metric, value in expected.items():
                    np.testing.assert_allclose(
                        found[method, metric, which], value, rtol=0, atol=1e-9, err_msg=f"{method} {metric}"
                    )
        self.assertNotIn(("softmax", "bits_by_position", 0), found)

    def test_rows_of_a_prompt_have_exact_attention_and_no_loss(self) -> None:
        n, prompt, method = 300, 100, METHODS["linear"]
        found = self.measured(f"model-loss:prompt={prompt},block=150", "--methods", "linear", "-n", str(n),
                              "--replicates", "1", "--precision", "f64")  # fmt: skip

        def attend(q: Array, k: Array, v: Array) -> Array:
            return np.vstack([softmax(q, k, v)[:prompt], method(q, k, v)[prompt:]])

        text = self.texts[0][:n]
        bits = next_byte_bits(self.model.mixed(text, lambda layer, head: attend), text)
        excess = bits - next_byte_bits(self.model.replaced(text, "softmax"), text)
        for metric, value in {
            "bits_per_byte": bits[prompt:].mean(),
            "excess_bits": excess[prompt:].mean(),
            "bits_by_position": [bits[100:250].mean(), bits[250:].mean()],
        }.items():
            np.testing.assert_allclose(found["linear", metric, 0], value, rtol=0, atol=1e-9, err_msg=metric)
        refused = attnbench("run", "model-loss:prompt=63", "--methods", "linear", "--input", "model", "-n", "64")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("a prompt of at most n - 2 tokens", refused.stderr)

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
            expected = next_byte_bits(self.model.replaced(text, "uniform", heads), text).mean()
            np.testing.assert_allclose(found["uniform", "bits_per_byte", 0], expected, rtol=0, atol=1e-9, err_msg=words)

    def test_a_spec_for_every_head_of_the_model_gives_each_its_own(self) -> None:
        count = self.model.layers * self.model.heads
        given = {3: "uniform", count - 2: "local:window=16"}
        spec = "per-head:" + ",".join(f"[{given.get(place, 'softmax')}]" for place in range(count))
        found = self.measured("model-loss", "--method", spec, "-n", "200", "--replicates", "1", "--precision", "f64")
        text = self.texts[0][:200]
        log_p = self.model.mixed(text, lambda l, h: METHODS[given.get(l * self.model.heads + h, "softmax")])
        numbers = [value for (_, metric, _), value in found.items() if metric == "bits_per_byte"]
        np.testing.assert_allclose(numbers, [next_byte_bits(log_p, text).mean()], rtol=0, atol=1e-9)

    def test_a_fitted_method_learns_from_the_calibration_text_of_its_layer_and_head(self) -> None:
        n, layer, head = 128, self.model.layers - 1, self.model.heads - 1
        # vq:codebook=keys replaces each key by the nearest key of the calibration text. The capture has these keys in
        # float16, which moves a logit by a percent at most.
        codes = read(CAUSAL / "calibration.safetensors")["k"][layer, head, :n]

        def nearest(q: Array, k: Array, v: Array) -> Array:
            distances = ((k[:, None] - codes) ** 2).sum(axis=2)
            return softmax(q, codes[distances.argmin(axis=1)], v)

        found = self.measured(f"model-loss:replaced={layer}.{head}", "--method", "vq:codebook=keys", "-n", str(n),
                              "--replicates", "1", "--precision", "f64")  # fmt: skip
        text = self.texts[0][:n]
        expected = next_byte_bits(
            self.model.mixed(text, lambda l, h: nearest if (l, h) == (layer, head) else softmax), text
        ) - next_byte_bits(self.model.replaced(text, "softmax"), text)
        numbers = [value for (_, metric, _), value in found.items() if metric == "excess_bits"]
        np.testing.assert_allclose(numbers, [expected.mean()], rtol=0.02, atol=0)

    def test_the_error_of_a_head_is_that_on_the_q_k_and_v_that_it_gets(self) -> None:
        text, errors = self.texts[0][:200], []

        def noted(q: Array, k: Array, v: Array) -> Array:
            reference, out = softmax(q, k, v), METHODS["uniform"](q, k, v)
            errors.append(np.linalg.norm(out - reference) / np.linalg.norm(reference))
            return out

        found = self.measured("model-loss:replaced=[0.1,2]", "--method", "uniform", "-n", "200", "--replicates", "1",
                              "--precision", "f64")  # fmt: skip
        self.model.mixed(text, lambda l, h: noted if (l, h) == (0, 1) or l == 2 else softmax)
        self.assertEqual(len(errors), 1 + self.model.heads)
        np.testing.assert_allclose(found["uniform", "relative_output_error", 0], np.mean(errors), rtol=1e-9)

    def test_budgets_of_evicted_heads_are_divided_over_a_layer_and_over_layers(self) -> None:
        n, prompt, keep = 200, 100, 20
        text = self.texts[0][:n]
        norms: dict[tuple[int, int], Array] = {}

        def noting(layer: int, head: int) -> Attention:
            def attend(q: Array, k: Array, v: Array) -> Array:
                norms[layer, head] = np.linalg.norm(k[:prompt], axis=1)
                return softmax(q, k, v)

            return attend

        def evicted(kept: int) -> Attention:
            def attend(q: Array, k: Array, v: Array) -> Array:
                sees = np.ones((len(q), len(k)), dtype=bool)
                sees[prompt:, :prompt] = False
                sees[prompt:, np.argsort(np.linalg.norm(k[:prompt], axis=1))[:kept]] = True
                return weighted(lambda _: sees)(q, k, v)

            return attend

        # Keys of layer 0 depend on the byte alone, so that the norms of equal bytes are equal but for rounding.
        first, last = 1, self.model.layers - 1
        self.model.mixed(text, noting)
        # A fifth of keep to each head, and the rest to the smallest norms of all heads of the layer.
        heads = range(self.model.heads)
        left = sorted((norm, h) for h in heads for norm in np.sort(norms[first, h])[keep // 5 :])
        owners = [h for _, h in left[: self.model.heads * (keep - keep // 5)]]
        shares = [keep // 5 + owners.count(h) for h in heads]
        self.assertGreater(max(shares), min(shares))
        pyramid = [round(keep * (1.95 - 1.9 * layer / last)) for layer in range(last + 1)]

        def adaptive(layer: int, head: int) -> Attention:
            return evicted(shares[head]) if layer == first else softmax

        def by_layer(layer: int, head: int) -> Attention:
            return evicted(pyramid[layer]) if layer >= first else softmax

        later = ",".join(str(layer) for layer in range(first, last + 1))
        for allocation, replaced, attend in (("adaptive", str(first), adaptive), ("pyramid", f"[{later}]", by_layer)):
            spec = f"evict:score=knorm,keep={keep},prompt={prompt},allocation={allocation}"
            found = self.measured(f"model-loss:replaced={replaced}", "--method", spec, "-n", str(n), "--replicates",
                                  "1", "--precision", "f64")  # fmt: skip
            numbers = [value for (_, metric, _), value in found.items() if metric == "bits_per_byte"]
            expected = next_byte_bits(self.model.mixed(text, attend), text).mean()
            np.testing.assert_allclose(numbers, [expected], rtol=0, atol=1e-9, err_msg=allocation)

    def test_a_scale_of_the_logits_holds_for_both_models(self) -> None:
        n = 100
        found = self.measured("model-loss", "--methods", "softmax", "uniform", "-n", str(n), "--replicates", "1",
                              "--logit-scale", "0.25", "--precision", "f64")  # fmt: skip
        text = self.texts[0][:n]
        flatter = next_byte_bits(self.model.mixed(text, lambda l, h: lambda q, k, v: softmax(q / 4, k, v)), text)
        mean = next_byte_bits(self.model.replaced(text, "uniform"), text)
        np.testing.assert_allclose(found["softmax", "bits_per_byte", 0], flatter.mean(), rtol=0, atol=1e-9)
        np.testing.assert_allclose(found["uniform", "excess_bits", 0], (mean - flatter).mean(), rtol=0, atol=1e-9)

    def test_the_texts_are_replicates_and_softmax_costs_nothing(self) -> None:
        found = self.measured("model-loss", "--methods", "softmax", "performer:m=16", "-n", "64")
        self.assertEqual(sorted({replicate for _, _, replicate in found}), list(range(16)))
        for which in range(16):
            self.assertEqual(float(found["softmax", "excess_bits", which]), 0)
            self.assertEqual(float(found["softmax", "prediction_kl", which]), 0)
            self.assertEqual(float(found["softmax", "top_agreement", which]), 1)
            self.assertGreater(float(found["performer:m=16", "excess_bits", which]), 0.1)

    def test_bad_requests_say_what_to_type(self) -> None:
        for words, said in (
            (["model-loss"], "gaussian gives no model that predicts tokens; give --input model"),
            (["model-loss", "--input", "model:layer=0"], "leave out layer="),
            (["model-loss", "--input", "model:head=all"], "leave out head="),
            (["model-loss", "--input", "model", "--bidirectional"], "leave out --bidirectional"),
            (["model-loss", "--input", "masked-model", "--causal"], "reads the whole text; leave out --causal"),
            (
                ["model-loss", "--input", "model", "-n", "1"],
                "predicts none of the first 1 tokens of text 0; give a larger",
            ),
            (["model-loss", "--input", "masked-model", "-n", "1"], "predicts none of the first 1 tokens"),
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
