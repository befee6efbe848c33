"""Methods in PyTorch that come with attnbench, for comparison with yours on the same device: one file each.

They are there wherever a plugin with `backend = "torch"` is. With the same state they equal the C++ methods that they are
called after.
"""

from __future__ import annotations

from attnbench.torch_methods.linear import TorchLinear
from attnbench.torch_methods.local import TorchLocal
from attnbench.torch_methods.performer import TorchPerformer
from attnbench.torch_methods.quantised import TorchQuantised
from attnbench.torch_methods.quest import TorchQuest
from attnbench.torch_methods.sink_window import TorchSinkWindow
from attnbench.torch_methods.softmax import TorchSoftmax

METHODS = (TorchSoftmax, TorchLinear, TorchPerformer, TorchLocal, TorchSinkWindow, TorchQuest, TorchQuantised)
