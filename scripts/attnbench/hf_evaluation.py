"""The bits that a language model loses when a method computes its attention: rows of the experiment `model-loss`.

The numbers are those of experiments/model_loss.cpp, of tokens in place of bytes: loss_i = -log2 p(token i), and excess_i is
the loss above that of the model's own attention on the same tokens. Bits are divided by the bytes of the predicted tokens.
"""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from attnbench import _native
from attnbench._native import Misuse, NumericallyInvalid
from attnbench.failures import Skip
from attnbench.hf import Heads, _chosen, applied, call_with, captured, flawed_weight
from attnbench.inputs import Input, Sizes
from attnbench.intercepted import Call, intercepted, layers_of
from attnbench.loading import name_of
from attnbench.recording import Values, record
from attnbench.running import several

if TYPE_CHECKING:
    import pandas

Array = NDArray[Any]
MASKED = 0.15  # of the tokens, as BERT was trained (Devlin et al. 2018, arXiv:1810.04805)
BLOCK = 64  # positions that a number of an array averages: model-loss:block=


class HuggingFace(Input):
    """A model of transformers on texts, measured by attnbench.hf.evaluate.

    weights and texts are hashes of what was measured, and unit says by what bits are divided.
    """

    name = "hugging-face"

    def __init__(self, model: str = "", weights: str = "", texts: str = "", unit: str = "byte") -> None:
        pass

    def draw(self, shape: Sizes, seed: int) -> tuple[Any, ...]:
        raise Misuse(
            "hugging-face: only attnbench.hf.evaluate measures such models; capture gives their heads as files"
        )


class Text(NamedTuple):
    tokens: Any
    """[1, n], as the model reads them"""
    targets: Array
    """[predicted], the tokens that are predicted"""
    rows: Array
    """[predicted], the rows of the logits that predict them"""
    sizes: Array
    """[predicted], their bytes; 1 each for texts given as numbers"""


def evaluated(
    model: Any,
    texts: Iterable[Any],
    methods: Iterable[str | type] | str | type,
    tokenizer: Any,
    results: Any,
    n: int | None,
    layers: Sequence[int] | None,
    calibration: Any,
    seed: int,
    name: str | None,
) -> pandas.DataFrame:
    """attnbench.hf.evaluate, after torch and transformers were found."""
    specs = [name_of(method) for method in several(methods)]
    texts = [] if isinstance(texts, str) else several(texts)
    if not texts or not specs:
        raise Misuse("evaluate: give a list of texts and a list of methods")
    if len(kinds := {isinstance(text, str) for text in texts}) > 1:
        raise Misuse("evaluate: some texts are strings and some are numbers of tokens; give all of them in one way")
    if any(map(_native.fitted, specs)) and calibration is None:
        fitted = next(filter(_native.fitted, specs))
        raise Misuse(f"evaluate: {fitted} is fitted; give calibration=TEXT, a text that is not among those measured")
    chosen = _chosen(model, layers, layers_of(model))
    read = [_tokens(text, tokenizer, f"text {i}") for i, text in enumerate(texts)]
    learnt_from = None if calibration is None else _tokens(calibration, tokenizer, "the calibration text")
    n = _length(n, [*read, *([learnt_from] if learnt_from else [])])
    with torch.no_grad():
        first = captured(model, torch.tensor([read[0].ids[:n]]), layers)
        causal = all(cut.causal for of_layer in first.values() for _, cut in of_layer)
        learnt = None
        if learnt_from is not None:
            learnt = {
                layer: texts[0][0] for layer, texts in captured(model, torch.tensor([learnt_from.ids[:n]])).items()
            }
        measured: dict[str, list[Values]] = {spec: [] for spec in specs}
        seconds: dict[str, list[float]] = {spec: [] for spec in specs}
        for replicate, tokens in enumerate(read):
            text = _predicted(tokens, n, causal, tokenizer, replicate, seed)
            try:
                exact = _log2_probabilities(model, text)
            except NumericallyInvalid as error:
                raise Misuse(f"evaluate: of the model with its own attention, {error}") from None
            for spec in specs:
                start = time.perf_counter()
                draw = crc32(f"{seed} replicate {replicate}".encode())
                measured[spec].append(_measured(model, text, exact, spec, chosen, learnt, draw))
                seconds[spec].append(time.perf_counter() - start)
    heads = next(iter(first.values()))[0][0]
    replaced = "all" if layers is None else "[" + ",".join(map(str, sorted(set(layers)))) + "]"
    return record(
        f"model-loss:replaced={replaced},block={BLOCK}",
        measured,
        input=_described(model, name, [tokens.ids[:n] for tokens in read], "byte" if kinds == {True} else "token"),
        n=n,
        d=heads[0].shape[-1],
        dv=heads[2].shape[-1],
        causal=causal,
        seed=seed,
        seconds=seconds,
        results=results,
    )


class Tokens(NamedTuple):
    """A text as its tokens."""

    ids: list[int]
    sizes: list[float]
    """The bytes of each, which add up to the text's; 1 each for texts given as numbers"""
    special: list[bool]
    """which the tokenizer adds to the text"""


def _tokens(text: Any, tokenizer: Any, which: str) -> Tokens:
    """The tokens of a text. Those that share a character have equal parts of its bytes, and characters that a tokenizer
    leaves out, such as spaces, belong to the token after them."""
    if not isinstance(text, str):
        numbers = np.asarray(text).reshape(-1)
        if numbers.dtype.kind not in "iu" or len(numbers) == 0:
            raise Misuse(f"evaluate: {which} is {text!r:.40}; expected a string, or numbers of tokens")
        return Tokens(numbers.tolist(), [1] * len(numbers), [False] * len(numbers))
    if tokenizer is None or not getattr(tokenizer, "is_fast", False):
        raise Misuse(
            "evaluate: a text that is a string needs tokenizer=, a fast one of transformers, which knows the place of each "
            "token in the text; or give numbers of tokens"
        )
    said = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
    special = [bool(x) for x in said["special_tokens_mask"]]
    last = max((i for i, added in enumerate(special) if not added), default=None)
    ends, parts = 0, []
    for i, (begin, end) in enumerate(said["offset_mapping"]):
        stop = len(text) if i == last else end
        parts.append(slice(0, 0) if special[i] else slice(min(begin, ends), stop))
        ends = max(ends, parts[-1].stop)
    sharing = np.zeros(len(text))
    for part in parts:
        sharing[part] += 1
    shares = np.array([len(character.encode()) for character in text]) / np.maximum(sharing, 1)
    return Tokens(list(said["input_ids"]), [float(shares[part].sum()) for part in parts], special)


def _length(n: int | None, read: Sequence[Tokens]) -> int:
    lengths = [len(tokens.ids) for tokens in read]
    shortest = min(lengths)
    if n is not None and n > shortest:
        which = lengths.index(shortest)
        raise Misuse(
            f"evaluate: n = {n} was asked for and text {which} has {shortest} tokens; give longer texts or n={shortest}"
        )
    n = shortest if n is None else n
    if n < 2:
        raise Misuse(f"evaluate: n = {n}; expected at least 2 tokens, since the first one is not predicted")
    return n


def _predicted(tokens: Tokens, n: int, causal: bool, tokenizer: Any, replicate: int, seed: int) -> Text:
    """The next tokens of a causal model among the first n; 15 % of these, masked, of another."""
    ids, bytes_of, of_text = (np.array(x[:n]) for x in (tokens.ids, tokens.sizes, np.logical_not(tokens.special)))
    if causal:
        kept = np.flatnonzero(of_text[1:]) + 1
        rows, given = kept - 1, ids
    else:
        mask = getattr(tokenizer, "mask_token_id", None)
        if mask is None:
            raise Misuse(
                "evaluate: each token of this model sees the later ones, so it predicts masked tokens; give tokenizer=, one "
                "that has a mask token"
            )
        may_be = np.flatnonzero(of_text & ~np.isin(ids, tokenizer.all_special_ids))
        generator = np.random.default_rng([seed, replicate])
        kept = np.sort(generator.choice(may_be, min(len(may_be), max(1, round(MASKED * len(ids)))), replace=False))
        rows, given = kept, ids.copy()
        given[kept] = mask
    if len(kept) == 0:
        raise Misuse(
            f"evaluate: text {replicate} has no token that is predicted (all of its {len(ids)} are special); give another"
        )
    return Text(torch.tensor(given[None]), ids[kept], rows, bytes_of[kept])


def _log2_probabilities(model: Any, text: Text) -> Array:
    """log2 p of every token at the predicted places, [predicted, vocabulary]."""
    device = next(model.parameters()).device
    output = call_with(model, text.tokens.to(device))
    logits = getattr(output, "logits", output)
    if not isinstance(logits, torch.Tensor) or logits.dim() != 3 or logits.shape[1] != text.tokens.shape[1]:
        raise Misuse(
            f"evaluate: {type(model).__name__} gives no logits of tokens; load the model with its language modelling head "
            "(AutoModelForCausalLM or AutoModelForMaskedLM)"
        )
    rows = logits[0, torch.from_numpy(text.rows).to(device)].to("cpu", torch.float64)
    if text.targets.max() >= rows.shape[1]:
        raise Misuse(f"evaluate: token {text.targets.max()} is not among the {rows.shape[1]} that the model predicts")
    if not bool(rows.isfinite().all()):
        raise NumericallyInvalid(f"the logits have NaN or infinity; {flawed_weight(model)}")
    log_p: Array = (torch.log_softmax(rows, dim=-1) / np.log(2)).numpy()
    return log_p


def _measured(
    model: Any,
    text: Text,
    exact: Array,
    spec: str,
    chosen: set[int] | None,
    learnt: Mapping[int, Heads] | None,
    seed: int,
) -> Values:
    """The metrics of one text and one draw, or why they are missing."""
    errors: list[float] = []

    def by_method(call: Call) -> Any:
        if chosen is not None and call.layer not in chosen:
            return None
        output = applied(spec, call, seed, None if learnt is None else learnt[call.layer])
        true = applied("softmax", call, seed)
        norms = [torch.linalg.vector_norm(x.double(), dim=(2, 3)) for x in (output - true, true)]
        errors.extend((norms[0] / norms[1]).reshape(-1).tolist())
        return output

    try:
        with intercepted(model, by_method):
            log_p = _log2_probabilities(model, text)
    except NumericallyInvalid as error:
        return error
    except Misuse as error:  # specs and texts were read before: this method has no form for such attention
        return Skip(str(error))
    return {**_losses(log_p, exact, text), "relative_output_error": float(np.mean(errors))}


def _losses(log_p: Array, exact: Array, text: Text) -> dict[str, Any]:
    place = np.arange(len(text.targets))
    bits, before = -log_p[place, text.targets], -exact[place, text.targets]
    total = text.sizes.sum()
    block = text.rows // BLOCK
    sizes = np.bincount(block, text.sizes)
    values = {
        "bits_per_byte": bits.sum() / total,
        "excess_bits": (bits - before).sum() / total,
        "top_agreement": (log_p.argmax(axis=1) == exact.argmax(axis=1)).mean(),
        "prediction_kl": (np.exp2(exact) * (exact - log_p)).sum(axis=1).mean(),
    }
    if (sizes > 0).all():  # with few masked tokens, a block may have none
        values["bits_by_position"] = np.bincount(block, bits) / sizes
        values["excess_bits_by_position"] = np.bincount(block, bits - before) / sizes
    return values


def _described(model: Any, name: str | None, texts: Sequence[list[int]], unit: str) -> str:
    """The spec of the input, which changes with the model's weights and with the texts."""
    name_of_config = getattr(getattr(model, "config", None), "name_or_path", "")
    said = re.sub(r"[^A-Za-z0-9_./-]+", "-", name or name_of_config or type(model).__name__)
    weights = hashlib.blake2b(digest_size=4)
    for key, weight in sorted(model.state_dict().items()):
        weights.update(key.encode())
        weights.update(weight.detach().to("cpu", torch.float32).contiguous().numpy().tobytes())
    read = hashlib.blake2b(repr(texts).encode(), digest_size=4)
    # A letter first, so that a hash of digits is not taken for a number.
    hashes = f"weights=w{weights.hexdigest()},texts=t{read.hexdigest()}"
    return f"{name_of(HuggingFace)}:model={said},{hashes},unit={unit}"
