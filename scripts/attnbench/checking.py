"""Does a method do what it claims?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attnbench import _native
from attnbench.loading import name_of

if TYPE_CHECKING:
    import pandas


class Report:
    """The results of `check`. True if it passed; prints one line for each claim."""

    def __init__(self, found: dict[str, Any], text: str) -> None:
        self.outcome: str = found["outcome"]
        """PASS, FAIL, UNDECIDED or SKIPPED: the gravest of all claims"""
        self.seconds: float = found["seconds"]
        self.rows: list[dict[str, Any]] = [
            {"spec": subject["spec"], **result} for subject in found["subjects"] for result in subject["results"]
        ]
        """a dict a test: spec, claim, tested, outcome and its numbers"""
        self.text = text

    @property
    def passed(self) -> bool:
        """No claim failed, and none is undecided."""
        return all(row["outcome"] not in ("FAIL", "UNDECIDED") for row in self.rows)

    def failures(self) -> list[dict[str, Any]]:
        """The rows of failed claims."""
        return [row for row in self.rows if row["outcome"] == "FAIL"]

    def frame(self) -> pandas.DataFrame:
        """The rows as a table."""
        import pandas

        return pandas.json_normalize(self.rows)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def check(*methods: str | type, seed: int = 1, error_rate: float = 1e-6, threads: int = 1) -> Report:
    """Tests all that specs, or classes, claim, as `attnbench check` does.

    error_rate: the chance that any statistical test fails when all claims hold. Raises Misuse for anything but methods.
    """
    if not methods:
        raise _native.Misuse("check: give specs or classes of methods")
    found, text = _native.check([name_of(m) for m in methods], seed, error_rate, threads)
    return Report(json.loads(found), text.rstrip())
