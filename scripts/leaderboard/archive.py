"""A bundle: the zip file by which somebody submits measurements. Packing one, and opening one that nobody trusts.

    manifest.json   who, what, under which licence, and the SHA-256 of every other file
    suite.json      what was to be measured
    results.db      what was measured
    check.json      what `attnbench check` said of each method
    plugin/*        the source of a method that is not built in, as text; nothing ever runs it

A bundle is read into memory within fixed limits, and only its results file is written, into a scratch folder under a
name of ours. Equal contents give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

FORMAT = "attnbench-bundle-1"
MANIFEST, SUITE, RESULTS, CHECK = "manifest.json", "suite.json", "results.db", "check.json"
PLUGIN_FILE = re.compile(r"plugin/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
MOST_BYTES = 64 << 20  # of the file
MOST_EXPANDED = {MANIFEST: 1 << 20, SUITE: 1 << 20, CHECK: 16 << 20, RESULTS: 512 << 20}
MOST_OF_A_PLUGIN = 1 << 20
MOST_FILES = 64
LONGEST = {"licence": 100, "note": 1000, "bibtex": 20_000}  # characters
MOST_METHODS, MOST_AUTHORS, LONGEST_NAME = 200, 50, 200


class Refused(Exception):
    """The bundle does not enter the leaderboard; the message is the reason, one sentence."""


@dataclass(frozen=True)
class Manifest:
    suite: str  # name and version, such as attnbench-2026
    methods: list[str]  # specs as `attnbench submit` was given them
    authors: list[str]
    licence: str  # of the plugin's source, or of the numbers
    note: str
    bibtex: str
    attnbench: str  # what `attnbench --version` printed


@dataclass(frozen=True)
class Bundle:
    digest: str  # SHA-256 of the zip file, its permanent name
    manifest: Manifest
    files: dict[str, bytes]

    @property
    def plugin_sources(self) -> dict[str, str]:
        return {
            name.removeprefix("plugin/"): content.decode(errors="replace")
            for name, content in sorted(self.files.items())
            if name.startswith("plugin/")
        }


def pack(path: Path, manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Writes the bundle. An interrupted call leaves nothing at that path."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    described = {"format": FORMAT, **asdict(manifest), "files": hashes}
    everything = {MANIFEST: (json.dumps(described, indent=1, ensure_ascii=False) + "\n").encode(), **files}
    partial = path.with_name(path.name + ".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(everything.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)  # of 1980: equal bytes
    partial.replace(path)


def open_bundle(path: Path) -> Bundle:
    """Throws Refused unless the archive holds the files of a bundle, each as its manifest says, and nothing else."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise Refused(f"the file has {size:,} bytes; at most {MOST_BYTES:,} are read")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with zipfile.ZipFile(path) as archive:
            files = {entry.filename: _read(archive, entry) for entry in _entries(archive)}
    except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
        raise Refused(f"it cannot be read as a zip file: {' '.join(str(error).split())}") from None
    described = json_object(files[MANIFEST], MANIFEST)
    _require_hashes(described.get("files"), files)
    return Bundle(digest, _manifest(described), files)


def _entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise Refused(f"the archive has {len(entries)} files; a bundle has at most {MOST_FILES}")
    names = [entry.filename for entry in entries]
    for entry in entries:
        _require_plain(entry)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Refused(f"the archive has {twice[0]} twice")
    if missing := [name for name in (MANIFEST, SUITE, RESULTS, CHECK) if name not in names]:
        raise Refused(f"the archive lacks {missing[0]}")
    return entries


def _require_plain(entry: zipfile.ZipInfo) -> None:
    name, most = entry.filename, MOST_EXPANDED.get(entry.filename, MOST_OF_A_PLUGIN)
    if name not in MOST_EXPANDED and not PLUGIN_FILE.fullmatch(name):
        raise Refused(f"the archive has a file {name!r}, which no bundle has")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise Refused(f"{name} is a link")
    if entry.flag_bits & 1:
        raise Refused(f"{name} is encrypted")
    if entry.file_size > most:
        raise Refused(f"{name} says that it has {entry.file_size:,} bytes; at most {most:,} are read")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """All bytes of an entry, and never more than it declares: `zipfile` stops there and compares the checksum."""
    try:
        with archive.open(entry) as stream:
            content = stream.read(entry.file_size + 1)
    except (RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise Refused(f"{entry.filename} cannot be read: {' '.join(str(error).split())}") from None
    if len(content) != entry.file_size:
        raise Refused(f"{entry.filename} has not the {entry.file_size:,} bytes that it says it has")
    return content


def _require_hashes(stated: Any, files: Mapping[str, bytes]) -> None:
    if not isinstance(stated, dict) or set(stated) != set(files) - {MANIFEST}:
        raise Refused(f"{MANIFEST} does not list the files that the archive has")
    for name, content in files.items():
        if name != MANIFEST and stated[name] != hashlib.sha256(content).hexdigest():
            raise Refused(f"{name} was altered: its SHA-256 is not the one in {MANIFEST}")


def _manifest(described: Mapping[str, Any]) -> Manifest:
    if described.get("format") != FORMAT:
        raise Refused(f"{MANIFEST} has the format {described.get('format')!r}; expected {FORMAT}")
    known = {field.name for field in fields(Manifest)}
    if set(described) != known | {"format", "files"}:
        raise Refused(f"{MANIFEST} has not the members {', '.join(sorted(known))}")
    for name in ("methods", "authors"):
        most = MOST_METHODS if name == "methods" else MOST_AUTHORS
        given = described[name]
        if not (isinstance(given, list) and 1 <= len(given) <= most and all(map(_is_line, given))):
            raise Refused(f"{MANIFEST}: {name} is not a list of 1 to {most} lines of text")
        if len(set(given)) != len(given):
            raise Refused(f"{MANIFEST}: {name} names one twice")
    for name in ("suite", "attnbench"):
        if not _is_line(described[name]):
            raise Refused(f"{MANIFEST}: {name} is not a line of text")
    for name, most in LONGEST.items():
        if not _is_text(described[name], most):
            raise Refused(f"{MANIFEST}: {name} is not a text of at most {most:,} characters")
    if not described["licence"].strip():
        raise Refused(f"{MANIFEST}: there is no licence, so nobody may show what the bundle holds")
    return Manifest(**{name: described[name] for name in known})


def _is_text(value: Any, most: int) -> bool:
    """Printable characters, spaces and line ends: a control character could move a reader's cursor."""
    return isinstance(value, str) and len(value) <= most and all(c.isprintable() or c in "\n\t" for c in value)


def _is_line(value: Any) -> bool:
    return _is_text(value, LONGEST_NAME) and bool(value.strip()) and "\n" not in value


def json_object(content: bytes, name: str) -> dict[str, Any]:
    """Throws Refused for anything but a JSON object without NaN."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused(f"{name} is not a JSON object")
    return value
