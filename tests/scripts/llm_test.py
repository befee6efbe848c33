#!/usr/bin/python3
"""Language models (harness/inputs/checkpoint/) against Hugging Face's `transformers`: tokens, logits and bits per byte.

Small random models of each architecture that attnbench reads, made by this test, and SmolLM2 if `attnbench fetch
smollm2` has it in the cache. ATTNBENCH names the program, beside which attnbench_tests lies. Needs PyPI's torch,
transformers and, for SmolLM2, gguf. Without them: exit code 77.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

try:
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError:
    print("skipped: needs PyPI's torch and transformers")
    sys.exit(77)

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("ATTNBENCH", ROOT / "build/release/attnbench"))
CACHE = Path(
    os.environ.get("ATTNBENCH_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").joinpath("attnbench")
)
SMOLLM2 = CACHE / "smollm2.gguf"
SIZES = {
    "hidden_size": 48,
    "intermediate_size": 100,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,  # the usual 0.02 gives logits near 0, on which every model agrees
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
CONFIGS: dict[str, Any] = {
    "llama": lambda n: transformers.LlamaConfig(vocab_size=n, **SIZES),
    "llama, tied, stretched positions": lambda n: transformers.LlamaConfig(
        vocab_size=n, tie_word_embeddings=True, rope_parameters=LLAMA3, **SIZES
    ),
    "mistral": lambda n: transformers.MistralConfig(vocab_size=n, sliding_window=None, **SIZES),
    "qwen2": lambda n: transformers.Qwen2Config(vocab_size=n, **SIZES),
    "qwen3": lambda n: transformers.Qwen3Config(vocab_size=n, head_dim=16, **SIZES),
}


def some_text() -> str:
    return (ROOT / "harness/inputs/texts/README.md").read_text() * 3


def trained_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [some_text()], trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer


def bits_per_byte(logits: torch.Tensor, tokens: torch.Tensor, sizes: list[int]) -> float:
    loss = torch.nn.functional.cross_entropy(logits[:-1].double(), tokens[1:], reduction="sum")
    return float(loss) / math.log(2) / sum(sizes[1:])


class ModelsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.environment = {**os.environ, "ATTNBENCH_CACHE": str(self.folder / "cache")}

    def logits(self, model: Path, text: str) -> tuple[list[int], np.ndarray[Any, Any]]:
        (self.folder / "text").write_text(text)
        out = self.folder / "logits"
        environment = {
            **self.environment,
            "ATTNBENCH_LLM": str(model),
            "ATTNBENCH_TEXT": str(self.folder / "text"),
            "ATTNBENCH_OUT": str(out),
        }
        tests = PROGRAM.with_name("attnbench_tests")
        done = subprocess.run([tests, "[logits]"], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(out, "rb") as file:
            rows, columns = np.fromfile(file, np.int32, 2)
            tokens = np.fromfile(file, np.int32, rows)
            return tokens.tolist(), np.fromfile(file, np.float32).reshape(rows, columns)

    def bits(self, model: Path, n: int, text: Path) -> float:
        """bits_per_byte that `run model-loss` measures with exact attention."""
        results = str(self.folder / "results.db")
        spec = f"llm:{model},file={text}"
        measure = ["run", "model-loss", "--input", spec, "--methods", "softmax", "-n", str(n), "--replicates", "1"]
        for arguments in ([*measure, "--results", results], ["export", results, "--metric", "bits_per_byte"]):
            done = subprocess.run([PROGRAM, *arguments], env=self.environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        Path(results).unlink()
        return float(next(csv.DictReader(done.stdout.splitlines()))["value"])

    def test_small_models_of_each_architecture(self) -> None:
        tokenizer = trained_tokenizer()
        text = some_text()[:600]
        for name, config in CONFIGS.items():
            with self.subTest(name):
                torch.manual_seed(1)
                model = transformers.AutoModelForCausalLM.from_config(config(tokenizer.get_vocab_size())).eval()
                for parameter in model.parameters():  # biases and norms that do something
                    if parameter.ndim == 1:
                        torch.nn.init.normal_(parameter, float(parameter.mean() > 0.5), 0.3)
                folder = self.folder / name.replace(" ", "-").replace(",", "")
                model.save_pretrained(folder)
                tokenizer.save(str(folder / "tokenizer.json"))
                tokens, logits = self.logits(folder, text)
                self.assertEqual(tokens, tokenizer.encode(text).ids)
                with torch.no_grad():
                    expected = model(torch.tensor([tokens])).logits[0]
                self.assertGreater(float(expected.abs().max()), 1)
                self.assertLess(float((torch.from_numpy(logits) - expected).abs().max()), 1e-3)
                sizes = [len(tokenizer.decode([token]).encode()) for token in tokens]
                bits = bits_per_byte(expected[:64], torch.tensor(tokens[:64]), sizes[:64])
                self.assertAlmostEqual(self.bits(folder, 64, self.folder / "text"), bits, delta=1e-4)

    @unittest.skipUnless(SMOLLM2.exists(), "attnbench fetch smollm2 was not run")
    def test_smollm2(self) -> None:
        texts = json.loads((ROOT / "harness/inputs/texts/texts.json").read_text())
        self.assertEqual(len(texts), 64)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            SMOLLM2.parent, gguf_file=SMOLLM2.name, dtype=torch.float32
        ).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(SMOLLM2.parent, gguf_file=SMOLLM2.name)
        text = some_text()[:1500]
        tokens, logits = self.logits(SMOLLM2, text)
        self.assertEqual(tokenizer.decode(tokens), text)
        with torch.no_grad():
            expected = model(torch.tensor([tokens])).logits[0]
        self.assertLess(float((torch.from_numpy(logits) - expected).abs().max()), 1e-3)
        sizes = [len(tokenizer.decode([token]).encode()) for token in tokens]
        bits = bits_per_byte(expected[:256], torch.tensor(tokens[:256]), sizes[:256])
        self.assertAlmostEqual(self.bits(SMOLLM2, 256, self.folder / "text"), bits, delta=1e-4)


if __name__ == "__main__":
    unittest.main()
