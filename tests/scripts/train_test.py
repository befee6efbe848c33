#!/usr/bin/python3
"""Tests of scripts/train: its attentions against the C++ methods, its tasks, its training loop and its rows.

Run as tests/scripts/train_test.py; without torch: exit code 77 (scripts/test_torch.sh installs one and runs this).
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

try:
    import torch
except ModuleNotFoundError:
    print("skipped: this Python has no torch; scripts/test_torch.sh installs one and runs this test")
    sys.exit(77)

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ATTNBENCH", ROOT / "build/release/attnbench")).resolve().parent
sys.path.insert(0, str(ROOT / "scripts/train"))
sys.path.insert(1, str(BUILD / "python"))
sys.path.append(str(ROOT / "scripts"))

import attnbench
import collect
import engine
import train as program
import training
from attentions.performer import orthogonal_rows
from byte_model import Sizes
from mixing import Attention, Mixing, Place, Refused, entries, parse_attention
from task import Batch, Schedule, Task, find_task
from tasks import bytes as next_byte
from tasks import copying, recall
from torch import Tensor
from trained_model import build, mixings
from training import Run, Trainer

torch.set_num_threads(1)
N, HEADS, D = 20, 2, 8

# At least one of each file of attentions/, with the parameters at which a shape of 20 tokens shows them.
SPECS = (
    "softmax", "linear", "linear:features=exp", "linear:features=relu", "polynomial", "performer:m=12",
    "performer:features=trig,m=12", "local:window=3", "truncated:window=3", "truncated:features=exp,window=3",
    "linformer:r=5", "vq:codes=6", "synthesizer", "synthesizer:kind=dense,hidden=5", "fnet",
    "reformer:buckets=4,rounds=2,chunk=20",
)  # fmt: skip


def made(spec: str, causal: bool) -> Mixing | None:
    """In double and eval mode, with random features and codes drawn. None where there is no such form."""
    torch.manual_seed(3)
    try:
        mixing: Mixing = parse_attention(spec).make(Place(HEADS, D, N, causal)).double()
    except Refused:
        return None
    mixing.redraw(torch.Generator().manual_seed(4))
    mixing(*random_heads(5))  # learns what it learns in a forward pass
    mixing.eval()
    return mixing


def random_heads(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v, [1, heads, n, d]: large enough that attention prefers some keys."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, HEADS, N, D, generator=generator, dtype=torch.double) for _ in "qkv")
    return q, k, v


class Attentions(unittest.TestCase):
    def test_every_attention_is_the_cpp_method_of_its_name(self) -> None:
        self.assertEqual({spec.split(":")[0] for spec in SPECS}, set(entries("attentions")))
        compared = 0
        for spec in SPECS:
            for causal in (False, True):
                mixing = made(spec, causal)
                heads = random_heads(6)
                arrays = [each[0].numpy() for each in heads]
                if mixing is None:
                    with self.subTest(spec), self.assertRaises(attnbench.Misuse):
                        attnbench.attend(spec, *arrays, causal=causal, scaled=True)
                    continue
                state = mixing.state() or None
                own = attnbench.attend(spec, *arrays, causal=causal, scaled=True, state=state)
                with torch.no_grad():
                    difference = np.linalg.norm(mixing(*heads)[0].numpy() - own) / np.linalg.norm(own)
                with self.subTest(spec=spec, causal=causal):
                    self.assertLess(difference, 1e-12)
                compared += 1
        self.assertGreater(compared, 25)

    def test_rows_of_a_causal_attention_do_not_depend_on_later_tokens(self) -> None:
        for spec in SPECS:
            mixing = made(spec, causal=True)
            if mixing is None:
                continue
            for at in (1, 7, N - 1):
                heads, others = random_heads(6), random_heads(6)
                for each in others:
                    each[:, :, at:] += 1
                with torch.no_grad(), self.subTest(spec=spec, at=at):
                    change = (mixing(*heads) - mixing(*others)).abs().amax((0, 1, 3))
                    self.assertLess(change[:at].max().item(), 1e-12)
                    self.assertGreater(change[at].item(), 1e-6)

    def test_a_new_draw_is_another_one_and_its_seed_decides_it(self) -> None:
        for spec in ("performer:m=12", "reformer:buckets=4,rounds=2,chunk=20"):
            mixing = made(spec, causal=True)
            assert mixing is not None
            (first,) = mixing.state().values()
            mixing.redraw(torch.Generator().manual_seed(5))
            (second,) = mixing.state().values()
            mixing.redraw(torch.Generator().manual_seed(4))
            (again,) = mixing.state().values()
            self.assertGreater(np.abs(first - second).max(), 0.1)
            self.assertTrue(np.array_equal(first, again))

    def test_orthogonal_features_have_rows_of_the_length_of_gaussian_ones(self) -> None:
        mixing = made("performer:m=8", causal=True)
        assert mixing is not None
        W = mixing.state()["projection"][0]
        products = W @ W.T
        self.assertLess(np.abs(products - np.diag(np.diag(products))).max(), 1e-12)
        self.assertGreater(np.diag(products).std(), 0.1)

    def test_orthogonal_features_have_no_preferred_direction(self) -> None:
        """QR alone prefers a sign: entry (0, 0) of its Q has the mean -0.64 at d = 2, and Haar's has 0 with variance 1/2.
        3000 draws miss by 0.065 with probability 1e-6."""
        generator = torch.Generator().manual_seed(1)
        rows = torch.stack([orthogonal_rows(1, 2, generator)[0] for _ in range(3000)])
        means = (rows / rows.norm(dim=1, keepdim=True)).mean(0)
        self.assertLess(means.abs().max().item(), 0.065)

    def test_gradients_pass_straight_through_the_codebook_and_codes_follow_their_keys(self) -> None:
        torch.manual_seed(1)
        mixing = parse_attention("vq:codes=4").make(Place(HEADS, D, N, True)).double().eval()
        mixing.codebook.normal_()
        q, k, v = random_heads(6)
        k.requires_grad_()
        mixing(q, k, v).square().sum().backward()
        with torch.no_grad():
            coded = mixing.codebook[torch.arange(HEADS)[:, None], mixing.nearest(k)]
        coded.requires_grad_()
        softmax = parse_attention("softmax").make(Place(HEADS, D, N, True))
        softmax(q, coded, v).square().sum().backward()
        assert k.grad is not None and coded.grad is not None
        self.assertTrue(torch.allclose(k.grad, coded.grad, atol=1e-12))
        mixing.train()
        first = mixing.codebook.clone()
        mixing(q, k + 3, v)
        begun = mixing.codebook.clone()  # the first batch gives keys
        self.assertGreater((begun - first).abs().max().item(), 0.5)
        for _ in range(300):
            mixing(q, k + 3, v)
        nearest = mixing.codebook[torch.arange(HEADS)[:, None], mixing.nearest(k + 3)]
        start = begun[torch.arange(HEADS)[:, None], mixing.nearest(k + 3)]
        self.assertLess((nearest - k - 3).square().sum().item(), (start - k - 3).square().sum().item())


class Tasks(unittest.TestCase):
    def test_recorded_rows_are_of_the_grid_and_of_its_settings_today(self) -> None:
        runs = program.grid_of(json.loads((ROOT / "scripts/train/grid.json").read_text()))
        settings = [run.settings() for run in runs]
        self.assertEqual(len(settings), 230)
        recorded = [row["settings"] for row in collect.recorded_rows(collect.RECORDED)]
        self.assertGreater(len(recorded), 50)
        for row in recorded:
            self.assertIn(row, settings)

    def test_recipes_state_the_schedules_of_the_tasks(self) -> None:
        for recipe, task in (
            ("copy_task", "copying"),
            ("associative_recall", "recall"),
            ("learning_curves", "bytes"),
            ("learning_curves", "masked"),
            ("transfer_and_recovery", "recovery"),
        ):
            text = " ".join((ROOT / f"experiments/recipes/{recipe}.toml").read_text().split())
            schedule = find_task(task).schedule
            with self.subTest(recipe=recipe, task=task):
                self.assertRegex(text, f"after {schedule.steps} (further )?steps of {schedule.batch} ")

    def test_copying_counts_the_second_word_and_nothing_else(self) -> None:
        batch = copying.batch(5, np.random.default_rng(1))
        word = copying.WORD
        self.assertEqual(batch.read.shape, (5, copying.SIZES.context))
        self.assertTrue((batch.counts.sum(axis=1) == word).all())
        first = batch.read[:, 1 : word + 1]
        self.assertTrue(np.array_equal(batch.meant[batch.counts].reshape(5, word), first))
        self.assertTrue((first < copying.SYMBOLS).all())
        self.assertTrue((batch.read[:, [0, word + 1]] == copying.SEPARATOR).all())
        # Each symbol that counts is 63 bytes back, and not yet read again.
        at = np.flatnonzero(batch.counts[0])
        self.assertTrue(np.array_equal(batch.meant[0, at], batch.read[0, at - word]))

    def test_recall_counts_the_values_of_keys_that_are_asked_again(self) -> None:
        batch = recall.batch(7, np.random.default_rng(1))
        for read, meant, counts in zip(batch.read, batch.meant, batch.counts, strict=True):
            pairs = dict(read[: 2 * recall.PAIRS].reshape(-1, 2).tolist())
            self.assertEqual(len(pairs), recall.PAIRS)
            asked = np.flatnonzero(counts)
            self.assertEqual(len(asked), recall.PAIRS)
            self.assertEqual([pairs[int(read[at])] for at in asked], meant[asked].tolist())
            self.assertGreaterEqual(asked.min(), 2 * recall.PAIRS)

    def test_a_byte_is_predicted_from_those_before_it(self) -> None:
        batch = next_byte.next_bytes(np.arange(12).reshape(2, 6))
        self.assertTrue(np.array_equal(batch.meant, batch.read + 1))
        self.assertTrue(batch.counts.all())


TINY = Sizes(layers=1, heads=2, head_size=8, context=copying.SIZES.context)


def tiny_task(steps: int = 6, learning_rate: float = 4e-3) -> Task:
    return dataclasses.replace(
        find_task("copying"),
        sizes=TINY,
        schedule=Schedule(steps=steps, batch=2, learning_rate=learning_rate, every=2),
        held_out=lambda: copying.batch(3, np.random.default_rng(9)),
    )


def run_of(spec: str, task: Task | None = None, redraw: int = 0, seed: int = 1) -> Run:
    return Run(task or tiny_task(), parse_attention(spec), redraw, seed)


class Training(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        quiet = mock.patch("builtins.print")
        quiet.start()
        self.addCleanup(quiet.stop)

    def test_a_model_begins_at_chance(self) -> None:
        for spec in ("softmax", "linear", "vq:codes=8"):
            trainer = Trainer(run_of(spec), self.folder / spec)
            bits = training.evaluate(trainer.model, trainer.held_out).bits
            self.assertLess(abs(bits - math.log2(256)), 0.3)  # all 256 bytes are as probable

    def test_a_text_in_pieces_counts_each_of_its_bytes_once(self) -> None:
        trainer = Trainer(run_of("softmax"), self.folder)
        batch = copying.batch(4, np.random.default_rng(3))
        counts = batch.counts & (np.arange(batch.counts.shape[1]) > np.array([[70], [125], [90], [100]]))
        alone = training.evaluate(trainer.model, Batch(batch.read, batch.meant, counts))
        both = training.evaluate(trainer.model, Batch(batch.read, batch.meant, counts, pieces=2))
        bytes_of = counts.sum(1)
        for text in range(2):
            pieces = slice(2 * text, 2 * text + 2)
            expected = np.average(alone.bits_by_text[pieces], weights=bytes_of[pieces])
            self.assertAlmostEqual(both.bits_by_text[text], expected, places=6)
        self.assertEqual(both.accuracy, alone.accuracy)

    def test_small_tasks_hold_out_whole_texts_in_pieces(self) -> None:
        causal, masked = find_task("small-bytes").held_out(), find_task("small-masked").held_out()
        self.assertEqual((causal.read.shape, causal.pieces), ((32 * 15, 64), 15))
        self.assertEqual((masked.read.shape, masked.pieces), ((32 * 16, 64), 16))
        self.assertTrue(np.array_equal(causal.meant[0, :-1], causal.read[0, 1:]))
        self.assertEqual(causal.meant[0, -1], causal.read[1, 0])  # the next byte is that of the next piece
        self.assertTrue((masked.read[masked.counts] == 255).all())

    def test_keys_may_be_wider_than_values(self) -> None:
        for key_size in (4, 16):
            sizes = dataclasses.replace(TINY, key_size=key_size)
            run = run_of("softmax", dataclasses.replace(tiny_task(), sizes=sizes))
            row = training.train(run, self.folder / str(key_size))
            self.assertEqual(row["settings"]["key_size"], key_size)
            self.assertLess(row["measured"]["engine_difference"], 1e-12)
            captured = Trainer(run, self.folder / "new").model.captured(torch.zeros(5, dtype=torch.long))
            self.assertEqual(captured["q"].shape[-1], key_size)
            self.assertEqual(captured["v"].shape[-1], TINY.head_size)
        self.assertNotIn("key_size", run_of("softmax").settings())

    def test_a_run_that_was_stopped_goes_on_to_the_same_curve(self) -> None:
        for spec, redraw in (("vq:codes=8", 0), ("performer:m=8", 2), ("performer:m=8", 0)):
            with self.subTest(spec=spec, redraw=redraw):
                whole = Trainer(run_of(spec, redraw=redraw), self.folder)
                held = whole.train()
                whole.checkpoint.unlink()
                first = Trainer(run_of(spec, redraw=redraw), self.folder)
                first.train(until=3)
                again = Trainer(run_of(spec, redraw=redraw), self.folder)
                self.assertEqual(again.step, 3)
                resumed = again.train()
                self.assertEqual((again.steps, again.curve), (whole.steps, whole.curve))
                self.assertEqual(again.steps, [0, 2, 4, 6])
                self.assertEqual(again.first_bits_by_text, whole.first_bits_by_text)
                assert held is not None and resumed is not None
                self.assertTrue(np.array_equal(held.bits_by_text, resumed.bits_by_text))
                self.assertEqual(held.bits, whole.curve[-1])
                ended = Trainer(run_of(spec, redraw=redraw), self.folder)  # it died before it wrote its row
                ended.train()
                self.assertEqual((ended.steps, ended.curve), (whole.steps, whole.curve))
                again.checkpoint.unlink()

    def test_redrawing_changes_the_curve_and_seeds_do_too(self) -> None:
        curves = []
        runs = [("performer:m=8", 0, 1), ("performer:m=8", 1, 1), ("softmax", 0, 1), ("softmax", 0, 2)]
        for place, (spec, redraw, seed) in enumerate(runs):
            trainer = Trainer(run_of(spec, redraw=redraw, seed=seed), self.folder / str(place))
            trainer.checkpoint.parent.mkdir()
            trainer.train()
            curves.append(trainer.curve)
        self.assertEqual(curves[0][0], curves[1][0])
        self.assertNotEqual(curves[0][1], curves[1][1])
        self.assertNotEqual(curves[2][0], curves[3][0])

    def test_a_device_that_is_not_there_is_refused(self) -> None:
        with mock.patch("torch.cuda.device_count", return_value=2):
            self.assertEqual(program.device_named("cuda:1"), torch.device("cuda:1"))
            self.assertEqual(program.device_named("cuda"), torch.device("cuda"))
        self.assertEqual(program.device_named("cpu"), torch.device("cpu"))
        for name, expected in (
            ("cuda:2", "finds 2 CUDA devices here; give --device cpu"),
            ("cuda:", "expected cpu, cuda, or cuda:I"),
            ("gpu", "expected cpu, cuda, or cuda:I"),
        ):
            with mock.patch("torch.cuda.device_count", return_value=2), self.assertRaisesRegex(Refused, expected):
                program.device_named(name)

    def test_a_row_names_the_device_that_trained_it(self) -> None:
        with mock.patch("torch.cuda.get_device_name", return_value="A GPU"):
            self.assertEqual(training.conditions(torch.device("cuda:0"))["processor"], "A GPU")
        self.assertEqual(training.conditions(torch.device("cpu"))["processor"], training.processor())

    def test_a_penalty_of_an_attention_is_trained_away(self) -> None:
        def norm_after(penalty: float) -> float:
            trainer = Trainer(run_of("softmax"), self.folder)
            (mixing,) = mixings(trainer.model)
            weight = trainer.model.layers[0].attention.qkv.weight
            with mock.patch.object(mixing, "penalty", lambda: penalty * weight.square().sum()):
                trainer.train(until=4)
            trainer.checkpoint.unlink()
            return float(weight.detach().norm())

        self.assertLess(norm_after(1e4), 0.99 * norm_after(0.0))

    def test_mixing_begins_as_small_as_attention_does(self) -> None:
        def added(spec: str) -> float:
            model = build(TINY, False, parse_attention(spec), 1).eval()
            attention = model.layers[0].attention
            x = torch.randn(1, TINY.context, TINY.width, generator=torch.Generator().manual_seed(1))
            with torch.no_grad():
                return float(attention(x, None, False).norm())

        self.assertLess(added("fnet"), 20 * added("softmax"))  # 6 times; without a gain 200

    def test_only_bytes_that_count_are_in_the_loss(self) -> None:
        trainer = Trainer(run_of("softmax"), self.folder)
        batch = copying.batch(2, np.random.default_rng(1))
        other = dataclasses.replace(batch, meant=np.where(batch.counts, batch.meant, 77))
        self.assertEqual(training.loss_of(trainer.model, batch).item(), training.loss_of(trainer.model, other).item())
        wrong = dataclasses.replace(batch, meant=np.where(batch.counts, 77, batch.meant))
        self.assertNotEqual(
            training.loss_of(trainer.model, batch).item(), training.loss_of(trainer.model, wrong).item()
        )
        self.assertEqual(
            training.evaluate(trainer.model, batch).bits_by_text.tolist(),
            training.evaluate(trainer.model, other).bits_by_text.tolist(),
        )

    def test_the_rate_warms_up_stays_and_falls_to_zero(self) -> None:
        rates = [training.rate(step, 100, 2.0) for step in range(101)]
        self.assertEqual(rates[0], 0.2)
        self.assertTrue(np.allclose(rates[9:81], 2.0))
        self.assertAlmostEqual(rates[90], 1.0)
        self.assertEqual(rates[100], 0)

    def test_a_checkpoint_of_other_settings_is_refused_with_what_differs(self) -> None:
        Trainer(run_of("softmax"), self.folder).train(until=2)
        with self.assertRaisesRegex(Refused, "steps=6, not 8; give --folder another folder"):
            Trainer(run_of("softmax", tiny_task(steps=8)), self.folder)

    def test_a_run_has_a_row_that_is_held_to_the_cpp_method_and_is_not_repeated(self) -> None:
        row = training.train(run_of("truncated:window=5"), self.folder)
        self.assertEqual(row["ending"], "done")
        self.assertLess(row["measured"]["engine_difference"], 1e-12)
        self.assertEqual(len(row["measured"]["bits_by_text"]), 3)
        self.assertEqual(row["measured"]["curve"][-1], row["measured"]["held_out_bits"])
        with mock.patch("training.Trainer", side_effect=AssertionError("trained twice")):
            self.assertEqual(training.train(run_of("truncated:window=5"), self.folder), row)
        with self.assertRaisesRegex(Refused, "row.json was made with other settings"):
            training.train(run_of("truncated:window=5", tiny_task(steps=8)), self.folder)

    def test_an_attention_that_is_not_its_method_fails_with_the_difference(self) -> None:
        wrong = Attention("local:window=4", "local", {"window": "5"})
        row = training.train(Run(tiny_task(), wrong, 0, 1), self.folder)
        self.assertEqual((row["ending"], row["measured"]), ("failed", {}))
        self.assertRegex(row["reason"], r"differs from the method local:window=4 of attnbench by .*does not count")

    def test_a_loss_that_is_nan_fails_the_run_and_the_next_one_is_trained(self) -> None:
        broken = run_of("softmax", tiny_task(learning_rate=1e30))
        row = training.train(broken, self.folder)
        self.assertEqual(row["ending"], "failed")
        self.assertRegex(row["reason"], "loss is (nan|inf) (at|after) step")
        self.assertFalse((self.folder / broken.name / "checkpoint.pt").exists())
        with (
            mock.patch.object(program, "requested", return_value=[broken, run_of("linear")]),
            mock.patch.object(sys, "argv", ["train.py", "--folder", str(self.folder)]),
        ):
            self.assertEqual(program.main(), 1)
        self.assertTrue((self.folder / run_of("linear").name / "row.json").exists())

    def test_weights_in_common_are_equal_whatever_the_attention(self) -> None:
        models = [build(TINY, True, parse_attention(spec), 1) for spec in ("softmax", "synthesizer", "performer:m=8")]
        own = models[0].state_dict()
        for model in models[1:]:
            state = model.state_dict()
            self.assertTrue(all(torch.equal(tensor, state[name]) for name, tensor in own.items()))
            self.assertGreater(len(state), len(own))
        self.assertEqual(len(mixings(models[2])), 1)

    def test_without_the_module_a_curve_does_not_count(self) -> None:
        model = build(TINY, True, parse_attention("softmax"), 1).eval()
        with (
            mock.patch.dict(sys.modules, {"attnbench": None}),
            self.assertRaisesRegex(Refused, "PYTHONPATH=build/release/python"),
        ):
            engine.engine_difference(model, parse_attention("softmax"), torch.zeros(5, dtype=torch.long))


class Requests(unittest.TestCase):
    def test_unknown_names_are_refused_with_those_that_exist(self) -> None:
        for spec, words in {
            "sofmax": "'sofmax' is no attention that can be trained; expected one of fnet, linear,",
            "local:windw=3": "'windw=3' of 'local:windw=3' is no parameter .*expected window=64",
            "local:window=x": None,
            "linear:features=elu,": None,
        }.items():
            if words:
                with self.subTest(spec), self.assertRaisesRegex(Refused, words):
                    parse_attention(spec)
        with self.assertRaisesRegex(Refused, "expected an integer from 1"):
            parse_attention("local:window=x").make(Place(HEADS, D, N, True))
        with self.assertRaisesRegex(Refused, "cannot be trained; expected elu, exp, relu"):
            parse_attention("linear:features=cos").make(Place(HEADS, D, N, True))
        with self.assertRaisesRegex(Refused, "'copy' is no training task; expected one of bytes, copying"):
            find_task("copy")

    def test_all_first_seeds_come_before_any_second_one(self) -> None:
        runs = program.grid_of(
            [
                {"task": "copying", "attentions": ["softmax", ["performer:m=8", 1]], "seeds": [1, 2]},
                {"task": "recall", "attentions": ["linear"], "seeds": [1, 2]},
            ]
        )
        self.assertEqual(
            [run.name for run in runs],
            [
                f"{name}/seed-{seed}"
                for seed in (1, 2)
                for name in ("copying/softmax", "copying/performer:m=8+redraw=1", "recall/linear")
            ],
        )
        with self.assertRaisesRegex(Refused, "no part of a grid; expected an object with task"):
            program.grid_of([{"task": "copying"}])

    def test_the_grid_of_the_recipes_can_be_built(self) -> None:
        for cell in json.loads((ROOT / "scripts/train/grid.json").read_text()):
            task = find_task(cell["task"])
            causal, sizes = task.causal, task.sizes
            for attention in cell["attentions"]:
                spec = attention if isinstance(attention, str) else attention[0]
                parse_attention(spec).make(Place(sizes.heads, sizes.head_size, sizes.context, causal))

    def test_misuse_is_one_line_and_exit_code_2(self) -> None:
        def said(*words: str, **environment: str) -> str:
            command = [sys.executable, str(ROOT / "scripts/train/train.py"), *words]
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr.count("\n"), 1)
            return done.stderr

        self.assertIn("expected one of fnet", said("--task", "copying", "--attention", "sofmax"))
        self.assertIn("--list prints all tasks", said())
        self.assertIn("such as --seeds 1,2,3", said("--task", "copying", "--attention", "softmax", "--seeds", "one"))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
            self.assertIn("pip install torch", said("--list", PYTHONPATH=folder))


class Rows(unittest.TestCase):
    def test_rows_go_into_a_results_file_and_into_the_file_of_the_experiment(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with mock.patch("builtins.print"):
                row = training.train(run_of("linear:features=exp"), folder / "runs")
                training.train(run_of("softmax", tiny_task(learning_rate=1e30)), folder / "runs")
            environment = os.environ | {
                "PYTHONPATH": str(BUILD / "python"),
                "ATTNBENCH_TRAINED": str(folder / "out/rows.jsonl"),
            }
            collect = [sys.executable, str(ROOT / "scripts/train/collect.py"), str(folder / "runs")]
            into = ["-o", str(folder / "out"), "--results", str(folder / "rows.db")]
            done = subprocess.run(collect + into, capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"2 rows, 2 of them from {folder / 'runs'}, 1 failed", done.stdout)
            recorded = attnbench.read(folder / "rows.db", metric="curve", arrays=True)
            kept = recorded[recorded["ending"] == "done"]["value"].tolist()
            self.assertTrue(np.allclose(kept, row["measured"]["curve"], rtol=1e-12))
            self.assertEqual(set(recorded["replicate"]), {0})
            # The program reads the same curve from rows.jsonl, which has six digits.
            asked = ["run", "training", "--input", "trained:task=copying", "--causal", "--results", "run.db"]
            methods = ["--method", "linear:features=exp", "--method", "softmax"]
            run = [str(BUILD / "attnbench"), *asked, *methods]
            done = subprocess.run(run, capture_output=True, text=True, env=environment, cwd=folder)
            self.assertIn("loss is", done.stdout + done.stderr)
            read = attnbench.read(folder / "run.db", metric="curve", arrays=True)
            values = read[read["ending"] == "done"]["value"].tolist()
            self.assertTrue(np.allclose(values, row["measured"]["curve"], rtol=1e-5))
            self.assertEqual(len(values), 4)

    def test_rows_of_another_machine_stay_until_their_run_is_trained_again(self) -> None:
        def row(attention: str, seed: int, bits: float) -> dict[str, Any]:
            settings = {"task": "copying", "attention": attention, "redraw": 0, "seed": seed}
            return {"settings": settings, "ending": "done", "reason": "", "measured": {"held_out_bits": bits}}

        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for attention, seed, bits in (("softmax", 2, 0.25), ("linear", 1, 0.5)):
                run = folder / f"runs/copying/{attention}/seed-{seed}"
                run.mkdir(parents=True)
                (run / "row.json").write_text(json.dumps(row(attention, seed, bits)))
            rows = [row("softmax", 2, 4.0), row("softmax", 1, 8.0)]
            (folder / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
            command = [sys.executable, str(ROOT / "scripts/train/collect.py"), str(folder / "runs"), "-o", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            self.assertIn("3 rows, 2 of them from", done.stdout)
            kept = collect.recorded_rows(folder / "rows.jsonl")
            self.assertEqual(kept, [row("linear", 1, 0.5), row("softmax", 1, 8.0), row("softmax", 2, 0.25)])

    def test_missing_leaves_out_runs_with_a_recorded_row_of_the_same_settings(self) -> None:
        copying_runs = program.grid_of([{"task": "copying", "attentions": ["softmax", "linear"], "seeds": [1]}])
        old, new = ({"settings": run.settings()} for run in copying_runs)
        old["settings"]["steps"] += 1
        with mock.patch.object(program, "recorded_rows", return_value=[old, new]):
            self.assertEqual(program.missing(copying_runs), copying_runs[:1])

    def test_an_empty_folder_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(ROOT / "scripts/train/collect.py"), folder]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no run in", done.stderr)


if __name__ == "__main__":
    unittest.main()
