#!/usr/bin/python3
"""The numbers that attnbench reads from GGUF files against those of PyPI's gguf, bit by bit.

Run as tests/scripts/gguf_test.py [FILE.gguf...]. ATTNBENCH names a built attnbench; attnbench_tests is beside it. Files
on the command line are compared as well. Without the packages gguf and numpy: exit code 77.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if find_spec("gguf") is None or find_spec("numpy") is None:
    print("skipped: this Python has no gguf or no numpy; `pip install gguf==0.19.0` in a venv installs both")
    sys.exit(77)

import gguf
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TESTS = Path(os.environ.get("ATTNBENCH", ROOT / "build/release/attnbench")).with_name("attnbench_tests")
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
FILES: list[str] = []


def ours(path: Path, folder: Path) -> np.memmap[Any, np.dtype[np.float32]]:
    """All tensors of a file in the order of their names, as attnbench reads them."""
    out = folder / "numbers"
    environment = {**os.environ, "ATTNBENCH_GGUF": str(path), "ATTNBENCH_GGUF_OUT": str(out)}
    made = subprocess.run([TESTS, "[gguf-values]"], env=environment, capture_output=True, text=True)
    if made.returncode != 0:
        raise AssertionError(made.stdout + made.stderr)
    return np.memmap(out, np.float32, "r")


def fnv1a(numbers: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in numbers:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def generated_blocks(code: int, size: int, floats: list[int], count: int) -> bytes:
    """The blocks of random_blocks in tests/inputs/gguf_blocks_test.cpp."""
    blocks = bytearray()
    state = code
    for first in range(0, count * size, size):
        for _ in range(size):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            blocks.append(state >> 56)
        for upper in floats:
            blocks[first + upper] &= 0xBF
    return bytes(blocks)


class GgufTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compare(self, path: Path) -> None:
        """Every number of the file; a NaN equals every other NaN, since a conversion may change its bits."""
        found = ours(path, self.folder)
        first = 0
        for tensor in sorted(gguf.GGUFReader(path).tensors, key=lambda tensor: tensor.name.encode()):
            with np.errstate(all="ignore"):
                expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).ravel()
            part = found[first : first + expected.size]
            self.assertEqual(part.size, expected.size, tensor.name)
            same = (part.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(part) & np.isnan(expected))
            self.assertTrue(same.all(), f"{tensor.name}: {(~same).sum()} of {same.size} numbers differ")
            first += expected.size
        self.assertEqual(first, found.size)

    def test_random_blocks_of_every_type(self) -> None:
        random = np.random.default_rng(1)
        for which in range(4):
            path = self.folder / f"random-{which}.gguf"
            writer = gguf.GGUFWriter(path, "llama")
            if which == 3:
                writer.add_custom_alignment(256)
            for name in TYPES:
                kind = gguf.GGMLQuantizationType[name]
                numbers, size = gguf.GGML_QUANT_SIZES[kind]
                blocks = random.integers(0, 256, (7, 512 // numbers * size), np.uint8)
                if name == "F32":
                    writer.add_tensor(name, blocks.view(np.float32))
                else:
                    writer.add_tensor(name, blocks, raw_dtype=kind)
            # Every float16 and every bfloat16.
            patterns = np.arange(65536, dtype=np.uint16).reshape(16, -1).view(np.uint8)
            writer.add_tensor("halves", patterns, raw_dtype=gguf.GGMLQuantizationType.F16)
            writer.add_tensor("brains", patterns, raw_dtype=gguf.GGMLQuantizationType.BF16)
            writer.add_array("tokens", ["a", "b"])
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            self.compare(path)

    def test_the_hashes_of_the_test_in_cpp(self) -> None:
        text = (ROOT / "tests/inputs/gguf_blocks_test.cpp").read_text()
        cases = re.findall(r"\{(\w+), \{([\d, ]+)\}, 0x([0-9a-f]{16})\}", text)
        self.assertEqual({name.upper() for name, _, _ in cases}, set(TYPES))
        for name, floats, found in cases:
            kind = gguf.GGMLQuantizationType[name.upper()]
            size = gguf.GGML_QUANT_SIZES[kind][1]
            blocks = generated_blocks(int(kind), size, [int(upper) for upper in floats.split(",")], 64)
            numbers = gguf.quants.dequantize(np.frombuffer(blocks, np.uint8), kind)
            self.assertEqual(fnv1a(numbers.astype("<f4").tobytes()), int(found, 16), name)

    def test_given_files(self) -> None:
        for file in FILES:
            self.compare(Path(file))


if __name__ == "__main__":
    FILES, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
