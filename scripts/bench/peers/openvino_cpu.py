#!/usr/bin/python3
"""Exact attention in OpenVINO: a model of one node, ScaledDotProductAttention, compiled for the processor in float32.

    attnbench run speed:peer=scripts/bench/peers/openvino_cpu.py --method softmax --python VENV/bin/python ...

protocol.py says how attnbench talks to it. The interpreter needs the package openvino.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import NoForm, Prepared, Request, serve


def prepare(request: Request) -> Prepared:
    """The compiled model with its inputs set."""
    request.require("OpenVINO", {"softmax": set()}, {"softmax"})
    try:
        import openvino as ov
        from openvino import opset13 as ops
    except ImportError as error:
        raise NoForm(f"{error}; pip install openvino") from None
    given = {name: ops.parameter([1, *request.arrays[name].shape], np.float32, name) for name in "qkv"}
    out = ops.scaled_dot_product_attention(
        given["q"], given["k"], given["v"], scale=ops.constant(np.float32(1)), causal=request.causal
    )
    how = {"INFERENCE_NUM_THREADS": request.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(ov.Model([out], list(given.values())), "CPU", how)
    asked = compiled.create_infer_request()
    for i, name in enumerate("qkv"):
        asked.set_input_tensor(i, ov.Tensor(request.arrays[name][None]))

    def result(_: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = asked.get_output_tensor(0).data[0].copy()
        return found

    return Prepared(asked.infer, result)


def library() -> str:
    """Name and version."""
    import openvino

    return f"OpenVINO {openvino.__version__}"


if __name__ == "__main__":
    serve(__doc__, prepare, library)
