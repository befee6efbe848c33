#!/usr/bin/python3
"""`import attnbench`: the C++ methods, closed forms, checks and experiments from Python. Run as tests/python/module_test.py BUILD_FOLDER."""

from __future__ import annotations

import functools
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
import warnings
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pandas
from numpy.typing import NDArray

SOURCES = Path(__file__).resolve().parents[1] / "plugins/python"
BUILD = Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(BUILD / "python"), str(SOURCES), str(SOURCES.parents[1] / "approximations")]

import attnbench  # noqa: E402
from attnbench.entry import kebab  # noqa: E402
from libraries_test import read_safetensors  # noqa: E402
from heavy_tails import HeavyTails, Overlap  # noqa: E402
from gates import Gated, GatedHeads, WeightedKeys  # noqa: E402
from means import Leaky, Mean  # noqa: E402

Array = NDArray[Any]
GENERATOR = np.random.default_rng(1)
N, D, DV = 40, 8, 6


def drawn(*leading: int, columns: int = D, rows: int = N) -> Array:
    return GENERATOR.standard_normal((*leading, rows, columns))


def softmax(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    logits = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        queries, keys = q.shape[-2], k.shape[-2]
        logits = np.where(np.tri(queries, keys, k=keys - queries, dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    outputs: Array = weights @ v / weights.sum(-1, keepdims=True)
    return outputs


class VersionTest(unittest.TestCase):
    def test_the_version_is_the_program_s(self) -> None:
        printed = subprocess.run([BUILD / "attnbench", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(attnbench.__version__, printed.split()[1].rstrip(","))
        self.assertRegex(attnbench.__version__, r"^\d+\.\d+\.\d+$")


class AttendTest(unittest.TestCase):
    def test_softmax_is_softmax_for_all_leading_axes(self) -> None:
        for leading in ((), (3,), (2, 3)):
            for causal in (False, True):
                q, k, v = drawn(*leading), drawn(*leading), drawn(*leading, columns=DV)
                out = attnbench.attend("softmax", q, k, v, causal=causal)
                self.assertEqual(out.shape, (*leading, N, DV))
                np.testing.assert_allclose(out, softmax(q, k, v, causal), atol=1e-12)

    def test_more_heads_than_tokens_are_questioned(self) -> None:
        for heads, nq, nk, doubtful in ((9, 8, 8, True), (9, 1, 9, False), (8, 8, 8, False), (9, 2, 7, True)):
            with self.subTest(heads=heads, nq=nq, nk=nk), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                arrays = drawn(heads, rows=nq), drawn(heads, rows=nk), drawn(heads, rows=nk)
                attnbench.attend("softmax", *arrays)
                attnbench.state("performer", *arrays)
                self.assertEqual(len(said), 2 * doubtful)
                for warning in said:
                    words = f"q has shape \\({heads}, {nq}, 8\\), .*k has shape \\({heads}, {nk}, 8\\).*swapaxes"
                    self.assertRegex(str(warning.message), words)
                    self.assertEqual(warning.filename, __file__)

    def test_the_state_of_each_head_is_given_back(self) -> None:
        q, k, v = drawn(3), drawn(3), drawn(3, columns=DV)
        spec = "performer:m=5,projection=iid"
        state = attnbench.state(spec, q, k)
        self.assertEqual({name: array.shape for name, array in state.items()}, {"projection": (3, 5, D)})
        self.assertFalse(np.array_equal(state["projection"][0], state["projection"][1]))
        out = attnbench.attend(spec, q, k, v)
        np.testing.assert_array_equal(attnbench.attend(spec, q, k, v, seed=2, state=state), out)
        one = attnbench.state(spec, q[1], k[1], seed=3)
        self.assertEqual(one["projection"].shape, (5, D))
        shared = attnbench.attend(spec, q, k, v, state=one)
        np.testing.assert_array_equal(shared[1], attnbench.attend(spec, q[1], k[1], v[1], seed=3))
        self.assertEqual(attnbench.state("softmax", q, k), {})

    def test_an_unknown_tensor_of_a_state_is_refused(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        for spec, words in (
            ("performer:m=5", r"there is no tensor 'W' in its state; there are 'projection' \(5 x 8\)"),
            ("softmax", r"there is no tensor 'W' in its state; its state is empty"),
        ):
            with self.assertRaisesRegex(attnbench.Misuse, words):
                attnbench.attend(spec, q, k, v, state={"W": np.zeros((5, D))})
        with self.assertRaisesRegex(attnbench.Misuse, "the state is of 2 heads; expected one for all, or 1"):
            attnbench.attend("performer:m=5", q, k, v, state={"projection": np.zeros((2, 5, D))})

    def test_what_a_method_needs_beside_q_k_and_v(self) -> None:
        q, k, v, gate = drawn(2, 4), drawn(2, 2), drawn(2, 2, columns=DV), np.exp(drawn(2, 2, columns=1))
        want = softmax(q, np.repeat(k, 2, 1), np.repeat(gate * v, 2, 1), causal=True)
        for given in (gate, np.repeat(gate, 2, 1)):  # of the heads of k, or of q
            for method in (Gated, GatedHeads):
                got = attnbench.attend(method, q, k, v, causal=True, extra={"gate": given})
                np.testing.assert_allclose(got, want, atol=1e-12)
        one = attnbench.attend(Gated, q, k, v, extra={"gate": gate[0, 0]})  # of all
        np.testing.assert_array_equal(
            one, attnbench.attend(Gated, q, k, gate[0, 0] * v, extra={"gate": np.ones((N, 1))})
        )
        A = attnbench.attention_matrix(Gated, q[0, 0], k[0, 0], extra={"gate": gate[0, 0]})
        np.testing.assert_allclose(A.sum(-1), (softmax(q[0, 0], k[0, 0], gate[0, 0]))[:, 0], atol=1e-12)
        K = attnbench.kernel(WeightedKeys, q[0, 0], k[0, 0], extra={"gate": gate[0, 0]})
        np.testing.assert_allclose(K, np.exp(q[0, 0] @ k[0, 0].T / np.sqrt(D)) * gate[0, 0].T, rtol=1e-12)
        for extra, words in (
            (
                None,
                r"gated needs 'gate' of shape n x 1 = 40 x 1, and extra does not give it; give extra=\{\"gate\": array\}",
            ),
            ({"gates": gate}, r"gated does not need 'gates'; it needs 'gate' \(n x 1\)"),
            ({"gate": gate[..., :9, :]}, r"40 x 1, and extra gives 9 x 1"),
            ({"gate": np.repeat(gate, 4, 1)}, r"extra 'gate' is of 2 batches and 8 heads; expected"),
        ):
            with self.assertRaisesRegex(attnbench.Misuse, words):
                attnbench.attend(Gated, q, k, v, extra=extra)
        with self.assertRaisesRegex(
            attnbench.Misuse, "softmax does not need 'gate'; it needs nothing beside q, k and v"
        ):
            attnbench.attend("softmax", q, k, v, extra={"gate": gate})

    def test_heads_of_a_batched_class_are_one_call(self) -> None:
        calls: list[tuple[int, ...]] = []

        class Counted:
            """Linear attention of all heads at once."""

            batched = True

            def __init__(self, seeds: list[int]) -> None:
                self.factors = 1 + np.array([seed % 7 for seed in seeds])[:, None, None]

            def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
                calls.append(q.shape)
                out: Array = self.factors * np.exp(q) @ (np.exp(k).swapaxes(1, 2) @ v)
                return out

        q, k, v = drawn(2, 3), drawn(2, 3), drawn(2, 3, columns=DV)
        together = attnbench.attend(Counted, q, k, v)
        self.assertEqual(calls, [(3, N, D)] * 2)
        # The draw of head h is its own, so a head alone is compared with the first of several.
        for batch in range(2):
            np.testing.assert_array_equal(
                together[batch, 0], attnbench.attend(Counted, q[batch, 0], k[batch, 0], v[batch, 0])
            )
        self.assertEqual(calls[2:], [(1, N, D)] * 2)
        np.testing.assert_array_equal(
            together, np.stack([attnbench.attend(Counted, *(x[b] for x in (q, k, v))) for b in (0, 1)])
        )

    def test_heads_of_several_configurations_are_no_single_call(self) -> None:
        class Times:
            """v times a factor."""

            batched = True

            def __init__(self, factor: float = 1.0) -> None:
                self.factor = factor

            def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
                return self.factor * v

        class Twice(Times):
            """Of another class."""

            def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
                return 2 * self.factor * v

        attnbench.register(Times)
        attnbench.register(Twice)
        q, k, v = drawn(4), drawn(4), drawn(4)
        for spec, factors in (
            ("per-head:[times],[times:factor=3]", (1, 3, 1, 3)),
            ("per-head:[twice],[times]", (2, 1, 2, 1)),
            ("per-head:[times],[zero]", (1, 0, 1, 0)),
            ("per-head:[zero],[times]", (0, 1, 0, 1)),
        ):
            with self.subTest(spec=spec):
                want = np.array(factors)[:, None, None] * v
                np.testing.assert_array_equal(attnbench.attend(spec, q, k, v), want)

    def test_fewer_heads_of_keys_and_other_numbers_of_queries(self) -> None:
        q, k, v = drawn(4, rows=10), drawn(2), drawn(2, columns=DV)
        out = attnbench.attend("softmax", q, k, v, causal=True)
        want = softmax(q, np.repeat(k, 2, 0), np.repeat(v, 2, 0), causal=True)
        np.testing.assert_allclose(out, want, atol=1e-12)

    def test_the_type_is_kept_and_scaling_can_be_left_out(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        self.assertEqual(attnbench.attend("softmax", *(x.astype(np.float32) for x in (q, k, v))).dtype, np.float32)
        self.assertEqual(attnbench.attend("softmax", q.astype(np.float32), k, v).dtype, np.float64)
        factor = D**-0.25
        np.testing.assert_array_equal(
            attnbench.attend("softmax", q * factor, k * factor, v, scaled=True), attnbench.attend("softmax", q, k, v)
        )

    def test_seeds_are_draws(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        first, again, other = (attnbench.attend("performer:m=16", q, k, v, seed=seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        self.assertFalse(np.array_equal(first, other))

    def test_the_matrix_is_what_is_applied_and_the_kernel_what_is_estimated(self) -> None:
        q, k, v = drawn(2), drawn(2), drawn(2)
        A = attnbench.attention_matrix("performer:m=16", q, k, seed=3)
        np.testing.assert_allclose(A @ v, attnbench.attend("performer:m=16", q, k, v, seed=3), atol=1e-12)
        K = attnbench.kernel("performer:m=16", q, k, seed=3)
        np.testing.assert_allclose(K / K.sum(-1, keepdims=True), A, atol=1e-12)
        self.assertGreater(np.abs(K.sum(-1) - 1).min(), 1e-3)

    def test_closed_forms_are_what_draws_give(self) -> None:
        q, k = drawn(rows=3) / 3, drawn(rows=3) / 3
        known = attnbench.theory("performer:m=8,projection=iid", q, k)
        assert known is not None and known.variance is not None
        np.testing.assert_allclose(known.mean, np.exp((q * k).sum(-1) / np.sqrt(D)), rtol=1e-12)
        draws = np.array(
            [np.diag(attnbench.kernel("performer:m=8,projection=iid", q, k, seed=seed)) for seed in range(4000)]
        )
        np.testing.assert_allclose(draws.mean(0), known.mean, atol=6 * np.sqrt(known.variance.max() / 4000))
        np.testing.assert_allclose(draws.var(0), known.variance, rtol=0.4)
        self.assertIsNone(attnbench.theory("nystrom", q, k))

    def test_fitted_methods_learn_from_what_they_are_given(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        with self.assertWarnsRegex(UserWarning, "learns from the input itself"):
            inside = attnbench.attend("vq:codes=4", q, k, v)
        outside = attnbench.attend("vq:codes=4", q, k, v, calibration=(drawn(), drawn(), drawn()))
        self.assertFalse(np.array_equal(inside, outside))

    def test_the_program_and_the_module_give_the_same_numbers(self) -> None:
        arrays = {"q": drawn(2), "k": drawn(2), "v": drawn(2, columns=DV)}
        arrays = {name: x.astype(np.float32) for name, x in arrays.items()}
        q, k, v = arrays.values()
        with tempfile.TemporaryDirectory() as folder:
            given, written = Path(folder) / "in.npz", Path(folder) / "out.safetensors"
            np.savez(given, **arrays)
            for spec in ("performer:m=16", "vq:codes=4"):  # drawn, and fitted
                command: list[str | Path] = [
                    BUILD / "attnbench",
                    "attend",
                    spec,
                    "--input",
                    given,
                    "--output",
                    written,
                    "--matrix",
                ]
                subprocess.run([*command, "--kernel"], check=True, capture_output=True)
                of_program = read_safetensors(written)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # vq learns from the input itself
                    of_module = {
                        "out": attnbench.attend(spec, q, k, v),
                        "attention": attnbench.attention_matrix(spec, q, k),
                        "kernel": attnbench.kernel(spec, q, k),
                    }
                for name, want in of_module.items():
                    with self.subTest(spec=spec, name=name):
                        np.testing.assert_array_equal(of_program[name], want)

    def test_misuse_is_a_value_error_that_says_what_was_expected(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        for words, call in (
            ("did you mean performer", lambda: attnbench.attend("perfomer", q, k, v)),
            ("m=0 is not allowed", lambda: attnbench.attend("performer:m=0", q, k, v)),
            ("expected the same number", lambda: attnbench.attend("softmax", q, k[None], v)),
            ("40 keys and 39 values", lambda: attnbench.attend("softmax", q, k, v[1:])),
            ("q has d = 8 and k has d = 7", lambda: attnbench.attend("softmax", q, k[:, 1:], v)),
            ("expected \\[n, d\\]", lambda: attnbench.attend("softmax", q[0], k[0], v[0])),
            ("expected numbers", lambda: attnbench.attend("softmax", q.astype(str), k, v)),
            ("no causal form", lambda: attnbench.attend("linformer:r=4", q, k, v, causal=True)),
            ("has no attention matrix", lambda: attnbench.attention_matrix("gmlp", q, k)),
            ("estimates no kernel", lambda: attnbench.kernel("local", q, k)),
            ("unknown kind", lambda: attnbench.list("methodes")),
            ("nothing is called", lambda: attnbench.describe("nothing")),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(attnbench.Misuse, words):
                call()
        self.assertTrue(issubclass(attnbench.Misuse, ValueError))
        with self.assertRaises(attnbench.NumericallyInvalid):
            attnbench.attend("softmax", q * np.nan, k, v)


class CatalogueTest(unittest.TestCase):
    def test_lists_and_descriptions(self) -> None:
        self.assertIn("performer", attnbench.list())
        self.assertIn("gaussian", attnbench.list("inputs"))
        told = attnbench.describe("performer:m=16")
        self.assertEqual(told["parameters"]["m"], "16")
        self.assertIn("what published libraries do instead", str(told))


class ClassTest(unittest.TestCase):
    def test_a_class_is_a_method(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        np.testing.assert_allclose(
            attnbench.attend(Mean, q, k, v, causal=True), attnbench.attend("uniform", q, k, v, causal=True), atol=1e-12
        )
        self.assertIn("mean", attnbench.list())
        names = [kebab(name) for name in ("MyPerformer", "FAVORPlus", "mean_of_v")]
        self.assertEqual(names, ["my-performer", "favor-plus", "mean-of-v"])
        np.testing.assert_allclose(attnbench.attention_matrix("mean", q, k), np.full((N, N), 1 / N), atol=1e-15)

    def test_a_class_is_checked(self) -> None:
        report = attnbench.check(Mean)
        self.assertTrue(report.passed, report)
        self.assertEqual(report.failures(), [])
        report = attnbench.check(Leaky)
        self.assertFalse(report)
        self.assertIn("causal", {row["claim"] for row in report.failures()})
        self.assertRegex(str(report), r"causal +FAIL")
        self.assertGreater(len(report.frame()), 10)

    def test_a_class_may_be_defined_anew(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        space: dict[str, type] = {}
        for factor in (2, 3):
            exec(f"class Scaled:\n    def attend(self, q, k, v, causal):\n        return {factor} * v\n", space)
            np.testing.assert_allclose(attnbench.attend(space["Scaled"], q, k, v), factor * v)
        with self.assertRaisesRegex(attnbench.Misuse, "is in no file"):
            attnbench.run("attention-error", space["Scaled"], n=16, d=4)

    def test_names_that_are_taken_and_what_is_no_method(self) -> None:
        with self.assertRaisesRegex(attnbench.Misuse, "'softmax' is taken"):
            attnbench.register(type("Softmax", (Mean,), {}))
        with self.assertRaisesRegex(attnbench.Misuse, "class Nothing is of no kind: a method has attend"):
            attnbench.register(type("Nothing", (), {}))
        with self.assertRaisesRegex(attnbench.Misuse, "is not a class"):
            attnbench.register(3)  # type: ignore[type-var]

    def test_what_a_class_has_no_form_of_is_said(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        plain = type("Plain", (), {"attend": lambda self, q, k, v: v})
        np.testing.assert_array_equal(attnbench.attend(plain, q, k, v), v)
        with self.assertRaisesRegex(attnbench.Misuse, "no causal form: its attend has no parameter causal"):
            attnbench.attend(plain, q, k, v, causal=True)
        with self.assertRaisesRegex(attnbench.Misuse, "has one query a key"):
            attnbench.attend(Mean, q[:5], k, v, causal=True)

    def test_functions_count_their_parameters_as_they_are(self) -> None:
        def attend(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
            return np.full_like(v, causal)

        class Attends:
            def __call__(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
                return attend(q, k, v, causal)

        q, k, v = drawn(), drawn(), drawn()
        for function in (
            staticmethod(attend), classmethod(lambda cls, *given: attend(*given)), Attends(), functools.partial(attend),
            classmethod(lambda cls, q, k, v, causal: attend(q, k, v, causal)), lambda self, q, k, v, causal: attend(q, k, v, causal),
            functools.partialmethod(lambda self, none, q, k, v, causal: attend(q, k, v, causal), None),
        ):  # fmt: skip
            cls = type("Static", (), {"attend": function, "kernel": staticmethod(lambda q, k: q @ k.T)})
            for causal in (False, True):
                with self.subTest(function=function, causal=causal):
                    self.assertEqual(set(attnbench.attend(cls, q, k, v, causal=causal).flat), {float(causal)})
        plain = type("Plain", (), {"attend": staticmethod(lambda q, k, v: v)})
        with self.assertRaisesRegex(attnbench.Misuse, "no causal form: its attend has no parameter causal"):
            attnbench.attend(plain, q, k, v, causal=True)
        with self.assertRaisesRegex(attnbench.Misuse, r"attend\(q, k\) beside self"):
            attnbench.register(type("Few", (), {"attend": staticmethod(lambda q, k: q)}))

    def test_results_that_are_no_arrays_are_named(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        for out, kind in (
            ((v, q @ k.T), "a tuple"), ((v, v), "a tuple"), ([v, q @ k.T], "a list"), (None, "(None|a NoneType)"),
            ({"out": v}, "a dict"), ("v", "a str"),
        ):  # fmt: skip
            for batched in (False, True):
                cls = type("Wrong", (), {"attend": lambda self, q, k, v, *, out=out: out, "batched": batched})
                with self.subTest(kind=kind, batched=batched):
                    with self.assertRaisesRegex(Exception, f"attend.* returned {kind}.*; expected an array"):
                        attnbench.attend(cls, q, k, v)
        for make in (list, tuple, np.ndarray.tolist):
            rows = type("Rows", (), {"attend": lambda self, q, k, v, *, make=make: make(v)})
            np.testing.assert_array_equal(attnbench.attend(rows, q, k, v), v)

    def test_features_have_every_form(self) -> None:
        class Squares:
            def __init__(self, power: int = 2) -> None:
                self.power = power

            def features_q(self, x: Array) -> Array:
                return np.abs(x) ** self.power + 0.1

            features_k = features_q

        q, k, v = drawn(rows=7), drawn(), drawn()
        phi_q, phi_k = (np.abs(x * D**-0.25) ** 3 + 0.1 for x in (q, k))
        weights = phi_q @ phi_k.T
        attnbench.register(Squares)
        np.testing.assert_allclose(attnbench.kernel("squares:power=3", q, k), weights)
        seen = weights * np.tri(7, N, k=N - 7)
        out = attnbench.attend("squares:power=3", q, k, v, causal=True)
        np.testing.assert_allclose(out, seen @ v / seen.sum(1, keepdims=True), atol=1e-12)
        other = attnbench.attend("linear:features=squares,power=3", q, k, v, causal=True)
        np.testing.assert_array_equal(out, other)
        self.assertTrue(attnbench.check("squares:power=1").passed)

    def test_claims_cost_and_memory_may_be_functions(self) -> None:
        class Costly:
            parameters = {"m": attnbench.Parameter(8, "what it spends", minimum=1, budget=True)}

            @staticmethod
            def claims(parameters: dict[str, int], shape: attnbench.Shape) -> dict[str, Any]:
                return {"rank_at_most": parameters["m"], "no_form": "a reason" if shape.causal else ""}

            def cost(self, parameters: dict[str, int], shape: attnbench.Shape) -> tuple[float, float]:
                return 2.0 * shape.nq * parameters["m"], 5.0

            @staticmethod
            def memory(parameters: dict[str, int], shape: attnbench.Shape) -> float:
                return 12345.0

            def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
                return np.zeros_like(v)

        attnbench.register(Costly)
        told = str(attnbench.describe("costly:m=16"))
        self.assertIn("rank of A at most 16", told)
        self.assertIn("a reason", told)
        self.assertIn("1.31e+05 FLOPs, 5 exponentials", told)
        self.assertNotIn("assumed", told)

    def test_errors_of_a_class_come_through(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        failing = type("Failing", (), {"attend": lambda self, q, k, v, causal: v[:3]})
        with self.assertRaisesRegex(RuntimeError, r"shape \(3, 8\); expected an array of shape \(40, 8\)"):
            attnbench.attend(failing, q, k, v)

    def test_a_plugin_is_loaded_and_loaded_anew(self) -> None:
        q, k, v = drawn(), drawn(), drawn()
        self.assertEqual(attnbench.load(SOURCES / "numpy_softmax.py"), ["numpy-softmax"])
        np.testing.assert_allclose(attnbench.attend("numpy-softmax", q, k, v), softmax(q, k, v), atol=1e-12)
        self.assertEqual(attnbench.load(SOURCES / "numpy_softmax.py"), ["numpy-softmax"])
        for name, words in (("none.py", "there is no such file"), ("means.txt", "expected a shared library")):
            with self.assertRaisesRegex(attnbench.Misuse, words):
                attnbench.load(name)
        with tempfile.TemporaryDirectory() as folder:
            bad = Path(folder) / "bad.py"
            bad.write_text("import no_such_package\n")
            with self.assertRaisesRegex(attnbench.Misuse, r"bad.py: ModuleNotFoundError: .*no_such_package"):
                attnbench.load(bad)
        self.assertEqual(set(attnbench.run("attention-error", "uniform", n=16, d=4)["ending"]), {"done"})


class RunTest(unittest.TestCase):
    def test_rows_come_as_a_frame(self) -> None:
        frame = attnbench.run("attention-error", ["performer", "uniform"], n=[32, 64], d=8, sweep={"m": [8, 16]})
        self.assertEqual(set(frame["method"]), {"performer:m=8", "performer:m=16", "uniform"})
        self.assertEqual(set(frame["n"]), {32, 64})
        self.assertEqual(set(frame["ending"]), {"done"})
        self.assertIn("cells x 1 replicates", frame.attrs["summary"])

    def test_numbers_and_paths_are_those_that_python_has(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "heads.npz"
            rng = np.random.default_rng(1)
            np.savez(path, **{name: rng.standard_normal((1, 1, 32, 8)) for name in "qkv"})
            for inputs in (path, [path], [str(path)]):
                frame = attnbench.run("attention-error", "uniform", inputs=inputs)
                self.assertEqual((len(set(frame["input"])), set(frame["n"])), (1, {32}))
                self.assertIn("heads.npz", frame["input"][0])
            frame = attnbench.run(
                "attention-error", ["performer"], n=np.int64(32), d=np.array(8), causal=np.True_, seed=np.uint8(3),
                replicates=np.int32(2), sweep={"m": np.array([8, 16]), "epsilon": np.float32(0.1)}, threads=np.int64(1),
                profile=np.False_, timeout=np.float64(60), results=str(path.with_name("results.db")),
            )  # fmt: skip
            self.assertEqual(set(frame["method"]), {"performer:m=8,epsilon=0.1", "performer:m=16,epsilon=0.1"})
            self.assertEqual((set(frame["causal"]), set(frame["seed"]), set(frame["replicate"])), ({1}, {3}, {0, 1}))
            for n in (
                range(16, 33, 16),
                pandas.Series([16.0, 32.0]),
                (x for x in (16, 32)),
                np.array([16, 32], np.int8),
            ):
                self.assertEqual(set(attnbench.run("attention-error", "uniform", n=n, d=4)["n"]), {16, 32})
            read = attnbench.read(path.with_name("results.db"), where={"m": np.int64(8), "causal": np.True_})
            self.assertEqual(set(read["m"]), {8})
        run: Any = attnbench.run
        attend: Any = attnbench.attend
        one: dict[str, Any] = {"n": 16, "d": 4}
        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: run("attention-error", "uniform", n=object()), "of type object; expected a number, a text or a path"),
            (lambda: run("attention-error", "uniform", n=[None]), "None is of type NoneType; expected a number"),
            (lambda: run("attention-error", "uniform", n={"a": 1}), "is of type dict; expected a number"),
            (lambda: run("attention-error", "uniform", n=b"16"), "is of type bytes; expected a number"),
            (lambda: run("attention-error", "uniform", n=np.float64(16.5)), "16.5"),
            (lambda: run("attention-error", "uniform", seed=None, **one), "None is of type NoneType"),
            (lambda: run("attention-error", "uniform", sweep=[8], **one), "expected values by parameter"),
            (lambda: run("attention-error", None, **one), "None is of type NoneType; expected a name"),
            (lambda: run("attention-error", [3], **one), "3 is of type int; expected a name"),
            (lambda: run(["attention-error"], "uniform", **one), "is of type list; expected a name"),
            (lambda: run("attention-error", "uniform", results=3, **one), "3 is of type int; expected a name"),
            (lambda: attend(3, *np.zeros((3, 4, 2))), "3 is of type int; expected a name"),
        ]  # fmt: skip
        for test, words in cases:
            with self.subTest(words=words), self.assertRaisesRegex(attnbench.Misuse, words):
                test()

    def test_texts_that_a_reader_of_csv_takes_for_something_else(self) -> None:
        texts = ["null", "NA", "nan", "None", "N-A", "007", "1e5", "true", "inf"]
        modes = ["NA", "nan", "null", "None", "n-a", "NULL", "NaN", "true", "-inf"]
        measured: Any = {
            f"{name}:mode={mode}": [{"relative_output_error": 0.5}, {"null": 1.0}, attnbench.Skip("nan")]
            for name, mode in zip(texts, modes)
        }

        class NA(attnbench.Experiment):
            metrics = {"relative_output_error": "1", "null": "NA"}

            def measure(self, applied: attnbench.Applied) -> Any:
                return {}

        with tempfile.TemporaryDirectory() as folder:
            for name in texts:
                attnbench.register(
                    type("Named", (), {"name": name, "parameters": {"mode": "a"}, "attend": lambda self, q, k, v: v})
                )
            results = Path(folder) / "results.db"
            frame = attnbench.record(NA, measured, input="gaussian", n=8, d=4, results=results)
            self.assertEqual({x.partition(":")[0] for x in frame["method"]}, set(texts))
            self.assertEqual(set(frame["mode"]), set(modes))
            self.assertEqual(set(frame["metric"].dropna()), {"relative_output_error", "null"})
            self.assertEqual(set(frame["unit"].dropna()), {"1", "NA"})
            self.assertEqual(set(frame.loc[frame["ending"] == "skipped", "reason"]), {"nan"})
            self.assertTrue(frame.loc[frame["ending"] == "done", "reason"].isna().all())
            self.assertEqual(frame["value"].dtype, np.float64)
            wide = attnbench.read(results, wide=True)
            self.assertEqual(len(wide.groupby("method")), len(texts))
            self.assertEqual(wide["null"].dropna().tolist(), [1.0] * len(texts))
            self.assertTrue(attnbench.read(results, metric="null")["machine"].isna().all())

    def test_a_file_reads_as_the_frame_of_its_run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.db"
            words: dict[str, Any] = {"n": 32, "d": 8, "results": file}
            ran = attnbench.run("attention-error", ["favor", "uniform"], sweep={"m": [8, 16]}, **words)
            attnbench.run("rank", "uniform", **words)
            read = attnbench.read(file, where={"experiment": "attention-error"})
            pandas.testing.assert_frame_equal(read, ran)
            self.assertEqual(set(read.loc[read["method"] != "uniform", "m"]), {8, 16})
            self.assertTrue(read.loc[read["method"] == "uniform", "m"].isna().all())
            self.assertEqual(set(attnbench.read(file)["experiment"]), {"attention-error", "rank"})
            some = attnbench.read(
                file, metric="relative_output_error", where={"m": [8, 16], "causal": False}, wide=True
            )
            one = ran[(ran["metric"] == "relative_output_error") & (ran["m"] == 8)]["value"].item()
            self.assertEqual(some.loc[some["m"] == 8, "relative_output_error"].item(), one)
            self.assertEqual(len(some), 2)
            self.assertIn("index", attnbench.read(file, arrays=True))
            self.assertIn("command", attnbench.read(file, clock=True))
            with self.assertRaisesRegex(attnbench.Misuse, "did you mean relative_output_error"):
                attnbench.read(file, metric="relative_output_eror")
            with self.assertRaisesRegex(attnbench.Misuse, "none.db"):
                attnbench.read(Path(folder) / "none.db")

    def test_an_input_by_the_name_of_the_command_line_is_the_only_input(self) -> None:
        frame = attnbench.run("attention-error", "uniform", input="gaussian:scale=0.5", n=16, d=4)
        self.assertEqual(set(frame["input"]), {"gaussian:scale=0.5"})

    def test_a_results_file_is_added_to(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            words: dict[str, Any] = {"n": 32, "d": 8, "results": Path(folder) / "results.db"}
            self.assertIn("1 run", attnbench.run("attention-error", "uniform", **words).attrs["summary"])
            again = attnbench.run("attention-error", ["uniform", "softmax"], **words)
            self.assertIn("1 run, 1 were there already", again.attrs["summary"])

    def test_a_plugin_that_was_written_anew_is_measured_anew(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file, found = Path(folder) / "factors.py", []
            for factor in (2, 3):
                file.write_text(f"class Factor:\n    def attend(self, q, k, v, causal):\n        return {factor} * v\n")
                attnbench.load(file)
                frame = attnbench.run("attention-error", "factor", n=16, d=4, results=Path(folder) / "results.db")
                self.assertIn("1 run", frame.attrs["summary"])
                found.append(sorted(frame[frame["metric"] == "relative_frobenius"]["value"]))
            self.assertEqual([len(values) for values in found], [1, 2])

    def test_classes_and_plugins_run_in_workers(self) -> None:
        attnbench.load(SOURCES / "positive_features.py")
        methods: list[str | type] = [Mean, "numpy-positive:m=16", "uniform"]
        frame = attnbench.run("attention-error", methods, n=32, d=8)
        errors = frame[frame["metric"] == "relative_frobenius"].set_index("method")["value"]
        self.assertAlmostEqual(errors["mean"], errors["uniform"], places=12)
        self.assertGreater(errors["numpy-positive:m=16"], 0)

    def test_a_registered_class_runs_by_its_name(self) -> None:
        attnbench.register(Mean)
        frame = attnbench.run("attention-error", ["mean", "uniform"], n=32, d=8)
        self.assertEqual(set(zip(frame["method"], frame["ending"])), {("mean", "done"), ("uniform", "done")})

        @attnbench.register
        class Typed:
            def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
                return v

        with self.assertRaisesRegex(attnbench.Misuse, "is in no file"):
            with unittest.mock.patch("attnbench.loading.file_of", return_value=None):
                attnbench.run("attention-error", "typed", n=32, d=8)

    def test_a_class_of_a_package_runs_in_workers_and_is_measured_anew(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "halves"
            (package / "inner").mkdir(parents=True)
            (package / "__init__.py").write_text("")
            (package / "inner/__init__.py").write_text("FACTOR = 0.5\n")
            (package / "core.py").write_text(
                "from .inner import FACTOR\n\n\nclass Half:\n"
                "    def attend(self, q, k, v, causal):\n        return FACTOR * v\n"
            )
            words: dict[str, Any] = {"n": 16, "d": 4, "results": Path(folder) / "results.db"}
            sys.path.insert(0, folder)
            try:
                from halves.core import Half  # type: ignore[import-not-found]

                frame = attnbench.run("attention-error", [Half], **words)
                self.assertEqual(set(frame["ending"]), {"done"}, frame.attrs["summary"])
                self.assertEqual(attnbench.load("halves.core:Half"), ["half"])
                self.assertIn("0 run", attnbench.run("attention-error", "half", **words).attrs["summary"])
                (package / "inner/__init__.py").write_text("FACTOR = 2.0\n")
                self.assertEqual(attnbench.load("halves.core:Half"), ["half"])
                again = attnbench.run("attention-error", "half", **words)
                self.assertIn("1 run", again.attrs["summary"])
                self.assertEqual(len(set(again[again["metric"] == "relative_output_error"]["value"])), 2)
                np.testing.assert_allclose(attnbench.attend("half", *[np.ones((4, 2))] * 3), 2 * np.ones((4, 2)))
            finally:
                sys.path.remove(folder)

    def test_inputs_and_experiments_may_be_classes(self) -> None:
        frame = attnbench.run(Overlap, ["uniform", "softmax"], inputs=[HeavyTails, "gaussian"], n=16, d=4)
        self.assertEqual(set(frame["input"]), {"heavy-tails", "gaussian"})
        self.assertEqual(set(frame[(frame["metric"] == "overlap") & (frame["method"] == "softmax")]["value"]), {1})
        attnbench.register(HeavyTails)
        self.assertEqual(attnbench.describe("heavy-tails:freedom=5")["parameters"], {"freedom": "5"})
        again = attnbench.run("attention-error", "uniform", inputs="heavy-tails:freedom=5", n=16, d=4)
        self.assertEqual(set(again["ending"]), {"done"})
        self.assertEqual(
            sorted(attnbench.load(SOURCES / "heavy_tails.py")),
            ["head", "heavy-tails", "identities", "overlap", "pointed"],
        )

    def test_endings_are_rows_and_a_warning(self) -> None:
        attnbench.load(SOURCES / "faults.py")
        with self.assertWarnsRegex(UserWarning, "segfaults .*crashed"):
            frame = attnbench.run("attention-error", ["segfaults", "uniform"], n=16, d=4)
        self.assertEqual(set(zip(frame["method"], frame["ending"])), {("segfaults", "crashed"), ("uniform", "done")})

    def test_misuse_leaves_no_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.db"
            with self.assertRaisesRegex(attnbench.Misuse, "did you mean"):
                attnbench.run("attention-eror", "uniform", results=file)
            with self.assertRaises(attnbench.Misuse):
                attnbench.run("attention-error", "uniform", n=0, results=file)
            self.assertFalse(file.exists())

    def test_a_script_may_run_its_own_class(self) -> None:
        text = f"""
        import sys
        sys.path.insert(0, {str(BUILD / "python")!r})
        import attnbench

        class Own:
            def attend(self, q, k, v, causal):
                return v

        if __name__ == "__main__":
            frame = attnbench.run("attention-error", [Own, "identity"], n=16, d=4)
            values = frame[frame["metric"] == "relative_frobenius"]["value"]
            print(len(values), len(set(values)))
        """
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script.py"
            script.write_text(textwrap.dedent(text))
            made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder)
            self.assertEqual(made.stdout, "2 1\n", made.stderr)
            script.write_text(textwrap.dedent(text).replace('if __name__ == "__main__":', "if True:"))
            made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder)
            self.assertIn("put it under", made.stdout + made.stderr)


class PlotTest(unittest.TestCase):
    """Figures of rows, whose points are the rows' own numbers."""

    rows: pandas.DataFrame

    @classmethod
    def setUpClass(cls) -> None:
        cls.rows = attnbench.run(
            "attention-error",
            ["performer", "uniform", "softmax"],
            n=[32, 64],
            d=[8],
            sweep={"m": [8, 16]},
            replicates=3,
        )

    @staticmethod
    def points(figure: attnbench.Picture) -> dict[tuple[str, str], float]:
        drawn = pandas.read_csv(io.StringIO(figure.csv), dtype=str)
        return {(row.series, row.x): float(row.y) for row in drawn.fillna("").itertuples()}

    def mean(self, method: str, n: int, m: int | None = None) -> float:
        rows = self.rows
        kept = (rows.metric == "relative_output_error") & (rows.method == method) & (rows.n == n)
        return float(rows[kept & ((rows.m == m) if m else rows.m.isna())].value.mean())

    def test_every_cell_is_a_point_or_a_level(self) -> None:
        points = self.points(attnbench.plot(self.rows, y="relative_output_error", x="m"))
        self.assertEqual(len(points), 8)
        for n in (32, 64):
            for m in (8, 16):
                self.assertAlmostEqual(points[f"performer n={n}", f"{m}.0"], self.mean(f"performer:m={m}", n, m), 12)
            self.assertAlmostEqual(points[f"uniform n={n}", ""], self.mean("uniform", n), 12)
            self.assertEqual(points[f"softmax n={n}", ""], 0)

    def test_chosen_rows_are_drawn_alone(self) -> None:
        rows = self.rows
        points = self.points(attnbench.plot(rows[(rows.n == 64) & (rows.m == 8)], y="relative_output_error", x="m"))
        self.assertEqual([*points], [("performer", "8.0")])
        by_where = attnbench.plot(rows, "relative_output_error", "m", where={"n": 64, "m": 8})
        self.assertEqual(self.points(by_where), points)

    def test_without_a_metric_it_is_the_figure_of_the_page(self) -> None:
        figure = attnbench.plot(self.rows)
        self.assertEqual(len(self.points(figure)), 8)
        self.assertIn("|A", figure.svg)
        self.assertIn("<svg", figure._repr_svg_())

    def test_a_figure_is_written_in_the_format_of_its_ending(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        figure = attnbench.plot(self.rows, y="output_mse", x="n", style="paper", title="Errors")
        for ending, begin in (("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml"), ("csv", b"panel,")):
            figure.save(folder / f"f.{ending}")
            self.assertTrue((folder / f"f.{ending}").read_bytes().startswith(begin), ending)

    def test_misuse_is_one_sentence(self) -> None:
        rows = self.rows
        diagonal = rows[((rows.n == 32) & (rows.m == 8)) | ((rows.n == 64) & (rows.m == 16))]
        for call, told in (
            (
                lambda: attnbench.plot(rows[rows.n == 64]),
                "y is missing, the metric to draw of these rows; they have flops",
            ),
            (lambda: attnbench.plot(rows, y="nope"), "--y nope: no selected cell of"),
            (lambda: attnbench.plot(rows, y="output_mse", style="x"), "argument --style: invalid choice"),
            (lambda: attnbench.plot(rows[rows.n < 0], y="output_mse"), "there are no rows to draw"),
            (lambda: attnbench.plot(diagonal, y="output_mse", x="m"), "columns do not tell these rows from others"),
            (lambda: attnbench.plot(pandas.DataFrame({"n": [1]}), y="x"), "do not say which results file"),
            (lambda: attnbench.plot("none.db", y="x"), "there is no results file"),
            (lambda: attnbench.plot(rows).save("f.jpg"), "ends with none of .csv, .pdf, .png, .svg"),
        ):
            with self.subTest(told=told), self.assertRaisesRegex(attnbench.Misuse, re.escape(told)) as raised:
                call()
            self.assertNotIn("\n", str(raised.exception))


class TypesTest(unittest.TestCase):
    def test_everything_public_has_a_docstring(self) -> None:
        for name in attnbench.__all__:
            self.assertTrue(getattr(attnbench, name).__doc__, name)
        self.assertTrue((Path(attnbench.__file__).parent / "py.typed").exists())


class RecordTest(unittest.TestCase):
    """Rows for numbers that the caller measured."""

    def setUp(self) -> None:
        self.results = Path(self.enterContext(tempfile.TemporaryDirectory())) / "results.db"

    def recorded(self, measured: Any, experiment: Any = Overlap, **options: Any) -> pandas.DataFrame:
        given = {"input": HeavyTails, "n": 32, "d": 8, "results": self.results, **options}
        return attnbench.record(experiment, measured, **given)

    def test_rows_have_the_numbers_and_the_endings(self) -> None:
        table = self.recorded(
            {
                "uniform": [{"overlap": 0.5}, attnbench.Skip("no form"), ZeroDivisionError("oh")],
                "performer:m=8": {3: {"overlap": [0.25, 0.75]}, 4: attnbench.NumericallyInvalid("NaN in q")},
            },
            causal=True,
            seconds={"uniform": [2.5]},
        )
        uniform, performer = (table[table["method"] == method] for method in ("uniform", "performer:m=8"))
        self.assertEqual(list(uniform["ending"]), ["done", "skipped", "failed"])
        self.assertEqual(list(uniform["value"])[:1], [0.5])
        self.assertEqual(list(uniform["reason"])[1:], ["no form", "ZeroDivisionError: oh"])
        self.assertEqual(list(performer["replicate"]), [3, 4])
        self.assertEqual(list(performer["ending"]), ["done", "invalid"])
        array = attnbench.read(self.results, arrays=True, where={"method": "performer:m=8"}, metric="overlap")
        self.assertEqual(list(array["value"].dropna()), [0.25, 0.75])
        self.assertEqual(set(table["causal"]), {1})
        said = subprocess.run([BUILD / "attnbench", "verify", self.results], capture_output=True, text=True)
        self.assertRegex(said.stdout, r"5 replicates \(2 done, 1 failed, 1 invalid, 1 skipped\).*: whole")

    def test_a_replicate_that_is_done_stays(self) -> None:
        self.recorded({"uniform": [{"overlap": 0.5}]})
        table = self.recorded({"uniform": [{"overlap": 0.1}, {"overlap": 0.2}]})
        self.assertEqual(list(table["value"]), [0.5, 0.2])
        self.assertEqual(len(self.recorded({"uniform": [{"overlap": 0.3}]}, seed=2)), 3)  # another cell

    def test_refusals_write_nothing(self) -> None:
        one = {"overlap": 0.5}
        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: self.recorded({"uniform": [{"overlaps": 1}]}), "overlap does not measure 'overlaps'; its metrics are overlap"),
            (lambda: self.recorded({"uniform": [{"overlap": float("nan")}]}), "overlap is NaN; give attnbench.NumericallyInvalid"),
            (lambda: self.recorded({"uniform": [{"overlap": "much"}]}), "overlap is of type"),
            (lambda: self.recorded({"uniform": [0.5]}), "replicate 0 is 0.5; expected numbers by metric"),
            (lambda: self.recorded({}), "nothing was measured"),
            (lambda: self.recorded({"uniform": []}), "nothing was measured"),
            (lambda: self.recorded({"uniforn": [one]}), "unknown method 'uniforn'; did you mean uniform"),
            (lambda: self.recorded({"uniform": [one]}, n=0), "n = 0, .*expected numbers above 0"),
            (lambda: self.recorded({"uniform": {-1: one}}), "replicate -1 of uniform; expected numbers from 0"),
            (lambda: self.recorded({"uniform": {np.int64(-2): one, 3: one}}), "replicate -2 of uniform"),
            (lambda: self.recorded({"uniform": {0.5: one}}), "a replicate = 0.5; expected a whole number"),
            (lambda: self.recorded({"uniform": {"first": one}}), "a replicate = 'first'; expected a whole number"),
            (lambda: self.recorded({"uniform": {True: one}}), "a replicate = True"),
            (lambda: self.recorded({"uniform": {2**70: one}}), "expected a whole number"),
            (lambda: self.recorded({"uniform": 0.5}), "nothing was measured; give"),
            (lambda: self.recorded([one]), "nothing was measured; give"),
            (lambda: self.recorded({"uniform": [one]}, n=32.5), "n = 32.5; expected a whole number"),
            (lambda: self.recorded({"uniform": [one]}, seed=-1), "seed = -1; expected .* a seed from 0"),
            (lambda: self.recorded({"uniform": [one]}, seconds={"uniform": [-1.0]}), "seconds of uniform are .*from 0"),
            (lambda: self.recorded({"uniform": [one]}, precision="half"), "expected 'f32' or 'f64'"),
            (lambda: self.recorded({"uniform": [{"seconds": 1}]}, experiment="speed"), "speed measures time, which attnbench does itself"),
        ]  # fmt: skip
        for test, words in cases:
            with self.subTest(words=words), self.assertRaisesRegex(attnbench.Misuse, words):
                test()
        self.assertFalse(self.results.exists())


if __name__ == "__main__":
    os.environ.pop("ATTNBENCH_PLUGINS", None)
    warnings.simplefilter("always")
    unittest.main()
