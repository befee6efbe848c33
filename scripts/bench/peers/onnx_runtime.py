#!/usr/bin/python3
"""Exact attention in ONNX Runtime: a model of one node, its fused MultiHeadAttention for processors.

    attnbench run speed:peer=scripts/bench/peers/onnx_runtime.py --method softmax --python VENV/bin/python ...

protocol.py says how attnbench talks to it. The interpreter needs the packages onnx and onnxruntime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import NoForm, Prepared, Request, serve

DOMAIN = "com.microsoft"


def model_of(heads: int, n: int, d: int, dv: int, causal: bool) -> bytes:
    """The node takes and gives [1, n, heads * d], as a model has it between its projections."""
    from onnx import TensorProto, helper

    node = helper.make_node(
        "MultiHeadAttention", ["q", "k", "v"], ["out"], domain=DOMAIN, num_heads=heads, scale=1.0,
        unidirectional=int(causal),
    )  # fmt: skip
    sizes = {"q": d, "k": d, "v": dv, "out": dv}
    infos = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n, heads * x]) for name, x in sizes.items()
    }
    graph = helper.make_graph([node], "attention", [infos[name] for name in "qkv"], [infos["out"]])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return model


def beside_each_other(heads: NDArray[np.float32]) -> NDArray[np.float32]:
    """[heads, n, d] as [1, n, heads * d]."""
    return np.ascontiguousarray(heads.transpose(1, 0, 2)).reshape(1, heads.shape[1], -1)


def prepare(request: Request) -> Prepared:
    """The session with its inputs and its output bound, so that a call copies nothing."""
    request.require("ONNX Runtime", {"softmax": set()}, {"softmax"})
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as error:
        raise NoForm(f"{error}; pip install onnx onnxruntime") from None
    heads, n, d = request.arrays["q"].shape
    dv = request.arrays["v"].shape[2]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = request.threads, 1
    # Threads that wait for the next call would take the processor from attnbench's turn.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    model = model_of(heads, n, d, dv, request.causal)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name in "qkv":
        binding.bind_ortvalue_input(
            name, onnxruntime.OrtValue.ortvalue_from_numpy(beside_each_other(request.arrays[name]))
        )
    out = onnxruntime.OrtValue.ortvalue_from_shape_and_type([1, n, heads * dv], np.float32)
    binding.bind_ortvalue_output("out", out)

    def result(_: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = out.numpy().reshape(n, heads, dv).transpose(1, 0, 2)
        return found

    return Prepared(lambda: session.run_with_iobinding(binding), result)


def library() -> str:
    """Name and version."""
    import onnxruntime

    return f"ONNX Runtime {onnxruntime.__version__}"


if __name__ == "__main__":
    serve(__doc__, prepare, library)
