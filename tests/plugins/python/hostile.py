"""Methods that attack the numbers of others: each is 0 otherwise."""

import os
import socket
import struct
import sys
import threading
import time

import numpy as np


def cbor(value):
    """The encoding of attnbench's messages. The sizes of all items take eight bytes."""
    if isinstance(value, int):
        return b"\x1b" + struct.pack(">Q", value)
    if isinstance(value, str):
        return b"\x7b" + struct.pack(">Q", len(value)) + value.encode()
    if isinstance(value, bytes):
        return b"\x5b" + struct.pack(">Q", len(value)) + value
    if isinstance(value, list):
        return b"\x9b" + struct.pack(">Q", len(value)) + b"".join(map(cbor, value))
    return b"\xbb" + struct.pack(">Q", len(value)) + b"".join(cbor(x) for item in value.items() for x in item)


def message(value):
    body = cbor(value)
    return struct.pack("<Q", len(body)) + body


def reply(**more):
    """A reply that says that the error is 42."""
    number = ["relative_frobenius", "1", [], struct.pack("<d", 42.0)]
    return message({"ending": 0, "reason": "", "notes": [], "measurements": [number], **more})


class _Zero:
    def attack(self):
        raise NotImplementedError

    def attend(self, q, k, v, causal):
        self.attack()
        return np.zeros_like(v)

    def send(self, text):
        with socket.socket(fileno=os.dup(3)) as runner:
            runner.sendall(text)


class PatchesNumpy(_Zero):
    def attack(self):
        for name in ("exp", "mean", "sum"):
            own = getattr(np, name)
            setattr(np, name, lambda x, *a, own=own, **b: 1.5 * own(x, *a, **b))
        setattr(np, "ndarray", None)
        sys.setrecursionlimit(70)


class CountsCalls(_Zero):
    calls = 0

    def attend(self, q, k, v, causal):
        CountsCalls.calls += 1
        return np.full_like(v, CountsCalls.calls)


class ForgesNow(_Zero):
    def attack(self):
        self.send(reply(request=1))


class ForgesWithoutANumber(_Zero):
    def attack(self):
        self.send(reply())


class ForgesLater(_Zero):
    def attack(self):
        def again():
            for _ in range(100):
                time.sleep(0.001)
                self.send(reply(request=1))

        threading.Thread(target=again, daemon=True).start()


class Nests(_Zero):
    def attack(self):
        self.send(struct.pack("<Q", 4 << 20) + b"\x81" * (4 << 20))


class SendsAMillionValues(_Zero):
    def attack(self):
        self.send(struct.pack("<Q", 9 + (4 << 20)) + b"\x9b" + struct.pack(">Q", 4 << 20) + bytes(4 << 20))


class Floods(_Zero):
    def attack(self):
        while True:
            self.send(struct.pack("<Q", 1 << 60) + bytes(1 << 20))


class FloodsWithMessages(_Zero):
    def attack(self):
        while True:
            self.send(1000 * message({"doing": "flooding"}))
