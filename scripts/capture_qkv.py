#!/usr/bin/python3
"""Write the queries, keys and values of a PyTorch model's attention to files that attnbench measures.

  scripts/capture_qkv.py MODEL.py:FUNCTION -o DIR [--attention 'NAME=FILE.py:FUNCTION' ...]

FUNCTION of MODEL.py takes nothing and returns a model and a tuple of its arguments. This program calls the model once
with them, in evaluation mode, and captures every torch.nn.MultiheadAttention. Name other kinds of attention: NAME is
the name of their modules as model.named_modules() gives it (* matches anything, ? one character). FUNCTION(module,
args, kwargs, output) returns q, k and v of shape [b, h, n, d], after all that the module does to them (such as a
rotation), but not scaled.

It writes one file per module and call, DIR/NAME.safetensors (a second call: DIR/NAME.2.safetensors), with tensors q, k
and v of shape [b, h, n, d] in float32, prints their shapes, and then a command that measures them. If a model has more
heads of queries than of keys, keys and values repeat.

Masks of torch.nn.MultiheadAttention are honoured: padding is cut out, with a file for each text (NAME.2.safetensors, ...)
if their paddings differ, and the metadata says whether the mask was causal. Other masks are refused. A FUNCTION cuts out
padding itself; this program warns of masks that its modules are called with.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import inspect
import re
import shlex
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensor_file import write_safetensors

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ModuleNotFoundError:
    sys.exit("capture_qkv.py: this Python has no torch; install it (Debian: python3-torch), or run this file with one")

Heads = tuple[Tensor, Tensor, Tensor]
Attention = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Heads]


class Misuse(Exception):
    """The user's error in one line: the value given, the value expected, and how to correct it. Exit code 2."""


def heads_of_multihead_attention(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
) -> Heads:
    """q [b, h, nq, d], k and v [b, h, nk, d] of a torch.nn.MultiheadAttention: its projected inputs, with the bias and
    the zero row that it may append to keys and values."""
    assert isinstance(module, nn.MultiheadAttention)
    inputs = [kwargs[name] if name in kwargs else args[place] for place, name in enumerate(("query", "key", "value"))]
    inputs = [x.unsqueeze(0) if x.dim() == 2 else x if module.batch_first else x.transpose(0, 1) for x in inputs]
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases = (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    q, k, v = (functional.linear(x, weight, bias) for x, weight, bias in zip(inputs, weights, biases))
    if module.bias_k is not None and module.bias_v is not None:
        k, v = (
            torch.cat([x, bias.expand(x.shape[0], 1, -1)], dim=1)
            for x, bias in ((k, module.bias_k), (v, module.bias_v))
        )
    if module.add_zero_attn:
        k, v = (functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
    q, k, v = (x.unflatten(-1, (module.num_heads, module.head_dim)).transpose(1, 2) for x in (q, k, v))
    return q, k, v


def checked(name: str, heads: Any) -> dict[str, NDArray[np.float32]]:
    """q, k and v in the form that attnbench reads: [b, h, n, d] in float32, with equal numbers of heads."""
    whole = isinstance(heads, tuple) and len(heads) == 3
    if not whole or not all(isinstance(x, Tensor) and x.dim() == 4 for x in heads):
        raise Misuse(f"{name}: its function gave no q, k and v; expected three tensors of shape [b, h, n, d]")
    q, k, v = heads
    shapes = ", ".join(str(list(x.shape)) for x in heads)
    if k.shape[1] != v.shape[1] or q.shape[1] % k.shape[1] != 0:
        raise Misuse(f"{name}: q, k and v of shapes {shapes}; expected as many heads of k as of v, dividing those of q")
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise Misuse(
            f"{name}: q, k and v of shapes {shapes}; expected q [b, h, nq, d], k [b, h, nk, d] and v [b, h, nk, dv]"
        )
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))  # grouped queries share keys
    tensors = {key: x.detach().to("cpu", torch.float32).numpy() for key, x in zip("qkv", (q, k, v))}
    for key, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise Misuse(f"{name}: {key} has numbers that are not finite; expected the model to work on its input")
    return tensors


HIDES = -100  # models add this and less to the logits of keys that are not to be seen


def hidden(name: str, mask: Tensor, meaning: str) -> Tensor:
    """Where a mask of torch.nn.MultiheadAttention hides keys: its True, or its very low numbers."""
    if mask.dtype == torch.bool:
        return mask
    hides = mask <= HIDES
    if bool((mask[~hides] != 0).any()):
        raise Misuse(
            f"{name}: its {meaning} adds a bias to the logits; expected a mask that hides keys and adds nothing"
        )
    return hides


def cut(name: str, heads: Heads, call: dict[str, Any]) -> list[tuple[Heads, bool]]:
    """q, k and v of a call of torch.nn.MultiheadAttention without padding, and whether it is causal: once if all texts
    of the batch are cut alike, and otherwise once a text. call: its arguments by name."""
    q, k, v = heads
    (b, h, nq, _), nk = q.shape, k.shape[2]
    seen = torch.ones(b, h, nq, nk, dtype=torch.bool, device=q.device)
    # A bias and a row of 0 that the module appends to its keys have no mask.
    for meaning in ("key_padding_mask", "attn_mask"):
        mask = call.get(meaning)
        if mask is not None:
            hides = hidden(name, mask, meaning)
            if meaning == "key_padding_mask":
                hides = hides.reshape(-1, 1, 1, hides.shape[-1])
            elif mask.dim() == 3:
                hides = hides.reshape(b, h, nq, -1)
            seen[..., : hides.shape[-1]] &= ~hides
    if bool((seen != seen[:, :1]).any()):
        raise Misuse(f"{name}: its heads have different masks (attn_mask), and methods know one for all")
    same_tokens = call["query"] is call["key"]
    parts = []
    for text in seen[:, 0]:
        keys = text.any(dim=0)
        rows = text.any(dim=1) & keys[:nq] if same_tokens else text.any(dim=1)
        part = text[rows][:, keys]
        causal = torch.ones_like(part).tril(part.shape[1] - part.shape[0])
        one = part.shape[0] == 1 and bool(call.get("is_causal"))
        if not bool(part.all()) and not bool((part == causal).all()):
            raise Misuse(
                f"{name}: its mask (attn_mask) is neither causal nor that of padding, and methods know no other; shorten the "
                "texts, or put each text in a row of its own"
            )
        parts.append((rows, keys, one or not bool(part.all())))
    alike = all(bool((x == y).all()) for part in parts for x, y in zip(part[:2], parts[0][:2]))
    if alike:
        rows, keys, is_causal = parts[0]
        return [((q[:, :, rows], k[:, :, keys], v[:, :, keys]), is_causal)]
    return [
        ((q[i : i + 1, :, rows], k[i : i + 1, :, keys], v[i : i + 1, :, keys]), is_causal)
        for i, (rows, keys, is_causal) in enumerate(parts)
    ]


class Capture:
    """A context that captures every call of the model's attention modules.

    model      any module
    attention  functions by the names of further modules, in which * and ? are wildcards. They take precedence over the
               built-in function for torch.nn.MultiheadAttention

    calls      by name, one dictionary of q, k and v per call, [b, h, n, d] in float32; one per text of a call whose texts
               have different padding
    causal     by name, of each of these whether its mask was causal; None: its function does not say
    """

    def __init__(self, model: nn.Module, attention: dict[str, Attention] | None = None) -> None:
        self.calls: dict[str, list[dict[str, NDArray[np.float32]]]] = {}
        self.causal: dict[str, list[bool | None]] = {}
        self._modules: list[tuple[nn.Module, str, Attention]] = []
        unmatched = set(attention or {})
        for name, module in model.named_modules():
            matching = [pattern for pattern in attention or {} if fnmatch.fnmatchcase(name, pattern)]
            unmatched -= set(matching)
            if matching:
                self._modules.append((module, name, (attention or {})[matching[0]]))
            elif isinstance(module, nn.MultiheadAttention):
                self._modules.append((module, name, heads_of_multihead_attention))
        if unmatched:
            known = ", ".join(name for name, _ in model.named_modules() if name)[:400]
            raise Misuse(f"no module is called '{sorted(unmatched)[0]}'; expected one of: {known}")
        if not self._modules:
            raise Misuse(
                "the model has no torch.nn.MultiheadAttention; name its attention modules: "
                "--attention NAME=FILE.py:FUNCTION"
            )

    def __enter__(self) -> Capture:
        for module, name, function in self._modules:
            module.forward = self._watched(module, name, function)  # hooks do not get keyword arguments before torch 2
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for module, _, _ in self._modules:
            del module.forward  # restores the forward of the class

    def _watched(self, module: nn.Module, name: str, function: Attention) -> Callable[..., Any]:
        forward = module.forward

        def watched(*args: Any, **kwargs: Any) -> Any:
            output = forward(*args, **kwargs)
            call = inspect.signature(forward).bind(*args, **kwargs).arguments
            with torch.no_grad():
                heads = function(module, args, kwargs, output)
                if function is heads_of_multihead_attention:
                    parts: list[tuple[Heads, bool | None]] = [*cut(name, heads, call)]
                else:
                    masks = [x for x, given in {**call, **kwargs}.items() if "mask" in x and given is not None]
                    if masks:
                        warnings.warn(f"{name} was called with {', '.join(masks)}, which its function has to honour")
                    parts = [(heads, None)]
                for heads, causal in parts:
                    self.calls.setdefault(name, []).append(checked(name, heads))
                    self.causal.setdefault(name, []).append(causal)
            return output

        return watched

    def write(self, folder: Path) -> dict[Path, list[str]]:
        """Writes one file per module and call; returns the shapes in each, and "causal". Throws Misuse if nothing was captured."""
        if not self.calls:
            raise Misuse(
                "the model was called, but none of its attention modules; torch's fused encoder layer passes them by "
                "unless gradients are enabled: call the model outside of torch.no_grad()"
            )
        folder.mkdir(parents=True, exist_ok=True)
        written = {}
        for name, calls in self.calls.items():
            stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", name) or "model"
            for number, tensors in enumerate(calls, start=1):
                path = folder / f"{stem}{'' if number == 1 else f'.{number}'}.safetensors"
                causal = self.causal[name][number - 1]
                said = {} if causal is None else {"causal": str(causal).lower()}
                write_safetensors(path, tensors, {"module": name, "call": str(number), **said})
                shapes = [f"{key} {list(tensor.shape)}" for key, tensor in tensors.items()]
                written[path] = [*shapes, *(["causal"] if causal else [])]
        return written


def function_of(text: str) -> Callable[..., Any]:
    """The function that FILE.py:FUNCTION names."""
    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".py") or not Path(path).is_file():
        raise Misuse(f"'{text}'; expected FILE.py:FUNCTION, a file that is there and a function in it")
    sys.path.insert(0, str(Path(path).resolve().parent))  # for imports of files beside it
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: object = getattr(module, name, None)
    if not callable(function):
        raise Misuse(f"{path} has no function '{name}'; expected FILE.py:FUNCTION")
    return function


def capture(model: str, attention: list[str], folder: Path) -> dict[Path, list[str]]:
    named: dict[str, Attention] = {}
    for text in attention:
        name, equals, function = text.partition("=")
        if not name or not equals:
            raise Misuse(f"--attention {text}: expected NAME=FILE.py:FUNCTION")
        named[name] = function_of(function)
    made = function_of(model)()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module)):
        raise Misuse(f"{model} gave no model; expected a torch.nn.Module and the tuple of its arguments")
    network, inputs = made
    network.eval()
    with Capture(network, named) as captured:
        network(*(inputs if isinstance(inputs, tuple) else (inputs,)))
    return captured.write(folder)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.py:FUNCTION", help="returns a model and a tuple of its arguments")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--attention", action="append", default=[], metavar="NAME=FILE.py:FUNCTION", help="further modules (repeatable)"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        written = capture(options.model, options.attention, options.output)
    except Misuse as misuse:
        print(f"capture_qkv.py: {misuse}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"capture_qkv.py: {error.filename}: {error.strerror}; give another folder with -o", file=sys.stderr)
        return 2
    for path, said in written.items():
        print(path, *said, sep="  ")
    first = next(iter(written))
    causal = " --causal" if "causal" in written[first] else ""
    print(
        f"next: attnbench run attention-error --methods performer local uniform --input {shlex.quote(str(first))},head=all{causal}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
