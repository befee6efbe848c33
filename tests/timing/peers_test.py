#!/usr/bin/python3
"""Peers of the experiment speed: the protocol, with one in NumPy, and the libraries of scripts/bench/peers.

Run as tests/timing/peers_test.py PROGRAM. The libraries are tested where this Python has them: scripts/test_torch.sh installs
them.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
import unittest
from contextlib import nullcontext, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "scripts/bench/peers"
PROGRAM = ""

sys.path.insert(0, str(LIBRARIES))
import protocol


class Timed(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def timed(self, peer: Path, methods: list[str], *words: str, code: int = 0) -> tuple[set[str], str]:
        """The methods whose peer had turns, and all that was printed."""
        results = self.folder / f"{peer.stem}{len(words)}.db"
        command = [PROGRAM, "run", f"speed:blocks=2,turn=1,peer={peer}", *(f"--method={method}" for method in methods)]
        shape = ["-n", "256", "-d", "16", "--heads", "2", "--precision", "f32", "--python", sys.executable]
        made = subprocess.run(
            [*command, *shape, *words, "--results", str(results)], capture_output=True, text=True, cwd=self.folder
        )
        self.assertEqual(made.returncode, code, made.stdout + made.stderr)
        if code:
            return set(), made.stderr
        exported = subprocess.run([PROGRAM, "export", str(results), "--clock"], capture_output=True, text=True)
        rows = csv.DictReader(io.StringIO(exported.stdout))
        return {row["method"] for row in rows if row["metric"] == "peer_speedup"}, made.stdout + made.stderr


class ProtocolTest(Timed):
    PEER = ROOT / "tests/timing/peers/numpy_peer.py"

    def test_a_right_peer_takes_turns_and_others_say_why_not(self) -> None:
        methods = ["softmax", "linear", "performer:m=8", "uniform", "linear:features=exp"]
        found, said = self.timed(self.PEER, methods, "--threads", "1", "--bidirectional")
        self.assertEqual(found, {"softmax"})
        self.assertRegex(said, r"the peer is NumPy \d")
        for method, reason in (
            ("linear", r"the peer's output differs from ours by \S+ of its norm: it computes something else"),
            ("performer:m=8", r"there is no random number today"),
            ("uniform", r"there is no form of uniform for NumPy here"),
            ("linear:features=exp", r"the form of linear for NumPy has no features"),
        ):
            self.assertRegex(said, rf"{method} has no peer: {reason}")

    def test_calls_that_keep_more_cores_busy_than_asked_are_refused(self) -> None:
        for cores, asked, refused in ((1.0, 1, False), (1.9, 1, True), (1.9, 2, False), (2.4, 2, True)):
            with self.subTest(cores=cores, asked=asked):
                now = [0.0]

                def call() -> None:
                    now[0] += 0.01

                with mock.patch.object(protocol, "time") as time:
                    time.perf_counter = lambda: now[0]
                    time.process_time = lambda: cores * now[0]
                    said = f"keep {cores} cores busy, where {asked} were asked"
                    with self.assertRaisesRegex(protocol.NoForm, said) if refused else nullcontext():
                        protocol.require_threads(call, asked)

    def test_seconds_are_of_one_call_and_the_first_call_is_validated(self) -> None:
        given, now = self.folder / "given", [0.0]
        protocol.write_tensor(str(given), np.arange(6, dtype=np.float32).reshape(1, 2, 3))

        def call() -> float:
            now[0] += 0.25
            return now[0]

        def prepare(request: protocol.Request) -> protocol.Prepared:
            self.assertEqual((request.name, request.get("m", ""), request.causal, request.threads), ("a", "3", True, 2))
            return protocol.Prepared(call, lambda made: request.arrays["out"] + made)

        asked = [
            {"prepare": "a:m=3", "tensors": str(given), "causal": True, "threads": 2},
            {"run": 0, "iterations": 5},
        ]
        said = io.StringIO()
        with mock.patch.object(protocol, "time") as time, mock.patch("sys.argv", ["peer"]), redirect_stdout(said):
            time.perf_counter = time.process_time = lambda: now[0]
            with mock.patch("sys.stdin", io.StringIO("".join(f"{json.dumps(line)}\n" for line in asked))):
                protocol.serve("a peer", prepare, lambda: "Library 1")
        first, second = map(json.loads, said.getvalue().splitlines())
        self.assertEqual(first, {"id": 0, "output": f"{given}.output", "library": "Library 1"})
        self.assertEqual(second, {"seconds": 0.25})
        output = protocol.read_tensors(first["output"])["out"]
        np.testing.assert_array_equal(output, np.arange(6).reshape(1, 2, 3) + 0.25)

    def test_a_causal_mask_is_told(self) -> None:
        found, said = self.timed(self.PEER, ["softmax", "linear"], "--threads", "1", "--causal")
        self.assertEqual(found, {"softmax"})
        self.assertRegex(said, r"linear has no peer: there is no causal form of linear for NumPy here")

    def test_a_program_that_is_not_there_is_refused_before_anything_runs(self) -> None:
        _, said = self.timed(self.folder / "missing.py", ["softmax"], "--threads", "1", code=2)
        self.assertRegex(said, r"missing.py is not an executable program; expected a path such as scripts/bench/peers")


@unittest.skipUnless(find_spec("onnxruntime"), "scripts/test_torch.sh installs the libraries and runs these tests")
class LibrariesTest(Timed):
    def test_methods_since_2022_compute_the_same(self) -> None:
        methods = {
            "sampled:s=24",
            "hyper:block=64,s=32",
            "kdeformer:block=64,s=32",
            "lara:c=24",
            "eva:c=40,window=32",
            "skyformer:landmarks=24",
            "quest:page=8,keep=5",
            "moba:block=32",
            "loki:r=6,k=24",
            "sparq:r=6,k=40",
            "sparq:r=6,k=24,local=0,mean=false",
            "evict:keep=100",
        }
        peer = LIBRARIES / "pytorch_since_2022.py"
        found, said = self.timed(peer, sorted(methods), "--threads", "1", "--bidirectional")
        self.assertEqual(found, methods, said)
        others = ["quest", "evict:score=knorm", "sparq:k=8"]
        found, said = self.timed(peer, others, "--threads", "1", "--bidirectional", "--seed", "2")
        self.assertEqual(found, {"quest"})
        self.assertIn("the form of evict for PyTorch has no score", said)
        self.assertIn("local = 16 leaves rows of k = 8 keys nothing to choose", said)

    def test_every_library_computes_the_same(self) -> None:
        for name, library, methods in (
            ("pytorch", "PyTorch 2", {"softmax", "linear", "performer:m=32", "local:window=16"}),
            ("onnx_runtime", "ONNX Runtime 1", {"softmax"}),
            ("openvino_cpu", "OpenVINO 202", {"softmax"}),
            ("jax_cpu", "JAX 0", {"softmax", "linear", "performer:m=32"}),
        ):
            for mask in ("--bidirectional", "--causal"):
                with self.subTest(name=name, mask=mask):
                    found, said = self.timed(LIBRARIES / f"{name}.py", sorted(methods), "--threads", "1", mask)
                    self.assertEqual(found, methods, said)
                    self.assertIn(f"the peer is {library}", said)


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
