#!/usr/bin/python3
"""From a method to a row on a site, and bundles that are refused. Run as leaderboard_test.py PROGRAM."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2] / "scripts" / "leaderboard")]

import example_stores
from archive import CHECK, MANIFEST, RESULTS, SUITE
from ranking import taken
from suite import read_suite

PROGRAM = Path(example_stores.PROGRAM)
PLUGIN = '''
import numpy as np


class Blur:
    """Softmax attention of logits that are divided by a temperature.

    A = softmax(q.k / t)
    """

    claims = {"row_stochastic": True, "non_negative": True, "permutation_equivariant": True}

    def __init__(self, t=2.0):
        self.t = t

    def attend(self, q, k, v, causal):
        logits = q @ k.T / self.t
        if causal:
            logits[~np.tri(len(q), dtype=bool)] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights @ v / weights.sum(axis=1, keepdims=True)
'''
SUBMIT = ("--author", "A. <script>alert(1)</script> Author", "--licence", "MIT")
Files = dict[str, bytes]


def attnbench(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *words], cwd=folder, text=True, capture_output=True, env={**os.environ, **environment}
    )


class Measured:
    """The common part of all tests: the small suite, and two bundles that `attnbench submit` wrote."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(HERE / "small-suite.json", self.folder)
        pin = [str(HERE.parents[2] / "scripts/leaderboard/pin_suite.py"), "small-suite.json", "--program", str(PROGRAM)]
        subprocess.run(pin, cwd=self.folder, check=True, capture_output=True)
        (self.folder / "mine.py").write_text(PLUGIN)
        suite = ("--suite", "small-suite.json")
        self.built_in = attnbench(self.folder, "submit", "local", "linear", *SUBMIT, *suite, "-o", "built-in.zip")
        self.plugin = attnbench(
            self.folder, "submit", "blur", "--plugin", "mine.py", *SUBMIT, *suite, "-o", "mine.zip", "--note", "a <b>"
        )
        self.suite = read_suite(self.folder / "small-suite.json")

    def board(self, *bundles: str, output: str = "site") -> subprocess.CompletedProcess[str]:
        return attnbench(self.folder, "leaderboard", *bundles, "--suite", "small-suite.json", "-o", output)

    def data(self, output: str = "site") -> dict[str, Any]:
        return dict(json.loads((self.folder / output / "data/leaderboard.json").read_text()))

    def files(self, bundle: str) -> Files:
        with zipfile.ZipFile(self.folder / bundle) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


MEASURED: Measured


def setUpModule() -> None:
    global MEASURED
    MEASURED = Measured()


def tearDownModule() -> None:
    shutil.rmtree(MEASURED.folder)


class TwoCommandsTest(unittest.TestCase):
    def test_a_plugin_becomes_a_row(self) -> None:
        self.assertEqual(MEASURED.plugin.returncode, 0, MEASURED.plugin.stderr)
        self.assertRegex(MEASURED.plugin.stdout, r"2 runs, about [\d.]+ (seconds|minutes)")
        done = MEASURED.board("mine.zip", output="two")  # shown by the second of two commands
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = {row["method"]: row for row in MEASURED.data("two")["tables"][0]["rows"]}
        self.assertEqual(list(rows), ["softmax", "blur", "uniform"])
        self.assertEqual([row["rank"] for row in rows.values()], [None, 1, 2])
        error = rows["blur"]["numbers"]["error of the output"]
        self.assertTrue(0 < error["low"] < error["value"] < error["high"] < 1)
        self.assertAlmostEqual(rows["softmax"]["numbers"]["FLOPs over exact"]["value"], 1)
        page = (MEASURED.folder / "two" / rows["blur"]["page"]).read_text()
        self.assertIn("class Blur:", page)
        self.assertIn("attnbench did not run it", page)
        self.assertIn("a &lt;b&gt;", page)

    def test_names_are_text_and_never_markup(self) -> None:
        MEASURED.board("mine.zip", "built-in.zip", output="escaped")
        for page in (MEASURED.folder / "escaped").rglob("*.html"):
            self.assertNotIn("<script>alert", page.read_text(), page.name)

    def test_equal_bundles_give_equal_bytes_in_any_order(self) -> None:
        MEASURED.board("mine.zip", "built-in.zip", output="one-order")
        MEASURED.board("built-in.zip", "mine.zip", output="other-order")
        one, other = (
            {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            for folder in (MEASURED.folder / "one-order", MEASURED.folder / "other-order")
        )
        self.assertEqual(one, other)
        self.assertGreater(len(one), 8)

    def test_a_site_has_no_pages_of_the_site_before_it(self) -> None:
        MEASURED.board("mine.zip", output="twice")
        (MEASURED.folder / "twice/mine.txt").write_text("not ours")
        before = {path.name for path in (MEASURED.folder / "twice/methods").iterdir()}
        MEASURED.board("built-in.zip", output="twice")
        after = {path.name for path in (MEASURED.folder / "twice/methods").iterdir()}
        self.assertTrue(any(name.startswith("blur-") for name in before - after))
        self.assertEqual(len(after), 4)
        self.assertTrue((MEASURED.folder / "twice/mine.txt").exists())

    def test_the_numbers_are_those_of_the_results_file(self) -> None:
        MEASURED.board("built-in.zip", output="numbers")
        with closing(sqlite3.connect(MEASURED.folder / "built-in.db")) as connection:
            # By input the mean over texts of log errors; then the mean over inputs.
            by_input: dict[str, list[float]] = {}
            for name, value in connection.execute(
                "SELECT c.input, ln(m.value) FROM measurement m JOIN cell c ON c.id = m.cell "
                "WHERE c.method LIKE 'local%' AND m.metric = 'relative_output_error'"
            ):
                by_input.setdefault(name, []).append(value)
        expected = sum(sum(values) / len(values) for values in by_input.values()) / len(by_input)
        rows = {row["method"]: row for row in MEASURED.data("numbers")["tables"][0]["rows"]}
        self.assertAlmostEqual(rows["local"]["numbers"]["error of the output"]["value"], 2.718281828459045**expected)

    def test_two_machines_are_two_timings_and_one_set_of_errors(self) -> None:
        forge("elsewhere.zip", machine="other, M, 8 cores")
        done = MEASURED.board("built-in.zip", "elsewhere.zip", output="machines")
        self.assertEqual(done.returncode, 0, done.stdout)
        row = next(row for row in MEASURED.data("machines")["tables"][0]["rows"] if row["method"] == "local")
        self.assertEqual(len(row["numbers"]["times faster"]), 2)
        self.assertIsInstance(row["numbers"]["error of the output"], dict)
        self.assertEqual(
            len((MEASURED.folder / "machines/data/leaderboard.json").read_text().split('"method": "local"')), 2
        )


class MisuseTest(unittest.TestCase):
    def refused(self, *words: str) -> str:
        done = attnbench(MEASURED.folder, *words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_one_sentence_that_says_what_to_do(self) -> None:
        author = ("--author", "me", "--licence", "MIT")
        self.assertIn("--author", self.refused("submit", "local"))
        self.assertIn("no method given", self.refused("submit", *author))
        self.assertIn("nearest", self.refused("submit", "locla", *author).replace("did you mean", "nearest"))
        self.assertIn("measured beside every method", self.refused("submit", "uniform", *author))
        self.assertIn("expected one of attnbench-", self.refused("submit", "local", *author, "--suite", "none"))
        self.assertIn("no bundle given", self.refused("leaderboard"))
        self.assertIn("expected one of attnbench-", self.refused("suite", "none"))

    def test_a_failed_check_makes_no_bundle(self) -> None:
        (MEASURED.folder / "wrong.py").write_text(
            PLUGIN.replace("Blur", "Wrong").replace("return weights @", "return 2 * weights @")
        )
        done = attnbench(MEASURED.folder, "submit", "wrong", "--plugin", "wrong.py", *SUBMIT, "-o", "wrong.zip")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"finds \d+ claims that fail")
        self.assertFalse((MEASURED.folder / "wrong.zip").exists())

    def test_rows_of_something_else_in_the_results_file_make_no_bundle(self) -> None:
        words = ("--suite", "small-suite.json", "--results", "more.db", "-o", "more.zip")
        attnbench(MEASURED.folder, "run", "attention-error", "--method", "local", "-n", "16", "--results", "more.db")
        done = attnbench(MEASURED.folder, "submit", "local", *SUBMIT, *words)
        self.assertEqual(done.returncode, 1)
        self.assertIn("belong to no run of the suite; give another --results file", done.stderr)
        self.assertFalse((MEASURED.folder / "more.zip").exists())

    def test_a_suite_without_its_baseline(self) -> None:
        (MEASURED.folder / "bare.json").write_text(
            (HERE / "small-suite.json").read_text().replace("small-suite", "bare")
        )
        self.assertIn("its baseline is missing; scripts/leaderboard/pin_suite.py", self.refused("suite", "bare.json"))

    def test_suites_are_described(self) -> None:
        self.assertIn("attnbench-2026", attnbench(MEASURED.folder, "suite").stdout)
        described = attnbench(MEASURED.folder, "suite", "small-suite.json").stdout
        self.assertIn("ranked by: error of the output", described)
        self.assertIn("attnbench run speed:blocks=8,turn=0.1", described)


def forge(
    name: str,
    *,
    bundle: str = "built-in.zip",
    files: Callable[[Files], None] | None = None,
    manifest: Callable[[dict[str, Any]], None] | None = None,
    rows: str = "",
    sealed: bool = True,
    machine: str = "",
) -> None:
    """A bundle with changes, and with the right hashes and digests unless `sealed` is false."""
    content = MEASURED.files(bundle)
    described = json.loads(content.pop(MANIFEST))
    if rows or machine:
        path = MEASURED.folder / "forged.db"
        path.write_bytes(content[RESULTS])
        with closing(sqlite3.connect(path)) as connection:
            if machine:
                connection.execute("UPDATE cell SET machine = ? WHERE machine <> ''", [machine])
            connection.executescript(rows)
            if sealed:
                example_stores.seal(connection)
            connection.commit()
        content[RESULTS] = path.read_bytes()
        path.unlink()
    if files:
        files(content)
    described["files"] = {one: hashlib.sha256(bytes_).hexdigest() for one, bytes_ in content.items()}
    if manifest:
        manifest(described)
    with zipfile.ZipFile(MEASURED.folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, bytes_ in {MANIFEST: json.dumps(described).encode(), **content}.items():
            archive.writestr(one, bytes_)


def edited(name: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return edit


LOCAL = "(SELECT id FROM cell WHERE method LIKE 'local%' AND experiment LIKE 'attention%' AND input = 'gaussian')"
UNIFORM = "(SELECT id FROM cell WHERE method = 'uniform' AND experiment LIKE 'attention%' AND input = 'gaussian')"
ERROR = "metric = 'relative_output_error'"


class ForgedTest(unittest.TestCase):
    def reason(self, bundle: str, *others: str) -> str:
        paths = [MEASURED.folder / name for name in (*others, bundle)]
        submissions, refused = taken(paths, MEASURED.suite, {"local", "linear", "performer"})
        self.assertEqual([name for name, _ in refused], [bundle])
        self.assertEqual(len(submissions), len(others))
        return refused[0][1]

    def forged(self, expected: str, **changes: Any) -> None:
        forge("forged.zip", **changes)
        self.assertIn(expected, self.reason("forged.zip"))

    def archive(self, *entries: tuple[zipfile.ZipInfo | str, bytes]) -> str:
        """The reason for a bundle with further entries."""
        with zipfile.ZipFile(MEASURED.folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in MEASURED.files("built-in.zip").items():
                archive.writestr(name, content)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a name that is there twice
                for entry, content in entries:
                    archive.writestr(entry, content)
        return self.reason("archive.zip")

    def test_no_archive(self) -> None:
        (MEASURED.folder / "text.zip").write_text("hello")
        self.assertIn("cannot be read as a zip file", self.reason("text.zip"))
        whole = (MEASURED.folder / "built-in.zip").read_bytes()
        (MEASURED.folder / "half.zip").write_bytes(whole[: len(whole) // 2])
        self.assertIn("cannot be read as a zip file", self.reason("half.zip"))
        self.assertIn("cannot be read as a zip file", self.reason("missing.zip"))

    def test_a_path_that_leaves_the_bundle(self) -> None:
        for path in (
            "../../etc/passwd",
            "/etc/passwd",
            "plugin/../x",
            "plugin/a/../../x",
            "plugin/.hidden",
            "plugin\\x",
        ):
            self.assertIn("which no bundle has", self.archive((path, b"x")), path)
        self.assertFalse((MEASURED.folder.parent / "etc").exists())

    def test_a_link(self) -> None:
        link = zipfile.ZipInfo("plugin/link.py")
        link.external_attr = 0o120777 << 16
        self.assertIn("is a link", self.archive((link, b"/etc/passwd")))

    def test_a_file_that_is_there_twice(self) -> None:
        self.assertIn("twice", self.archive((CHECK, b"{}")))

    def test_too_many_files(self) -> None:
        self.assertIn("at most 64", self.archive(*((f"plugin/{i}.py", b"") for i in range(64))))

    def test_a_file_that_expands_too_far(self) -> None:
        self.assertIn("at most 1,048,576 are read", self.archive(("plugin/zeros.py", bytes(2 << 20))))

    def test_a_size_that_is_a_lie(self) -> None:
        forge("liar.zip")
        content = bytearray((MEASURED.folder / "liar.zip").read_bytes())
        place = content.rindex(b"PK\x01\x02" + content[content.rindex(b"PK\x01\x02") + 4 :][:42])  # the last entry's
        struct.pack_into("<I", content, place + 24, 10)
        (MEASURED.folder / "liar.zip").write_bytes(content)
        self.assertRegex(self.reason("liar.zip"), "cannot be read|has not the 10 bytes")

    def test_an_encrypted_file(self) -> None:
        forge("locked.zip")
        content = bytearray((MEASURED.folder / "locked.zip").read_bytes())
        content[content.rindex(b"PK\x01\x02") + 8] |= 1
        (MEASURED.folder / "locked.zip").write_bytes(content)
        self.assertIn("is encrypted", self.reason("locked.zip"))

    def test_a_file_that_is_missing(self) -> None:
        self.forged("lacks check.json", files=lambda files: files.pop(CHECK))

    def test_a_manifest_that_is_none(self) -> None:
        self.forged("has the format 'another'", manifest=lambda made: made.update(format="another"))
        self.forged("does not list the files", manifest=lambda made: made["files"].pop(CHECK))
        self.forged("there is no licence", manifest=lambda made: made.update(licence=" "))
        self.forged("authors is not a list", manifest=lambda made: made.update(authors=["\x1b[2Jme"]))
        self.forged("authors is not a list", manifest=lambda made: made.update(authors="me"))
        self.forged("methods names one twice", manifest=lambda made: made.update(methods=["local", "local"]))
        self.forged("bibtex is not a text", manifest=lambda made: made.update(bibtex=7))
        self.forged("has not the members", manifest=lambda made: made.update(more=1))

    def test_a_file_that_was_altered(self) -> None:
        self.forged("check.json was altered", manifest=lambda made: made["files"].update({CHECK: "0" * 64}))

    def test_another_suite(self) -> None:
        self.forged("measured on the suite 'another'", manifest=lambda made: made.update(suite="another"))

    def test_an_edited_suite(self) -> None:
        self.forged("it was edited", files=edited(SUITE, b'"replicates": 2', b'"replicates": 1'))

    def test_a_forged_number(self) -> None:
        self.forged(
            "has another digest than its values",
            rows=f"UPDATE measurement SET value = 0.001 WHERE cell = {LOCAL} AND {ERROR}",
            sealed=False,
        )

    def test_a_number_of_the_baseline(self) -> None:
        self.forged(
            "are not those of the suite",
            rows=f"UPDATE measurement SET value = value * 1.00001 WHERE cell = {UNIFORM} AND {ERROR}",
        )

    def test_a_number_that_cannot_be(self) -> None:
        self.forged("which cannot be", rows=f"UPDATE measurement SET value = -1 WHERE cell = {LOCAL} AND {ERROR}")
        self.forged("which cannot be", rows=f"UPDATE measurement SET value = 9e999 WHERE cell = {LOCAL} AND {ERROR}")

    def test_a_forged_error_beside_an_honest_one(self) -> None:
        forge("forged.zip", rows=f"UPDATE measurement SET value = value / 2 WHERE cell = {LOCAL} AND {ERROR}")
        paths = [MEASURED.folder / name for name in ("forged.zip", "built-in.zip", "mine.zip")]
        submissions, refused = taken(paths, MEASURED.suite, {"local", "linear"})
        self.assertEqual([one.bundle.manifest.methods for one in submissions], [["blur"]])
        self.assertEqual([name for name, _ in refused], ["built-in.zip", "forged.zip"])
        for _, reason in refused:  # nobody can say which of them is right
            self.assertIn("relative_output_error of local is", reason)

    def test_a_missing_row(self) -> None:
        self.forged(
            "local lacks 1 rows of error, the first on gaussian",
            rows=f"DELETE FROM measurement WHERE cell = {LOCAL} AND replicate = 1;"
            f"DELETE FROM replicate WHERE cell = {LOCAL} AND replicate = 1;",
        )

    def test_a_row_too_many(self) -> None:
        self.forged(
            "rows of error too many",
            rows=f"INSERT INTO replicate SELECT cell, 7, run, ending, reason, seconds, finished, measurements, digest FROM "
            f"replicate WHERE cell = {LOCAL} AND replicate = 1;"
            f"INSERT INTO measurement SELECT cell, 7, metric, unit, shape, value, array FROM measurement "
            f"WHERE cell = {LOCAL} AND replicate = 1;",
        )

    def test_a_failure_without_a_reason(self) -> None:
        self.forged(
            "no reason",
            rows=f"DELETE FROM measurement WHERE cell = {LOCAL} AND replicate = 1;"
            f"UPDATE replicate SET ending = 'failed', measurements = 0 WHERE cell = {LOCAL} AND replicate = 1;",
        )

    def test_two_budgets_of_one_method(self) -> None:
        self.forged(
            "local has rows of",
            rows="INSERT INTO cell SELECT 900, 'k', experiment, 'local:window=31', input, nq, n, d, dv, causal, mask_offset, "
            "mask_keys, precision, heads, logit_scale, seed, threads, parameters, source_version, machine FROM cell "
            f"WHERE id = {LOCAL};"
            "INSERT INTO replicate SELECT 900, replicate, run, ending, reason, seconds, finished, measurements, digest "
            f"FROM replicate WHERE cell = (SELECT min(id) FROM cell WHERE method LIKE 'local%' AND input = 'gaussian' AND experiment LIKE 'attention%');"
            "INSERT INTO measurement SELECT 900, replicate, metric, unit, shape, value, array FROM measurement "
            "WHERE cell = (SELECT min(id) FROM cell WHERE method LIKE 'local%' AND input = 'gaussian' AND experiment LIKE "
            "'attention%')",
        )

    def test_a_built_in_method_beside_a_plugin(self) -> None:
        """Its errors are compared with those of a bundle without a plugin."""
        forge("mixed.zip", files=with_file("plugin/x.py", b"x = 1"))
        forge("forged.zip", rows=f"UPDATE measurement SET value = value / 2 WHERE cell = {LOCAL} AND {ERROR}")
        paths = [MEASURED.folder / name for name in ("forged.zip", "mixed.zip")]
        self.assertEqual(len(taken(paths, MEASURED.suite, {"local", "linear"})[1]), 2)

    def test_a_swapped_method(self) -> None:
        def swap(made: dict[str, Any]) -> None:
            made["methods"] = ["performer", "linear"]

        self.forged("check.json is of other methods", manifest=swap)
        self.forged("has rows of local", manifest=swap, files=edited(CHECK, b'"spec": "local"', b'"spec": "performer"'))

    def test_rows_of_a_method_that_is_not_submitted(self) -> None:
        self.forged(
            "has rows of linear",
            manifest=lambda made: made.update(methods=["local"]),
            files=lambda files: files.update({CHECK: without(files[CHECK], "linear")}),
        )

    def test_rows_of_another_experiment(self) -> None:
        self.forged("belong to no run of the suite", rows="UPDATE cell SET n = 64 WHERE experiment LIKE 'speed%'")

    def test_a_failed_check(self) -> None:
        subjects = json.loads(MEASURED.files("built-in.zip")[CHECK])["subjects"]
        passed = sum(one["outcome"] == "PASS" for one in next(s for s in subjects if s["spec"] == "local")["results"])
        self.forged(
            f"{passed} claims of local fail its check", files=edited(CHECK, b'"outcome": "PASS"', b'"outcome": "FAIL"')
        )

    def test_a_check_of_nothing(self) -> None:
        self.forged("tests nothing of local", files=edited(CHECK, b'"outcome": "PASS"', b'"outcome": "SKIPPED"'))

    def test_a_check_that_lets_much_pass(self) -> None:
        self.forged("an error rate of 0.5", files=edited(CHECK, b'"error_rate": 1e-06', b'"error_rate": 0.5'))
        self.forged("is not a JSON object", files=lambda files: files.update({CHECK: b"[NaN]"}))

    def test_a_plugin_without_its_source(self) -> None:
        self.forged("has no source of it", bundle="mine.zip", files=lambda files: files.pop("plugin/mine.py"))

    def test_another_programs_database(self) -> None:
        self.forged("a foreign trigger", rows="CREATE TRIGGER t AFTER INSERT ON cell BEGIN SELECT 1; END")
        self.forged("another program's database", rows="PRAGMA application_id = 7")

    def test_two_machines_in_one_bundle(self) -> None:
        self.forged(
            "timings of 2 machines",
            rows="UPDATE cell SET machine = 'other' WHERE method LIKE 'local%' AND experiment LIKE 'speed%'",
        )

    def test_a_device_of_another_machine(self) -> None:
        for machine in ("other, H", "H"):
            self.forged(
                f"timings on {machine}, which is no device",
                rows=f"UPDATE cell SET machine = '{machine}', method = method || iif(instr(method, ':'), ',', ':') || "
                "'device=cuda' WHERE method LIKE 'local%' AND experiment LIKE 'speed%'",
            )

    def test_a_bundle_that_is_given_twice(self) -> None:
        shutil.copy(MEASURED.folder / "built-in.zip", MEASURED.folder / "copy.zip")
        self.assertIn("given twice", self.reason("copy.zip", "built-in.zip"))

    def test_flipped_bytes_are_refused_or_change_no_file(self) -> None:
        whole, honest = (MEASURED.folder / "mine.zip").read_bytes(), MEASURED.files("mine.zip")
        random = Random(1)
        for place in range(60):
            changed = bytearray(whole)
            changed[random.randrange(len(whole))] ^= 1 << random.randrange(8)
            (MEASURED.folder / "flipped.zip").write_bytes(changed)
            submissions, refused = taken([MEASURED.folder / "flipped.zip"], MEASURED.suite, set())
            self.assertEqual(len(submissions) + len(refused), 1, place)
            for one in submissions:  # the flip was in a date or in the name of the archive's system
                self.assertEqual(one.bundle.files, honest, place)

    def test_members_of_any_kind_are_refused_or_taken(self) -> None:
        random = Random(2)
        values: list[Any] = [None, 7, -1.5, "", "x" * 10**6, [], [[]], {}, True, ["local", 3], {"a": {"b": []}}]
        for name in (MANIFEST, CHECK):
            described = json.loads(MEASURED.files("built-in.zip")[name])
            for member in described:
                changed = described | {member: random.choice(values)}
                if name == MANIFEST:
                    forge("kinds.zip", manifest=replaced(changed))
                else:
                    forge("kinds.zip", files=with_file(name, json.dumps(changed).encode()))
                submissions, refused = taken([MEASURED.folder / "kinds.zip"], MEASURED.suite, {"local", "linear"})
                self.assertEqual(len(submissions) + len(refused), 1, member)

    def test_an_honest_bundle_is_taken(self) -> None:
        """All of these begin with `forge` without a change."""
        forge("honest.zip")
        self.assertEqual(MEASURED.board("honest.zip", output="honest").returncode, 0)

    def test_refused_bundles_are_on_the_site_with_their_reasons(self) -> None:
        (MEASURED.folder / "text<b>.zip").write_text("hello")
        done = MEASURED.board("built-in.zip", "text<b>.zip", output="with-refused")
        self.assertEqual(done.returncode, 1)
        self.assertIn("refused: text<b>.zip: it cannot be read as a zip", done.stdout)
        self.assertIn(
            "text&lt;b&gt;.zip</code>: it cannot be read as a zip",
            (MEASURED.folder / "with-refused/index.html").read_text(),
        )


def replaced(members: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(made: dict[str, Any]) -> None:
        made.clear()
        made.update(members)

    return change


def with_file(name: str, content: bytes) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files[name] = content

    return change


def without(report: bytes, spec: str) -> bytes:
    made = json.loads(report)
    made["subjects"] = [subject for subject in made["subjects"] if subject["spec"] != spec]
    return json.dumps(made).encode()


class SuitesTest(unittest.TestCase):
    def test_the_conditions_of_a_suite_are_those_that_the_program_measures(self) -> None:
        """A condition that moved, as by a new recorded row, refuses every bundle, after all has been measured."""
        root = HERE.parents[2]
        suites = sorted((root / "experiments/suites").glob("*.json"))
        self.assertTrue(suites)
        for path in suites:
            with self.subTest(suite=path.stem), tempfile.TemporaryDirectory() as folder:
                pin = [str(root / "scripts/leaderboard/pin_suite.py"), str(Path(folder) / path.name)]
                shutil.copy(path, folder)
                subprocess.run([*pin, "--program", str(PROGRAM)], check=True, capture_output=True)
                found, published = (read_suite(at).baseline for at in (Path(folder) / path.name, path))
                self.assertEqual(sorted(found), sorted(published))
                for condition, value in published.items():
                    self.assertTrue(math.isclose(value, found[condition], rel_tol=1e-6) or value != value, condition)


if __name__ == "__main__":
    if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
        PROGRAM = Path(sys.argv.pop(1)).resolve()
    unittest.main()
