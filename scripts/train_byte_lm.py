#!/usr/bin/python3
"""Train a byte-level transformer whose heads attnbench uses as real inputs.

    scripts/train_byte_lm.py             causal: predicts the next byte
    scripts/train_byte_lm.py --masked --start build/model.pt
                                         bidirectional: guesses masked bytes (scripts/masked_bytes.py). From random
                                         weights it needs many more steps

Needs PyTorch 2.9 or newer (pip install torch==2.13.0). The text comes from files that Debian 12
packages installed (scripts/byte_corpus.py). Four layers of three heads of 64, rotary positions, pre-normalisation, weights tied between
embedding and output. Every step reads windows of the full context of 1024 bytes.

The learning rate is constant and falls to zero over the last fifth of the steps. A run that was stopped goes on from
its checkpoint, and with another --steps if that fifth has not begun: to finish a run that has done S steps, give
--steps S / 0.8.

Written to the output folder, all float16 safetensors (sizes of the defaults: L = 4, H = 3, n = 1024, d = 64):
  measured.safetensors     q, k, v of shape [L, H, n, d] for a held-out file; q and k after the rotation, unscaled
  calibration.safetensors  the same for another held-out file, from which fitted methods may learn
  texts.safetensors        32 held-out texts, one per row, as bytes; texts.json lists them (scripts/held_out_texts.py);
                           `calibration` is the text of that capture, and the bidirectional model's loss is measured
                           on the texts as `masked` has them
  weights.safetensors      the trained weights; initial.safetensors: the weights before the first step
  training.log             loss and held-out bits per byte during training
  model.json               settings, packages, held-out bits per byte by kind of text and by window
                           (scripts/byte_evaluation.py), and head statistics
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from byte_corpus import CAPTURE_OFFSET, CAPTURES, KINDS, Corpus, Document, NoPackage, read_corpus
from byte_evaluation import bits, evaluate
from byte_model import ByteModel, Sizes
from held_out_texts import Excerpt, candidates, choose_texts, digest, excerpt, write_texts
from masked_bytes import corrupted
from numpy.typing import NDArray
from tensor_file import write_safetensors
from torch import Tensor, nn
from torch.nn import functional

# Documentation and dictionaries are a fifth of the bytes and more than half of what is not code.
SHARES = {"python": 0.3, "headers": 0.25, "documentation": 0.3, "dictionary": 0.15}
WARM_UP = 200  # steps
DECAY = 0.2  # of the steps
EVERY = 100  # steps between checkpoints
WATCHED_EVERY, WATCHED = 500, 12  # steps between evaluations, and texts of each kind in one
EVALUATED = 24  # texts of each kind in the evaluation after training


def joined(documents: dict[str, Document], kind: str) -> NDArray[np.uint8]:
    """All documents of a kind; byte 0 ends each. At the end is a window more, from the beginning."""
    text = b"".join(document.text + b"\0" for document in documents.values() if document.kind == kind)
    return np.frombuffer(text + text[: Sizes().context], dtype=np.uint8)


def windows(texts: dict[str, NDArray[np.uint8]], length: int, count: int, generator: np.random.Generator) -> Tensor:
    """[count, length] bytes from anywhere in the texts; kinds by their shares."""
    rows = []
    for kind in generator.choice(list(SHARES), count, p=list(SHARES.values())):
        start = generator.integers(0, len(texts[kind]) - length)
        rows.append(texts[kind][start : start + length])
    return torch.from_numpy(np.stack(rows).astype(np.int64))


def loss_of(model: ByteModel, texts: dict[str, NDArray[np.uint8]], batch: int, seed: list[int]) -> Tensor:
    """Mean bits of the bytes that the model predicts in one batch."""
    generator = np.random.default_rng(seed)
    context = Sizes().context
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if model.causal:
            tokens = windows(texts, context + 1, batch, generator)
            logits, meant = model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
        else:
            tokens = windows(texts, context, batch, generator)
            said, where = corrupted(tokens.numpy(), generator)
            counts = torch.from_numpy(where)
            logits, meant = model(torch.from_numpy(said))[counts], tokens[counts]
    return functional.cross_entropy(logits.float(), meant) / math.log(2)


def rate(step: int, steps: int, peak: float) -> float:
    """Warm-up, constant, then linear to zero (Hägele et al., arXiv:2405.18392)."""
    return peak * min(1.0, (step + 1) / WARM_UP, (1 - step / steps) / DECAY)


class Optimisers:
    """Muon for the matrices of the layers, AdamW for the rest, at one learning rate (Liu et al., arXiv:2502.16982)."""

    def __init__(self, model: ByteModel) -> None:
        matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and name.startswith("layers")]
        vectors = [p for p in model.parameters() if p.dim() == 1]
        self.all = [
            torch.optim.Muon(matrices, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(
                [{"params": [model.embedding.weight], "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                betas=(0.9, 0.95),
            ),
        ]

    def step(self, learning_rate: float) -> None:
        for optimiser in self.all:
            for group in optimiser.param_groups:
                group["lr"] = learning_rate
            optimiser.step()
            optimiser.zero_grad()

    def state(self) -> list[dict[str, Any]]:
        return [optimiser.state_dict() for optimiser in self.all]

    def restore(self, states: list[dict[str, Any]]) -> None:
        for optimiser, state in zip(self.all, states, strict=True):
            optimiser.load_state_dict(state)


def save(path: Path, saved: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    torch.save(saved, temporary)
    temporary.replace(path)


def constant_checkpoint(checkpoint: Path) -> Path:
    """The last checkpoint before the learning rate falls, from which training can go on for longer."""
    return checkpoint.with_suffix(".constant.pt")


def mean_bits(model: ByteModel, texts: list[Excerpt], window: int | None) -> NDArray[np.float64]:
    """Bits per byte of each text."""
    means: NDArray[np.float64] = np.nanmean(bits(model, [each.text for each in texts], window), axis=1)
    return means


def first_of_each_kind(found: list[Excerpt], count: int) -> list[Excerpt]:
    return [each for kind in KINDS for each in [one for one in found if one.kind == kind][:count]]


def train(
    arguments: argparse.Namespace, model: ByteModel, texts: dict[str, NDArray[np.uint8]], held_out: list[Excerpt]
) -> list[str]:
    """Train up to the given number of steps and return the log's lines, including those of earlier runs."""
    optimisers = Optimisers(model)
    first, seconds, lines = 0, 0.0, ["step bytes loss_bits held_out_bits window_256_cost seconds"]
    if arguments.checkpoint.exists():
        saved = torch.load(arguments.checkpoint)
        model.load_state_dict(saved["model"])
        optimisers.restore(saved["optimisers"])
        first, seconds, lines = saved["step"], saved["seconds"], saved["lines"]
        if arguments.steps != saved["steps"] and first > (1 - DECAY) * min(arguments.steps, saved["steps"]):
            least = math.ceil(first / (1 - DECAY))
            falls = first > (1 - DECAY) * saved["steps"]
            raise SystemExit(
                f"{arguments.checkpoint} has done {first} of {saved['steps']} steps; with --steps {arguments.steps} its "
                "learning rate would jump: give "
                + (
                    f"--steps {saved['steps']}, or train longer from {constant_checkpoint(arguments.checkpoint)}"
                    if falls
                    else f"at least {least}"
                )
            )
        print(f"going on from step {first}", flush=True)
    running: list[float] = []
    started = time.monotonic() - seconds
    for step in range(first, arguments.steps):
        loss = loss_of(model, texts, arguments.batch, [arguments.seed, step])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimisers.step(rate(step, arguments.steps, arguments.learning_rate))
        running.append(loss.item())
        done = step + 1
        if done % EVERY and done != arguments.steps:
            continue
        seconds = time.monotonic() - started
        print(f"{done} {np.mean(running[-EVERY:]):.4f} {seconds:.0f}", flush=True)
        if done % WATCHED_EVERY == 0 or done == arguments.steps:
            full, narrow = (mean_bits(model, held_out, window).mean() for window in (None, 256))
            read = done * arguments.batch * Sizes().context
            lines.append(f"{done} {read} {np.mean(running):.4f} {full:.4f} {narrow - full:.4f} {seconds:.0f}")
            print(lines[-1], flush=True)
            running.clear()
        state = {
            "model": model.state_dict(),
            "optimisers": optimisers.state(),
            "step": done,
            "steps": arguments.steps,
            "seconds": seconds,
            "lines": lines,
        }
        save(arguments.checkpoint, state)
        if done <= (1 - DECAY) * arguments.steps:
            save(constant_checkpoint(arguments.checkpoint), state)
    return lines


def write_half(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Writes a file of float16 tensors."""
    halves = {name: tensor.detach().to(torch.float16).numpy() for name, tensor in tensors.items()}
    write_safetensors(path, halves, metadata)


def write_weights(path: Path, model: ByteModel, weights: dict[str, Tensor], kind: str) -> None:
    """The number of heads and whether they are causal are tensors of one number, because no weight's shape says so."""
    attention = {"heads": Sizes().heads, "causal": int(model.causal)}
    numbers = {f"attention.{name}": torch.tensor([number]) for name, number in attention.items()}
    write_half(path, weights | numbers, {"kind": kind})


def head_statistics(capture: dict[str, Tensor], causal: bool) -> list[dict[str, float]]:
    """Scaled norms, effective support and effective rank of every head's attention matrix, in double."""
    rows = []
    q, k = (capture[name].double() for name in "qk")
    for layer in range(q.shape[0]):
        for head in range(q.shape[1]):
            a, b = q[layer, head], k[layer, head]
            n, d = a.shape
            logits = (a @ b.T) / math.sqrt(d)
            if causal:
                logits = logits + torch.full((n, n), -math.inf, dtype=torch.double).triu(1)
            matrix = torch.softmax(logits, dim=-1)
            entropy = torch.special.entr(matrix).sum(dim=-1)
            sigma = torch.linalg.svdvals(matrix)
            rows.append(
                {
                    "layer": layer,
                    "head": head,
                    "scaled_q_norm": (a.norm(dim=1).mean() * d**-0.25).item(),
                    "scaled_k_norm": (b.norm(dim=1).mean() * d**-0.25).item(),
                    "effective_support": entropy.exp().mean().item(),
                    "effective_rank": torch.special.entr(sigma / sigma.sum()).sum().exp().item(),
                }
            )
    return rows


def sizes_of(corpus: Corpus) -> dict[str, Any]:
    return {
        kind: {
            "bytes": {each: sum(d.kind == each and len(d.text) for d in documents.values()) for each in KINDS},
            "sha256": digest(documents),
        }
        for kind, documents in (("training", corpus.training), ("held_out", corpus.held_out))
    }


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--masked", action="store_true", help="train the bidirectional model, on masked bytes")
    parser.add_argument("--output", type=Path, help="default: harness/inputs/model, or masked_model beside it")
    parser.add_argument("--checkpoint", type=Path, help="resumed from when present; default: build/OUTPUT'S NAME.pt")
    parser.add_argument("--start", type=Path, help="checkpoint of another run, whose weights this one starts from")
    parser.add_argument("--steps", type=int, default=20_000, help="optimiser steps in all (default %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="windows a step (default %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=8e-3, help="peak (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and batches (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    arguments = parser.parse_args()
    name = "masked_model" if arguments.masked else "model"
    arguments.output = arguments.output or root / "harness/inputs" / name
    arguments.checkpoint = arguments.checkpoint or root / "build" / f"{name}.pt"

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    arguments.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    sizes = Sizes()
    try:
        corpus = read_corpus()
    except NoPackage as missing:
        raise SystemExit(str(missing)) from missing
    training = {kind: joined(corpus.training, kind) for kind in KINDS}
    found = candidates(corpus)
    texts = choose_texts(found)
    model = ByteModel(sizes, causal=not arguments.masked)
    if arguments.start:
        model.load_state_dict(torch.load(arguments.start)["model"])
    initial = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    lines = train(arguments, model, training, first_of_each_kind(found, WATCHED))

    description = {
        "architecture": dataclasses.asdict(sizes)
        | {"causal": model.causal, "positions": "rotary, base 10000", "normalisation": "pre"},
        "parameters": sum(p.numel() for p in model.parameters()),
        "corpus": sizes_of(corpus),
        "packages": corpus.versions,
        "shares": SHARES,
        "started_from": "random weights" if arguments.start is None else f"weights of {arguments.start.name}",
        "steps": arguments.steps,
        "batch": arguments.batch,
        "seed": arguments.seed,
        "learning_rate": arguments.learning_rate,
        "held_out": evaluate(model, first_of_each_kind(found, EVALUATED), list(training.values())),
        "texts": evaluate(model, texts, list(training.values())),
        "bits_per_byte_of_texts": {
            "full" if window is None else f"window {window}": mean_bits(model, texts, window).tolist()
            for window in (None, 256)
        },
        "captures": {kind: {"file": name, "offset": CAPTURE_OFFSET} for kind, name in CAPTURES.items()},
    }
    with torch.no_grad():
        for kind, name in CAPTURES.items():
            text = corpus.held_out[name].text[CAPTURE_OFFSET : CAPTURE_OFFSET + sizes.context]
            capture = model.captured(torch.tensor(list(text)))
            write_half(arguments.output / f"{kind}.safetensors", capture, {"file": name})
            if kind == "measured":
                description["heads"] = head_statistics(capture, model.causal)
    write_weights(arguments.output / "weights.safetensors", model, model.state_dict(), "trained")
    write_weights(arguments.output / "initial.safetensors", model, initial, "initial")
    write_texts(arguments.output, texts, excerpt(corpus, CAPTURES["calibration"]), model.causal)
    (arguments.output / "training.log").write_text("\n".join(lines) + "\n")
    (arguments.output / "model.json").write_text(json.dumps(description, indent=2) + "\n")
    print(lines[-1])
    print(f"written to {arguments.output}")


if __name__ == "__main__":
    main()
