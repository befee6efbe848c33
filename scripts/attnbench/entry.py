"""A class as an entry of a registry: its name, its parameters and its texts."""

from __future__ import annotations

import inspect
import platform
import re
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

import numpy as np

from attnbench._native import Misuse
from attnbench.imported import file_of, imported_files
from attnbench.method import Need, Parameter

NAME = re.compile(r"[A-Za-z0-9_-]+")


def kebab(name: str) -> str:
    """MyPerformer -> my-performer, FAVORPlus -> favor-plus."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1-\2", name))
    return words.replace("_", "-").strip("-").lower()


def _default(given: Any) -> Any:
    return given.default if isinstance(given, Parameter) else given


def own(cls: type, base: type, name: str) -> Any:
    """An attribute that the class has by itself, and not from the base for type hints."""
    found = getattr(cls, name, None)
    return None if found is getattr(base, name, object()) else found


def own_places(cls: type, name: str) -> int:
    """The parameters of a function of a class that calls on an instance fill: 1 for self, 0 if it is static or bound."""
    found = inspect.getattr_static(cls, name)
    return int(not isinstance(found, (staticmethod, classmethod)) and hasattr(found, "__get__"))


class Entry:
    """The description that every kind of entry gives of itself. The extension module reads the public attributes."""

    kind: str
    """"method", "input" or "experiment\""""
    base: type
    """the class of attnbench that one may derive from"""
    constructor: tuple[str, ...] = ("parameters",)
    """what attnbench gives a constructor that names it, beside the parameters"""

    def __init__(self, cls: type[Any], file: str, module: str = "") -> None:
        """module: the name by which the file is imported, if it is."""
        self.cls = cls
        self.file = file
        self.files = [file, *imported_files(file, module)]
        self.where = f"{Path(file_of(cls) or file).name}: class {cls.__name__}"
        named = getattr(cls, "name", None)
        self.name = kebab(cls.__name__) if named is None else named
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise Misuse(
                f"{self.where}: name = {self.name!r} cannot be written in a spec; expected letters, digits, - and _"
            )
        self._read_constructor()
        self._read_texts()
        self.cost_text = f"in Python {platform.python_version()} ({sys.executable}), NumPy {np.__version__}"

    def _made(self, values: dict[str, Any], **given: Any) -> Any:
        """An instance with these parameters, which gets what its constructor names."""
        there = {"parameters": values, **given, **values}
        arguments = {name: there[name] for name in self._named}
        if self._all_parameters:
            arguments.update(values)
        return self.cls(**arguments)

    def _read_constructor(self) -> None:
        self._named: list[str] = []
        self._all_parameters = False
        declared: dict[str, Any] = dict(getattr(self.cls, "parameters", None) or {})
        try:
            signature: Iterable[inspect.Parameter] = inspect.signature(self.cls).parameters.values()
        except (TypeError, ValueError):
            signature = ()
        for p in signature:
            if p.kind is p.VAR_KEYWORD:
                self._all_parameters = True
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            # A keyword with a plain default is a parameter.
            plain = isinstance(p.default, (bool, int, float, str, Parameter))
            if p.name not in self.constructor and p.name not in declared and plain:
                declared[p.name] = p.default
            elif p.name in declared and plain and _default(p.default) != _default(declared[p.name]):
                raise Misuse(
                    f"{self.where}: parameter {p.name} is declared twice: {_default(declared[p.name])!r} in `parameters`, "
                    f"{_default(p.default)!r} in the constructor; keep one"
                )
            if p.name in self.constructor or p.name in declared:
                self._named.append(p.name)
            elif p.default is p.empty:
                known = ", ".join([*self.constructor, *declared])
                raise Misuse(f"{self.where}: its constructor wants '{p.name}', which nothing gives; there are {known}")
        self.parameters = [self._parameter(name, value) for name, value in declared.items()]

    def _parameter(self, name: str, value: Any) -> Parameter:
        given = value if isinstance(value, Parameter) else Parameter(value)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise Misuse(
                f"{self.where}: parameter {name!r} cannot be written in a spec; expected letters, digits, - and _"
            )
        if name in self.constructor:
            raise Misuse(
                f"{self.where}: parameter {name!r} has the name of what attnbench gives the constructor; rename it"
            )
        if not given.kind:
            raise Misuse(
                f"{self.where}: parameter {name} = {given.default!r} is a {type(given.default).__name__}; expected an int, a "
                "float, a bool, a str or an attnbench.Parameter of one"
            )
        if given.kind == "choice" and given.default not in given.choices:
            raise Misuse(f"{self.where}: parameter {name} = {given.default!r} is none of its choices")
        if given.budget and given.kind != "integer":
            raise Misuse(
                f"{self.where}: parameter {name} = {given.default!r} is a budget and no int; --match chooses among integers, "
                "so give one, such as a count of keys, or leave out budget=True"
            )
        made = Parameter(
            given.default, given.help or "see its docstring", minimum=given.minimum, maximum=given.maximum,
            choices=tuple(given.choices), budget=given.budget,
            numerics=given.numerics, published=given.published,
        )  # fmt: skip
        made.name = name
        return made

    def _read_texts(self) -> None:
        own = self.cls.__doc__ if self.cls.__doc__ != self.base.__doc__ else None
        first, *rest = (inspect.cleandoc(own) if own else "").split("\n")
        self.summary = first.strip() or f"{self.cls.__name__} of {Path(self.file).name}"
        self.formula = " ".join(" ".join(rest).split())
        reference = getattr(self.cls, "reference", "") or ""
        if callable(reference):
            raise Misuse(
                f"{self.where}: reference is a function; it is the text that cites the paper. A second path that proves the "
                "formula is called transcription(self, q, k, v, causal)"
            )
        self.reference = str(reference)
        self.departure = self._text(
            "departure", "", "the text that says where the class does something else than its reference"
        )
        self.printed = self._text("printed", "", 'its name in figures, such as "Performer"')
        self.family = self._text("family", "python", 'the methods whose colour it has in figures, such as "sparse"')

    def _text(self, name: str, default: str, meaning: str) -> str:
        said = getattr(self.cls, name, None) or default
        if not isinstance(said, str):
            raise Misuse(f"{self.where}: {name} is a {type(said).__name__}; expected {meaning}")
        return " ".join(said.split())

    def _needs(self, attribute: str) -> list[tuple[str, str, str, str, str]]:
        """Name, rows, columns, values and meaning of the arrays that a dict of the class names."""
        said = getattr(self.cls, attribute, None) or {}
        example = f'{attribute} = {{"gate": ("n", 1)}}'
        if not isinstance(said, Mapping):
            raise Misuse(f"{self.where}: {attribute} is a {type(said).__name__}; expected a dict, such as {example}")
        return [self._need(name, given, example) for name, given in said.items()]

    def _need(self, name: Any, given: Any, example: str) -> tuple[str, str, str, str, str]:
        if not isinstance(name, str) or not name.isidentifier() or name in ("q", "k", "v", "g", "causal", "scale"):
            raise Misuse(f"{self.where}: an array cannot be called {name!r}; expected another name, as in {example}")
        if not isinstance(given, tuple) or not 1 <= len(given) <= 4:
            raise Misuse(f"{self.where}: array {name} = {given!r}; expected (rows, columns), as in {example}")
        need = Need(*given)
        for size in need[:2]:
            if size not in ("n", "nq", "d", "dv") and not (type(size) is int and size >= 1):
                raise Misuse(
                    f"{self.where}: array {name} has the axis {size!r}; expected n (one a key), nq (one a query), d, dv, or "
                    "a number from 1"
                )
        if need.values not in ("normal", "uniform", "positions"):
            raise Misuse(
                f"{self.where}: array {name} has values {need.values!r}; expected normal, uniform or positions"
            )
        return name, str(need.rows), str(need.columns), need.values, str(need.meaning)

    def _function(self, name: str, arguments: int) -> Callable[..., Any] | None:
        """A function of the class: static, of the class, or with a self that is the class."""
        function: object = getattr(self.cls, name, None)
        if function is None:
            return None
        if not callable(function):
            raise Misuse(
                f"{self.where}: {name} is a {type(function).__name__}; expected a function of {arguments} arguments"
            )
        try:
            places = len(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            places = arguments
        if places == arguments:
            return function
        if places == arguments + 1:
            return lambda *given: function(self.cls, *given)
        raise Misuse(f"{self.where}: {name} takes {places} arguments; expected {arguments}")

    def _has(self, written: str) -> bool:
        """Whether instances have a function. written: how a class defines it."""
        name, expected = written.partition("(")[0], written.count(",")
        function: object = own(self.cls, self.base, name)
        if function is None:
            return False
        if not callable(function):
            raise Misuse(f"{self.where}: {name} is a {type(function).__name__}; expected a function {written}")
        try:
            inspect.signature(function).bind(*range(expected + own_places(self.cls, name)))
        except TypeError:
            raise Misuse(f"{self.where}: {name}{inspect.signature(function)}; expected {written}") from None
        except ValueError:  # written in C
            pass
        return True

    def _require(self, written: str) -> None:
        """Refuses a class without a function. written: how a class defines it."""
        if not self._has(written):
            raise Misuse(f"{self.where} is an {self.kind} and has no {written}")
