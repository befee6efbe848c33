"""Writes safetensors files: an 8-byte length, a JSON header and the data (huggingface.co/docs/safetensors)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64"}


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Writes the whole file or nothing. tensors: float16, float32 or float64, of any shape."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    blobs, offset = [], 0
    for name, tensor in tensors.items():
        blob = np.ascontiguousarray(tensor).tobytes()
        header[name] = {
            "dtype": DTYPES[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    temporary.replace(path)
