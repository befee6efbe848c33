"""A class with `backend = "torch"` as a method: its functions take tensors of all heads, on a device, in a dtype."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from attnbench._native import Misuse
from attnbench.declaration import Declaration
from attnbench.entry import own
from attnbench.method import Calibration, Method, Parameter, Shape

if TYPE_CHECKING:
    from attnbench.torch_backend import Placed

BACKEND = "torch"
MOST_DEVICES = 16  # of one machine
PLACE = {
    "device": Parameter(
        "cpu", "where it computes", choices=("cpu", "cuda", *(f"cuda:{i}" for i in range(MOST_DEVICES)))
    ),
    "dtype": Parameter(
        "precision",
        "of its tensors; precision: float32 or float64, as --precision says",
        choices=("precision", "float32", "float16", "bfloat16"),
    ),
    "compile": Parameter(False, "attend by torch.compile"),
}
"""The parameters of every such class, beside its own."""


def computes_by_torch(cls: type) -> bool:
    """Whether a class says so. Raises Misuse for another backend."""
    backend = getattr(cls, "backend", None)
    if backend not in (None, BACKEND):
        raise Misuse(
            f'class {cls.__name__}: backend = {backend!r}; expected "torch", or no backend for a class on NumPy arrays'
        )
    return backend is not None


class TorchDeclaration(Declaration):
    """A class in PyTorch as a method of the registry. To the harness its instances look like those of NumPy classes."""

    constructor = (*Declaration.constructor, *PLACE)

    def __init__(self, cls: type[Any], file: str, module: str = "") -> None:
        if importlib.util.find_spec("torch") is None:
            raise Misuse(
                f'class {cls.__name__} has backend = "torch", and {sys.executable} has no torch: install it there, or name '
                "another interpreter with --python"
            )
        super().__init__(cls, file, module)
        for name, place in PLACE.items():
            parameter = Parameter(place.default, place.help, choices=tuple(place.choices))
            parameter.name = name
            self.parameters.append(parameter)

    def _takes_all_heads(self) -> bool:
        return True

    def _read_abilities(self) -> None:
        if not self.attends or self.maps:
            raise Misuse(
                f'{self.where} has backend = "torch" and features_q and features_k, which linear attention in C++ would run; '
                "give attend(self, q, k, v, causal), and kernel(self, q, k) for their weights"
            )
        super()._read_abilities()
        self.tensors = False  # its instances convert by themselves
        self.differentiates = getattr(self.cls, "gradients", True) is not None  # None: no backward pass

    def _read_cost_text(self) -> None:
        super()._read_cost_text()
        import torch

        self.cost_text += f", PyTorch {torch.__version__}"

    def _make_all(self, draws: list[tuple[Any, ...]], kv_heads: int) -> Placed:
        from attnbench import torch_backend

        values, given, _, _, _, layer, layers = draws[0]
        shape = Shape(*given)
        place = torch_backend.place_of(values["device"], values["dtype"], shape.dtype, values["compile"])
        seeds, calibrations, states = ([draw[item] for draw in draws] for item in (2, 3, 4))
        learnt = None
        if calibrations[0] is not None:
            learnt = Calibration(*(place.exact(arrays) for arrays in zip(*calibrations)))
        state = None
        if states[0] is not None:
            state = {name: place.stacked([one[name] for one in states]) for name in states[0]}
        instance = self._made(
            {name: value for name, value in values.items() if name not in PLACE},
            shape=shape._replace(dtype=place.dtype_name), seeds=seeds, calibration=learnt, state=state,
            layer=layer, layers=layers, kv_heads=kv_heads, device=place.device, dtype=place.dtype, compile=place.compile,
        )  # fmt: skip
        own_gradients = own(self.cls, Method, "gradients") is not None
        return torch_backend.Placed(instance, place, self.takes_causal, own_gradients, self.differentiates)

    def memory(self, values: dict[str, Any], shape: tuple[Any, ...]) -> float | None:
        """Bytes of one attend, in the type that it computes in."""
        given = Shape(*shape)
        dtype = given.dtype if values["dtype"] == "precision" else values["dtype"]
        return super().memory(values, given._replace(dtype=dtype))

    def claims(self, values: dict[str, Any], shape: tuple[Any, ...]) -> dict[str, Any]:
        """The claims of the class; without the device there is no form of any shape."""
        from attnbench import torch_backend

        missing = torch_backend.missing_device(values["device"])
        own_values = {name: value for name, value in values.items() if name not in PLACE}
        said = super().claims(own_values, shape)
        return {**said, "no_form": missing} if missing else said

    def gradients(self, instance: Any, q: Any, k: Any, v: Any, causal: bool, g: Any, *needed: Any) -> tuple[Any, ...]:
        """Gradients of <g, attend> with respect to q, k and v: the class's own, or autograd's."""
        said: tuple[Any, ...] = instance.gradients(q, k, v, causal, g, *needed)
        return said
