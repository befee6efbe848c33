#!/usr/bin/python3
"""Write the texts that the input `model` reads, one per replicate: texts.safetensors and texts.json.

    scripts/held_out_texts.py -o harness/inputs/model

scripts/train_byte_lm.py writes them as well. Run alone, this program needs the same text that the model was trained on,
and compares its hash with model.json.

A text is `LENGTH` bytes of a held-out document from byte 4096, or the last bytes of a shorter one. Text 0 is the
captured one. The others are `OF_A_KIND` documents of each kind, those whose names have the smallest hashes, each from a
folder of its own; the kinds take turns. A document is left out if half of the text or more occurs in training documents,
in pieces of 48 bytes: such tables, licences and copied code were not really held out. The calibration text is left out
as well.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from byte_corpus import CAPTURE_OFFSET, CAPTURES, KINDS, Corpus, Document, NoPackage, read_corpus
from masked_bytes import masked_texts
from numpy.typing import NDArray
from tensor_file import write_safetensors

OF_A_KIND = 8
LENGTH = 1024
PIECE = 48  # bytes: longer than an idiom, shorter than a copied line
FACTOR = np.uint64(0x9E3779B97F4A7C15)
TABLE = 1 << 24


@dataclasses.dataclass(frozen=True)
class Excerpt:
    kind: str
    package: str
    file: str
    offset: int
    text: bytes


def piece_hashes(text: bytes) -> NDArray[np.uint64]:
    """A hash of the `PIECE` bytes from each byte on: of 16 bytes by doubling, then of three times 16."""
    hashes = np.frombuffer(text, dtype=np.uint8).astype(np.uint64)
    for length in (1, 2, 4, 8):
        hashes = hashes[:-length] * FACTOR + (hashes[length:] ^ (hashes[length:] >> np.uint64(31)))
    hashes = (hashes[:-32] * FACTOR + hashes[16:-16]) * FACTOR + hashes[32:]
    return hashes ^ (hashes >> np.uint64(29))


class Known:
    """Which pieces of some texts occur in training documents."""

    def __init__(self, training: Iterable[bytes], texts: Iterable[bytes]) -> None:
        wanted = np.unique(np.concatenate([piece_hashes(text) for text in texts]))
        table = np.zeros(TABLE, dtype=bool)  # a filter: few pieces of the training documents pass it
        table[wanted & np.uint64(TABLE - 1)] = True
        passed = []
        for text in training:
            hashes = piece_hashes(text)
            passed.append(hashes[table[hashes & np.uint64(TABLE - 1)]])
        self.pieces = np.intersect1d(np.concatenate(passed), wanted)

    def share(self, text: bytes) -> float:
        """The share of a text's bytes that are in a piece of a training document."""
        covered = np.zeros(len(text), dtype=bool)
        for i in np.flatnonzero(np.isin(piece_hashes(text), self.pieces)):
            covered[i : i + PIECE] = True
        return float(covered.mean())


def excerpt(corpus: Corpus, name: str) -> Excerpt:
    document = corpus.held_out[name]
    offset = max(0, min(CAPTURE_OFFSET, len(document.text) - LENGTH))
    return Excerpt(document.kind, document.package, name, offset, document.text[offset : offset + LENGTH])


def candidates(corpus: Corpus) -> list[Excerpt]:
    """One excerpt of every held-out document that is long enough and new, in the order of the hashes of their names;
    the captured one comes first, the calibration text is left out."""
    long = [name for name, document in corpus.held_out.items() if len(document.text) >= LENGTH]
    all_ = [excerpt(corpus, name) for name in long if name != CAPTURES["calibration"]]
    known = Known((document.text for document in corpus.training.values()), (each.text for each in all_))
    new = [each for each in all_ if known.share(each.text) < 0.5]
    return sorted(
        new, key=lambda each: (each.file != CAPTURES["measured"], hashlib.sha256(each.file.encode()).hexdigest())
    )


def choose_texts(found: list[Excerpt]) -> list[Excerpt]:
    by_kind: dict[str, list[Excerpt]] = {kind: [] for kind in KINDS}
    for each in found:
        chosen = by_kind[each.kind]
        folders = {(other.package, Path(other.file).parent) for other in chosen}
        if len(chosen) < OF_A_KIND and (each.package, Path(each.file).parent) not in folders:
            chosen.append(each)
    texts = [by_kind[kind][i] for i in range(OF_A_KIND) for kind in KINDS if i < len(by_kind[kind])]
    if len(texts) < OF_A_KIND * len(KINDS) or texts[0].file != CAPTURES["measured"]:
        counts = ", ".join(f"{len(chosen)} of {kind}" for kind, chosen in by_kind.items())
        raise SystemExit(
            f"held-out texts were found: {counts}, the first in {texts[0].file}; expected {OF_A_KIND} of each kind, "
            f"the first in {CAPTURES['measured']}: run this on Debian 12"
        )
    return texts


def digest(documents: dict[str, Document]) -> str:
    """Two runs with the same hash had the same text."""
    hashed = hashlib.sha256()
    for name, document in documents.items():
        hashed.update(f"{name}\0{len(document.text)}\0".encode() + document.text)
    return hashed.hexdigest()


def tensor_of(texts: list[bytes]) -> NDArray[np.int64]:
    """[texts, LENGTH]"""
    return np.stack([np.frombuffer(text, dtype=np.uint8) for text in texts]).astype(np.int64)


def write_texts(folder: Path, texts: list[Excerpt], calibration: Excerpt, causal: bool) -> None:
    """Writes bytes as float16, the type of all tensors beside them, which represents every integer up to 2048."""
    tensors = {"bytes": tensor_of([each.text for each in texts]), "calibration": tensor_of([calibration.text])}
    if not causal:
        tensors["masked"] = masked_texts(tensors["bytes"])[0]
    write_safetensors(
        folder / "texts.safetensors",
        {name: tensor.astype(np.float16) for name, tensor in tensors.items()},
        {"list": "texts.json"},
    )
    lines = []
    for i, each in enumerate(texts):
        entry: dict[str, Any] = {"text": i} | dataclasses.asdict(each)
        entry.pop("text")
        lines.append(json.dumps({"text": i} | entry | {"sha256": hashlib.sha256(each.text).hexdigest()}))
    (folder / "texts.json").write_text("[\n  " + ",\n  ".join(lines) + "\n]\n")


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=root / "harness/inputs/model", help="folder of the model")
    folder = parser.parse_args().output
    try:
        corpus = read_corpus()
    except NoPackage as missing:
        raise SystemExit(str(missing)) from missing
    description = json.loads((folder / "model.json").read_text())
    here = {"training": digest(corpus.training), "held_out": digest(corpus.held_out)}
    then = {files: description["corpus"][files]["sha256"] for files in here}
    if here != then:
        changed = [
            f"{package} {description['packages'].get(package, 'not there')}"
            for package, version in corpus.versions.items()
            if description["packages"].get(package) != version
        ]
        raise SystemExit(
            f"the text here is not the one that the model in {folder} was trained on; install the same packages: "
            + (", ".join(changed) or "their versions are the same, so their files were changed")
        )
    calibration = excerpt(corpus, CAPTURES["calibration"])
    write_texts(folder, choose_texts(candidates(corpus)), calibration, description["architecture"]["causal"])


if __name__ == "__main__":
    main()
