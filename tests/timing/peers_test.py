#!/usr/bin/python3
"""Peers of the experiment speed: the protocol, with one in NumPy, and the libraries of scripts/bench/peers.

Run as tests/timing/peers_test.py PROGRAM. The libraries are tested where this Python has them: scripts/test_torch.sh installs
them.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "scripts/bench/peers"
PROGRAM = ""


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
        methods = ["softmax", "linear", "performer:m=8", "local:window=5", "uniform", "linear:features=exp"]
        found, said = self.timed(self.PEER, methods, "--threads", "1", "--bidirectional")
        self.assertEqual(found, {"softmax"})
        self.assertRegex(said, r"the peer is NumPy \d")
        for method, reason in (
            ("linear", r"the peer's output differs from ours by \S+ of its norm: it computes something else"),
            ("performer:m=8", r"there is no random number today"),
            ("local:window=5", r"its calls keep \d\.\d cores busy, where 1 were asked"),
            ("uniform", r"there is no form of uniform for NumPy here"),
            ("linear:features=exp", r"the form of linear for NumPy has no features"),
        ):
            self.assertRegex(said, rf"{method} has no peer: {reason}")

    def test_a_causal_mask_is_told(self) -> None:
        found, said = self.timed(self.PEER, ["softmax", "linear"], "--threads", "1", "--causal")
        self.assertEqual(found, {"softmax"})
        self.assertRegex(said, r"linear has no peer: there is no causal form of linear for NumPy here")

    def test_a_program_that_is_not_there_is_refused_before_anything_runs(self) -> None:
        _, said = self.timed(self.folder / "missing.py", ["softmax"], "--threads", "1", code=2)
        self.assertRegex(said, r"missing.py is not an executable program; expected a path such as scripts/bench/peers")


@unittest.skipUnless(find_spec("onnxruntime"), "scripts/test_torch.sh installs the libraries and runs these tests")
class LibrariesTest(Timed):
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
