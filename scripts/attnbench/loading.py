"""Files and classes of Python become entries of the registries."""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import types
from pathlib import Path
from typing import Iterable, TypeVar

from attnbench import _native
from attnbench._native import Misuse
from attnbench.failures import one_line

Class = TypeVar("Class", bound=type)
PLUGIN = "attnbench_plugin_"  # begins the name of a plugin's module
NOTEBOOK = "<a class of this process>"  # in place of a file
_registered: dict[str, type] = {}  # classes that `register` made methods of this process, by name


def _module_of(file: str) -> types.ModuleType:
    """Runs a file as a module of its own. Nothing is written beside it."""
    stem = "".join(c if c.isalnum() else "_" for c in Path(file).stem)
    name = PLUGIN + stem
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != file:
        name += "_"
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module  # dataclasses and pickle look there
    folder = str(Path(file).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # its neighbours, as when Python is given the file
    try:
        exec(compile(Path(file).read_bytes(), file, "exec"), module.__dict__)
    except BaseException as error:  # SystemExit as well: a plugin ends nothing
        del sys.modules[name]
        raise Misuse(one_line(error, file=file)) from None
    return module


def _register_file(file: str, again: bool) -> list[str]:
    from attnbench.declaration import Declaration, is_method

    module = _module_of(file)
    methods = [c for c in vars(module).values() if inspect.isclass(c) and is_method(c)]
    own = [c for c in methods if c.__module__ == module.__name__]
    # A file that only imports its methods registers those; beside classes of its own, imported ones are their bases.
    classes = own or [c for c in methods if not c.__module__.startswith("attnbench.")]
    declared = [Declaration(cls, file) for cls in dict.fromkeys(classes)]
    if not declared:
        raise Misuse(
            "it defines no class with attend(self, q, k, v, causal), or with features_q and features_k(self, x)"
        )
    names = [d.name for d in declared]
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"two of its classes are called '{name}'; give one of them another `name`")
    for declaration in declared:
        _native.register(declaration, again)
    return names


def load_in_worker(file: str) -> None:
    """How a worker loads a .py plugin."""
    _register_file(file, again=False)


def share_symbols() -> None:
    """Plugins in C++ find the registries of this process: those of the extension module and of its library."""
    ctypes.CDLL(_native.__file__, os.RTLD_NOW | os.RTLD_GLOBAL)


def set_plugins(files: Iterable[str]) -> None:
    """What workers of this process load: those of the files that are still there."""
    _native.set_plugins([file for file in files if Path(file).exists()], sys.executable)


def load(file: str | os.PathLike[str]) -> list[str]:
    """Loads a plugin, .py or .so, into this process and those of `run`; returns the names of a .py file's methods.

    A .py file that was loaded before is loaded anew, and its methods replaced. Raises Misuse for what is no plugin.
    """
    path = str(Path(file).resolve())
    before = _native.plugins()
    _native.set_plugins([path], sys.executable)  # refuses what is no file
    set_plugins([*before, path])
    try:
        if not path.endswith(".so"):
            return _register_file(path, again=True)
        if path not in before:
            share_symbols()
            _native.load_library(path)
        return []
    except Misuse as error:
        set_plugins(before)
        raise Misuse(f"plugin {path}: {error}" if path.endswith(".py") else str(error)) from None


def register(cls: Class) -> Class:
    """Makes a class a method of this process, under its name; may be used as a decorator. Run again, it is replaced.

    `run` starts other processes, which load methods from files: there it takes the class's file, and a class that was
    typed into a notebook has none. Raises Misuse.
    """
    from attnbench.declaration import Declaration

    if not inspect.isclass(cls):
        raise Misuse(f"register: {cls!r} is no class")
    if cls.__module__.startswith(PLUGIN):  # its file is being loaded, and all of its classes are registered
        return cls
    declaration = Declaration(cls, file_of(cls) or NOTEBOOK)
    _native.register(declaration, True)
    _registered[declaration.name] = cls
    return cls


def registered_class(spec: str) -> type | None:
    """The class that `register` made the method of that spec."""
    return _registered.get(spec.partition(":")[0])


def file_of(cls: type) -> str | None:
    """The .py file that defines a class; None for one that was typed in."""
    try:
        found = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None
    return str(Path(found).resolve()) if found and found.endswith(".py") and Path(found).is_file() else None


def name_of(method: str | type) -> str:
    """The spec of what is a spec already, or a class, which is registered."""
    from attnbench.declaration import Declaration

    if isinstance(method, str):
        return method
    register(method)
    return Declaration(method, file_of(method) or NOTEBOOK).name
