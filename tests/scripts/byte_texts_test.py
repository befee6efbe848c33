#!/usr/bin/python3
"""Tests of the text that scripts/train_byte_lm.py reads: corpus, held-out texts and masks.

Run as tests/scripts/byte_texts_test.py; needs no attnbench and no torch.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import byte_corpus
import held_out_texts
import masked_bytes
from byte_corpus import CAPTURES, KINDS, Corpus, Document

HEADER = "Content-Type: text/plain; charset=UTF-8\n"


def catalogue(folder: Path, language: str, translations: dict[str, str]) -> Path:
    """Writes a message catalogue as gettext's manual describes the format ("The Format of GNU MO Files")."""
    path = folder / f"{language}/LC_MESSAGES/made.mo"
    path.parent.mkdir(parents=True)
    pairs = sorted((key.encode(), value.encode()) for key, value in translations.items())
    tables, strings, start = [b"", b""], b"", 28 + 16 * len(pairs)
    for column in (0, 1):
        for pair in pairs:
            tables[column] += struct.pack("<II", len(pair[column]), start + len(strings))
            strings += pair[column] + b"\0"
    header = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    path.write_bytes(header + tables[0] + tables[1] + strings)
    return path


def random_text(size: int, seed: int) -> bytes:
    return np.random.default_rng(seed).integers(32, 127, size).astype(np.uint8).tobytes()


class Debian(unittest.TestCase):
    corpus: Corpus

    @classmethod
    def setUpClass(cls) -> None:
        try:
            cls.corpus = byte_corpus.read_corpus()
        except byte_corpus.NoPackage as missing:
            raise unittest.SkipTest(str(missing)) from missing

    def test_no_document_is_both_trained_on_and_held_out(self) -> None:
        for name in self.corpus.held_out:
            self.assertNotIn(name, self.corpus.training)
            chosen = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 20 == 0
            self.assertTrue(chosen or name in CAPTURES.values(), name)
        for name in CAPTURES.values():
            self.assertIn(name, self.corpus.held_out)

    def test_every_kind_has_megabytes_and_the_bytes_with_a_meaning_of_their_own_do_not_occur(self) -> None:
        for kind in KINDS:
            text = b"".join(d.text for d in self.corpus.training.values() if d.kind == kind)
            self.assertGreater(len(text), 5_000_000, kind)
            self.assertEqual((text.count(0), text.count(255)), (0, 0))

    def test_tests_of_packages_are_left_out(self) -> None:
        self.assertFalse([name for name in self.corpus.training if "/tests/" in name and name.endswith(".py")])


class Dictionary(unittest.TestCase):
    def test_each_message_is_followed_by_its_translations(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            german = catalogue(folder, "de", {"": HEADER, "open": "öffnen", "close": "schließen"})
            french = catalogue(folder, "fr", {"": HEADER, "open": "ouvrir\n"})
            documents = byte_corpus.dictionary_of([german, french])
        self.assertEqual(
            {name: text.decode() for name, text in documents.items()},
            {"made.mo/0": "en: close\nde: schließen\n\nen: open\nde: öffnen\nfr: ouvrir\n"},
        )


class HeldOut(unittest.TestCase):
    def test_pieces_are_equal_where_their_bytes_are(self) -> None:
        text = random_text(300, 1)
        hashes = held_out_texts.piece_hashes(text)
        self.assertEqual(len(hashes), 300 - 47)
        self.assertEqual(len(set(hashes.tolist())), len(hashes))
        self.assertEqual(hashes[70], held_out_texts.piece_hashes(text[70 : 70 + 48])[0])
        for changed in (0, 15, 16, 17, 31, 32, 47):
            other = bytearray(text[70:118])
            other[changed] ^= 1
            self.assertNotEqual(held_out_texts.piece_hashes(bytes(other))[0], hashes[70], changed)
        for size in (0, 1, 15, 16, 33, 47):
            self.assertEqual(len(held_out_texts.piece_hashes(text[:size])), 0)

    def test_copied_text_is_known_by_its_share(self) -> None:
        copied, new = random_text(400, 2), random_text(600, 3)
        known = held_out_texts.Known([random_text(500, 4) + copied + random_text(90, 5), b"short"], [new + copied])
        self.assertEqual(known.share(new + copied), 0.4)
        self.assertEqual(known.share(new), 0)

    def corpus(self) -> Corpus:
        training = {"t": Document("python", "p", random_text(20_000, 10))}
        held_out = {}
        for i, kind in enumerate(KINDS):
            for j in range(12):
                held_out[f"{kind}/{j % 10}/{j}"] = Document(kind, "p", random_text(6000, 100 * i + j + 1000))
        held_out["python/copy/0"] = Document("python", "p", training["t"].text[:6000])
        held_out["python/tiny/0"] = Document("python", "p", random_text(1023, 7))
        held_out["python/short/0"] = Document("python", "p", random_text(2000, 8))
        for i, name in enumerate(CAPTURES.values()):
            held_out[name] = Document("python", "p", random_text(9000, 20 + i))
        return Corpus(training, held_out, {})

    def test_candidates_are_long_and_new_and_begin_with_the_captured_text(self) -> None:
        corpus = self.corpus()
        found = held_out_texts.candidates(corpus)
        self.assertEqual(found[0].file, CAPTURES["measured"])
        names = {each.file for each in found}
        self.assertEqual(
            set(corpus.held_out) - names, {"python/copy/0", "python/tiny/0", CAPTURES["calibration"]}, "left out"
        )
        offsets = {each.file: each.offset for each in found}
        self.assertEqual((offsets["python/short/0"], offsets["headers/0/0"]), (2000 - 1024, 4096))
        for each in found:
            self.assertEqual(each.text, corpus.held_out[each.file].text[each.offset : each.offset + 1024])

    def test_texts_take_turns_by_kind_and_none_shares_its_folder(self) -> None:
        texts = held_out_texts.choose_texts(held_out_texts.candidates(self.corpus()))
        self.assertEqual([each.kind for each in texts], list(KINDS) * 8)
        folders = [str(Path(each.file).parent) for each in texts]
        self.assertEqual(len(set(folders)), len(folders))

    def test_too_few_texts_are_refused(self) -> None:
        corpus = self.corpus()
        for j in range(12):
            del corpus.held_out[f"headers/{j % 10}/{j}"]
        with self.assertRaisesRegex(SystemExit, "0 of headers"):
            held_out_texts.choose_texts(held_out_texts.candidates(corpus))


class Masks(unittest.TestCase):
    shape = (64, 1024)

    def test_a_fifth_of_the_bytes_is_in_a_run(self) -> None:
        # A byte is in no run if none of the 7 bytes up to it starts one that is long enough.
        outside = np.prod([1 - masked_bytes.STARTS * (7 - after) / 7 for after in range(7)])
        run = masked_bytes.runs(self.shape, np.random.default_rng(1))[:, 6:]
        # Bytes farther apart than 6 are independent: at least 64 x 145 independent groups, five standard errors.
        share = (run > 0).mean()
        self.assertLess(abs(share - (1 - outside)), 5 * np.sqrt(outside * (1 - outside) / (64 * 145)))
        lengths = np.bincount(run[run > 0])
        self.assertEqual(lengths[lengths > 0].max(), 7)
        self.assertFalse((run[1:, 0] == run[:-1, -1])[run[1:, 0] > 0].any(), "a run goes on in the next text")

    def test_masked_texts_hide_the_runs_and_nothing_else(self) -> None:
        texts = np.random.default_rng(2).integers(32, 127, self.shape)
        seen, where = masked_bytes.masked_texts(texts)
        self.assertTrue((seen[where] == 255).all())
        self.assertTrue((seen[~where] == texts[~where]).all())
        self.assertTrue((masked_bytes.masked_texts(texts)[0] == seen).all())

    def test_training_hides_eight_runs_of_ten_replaces_one_and_leaves_one(self) -> None:
        texts = np.random.default_rng(3).integers(32, 127, self.shape)
        run = masked_bytes.runs(self.shape, np.random.default_rng(4))
        seen, where = masked_bytes.corrupted(texts, np.random.default_rng(4))
        self.assertTrue((where == (run > 0)).all())
        self.assertTrue((seen[~where] == texts[~where]).all())
        hidden = {number: bool((seen[run == number] == 255).all()) for number in np.unique(run[run > 0])[:1000]}
        for number, whole in hidden.items():
            self.assertEqual(whole, bool((seen[run == number] == 255).any()), "a run is hidden as a whole")
        kept = np.mean([bool((seen[run == n] == texts[run == n]).all()) for n in hidden])
        # 1000 runs; a replaced byte is by chance the right one once in 95. Five standard errors.
        self.assertLess(abs(np.mean(list(hidden.values())) - 0.8), 5 * np.sqrt(0.16 / 1000))
        self.assertLess(abs(kept - 0.1), 5 * np.sqrt(0.09 / 1000) + 0.1 / 95)


if __name__ == "__main__":
    unittest.main()
