#!/usr/bin/env python3
"""Write the texts that the input `model` reads, one per replicate: texts.safetensors and texts.json.

    scripts/held_out_texts.py -o harness/inputs/model

scripts/train_byte_lm.py writes them as well. Run alone, this program needs the same library that the model was
trained on, and compares the numbers of bytes with model.json. A text is 1024 bytes of a held-out file from byte 4096,
or the last 1024 bytes of a shorter file. Text 0 is the captured one, and the others follow by path. A text is left
out if half of it or more occurs in training files, in pieces of 48 bytes: such codec tables and copied code were not
really held out. The calibration text is left out as well. If there are fewer files than texts, the longest files give
a second text from their middle, and those come last.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from byte_corpus import CAPTURE_OFFSET, CAPTURES, read_corpus
from tensor_file import write_safetensors

COUNT = 32
LENGTH = 1024
PIECE = 48  # bytes: longer than an idiom, shorter than a copied line


class Known:
    """The pieces of the training files."""

    def __init__(self, training: Iterable[bytes]) -> None:
        self.pieces = {hash(text[i : i + PIECE]) for text in training for i in range(len(text) - PIECE + 1)}

    def share(self, text: bytes) -> float:
        """The share of a text's bytes that are in a piece of a training file."""
        covered = np.zeros(len(text), dtype=bool)
        for i in range(len(text) - PIECE + 1):
            if hash(text[i : i + PIECE]) in self.pieces:
                covered[i : i + PIECE] = True
        return float(covered.mean())


def choose_texts(training: dict[str, bytes], held_out: dict[str, bytes]) -> list[tuple[str, int]]:
    """File and offset of each text."""
    known = Known(training.values())
    measured, calibration = CAPTURES["measured"], CAPTURES["calibration"]

    def new(name: str, offset: int) -> bool:
        return known.share(held_out[name][offset : offset + LENGTH]) < 0.5

    files = {name: len(text) for name, text in held_out.items() if len(text) >= LENGTH and name != calibration}
    first = {name: min(CAPTURE_OFFSET, size - LENGTH) for name, size in files.items()}
    texts = [(name, offset) for name, offset in first.items() if new(name, offset)]
    texts.sort(key=lambda text: (text[0] != measured, text))
    longest = sorted((name for name, _ in texts), key=lambda name: -files[name])
    middles = [(name, files[name] // 2) for name in longest if files[name] // 2 >= first[name] + LENGTH]
    second = [text for text in middles if new(*text)][: max(0, COUNT - len(texts))]
    chosen = texts[:COUNT] + sorted(second)
    if len(chosen) < COUNT or chosen[0] != (measured, CAPTURE_OFFSET):
        raise SystemExit(
            f"{len(chosen)} texts of {LENGTH} bytes were found, the first of {chosen[0]}; expected {COUNT}"
        )
    return chosen


def write_texts(folder: Path, training: dict[str, bytes], held_out: dict[str, bytes]) -> None:
    """Writes bytes as float16, the type of all tensors beside them, which represents every integer up to 2048."""
    chosen = choose_texts(training, held_out)
    texts = [held_out[name][offset : offset + LENGTH] for name, offset in chosen]
    write_safetensors(
        folder / "texts.safetensors",
        {"bytes": np.stack([np.frombuffer(text, dtype=np.uint8) for text in texts]).astype(np.float16)},
        {"list": "texts.json"},
    )
    lines = [
        json.dumps({"text": i, "file": name, "offset": offset, "sha256": hashlib.sha256(text).hexdigest()})
        for i, ((name, offset), text) in enumerate(zip(chosen, texts))
    ]
    (folder / "texts.json").write_text("[\n  " + ",\n  ".join(lines) + "\n]\n")


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=root / "harness/inputs/model", help="folder of the model")
    folder = parser.parse_args().output
    training, held_out = read_corpus()
    description = json.loads((folder / "model.json").read_text())
    for kind, files in (("training", training), ("held_out", held_out)):
        # One byte joins each file to the next.
        bytes_here, bytes_then = sum(map(len, files.values())) + len(files) - 1, description[f"{kind}_bytes"]
        if bytes_here != bytes_then:
            raise SystemExit(
                f"this library has {bytes_here} {kind} bytes, the model's had {bytes_then}: run that Python"
            )
    write_texts(folder, training, held_out)


if __name__ == "__main__":
    main()
