"""A plugin's classes, in whichever form it comes: a file, a package, or one class of an importable module."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from pathlib import Path
from typing import Callable, NamedTuple

from attnbench._native import Misuse
from attnbench.failures import one_line

PLUGIN = "attnbench_plugin_"  # begins the name of the module of a plugin that is one file


class Opened(NamedTuple):
    """The source and the classes of a plugin."""

    file: str
    """its source: of a package, that of __init__.py"""
    module: str
    """the name by which it is imported; empty for a file"""
    classes: list[type]
    """those to register"""


def opened(plugin: str, wanted: Callable[[type], bool], reimport: bool) -> Opened:
    """Runs or imports a plugin. `reimport`: a module that was imported before is imported again. Raises Misuse."""
    if ":" in plugin:
        return _class_of_module(plugin, reimport)
    if Path(plugin).is_dir():
        module = _package(plugin, reimport)
        return Opened(str(module.__file__), module.__name__, _chosen(module, wanted))
    return Opened(plugin, "", _chosen(_module_of(plugin), wanted))


def _chosen(module: types.ModuleType, wanted: Callable[[type], bool]) -> list[type]:
    found = dict.fromkeys(c for c in vars(module).values() if inspect.isclass(c) and wanted(c))
    name = module.__name__
    own = [c for c in found if c.__module__ == name or c.__module__.startswith(name + ".")]
    # A file that only imports its classes registers those; beside classes of its own, imported ones are their bases.
    return own or [c for c in found if not c.__module__.startswith("attnbench.")]


def _module_of(file: str) -> types.ModuleType:
    """Runs a file as a module of its own. Nothing is written beside it."""
    stem = "".join(c if c.isalnum() else "_" for c in Path(file).stem)
    name = PLUGIN + stem
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != file:
        name += "_"
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module  # dataclasses and pickle look there
    _see(Path(file).parent)  # its neighbours, as when Python is given the file
    try:
        exec(compile(Path(file).read_bytes(), file, "exec"), module.__dict__)
    except BaseException as error:  # SystemExit as well: a plugin ends nothing
        del sys.modules[name]
        raise Misuse(one_line(error, file=file)) from None
    return module


def _package(folder: str, reimport: bool) -> types.ModuleType:
    """Imports a folder by its name, so that imports inside it work, relative ones too."""
    name, source = Path(folder).name, str(Path(folder) / "__init__.py")
    if not name.isidentifier():
        raise Misuse(f"Python cannot import a package called '{name}'; rename the folder to a word, such as my_methods")
    _see(Path(folder).parent)
    module = _imported(name, source, reimport)
    if not module.__file__ or str(Path(module.__file__).resolve()) != source:
        raise Misuse(f"another module is called '{name}' ({module.__file__ or 'built in'}); rename the folder")
    return module


def _class_of_module(plugin: str, reimport: bool) -> Opened:
    name, _, wanted = plugin.partition(":")
    module = _imported(name, None, reimport)
    cls = getattr(module, wanted, None)
    if not inspect.isclass(cls):
        raise Misuse(f"module {name} ({module.__file__}) has no class '{wanted}'")
    if not module.__file__:
        raise Misuse(f"module {name} is not a file; give the module that defines {wanted}")
    return Opened(str(Path(module.__file__).resolve()), name, [cls])


def _imported(name: str, file: str | None, reimport: bool) -> types.ModuleType:
    top = name.partition(".")[0]
    if reimport:
        for known in [m for m in sys.modules if m == top or m.startswith(top + ".")]:
            del sys.modules[known]
        importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            raise Misuse(
                f"there is no module {error.name}; put the folder that holds {top} on PYTHONPATH, or install it for "
                f"{sys.executable}"
            ) from None
        raise Misuse(one_line(error, file=file)) from None
    except BaseException as error:
        raise Misuse(one_line(error, file=file)) from None


def _see(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
