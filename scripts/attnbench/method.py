"""Classes that a method in Python may use. A method needs none of them."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class Shape(NamedTuple):
    """Sizes of one head, and what a row sees: row i sees key j when j < keys and, if causal, j <= i + offset."""

    nq: int
    """queries: q is [nq, d]"""
    nk: int
    """keys: k is [nk, d], v is [nk, dv]"""
    d: int
    dv: int
    causal: bool
    offset: int
    keys: int
    """keys that are not padding"""
    dtype: str
    """of q, k and v: "float32" or "float64", and in PyTorch also "float16" or "bfloat16\""""

    @property
    def itemsize(self) -> int:
        """Bytes of a number of that type."""
        return {"float64": 8, "float32": 4}.get(self.dtype, 2)


class Calibration(NamedTuple):
    """A head that a method may learn from, float64, scaled like all q and k."""

    q: Array
    k: Array
    v: Array


class Need(NamedTuple):
    """An array that a method needs beside q, k and v, or that an input gives: `needs = {"gate": Need("n", 1)}`.

    A tuple of the same items will do: `needs = {"gate": ("n", 1, "uniform")}`.
    """

    rows: str | int = "n"
    """"n" (one a key), "nq" (one a query), "d", "dv", or a number"""
    columns: str | int = 1
    values: str = "normal"
    """How `check` fills it: "normal", "uniform" between 0 and 1, or "positions": 0 to n - 1, also in runs whose input
    gives none."""
    meaning: str = ""
    """one line, for `describe`"""


class Parameter:
    """A parameter with bounds: `parameters = {"m": Parameter(64, "features", minimum=1, budget=True)}`.

    default: an int, float, bool or str. choices: what a str may be. budget: it is the one number that says how much the
    method may spend (an int), which `--match` chooses. numerics: it changes how numbers are computed (a chunk, a tile),
    and the output by rounding only. published: it reproduces a library's deviation, and the claims hold for the default alone.
    """

    def __init__(
        self,
        default: int | float | bool | str,
        help: str = "",
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        choices: tuple[str, ...] = (),
        budget: bool = False,
        numerics: bool = False,
        published: bool = False,
    ) -> None:
        self.name = ""
        self.default = default
        self.help = help
        kinds = {bool: "flag", int: "integer", float: "real", str: "choice" if choices else "text"}
        self.kind = kinds.get(type(default), "")
        largest = 1e9 if self.kind == "integer" else float("inf")
        self.minimum = -largest if minimum is None else float(minimum)
        self.maximum = largest if maximum is None else float(maximum)
        self.choices = list(choices)
        self.budget = budget
        self.numerics = numerics
        self.published = published


class Method:
    """A base for type hints and completion; a method need not derive from it.

    One instance is one draw for one head: what is random is drawn by the constructor, from its seed alone, and
    afterwards nothing changes. The constructor is given those of these that it names: `shape` (Shape), `seed` (int),
    `parameters` (dict), each parameter by its own name, `calibration` (Calibration or None), `state` (what state() gave, to
    be used instead of drawing, or None), and `layer` and `layers` (int: the head's place in a model, 0 of 1 by itself).

    q and k are scaled by d^-1/4 each: the weights that softmax normalises are exp(q @ k.T). A function of q and k that has
    one more argument `scale` gets them unscaled, and the weights are exp(scale * q @ k.T). All arrays are read-only views
    of the caller's memory.
    """

    exponents: bool = False
    """features_q and features_k return logarithms of features; the engine stabilises and exponentiates them."""

    def attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        """[n, d], [n, d], [n, dv] to [n, dv]. Without `causal`, q may have another number of rows than k and v."""
        raise NotImplementedError

    def features_q(self, x: Array) -> Array:
        """Queries [b, d] to features [b, F] with features_q(q) @ features_k(k).T ~ exp(q @ k.T)."""
        raise NotImplementedError

    def features_k(self, x: Array) -> Array:
        """Keys [b, d] to features [b, F]."""
        raise NotImplementedError

    needs: Mapping[str, Need | tuple[Any, ...]] = {}
    """Arrays beside q, k and v. Every function that takes q and k takes them, in this order, after its own arguments:
    attend(self, q, k, v, causal, gate), kernel(self, q, k, gate), step(self, q, k, v, gate)."""

    golden: str | Mapping[str, Mapping[str, Any]] | None = None
    """A .npz file beside the class with numbers of the authors' code (q, k and v as it took them, `out`, `causal`), or such
    files with the parameters that each belongs to: {"softpick.npz": {"epsilon": 0.0}}."""

    no_work: str | None = None
    """Why attend does more work than cost declares, for `check`: a text, or None where it does not."""

    causal_only: bool = False
    """attend is called with causal=True alone; every other form is skipped with that reason."""

    departure: str = ""
    """Where the method does something else than its `reference`, and why, for `describe`."""

    printed: str = ""
    """Its name in figures; without one, `name` with a capital."""

    family: str = "python"
    """The methods whose colour it has in figures: "linear", "sparse", "low-rank", ..."""

    backend: str | None = None
    """"torch": every function takes and returns torch tensors [heads, n, d], on the device and in the dtype that the
    parameters `device` and `dtype` of its spec name; `compile` is the third that such a class gets. The constructor is given
    `device` and `dtype` if it names them, and `seeds`, one a head. Tensors are contiguous."""

    tensors: bool = False
    """attend takes and returns torch tensors, and autograd gives its gradients."""

    batched: bool = False
    """attend takes [heads, n, d] arrays, and the constructor `seeds`, one for each head, in place of `seed`, and `kv_heads`:
    how many of the heads have keys of their own. k and v have all heads; those of a group are equal."""

    mixes_heads: bool = False
    """With batched or backend: the output of a head depends on the other heads of the call. Experiments on single heads
    give it one at a time, and say so."""

    def kernel(self, q: Array, k: Array) -> Array:
        """[nq, d], [nk, d] to [nq, nk]: the weights K before normalisation, of which attend makes its output."""
        raise NotImplementedError

    def decoder(self, shape: Shape) -> Any:
        """An object that has taken in no token: step(q, k, v) of one token gives its row [1, dv] of causal attention,
        bytes() is what it keeps, and prefill(q, k, v), if it is there, takes in several tokens. A class without attend
        attends by its steps."""
        raise NotImplementedError

    def gradients(self, q: Array, k: Array, v: Array, causal: bool, g: Array) -> tuple[Array, Array, Array]:
        """Gradients of sum(g * attend(q, k, v, causal)) with respect to q, k and v."""
        raise NotImplementedError

    def state(self) -> Mapping[str, Array]:
        """The drawn or fitted 2-D arrays by name."""
        return {}


class Empty:
    """Does nothing, so that a call costs the interpreter's own time."""

    def attend(self, *arrays: Array) -> None:
        return None
