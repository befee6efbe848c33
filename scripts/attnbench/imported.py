"""The files that decide what a plugin in Python computes, beside its own."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import site
import sys
import sysconfig
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Iterator


def file_of(cls: type) -> str | None:
    """The .py file that defines a class; None for one that was typed in."""
    try:
        found = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None
    return str(Path(found).resolve()) if found and found.endswith(".py") and Path(found).is_file() else None


def imported_files(file: str, module: str = "") -> list[str]:
    """The modules that a file imports from outside the interpreter's own folders, and those that these import: sorted.

    module: the name by which the file itself is imported, if it is. The modules of its package then count wherever they
    lie. Of a package that pip or conda installed in another folder, which PYTHONPATH or a .pth file adds, the METADATA
    counts, which says its version: following the imports of torch took minutes. The source is read, not run: an import
    inside a function counts, and so does a module that was imported before. Empty if `file` is not a file.
    """
    own = module.partition(".")[0]
    found: set[str] = set()
    todo = [(file, module)]
    for name in _with_packages(module) if module else ():
        place = _file_of(name, own)
        if place and place != file:
            found.add(place)
            todo.append((place, name))
    while todo:
        path, within = todo.pop()
        for name in _names(path, within):
            place = _file_of(name, own)
            if place and place not in found and place != file:
                found.add(place)
                if place.endswith(".py"):
                    todo.append((place, name))
    return sorted(found)


def _names(path: str, module: str) -> Iterator[str]:
    """Of all modules that the source at `path` may import, with the packages around them."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    package = module if Path(path).name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            name = node.module or ""
            if node.level:
                try:
                    name = importlib.util.resolve_name("." * node.level + name, package)
                except ImportError:  # the file is not in a package: Python itself would refuse it
                    continue
            yield from _with_packages(name)
            yield from (f"{name}.{alias.name}" for alias in node.names)  # of which some are modules


def _with_packages(name: str) -> Iterator[str]:
    words = name.split(".")
    yield from (".".join(words[: count + 1]) for count in range(len(words)))


def _file_of(name: str, own: str) -> str | None:
    """The source of a module of the package `own`, or of one that lies outside the interpreter's own folders."""
    top = name.partition(".")[0]
    if top != own:
        if not _is_outside(top):
            return None
        if metadata := _metadata_of(top):
            return metadata
    loaded = getattr(sys.modules.get(name), "__file__", None)
    origin = loaded or getattr(_spec(name), "origin", None)
    return str(Path(origin).resolve()) if origin and Path(origin).is_file() else None


@cache
def _is_outside(package: str) -> bool:
    inside = _interpreter_folders()
    return package not in sys.stdlib_module_names and any(
        not set(inside) & set(place.parents) for place in _places(package)
    )


def _places(package: str) -> list[Path]:
    """The file of a module, or the folders of a package without one."""
    if (spec := _spec(package)) is None:
        return []
    places = [spec.origin] if spec.has_location else spec.submodule_search_locations
    return [Path(place).resolve() for place in places or [] if place]


@cache
def _metadata_of(package: str) -> str | None:
    """The METADATA of the distribution that installed a package, beside which it lies; None without one."""
    for place in _places(package):
        folder = place.parent.parent if place.name == "__init__.py" else place.parent
        for metadata in folder.glob("*.dist-info/METADATA"):
            record = metadata.with_name("RECORD")
            first = rf"^\"?{re.escape(package)}(/|\.\w+,|\.[\w.-]+\.so,)"
            if record.is_file() and re.search(first, record.read_text(errors="replace"), re.MULTILINE):
                return str(metadata)
    return None


def _spec(name: str) -> ModuleSpec | None:
    """As importlib.util.find_spec, which imports the packages around a module to find it: this imports nothing."""
    parent, _, _ = name.rpartition(".")
    try:
        if not parent:
            return importlib.util.find_spec(name)
        around = _spec(parent)
        folders = around.submodule_search_locations if around else None
        return PathFinder.find_spec(name, folders) if folders else None
    except (ImportError, AttributeError, ValueError):
        return None


def _interpreter_folders() -> list[Path]:
    own = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [Path(folder).resolve() for folder in (*own, *site.getsitepackages(), site.getusersitepackages())]
