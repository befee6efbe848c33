#!/usr/bin/python3
"""Methods whose functions have another form: on q and k that are not scaled, a decoder alone, a layer, a range of costs.

Run as tests/plugins/other_forms_test.py BUILD_FOLDER.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parent / "python/other_forms.py"
BUILD = Path()


def attnbench(*words: str, plugin: Path = SOURCE) -> subprocess.CompletedProcess[str]:
    command = [str(BUILD / "attnbench"), *words, "--plugin", str(plugin)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


class OtherFormsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def checked(self, spec: str, code: int) -> str:
        made = attnbench("check", spec)
        self.assertEqual(made.returncode, code, made.stdout + made.stderr)
        return made.stdout

    def test_functions_that_name_scale_get_q_and_k_before_they_are_scaled(self) -> None:
        report = self.checked("unscaled", 0)
        for claim in ("formula", "exact-when", "decoder", "gradients", "second-paths", "causal", "lengths"):
            self.assertRegex(report, rf"(?m)^  {claim} +PASS", claim)
        self.assertRegex(self.checked("static-unscaled", 0), r"(?m)^  exact-when +PASS")
        report = self.checked("unscaled-that-scales-twice", 1)
        for claim in ("formula", "exact-when", "decoder"):
            self.assertRegex(report, rf"(?m)^  {claim} +FAIL", claim)

    def test_a_decoder_alone_attends_by_its_steps(self) -> None:
        report = self.checked("by-its-decoder", 0)
        for claim in ("formula", "decoder", "causal", "row-sums"):
            self.assertRegex(report, rf"(?m)^  {claim} +PASS", claim)
        report = self.checked("softmax-by-its-decoder", 0)
        self.assertRegex(report, r"(?m)^  exact-when +PASS")
        made = attnbench("run", "attention-error", "--method", "softmax-by-its-decoder", "-n", "32", "--bidirectional",
                         "--results", str(self.folder / "r.db"))  # fmt: skip
        self.assertIn("it has a causal form only", made.stdout + made.stderr)

    def test_a_decoder_alone_is_refused_where_it_cannot_give_attend(self) -> None:
        plugin = self.folder / "mine.py"
        decoder = "    def decoder(self, shape):\n        return None\n"
        for further, words in (
            ("batched = True", "has batched = True and a decoder alone; add attend"),
            ('needs = {"w": ("d", 1)}', "its array w has the rows"),
            ('needs = {"scale": ("n", 1)}', "an array cannot be called 'scale'"),
        ):
            plugin.write_text(f"class Mine:\n    {further}\n{decoder}")
            made = attnbench("check", "mine", plugin=plugin)
            self.assertEqual(made.returncode, 2, made.stdout + made.stderr)
            self.assertIn(words, made.stderr)

    def test_a_constructor_is_told_its_layer(self) -> None:
        results = str(self.folder / "r.db")
        made = attnbench("run", "model-loss:replaced=2", "--method", "of-its-layer", "--input", "model", "-n", "64",
                         "--results", results)  # fmt: skip
        self.assertRegex(made.stdout + made.stderr, r"layer 2 of [3-9]\d*")

    def test_heads_may_share_keys_and_choose_together(self) -> None:
        self.assertRegex(self.checked("shared-keys", 0), r"(?m)^  heads +PASS .*\(\d+ of \d+ tests\)")
        self.assertRegex(self.checked("shared-keys-of-the-first", 1), r"(?m)^  heads +FAIL .* in one call")
        self.assertRegex(self.checked("shared-keys-of-another-group", 1), r"(?m)^  heads +FAIL .* of 2 groups")
        report = self.checked("shared-keys-in-another-order", 1)
        self.assertRegex(report, r"(?m)^  heads +FAIL .* of 2 groups that share keys")
        self.assertRegex(self.checked("one-choice", 0), r"(?m)^  heads +PASS .*against the transcription")
        for wrong in ("one-choice-of-the-first", "one-choice-of-all"):
            self.assertRegex(self.checked(wrong, 1), r"(?m)^  heads +FAIL .*against the transcription", wrong)
        generator = np.random.default_rng(1)
        q, k, v = (generator.standard_normal((heads, 40, 8)) for heads in (6, 2, 2))
        np.savez(self.folder / "heads.npz", q=q, k=k, v=v)
        output = self.folder / "out.safetensors"
        made = attnbench("attend", "one-choice", "--input", str(self.folder / "heads.npz"), "--output", str(output),
                         "--precision", "f64")  # fmt: skip
        self.assertEqual(made.returncode, 0, made.stderr)
        data = output.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        entry = json.loads(data[8:begin])["out"]
        self.assertEqual((entry["dtype"], entry["shape"]), ("F64", [6, 40, 8]))
        out = np.frombuffer(data, np.float64, 6 * 40 * 8, begin + entry["data_offsets"][0]).reshape(6, 40, 8)
        for head in range(6):
            group = slice(0, 3) if head < 3 else slice(3, 6)
            logits = q[group] @ k[head // 3].T / 8**0.5
            keys = np.argsort(-logits.max(axis=(0, 1)))[:8]
            weights = np.exp(logits[head % 3][:, keys])
            expected = weights / weights.sum(axis=1, keepdims=True) @ v[head // 3][keys]
            np.testing.assert_allclose(out[head], expected, rtol=1e-9, atol=1e-12)
        made = attnbench("run", "attention-error", "--method", "one-choice", "-n", "32",
                         "--results", str(self.folder / "r.db"))  # fmt: skip
        self.assertIn("one-choice mixes heads, and experiments on single heads give it one at a time", made.stderr)

    def test_gates_come_from_the_hidden_states_of_a_model(self) -> None:
        results = str(self.folder / "r.db")
        for gates in (0, 30):
            made = attnbench("run", f"model-loss:gates={gates}", "--method", "forgetting", "--input", "model", "-n", "64",
                             "--replicates", "1", "--results", results)  # fmt: skip
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
            self.assertIn("the model has no keep for forgetting: drawn", made.stdout + made.stderr)
        rows = csv.DictReader(io.StringIO(attnbench("export", results).stdout))
        excess = {row["experiment"]: float(row["value"]) for row in rows if row["metric"] == "excess_bits"}
        self.assertLess(abs(excess["model-loss:gates=30"]), 1e-6)  # they are 1 to 13 digits
        self.assertGreater(excess["model-loss:gates=0"], 0.01)  # half of the weight a token

    def test_a_cost_may_be_a_range(self) -> None:
        self.assertRegex(self.checked("skipping", 0), r"(?m)^  work +PASS")
        self.assertRegex(self.checked("skipping-as-if-it-did-not", 0), r"(?m)^  work +SKIPPED +- +unproved")
        self.assertRegex(self.checked("skipping-less", 1), r"(?m)^  work +FAIL")


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop())
    unittest.main()
