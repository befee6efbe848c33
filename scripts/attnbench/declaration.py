"""A class's description of itself as a method, in the form that the harness reads."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any, Callable, Mapping

import numpy as np

from attnbench._native import Misuse
from attnbench.entry import Entry, own, own_places
from attnbench.failures import Skip
from attnbench.golden import Golden, golden_files, read_golden
from attnbench.imported import file_of
from attnbench.method import Calibration, Method, Shape

CLAIMS: dict[str, type] = {
    "row_stochastic": bool,
    "non_negative": bool,
    "permutation_equivariant": bool,
    "causal_exact": bool,
    "linear_in_v": bool,
    "scales_with_v": bool,
    "equal_keys": bool,
    "no_attention_matrix": str,
    "rank_at_most": int,
    "exact_when": str,
    "no_extremes": str,
    "normaliser": str,
    "no_form": str,
    "unbiased": bool,
}
NORMALISERS = ("row_sums", "none", "l2")
GRADIENTS = "gradients(self, q, k, v, causal, g)"


def _of_rows(out: tuple[Any, ...] | list[Any]) -> Any:
    """The rows of a result, but no (out, weights), as torch.nn.MultiheadAttention returns them."""
    try:
        rows = np.asarray(out)
    except ValueError:  # of several shapes
        rows = np.zeros(())
    if isinstance(out, tuple) and rows.ndim != 2 or rows.ndim == 0:
        raise TypeError(f"attend returned a {type(out).__name__} of {len(out)}; expected an array")
    return rows


def _with_heads(out: Any, heads: int, of: str = "attend") -> Any:
    """The result of attend or transcription, which has to have the heads as its first axis."""
    if getattr(out, "ndim", 0) != 3 or len(out) != heads:
        wrong = (
            f"an array of shape {tuple(out.shape)}; expected"
            if hasattr(out, "shape")
            else f"a {type(out).__name__}; expected an array"
        )
        raise TypeError(f"{of} returned {wrong} [{heads}, n, dv], because batched = True")
    return out


class AllHeads:
    """attend of an instance for several heads, on arrays [heads, n, d].

    seconds(calls, q, k, v, ...): by the clock of the device that it runs on, if on_device.
    training_step(calls, q, k, v, causal, g, ...): seconds of the forward and the backward pass, if it trains.
    transcription(q, k, v, causal, ...): the plain formula for all heads, if they are mixed.
    """

    def __init__(
        self, attend: Callable[..., Any], heads: int, instance: Any, transcription: Callable[..., Any] | None = None
    ) -> None:
        self._attend, self._heads = attend, heads
        self.transcription = transcription
        self.seconds: Callable[..., float] | None = getattr(instance, "seconds_on_device", None)
        self.training_step: Callable[..., tuple[float, float]] | None = getattr(instance, "training_step", None)
        self.on_device = self.seconds is not None
        self.trains = self.training_step is not None

    def __call__(self, *given: Any) -> Any:
        return _with_heads(self._attend(*given), self._heads)


class Declaration(Entry):
    """A class as a method of the registry."""

    kind = "method"
    base = Method
    constructor: tuple[str, ...] = ("parameters", "shape", "seed", "calibration", "state", "layer", "layers")

    def __init__(self, cls: type[Any], file: str, module: str = "") -> None:
        """module: the name by which the file is imported, if it is."""
        self.cls = cls
        self.batched = self._takes_all_heads()
        if self.batched:
            self.constructor = tuple("seeds" if name == "seed" else name for name in self.constructor) + ("kv_heads",)
        super().__init__(cls, file, module)
        self.mixes_heads = bool(getattr(cls, "mixes_heads", False))
        if self.mixes_heads and not self.batched:
            raise Misuse(
                f"{self.where} has mixes_heads = True and takes one head per call; add batched = True, so that attend gets "
                "[heads, n, d]"
            )
        self.attends = own(cls, Method, "attend") is not None
        self.maps = own(cls, Method, "features_q") is not None and own(cls, Method, "features_k") is not None
        self.exponents = bool(getattr(cls, "exponents", False))
        self.needs = self._needs("needs")
        if self.needs and self.maps:
            raise Misuse(
                f"{self.where} has needs and features, which are of q or k alone; give the weights by kernel(self, q, k, "
                f"{', '.join(self._needed)}) instead"
            )
        self.takes_causal = self.attends and self._takes_causal()
        self.fitted = "calibration" in self._named
        # With kv_heads, and nothing drawn that it shows, the seeds may only say how many heads there are.
        counts_heads = "kv_heads" in self._named and not callable(getattr(cls, "state", None))
        self.asks_for_seed = "seed" in self._named or ("seeds" in self._named and not counts_heads)
        self._claims = getattr(cls, "claims", None)
        if isinstance(self._claims, Mapping):
            self._checked_claims(self._claims)
        self._read_proofs()
        self._read_abilities()
        self._cost, self._memory = (self._function(name, 2) for name in ("cost", "memory"))
        self.gives_cost, self.gives_memory = self._cost is not None, self._memory is not None
        self._mean, self._variance = (self._function(name, 3) for name in ("kernel_mean", "kernel_variance"))
        unbiased = isinstance(self._claims, Mapping) and self._claims.get("unbiased", False)
        self.has_theory = bool(unbiased or self._mean)
        self.has_variance = self.has_theory and self._variance is not None
        self.target = "exp(q.k)" if self._mean is None else "kernel_mean(q, k)"
        if self.has_theory and not self.maps and not self.gives_kernel:
            raise Misuse(
                f"{self.where} says what its kernel estimates and has neither kernel(self, q, k) nor features_q and "
                "features_k to see it by"
            )
        self._read_cost_text()

    def _read_proofs(self) -> None:
        transcription = getattr(self.cls, "transcription", None)
        takes: Mapping[str, Any] = {}
        if callable(transcription):
            try:
                takes = inspect.signature(transcription).parameters
            except (TypeError, ValueError):  # written in C
                pass
        self._transcription_takes_parameters = "parameters" in takes
        further = len(self.needs) + self._transcription_takes_parameters
        self.transcribes = self._function("transcription", 5 + further) is not None
        self._golden = golden_files(getattr(self.cls, "golden", None), self.where)
        self.has_golden = bool(self._golden)
        self._decoder_bytes = self._function("decoder_bytes", 2)
        self.gives_decoder_bytes = self._decoder_bytes is not None

    def transcription(self, instance: Any, values: dict[str, Any], *given: Any) -> Any:
        """The output of an instance's transcription for one head."""
        function = self._transcription_of(instance, values)
        return self._of_one_head(function)(*given) if self.mixes_heads else function(*given)

    def _transcription_of(self, instance: Any, values: dict[str, Any]) -> Callable[..., Any]:
        further = {"parameters": values} if self._transcription_takes_parameters else {}
        return functools.partial(instance.transcription, **further)

    def golden(self, values: dict[str, Any]) -> list[Golden]:
        """The outputs of the authors' code for these parameters."""
        folder = Path(file_of(self.cls) or self.file).parent
        return [
            read_golden(folder / name, self._needed)
            for name, parameters in self._golden.items()
            if all(values.get(key) == value for key, value in parameters.items())
        ]

    def decoder_bytes(self, values: dict[str, Any], shape: tuple[Any, ...]) -> float:
        """Bytes that a decoder keeps after the tokens of that shape."""
        assert self._decoder_bytes is not None
        return float(self._decoder_bytes(values, Shape(*shape)))

    def _takes_all_heads(self) -> bool:
        return bool(getattr(self.cls, "batched", False))

    def _read_abilities(self) -> None:
        self.tensors = bool(getattr(self.cls, "tensors", False))
        further = "".join(f", {name}" for name in self._needed)
        self.gives_kernel, self.decodes, self._gives_gradients = (
            self._has(written)
            for written in (f"kernel(self, q, k{further})", "decoder(self, shape)", GRADIENTS[:-1] + f"{further})")
        )
        self.differentiates = self._gives_gradients or self.tensors
        if not self.attends:
            for there, name in (
                (self.gives_kernel, "kernel"), (self.decodes, "decoder"), (self._gives_gradients, "gradients"),
                (self.tensors, "tensors = True"), (self.batched, "batched = True"),
            ):  # fmt: skip
                if there:
                    raise Misuse(
                        f"{self.where} has {name} and no attend: linear attention runs its features, with a kernel and a "
                        f"decoder of its own; add attend, or remove {name}"
                    )
        if self.tensors and importlib.util.find_spec("torch") is None:
            raise Misuse(
                f"{self.where} has tensors = True, and {sys.executable} has no torch: install it there, or name another "
                "interpreter with --python"
            )

    @property
    def _needed(self) -> list[str]:
        return [name for name, *_ in self.needs]

    def _takes_causal(self) -> bool:
        try:
            given = [*inspect.signature(self.cls.attend).parameters.values()][own_places(self.cls, "attend") :]
        except (TypeError, ValueError):  # written in C
            return True
        several = any(p.kind is p.VAR_POSITIONAL for p in given)
        places = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = sum(p.default is p.empty for p in places)
        further = len(self.needs)
        if any(p.kind is p.KEYWORD_ONLY and (p.name == "causal" or p.default is p.empty) for p in given):
            places = []  # its arguments are given without names
        elif several or (len(places) >= 4 + further and needed <= 4 + further):
            return True
        elif len(places) == 3 + further:
            return False
        own = "".join(f", {name}" for name in self._needed)
        raise Misuse(
            f"{self.where}: attend({', '.join(p.name for p in given)}) beside self; expected attend(self, q, k, v, "
            f"causal{own}), or attend(self, q, k, v{own}) where there is no causal form"
        )

    def _read_cost_text(self) -> None:
        assumed = "linear attention's and 2 d F FLOPs a token" if not self.attends else "exact softmax's"
        parts = []
        if self._cost is None:
            parts.append(f"FLOPs assumed: {assumed} (no cost(parameters, shape) is given)")
        if self._memory is None:
            parts.append(f"memory assumed: {'linear attention' if not self.attends else 'three n x n arrays'}")
        self.cost_text = "; ".join([*parts, self.cost_text])

    def make(self, *draw: Any) -> Any:
        """An instance: one draw for one head, from the parameters, the sizes, a seed, the calibration head or None, the
        state or None, the number of its layer, and how many layers there are.
        """
        if self.batched:
            return self._make_all([draw], 1)
        values, shape, seed, calibration, state, layer, layers = draw
        learnt = None if calibration is None else Calibration(*calibration)
        return self._made(
            values, shape=Shape(*shape), seed=seed, calibration=learnt, state=state, layer=layer, layers=layers
        )

    def _make_all(self, draws: list[tuple[Any, ...]], kv_heads: int) -> Any:
        """An instance that is the draws of several heads. draws: what `make` takes, of each. kv_heads: how many of them
        have keys of their own.
        """
        values, shape, _, _, _, layer, layers = draws[0]
        seeds, calibrations, states = ([draw[place] for draw in draws] for place in (2, 3, 4))
        learnt = None if calibrations[0] is None else Calibration(*(np.stack(arrays) for arrays in zip(*calibrations)))
        state = None if states[0] is None else {name: np.stack([s[name] for s in states]) for name in states[0]}
        return self._made(
            values, shape=Shape(*shape), seeds=seeds, calibration=learnt, state=state, layer=layer, layers=layers,
            kv_heads=kv_heads,
        )  # fmt: skip

    def _checked_claims(self, said: Any) -> dict[str, Any]:
        if not isinstance(said, Mapping):
            raise Misuse(
                f"{self.where}: claims is a {type(said).__name__}; expected a dict, or a function that gives one"
            )
        checked = {}
        for name, value in said.items():
            if name not in CLAIMS:
                near = difflib.get_close_matches(str(name), CLAIMS, 2)
                hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(CLAIMS)}"
                raise Misuse(f"{self.where}: unknown claim '{name}'; {hint}")
            if value is None:
                continue
            wanted = CLAIMS[name]
            accepted = (wanted, np.bool_) if wanted is bool else (int, np.integer) if wanted is int else wanted
            if not isinstance(value, accepted):
                raise Misuse(f"{self.where}: claim {name} = {value!r}; expected {wanted.__name__}")
            if name == "normaliser" and value not in NORMALISERS:
                raise Misuse(f"{self.where}: claim normaliser = {value!r}; expected {', '.join(NORMALISERS)}")
            checked[name] = wanted(value)
        return checked

    def claims(self, values: dict[str, Any], shape: tuple[Any, ...]) -> dict[str, Any]:
        """The claims of the class for these parameters and this shape."""
        given = Shape(*shape)
        said: Any = self._claims or {}
        if self._claims is not None and not isinstance(self._claims, Mapping):
            function = self._function("claims", 2)
            assert function is not None
            said = function(values, given)
        checked = self._checked_claims(said)
        if getattr(self.cls, "causal_only", False) and not given.causal:
            checked.setdefault("no_form", "it has a causal form only")
        return checked

    def cost(self, values: dict[str, Any], shape: tuple[Any, ...]) -> tuple[float, float, float] | None:
        """FLOPs of one attend, the least and the most that the data may make it do, and exponentials."""
        if self._cost is None:
            return None
        said = self._cost(values, Shape(*shape))
        flops, exps = said if isinstance(said, tuple) else (said, 0.0)
        least, most = flops if isinstance(flops, tuple) else (flops, flops)
        return float(least), float(most), float(exps)

    def memory(self, values: dict[str, Any], shape: tuple[Any, ...]) -> float | None:
        """Bytes of one attend beyond its inputs and output."""
        return None if self._memory is None else float(self._memory(values, Shape(*shape)))

    def kernel_mean(self, values: dict[str, Any], q: Any, k: Any) -> float:
        """The number that the kernel estimates for one pair of vectors."""
        return float(np.exp(q @ k)) if self._mean is None else float(self._mean(values, q, k))

    def kernel_variance(self, values: dict[str, Any], q: Any, k: Any) -> float:
        """The mean squared error of that estimate over draws."""
        assert self._variance is not None
        return float(self._variance(values, q, k))

    def attend(self, instance: Any) -> Callable[..., Any]:
        """The function that attends for an instance, on arrays of one head."""
        function = self._of_arrays(instance)
        return self._of_one_head(function) if self.batched else function

    def counted(self, attend: Callable[..., Any], *given: Any) -> tuple[Any, ...]:
        """One call of what `attend` gave: its output, its FLOPs (least and most) and its exponentials."""
        from attnbench import counting

        if reason := getattr(self.cls, "no_work", None):
            raise Skip(f"it says why not: {reason}")
        by_torch = self.tensors or getattr(self.cls, "backend", None) == "torch"
        return (counting.counted_in_torch if by_torch else counting.counted_in_numpy)(attend, *given)

    def attend_all(self, draws: list[tuple[Any, ...]], kv_heads: int) -> AllHeads:
        """The instance that attends for the draws of several heads at once, on arrays [heads, n, d]."""
        instance = self._make_all(draws, kv_heads)
        return AllHeads(self._of_arrays(instance), len(draws), instance, self._all_transcribed(instance, draws))

    def _all_transcribed(self, instance: Any, draws: list[tuple[Any, ...]]) -> Callable[..., Any] | None:
        if not (self.transcribes and self.mixes_heads):
            return None
        function = self._transcription_of(instance, draws[0][0])
        return lambda *given: _with_heads(function(*given), len(draws), "transcription")

    def _of_arrays(self, instance: Any) -> Callable[..., Any]:
        if not self.tensors:
            function = instance.attend

            def attend(*given: Any) -> Any:
                out = function(*given)
                return _of_rows(out) if isinstance(out, (tuple, list)) else out

            return attend
        from attnbench import tensors

        return tensors.attend(instance.attend)

    @staticmethod
    def _of_one_head(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            return _with_heads(function(*(x if isinstance(x, bool) else x[None] for x in given)), 1)[0]

        return called

    def decoder(self, instance: Any, shape: tuple[Any, ...]) -> Any:
        """The object that decodes for an instance."""
        made = instance.decoder(Shape(*shape))
        for name in ("step(self, q, k, v)", "bytes(self)"):
            if not callable(getattr(made, name.partition("(")[0], None)):
                raise TypeError(f"decoder(shape) returned a {type(made).__name__} without {name}")
        return made

    def gradients(self, instance: Any, q: Any, k: Any, v: Any, causal: bool, g: Any, *needed: Any) -> tuple[Any, ...]:
        """Gradients of <g, attend> with respect to q, k and v."""
        if not self._gives_gradients:
            from attnbench import tensors

            function = self._of_one_head(instance.attend) if self.batched else instance.attend
            return tensors.gradients(function, q, k, v, ((causal,) if self.takes_causal else ()) + needed, g)
        said = instance.gradients(q, k, v, causal, g, *needed)
        if not isinstance(said, tuple) or len(said) != 3:
            raise TypeError(f"{GRADIENTS} returned a {type(said).__name__}; expected three arrays (dq, dk, dv)")
        return said

    def state(self, instance: Any) -> dict[str, Any]:
        """The numbers that an instance has drawn or fitted, as 2-D arrays of float64."""
        function = getattr(instance, "state", None)
        if not callable(function) or inspect.isclass(instance):
            return {}
        said = function()
        if not isinstance(said, Mapping):
            raise TypeError(f"state() returned a {type(said).__name__}; expected a dict of 2-D arrays")
        arrays = {}
        for name, value in said.items():
            array = np.asarray(value, dtype=np.float64)
            if self.batched:
                if array.ndim != 3 or len(array) != 1:
                    raise TypeError(f"state()['{name}'] has the shape {array.shape}; expected [heads, rows, columns]")
                array = array[0]
            if array.ndim > 2:
                raise TypeError(f"state()['{name}'] has {array.ndim} axes; expected 2")
            arrays[str(name)] = np.atleast_2d(array)
        return arrays
