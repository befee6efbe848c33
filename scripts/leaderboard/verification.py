"""Decides whether a bundle enters a leaderboard. Every refusal has its reason; nothing in a bundle is ever run.

Refused are files that are not whole (archive.py), other suites, results files that were altered after they were written,
methods without rows, rows without methods, failed checks, and numbers that cannot be: every machine that measures the
suite gets the baseline's numbers, and two bundles cannot have different errors of one built-in method.

Not caught is a machine that lies about its time, and a plugin whose numbers were made up from the start, and every
digest computed for them. Nobody has to believe these: timings are shown with their machine and compared within it
alone, and the page of a plugin shows its source and the command that measures it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archive import CHECK, RESULTS, SUITE, Bundle, Refused, json_object, open_bundle
from measured import Condition, Measured, Replicate, conditions_of, on_device, read_measured, shares_of, submitted_of
from results_file import Misuse
from suite import BASELINE, EXACT, Run, Suite, digest

ERROR_RATE = 1e-6  # of check, at most
TOLERANCE = {"f64": 1e-6, "f32": 1e-3}  # relative, between machines: rounding of other instructions


@dataclass(frozen=True)
class Submission:
    """A bundle that was verified."""

    bundle: Bundle
    measured: Measured
    methods: dict[str, dict[Condition, Replicate]]  # the submitted ones, exact attention and the baseline
    checks: dict[str, list[dict[str, Any]]]  # by method, the results of `check`

    @property
    def machines(self) -> list[str]:
        """Of its timings: the processor, then the device if there is one."""
        return sorted({machine for machines in self.measured.machines.values() for machine in machines})

    def machine_of(self, method: str) -> str:
        """Where the method was timed."""
        machines = self.machines
        return machines[-1 if on_device(method) else 0] if machines else "no timing"


def verify(path: Path, suite: Suite, built_in: set[str], scratch: Path) -> Submission:
    """Throws Refused. built_in: names of methods; others need their source. scratch: a folder that may be written."""
    bundle = open_bundle(path)
    _require_suite(bundle, suite)
    _require_sources(bundle, built_in)
    checks = _checks(bundle)
    results = scratch / f"{bundle.digest}.db"
    results.write_bytes(bundle.files[RESULTS])
    try:
        measured = read_measured(results, suite)
    except Misuse as misuse:
        raise Refused(str(misuse).replace(f"{results}: ", f"{RESULTS}: ").replace(str(results), RESULTS)) from None
    finally:
        results.unlink()
    _require_one_budget(measured, bundle.manifest.methods)
    shares = shares_of(measured, bundle.manifest.methods)
    _require_no_strangers(bundle, measured, shares)
    for method in (*bundle.manifest.methods, EXACT, BASELINE):
        _require_rows(suite, method, shares.get(method, {}))
    _require_baseline(suite, shares[BASELINE])
    _require_possible(suite, shares)
    _require_one_machine(measured)
    return Submission(bundle, measured, shares, checks)


def _require_suite(bundle: Bundle, suite: Suite) -> None:
    if bundle.manifest.suite != suite.name:
        raise Refused(f"it was measured on the suite {bundle.manifest.suite!r}; this leaderboard is of {suite.name}")
    if digest(bundle.files[SUITE]) != digest(suite.content):
        raise Refused(f"{SUITE} is not the suite {suite.name}: it was edited")


def _require_sources(bundle: Bundle, built_in: set[str]) -> None:
    for method in bundle.manifest.methods:
        if method.partition(":")[0] not in built_in and not bundle.plugin_sources:
            raise Refused(f"{method} is not built into attnbench, and the bundle has no source of it")
        if method in (EXACT, BASELINE):
            raise Refused(f"{method} is measured beside every method, and cannot be submitted")


def _checks(bundle: Bundle) -> dict[str, list[dict[str, Any]]]:
    """By method. Throws Refused unless `check` tested just these methods and no claim failed."""
    report = json_object(bundle.files[CHECK], CHECK)
    try:
        subjects = {str(one["spec"]): list(one["results"]) for one in report["subjects"]}
        outcomes = {spec: [str(result["outcome"]) for result in results] for spec, results in subjects.items()}
        error_rate = float(report["error_rate"])
    except (KeyError, TypeError, ValueError):
        raise Refused(f"{CHECK} is not what `attnbench check --json` writes") from None
    if sorted(subjects) != sorted(bundle.manifest.methods):
        raise Refused(f"{CHECK} is of other methods than the bundle: {', '.join(sorted(subjects)) or 'none'}")
    if not error_rate <= ERROR_RATE:
        raise Refused(f"{CHECK} has an error rate of {error_rate:g}; expected {ERROR_RATE:g} at most, as by default")
    for spec, found in outcomes.items():
        if "FAIL" in found:
            raise Refused(f"{found.count('FAIL')} claims of {spec} fail its check")
        if "PASS" not in found:
            raise Refused(f"{CHECK} tests nothing of {spec}")
    return subjects


def _require_no_strangers(bundle: Bundle, measured: Measured, shares: dict[str, Any]) -> None:
    named = {*bundle.manifest.methods, EXACT, BASELINE}
    if others := sorted(set(shares) - named):
        raise Refused(f"{RESULTS} has rows of {others[0]}, which {bundle.digest[:8]} does not submit")
    if measured.strangers:
        method, experiment = measured.strangers[0]
        raise Refused(f"{RESULTS} has rows of {method} in {experiment} that belong to no run of the suite")


def _require_one_budget(measured: Measured, methods: list[str]) -> None:
    """The suite gives a method one budget under a condition; with two, somebody could choose the better row."""
    seen: dict[tuple[str, Condition], str] = {}
    for spec, replicates in measured.replicates.items():
        method = submitted_of(spec, methods)
        for condition in replicates:
            if (other := seen.setdefault((method, condition), spec)) != spec:
                raise Refused(f"{method} has rows of {other} and of {spec} in {condition.run} on {condition.input}")


def _require_one_machine(measured: Measured) -> None:
    """Methods on a device have its name behind that of the machine that it is in."""
    processors, devices = (
        sorted({one for spec, found in measured.machines.items() if on_device(spec) == wanted for one in found})
        for wanted in (False, True)
    )
    for found in (processors, devices):
        if len(found) > 1:
            raise Refused(f"{RESULTS} has timings of {len(found)} machines; a bundle is measured on one")
    if devices and not (processors and devices[0].startswith(f"{processors[0]}, ")):
        raise Refused(
            f"{RESULTS} has timings on {devices[0]}, which is no device of {', '.join(processors) or 'a machine'}"
        )


def _require_rows(suite: Suite, method: str, replicates: dict[Condition, Replicate]) -> None:
    for run in suite.runs:
        expected = set(conditions_of(suite, run))
        found = {condition for condition in replicates if condition.run == run.name}
        if missing := sorted(expected - found):
            raise Refused(f"{method} lacks {len(missing)} rows of {run.name}, the first on {missing[0].input}")
        if more := sorted(found - expected):
            raise Refused(f"{method} has {len(more)} rows of {run.name} too many, the first on {more[0].input}")
    for condition, one in replicates.items():
        if one.ending != "done" and not one.reason:
            raise Refused(f"{method} has no number of {condition.run} on {condition.input}, and no reason")


def _require_baseline(suite: Suite, replicates: dict[Condition, Replicate]) -> None:
    for (run, *problem, replicate, metric), value in suite.baseline.items():
        if math.isnan(value):
            continue  # a time
        found = replicates[Condition(run, tuple(problem), int(replicate))].number(metric)
        if not close(found, value, tolerance(suite.run(run))):
            raise Refused(
                f"{metric} of {BASELINE} is {found:.9g} in {run}, where the suite gives {value:.9g}: its inputs or its "
                "experiments are not those of the suite"
            )


def _require_possible(suite: Suite, shares: dict[str, dict[Condition, Replicate]]) -> None:
    """Every number that is shown exists and is finite, and no time or error is negative."""
    for regime in suite.regimes:
        for column in regime.columns:
            for method, replicates in shares.items():
                for condition, one in replicates.items():
                    if condition.run not in column.runs or one.ending != "done" or column.metric not in one.numbers:
                        continue
                    value = one.number(column.metric)
                    if not math.isfinite(value) or (column.scale == "log" and value < 0):
                        raise Refused(f"{column.metric} of {method} is {value:g} in {condition.run}, which cannot be")


def tolerance(run: Run) -> float:
    return TOLERANCE["f32" if run.options.get("precision") == "f32" or run.experiment == "model-loss" else "f64"]


def close(found: float, expected: float, relative: float) -> bool:
    return math.isclose(found, expected, rel_tol=relative, abs_tol=relative * 1e-3)


def contradiction(suite: Suite, built_in: set[str], one: Submission, other: Submission) -> str:
    """Why two bundles cannot both be right: they differ in an error of the same method, whose draws are those of the suite's
    seed. Empty if they do not. Methods of plugins are the same if their sources are."""
    shared = one.methods.keys() & other.methods.keys()
    if one.bundle.plugin_sources != other.bundle.plugin_sources:
        shared = {method for method in shared if method.partition(":")[0] in built_in}
    for method in sorted(shared):
        for regime in suite.regimes:
            column = regime.columns[0]
            for condition, replicate in one.methods[method].items():
                if condition.run not in column.runs:
                    continue
                relative = tolerance(suite.run(condition.run))
                mine = replicate.number(column.metric)
                theirs = other.methods[method][condition].number(column.metric)
                if math.isfinite(mine) and math.isfinite(theirs) and not close(mine, theirs, relative):
                    return (
                        f"{column.metric} of {method} is {mine:.9g} in {condition.run} on {condition.input}, and "
                        f"{theirs:.9g} in the bundle {other.bundle.digest[:8]}"
                    )
    return ""
