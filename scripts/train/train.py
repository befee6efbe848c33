#!/usr/bin/python3
"""Train small models with approximate attention, and keep the curve of each as a row.

    scripts/train/train.py --task copying --attention softmax --attention linear --seeds 1,2,3
    scripts/train/train.py --grid scripts/train/grid.json

Needs PyTorch (pip install torch==2.13.0) and the Python module of attnbench (PYTHONPATH=build/release/python). A task is a
file of scripts/train/tasks/, an attention one of scripts/train/attentions/; --list prints them. The seed decides weights,
batches and random features, so that one seed gives all attentions of a task the same batches and the same first weights.

Each run has a folder FOLDER/TASK/ATTENTION/seed-S with its checkpoint and, when it has ended, row.json. The same command
goes on where it was stopped. A run whose loss is NaN or infinite ends as a failed row, with the reason, and the others go on. So
does one whose trained attention is not the C++ method of its name, on its own q, k and v.

A grid is a JSON list of {"task": ..., "attentions": [...], "seeds": [...]}; an attention is a spec, or a spec and the steps
between draws of its random features: ["performer:m=64", 1]. All first seeds are trained before any second one. With
--missing, runs that experiments/trained/rows.jsonl has a row of, with the same settings, are left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))  # after PYTHONPATH: scripts/attnbench there holds no built module

try:
    import torch
except ModuleNotFoundError:
    print(
        f"train.py: {sys.executable} has no torch; install it (pip install torch==2.13.0), or use the one that "
        "scripts/test_torch.sh installs: build/torch/bin/python scripts/train/train.py",
        file=sys.stderr,
    )
    sys.exit(2)

from collect import RECORDED, recorded_rows
from mixing import Refused, entries, parse_attention
from task import find_task
from training import Run, train


def grid_of(cells: list[dict[str, Any]]) -> list[Run]:
    """All first seeds, then all second ones. Raises Refused."""
    by_place: list[list[Run]] = []
    for cell in cells:
        if not isinstance(cell, dict) or not {"task", "attentions", "seeds"} == set(cell):
            raise Refused(
                f"{json.dumps(cell)} is no part of a grid; expected an object with task, attentions and seeds"
            )
        task = find_task(cell["task"])
        runs = []
        for seed, attention in itertools.product(cell["seeds"], cell["attentions"]):
            spec, steps = attention if isinstance(attention, list) else (attention, 0)
            runs.append(Run(task, parse_attention(spec), steps, seed))
        by_place.append([run for _, run in sorted(enumerate(runs), key=lambda pair: pair[0])])
    places: dict[int, list[Run]] = {}
    for cell, runs in zip(cells, by_place, strict=True):
        for run in runs:
            places.setdefault(cell["seeds"].index(run.seed), []).append(run)
    return [run for place in sorted(places) for run in places[place]]


def seeds_of(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdigit() for word in words):
        raise Refused(f"--seeds {text}: expected integers with commas between them, such as --seeds 1,2,3")
    return [int(word) for word in words]


def device_named(name: str) -> torch.device:
    """Raises Refused for a device that PyTorch does not have here."""
    kind, _, number = name.partition(":")
    if name == "cpu" or (kind == "cuda" and (number.isdigit() or name == "cuda")):
        devices = torch.cuda.device_count()
        if kind == "cuda" and int(number or 0) >= devices:
            raise Refused(
                f"--device {name}: PyTorch {torch.__version__} finds {devices} CUDA devices here; give --device cpu"
            )
        return torch.device(name)
    raise Refused(f"--device {name}: expected cpu, cuda, or cuda:I such as cuda:0")


def requested(arguments: argparse.Namespace) -> list[Run]:
    if arguments.grid:
        if arguments.task or arguments.attention:
            raise Refused("--grid has its own tasks and attentions; leave out --task and --attention")
        try:
            return grid_of(json.loads(arguments.grid.read_text()))
        except (OSError, json.JSONDecodeError) as error:
            raise Refused(f"--grid {arguments.grid} cannot be read: {error}") from error
    if not arguments.task or not arguments.attention:
        raise Refused("expected --task and --attention, or --grid; --list prints all tasks and attentions")
    attentions = [[spec, arguments.redraw] for spec in arguments.attention]
    return grid_of(
        [{"task": task, "attentions": attentions, "seeds": seeds_of(arguments.seeds)} for task in arguments.task]
    )


def missing(runs: list[Run]) -> list[Run]:
    recorded = [row["settings"] for row in recorded_rows(RECORDED)]
    return [run for run in runs if run.settings() not in recorded]


def print_lists() -> None:
    for package in ("tasks", "attentions"):
        print(package)
        for name, module in sorted(entries(package).items()):
            defaults = ",".join(f"{key}={value}" for key, value in getattr(module, "PARAMETERS", {}).items())
            print(f"  {name + (':' + defaults if defaults else ''):<38} {(module.__doc__ or '').split(chr(10))[0]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", action="append", help="a task (repeatable)")
    parser.add_argument("--attention", action="append", metavar="SPEC", help="an attention (repeatable)")
    parser.add_argument("--seeds", default="1", help="with commas between them (default %(default)s)")
    parser.add_argument(
        "--redraw", type=int, default=0, help="steps between draws of random features (default: one draw)"
    )
    parser.add_argument("--grid", type=Path, help="a JSON file with tasks, attentions and seeds")
    parser.add_argument("--missing", action="store_true", help="leave out runs that have a recorded row")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/train", help="of the runs (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="(default %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:I (default %(default)s)")
    parser.add_argument("--list", action="store_true", help="print tasks and attentions with their defaults")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.list:
        print_lists()
        return 0
    failed = 0
    try:
        device = device_named(arguments.device)
        runs = requested(arguments)
        if arguments.missing:
            runs = missing(runs)
        for number, run in enumerate(runs, 1):
            print(f"{number} of {len(runs)}: {run.name}", flush=True)
            row = train(run, arguments.folder, device)
            failed += row["ending"] != "done"
            said = f"{row['measured']['held_out_bits']:.4f} bits" if row["measured"] else row["reason"]
            print(f"  {row['ending']}: {said}", flush=True)
    except Refused as refused:
        print(f"train.py: {refused}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
