"""The process that runs methods in Python: `python -m attnbench.worker`, which attnbench starts."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

# Before NumPy and PyTorch are imported: methods in Python run on one thread, so that what they give does not depend on
# how many there are, and cells run side by side.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

from attnbench import _native  # noqa: E402
from attnbench.loading import load_in_worker, share_symbols  # noqa: E402


def _spoilt() -> bool:
    """Whether this process can measure no more: a device has failed in it, or a method has left a thread behind."""
    torch_backend = sys.modules.get("attnbench.torch_backend")
    return _others_run() or (torch_backend is not None and torch_backend.lost_device())


def _others_run() -> bool:
    """Whether a method has left a thread behind. Those of C++ that passed through Python do not count."""
    return any(
        t is not threading.current_thread() and not isinstance(t, threading._DummyThread) for t in threading.enumerate()
    )


def main() -> None:
    os.environ["ATTNBENCH_WORKER"] = "1"
    sys.stdout = sys.stderr  # methods may print, but stdout is for results
    # The program's own handlers; the interpreter's would run only when Python code runs again.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # torch.from_numpy warns of read-only arrays, but these are meant to be read-only.
    warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
    _native.set_loader(load_in_worker)
    _native.set_spoilt(_spoilt)
    if any(file.endswith(".so") for file in _native.plugins()):
        share_symbols()
    code = _native.run(["attnbench", "worker", *sys.argv[1:]])
    sys.stderr.flush()
    os._exit(code)  # neither threads that were left behind nor destructors are waited for


if __name__ == "__main__":
    main()
