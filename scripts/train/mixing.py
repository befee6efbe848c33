"""The interface of a trainable attention: a module that mixes the values of a head, and the spec of its C++ method.

A file of attentions/ has `NAME`, `PARAMETERS` (defaults, as texts) and `make(parameters, place)`. Its name and parameters
are those of the method of attnbench, so that one spec, such as local:window=16, names both.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

SMALLEST = 1e-30  # in place of a normaliser that is 0: all its weights are 0 as well


class Refused(Exception):
    """A request that cannot be: the message says what was given, what was expected and what to type."""


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of an attention in a model: the heads of one layer, and the n tokens that they see."""

    heads: int
    head_size: int  # of q and k
    n: int
    causal: bool

    def seen(self, q: Tensor) -> Tensor:
        """[n, n] for queries [..., n, head_size], on their device: true where row i may see column j."""
        every = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device)
        return every.tril() if self.causal else every


class Mixing(nn.Module):
    """Attention of the heads of one layer.

    forward: q and k of shape [batch, heads, n, head_size], times head_size^-1/4, and v of any width, to the shape of v.
    """

    gain = 1.0  # how much larger its outputs are than averages of values: the model begins with smaller output weights

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def redraw(self, generator: torch.Generator) -> None:
        """Draws new random numbers, if it has any."""

    def penalty(self) -> Tensor | None:
        """The term that its last forward pass adds to the loss."""
        return None

    def state(self) -> dict[str, NDArray[np.float64]]:
        """The arrays that the C++ method would draw or learn, by the names of its state: [rows, columns], or with heads first."""
        return {}


def normalised(weights: Tensor, v: Tensor) -> Tensor:
    """Rows of weights divided by their sums, times v. A row without weight gives 0."""
    sums = weights.sum(-1, keepdim=True)
    return (weights @ v) / torch.where(sums == 0, SMALLEST, sums)


def softmax_over(logits: Tensor, seen: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(logits.masked_fill(~seen, -torch.inf), dim=-1) @ v


def numbers(tensor: Tensor) -> NDArray[np.float64]:
    return cast(NDArray[np.float64], tensor.detach().double().cpu().numpy().copy())


def entries(package: str) -> dict[str, ModuleType]:
    """The modules of a folder beside this file, by their NAME."""
    folder = Path(__file__).resolve().parent / package
    modules = [importlib.import_module(f"{package}.{found.name}") for found in pkgutil.iter_modules([str(folder)])]
    return {module.NAME: module for module in modules}


@dataclasses.dataclass(frozen=True)
class Attention:
    """A spec that the trainer knows, such as performer:m=64."""

    spec: str  # with the parameters that differ from the defaults of the trainer, in their order
    name: str
    parameters: Mapping[str, str]

    def make(self, place: Place) -> Mixing:
        """Raises Refused where the attention has no form, such as a causal one."""
        make: Callable[[Mapping[str, str], Place], Mixing] = entries("attentions")[self.name].make
        return make(self.parameters, place)


def parse_attention(spec: str) -> Attention:
    """Raises Refused for an unknown attention or parameter."""
    known = entries("attentions")
    name, _, rest = spec.partition(":")
    if name not in known:
        raise Refused(f"'{spec}' is no attention that can be trained; expected one of {', '.join(sorted(known))}")
    parameters: dict[str, str] = dict(known[name].PARAMETERS)
    given: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if key not in parameters or not equals or not value:
            expected = ", ".join(f"{key}={value}" for key, value in parameters.items()) or "none"
            raise Refused(f"'{part}' of '{spec}' is no parameter that can be trained with; expected {expected}")
        given[key] = value
    written = ",".join(f"{key}={given[key]}" for key in parameters if key in given)
    return Attention(f"{name}:{written}" if written else name, name, parameters | given)


def positive_integer(parameters: Mapping[str, str], key: str, spec: str) -> int:
    text = parameters[key]
    if not text.isdigit() or int(text) < 1:
        raise Refused(f"{spec}:{key}={text}: expected an integer from 1, such as {spec}:{key}=16")
    return int(text)


def choice(parameters: Mapping[str, str], key: str, spec: str, known: Mapping[str, Any]) -> Any:
    if parameters[key] not in known:
        raise Refused(f"{spec}:{key}={parameters[key]} cannot be trained; expected {', '.join(known)}")
    return known[parameters[key]]
