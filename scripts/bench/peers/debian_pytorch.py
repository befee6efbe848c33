#!/usr/bin/python3
"""pytorch.py in the interpreter of Debian, whose PyTorch is of 2022: what a package gives beside what pip gives."""

import os
from pathlib import Path

INTERPRETER = "/usr/bin/python3"

if __name__ == "__main__":
    os.execv(INTERPRETER, [INTERPRETER, str(Path(__file__).with_name("pytorch.py"))])
