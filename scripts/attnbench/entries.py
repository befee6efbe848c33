"""Which kind of entry a class is."""

from __future__ import annotations

import inspect
from typing import Any

from attnbench._native import Misuse
from attnbench.adapted import adapted, computes_attention
from attnbench.declaration import Declaration
from attnbench.entry import Entry
from attnbench.experiments import Experiment, ExperimentDeclaration
from attnbench.inputs import Input, InputDeclaration
from attnbench.torch_declaration import TorchDeclaration, computes_by_torch

EXPECTED = (
    "a method has attend(self, q, k, v, causal), features_q and features_k(self, x), or a decoder(self, shape); an input derives from "
    "attnbench.Input, and an experiment from attnbench.Experiment"
)


def is_entry(cls: type) -> bool:
    """Whether a class is to be registered: it is of a kind, and no base."""
    if cls in (Input, Experiment) or cls.__name__.startswith("_") or inspect.isabstract(cls):
        return False
    return issubclass(cls, (Input, Experiment)) or computes_attention(cls)


def entry_of(cls: type[Any], file: str, module: str = "") -> Entry:
    """The entry that a class makes. Raises Misuse if the class is not valid."""
    bases = ((Input, InputDeclaration), (Experiment, ExperimentDeclaration))
    kinds: list[type[Entry]] = [kind for base, kind in bases if issubclass(cls, base)]
    if computes_attention(cls):
        kinds.append(TorchDeclaration if computes_by_torch(cls) else Declaration)
    if len(kinds) != 1:
        count = "of two kinds" if kinds else "of no kind"
        raise Misuse(f"class {cls.__name__} is {count}: {EXPECTED}")
    return kinds[0](adapted(cls) if computes_attention(cls) else cls, file, module)
