import torch
from torch import nn


class LinearAttention(nn.Module):
    """Somebody's module, as it is: q, k, v are [batch, heads, n, d]."""

    def __init__(self):
        super().__init__()
        self.map = nn.ELU()

    def forward(self, q, k, v, is_causal=False):
        q, k = self.map(q) + 1, self.map(k) + 1
        if is_causal:
            sums, norms = (k[..., None] * v[..., None, :]).cumsum(-3), k.cumsum(-2)
            return torch.einsum("bhnd,bhnde->bhne", q, sums) / (q * norms).sum(-1, keepdim=True)
        return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


class TorchLinear:
    """Linear attention with elu(x) + 1, by a PyTorch module."""

    tensors = True

    def __init__(self):
        self.module = LinearAttention().eval()

    def attend(self, q, k, v, causal):
        return self.module(q[None, None], k[None, None], v[None, None], is_causal=causal)[0, 0]
