"""The text that scripts/train_byte_lm.py trains on, and the files that it holds out: files
that Debian 12 packages installed.

There are four kinds of text, each with structure over more than a few hundred bytes:
  python         source code of the standard library, NumPy, SciPy, pandas, Matplotlib and fontTools
  headers        C and C++ headers
  documentation  CMake's manual, manual pages, Git's release notes, Perl's modules with their manuals
  dictionary     messages of programs in English, in alphabetical order, each followed by its translations, from
                 message catalogues

Every file is named by the list of files of a package that scripts/setup.sh installs (or that every Debian has), so
other software on the machine changes nothing; the versions of the packages fix the text. Files keep the order of their
paths, so that files which name each other's identifiers are neighbours. The hash of its name decides whether a file is
held out (one in twenty); files to capture are held out as well.
"""

from __future__ import annotations

import dataclasses
import gettext
import gzip
import hashlib
import re
import subprocess
from pathlib import Path

CAPTURES = {"measured": "usr/lib/python3.11/statistics.py", "calibration": "usr/lib/python3.11/difflib.py"}
CAPTURE_OFFSET = 4096
HELD_OUT_FRACTION = 20
LONGEST = 1_000_000  # bytes; longer files are tables
LANGUAGES = ("de", "es", "fr", "it", "sv")
MESSAGES = 60  # of one document of a dictionary


@dataclasses.dataclass(frozen=True)
class Source:
    """The files of a package whose paths match."""

    kind: str
    package: str
    pattern: str


PYTHON = r"(?!.*/tests?/).*\.py"
BOOST = "asio|beast|container|filesystem|geometry|graph|intrusive|log|math|multi_index|multiprecision|program_options"
SOURCES = (
    Source("python", "libpython3.11-minimal", PYTHON),
    Source("python", "libpython3.11-stdlib", PYTHON),
    Source("python", "python3-fonttools", PYTHON),
    Source("python", "python3-matplotlib", PYTHON),
    Source("python", "python3-numpy", PYTHON),
    Source("python", "python3-pandas", PYTHON),
    Source("python", "python3-scipy", PYTHON),
    Source("headers", "catch2", r".*\.hpp"),
    Source("headers", "libboost1.74-dev", rf"/usr/include/boost/({BOOST})/(?!.*preprocessed).*\.[hi]pp"),
    Source("headers", "libc6-dev", r".*\.h"),
    Source("headers", "libeigen3-dev", r"/usr/include/.*"),
    Source("headers", "libfmt-dev", r".*\.h"),
    Source("headers", "libicu-dev", r".*\.h"),
    Source("headers", "liblapacke-dev", r".*\.h"),
    Source("headers", "libsqlite3-dev", r".*\.h"),
    Source("headers", "libstdc++-12-dev", r"/usr/include/.*"),
    Source("headers", "linux-libc-dev", r".*\.h"),
    Source("headers", "nlohmann-json3-dev", r"/usr/include/.*\.hpp"),
    Source("headers", "pybind11-dev", r"/usr/include/.*\.h"),
    Source("documentation", "cmake-data", r"/usr/share/cmake-3.25/.*\.(rst|cmake)"),
    Source("documentation", "git", r"/usr/share/doc/git/RelNotes/.*"),
    Source("documentation", "perl-modules-5.36", r".*\.(pm|pod)"),
    *(
        Source("documentation", package, r"/usr/share/man/man\d/.*\.gz")
        for package in ("apt", "bash", "binutils-common", "coreutils", "dpkg", "findutils", "git-man", "grep", "login")
        + ("mount", "passwd", "perl", "util-linux")
    ),
    *(
        Source("dictionary", package, rf"/usr/share/locale/({'|'.join(LANGUAGES)})/LC_MESSAGES/.*\.mo")
        for package in ("apt", "bash", "binutils-common", "coreutils", "dpkg", "findutils", "git", "grep", "tar")
    ),
)
KINDS = tuple(dict.fromkeys(source.kind for source in SOURCES))


@dataclasses.dataclass(frozen=True)
class Document:
    kind: str
    package: str
    text: bytes


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents by name, in the order of the sources and of the paths."""

    training: dict[str, Document]
    held_out: dict[str, Document]
    versions: dict[str, str]  # of the packages


class NoPackage(Exception):
    """A package of the sources is not installed, or without these files."""


def files_of(source: Source) -> list[Path]:
    asked = subprocess.run(["dpkg-query", "--listfiles", source.package], capture_output=True, text=True)
    paths = [Path(line) for line in sorted(set(asked.stdout.splitlines())) if re.fullmatch(source.pattern, line)]
    found = [path for path in paths if path.is_file() and not path.is_symlink()]
    if not found:
        raise NoPackage(
            f"the package {source.package} installed no file like {source.pattern} here; expected Debian 12 with the "
            "packages of scripts/setup.sh, and with documentation and translations, which slim images leave out"
        )
    return found


def version_of(package: str) -> str:
    asked = ["dpkg-query", "--show", "--showformat=${Version} ", package]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]


def text_of(path: Path) -> bytes:
    """Empty for a file that is not UTF-8 or too long. Bytes 0 and 255 never occur: one ends a document, the other masks
    a byte."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    try:
        data.decode()
    except UnicodeDecodeError:
        return b""
    return b"" if b"\0" in data or len(data) > LONGEST else data


def messages_of(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        catalogue = gettext.GNUTranslations(file)
    pairs: dict[object, str] = vars(catalogue)["_catalog"]
    return {text: translation for text, translation in pairs.items() if isinstance(text, str) and text and translation}


def dictionary_of(paths: list[Path]) -> dict[str, bytes]:
    """Documents of `MESSAGES` messages each, by the name of their catalogue and their number in it. The languages are
    the folders LANGUAGE/LC_MESSAGES/NAME.mo."""
    documents: dict[str, bytes] = {}
    for name in sorted({path.name for path in paths}):
        catalogues = {path.parts[-3]: messages_of(path) for path in paths if path.name == name}
        # A set has no order that is the same in each run.
        texts = sorted({text for catalogue in catalogues.values() for text in catalogue})
        for first in range(0, len(texts), MESSAGES):
            lines = []
            for text in texts[first : first + MESSAGES]:
                lines.append(f"en: {text.strip()}")
                lines += [f"{language}: {said[text].strip()}" for language, said in catalogues.items() if text in said]
                lines.append("")
            documents[f"{name}/{first // MESSAGES}"] = "\n".join(lines).encode()
    return documents


def read_corpus() -> Corpus:
    """Throws NoPackage if a package or its files are missing."""
    corpus = Corpus({}, {}, {})
    for source in SOURCES:
        files = files_of(source)
        corpus.versions[source.package] = version_of(source.package)
        if source.kind == "dictionary":
            texts = dictionary_of(files)
        else:
            texts = {path.as_posix().lstrip("/"): text_of(path) for path in files}
        for name, text in texts.items():
            chosen = int(hashlib.sha256(name.encode()).hexdigest(), 16) % HELD_OUT_FRACTION == 0
            files_here = corpus.held_out if chosen or name in CAPTURES.values() else corpus.training
            if text:
                files_here[name] = Document(source.kind, source.package, text)
    return corpus
