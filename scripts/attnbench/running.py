"""Experiments from Python: the runner is this process, and its workers are this interpreter."""

from __future__ import annotations

import atexit
import functools
import io
import itertools
import os
import shutil
import sys
import tempfile
import warnings
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence, SupportsIndex

import numpy as np

from attnbench import _native
from attnbench._native import Misuse
from attnbench.loading import import_folders, name_of, plugin_of, registered_class, set_plugins

if TYPE_CHECKING:
    import pandas

Values = Iterable[Any] | str | int | float | np.generic | os.PathLike[str]
FILE = "results"  # the attribute of a frame that names its file
TEXTS = {
    "experiment", "method", "input", "precision", "machine", "ending", "reason", "metric", "unit", "finished", "started",
    "command",
}  # fmt: skip
"""the columns of a table that are never numbers"""
_numbers = itertools.count()


def several(values: Any) -> list[Any]:
    """One value or several, as a list: of a list, an array, a column of a frame, a range, ..."""
    one = isinstance(values, (str, bytes, type, os.PathLike, Mapping)) or getattr(values, "ndim", None) == 0
    return [values] if one or not isinstance(values, Iterable) else list(values)


def words_of(values: Values) -> list[str]:
    """One value or several, as the command line spells them. Raises Misuse for what it cannot spell."""
    return [_word(x) for x in several(values)]


def _plain(value: Any) -> Any:
    """The number of Python that a scalar of NumPy or of PyTorch is; np.float32(0.1) is 0.1."""
    if getattr(value, "ndim", None) != 0:
        return value
    return float(str(value)) if type(value).__name__ == "float32" else value.item()


def _word(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (type, os.PathLike)):
        return name_of(value)
    if not isinstance(value, (str, Number)):
        raise Misuse(
            f"{value!r:.60} is of type {type(value).__name__}; expected a number, a text or a path, or several of them"
        )
    # A column of a frame that also has empty cells holds whole numbers as floats.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@functools.cache
def _temporary_folder() -> Path:
    """For results files that live as long as this process: figures of their rows are drawn later."""
    folder = tempfile.mkdtemp(prefix="attnbench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@contextmanager
def _loaded_by_workers(entries: Sequence[tuple[str, Any]]) -> Iterator[list[str]]:
    """The specs of entries, given by kind; classes among them are loaded from their files by the workers of this run."""
    before = _native.plugins()
    plugins = list(before)
    specs = []
    for kind, entry in entries:
        specs.append(name_of(entry))
        cls = entry if isinstance(entry, type) else registered_class(kind, specs[-1])
        if cls is None:
            continue
        found = plugin_of(cls)
        if found is None:
            raise Misuse(
                f"class {cls.__name__} is in no file, and workers load classes from files: write it to one "
                "(%%writefile mine.py) and attnbench.load('mine.py')"
            )
        plugins += [found] if found not in plugins else []
    path = os.environ.get("PYTHONPATH")
    if folders := import_folders(plugins):
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*folders, *filter(None, [path])]))
    set_plugins(plugins)
    try:
        yield specs
    finally:
        if path is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = path
        set_plugins(before)


def read(
    file: str | os.PathLike[str],
    *,
    metric: str | Sequence[str] = (),
    where: Mapping[str, Values] | None = None,
    wide: bool = False,
    arrays: bool = False,
    clock: bool = False,
) -> pandas.DataFrame:
    """The table of a results file that `attnbench export` writes, as a frame.

    A row for each number, with one column for each parameter: m, window, ... metric: only these. where: only cells with
    these values, {"method": "performer", "m": [64, 256]}; a spec stands for every configuration that has its name and the
    parameters that it gives. wide: a row for each replicate, with one column for each metric. arrays: also arrays, a row
    for each element. clock: also the columns that differ between equal runs. Raises Misuse.
    """
    import pandas

    conditions = [(name, word) for name, values in (where or {}).items() for word in words_of(values)]
    table = _native.table(os.fspath(file), words_of(metric), conditions, wide, arrays, clock)
    # Every digit: since version 3 that is the default, and the option warns.
    exact: dict[str, Any] = {} if int(pandas.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}
    columns = table.partition("\n")[0].split(",")
    # Only an empty field is missing: a method may be called null, or 007. Among numbers, export writes nan.
    numbers = set(columns[columns.index("reason") + 1 :]) - TEXTS
    frame: pandas.DataFrame = pandas.read_csv(
        io.StringIO(table), low_memory=False, dtype={name: str for name in columns if name in TEXTS},
        keep_default_na=False, na_values={name: ["", "nan"] if name in numbers else [""] for name in columns}, **exact,
    )  # fmt: skip
    frame.attrs[FILE] = os.path.abspath(file)
    return frame


def run(
    experiment: str | type,
    methods: Iterable[str | type] | str | type,
    *,
    inputs: Iterable[str | type | os.PathLike[str]] | str | type | os.PathLike[str] | None = None,
    n: Values | None = None,
    d: Values | None = None,
    causal: bool | np.bool_ | None = None,
    replicates: SupportsIndex = 1,
    sweep: Mapping[str, Values] | None = None,
    threads: SupportsIndex | None = None,
    seed: SupportsIndex = 1,
    results: str | os.PathLike[str] | None = None,
    **options: Any,
) -> pandas.DataFrame:
    """Runs an experiment and returns its numbers in the results file: the table of read(), of this experiment.

    experiment, methods, inputs: specs, or classes that are defined in a file; inputs default to gaussian, and may be paths
    of files with heads. n, d: sizes, or several. sweep: values by parameter, {"m": [64, 256]}. results: a file that is
    added to, so that nothing is measured twice;
    without, a temporary one. Further options of `attnbench run` by name: precision="f32", timeout=60, until="rel-ci=0.1".
    frame.attrs["summary"] is what the command prints. Endings other than done are rows, and a warning. Raises Misuse.
    """
    import pandas  # noqa: F401: before anything is measured

    if "ATTNBENCH_WORKER" in os.environ:
        raise Misuse("run() while a worker loads this file: put it under `if __name__ == '__main__':`")
    words = []
    for name, values in (("-n", n), ("-d", d)):
        if values is not None:
            words += [word for x in words_of(values) for word in (name, x)]
    if causal is not None:
        words.append("--causal" if causal else "--bidirectional")
    if sweep is not None and not isinstance(sweep, Mapping):
        raise Misuse(f'sweep = {sweep!r:.60}; expected values by parameter, {{"m": [64, 256]}}')
    for axis, values in (sweep or {}).items():
        words += ["--sweep", f"{axis}={','.join(words_of(values))}"]
    if threads is not None:
        words += ["--threads", _word(threads)]
    if "until" not in options:
        words += ["--replicates", _word(replicates)]
    words += ["--seed", _word(seed)]
    for name, value in options.items():
        value = _plain(value)
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not False and value is not None:
            words += [word for x in words_of(value) for word in (option, x)]
    entries = [("experiment", experiment)]
    for kind, given in (("input", () if inputs is None else inputs), ("method", methods)):
        entries += [(kind, entry) for entry in several(given)]
    with _loaded_by_workers(entries) as specs:
        file = name_of(results if results is not None else _temporary_folder() / f"{next(_numbers)}.db")
        for (kind, _), spec in zip(entries[1:], specs[1:]):
            words += [f"--{kind}", spec]
        code, summary = _native.command(["run", specs[0], *words, "--results", file], sys.executable)
        if code == 130:
            raise KeyboardInterrupt
        frame = read(file, where={"experiment": specs[0].split(":")[0]})
    frame.attrs["summary"] = summary.rstrip()
    if code != 0 or (frame["ending"] != "done").any():  # 1: an audit found differences
        warnings.warn(summary.rstrip(), stacklevel=2)
    return frame
