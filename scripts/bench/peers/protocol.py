"""The side of a peer in `attnbench run speed:peer=FILE.py`: another library that takes turns with attnbench.

attnbench starts the file with its interpreter for Python (--python), and sends one JSON line at a time. It expects one line in
answer:

  {"prepare": SPEC, "tensors": FILE, "causal": false, "threads": 1}
      -> {"id": 0, "output": FILE, "library": "PyTorch 2.13.0"} or {"none": REASON}
  {"run": ID, "iterations": 3}
      -> {"seconds": 0.0123}, of one call

Tensors are safetensors in double: q, k, v of shape [heads, n, d] (float numbers; q and k scaled by d^-1/4 each) and what the
method drew, of shape [heads, ...]. The output is float. attnbench compares the output with its own before it times anything.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.float32]]
Doubles = dict[str, NDArray[np.float64]]
SCALARS = {"F32": np.float32, "F64": np.float64}  # by safetensors' names
# How long calls run while their cores are counted, and how many cores more than asked a measurement may find.
COUNTED_SECONDS, SPARE_CORES = 0.1, 0.15


class NoForm(Exception):
    """The library has no form of the method; the text is the reason."""


@dataclass(frozen=True)
class Request:
    """One method, as attnbench asks for it. arrays: all tensors in float; drawn: those that the method drew, in double."""

    spec: str
    causal: bool
    threads: int
    arrays: Arrays
    drawn: Doubles

    @property
    def name(self) -> str:
        """The method without its parameters."""
        return self.spec.partition(":")[0]

    @property
    def parameters(self) -> dict[str, str]:
        """Those that the spec gives."""
        return dict(pair.split("=", 1) for pair in self.spec.partition(":")[2].split(",") if pair)

    def get(self, name: str, default: str) -> str:
        """A parameter."""
        return self.parameters.get(name, default)

    def require(self, library: str, known: dict[str, set[str]], causal: set[str]) -> None:
        """Refuses a method without a form. known: the parameters of each method; causal: the methods with a causal form."""
        if self.name not in known:
            raise NoForm(f"there is no form of {self.name} for {library} here")
        if unknown := sorted(set(self.parameters) - known[self.name]):
            raise NoForm(f"the form of {self.name} for {library} has no {', '.join(unknown)}")
        if self.causal and self.name not in causal:
            raise NoForm(f"there is no causal form of {self.name} for {library} here")


@dataclass(frozen=True)
class Prepared:
    """A method that is ready. call: does all the work of one call and waits for its end; result: its output."""

    call: Callable[[], Any]
    result: Callable[[Any], NDArray[np.float32]]


def read_tensors(path: str) -> Doubles:
    """The tensors of a safetensors file, in double."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            stored = np.frombuffer(raw[begin:end], SCALARS[entry["dtype"]])
            arrays[name] = stored.astype(np.float64).reshape(entry["shape"])
    return arrays


def write_tensor(path: str, array: NDArray[np.float32]) -> None:
    """One float32 tensor, called out, as a safetensors file."""
    data = np.ascontiguousarray(array, np.float32).tobytes()
    entry = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({"out": entry}).encode()
    header += b" " * (-len(header) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(header)) + header + data)


def require_threads(call: Callable[[], Any], threads: int) -> None:
    """Refuses calls that keep more cores busy than asked: the processor time of this process over the time of the clock."""
    begin, used = time.perf_counter(), time.process_time()
    while time.perf_counter() < begin + COUNTED_SECONDS:
        call()
    cores = (time.process_time() - used) / (time.perf_counter() - begin)
    if cores > threads + SPARE_CORES:
        raise NoForm(f"its calls keep {cores:.1f} cores busy, where {threads} were asked")


def serve(description: str | None, prepare: Callable[[Request], Prepared], library: Callable[[], str]) -> None:
    """Answers requests until the input ends. library: its name and version, asked after the first method is prepared."""
    argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    calls: list[Callable[[], Any]] = []

    def prepared(asked: dict[str, Any]) -> dict[str, Any]:
        doubles = read_tensors(asked["tensors"])
        arrays = {name: array.astype(np.float32) for name, array in doubles.items()}
        drawn = {name: array for name, array in doubles.items() if name not in ("q", "k", "v")}
        request = Request(asked["prepare"], asked["causal"], asked["threads"], arrays, drawn)
        try:
            made = prepare(request)
            output = made.result(made.call())
            require_threads(made.call, request.threads)
        except NoForm as reason:
            return {"none": str(reason)}
        path = asked["tensors"] + ".output"
        write_tensor(path, output)
        calls.append(made.call)
        return {"id": len(calls) - 1, "output": path, "library": library()}

    def seconds(call: Callable[[], Any], iterations: int) -> float:
        begin = time.perf_counter()
        for _ in range(iterations):
            call()
        return (time.perf_counter() - begin) / iterations

    for line in sys.stdin:
        asked = json.loads(line)
        answer = (
            prepared(asked) if "prepare" in asked else {"seconds": seconds(calls[asked["run"]], asked["iterations"])}
        )
        print(json.dumps(answer), flush=True)
