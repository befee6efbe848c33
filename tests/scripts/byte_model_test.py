#!/usr/bin/python3
"""Tests of the model, the evaluation and the training loop of scripts/train_byte_lm.py.

Run as tests/scripts/byte_model_test.py; without torch: exit code 77 (scripts/test_torch.sh installs one and runs this).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("skipped: this Python has no torch; scripts/test_torch.sh installs one and runs this test")
    sys.exit(77)

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import byte_evaluation
import train_byte_lm
from byte_corpus import Document
from byte_model import ByteModel, Sizes
from held_out_texts import Excerpt
from torch import Tensor

torch.set_num_threads(1)  # models this small are slower on several
SMALL = Sizes(layers=1, heads=2, head_size=8, context=24)


def model(causal: bool, sizes: Sizes = SMALL) -> ByteModel:
    """With weights large enough that attention prefers some keys."""
    torch.manual_seed(1)
    made: ByteModel = ByteModel(sizes, causal).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(20 if parameter.dim() == 2 else 1)
    return made


def changed_rows(made: ByteModel, window: int | None, at: int) -> list[int]:
    """The rows of the logits that change with byte `at`."""
    tokens = torch.arange(24)[None] * 7
    other = tokens.clone()
    other[0, at] += 1
    with torch.no_grad():
        change = (made(tokens, window) - made(other, window)).abs().amax(-1)[0]
    return [row for row, size in enumerate(change.tolist()) if size > 1e-12]


class Model(unittest.TestCase):
    def test_a_byte_changes_the_rows_that_see_it_and_no_other(self) -> None:
        for at in (0, 9, 23):
            self.assertEqual(changed_rows(model(True), None, at), list(range(at, 24)))
            self.assertEqual(changed_rows(model(False), None, at), list(range(24)))
            self.assertEqual(changed_rows(model(True), 5, at), list(range(at, min(24, at + 6))))
            self.assertEqual(changed_rows(model(False), 5, at), list(range(max(0, at - 5), min(24, at + 6))))

    def test_a_window_of_the_whole_text_is_full_attention(self) -> None:
        tokens = torch.arange(24)[None] * 7
        for causal in (True, False):
            with torch.no_grad():
                full, wide = model(causal)(tokens), model(causal)(tokens, 23)
                narrow = model(causal)(tokens, 22)
            self.assertLess(float((full - wide).abs().max()), 1e-12)
            self.assertGreater(float((full - narrow)[0, 23].abs().max()), 1e-6)

    def test_captures_give_the_layer_by_the_formula(self) -> None:
        made = model(True)
        tokens = torch.arange(24) * 7
        with torch.no_grad():
            heads = made.captured(tokens)
            q, k, v = (heads[name][0] for name in "qkv")
            logits = q @ k.transpose(-1, -2) / math.sqrt(8)
            logits[:, torch.ones(24, 24).triu(1).bool()] = -math.inf
            mixed = (torch.softmax(logits, -1) @ v).transpose(0, 1).reshape(24, 16)
            layer, x = made.layers[0], made.embedding(tokens)
            x = x + layer.attention.out(mixed)
            up = layer.up(layer.feed_forward_norm(x))
            x = x + layer.down(up * (1 + torch.erf(up / math.sqrt(2))) / 2)
            self.assertLess(float((made.norm(x) @ made.embedding.weight.T - made(tokens[None])[0]).abs().max()), 1e-10)

    def test_rotation_makes_logits_depend_on_distance_alone(self) -> None:
        same = torch.full((24,), 65)
        with torch.no_grad():
            heads = model(True).captured(same)
        q, k = heads["q"][0, 1], heads["k"][0, 1]
        self.assertLess(float((q[5] @ k[2] - q[20] @ k[17]).abs()), 1e-5)  # angles are computed in float
        self.assertGreater(float((q[5] @ k[2] - q[5] @ k[3]).abs()), 1e-3)


class Evaluation(unittest.TestCase):
    def test_bigram_bits_by_hand(self) -> None:
        training = [np.frombuffer(b"ababab", dtype=np.uint8)]  # a is followed by b three times: (3 + 1) / (3 + 256)
        bits = byte_evaluation.bigram_bits(training, [b"ab", b"ba", b"aa"])
        np.testing.assert_allclose(bits, -np.log2([4 / 259, 3 / 258, 1 / 259]), rtol=1e-12)

    def test_an_interval_has_the_width_of_the_standard_error(self) -> None:
        per_text = np.random.default_rng(5).normal(size=400)
        low, high = byte_evaluation.interval(per_text)
        self.assertAlmostEqual((high - low) / (2 * 1.96 * per_text.std() / 20), 1, delta=0.05)
        self.assertAlmostEqual((high + low) / 2, per_text.mean(), delta=0.02)
        self.assertEqual(byte_evaluation.interval(np.full(9, 2.5)), [2.5, 2.5])

    def test_bits_are_those_of_the_next_byte_or_of_the_masked_ones(self) -> None:
        texts = [bytes(range(40, 65)), bytes(range(65, 90))]
        with mock.patch("byte_evaluation.tensor_of", lambda all_: np.array([list(text) for text in all_])):
            causal = byte_evaluation.bits(model(True), texts)
            masked = byte_evaluation.bits(model(False), texts)
            _, _, where = byte_evaluation.evaluation_input(model(False), texts)
            last = byte_evaluation.bits(model(True), texts, length=9)
            alone = byte_evaluation.bits(model(True), [text[-10:] for text in texts])
        np.testing.assert_allclose(last, alone, rtol=1e-12)
        self.assertGreater(np.abs(last - causal[:, -9:]).max(), 1e-3)
        self.assertEqual(causal.shape, (2, 24))
        with torch.no_grad():
            log_p = torch.log_softmax(model(True)(torch.tensor([list(texts[1])])), -1)[0]
        self.assertAlmostEqual(causal[1, 7], -float(log_p[7, texts[1][8]]) / math.log(2), places=10)
        self.assertTrue((np.isnan(masked) == ~where).all())
        self.assertTrue(0 < where.sum() < where.size)


HELD_OUT = Excerpt("python", "p", "f", 0, b"abcd" * 256)


def options(folder: Path, steps: int) -> argparse.Namespace:
    return argparse.Namespace(
        checkpoint=folder / "checkpoint.pt", steps=steps, batch=2, learning_rate=0.02, seed=3, threads=1
    )


class Training(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(mock.patch("train_byte_lm.Sizes", lambda: SMALL))
        self.enterContext(mock.patch("train_byte_lm.EVERY", 2))
        self.enterContext(mock.patch("train_byte_lm.WARM_UP", 2))
        self.enterContext(mock.patch("builtins.print"))
        texts = np.random.default_rng(1)
        self.texts = {kind: texts.integers(97, 101, 500).astype(np.uint8) for kind in train_byte_lm.SHARES}

    def trained(self, folder: Path, steps: int, causal: bool = True) -> dict[str, Tensor]:
        torch.manual_seed(1)
        made = ByteModel(SMALL, causal)
        held_out = [HELD_OUT]
        train_byte_lm.train(options(folder, steps), made, self.texts, held_out)
        return {name: tensor.clone() for name, tensor in made.state_dict().items()}

    def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(self) -> None:
        for causal in (True, False):
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
                whole = self.trained(Path(one), 20, causal)
                kept: list[object] = []
                original = train_byte_lm.save

                def stopping(path: Path, saved: dict[str, object]) -> None:
                    original(path, saved)
                    if saved["step"] == 8 and not kept:
                        kept.append(saved)
                        raise KeyboardInterrupt

                with mock.patch("train_byte_lm.save", stopping):
                    self.assertRaises(KeyboardInterrupt, self.trained, Path(two), 20, causal)
                    parts = self.trained(Path(two), 20, causal)
                for name, tensor in whole.items():
                    self.assertTrue(torch.equal(tensor, parts[name]), name)

    def test_steps_may_change_until_the_rate_falls(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            original = train_byte_lm.save

            def stopping(path: Path, saved: dict[str, object]) -> None:
                original(path, saved)
                if saved["step"] == 10 and "constant" in path.name:
                    raise KeyboardInterrupt

            with mock.patch("train_byte_lm.save", stopping):
                self.assertRaises(KeyboardInterrupt, self.trained, folder, 40)
            with self.assertRaisesRegex(SystemExit, "has done 10 of 40 steps.*give at least 13"):
                self.trained(folder, 12)
            self.trained(folder, 13)
            self.assertEqual(torch.load(folder / "checkpoint.pt")["step"], 13)
            self.assertEqual(torch.load(folder / "checkpoint.constant.pt")["step"], 10)
            with self.assertRaisesRegex(SystemExit, "give --steps 13, or train longer from .*checkpoint.constant.pt"):
                self.trained(folder, 40)

    def test_the_rate_rises_stays_and_falls(self) -> None:
        rates = [train_byte_lm.rate(step, 1000, 3.0) for step in (0, 1, 400, 800, 900, 999)]
        np.testing.assert_allclose(rates, [1.5, 3, 3, 3, 1.5, 0.015])

    def test_training_learns_the_alphabet_and_sees_no_byte_that_it_has_to_say(self) -> None:
        for causal in (True, False):
            with tempfile.TemporaryDirectory() as name:
                torch.manual_seed(1)
                made = ByteModel(SMALL, causal)
                before = train_byte_lm.loss_of(made, self.texts, 8, [1]).item()
                train_byte_lm.train(options(Path(name), 100), made, self.texts, [HELD_OUT])
                after = train_byte_lm.loss_of(made, self.texts, 64, [1]).item()
            self.assertGreater(before, 7.5)  # of 256 bytes
            # Random letters, one of four, are 2 bits. A tenth of what is masked can be read.
            self.assertLess(after, 2.3)
            self.assertGreater(after, 1.7)

    def test_a_joined_kind_ends_every_document_and_wraps(self) -> None:
        documents = {"x": Document("python", "p", b"one"), "y": Document("headers", "p", b"two"),
                     "z": Document("python", "p", b"three" * 9)}  # fmt: skip
        text = train_byte_lm.joined(documents, "python").tobytes()
        self.assertEqual(text, b"one\0" + b"three" * 9 + b"\0" + (b"one\0" + b"three" * 9)[:24])


if __name__ == "__main__":
    unittest.main()
