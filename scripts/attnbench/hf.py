"""Models of Hugging Face's transformers, and other PyTorch models: their heads, and methods in place of their attention.

    import attnbench.hf
    attnbench.hf.capture(model, batch, "heads.safetensors")              # for --input file:heads.safetensors
    with attnbench.hf.attention(model, "performer:m=256", layers=[0, 3]):
        model(**batch)                                                   # attention of these layers by a method
    attnbench.hf.evaluate(model, texts, ["softmax", "performer"], tokenizer=tokenizer, results="model.db")

torch and transformers are imported when they are needed. The methods run on the CPU, in this process.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attnbench import _native
from attnbench._native import Misuse
from attnbench.loading import name_of
from attnbench.visible_keys import Cut, cut_of, visible_of

if TYPE_CHECKING:
    import pandas

    from attnbench.intercepted import Call

__all__ = ["attention", "capture", "evaluate", "layers"]

Array = NDArray[np.float32]
Heads = tuple[Array, Array, Array]
Text = tuple[Array, Array, bool | None]
Memory = dict[int, list[Text]]
"""By layer, q and k of the texts that its last call read, without padding, and whether it was causal."""
OLDEST = {"torch": (2, 1), "transformers": (5, 0)}


def layers(model: Any) -> list[str]:
    """The names of the modules that attend; layers=[0, 3] are the first and the fourth of them."""
    _require_packages()
    from attnbench.intercepted import layers_of

    return layers_of(model)


def capture(model: Any, batch: Any, file: str | os.PathLike[str], *, layers: Sequence[int] | None = None) -> list[Path]:
    """Calls the model once with a batch, and writes q, k and v of its attention to files that `--input file:` reads.

    batch: tensors by name, as a tokenizer returns them, or one tensor. layers: the numbers of those that are captured,
    by default all. Returns the paths: `file` for a batch of one text, and file.0, file.1, ... (before the extension) for
    several. Each has q, k and v in float32 of shape [layers, heads, n, d], so that --input file:PATH,batch=2,head=1 is
    the third of the captured layers and its second head. They are taken after all that the model does to them, such as a
    rotation; q is scaled such that the logits are q.k / sqrt(d), as in attnbench. Padding is cut out, and heads that
    share keys get copies. Give --causal yourself: the file's metadata says whether the model's attention is causal.
    Raises Misuse.
    """
    path = Path(file)
    if path.suffix != ".safetensors":
        raise Misuse(
            f"capture: {path.name} is not the name of a safetensors file; call it {path.with_suffix('.safetensors')}"
        )
    if not path.parent.is_dir():
        raise Misuse(f"capture: there is no folder {path.parent}; give another file")
    found = captured(model, batch, layers)
    texts = len(next(iter(found.values())))
    paths = [path if texts == 1 else path.with_name(f"{path.stem}.{i}{path.suffix}") for i in range(texts)]
    from safetensors.numpy import save_file

    for text, place in enumerate(paths):
        heads = [of_layer[text] for of_layer in found.values()]
        shapes = {tuple(x.shape for x in one[0]): layer for layer, one in zip(found, heads)}
        if len(shapes) > 1:
            said = ", ".join(f"layer {layer}: q {shape[0]}, k {shape[1]}" for shape, layer in shapes.items())
            raise Misuse(
                f"capture: a file has heads of one shape, and these differ ({said}); give layers= of one shape"
            )
        # save_file writes memory as it lies, and stack keeps the order of axes that a cut has.
        tensors = {name: np.ascontiguousarray([one[0][i] for one in heads]) for i, name in enumerate("qkv")}
        causal = {"unknown" if cut.causal is None else str(cut.causal).lower() for _, cut in heads}
        facts = {"layers": ",".join(map(str, found)), "causal": "/".join(sorted(causal)), "model": type(model).__name__}
        temporary = place.with_name(place.name + ".tmp")
        save_file(tensors, temporary, facts)
        temporary.replace(place)
    return paths


@contextmanager
def attention(
    model: Any,
    method: str | type,
    *,
    layers: Sequence[int] | None = None,
    seed: int = 1,
    calibration: Any = None,
) -> Iterator[None]:
    """While it is open, a method computes the attention of these layers, by default of all.

    method: a spec, or a class with attend. Masks are honoured where they are causal or padding, keys that several heads
    share are shared, and logits are scaled as the model scales them. Each layer has draws of its own, which depend on
    seed. calibration: a batch whose heads a method that is fitted learns from; without it, it learns from the heads that
    it computes. Contexts may be nested, for several methods in one model. There are no gradients. Raises Misuse, in the
    model's call also for a mask or a bias that methods do not know.
    """
    _require_packages()
    from attnbench.intercepted import CROSSED, intercepted, layers_of

    spec = name_of(method)
    fitted = _native.fitted(spec)
    names = layers_of(model)
    chosen = _chosen(model, layers, names)
    learnt = captured(model, calibration, layers) if fitted and calibration is not None else None
    called: set[int] = set()
    crossed = [layer for layer, module in enumerate(names) if CROSSED.search(module)]
    read: Memory = {}
    if fitted and learnt is None:
        warnings.warn(f"{spec} learns from the heads that it computes; calibration=BATCH gives it others", stacklevel=3)

    def by_method(call: Call) -> Any:
        called.add(call.layer)
        if call.same_tokens and call.q.shape[2] == call.k.shape[2]:  # a text begins, and a decoder's queries with it
            for layer in crossed:
                if layer > call.layer:
                    read.pop(layer, None)
        if chosen is not None and call.layer not in chosen:
            return None
        return applied(spec, call, seed, None if learnt is None else learnt[call.layer][0][0], read)

    with intercepted(model, by_method):
        yield
    if chosen and called and not names:  # layers that use the interface are known beforehand
        _refuse_missing("attention", chosen, called)


def evaluate(
    model: Any,
    texts: Iterable[Any],
    methods: Iterable[str | type] | str | type,
    *,
    tokenizer: Any = None,
    results: str | os.PathLike[str],
    n: int | None = None,
    layers: Sequence[int] | None = None,
    calibration: Any = None,
    seed: int = 1,
    name: str | None = None,
) -> pandas.DataFrame:
    """The bits that a language model loses when a method computes its attention: rows of `model-loss` in a results file.

    texts: the replicates, each a string (with its tokenizer, a fast one), or numbers of tokens; of each, the first n
    tokens are read, by default as many as the shortest text has. Models that see later tokens predict 15 % of the tokens,
    masked (the tokenizer names the mask); others predict the next token. bits_per_byte is per byte of the text for
    strings, and per token for numbers. methods, layers, seed: as for `attention`; replicates have draws of their own.
    calibration: the text that fitted methods learn from. name: of the model, by default its own. A method that cannot
    compute the model's attention has rows that say why. Returns the table of these rows; page, figures and `compare` read
    the file. Raises Misuse.
    """
    _require_packages()
    from attnbench.hf_evaluation import evaluated

    return evaluated(model, texts, methods, tokenizer, results, n, layers, calibration, seed, name)


def captured(model: Any, batch: Any, layers: Sequence[int] | None = None) -> dict[int, list[tuple[Heads, Cut]]]:
    """By layer, the heads of each text of a batch: q [heads, n, d] scaled for logits q.k / sqrt(d), k, v, without padding."""
    _require_packages()
    import torch

    from attnbench.intercepted import intercepted, layers_of

    chosen = _chosen(model, layers, layers_of(model))
    found: dict[int, list[tuple[Heads, Cut]]] = {}

    def keep(call: Call) -> None:
        if chosen is not None and call.layer not in chosen:
            return
        if call.layer in found:
            raise Misuse(f"capture: {call.where} was called twice; give a batch that the model reads in one call")
        parts = [part_of(call, item) for item in range(call.q.shape[0])]
        shared = call.q.shape[1] // call.k.shape[1]
        found[call.layer] = [((q, k.repeat(shared, 0), v.repeat(shared, 0)), cut) for (q, k, v), cut in parts]

    with torch.no_grad(), intercepted(model, keep):
        call_with(model, batch)
    _refuse_missing("capture", chosen or set(), set(found))
    for layer, texts in found.items():
        for heads, _ in texts:
            if not all(np.isfinite(x).all() for x in heads):
                raise Misuse(f"capture: layer {layer} has NaN or infinity in its q, k or v; {flawed_weight(model)}")
    return dict(sorted(found.items()))


def part_of(call: Call, item: int) -> tuple[Heads, Cut]:
    """The heads of one text without its padding: q, k, v in float32, and the part that they are."""
    nq, nk, d = call.q.shape[2], call.k.shape[2], call.q.shape[3]
    if call.mask is not None:
        visible = visible_of(_array(call.mask[item]), call.where)
    else:
        visible = np.tri(nq, nk, nk - nq, dtype=np.bool_) if call.causal else np.ones((nq, nk), dtype=np.bool_)
    cut = cut_of(visible, call.same_tokens, call.where)
    if cut.causal is None:
        cut = cut._replace(causal=call.causal)
    q, k, v = (_array(x[item]) for x in (call.q, call.k, call.v))
    q = q * np.float32(call.scaling * d**0.5)
    return (q[:, cut.rows], k[:, cut.keys], v[:, cut.keys]), cut


def applied(spec: str, call: Call, seed: int, calibration: Heads | None = None, read: Memory | None = None) -> Any:
    """The output of a method for one call, a tensor [batch, heads, nq, dv]; 0 for queries that are padding.

    read: the texts of earlier calls, which this one continues if it has a cache; the call's own come to it.
    """
    import torch

    out = np.zeros((*call.q.shape[:3], call.v.shape[3]), dtype=np.float32)
    of_layer = zlib.crc32(f"{seed} layer {call.layer}".encode())
    learnt = None if calibration is None else [x[None].astype(np.float64) for x in calibration]
    place = (call.layer, call.layers) if call.layers > 0 else (0, 1)
    texts = []

    def attend(q: Array, k: Array, v: Array, causal: bool) -> Array:
        arrays = [np.ascontiguousarray(x[None]) for x in (q, k, v)]
        made: Array = _native.attend(
            spec, "out", arrays[0], arrays[1], arrays[2], causal, of_layer, False, learnt, None, {}, place
        )[0]
        return made

    for item in range(len(out)):
        (q, k, v), cut = part_of(call, item)
        causal, rows = cut.causal, len(cut.rows)
        if read is not None and rows < len(cut.keys) and (rows == 1 or causal):
            of_another = not call.same_tokens and causal is False
            earlier = _crossing(read, call.layer, item, k) if of_another else _continued(read, call.layer, q, k)
            if earlier is not None:
                q = np.concatenate([earlier[0], q], axis=1)
                causal = bool(causal) or earlier[2] is not False and not of_another
        texts.append((q, k, causal))
        try:
            made = attend(q, k, v, causal) if causal is not None else _of_one_query(attend, q, k, v)
        except Misuse as error:
            raise Misuse(f"{call.where}: {error}") from None
        out[item][:, cut.rows] = made[:, -rows:]
    if read is not None:
        read[call.layer] = texts
    tensor = torch.from_numpy(out).to(call.q.device, call.q.dtype)
    return _without_gradient(spec, call, tensor)


def _continued(read: Memory, layer: int, q: Array, k: Array) -> Text | None:
    """The text of nk - nq tokens that a call with a cache continues; None: no earlier call had it.

    Rows of some methods (heavy-hitter, eva, vattention) depend on earlier queries, and those of others on random numbers of
    their places. The first layer to be asked is the call's own: without the interface, its number may change.
    """
    earlier = k.shape[1] - q.shape[1]
    for place in sorted(read, key=lambda other: other != layer):
        for text in read[place]:
            queries, keys, _ = text
            same = queries.shape == (len(q), earlier, q.shape[2]) and keys.shape == (len(k), earlier, k.shape[2])
            if same and np.array_equal(keys, k[:, :earlier]):
                return text
    return None


def _crossing(read: Memory, layer: int, item: int, k: Array) -> Text | None:
    """The queries that a decoder with a cache had for these same keys of an encoder."""
    texts = read.get(layer, [])
    same = item < len(texts) and texts[item][1].shape == k.shape and np.array_equal(texts[item][1], k)
    return texts[item] if same else None


def _of_one_query(attend: Callable[[Array, Array, Array, bool], Array], q: Array, k: Array, v: Array) -> Array:
    """The row of one query when the call does not say whether its token is the last. Raises Misuse if that changes the row."""
    forms, refusals = [], []
    for causal in (False, True):
        try:
            forms.append(attend(q, k, v, causal))
        except Misuse as error:
            refusals.append(error)
    if not forms:
        raise refusals[0]
    if np.abs(forms[0] - forms[-1]).max() > 1e-4 * np.abs(forms[0]).max():
        raise Misuse(
            f"it has one query for {k.shape[1]} keys, and nothing tells whether that is the last token of a causal text; "
            "call the model with the text before it first, with its cache and in the same attnbench.hf.attention"
        )
    return forms[0]


def _without_gradient(spec: str, call: Call, output: Any) -> Any:
    """The output, whose gradient is refused rather than taken to be 0."""
    import torch

    if not torch.is_grad_enabled() or not (call.q.requires_grad or call.k.requires_grad or call.v.requires_grad):
        return output

    class Refusing(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, *given: Any) -> Any:
            return output

        @staticmethod
        def backward(context: Any, *gradients: Any) -> Any:
            raise Misuse(
                f"{call.where}: attention by {spec} has no gradients here; leave the context before backward()"
            )

    return Refusing.apply(call.q, call.k, call.v)


def call_with(model: Any, batch: Any) -> Any:
    """The model's output for a mapping of tensors, or for one tensor."""
    return model(**batch) if isinstance(batch, Mapping) or hasattr(batch, "keys") else model(batch)


def flawed_weight(model: Any) -> str:
    """Which weight is not finite, for messages."""
    for name, weight in model.named_parameters():
        if not bool(weight.isfinite().all()):
            return f"its weight {name} has NaN or infinity: load the weights again"
    return "its weights are finite: run it in float32"


def _array(tensor: Any) -> NDArray[Any]:
    import torch

    tensor = tensor.detach().cpu()
    array: NDArray[Any] = (tensor if tensor.dtype == torch.bool else tensor.to(torch.float32)).numpy()
    return array


def _chosen(model: Any, layers: Sequence[int] | None, names: Sequence[str]) -> set[int] | None:
    """None: all."""
    if layers is None:
        return None
    chosen = set(layers)
    wrong = sorted(layer for layer in chosen if layer < 0 or (names and layer >= len(names)))
    if wrong or not chosen:
        there = f"from 0 to {len(names) - 1}" if names else "from 0"
        given = f"layer {wrong[0]}" if wrong else "no layer"
        raise Misuse(
            f"layers: {given} was asked for and {type(model).__name__} has layers {there}; see attnbench.hf.layers"
        )
    return chosen


def _refuse_missing(who: str, chosen: set[int], called: set[int]) -> None:
    missing = sorted(chosen - called)
    if missing or not called:
        said = f"layer {missing[0]} was not" if missing else "no layer was"
        raise Misuse(f"{who}: {said} called for this batch; expected one of layers {sorted(called)}")


def _require_packages() -> None:
    """Raises Misuse if a package is missing or too old."""
    for name, oldest in OLDEST.items():
        wanted = ".".join(map(str, oldest))
        try:
            version = str(importlib.import_module(name).__version__)
        except ImportError:
            raise Misuse(
                f"attnbench.hf needs {name}, which {sys.executable} does not have; install it: "
                f"{sys.executable} -m pip install '{name}>={wanted}'"
            ) from None
        if tuple(int(part) for part in version.split(".")[:2]) < oldest:
            raise Misuse(
                f"attnbench.hf needs {name} {wanted} or later, and {sys.executable} has {version}; install it: "
                f"{sys.executable} -m pip install --upgrade '{name}>={wanted}'"
            )
