"""Files and classes of Python become entries of the registries."""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
from pathlib import Path
from typing import Iterable, TypeVar

from attnbench import _native
from attnbench._native import Misuse
from attnbench.entries import EXPECTED, entry_of, is_entry
from attnbench.entry import Entry
from attnbench.imported import file_of
from attnbench.opened import PLUGIN, opened
from attnbench.torch_declaration import TorchDeclaration

Class = TypeVar("Class", bound=type)
NOTEBOOK = "<a class of this process>"  # in place of a file
_registered: dict[tuple[str, str], type] = {}  # classes that `register` made entries of this process, by kind and name
_opening = False  # a plugin is being opened: all of its classes are registered afterwards


def _register_plugin(plugin: str, again: bool, reimport: bool) -> list[str]:
    global _opening
    _opening = True
    try:
        file, module, classes = opened(plugin, is_entry, reimport)
    finally:
        _opening = False
    entries: list[Entry] = [entry_of(cls, file, module) for cls in classes]
    if not entries:
        raise Misuse(f"it defines no class that is a method, an input or an experiment: {EXPECTED}")
    names = [(entry.kind, entry.name) for entry in entries]
    for kind, name in names:
        if names.count((kind, name)) > 1:
            raise Misuse(f"two of its classes are called '{name}'; give one of them another `name`")
    for entry in entries:
        _add(entry, again)
        if again:
            _registered.pop((entry.kind, entry.name), None)  # workers have it from the plugin
    if any(isinstance(entry, TorchDeclaration) for entry in entries):
        _add_torch_methods(file)
    return [entry.name for entry in entries]


def _add_torch_methods(source: str) -> None:
    """The methods in PyTorch that come with attnbench, beside those of a plugin: softmax on its device is one of them.

    source: the file of the plugin, by which the harness finds the plugin for a worker.
    """
    from attnbench.torch_methods import METHODS

    there = _native.summaries("methods")
    for cls in METHODS:
        file = file_of(cls)
        assert file is not None
        entry = entry_of(cls, file)
        if entry.name not in there:
            entry.files.append(source)
            _add(entry, False)


def _add(entry: Entry, again: bool) -> None:
    try:
        _native.register(entry, again)
    except Misuse as error:
        raise Misuse(f"{entry.where}: {error}") from None


def load_in_worker(plugin: str) -> None:
    """How a worker loads a plugin in Python."""
    _register_plugin(plugin, again=False, reimport=False)


def share_symbols() -> None:
    """Plugins in C++ find the registries of this process: those of the extension module and of its library."""
    ctypes.CDLL(_native.__file__, os.RTLD_NOW | os.RTLD_GLOBAL)


def set_plugins(plugins: Iterable[str]) -> None:
    """Sets the plugins that workers of this process load: those whose files are still there."""
    _native.set_plugins([plugin for plugin in plugins if _is_there(plugin)], sys.executable)


def _is_there(plugin: str) -> bool:
    module = sys.modules.get(plugin.partition(":")[0]) if ":" in plugin else None
    return Path(getattr(module, "__file__", None) or plugin).exists() or (":" in plugin and module is None)


def import_folders(plugins: Iterable[str]) -> list[str]:
    """The folders that workers import classes from: where this process has found their modules."""
    tops = [sys.modules.get(plugin.split(".")[0].split(":")[0]) for plugin in plugins if ":" in plugin]
    files = [Path(top.__file__) for top in tops if top is not None and top.__file__]
    return [str((file.parent if file.name == "__init__.py" else file).resolve().parent) for file in files]


def load(plugin: str | os.PathLike[str]) -> list[str]:
    """Loads a plugin into this process and those of `run`; returns the names of its entries in Python.

    plugin: a .py or .so file, a folder (a package, or the files in it), or "package.module:Class". A plugin in Python
    that was loaded before is loaded again, and its entries are replaced. Raises Misuse for anything but a plugin.
    """
    before = _native.plugins()
    _native.set_plugins([os.fspath(plugin)], sys.executable)  # refuses anything but a plugin
    given = _native.plugins()
    set_plugins([*before, *given])
    names: list[str] = []
    for one in given:
        try:
            if not one.endswith(".so"):
                names += _register_plugin(one, again=True, reimport=one in before)
            elif one not in before:
                share_symbols()
                _native.load_library(one)
        except Misuse as error:
            set_plugins(before)
            raise Misuse(str(error) if one.endswith(".so") else f"plugin {one}: {error}") from None
    return names


def register(cls: Class) -> Class:
    """Makes a class an entry of this process (a method, an input or an experiment), under its name; may be used as a decorator. Run again, it is replaced.

    `run` starts other processes, which load classes from files: there it takes the class's file, and a class that was
    typed into a notebook has none. Raises Misuse.
    """
    if not inspect.isclass(cls):
        raise Misuse(f"register: {cls!r} is not a class")
    if _opening:
        return cls
    entry = _entry(cls)
    _add(entry, True)
    _registered[entry.kind, entry.name] = cls
    return cls


def registered_class(kind: str, spec: str) -> type | None:
    """The class that `register` made the entry of that spec."""
    return _registered.get((kind, spec.partition(":")[0]))


def plugin_of(cls: type) -> str | None:
    """The plugin that gives workers a class; None for one that was typed in.

    A class of a package is imported by its module, so that relative imports work. Another comes from its file.
    """
    module = _package_module(cls)
    return f"{module}:{cls.__name__}" if module else file_of(cls)


def _package_module(cls: type) -> str:
    """The module in a package that gives a class; empty for a class that no package has."""
    name = cls.__module__
    in_package = file_of(cls) and "." in name and not name.startswith(PLUGIN)
    return name if in_package and getattr(sys.modules.get(name), cls.__name__, None) is cls else ""


def _entry(cls: type) -> Entry:
    return entry_of(cls, file_of(cls) or NOTEBOOK, _package_module(cls))


def name_of(entry: str | type | os.PathLike[str]) -> str:
    """The spec of what is a spec already, or a path, or a class, which is registered."""
    if isinstance(entry, (str, os.PathLike)):
        return os.fspath(entry)
    if not isinstance(entry, type):
        raise Misuse(
            f"{entry!r:.60} is of type {type(entry).__name__}; expected a name with its parameters, a path or a class"
        )
    register(entry)
    return _entry(entry).name
