"""The extension module. The package's other files are its face."""

from typing import Any, Callable, Mapping, Sequence

from numpy.typing import NDArray

__version__: str

class Misuse(ValueError):
    """The request is invalid. The message says what was given, what was expected and how to fix it."""

class NumericallyInvalid(ArithmeticError):
    """A method gave NaN or infinity."""

def run(words: list[str]) -> int:
    """The program, with argv: its exit code."""

def command(words: list[str], interpreter: str) -> tuple[int, str]:
    """A command in this process, whose workers that interpreter runs: its exit code and what it printed."""

def table(file: str, metrics: list[str], where: list[tuple[str, str]], wide: bool, arrays: bool, clock: bool) -> str:
    """The table that `attnbench export` writes, as CSV."""

def register(declaration: Any, again: bool) -> None:
    """An entry for a declaration.Declaration. again: what the same file registered is replaced."""

def set_loader(load: Callable[[str], None]) -> None: ...
def set_spoilt(spoilt: Callable[[], bool]) -> None: ...
def set_plugins(files: list[str], interpreter: str) -> None:
    """Sets the plugins that workers of this process load."""

def plugins() -> list[str]: ...
def load_library(file: str) -> None: ...
def attend(
    spec: str,
    what: str,
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    causal: bool,
    seed: int,
    scaled: bool,
    calibration: Sequence[NDArray[Any]] | None,
    state: Mapping[str, NDArray[Any]] | None,
    extra: Mapping[str, NDArray[Any]],
    place: tuple[int, int],
) -> NDArray[Any]:
    """what: "out", "attention" or "kernel". Arrays are [batch, heads, n, d]. place: the layer, and how many there are."""

def state(
    spec: str,
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    causal: bool,
    seed: int,
    scaled: bool,
    calibration: Sequence[NDArray[Any]] | None,
    extra: Mapping[str, NDArray[Any]],
) -> dict[str, list[NDArray[Any]]]:
    """By name, an array for each head of the first batch."""

def theory(
    spec: str, q: NDArray[Any], k: NDArray[Any]
) -> tuple[str, NDArray[Any], NDArray[Any] | None, bool] | None: ...
def check(specs: list[str], seed: int, error_rate: float, threads: int) -> tuple[str, str]:
    """The report as JSON and as text."""

def add_conversion(seconds: float) -> None:
    """Time of a call that is not the method's own: moving its arrays elsewhere and back."""

def tell_device(peak_bytes: float | None, backend: str, rates: tuple[float, float, float] | None) -> None:
    """Facts of the last call: the peak of the device's memory, and the implementation that the library chose."""

def describe(kind: str, spec: str) -> dict[str, Any]: ...
def summaries(kind: str) -> dict[str, str]: ...
def kinds(name: str) -> list[str]:
    """The kinds of which an entry has this name or alias."""

def fitted(spec: str) -> bool: ...
def record(
    results: str,
    command: str,
    interpreter: str,
    experiment: str,
    input: str,
    sizes: tuple[int, int, int, int, int],
    causal: bool,
    single: bool,
    seed: int,
    measured: list[tuple[str, list[Any]]],
) -> None:
    """sizes: nq, nk, d, dv, heads. measured: by method, replicate, ending, reason, seconds and values by metric."""
