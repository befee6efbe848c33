"""Opens results files of attnbench, after checks by which nothing that a file holds is run, and no damage is read as a result.

The checks are those of `attnbench verify` that numbers and texts depend on (harness/store): the tables are those that
attnbench makes, without a trigger or a view; every value has the type of its column, and every text is UTF-8; arrays fit
their shapes; and every digest is that of its rows.
"""

from __future__ import annotations

import os
import re
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

APPLICATION_ID = 0x61746E62  # "atnb"
SCHEMA = 9
# As in harness/store/schema.cpp.
TABLES = """
  CREATE TABLE run(
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL,
    digest TEXT NOT NULL);
  CREATE TABLE cell(
    id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, experiment TEXT NOT NULL, method TEXT NOT NULL,
    input TEXT NOT NULL, nq INTEGER NOT NULL, n INTEGER NOT NULL, d INTEGER NOT NULL, dv INTEGER NOT NULL,
    causal INTEGER NOT NULL, mask_offset INTEGER NOT NULL, mask_keys INTEGER NOT NULL, precision TEXT NOT NULL,
    heads INTEGER NOT NULL, logit_scale REAL NOT NULL, seed TEXT NOT NULL, threads INTEGER NOT NULL,
    parameters TEXT NOT NULL, source_version TEXT NOT NULL, machine TEXT NOT NULL);
  CREATE TABLE replicate(
    cell INTEGER NOT NULL REFERENCES cell(id), replicate INTEGER NOT NULL, run INTEGER NOT NULL REFERENCES run(id),
    ending TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL, finished TEXT NOT NULL,
    measurements INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY(cell, replicate)) WITHOUT ROWID;
  CREATE TABLE measurement(
    cell INTEGER NOT NULL, replicate INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, shape TEXT NOT NULL,
    value REAL, array BLOB, PRIMARY KEY(cell, replicate, metric),
    FOREIGN KEY(cell, replicate) REFERENCES replicate(cell, replicate),
    CHECK((value IS NULL) <> (array IS NULL))) WITHOUT ROWID;
  CREATE TABLE figure(
    recipe TEXT NOT NULL, name TEXT NOT NULL, position INTEGER NOT NULL, json TEXT NOT NULL, written TEXT NOT NULL,
    digest TEXT NOT NULL, PRIMARY KEY(recipe, name));
  CREATE TABLE verdict(
    recipe TEXT NOT NULL, position INTEGER NOT NULL, outcome TEXT NOT NULL, statement TEXT NOT NULL,
    numbers TEXT NOT NULL, written TEXT NOT NULL, region TEXT NOT NULL, expected TEXT NOT NULL, source TEXT NOT NULL,
    quotation TEXT NOT NULL, paraphrase TEXT NOT NULL, definition TEXT NOT NULL, threshold TEXT NOT NULL,
    because TEXT NOT NULL, kind TEXT NOT NULL, compared TEXT NOT NULL, PRIMARY KEY(recipe, position));
  CREATE TABLE reproduction(
    recipe TEXT PRIMARY KEY, size TEXT NOT NULL, command TEXT NOT NULL, seconds REAL NOT NULL, cells TEXT NOT NULL,
    written TEXT NOT NULL, digest TEXT NOT NULL);
  CREATE TABLE panel(
    recipe TEXT NOT NULL, figure TEXT NOT NULL, panel INTEGER NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY(recipe, figure, panel)) WITHOUT ROWID;
  CREATE TABLE point(
    recipe TEXT NOT NULL, figure TEXT NOT NULL, panel INTEGER NOT NULL, point INTEGER NOT NULL, series TEXT NOT NULL,
    role TEXT NOT NULL, x REAL, x_low REAL, x_high REAL, y REAL, low REAL, high REAL, theory REAL, value REAL,
    replicates INTEGER NOT NULL, samples INTEGER NOT NULL, exponent REAL, exponent_low REAL, exponent_high REAL,
    crossing REAL, crossing_low REAL, crossing_high REAL, note TEXT NOT NULL,
    PRIMARY KEY(recipe, figure, panel, point)) WITHOUT ROWID;
  CREATE TABLE summary(
    cell INTEGER NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, mean REAL, low REAL, high REAL, median REAL,
    median_low REAL, median_high REAL, replicates INTEGER NOT NULL, samples INTEGER NOT NULL,
    PRIMARY KEY(cell, metric)) WITHOUT ROWID;
  CREATE TABLE look(method TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
"""
CELL = (
    "c.key, c.experiment, c.method, c.input, c.nq, c.n, c.d, c.dv, c.causal, c.mask_offset, c.mask_keys, c.precision, "
    "c.heads, c.logit_scale, c.seed, c.threads, c.parameters, c.source_version, c.machine"
)
VERDICT = (
    "position, outcome, statement, numbers, written, region, expected, source, quotation, paraphrase, definition, "
    "threshold, because, kind, compared"
)
BLOCK = 64  # bytes


def printable(text: str) -> str:
    """A text for a terminal. Control characters, which could move its cursor or run its commands, are shown as in
    \\x1b; the program does the same (harness/cli/terminal.hpp)."""
    return "".join(f"\\x{ord(c):02x}" if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160) else c for c in text)


class Misuse(Exception):
    """The user's error in one line: the value given, the value expected, and how to correct it. Exit code 2."""

    def __init__(self, line: str) -> None:
        super().__init__(printable(line))


def open_results(path: Path) -> sqlite3.Connection:
    """A connection for reading. Throws Misuse for a path that is not a results file, or that fails a check."""
    expected = "expected a results file of attnbench"
    if not path.exists():
        raise Misuse(f"{path}: no such file; {expected}; make one with 'attnbench run ... --results {path}'")
    if not path.is_file():
        raise Misuse(f"{path}: not a file; {expected}; give the files in it one by one")
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(_uri(path), uri=True)
        _require_ours(connection, path)
        connection.execute("BEGIN")  # a run may record while this is read: all queries see the file as it is now
        _require_intact_rows(connection, path)
    except (sqlite3.Error, Misuse) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, Misuse):
            raise
        raise Misuse(f"{path}: {' '.join(str(error).split())}; {expected}; check the path") from None
    return connection


def _uri(path: Path) -> str:
    """As in harness/store/database.cpp: in a folder that cannot be written, SQLite opens a file with a log only if nobody
    may change it."""
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    log = Path(f"{path}-wal")
    alone = not writable and not (log.exists() and log.stat().st_size > 0)
    return f"{path.absolute().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    if application != APPLICATION_ID:
        raise Misuse(f"{path}: another program's database; expected a results file of attnbench; check the path")
    if schema != SCHEMA:
        raise Misuse(f"{path}: schema {schema}; expected {SCHEMA}; use the scripts of the attnbench that wrote it")
    if encoding != "UTF-8":
        raise Misuse(f"{path}: holds its texts in {encoding}; expected UTF-8, as attnbench writes it; restore a copy")
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(TABLES)
        wanted, found = _parts(ours), _parts(connection)
    if wanted != found:
        name, kind, _ = min(wanted ^ found)
        said = f"its {kind} {name}" if any(name == ours_name for ours_name, _, _ in wanted) else f"a foreign {kind}"
        raise Misuse(
            f"{path}: {said} is not as attnbench makes it; expected the tables of schema {SCHEMA} and nothing else; "
            f"nothing in it was run: `sqlite3 '{path}' .schema` shows it; restore a copy"
        )
    (intact,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if intact != "ok":
        raise _altered(path, intact)


def _parts(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    rows = connection.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {(name, kind, " ".join(sql.split())) for name, kind, sql in rows}


def _altered(path: Path, problem: str) -> Misuse:
    line = "".join(c if c.isprintable() else "?" for c in problem)
    return Misuse(
        f"{path}: damaged or altered: {line}; expected the rows as attnbench recorded them; "
        f"`attnbench verify '{path}'` lists every problem; restore a copy, or measure again into another path"
    )


def _require_intact_rows(connection: sqlite3.Connection, path: Path) -> None:
    try:
        problem = next(_problems(connection), None)
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
        problem = "a text is not UTF-8"
    if problem:
        raise _altered(path, problem)


def _problems(connection: sqlite3.Connection) -> Iterator[str]:
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        yield from _misfits(connection, table)
    shapes = connection.execute("SELECT shape, length(array), metric FROM measurement")
    yield from (f"{metric} does not fit its shape {shape}" for shape, size, metric in shapes if not _fits(shape, size))
    yield from _altered_rows(connection)


def _misfits(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Values that SQLite accepts although their column has another type, and texts that hold NUL."""
    columns = connection.execute('SELECT name, type, "notnull" FROM pragma_table_info(?)', [table]).fetchall()
    counts = []
    for name, declared, needed in columns:
        misfit = f"typeof({name}) <> '{declared.lower()}'"
        misfit += f" OR instr({name}, char(0))" if declared == "TEXT" else ""
        counts.append(f"total(({misfit}){'' if needed else f' AND {name} IS NOT NULL'})")
    found = connection.execute(f"SELECT {', '.join(counts)} FROM {table}").fetchone()
    for (name, _, _), count in zip(columns, found):
        if count:
            yield f"{table}.{name}: {count:.0f} values are not of the column's type, or hold a NUL"


def _fits(shape: str, size: int | None) -> bool:
    if not re.fullmatch(r"\[(?:(?:0|[1-9]\d{0,9})(?:,(?:0|[1-9]\d{0,9}))*)?\]", shape, re.ASCII):
        return False
    if size is None:
        return shape == "[]"
    return shape != "[]" and prod(int(axis) for axis in shape[1:-1].split(",")) * 8 == size


def _altered_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Every row with a digest, the digest, and the values that it covers: harness/store/digest.cpp."""
    for what, computed in (
        ("a run", run_digests(connection)),
        ("a replicate", replicate_digests(connection)),
        ("a figure", figure_digests(connection)),
        ("a recipe or one of its verdicts", reproduction_digests(connection)),
    ):
        for key, stored, digest in computed:
            if stored != digest:
                yield f"{what} ({', '.join(map(str, key))}) has another digest than its values"


# Each returns for every row its key, the digest that is stored, and the digest of its values.
Digests = Iterable[tuple[tuple[Any, ...], str, str]]


def run_digests(connection: sqlite3.Connection) -> Digests:
    rows = connection.execute("SELECT id, digest, started, command, environment FROM run").fetchall()
    return _compared([(row[:1], row[1], row[2:]) for row in rows])


def figure_digests(connection: sqlite3.Connection) -> Digests:
    rows = connection.execute("SELECT digest, recipe, name, position, json, written FROM figure").fetchall()
    return _compared([(row[1:3], row[0], row[1:]) for row in rows])


def replicate_digests(connection: sqlite3.Connection) -> Digests:
    measured = _digests_by_key(
        connection.execute(
            "SELECT cell, replicate, metric, unit, shape, value, array FROM measurement "
            "ORDER BY cell, replicate, metric"
        ),
        2,
    )
    nothing = digests([b""])[0]
    rows = connection.execute(
        f"SELECT r.cell, r.digest, {CELL}, u.digest, r.replicate, r.ending, r.reason, r.seconds, r.finished, "
        "r.measurements FROM replicate r LEFT JOIN cell c ON c.id = r.cell LEFT JOIN run u ON u.id = r.run"
    ).fetchall()
    keys = [(row[0], row[-6]) for row in rows]
    return _compared([(key, row[1], (*row[2:], measured.get(key, nothing))) for key, row in zip(keys, rows)])


def reproduction_digests(connection: sqlite3.Connection) -> Digests:
    verdicts = _digests_by_key(
        connection.execute(f"SELECT recipe, {VERDICT} FROM verdict ORDER BY recipe, position"), 1
    )
    nothing = digests([b""])[0]
    rows = connection.execute(
        "SELECT digest, recipe, size, command, seconds, cells, written FROM reproduction"
    ).fetchall()
    strangers = [(recipe, "", "no digest") for recipe in verdicts.keys() - {row[1:2] for row in rows}]
    return [*strangers, *_compared([(row[1:2], row[0], (*row[1:], verdicts.get(row[1:2], nothing))) for row in rows])]


def _digests_by_key(rows: Iterable[tuple[Any, ...]], width: int) -> dict[tuple[Any, ...], str]:
    """The digest of all rows with the same key, which is their first columns. They follow one another."""
    keys, records = [], []
    for key, group in groupby(rows, key=lambda row: row[:width]):
        keys.append(key)
        records.append(b"".join(_bytes(value) for row in group for value in row[width:]))
    return dict(zip(keys, digests(records)))


def _compared(rows: Sequence[tuple[tuple[Any, ...], str, tuple[Any, ...]]]) -> Digests:
    found = digests([b"".join(map(_bytes, values)) for _, _, values in rows])
    return [(key, stored, digest) for (key, stored, _), digest in zip(rows, found)]


def _bytes(value: Any) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, float):
        return struct.pack("<cd", b"r", value)
    if isinstance(value, int):
        return struct.pack("<cq", b"i", value)
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<cQ", b"t" if isinstance(value, str) else b"b", len(content)) + content


def digests(records: Sequence[bytes]) -> list[str]:
    """The digest of each: hashes of blocks, hashes of blocks of these hashes, until one is left. All records at once."""
    if not records:
        return []
    padded = [record.ljust(max(1, -(-len(record) // BLOCK)) * BLOCK, b"\0") for record in records]
    counts = np.array([len(record) // BLOCK for record in padded])
    hashes = _hashes(np.frombuffer(b"".join(padded), np.uint8).reshape(-1, BLOCK))
    while (counts > 1).any():
        width = BLOCK // 8
        rows = -(-counts // width)
        begin, row_begin = np.cumsum(counts) - counts, np.cumsum(rows) - rows
        place = np.arange(len(hashes)) - np.repeat(begin, counts) + np.repeat(row_begin * width, counts)
        blocks = np.zeros(rows.sum() * width, "<u8")
        blocks[place] = hashes
        above = _hashes(blocks.view(np.uint8).reshape(-1, BLOCK))
        whole = counts == 1
        above[row_begin[whole]] = hashes[begin[whole]]
        counts, hashes = rows, above
    return [f"{hash:016x}" for hash in hashes.tolist()]


def _hashes(blocks: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """hash_bytes (harness/random/streams.cpp) of each row."""
    hashes = np.full(len(blocks), 0xCBF29CE484222325, np.uint64)
    for column in np.ascontiguousarray(blocks.T):
        hashes = (hashes ^ column) * np.uint64(0x100000001B3)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))
