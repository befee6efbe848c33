"""One run of the trainer: a task, an attention and a seed, from its checkpoint to its row."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from byte_model import ByteModel
from engine import TOLERANCE, engine_difference
from mixing import Attention, Refused
from numpy.typing import NDArray
from task import Batch, Task
from torch import Tensor, nn
from torch.nn import functional
from train_byte_lm import DECAY, WARM_UP, Optimisers, save
from trained_model import build, load, mixings, redraw

EVALUATED_AT_ONCE = 8  # texts
CHECKPOINT_EVERY = 60.0  # seconds
CPU = torch.device("cpu")
PROGRESS = ("step", "seconds", "steps", "curve", "first_bits_by_text")  # of a trainer, in its checkpoint


@dataclasses.dataclass(frozen=True)
class Run:
    task: Task
    attention: Attention
    redraw: int  # steps between draws of random features; 0: one draw for all of them
    seed: int

    @property
    def name(self) -> str:
        """Of its folder: specs have no slash, and a colon is fine."""
        drawn = f"+redraw={self.redraw}" if self.redraw else ""
        return f"{self.task.name}/{self.attention.spec}{drawn}/seed-{self.seed}"

    def settings(self) -> dict[str, Any]:
        """All that decides the curve."""
        schedule, sizes = self.task.schedule, self.task.sizes
        return {
            "task": self.task.name,
            "attention": self.attention.spec,
            "redraw": self.redraw,
            "seed": self.seed,
            "causal": self.task.causal,
            "weights": self.task.origin,
            "precision": "float32",
            **dataclasses.asdict(schedule),
            **{name: size for name, size in dataclasses.asdict(sizes).items() if size is not None},
        }


class Failed(Exception):
    """The run ends without a curve that counts; the message is the reason."""


@dataclasses.dataclass(frozen=True)
class Held:
    """Losses on held-out texts."""

    bits_by_text: NDArray[np.float64]  # mean bits of the bytes that count
    accuracy: float  # share of these bytes that the model finds most probable

    @property
    def bits(self) -> float:
        return float(self.bits_by_text.mean())


def tensors(batch: Batch, part: slice, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """read, meant and counts of some of the texts, on a device."""
    read, meant, counts = (torch.from_numpy(each[part].copy()) for each in (batch.read, batch.meant, batch.counts))
    return read.to(device), meant.to(device), counts.to(device)


def device_of(model: ByteModel) -> torch.device:
    found: torch.device = model.embedding.weight.device
    return found


@torch.no_grad()
def evaluate(model: ByteModel, held_out: Batch) -> Held:
    model.eval()
    bits, counted, right = [], [], []
    for first in range(0, len(held_out.read), EVALUATED_AT_ONCE):
        read, meant, counts = tensors(held_out, slice(first, first + EVALUATED_AT_ONCE), device_of(model))
        logits = model(read)
        losses = functional.cross_entropy(logits.transpose(1, 2), meant, reduction="none").double() / math.log(2)
        bits.append((losses * counts).sum(1))
        counted.append(counts.sum(1))
        right.append((logits.argmax(-1) == meant)[counts])
    model.train()
    total, number = (torch.cat(each).view(-1, held_out.pieces).sum(1) for each in (bits, counted))
    return Held((total / number).cpu().numpy(), torch.cat(right).double().mean().item())


def loss_of(model: ByteModel, batch: Batch) -> Tensor:
    """Mean bits of the bytes that count."""
    read, meant, counts = tensors(batch, slice(None), device_of(model))
    return functional.cross_entropy(model(read)[counts], meant[counts]) / math.log(2)


def rate(step: int, steps: int, peak: float) -> float:
    """Warm-up over a tenth of the steps at most, constant, then linear to zero over the last fifth."""
    warm_up = min(WARM_UP, max(1, steps // 10))
    return peak * min(1.0, (step + 1) / warm_up, (1 - step / steps) / DECAY)


class Trainer:
    """Model, optimisers and curve of a run, which its checkpoint holds."""

    def __init__(self, run: Run, folder: Path, device: torch.device = CPU) -> None:
        self.run, self.checkpoint = run, folder / "checkpoint.pt"
        self.model = build(run.task.sizes, run.task.causal, run.attention, run.seed)
        if run.task.weights is not None:
            load(self.model, run.task.weights())
        self.model.to(device)  # drawn on the processor: a seed means the same weights on every device
        self.optimisers = Optimisers(self.model)
        self.held_out = run.task.held_out()
        self.step, self.seconds = 0, 0.0
        self.steps: list[int] = []  # of the points of the curve
        self.curve: list[float] = []
        self.first_bits_by_text: list[float] = []  # before the first step
        if self.checkpoint.exists():
            self.resume()

    def resume(self) -> None:
        saved = torch.load(self.checkpoint, map_location=device_of(self.model), weights_only=False)
        if saved["settings"] != self.run.settings():
            own = self.run.settings()
            changed = [
                f"{key}={value}, not {own.get(key)}"
                for key, value in saved["settings"].items()
                if own.get(key) != value
            ]
            raise Refused(
                f"{self.checkpoint} was made with {'; '.join(changed) or 'other settings'}; give --folder another "
                "folder, or delete this checkpoint to begin again at step 0"
            )
        self.model.load_state_dict(saved["model"])
        self.optimisers.restore(saved["optimisers"])
        for name in PROGRESS:
            setattr(self, name, saved[name])

    def keep(self) -> None:
        state = {"model": self.model.state_dict(), "optimisers": self.optimisers.state()}
        progress = {name: getattr(self, name) for name in PROGRESS}
        save(self.checkpoint, state | progress | {"settings": self.run.settings()})

    def point(self) -> Held:
        """Adds a point to the curve. Raises Failed if the loss is NaN or infinite."""
        held: Held = evaluate(self.model, self.held_out)
        if not math.isfinite(held.bits):
            raise Failed(f"the held-out loss is {held.bits} after step {self.step}")
        self.steps.append(self.step)
        self.curve.append(held.bits)
        print(f"  {self.step} {held.bits:.4f} {held.accuracy:.4f} {self.seconds:.0f} s", flush=True)
        return held

    def train_step(self) -> None:
        task, seed = self.run.task, self.run.seed
        if self.run.redraw and self.step % self.run.redraw == 0:
            redraw(self.model, seed, self.step)
        loss = loss_of(self.model, task.batch(task.schedule.batch, np.random.default_rng([seed, self.step])))
        if not torch.isfinite(loss):
            raise Failed(f"the training loss is {loss.item()} at step {self.step + 1}")
        penalties = [penalty for mixing in mixings(self.model) if (penalty := mixing.penalty()) is not None]
        (loss + sum(penalties)).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimisers.step(rate(self.step, task.schedule.steps, task.schedule.learning_rate))
        self.step += 1

    def train(self, until: int | None = None) -> Held | None:
        """Trains to the end, or to a step, and returns the losses at the end. Raises Failed."""
        schedule = self.run.task.schedule
        last = schedule.steps if until is None else until
        if not self.steps:
            self.first_bits_by_text = self.point().bits_by_text.tolist()
        kept = time.monotonic()
        while self.step < last:
            started = time.monotonic()
            self.train_step()
            self.seconds += time.monotonic() - started
            if self.step % schedule.every == 0 and self.step < schedule.steps:
                self.point()
            if time.monotonic() - kept > CHECKPOINT_EVERY:
                self.keep()
                kept = time.monotonic()
        self.keep()
        return self.point() if self.step == schedule.steps else None


def processor() -> str:
    with open("/proc/cpuinfo") as facts:
        names = [line.split(":", 1)[1].strip() for line in facts if line.startswith("model name")]
    return names[0] if names else platform.machine()


def conditions(device: torch.device) -> dict[str, str]:
    """When and where a row was made."""
    return {
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "torch": str(torch.__version__),
    }


def finished_row(run: Run, trainer: Trainer, held: Held) -> dict[str, Any]:
    """The numbers of a run. Raises Failed if its attention is not the method that its spec names."""
    trainer.model.cpu().eval()
    tokens = torch.from_numpy(trainer.held_out.read[0].copy())
    difference = engine_difference(trainer.model, run.attention, tokens)
    if difference > TOLERANCE:
        raise Failed(
            f"after training, its attention differs from the method {run.attention.spec} of attnbench by {difference:.1e} "
            f"(relative, in double; at most {TOLERANCE:.0e} is expected): its curve does not count"
        )
    return {
        "held_out_bits": held.bits,
        "accuracy": held.accuracy,
        "bits_by_text": held.bits_by_text.tolist(),
        "first_bits_by_text": trainer.first_bits_by_text,
        "curve_steps": trainer.steps,
        "curve": trainer.curve,
        "engine_difference": difference,
        "training_seconds": trainer.seconds,
    }


def write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def train(run: Run, folder: Path, device: torch.device = CPU) -> dict[str, Any]:
    """The row of a run, which is in row.json of its folder afterwards. A run that has a row is not repeated."""
    own = folder / run.name
    own.mkdir(parents=True, exist_ok=True)
    row_file = own / "row.json"
    if row_file.exists():
        row: dict[str, Any] = json.loads(row_file.read_text())
        if row["settings"] != run.settings():
            raise Refused(f"{row_file} was made with other settings; give --folder another folder, or delete this file")
        return row
    row = {"settings": run.settings()}
    try:
        trainer = Trainer(run, own, device)
        held = trainer.train()
        assert held is not None
        row |= {"ending": "done", "reason": "", "measured": finished_row(run, trainer, held)}
    except Failed as failed:
        row |= {"ending": "failed", "reason": str(failed), "measured": {}}
    row |= conditions(device)
    write_atomically(row_file, json.dumps(row, indent=1) + "\n")
    (own / "checkpoint.pt").unlink(missing_ok=True)
    return row
