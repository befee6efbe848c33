#!/usr/bin/python3
"""The program computes what published libraries compute, given their projection as --state and their switches as
parameters.

Each library's features are written here as its code computes them, in float32 (anchors: Google's and lucidrains'
FAVOR+, HKUNLP's, HazyResearch's, fast-transformers' hyperbolic one, the generalised ReLU kernel), and the kernel
estimate and the output of `attnbench attend` must be theirs to 1e-6. Run as tests/approximations/libraries_test.py PROGRAM.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
PROGRAM = ""
HEADS, N, D, DV, M = 2, 150, 16, 12, 40
TOLERANCE = 1e-6


def write_safetensors(path: Path, tensors: dict[str, Array]) -> None:
    header: dict[str, object] = {}
    body = b""
    for name, tensor in tensors.items():
        data = np.ascontiguousarray(tensor, dtype=np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_safetensors(path: Path) -> dict[str, Array]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], dtype=np.float32).reshape(entry["shape"])
    return tensors


def favor_plus(x: Array, W: Array, is_query: bool, stabiliser: str, epsilon: float, plain: bool) -> Array:
    """x [n, d] as the model has it, W [m, d]; features [n, m] as the library named by its switches computes them."""
    x = x * np.float32(x.shape[-1] ** -0.25)
    u = x @ W.T
    h = (x * x).sum(axis=-1, keepdims=True) / 2
    exponent = u - h
    largest_of = u if stabiliser == "projection-only" else exponent
    rows = is_query or stabiliser == "per-key"
    c = largest_of.max(axis=-1, keepdims=True) if rows else largest_of.max()
    if stabiliser == "none":
        c = np.float32(0)
    ratio = np.float32(W.shape[0] ** -0.5)
    features: Array
    if plain:
        features = ratio * np.exp(exponent - c) + np.float32(epsilon)
    else:
        features = ratio * (np.exp(exponent - c) + np.float32(epsilon))
    return features


def raw_qr_rows(rng: np.random.Generator, norms: str) -> Array:
    """Block-orthogonal rows as libraries make them: QR without a sign fix."""
    blocks = []
    for _ in range(0, M, D):
        gaussian = rng.standard_normal((D, D))
        q, _ = np.linalg.qr(gaussian)
        lengths = {
            "chi": np.linalg.norm(rng.standard_normal((D, D)), axis=1),
            "same-block": np.linalg.norm(gaussian, axis=1),
            "sqrt-d": np.full(D, np.sqrt(D)),
        }[norms]
        blocks.append(lengths[:, None] * q.T)
    rows: Array = np.concatenate(blocks)[:M].astype(np.float32)
    return rows


class Libraries(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        rng = np.random.default_rng(7)
        self.q, self.k = (rng.standard_normal((HEADS, N, D)).astype(np.float32) for _ in range(2))
        self.v = rng.standard_normal((HEADS, N, DV)).astype(np.float32)
        write_safetensors(self.folder / "in.safetensors", {"q": self.q, "k": self.k, "v": self.v})

    def attend(self, spec: str, W: Array) -> dict[str, Array]:
        write_safetensors(self.folder / "w.safetensors", {"projection": W})
        command = [PROGRAM, "attend", spec, "--input", "in.safetensors", "--output", "out.safetensors", "--kernel"]
        subprocess.run([*command, "--state", "w.safetensors"], cwd=self.folder, check=True)
        return read_safetensors(self.folder / "out.safetensors")

    def compare(
        self, spec: str, W: Array, q_features: list[Array], k_features: list[Array], stabilised: bool = True
    ) -> None:
        got = self.attend(spec, W)
        for h in range(HEADS):
            kernel = q_features[h] @ k_features[h].T
            ours = got["kernel"][h]
            if stabilised:
                ours = ours * np.exp(-got["kernel_log_rows"][h] - got["kernel_log_columns"][h].T)
            np.testing.assert_allclose(
                ours, kernel, rtol=5 * TOLERANCE, atol=TOLERANCE * np.abs(kernel).max(), err_msg=spec
            )
            out = q_features[h] @ (k_features[h].T @ self.v[h]) / (q_features[h] @ k_features[h].sum(axis=0))[:, None]
            self.assertLessEqual(np.abs(got["out"][h] - out).max(), TOLERANCE * np.abs(self.v[h]).max(), spec)

    def check_favor_plus(self, W: Array, stabiliser: str, epsilon: float, plain: bool) -> None:
        spec = f"performer:m={W.shape[0]},stabiliser={stabiliser},epsilon={epsilon}"
        if plain:
            spec += ",epsilon_kind=plain"
        features = [
            [favor_plus(x[h], W, x is self.q, stabiliser, epsilon, plain) for h in range(HEADS)]
            for x in (self.q, self.k)
        ]
        self.compare(spec, W, features[0], features[1])

    def test_favor_plus_of_every_library(self) -> None:
        rng = np.random.default_rng(8)
        for norms in ("chi", "same-block", "sqrt-d"):
            W = raw_qr_rows(rng, norms)
            self.check_favor_plus(W, "projection-only", 1e-4, plain=False)  # lucidrains, CAB; Google at 1e-6
            self.check_favor_plus(W, "projection-only", 1e-6, plain=False)
            self.check_favor_plus(W, "projection-only", 1e-4, plain=True)  # HKUNLP
            self.check_favor_plus(W, "full", 1e-4, plain=False)  # HazyResearch's fly
            self.check_favor_plus(W, "per-key", 0, plain=False)

    def test_favor_plus_without_a_stabiliser(self) -> None:
        W = raw_qr_rows(np.random.default_rng(12), "chi")
        features = [[favor_plus(x[h], W, False, "none", 0, False) for h in range(HEADS)] for x in (self.q, self.k)]
        self.compare(f"performer:m={M}", W, features[0], features[1], stabilised=False)

    def test_relu_with_its_epsilon(self) -> None:
        W = np.random.default_rng(9).standard_normal((M, D)).astype(np.float32)

        def features(x: Array) -> Array:
            u = x * np.float32(D**-0.25) @ W.T * np.float32(M**-0.5)
            return np.maximum(u, 0) + np.float32(1e-3)

        self.compare(
            f"performer:features=relu,m={M},epsilon=0.001",
            W,
            [features(self.q[h]) for h in range(HEADS)],
            [features(self.k[h]) for h in range(HEADS)],
            stabilised=False,
        )

    def test_hyperbolic_and_trigonometric(self) -> None:
        W = np.random.default_rng(10).standard_normal((M, D)).astype(np.float32)

        def parts(x: Array) -> tuple[Array, Array]:
            x = x * np.float32(D**-0.25)
            return x @ W.T, (x * x).sum(axis=-1, keepdims=True) / 2

        def hyperbolic(x: Array) -> Array:
            u, h = parts(x)
            features: Array = np.concatenate([np.exp(u - h), np.exp(-u - h)], axis=1) * np.float32((2 * M) ** -0.5)
            return features

        def trigonometric(x: Array) -> Array:
            u, h = parts(x)
            features: Array = np.concatenate([np.cos(u), np.sin(u)], axis=1) * np.exp(h) * np.float32(M**-0.5)
            return features

        got = self.attend(f"performer:features=hyperbolic,m={M}", W)
        for h in range(HEADS):
            kernel = hyperbolic(self.q[h]) @ hyperbolic(self.k[h]).T
            np.testing.assert_allclose(got["kernel"][h], kernel, rtol=1e-5, atol=TOLERANCE * kernel.max())
        got = self.attend(f"performer:features=trig,m={M}", W)
        for h in range(HEADS):
            kernel = trigonometric(self.q[h]) @ trigonometric(self.k[h]).T
            np.testing.assert_allclose(got["kernel"][h], kernel, rtol=1e-4, atol=1e-5 * np.abs(kernel).max())

    def test_an_epsilon_at_unit_normal_inputs_all_but_returns_the_mean_of_v(self) -> None:
        """The defect that these switches are for: d = 64, m = 256, epsilon = 1e-4 (anchors, headline 2)."""
        rng = np.random.default_rng(11)
        q, k, v = (rng.standard_normal((1, 512, 64)).astype(np.float32) for _ in range(3))
        write_safetensors(self.folder / "in.safetensors", {"q": q, "k": k, "v": v})
        command = [PROGRAM, "attend", "performer:epsilon=1e-4,stabiliser=projection-only,sign_fix=false"]
        subprocess.run(
            [*command, "--input", "in.safetensors", "--output", "out.safetensors"], cwd=self.folder, check=True
        )
        out = read_safetensors(self.folder / "out.safetensors")["out"][0]
        weights = np.exp(q[0] @ k[0].T / 8)
        exact = weights / weights.sum(axis=1, keepdims=True) @ v[0]
        mean = v[0].mean(axis=0)
        self.assertLess(np.linalg.norm(out - mean), 0.2 * np.linalg.norm(exact - mean))

    def test_the_biases_that_describe_states(self) -> None:
        """24 draws of m = 256 at d = 64, entries of N(0, 1/4): standard errors of 0.2 % beside the method's own draws."""
        rng = np.random.default_rng(1)
        q, k = (0.5 * rng.standard_normal((24, 64, 64)).astype(np.float32) for _ in range(2))
        write_safetensors(self.folder / "in.safetensors", {"q": q, "k": k, "v": k})
        exact = np.exp(np.einsum("hid,hjd->hij", q, k) / 8)

        def mean_ratio(spec: str) -> float:
            command = [PROGRAM, "attend", spec, "--input", "in.safetensors", "--output", "out.safetensors", "--kernel"]
            subprocess.run(command, cwd=self.folder, check=True)
            return float((read_safetensors(self.folder / "out.safetensors")["kernel"] / exact).mean())

        honest = mean_ratio("performer")
        for switches, stated in (
            ("epsilon=1e-4,stabiliser=projection-only", 0.05),
            ("stabiliser=per-key", -0.94),
            ("norms=sqrt-d", -0.06),
        ):
            self.assertAlmostEqual(mean_ratio("performer:" + switches) - honest, stated, delta=0.015, msg=switches)

    def test_a_projection_of_another_shape_is_refused(self) -> None:
        W = np.zeros((M, D + 1), dtype=np.float32)
        write_safetensors(self.folder / "w.safetensors", {"projection": W})
        command = [PROGRAM, "attend", f"performer:m={M}", "--input", "in.safetensors", "--output", "out.safetensors"]
        done = subprocess.run(
            [*command, "--state", "w.safetensors"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{M} x {D + 1}", done.stderr)
        self.assertIn(f"expected {M} x {D}", done.stderr)
        self.assertFalse((self.folder / "out.safetensors").exists())


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
