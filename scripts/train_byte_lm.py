#!/usr/bin/python3
"""Train the byte-level causal transformer whose heads attnbench uses as real inputs.

The text is Python's own standard library. Four layers of three heads of 64, context 1024, rotary positions,
pre-normalisation, weights tied between embedding and output. Training starts on windows of 256 bytes and ends on
the full context. The script keeps checkpoints, so a stopped run continues where it was.

Written to the output folder, all float16 safetensors (sizes of the defaults: L = 4, H = 3, n = 1024, d = 64):
  measured.safetensors     q, k, v of shape [L, H, n, d] for a held-out file; q and k after the rotation, unscaled
  calibration.safetensors  the same for another held-out file, from which fitted methods may learn
  texts.safetensors        32 held-out texts, one per row, as bytes; texts.json lists them (scripts/held_out_texts.py)
  weights.safetensors      the trained weights; initial.safetensors: the weights before the first step
  training.log             loss and held-out bits per byte during training
  model.json               the training settings, bits per byte against the bigram baseline, and head statistics
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sysconfig
import time
from pathlib import Path

# OpenBLAS before 0.3.22 does not know recent CPUs and falls back to a kernel at a fifth of their speed.
if "OPENBLAS_CORETYPE" not in os.environ and "avx512f" in Path("/proc/cpuinfo").read_text():
    os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"

import numpy as np
import torch
from byte_corpus import CAPTURE_OFFSET, CAPTURES, read_corpus
from held_out_texts import write_texts
from numpy.typing import NDArray
from tensor_file import write_safetensors
from torch import Tensor, nn
from torch.nn import functional

SHORT_WINDOW = 256
SHORT_SHARE = 0.7


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 4
    heads: int = 3
    head_size: int = 64
    context: int = 1024

    @property
    def width(self) -> int:
        return self.heads * self.head_size


class Attention(nn.Module):
    """Causal multi-head attention with rotary positions. [b, n, width] -> [b, n, width]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.qkv = nn.Linear(sizes.width, 3 * sizes.width, bias=False)
        self.out = nn.Linear(sizes.width, sizes.width, bias=False)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k, v of shape [b, heads, n, head_size]; q and k rotated, not scaled."""
        b, n, _ = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.sizes.heads, self.sizes.head_size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return rotate(q), rotate(k), v

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        n = x.shape[1]
        scores = (q * self.sizes.head_size**-0.5) @ k.transpose(-1, -2)
        scores = scores + torch.full((n, n), -math.inf).triu(1)
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


def rotate(x: Tensor) -> Tensor:
    """Rotary position embedding over the last axis, first half against second half, base 10,000."""
    n, d = x.shape[-2:]
    frequency = 10_000.0 ** (-torch.arange(d // 2) / (d // 2))
    angle = torch.arange(n)[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Layer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.width)
        self.attention = Attention(sizes)
        self.feed_forward_norm = nn.LayerNorm(sizes.width)
        self.up = nn.Linear(sizes.width, 4 * sizes.width)
        self.down = nn.Linear(4 * sizes.width, sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.feed_forward_norm(x))))


class ByteModel(nn.Module):
    """Logits of the next byte, [b, n, 256], from bytes [b, n]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * sizes.layers) if residual else 1.0))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.embedding.weight)

    def captured(self, tokens: Tensor) -> dict[str, Tensor]:
        """q, k, v of every layer and head for one text: [layers, heads, n, head_size] each."""
        x = self.embedding(tokens[None])
        kept: list[tuple[Tensor, ...]] = []
        for layer in self.layers:
            kept.append(layer.attention.heads(layer.attention_norm(x)))
            x = layer(x)
        return {name: torch.cat([heads[i] for heads in kept]) for i, name in enumerate("qkv")}


def joined(files: dict[str, bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"\0".join(files.values()), dtype=np.uint8)


def bigram_bits(training: NDArray[np.uint8], held_out: NDArray[np.uint8]) -> float:
    """Held-out bits per byte of the add-one bigram model: a network that needs as many has learnt nothing."""
    counts = np.ones((256, 256))
    np.add.at(counts, (training[:-1], training[1:]), 1)
    log_p = np.log2(counts / counts.sum(axis=1, keepdims=True))
    return float(-log_p[held_out[:-1], held_out[1:]].mean())


def windows(text: NDArray[np.uint8], length: int, batch: int, generator: np.random.Generator) -> Tensor:
    starts = generator.integers(0, len(text) - length - 1, batch)
    return torch.from_numpy(np.stack([text[s : s + length + 1] for s in starts]).astype(np.int64))


@torch.no_grad()
def held_out_bits(model: ByteModel, text: NDArray[np.uint8], context: int, count: int) -> float:
    """Bits per byte over `count` evenly spaced windows of the full context."""
    starts = np.linspace(0, len(text) - context - 2, count).astype(int)
    bits = []
    for start in starts:
        tokens = torch.from_numpy(text[start : start + context + 1].astype(np.int64))
        logits = model(tokens[None, :-1])[0]
        bits.append(functional.cross_entropy(logits, tokens[1:]).item() / math.log(2))
    return float(np.mean(bits))


def write_half(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Writes a file of float16 tensors."""
    halves = {name: tensor.detach().to(torch.float16).numpy() for name, tensor in tensors.items()}
    write_safetensors(path, halves, metadata)


def head_statistics(capture: dict[str, Tensor]) -> list[dict[str, float]]:
    """Scaled norms, effective support and effective rank of every head's causal attention matrix, in double."""
    rows = []
    q, k = (capture[name].double() for name in "qk")
    for layer in range(q.shape[0]):
        for head in range(q.shape[1]):
            a, b = q[layer, head], k[layer, head]
            n, d = a.shape
            logits = (a @ b.T) / math.sqrt(d) + torch.full((n, n), -math.inf, dtype=torch.double).triu(1)
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


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Warm-up over 100 steps, then constant, then a linear decay to zero over the last third."""
    return peak * min(1.0, (step + 1) / 100, 3.0 * (1 - step / steps))


def train(
    arguments: argparse.Namespace, model: ByteModel, training: NDArray[np.uint8], held_out: NDArray[np.uint8]
) -> list[str]:
    """Train up to the given number of steps and return the log's lines, including those of earlier runs."""
    decayed = [p for p in model.parameters() if p.dim() == 2]
    plain = [p for p in model.parameters() if p.dim() != 2]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    first, lines = 0, ["step tokens loss_bits held_out_bits"]
    tokens = 0
    if arguments.checkpoint.exists():
        saved = torch.load(arguments.checkpoint)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        first, lines, tokens = saved["step"], saved["lines"], saved["tokens"]
    running: list[float] = []
    started = time.monotonic()
    for step in range(first, arguments.steps):
        length = SHORT_WINDOW if step < SHORT_SHARE * arguments.steps else Sizes().context
        generator = np.random.default_rng([arguments.seed, step])
        batch = windows(training, length, arguments.batch_bytes // length, generator)
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, arguments.steps, arguments.learning_rate)
        loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        tokens += batch[:, 1:].numel()
        running.append(loss.item() / math.log(2))
        done = step + 1
        if done % 100 == 0 or done == arguments.steps:
            bits = held_out_bits(model, held_out, Sizes().context, 12)
            lines.append(f"{done} {tokens} {np.mean(running):.4f} {bits:.4f}")
            running.clear()
            left = (time.monotonic() - started) / (done - first) * (arguments.steps - done)
            print(f"{lines[-1]}   about {left / 60:.0f} min left", flush=True)
            temporary = arguments.checkpoint.with_suffix(".tmp")
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimiser": optimiser.state_dict(),
                    "step": done,
                    "lines": lines,
                    "tokens": tokens,
                },
                temporary,
            )
            temporary.replace(arguments.checkpoint)
    return lines


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=root / "harness/inputs/model", help="folder for the results")
    parser.add_argument("--checkpoint", type=Path, default=root / "build/byte_lm.pt", help="resumed from when present")
    parser.add_argument("--steps", type=int, default=2600, help="optimiser steps in all (default %(default)s)")
    parser.add_argument("--batch-bytes", type=int, default=4096, help="bytes a step (default %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="peak (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and batches (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default: all cores")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    arguments.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    sizes = Sizes()
    training_files, held_out_files = read_corpus()
    training, held_out = joined(training_files), joined(held_out_files)
    model = ByteModel(sizes)
    initial = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    lines = train(arguments, model, training, held_out)

    description = {
        "architecture": dataclasses.asdict(sizes) | {"positions": "rotary, base 10000", "normalisation": "pre"},
        "parameters": sum(p.numel() for p in model.parameters()),
        "text": f"Python {sysconfig.get_python_version()} standard library without tests",
        "training_bytes": len(training),
        "held_out_bytes": len(held_out),
        "steps": arguments.steps,
        "batch_bytes": arguments.batch_bytes,
        "seed": arguments.seed,
        "learning_rate": arguments.learning_rate,
        "held_out_bits_per_byte": held_out_bits(model, held_out, sizes.context, 200),
        "bigram_bits_per_byte": bigram_bits(training, held_out),
        "captures": {kind: {"file": name, "offset": CAPTURE_OFFSET} for kind, name in CAPTURES.items()},
    }
    with torch.no_grad():
        for kind, name in CAPTURES.items():
            text = held_out_files[name][CAPTURE_OFFSET : CAPTURE_OFFSET + sizes.context]
            capture = model.captured(torch.tensor(list(text)))
            write_half(arguments.output / f"{kind}.safetensors", capture, {"file": name})
            if kind == "measured":
                description["heads"] = head_statistics(capture)
    write_half(arguments.output / "weights.safetensors", model.state_dict(), {"kind": "trained"})
    write_half(arguments.output / "initial.safetensors", initial, {"kind": "initial"})
    write_texts(arguments.output, training_files, held_out_files)
    (arguments.output / "training.log").write_text("\n".join(lines) + "\n")
    (arguments.output / "model.json").write_text(json.dumps(description, indent=2) + "\n")
    print(
        f"held out: {description['held_out_bits_per_byte']:.3f} bits per byte, "
        f"bigram: {description['bigram_bits_per_byte']:.3f}; written to {arguments.output}"
    )


if __name__ == "__main__":
    main()
