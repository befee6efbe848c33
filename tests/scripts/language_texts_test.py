#!/usr/bin/python3
"""Tests of harness/inputs/texts and of scripts/language_texts.py, which made them.

Run as tests/scripts/language_texts_test.py; needs no attnbench and no network.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import unittest
import zipfile
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import language_texts
from language_texts import KINDS, LENGTH, OF_A_KIND, RUN, Document

FOLDER = ROOT / "harness/inputs/texts"
# Each permits to copy excerpts together with the notice in texts.json and README.md.
ALLOWED = {"public domain", "PSF-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0",
           "GPL-2.0-only", "GPL-2.0-or-later"}  # fmt: skip
PERMISSIVE = ALLOWED - {"GPL-2.0-only", "GPL-2.0-or-later"}
# Words that are frequent in one language and rare in the other.
ENGLISH = {"the", "of", "and", "is", "that", "with", "for", "this"}
FRENCH = {"le", "la", "les", "des", "du", "et", "est", "une", "que", "pour", "dans"}


class Files(unittest.TestCase):
    lines: list[dict[str, Any]]
    texts: list[bytes]
    archive: zipfile.ZipFile

    @classmethod
    def setUpClass(cls) -> None:
        cls.lines = json.loads((FOLDER / "texts.json").read_text())
        cls.archive = zipfile.ZipFile(FOLDER / "texts.zip")
        cls.addClassCleanup(cls.archive.close)
        cls.texts = [cls.archive.read(line["entry"]) for line in cls.lines]

    def test_the_archive_holds_what_the_list_says(self) -> None:
        self.assertEqual([line["entry"] for line in self.lines], self.archive.namelist())
        for line, text in zip(self.lines, self.texts, strict=True):
            self.assertEqual(line["bytes"], len(text))
            self.assertEqual(line["sha256"], hashlib.sha256(text).hexdigest())

    def test_kinds_take_turns(self) -> None:
        self.assertEqual(len(self.lines), OF_A_KIND * len(KINDS))
        self.assertEqual(KINDS, ("prose", "documentation", "code", "french"))
        for number, line in enumerate(self.lines):
            self.assertEqual(line["text"], number)
            self.assertEqual(line["kind"], KINDS[number % 4])
            self.assertEqual(line["entry"], f"{line['kind']}-{number // 4:02}.txt")

    def test_a_text_is_plain_and_long_enough(self) -> None:
        for line, text in zip(self.lines, self.texts, strict=True):
            characters = text.decode()
            self.assertTrue(all(c >= " " or c in "\n\t" for c in characters), line["entry"])
            self.assertFalse(characters.startswith("\ufeff"))
            longest = LENGTH[line["kind"]]
            self.assertLessEqual(len(text), longest)
            self.assertGreater(len(text), 0.97 * longest, line["entry"])

    def test_texts_are_in_the_language_of_their_kind(self) -> None:
        for line, text in zip(self.lines, self.texts, strict=True):
            words = text.decode().lower().split()
            english = sum(word in ENGLISH for word in words) / len(words)
            french = sum(word in FRENCH for word in words) / len(words)
            if line["kind"] == "french":
                self.assertGreater(french, 0.1, line["entry"])
                self.assertLess(english, 0.04, line["entry"])
            elif line["kind"] != "code":
                self.assertGreater(english, 0.08, line["entry"])
                self.assertLess(french, 0.02, line["entry"])
            else:
                statements = sum(part.lstrip().startswith(("def ", "return", "if ", "self.")) for part in
                                    text.decode().splitlines())  # fmt: skip
                self.assertGreater(statements, 50, line["entry"])

    def test_no_two_texts_share_a_run(self) -> None:
        others = language_texts.texts_of_byte_model(ROOT / "harness/inputs/model")
        self.assertEqual({len(text) for text in others}, {1024})
        self.assertEqual(len(others), 33)
        described = json.loads((ROOT / "harness/inputs/model/texts.json").read_text())
        for line, text in zip(described, others):
            self.assertEqual(hashlib.sha256(text).hexdigest(), line["sha256"])
        self.assertIsNone(language_texts.shared_run(self.texts + others))

    def test_each_licence_permits_it(self) -> None:
        for line in self.lines:
            self.assertIn(line["licence"], ALLOWED)
            if line["kind"] != "french":
                self.assertIn(line["licence"], PERMISSIVE)

    def test_the_list_is_that_of_the_program(self) -> None:
        by_place = {(line["package"].split()[0], line["file"]) for line in self.lines}
        self.assertEqual(by_place, {(each.package, each.file) for each in language_texts.DOCUMENTS})
        for line in self.lines:
            package = language_texts.PACKAGES[line["package"].split()[0]]
            self.assertEqual((line["version"], line["licence"]), (package.version, package.licence))
        used = {document.package for document in language_texts.DOCUMENTS}
        self.assertEqual(used, set(language_texts.PACKAGES))

    def test_the_archive_is_small_and_the_same_on_each_day(self) -> None:
        self.assertLess((FOLDER / "texts.zip").stat().st_size, 1_600_000)
        for entry in self.archive.infolist():
            self.assertEqual((entry.date_time, entry.compress_type), ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_DEFLATED))

    def test_the_readme_names_each_package(self) -> None:
        readme = (FOLDER / "README.md").read_text()
        for name in language_texts.PACKAGES:
            self.assertIn(f"`{name}`", readme)


class SharedRuns(unittest.TestCase):
    def setUp(self) -> None:
        self.first, self.second = ("".join(chr(33 + (i * i * step // 7 + i) % 90) for i in range(3000)).encode()
                                   for step in (3, 5))  # fmt: skip

    def planted(self, length: int, at: int, to: int) -> list[bytes]:
        second = bytearray(self.second)
        second[to : to + length] = self.first[at : at + length]
        for edge, neighbour in ((to - 1, at - 1), (to + length, at + length)):
            if 0 <= edge < len(second) and 0 <= neighbour < len(self.first):
                second[edge] = self.first[neighbour] ^ 1
        return [self.first, bytes(second)]

    def test_texts_without_one_are_accepted(self) -> None:
        self.assertIsNone(language_texts.shared_run([self.first, self.second]))

    def test_a_run_is_found_wherever_it_is(self) -> None:
        for at in (0, 1, 57, 99, 100, 101, 1234, 3000 - RUN):
            for to in (0, 33, 1500, 3000 - RUN):
                found = language_texts.shared_run(self.planted(RUN, at, to))
                self.assertEqual(found, (0, 1, self.first[at : at + RUN]))

    def test_a_shorter_one_is_accepted(self) -> None:
        for at in (1, 57, 100, 1234):
            self.assertIsNone(language_texts.shared_run(self.planted(RUN - 1, at, 700)))


class Cutting(unittest.TestCase):
    def test_texts_of_one_document_are_as_far_apart_as_it_permits(self) -> None:
        paragraph = b"a line of a paragraph\nand its second\n\n"
        whole = paragraph * 8000
        texts = language_texts.cut(Document("prose", "package", "file", 3, begin=1000, end=250_000), whole)
        self.assertEqual(len(texts), 3)
        for text, offset in zip(texts, (1000, 101_500, 202_000)):
            self.assertLess(text.offset - offset, len(paragraph))
            self.assertGreaterEqual(text.offset, offset)
            self.assertEqual(text.content, whole[text.offset : text.offset + len(text.content)])
            self.assertTrue(text.content.startswith(b"a line"))
            self.assertTrue(text.content.endswith(b"\n"))
            self.assertLessEqual(text.offset + len(text.content), 250_000)

    def test_a_short_document_is_refused(self) -> None:
        with self.assertRaisesRegex(language_texts.Failure, "has 90000 bytes, too few for 2 texts"):
            language_texts.cut(Document("prose", "package", "file", 2), b"a\n" * 45_000)

    def test_a_text_ends_between_characters(self) -> None:
        whole = ("é" * 50 + "\n\n").encode() * 2000
        (text,) = language_texts.cut(Document("french", "package", "file", begin=5), whole)
        text.content.decode()

    def test_vectors_of_r_are_read(self) -> None:
        def strings(*lines: bytes) -> bytes:
            made = b"X\n" + struct.pack(">IIII", 3, 0x40201, 0x30500, 5) + b"UTF-8" + struct.pack(">II", 16, len(lines))
            return made + b"".join(struct.pack(">II", 0x40009, len(line)) + line for line in lines)

        books = [strings(b"EMMA", b"", b"By Jane Austen"), strings(b"PERSUASION")]
        database = b"".join(struct.pack(">I", len(book)) + zlib.compress(book) for book in books)
        read = [language_texts.r_strings(book) for book in language_texts.r_objects(database)]
        self.assertEqual(read, [b"EMMA\n\nBy Jane Austen", b"PERSUASION"])


if __name__ == "__main__":
    unittest.main()
