"""Classes with backend = "torch" for torch_backend_test.py: right ones, and each mistake that a result can have."""

import os

import attnbench
import numpy as np
import torch
from attnbench import torch_backend


class Relu:
    """Attention by ReLU, divided by the number of keys."""

    backend = "torch"
    claims = {"non_negative": True, "permutation_equivariant": True}

    def attend(self, q, k, v, causal):
        weights = torch.relu(q @ k.mT) / k.shape[1]
        return (weights.tril() if causal else weights) @ v

    def transcription(self, q, k, v, causal):
        out = np.zeros((len(q), v.shape[1]))
        for i in range(len(q)):
            for j in range(i + 1 if causal else len(k)):
                out[i] += max(0, q[i] @ k[j]) / len(k) * v[j]
        return out


class ByHand(Relu):
    """With gradients of its own."""

    def gradients(self, q, k, v, causal, g):
        logits = q @ k.mT
        weights = torch.relu(logits) / k.shape[1]
        dlogits = (g @ v.mT) * (logits > 0) / k.shape[1]
        if causal:
            weights, dlogits = weights.tril(), dlogits.tril()
        return dlogits @ k, dlogits.mT @ q, weights.mT @ g


class ForwardOnly(Relu):
    """A kernel that autograd does not see."""

    gradients = None

    def attend(self, q, k, v, causal):
        return super().attend(q, k, v, causal).detach()


class WrongFormula(Relu):
    def attend(self, q, k, v, causal):
        return super().attend(q, k, v, causal) * 1.01


class WrongInHalf(Relu):
    """Right in float32 and float64."""

    def attend(self, q, k, v, causal):
        out = super().attend(q, k, v, causal)
        return out * 1.1 if q.dtype in (torch.float16, torch.bfloat16) else out


class LeaksInHalf(Relu):
    """In bfloat16 a row sees the next key."""

    def attend(self, q, k, v, causal):
        if not causal or q.dtype != torch.bfloat16:
            return super().attend(q, k, v, causal)
        return (torch.relu(q @ k.mT) / k.shape[1]).tril(1) @ v


class Sums:
    """Linear attention that is not normalised, with a state of random features, a kernel, a decoder and gates."""

    backend = "torch"
    claims = {"normaliser": "none"}
    needs = {"gate": ("n", 1, "uniform")}

    def __init__(self, m=6, *, shape, seeds, state, device, dtype):
        assert str(dtype) == f"torch.{shape.dtype}" and device == torch.device("cpu")
        if state is not None:
            self.W = state["W"]
            return
        drawn = [torch.randn(m, shape.d, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
        self.W = torch.stack(drawn).to(device, dtype)

    def attend(self, q, k, v, causal, gate):
        assert all(x.is_contiguous() and x.ndim == 3 and x.dtype == self.W.dtype for x in (q, k, v, gate))
        weights = self.kernel(q, k, gate)
        return (weights.tril() if causal else weights) @ v

    def kernel(self, q, k, gate):
        return (q @ self.W.mT) @ (k @ self.W.mT).mT * gate.mT

    def state(self):
        return {"W": self.W}

    def decoder(self, shape):
        return Sum(self.W, shape)


class Sum:
    """The state of Sums: sum_j gate_j phi(k_j) v_j^T."""

    def __init__(self, W, shape):
        self.W = W
        self.S = W.new_zeros(1, W.shape[1], shape.dv)

    def prefill(self, q, k, v, gate):
        self.S = self.S + (gate * (k @ self.W.mT)).mT @ v

    def step(self, q, k, v, gate):
        assert q.shape[:2] == (1, 1)
        self.prefill(q, k, v, gate)
        return (q @ self.W.mT) @ self.S

    def bytes(self):
        return self.S.nbytes


class Heads(Relu):
    """Says how many heads a call has, unless it is one."""

    def attend(self, q, k, v, causal):
        if len(q) > 1:
            raise attnbench.Skip(f"{len(q)} heads in one call")
        return super().attend(q, k, v, causal)


class NotContiguous(Relu):
    """A result that is not contiguous."""

    def attend(self, q, k, v, causal):
        return super().attend(q, k, v, causal).mT.contiguous().mT


class Result(Relu):
    """One mistake of a result."""

    def __init__(self, mistake="array"):
        self.mistake = mistake

    def attend(self, q, k, v, causal):
        out = super().attend(q, k, v, causal)
        if self.mistake == "array":
            return out.numpy()
        if self.mistake == "device":
            return out.to("meta")
        if self.mistake == "shape":
            return out[0]
        if self.mistake == "dtype":
            return out.double()
        if self.mistake == "gradient":
            return out.requires_grad_()
        if self.mistake == "memory":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB.")
        raise RuntimeError("unknown mistake")


class Lost(Relu):
    """As after an error of a device: the process that it happened in is of no use any more."""

    spent = False

    def __init__(self, fails=True):
        self.fails = fails

    def attend(self, q, k, v, causal):
        if Lost.spent:
            raise RuntimeError("a process measures after its device was lost")
        if self.fails:
            Lost.spent = True
            torch_backend._failed(
                torch.AcceleratorError("CUDA error: an illegal memory access was encountered"),
                torch_backend.Place(torch.device("cuda"), torch.float32, False),
            )
        return super().attend(q, k, v, causal)


class Kept(Relu):
    """Keeps the tensor that it was given."""

    def attend(self, q, k, v, causal):
        self.kept = k
        return super().attend(q, k, v, causal)


if os.environ.get("TENSOR_CLASSES_PRETEND_CUDA"):  # the processor in the part of a device

    def _pretended(device, dtype, precision, compile):
        return torch_backend.Place(
            torch.device("cpu"), getattr(torch, precision if dtype == "precision" else dtype), compile
        )

    torch_backend.place_of = _pretended
    torch_backend.missing_device = lambda device: ""  # type: ignore[assignment]
    torch_backend.Placed.seconds_on_device = property(lambda self: self._seconds_on_device)  # type: ignore[assignment]
    torch_backend.Watch.seconds = lambda self: 0.0025  # type: ignore[method-assign]
    torch_backend.Place.peak_since = lambda self, before: 4096.0  # type: ignore[method-assign]
    torch_backend.rates_of = lambda place: (1e15, 2e15, 3e15)  # type: ignore[assignment]
