"""Methods in PyTorch: tensors [heads, n, d] on a device and in a dtype, from arrays and back.

Moving q, k and v to the device and the result back is conversion, like making arrays: it is timed apart from the call.
Around the call the device is waited for, so that the call's time is its own, and so is an error of it. The time is that of
the device's own events, where it has them.
"""

from __future__ import annotations

import warnings
from functools import cache
from time import perf_counter
from typing import Any, Callable, NamedTuple, NoReturn, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from attnbench import _native
from attnbench.failures import Skip
from attnbench.method import Shape

Array = NDArray[Any]

# Arrays are read-only, as they should be, and torch warns of that.
warnings.filterwarnings("ignore", message="The given NumPy array is not writ")

# Of torch 2.8 and later; the earlier ones say it in words.
DEVICE_ERRORS: tuple[type[Exception], ...] = tuple(
    getattr(torch, name) for name in ("AcceleratorError",) if hasattr(torch, name)
)
_lost: list[str] = []  # what a device said that broke this process's use of it


class Place(NamedTuple):
    """Where and in which type a method computes."""

    device: torch.device
    dtype: torch.dtype
    compile: bool

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def tensor(self, array: Array) -> torch.Tensor:
        """Contiguous; the memory is the array's own where type and device agree."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, self.dtype)

    def stacked(self, arrays: Sequence[Array]) -> torch.Tensor:
        """Those of several heads, the heads first."""
        return self.tensor(np.stack(arrays))

    def exact(self, arrays: Sequence[Array]) -> torch.Tensor:
        """The same in float64: what a method learns from."""
        return torch.from_numpy(np.stack(arrays)).to(self.device)

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def reset_peak(self) -> int:
        """Bytes in use on the device."""
        if self.device.type != "cuda":
            return 0
        torch.cuda.reset_peak_memory_stats(self.device)
        return int(torch.cuda.memory_allocated(self.device))

    def peak_since(self, before: int) -> float | None:
        """Bytes that the device's allocator has given at most since then; None on the processor."""
        return float(torch.cuda.max_memory_allocated(self.device) - before) if self.device.type == "cuda" else None


class Watch:
    """The seconds of what a device does from here on, begun when it has done all that it was asked before."""

    def __init__(self, place: Place) -> None:
        self._place = place
        place.synchronise()
        self._begin = self._event() if place.device.type == "cuda" else None
        self._clock = perf_counter()

    def seconds(self) -> float:
        """Waits for the device."""
        if self._begin is None:
            return perf_counter() - self._clock
        end = self._event()
        self._place.synchronise()
        return float(self._begin.elapsed_time(end)) / 1000

    def _event(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._place.device))
        return event


@cache
def rates_of(place: Place) -> tuple[float, float, float]:
    """Of a device in a dtype: FLOP/s of a large product, exponentials a second, and bytes a second that a copy reads and
    writes. Each is the best of five, because a disturbance only slows one down.

    The memory is given back: with 9 methods in float64 and bfloat16 it was 99 of a GPU's 140 GB.
    """
    size = 4096 if place.device.type == "cuda" else 512
    a, b = (torch.randn(size, size, device=place.device).to(place.dtype) for _ in range(2))
    out = torch.empty_like(a)
    large = torch.empty(1 << (27 if place.device.type == "cuda" else 23), device=place.device, dtype=place.dtype)
    copy = torch.empty_like(large)

    def rate(amount: float, call: Callable[[], Any]) -> float:
        call()
        fastest = float("inf")
        for _ in range(5):
            watch = Watch(place)
            call()
            fastest = min(fastest, watch.seconds())
        return amount / fastest

    rates = (
        rate(2.0 * size**3, lambda: torch.mm(a, b, out=out)),
        rate(size**2, lambda: torch.exp(a, out=out)),
        rate(2.0 * large.nbytes, lambda: copy.copy_(large)),
    )
    if place.device.type == "cuda":
        del a, b, out, large, copy
        torch.cuda.empty_cache()
    return rates


def place_of(device: str, dtype: str, precision: str, compile: bool) -> Place:
    """The place that a spec's parameters name. precision: what dtype = precision means. Skips without the device."""
    if missing := missing_device(device):
        raise Skip(missing)
    return Place(torch.device(device), getattr(torch, precision if dtype == "precision" else dtype), compile)


@cache
def missing_device(device: str) -> str:
    """Why there is no such device here; empty if there is one. Asked once in a process."""
    if device == "cpu":
        return ""
    if not torch.cuda.is_available():
        return "no CUDA device"
    number = torch.device(device).index or 0
    count = torch.cuda.device_count()
    return "" if number < count else f"no CUDA device {number}: there are {count}, counted from 0"


def lost_device() -> bool:
    """Whether an error on a device has broken it for the rest of this process."""
    return bool(_lost)


def _failed(error: RuntimeError, place: Place) -> NoReturn:
    """Raises what an error of a call means."""
    if isinstance(error, torch.OutOfMemoryError):
        raise MemoryError(str(error)) from None
    if place.device.type == "cuda" and (isinstance(error, DEVICE_ERRORS) or "CUDA error" in str(error)):
        _lost.append(str(error))
    raise error


class Placed:
    """An instance of a class, on the arrays that the harness has: [heads, n, d], and [n, d] for one head."""

    def __init__(
        self, instance: Any, place: Place, takes_causal: bool, own_gradients: bool, differentiates: bool
    ) -> None:
        self._instance = instance
        self._place = place
        self._takes_causal = takes_causal
        self._own_gradients = own_gradients
        self._differentiates = differentiates
        self._attend: Callable[..., Any] = _compiled(instance.attend) if place.compile else instance.attend

    def attend(self, *given: Array | bool) -> Array:
        """attend of the instance: [heads, n, d] arrays to [heads, n, dv]."""
        q, _, v, *_ = given
        assert not isinstance(q, bool) and not isinstance(v, bool)
        return self._called(self._attend, "attend", (*q.shape[:2], v.shape[2]), given, True)

    @property
    def seconds_on_device(self) -> Callable[..., float] | None:
        """None on the processor, where the harness times attend."""
        return None if self._place.device.type == "cpu" else self._seconds_on_device

    def _seconds_on_device(self, calls: int, *given: Array | bool) -> float:
        """Of one of so many calls of attend, on tensors that are there already."""
        begin = perf_counter()
        with torch.no_grad():
            try:
                tensors = [x if isinstance(x, bool) else self._place.tensor(x) for x in given]
                (seconds,) = self._seconds_of(calls, begin, lambda: self._attend(*tensors))
            except RuntimeError as error:
                _failed(error, self._place)
        return seconds

    def _seconds_of(self, calls: int, begin: float, *parts: Callable[[], Any]) -> list[float]:
        """Of each part of one of so many calls. The time since `begin` was conversion. One call more comes first and is
        not timed: a device has rested while tensors moved, and its clock has fallen.
        """
        self._place.synchronise()
        _native.add_conversion(perf_counter() - begin)
        seconds = [0.0 for _ in parts]
        for call in range(calls + 1):
            for number, part in enumerate(parts):
                watch = Watch(self._place)
                part()
                seconds[number] += watch.seconds() if call else 0.0
        return [one / calls for one in seconds]

    @property
    def training_step(self) -> Callable[..., tuple[float, float]] | None:
        """None where there is no backward pass."""
        return self._training_step if self._differentiates else None

    def _training_step(
        self, calls: int, q: Array, k: Array, v: Array, causal: bool, g: Array, *needed: Array
    ) -> tuple[float, float]:
        """Seconds of the forward and of the backward pass of one of so many steps, on tensors that are there already."""
        begin = perf_counter()
        place = self._place
        flags = (causal,) if self._takes_causal else ()
        try:
            tensors = [place.tensor(x).clone().requires_grad_(not self._own_gradients) for x in (q, k, v)]
            weights, further = place.tensor(g), [place.tensor(x) for x in needed]
            before = place.reset_peak()
            out: list[torch.Tensor] = []

            def forward() -> None:
                with torch.set_grad_enabled(not self._own_gradients):
                    out[:] = [self._attend(*tensors, *flags, *further)]

            def backward() -> None:
                if self._own_gradients:
                    self._instance.gradients(*tensors, causal, weights, *further)
                else:
                    torch.autograd.grad(out[0], tensors, weights, allow_unused=True)

            passes = self._seconds_of(calls, begin, forward, backward)
            self._tell(place.peak_since(before), [*tensors, *flags, *further])
        except RuntimeError as error:
            _failed(error, place)
        return passes[0], passes[1]

    def kernel(self, *given: Array) -> Array:
        """kernel of the instance, for one head: [nq, d] and [nk, d] to [nq, nk]."""
        weights: Array = self._called(
            self._instance.kernel, "kernel", (1, len(given[0]), len(given[1])), _one_head(given), False
        )[0]
        return weights

    def gradients(self, q: Array, k: Array, v: Array, causal: bool, g: Array, *needed: Array) -> tuple[Array, ...]:
        """Gradients of <g, attend(q, k, v)> for one head, by the instance's own function or by autograd."""
        begin = perf_counter()
        place = self._place
        flags = (causal,) if self._takes_causal else ()
        try:
            tensors = [place.tensor(x[None]).clone().requires_grad_(not self._own_gradients) for x in (q, k, v)]
            weights, further = place.tensor(g[None]), [place.tensor(x[None]) for x in needed]
            watch = Watch(place)
            if self._own_gradients:
                found = self._instance.gradients(*tensors, causal, weights, *further)
            else:
                found = self._by_autograd(tensors, weights, (*flags, *further))
            seconds = watch.seconds()
        except RuntimeError as error:
            _failed(error, place)
        if not isinstance(found, tuple) or len(found) != 3:
            raise TypeError(f"gradients returned a {type(found).__name__}; expected three tensors (dq, dk, dv)")
        names = ("dq of gradients", "dk of gradients", "dv of gradients")
        arrays = tuple(_array(_checked(dx, x, name, tuple(x.shape)))[0] for dx, x, name in zip(found, tensors, names))
        _native.add_conversion(perf_counter() - begin - seconds)
        return arrays

    def decoder(self, shape: Shape) -> PlacedDecoder:
        """The object that decodes one head."""
        return PlacedDecoder(
            self._instance.decoder(shape._replace(dtype=self._place.dtype_name)), self._called, shape.dv
        )

    def state(self) -> dict[str, Array]:
        """The numbers that the instance drew and learnt, by name: arrays [heads, rows, columns] in float64."""
        function = getattr(self._instance, "state", None)
        said = function() if callable(function) else {}
        return {
            name: (x.detach().to("cpu", torch.float64).numpy() if isinstance(x, torch.Tensor) else x)
            for name, x in said.items()
        }

    def transcription(self, *given: Any, **further: Any) -> Any:
        """The class's second path, on arrays as they are."""
        return self._instance.transcription(*given, **further)

    def _by_autograd(self, tensors: list[torch.Tensor], weights: torch.Tensor, further: tuple[Any, ...]) -> Any:
        with torch.enable_grad():
            out = _checked(self._attend(*tensors, *further), tensors[0], "attend", tuple(weights.shape), may_carry=True)
        if not out.requires_grad:
            raise TypeError(
                "attend gave a tensor without a graph, so autograd has no gradients; remove no_grad and detach"
            )
        found = torch.autograd.grad(out, tensors, weights, allow_unused=True)
        return tuple(torch.zeros_like(x) if dx is None else dx for x, dx in zip(tensors, found))

    def _called(
        self,
        function: Callable[..., Any],
        what: str,
        shape: tuple[int, ...],
        given: Sequence[Array | bool],
        tells: bool,
    ) -> Array:
        """The result of a function on tensors, as an array. tells: its memory and its backend are to be known."""
        begin = perf_counter()
        place = self._place
        with torch.no_grad():
            try:
                tensors = [x if isinstance(x, bool) else place.tensor(x) for x in given]
                before = place.reset_peak() if tells else 0
                watch = Watch(place)
                out = function(*tensors)
                seconds = watch.seconds()
                result = _array(_checked(out, tensors[0], what, shape))
            except RuntimeError as error:
                _failed(error, place)
            if tells:
                self._tell(place.peak_since(before), tensors)
        _native.add_conversion(perf_counter() - begin - seconds)
        return result

    def _tell(self, peak: float | None, tensors: list[Any]) -> None:
        chosen = getattr(self._instance, "backend_of", None)
        rates = None if peak is None else rates_of(self._place)
        if peak is not None or chosen is not None:
            _native.tell_device(peak, chosen(*tensors) if chosen else "", rates)


class PlacedDecoder:
    """The decoder of an instance, on arrays of one head: a token's q and k [1, d], and v [1, dv]."""

    def __init__(self, inner: Any, called: Callable[..., Array], dv: int) -> None:
        for name in ("step(self, q, k, v)", "bytes(self)"):
            if not callable(getattr(inner, name.partition("(")[0], None)):
                raise TypeError(f"decoder(shape) returned a {type(inner).__name__} without {name}")
        self._inner, self._called, self._dv = inner, called, dv
        if hasattr(inner, "prefill"):
            self.prefill = self._prefill  # without one, the harness takes a prompt in by steps

    def step(self, *given: Array) -> Array:
        """Takes in a token and gives its row [1, dv]."""
        row: Array = self._called(self._inner.step, "step", (1, 1, self._dv), _one_head(given), False)[0]
        return row

    def bytes(self) -> int:
        """The tensors that it keeps from one step to the next."""
        return int(self._inner.bytes())

    def _prefill(self, *given: Array) -> None:
        def function(*tensors: torch.Tensor) -> torch.Tensor:
            self._inner.prefill(*tensors)
            return tensors[2]

        self._called(function, "prefill", (1, *given[2].shape), _one_head(given), False)


def _one_head(given: Sequence[Array]) -> list[Array]:
    return [x[None] for x in given]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """By torch.compile. A function that is compiled too often is an error: torch would go on without compiling it."""
    import torch._dynamo

    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._dynamo.config.recompile_limit = 256
    torch._dynamo.config.accumulated_recompile_limit = 100_000
    compiled: Callable[..., Any] = torch.compile(function)
    return compiled


def _checked(out: Any, query: torch.Tensor, what: str, shape: tuple[int, ...], may_carry: bool = False) -> torch.Tensor:
    """The result of a function of a class, if it is a tensor like q, of that shape. It need not be contiguous."""
    if not isinstance(out, torch.Tensor):
        raise TypeError(f'{what} returned a {type(out).__name__}; expected a torch tensor, because backend = "torch"')
    if out.device != query.device:
        raise TypeError(
            f"{what} returned a tensor on {out.device}; expected one on {query.device}, where q, k and v are: make what you "
            "create with device=q.device"
        )
    if tuple(out.shape) != shape:
        raise TypeError(f"{what} returned a tensor of shape {list(out.shape)}; expected {list(shape)}, the heads first")
    if out.dtype != query.dtype:
        raise TypeError(
            f"{what} returned {out.dtype}; expected {query.dtype}, the dtype of q: make what you create with dtype=q.dtype"
        )
    if out.requires_grad and not may_carry:
        raise TypeError(
            f"{what} returned a tensor that carries gradients, though it was called under torch.no_grad(): remove "
            "enable_grad, or end with .detach()"
        )
    return out


def _array(out: torch.Tensor) -> Array:
    """In the memory of the processor; half precision as float32, which NumPy has."""
    wide = torch.float32 if out.dtype in (torch.float16, torch.bfloat16) else out.dtype
    array: Array = out.detach().to("cpu", wide).numpy()
    return array
