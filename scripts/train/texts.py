"""Bytes to train on and to hold out, for all tasks on text (scripts/byte_corpus.py, scripts/held_out_texts.py)."""

from __future__ import annotations

import functools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import train_byte_lm
from byte_corpus import KINDS, Corpus, NoPackage, read_corpus
from held_out_texts import candidates, choose_texts, tensor_of
from mixing import Refused
from numpy.typing import NDArray
from task import Batch

MODEL = Path(__file__).resolve().parents[2] / "harness/inputs/model"


def content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(
            f"{path} cannot be read ({error.strerror}); expected a file of the input `model`: git checkout {path}"
        ) from error


def read_halves(path: Path) -> dict[str, NDArray[np.float16]]:
    """The tensors of a safetensors file of float16, as scripts/train_byte_lm.py writes them."""
    content = content_of(path)
    (length,) = struct.unpack("<Q", content[:8])
    header: dict[str, dict[str, Any]] = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(content[8 + length :][slice(*tensor["data_offsets"])], np.float16).reshape(tensor["shape"])
        for name, tensor in header.items()
    }


@functools.cache
def corpus() -> Corpus:
    try:
        return read_corpus()
    except NoPackage as missing:
        raise Refused(str(missing)) from missing


@functools.cache
def training_texts() -> dict[str, NDArray[np.uint8]]:
    """All documents of each kind in a row."""
    return {kind: train_byte_lm.joined(corpus().training, kind) for kind in KINDS}


def windows(count: int, length: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """[count, length] bytes from anywhere in the training texts."""
    drawn: NDArray[np.int64] = train_byte_lm.windows(training_texts(), length, count, generator).numpy()
    return drawn


def pieces(texts: Batch, length: int) -> Batch:
    """Texts cut into as many pieces of a length as they have; bytes left over at their ends are dropped."""
    number = texts.read.shape[1] // length
    used = number * length
    return Batch(
        texts.read[:, :used].reshape(-1, length),
        texts.meant[:, :used].reshape(-1, length),
        texts.counts[:, :used].reshape(-1, length),
        pieces=number,
    )


@functools.cache
def held_out_texts() -> NDArray[np.int64]:
    """[texts, 1024]: 8 held-out documents of each kind, the texts of the input `model`."""
    return tensor_of([each.text for each in choose_texts(candidates(corpus()))])
