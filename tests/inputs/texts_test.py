#!/usr/bin/python3
"""The texts that the inputs `model` and `masked-model` read, one a replicate, against a forward pass in NumPy
(byte_transformer.py).

Run as tests/inputs/texts_test.py PROGRAM.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
from byte_transformer import (
    CAUSAL,
    MASK,
    MASKED,
    ROOT,
    Array,
    ByteTransformer,
    Text,
    attention_matrix,
    exact,
    masked_byte_bits,
    next_byte_bits,
    read,
)

PROGRAM = ""
TEXTS, LENGTH = 32, 1024
KINDS = ("python", "headers", "documentation", "dictionary")
MEASURED = "usr/lib/python3.11/statistics.py"


def bits(model: ByteTransformer, text: Text, window: int | None = None) -> Array:
    """The bits of every byte after the first."""
    return next_byte_bits(model.forward(text, lambda l, h: exact(True, window))[1], text)


def attnbench(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("ATTNBENCH_MODEL", "ATTNBENCH_MASKED_MODEL")
    }
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=600)


class TextsTest(unittest.TestCase):
    texts: Text
    trained: ByteTransformer
    initial: ByteTransformer
    masked: ByteTransformer
    entries: list[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.texts = read(CAUSAL / "texts.safetensors")["bytes"].astype(int)
        cls.trained, cls.initial, cls.masked = (
            ByteTransformer(folder / f"{kind}.safetensors")
            for folder, kind in ((CAUSAL, "weights"), (CAUSAL, "initial"), (MASKED, "weights"))
        )
        cls.entries = json.loads((CAUSAL / "texts.json").read_text())

    def setUp(self) -> None:
        self.results = str(Path(self.enterContext(tempfile.TemporaryDirectory())) / "results.db")

    def measured(self, metric: str, *words: str) -> dict[int, Array]:
        """The measurements of a run by replicate."""
        made = attnbench("run", *words, "--results", self.results)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        with sqlite3.connect(self.results) as file:
            rows = file.execute(
                "SELECT m.replicate, m.value, m.array FROM measurement m JOIN cell c ON c.id = m.cell "
                "WHERE m.metric = ? AND c.experiment LIKE ?",
                (metric, words[0].split(":")[0] + "%"),
            ).fetchall()
        return {row[0]: np.array(row[1]) if row[2] is None else np.frombuffer(row[2], "<f8") for row in rows}

    def test_the_list_is_of_what_is_there(self) -> None:
        self.assertEqual(self.texts.shape, (TEXTS, LENGTH))
        hashes = [hashlib.sha256(bytes(text.tolist())).hexdigest() for text in self.texts]
        self.assertEqual(hashes, [entry["sha256"] for entry in self.entries])
        self.assertEqual([entry["text"] for entry in self.entries], list(range(TEXTS)))
        self.assertEqual((self.entries[0]["file"], self.entries[0]["offset"]), (MEASURED, 4096))
        self.assertEqual(len(set(hashes)), TEXTS)
        self.assertEqual(len({entry["file"] for entry in self.entries}), TEXTS)
        kinds = [entry["kind"] for entry in self.entries]
        self.assertEqual({kind: kinds.count(kind) for kind in kinds}, dict.fromkeys(KINDS, 8))
        for entry in self.entries:
            chosen = int(hashlib.sha256(entry["file"].encode()).hexdigest(), 16) % 20 == 0
            self.assertTrue(chosen or entry["text"] == 0, entry)
        self.assertNotIn("difflib.py", [Path(entry["file"]).name for entry in self.entries])

    def test_both_models_read_the_same_texts_and_one_has_them_masked(self) -> None:
        texts = read(MASKED / "texts.safetensors")
        self.assertTrue((texts["bytes"] == self.texts).all())
        hidden = texts["masked"] == MASK
        self.assertTrue((texts["masked"][~hidden] == self.texts[~hidden]).all())
        self.assertTrue((0.15 < hidden.mean(axis=1)).all() and (hidden.mean(axis=1) < 0.27).all())
        self.assertFalse((self.texts == MASK).any())

    def test_the_script_chooses_the_same_from_the_same_library(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "model.json").write_bytes((CAUSAL / "model.json").read_bytes())
            script = str(ROOT / "scripts/held_out_texts.py")
            made = subprocess.run([sys.executable, script, "-o", folder], capture_output=True, text=True)
            if "is not the one that the model" in made.stderr or "slim images" in made.stderr:
                self.skipTest(made.stderr.strip())
            self.assertEqual(made.returncode, 0, made.stderr)
            for name in ("texts.json", "texts.safetensors"):
                self.assertEqual((Path(folder) / name).read_bytes(), (CAUSAL / name).read_bytes())

    # Weights in float16 and a forward pass in double against PyTorch's weights and pass in float: at most 0.002 bits.
    def test_the_model_knows_the_texts_that_it_was_not_trained_on(self) -> None:
        said = json.loads((CAUSAL / "model.json").read_text())
        for which in (0, 1, 2, 31):
            found = bits(self.trained, self.texts[which]).mean()
            self.assertAlmostEqual(found, said["bits_per_byte_of_texts"]["full"][which], delta=0.002)
            self.assertLess(found, said["texts"]["all"]["bigram_bits_per_byte"])
        backwards = bits(self.trained, self.texts[31][::-1]).mean()
        self.assertGreater(backwards, 1.5 * said["bits_per_byte_of_texts"]["full"][31])

    def test_the_model_uses_its_context(self) -> None:
        said = json.loads((CAUSAL / "model.json").read_text())
        for which in (0, 3):
            narrow = bits(self.trained, self.texts[which], 256).mean()
            self.assertAlmostEqual(narrow, said["bits_per_byte_of_texts"]["window 256"][which], delta=0.002)
        for kind, texts in (("held_out", 96), ("texts", TEXTS)):
            cost = said[kind]["all"]["window_costs"]["256"]
            self.assertEqual(cost["texts"], texts)
            self.assertGreater(cost["interval"][0], 0.03)
        # Reading less text costs as well, so the price of a window is not that of a change alone.
        self.assertGreater(said["held_out"]["all"]["shorter_text_costs"]["256"]["interval"][0], 0.03)

    def test_the_bidirectional_model_guesses_masked_bytes(self) -> None:
        said = json.loads((MASKED / "model.json").read_text())
        hidden = read(MASKED / "texts.safetensors")["masked"].astype(int)
        for which in (0, 31):
            log_p = self.masked.forward(hidden[which])[1]
            found = masked_byte_bits(log_p, self.texts[which], hidden[which]).mean()
            self.assertAlmostEqual(found, said["bits_per_byte_of_texts"]["full"][which], delta=0.005)
            self.assertLess(found, said["texts"]["all"]["bigram_bits_per_byte"])

    # Rounding alone lies between the two, except for text 0, whose q, k and v are captures in float16: a logit is of
    # size 20 and changes by 2^-10 of it at most, so a weight by 2 % at most.
    def allowed(self, which: int, size: float) -> float:
        return 0.02 * size if which == 0 else 1e-10 * size

    def test_each_replicate_attends_to_its_text(self) -> None:
        n, layer, head = 40, 3, 2
        maps = self.measured("attention", "attention-map", "--method", "softmax", "--input", f"model:layer={layer},head={head}",
                             "-n", str(n), "--replicates", str(TEXTS))  # fmt: skip
        self.assertEqual(sorted(maps), list(range(TEXTS)))
        for which, found in maps.items():
            q, k, _ = self.trained.forward(self.texts[which][:n])[0][layer][head]
            expected = attention_matrix(q, k, causal=True)
            distance = np.abs(found.reshape(n, n) - expected).max()
            self.assertLessEqual(distance, self.allowed(which, 1), f"text {which}")
            if which == 0:
                self.assertGreater(distance, 1e-9)  # the capture, not computed

    def test_the_bidirectional_model_sees_the_whole_text(self) -> None:
        n, layer, head = 40, 3, 1
        maps = self.measured("attention", "attention-map", "--method", "softmax", "--input",
                             f"masked-model:layer={layer},head={head}", "-n", str(n), "--replicates", "3")  # fmt: skip
        for which, found in maps.items():
            q, k, _ = self.masked.forward(self.texts[which])[0][layer][head]
            expected = attention_matrix(q[:n], k[:n], causal=False)
            self.assertLessEqual(np.abs(found.reshape(n, n) - expected).max(), 1e-10, f"text {which}")

    def test_each_replicate_has_the_values_of_its_text(self) -> None:
        n, layer, head = 40, 2, 0
        errors = self.measured("relative_output_error", "attention-error:matrix=false", "--method", "uniform", "--input",
                               f"model:layer={layer},head={head}", "-n", str(n), "--replicates", "5")  # fmt: skip
        self.assertEqual(sorted(errors), list(range(5)))
        for which, found in errors.items():
            q, k, v = self.trained.forward(self.texts[which][:n])[0][layer][head]
            out = attention_matrix(q, k, causal=True) @ v
            mean = np.tri(n) @ v / np.arange(1, n + 1)[:, None]
            expected = float(np.linalg.norm(mean - out) / np.linalg.norm(out))
            self.assertLessEqual(abs(float(found) - expected), self.allowed(which, expected), f"text {which}")

    def test_a_text_that_is_named_is_that_of_every_replicate_and_of_either_model(self) -> None:
        n, layer, head = 40, 1, 1
        for weights, model in (("trained", self.trained), ("initial", self.initial)):
            maps = self.measured("attention", "attention-map", "--method", "softmax", "--input",
                                 f"model:layer={layer},head={head},weights={weights},text=31", "-n", str(n),
                                 "--replicates", "2", "--seed", "1" if weights == "trained" else "2")  # fmt: skip
            self.assertTrue((maps[0] == maps[1]).all())
            q, k, _ = model.forward(self.texts[31][:n])[0][layer][head]
            np.testing.assert_allclose(maps[0].reshape(n, n), attention_matrix(q, k, causal=True), rtol=0, atol=1e-10)
            Path(self.results).unlink()

    def test_more_replicates_than_texts_are_refused_before_anything_runs(self) -> None:
        words = ["attention-error", "--method", "uniform", "-n", "16", "--replicates", str(TEXTS + 1)]
        for command in ("run", "plan"):
            made = attnbench(command, *words, "--input", "model", "--results", self.results)
            self.assertEqual(made.returncode, 2, made.stdout)
            self.assertIn("33 replicates were asked for and the input has data for 32", made.stderr)
            self.assertFalse(Path(self.results).exists())
        made = attnbench("plan", *words, "--input", "model:text=0", "--results", self.results)
        self.assertEqual(made.returncode, 0, made.stderr)
        made = attnbench("plan", *words, "--input", "model:text=32", "--results", self.results)
        self.assertEqual(made.returncode, 2, made.stdout)
        self.assertIn("text 32 was asked for; expected one from 0 to 31", made.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
