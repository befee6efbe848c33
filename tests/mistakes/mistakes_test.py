#!/usr/bin/python3
"""`check` finds the mistakes that a plugin's author may make: each one here is planted alone in a correct method.

Run as tests/mistakes/mistakes_test.py BUILD_FOLDER [GROUP...]. The methods are those of this folder: gated, poisson, matched and subsampled in C++
(linked into attnbench_faulty), kernelized, sums, recurrent, joint, estimated and collisions in Python. Prints a line a mistake: the claims that find it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# By group: the program, a correct spec, and of each mistake one of the claims that must fail.
GATED = [
    "precision", "precision", "precision", "decoder", "decoder", "state", "padding", "work", "memory", "work",
    "draws", "draws", "formula", "second-paths", "work", "formula", "row-sums", "repeatable", "repeatable",
    "inputs-kept", "empty-rows", "views", "draws", "decoder", "decoder", "memory", "non-negative", "permutation",
    "rank", "linear", "formula", "state", "causal", "formula",
]  # fmt: skip
POISSON = [
    "unbiased", "unbiased", "unbiased", "unbiased", "exact-pairs unbiased", "exact-pairs unbiased", "draws", "draws",
    "variance", "variance", "precision", "precision", "unbiased", "variance", "unbiased", "unbiased", "second-paths unbiased",
    "state", "unbiased",
]  # fmt: skip
MATCHED = ["nested", "draws", "draws", "geometry", "unbiased variance", "draws"]
SUBSAMPLED = [
    "mean-weights", "mean-weights", "mean-weights", "mean-weights", "sampling-law", "sampling-law", "sampling-law",
    "sampling-law", "mean-weights row-sums", "mean-weights", "mean-weights", "mean-weights", "padding", "causal",
    "sampling-law", "mean-weights",
]  # fmt: skip
KERNELIZED = {
    "doubled-logits": "formula", "two-percent": "formula", "scaled-twice": "formula", "float-exponent": "precision",
    "no-key-norm": "formula", "no-half": "formula", "absolute": "formula", "keeps-first-key": "repeatable",
    "misses-diagonal": "formula", "one-too-many": "causal", "top-half": "formula", "column-sums": "row-sums",
    "square-root-sums": "row-sums", "float-zeros": "precision", "float-five-percent": "precision",
    "mean-mixed-in": "formula", "value-residual": "row-sums", "negative": "non-negative", "clipped": "linear",
    "last-row-zero": "row-sums", "half-precision": "linear formula", "float32-inside": "formula",
    "random-noise": "repeatable",
}  # fmt: skip
SUMS = {"third": "second-paths", "divided": "second-paths"}
RECURRENT = {
    "kernel-of-scaled": "second-paths", "kernel-swapped": "second-paths", "kernel-divided": "second-paths",
    "decoder-shared": "decoder", "prefill-drops-last": "decoder", "prefill-restarts": "decoder",
    "prefill-forgets-norm": "decoder", "prefill-first-64": "decoder", "step-reads-first": "decoder",
    "step-decays": "decoder", "step-in-half": "decoder", "step-after-100": "decoder",
    "gradients-of-numerators": "gradients", "gradients-see-later-tokens": "gradients",
    "gradients-without-slope": "gradients", "gradients-half": "gradients", "gradients-of-all-values": "gradients",
    "gradients-swapped": "gradients", "gradients-in-float-zero": "gradients", "gradients-negative": "gradients",
}  # fmt: skip
ESTIMATED = {
    "wider": "unbiased", "uniform": "unbiased", "shared-rows": "variance", "antithetic": "variance",
    "key-norm": "unbiased", "three-percent": "unbiased", "half-variance": "variance",
}  # fmt: skip
JOINT = dict.fromkeys(
    ("one-draw", "reversed-draws", "first-queries", "causal-first", "mean-sums", "first-values"), "heads"
)
COLLISIONS = {
    "sixteen-seeds": "unbiased variance", "one-seed": "draws", "uniform-planes": "unbiased", "cube-planes": "unbiased",
    "shared-tables": "variance", "float-redraw": "draws", "negated-state": "state", "offset-planes": "unbiased",
    "offset-keys": "unbiased", "lost-bit": "unbiased", "norm-counts": "unbiased", "two-percent": "unbiased",
    "no-root": "unbiased", "other-power": "unbiased", "other-variance": "variance", "variance-of-sum": "variance",
}  # fmt: skip


def numbered(method: str, claims: list[str]) -> dict[str, str]:
    joint = "," if ":" in method else ":"
    return {f"{method}{joint}mistake={number}": claim for number, claim in enumerate(claims, 1)}


def named(method: str, claims: dict[str, str]) -> dict[str, str]:
    return {f"{method}:mistake={name}": claim for name, claim in claims.items()}


GROUPS: dict[str, tuple[str, list[str], str, dict[str, str]]] = {
    "gated": ("attnbench_faulty", [], "gated", numbered("gated", GATED)),
    "poisson": ("attnbench_faulty", [], "linear:features=poisson", numbered("linear:features=poisson", POISSON)),
    "matched": (
        "attnbench_faulty",
        [],
        "performer:projection=matched",
        numbered("performer:projection=matched", MATCHED),
    ),
    "subsampled": ("attnbench_faulty", [], "subsampled", numbered("subsampled", SUBSAMPLED)),
    "kernelized": ("attnbench", ["kernelized.py"], "kernelized", named("kernelized", KERNELIZED)),
    "sums": ("attnbench", ["kernelized.py"], "sums", named("sums", SUMS)),
    "recurrent": ("attnbench", ["abilities.py"], "recurrent", named("recurrent", RECURRENT)),
    "joint": ("attnbench", ["abilities.py"], "joint", named("joint", JOINT)),
    "estimated": ("attnbench", ["abilities.py"], "estimated", named("estimated", ESTIMATED)),
    "collisions": ("attnbench", ["collisions.py"], "collisions", named("collisions", COLLISIONS)),
}


def failing(report: dict[str, object]) -> set[str]:
    results = report["results"]
    assert isinstance(results, list)
    return {result["claim"] for result in results if result["outcome"] == "FAIL"}


def main() -> int:
    build, *chosen = sys.argv[1:]
    planted = found = alarms = 0
    for group in chosen or GROUPS:
        program, plugins, correct, mistakes = GROUPS[group]
        specs = [correct, *mistakes]
        words = [word for plugin in plugins for word in ("--plugin", str(HERE / plugin))]
        begin = time.monotonic()
        made = subprocess.run(
            [f"{build}/{program}", "check", *specs, "--json", *words], capture_output=True, text=True, check=False
        )
        if made.returncode not in (1, 3):
            print(made.stdout[-2000:], made.stderr[-2000:], sep="\n")
            print(f"{group}: check ended with {made.returncode}; expected 1, for the mistakes that it finds")
            return 1
        subjects = json.loads(made.stdout)["subjects"]
        for spec, subject in zip(specs, subjects, strict=True):
            claims = failing(subject)
            if spec == correct:
                alarms += len(claims)
                print(
                    f"{'ok' if not claims else 'ALARM':7} {spec}: correct; {', '.join(sorted(claims)) or 'no claim fails'}"
                )
                continue
            planted += 1
            expected = set(mistakes[spec].split())
            found += bool(claims)
            verdict = "found" if claims & expected else "other" if claims else "MISSED"
            print(f"{verdict:7} {spec}: {', '.join(sorted(claims)) or '-'} (expected {mistakes[spec]})")
        print(f"{group}: {time.monotonic() - begin:.0f} s for {len(specs)} specs")
    print(f"{found} of {planted} mistakes found, {alarms} false alarms")
    return 0 if alarms == 0 and found >= 0.95 * planted else 1


if __name__ == "__main__":
    sys.exit(main())
