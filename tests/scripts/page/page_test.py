#!/usr/bin/python3
"""The page of report.py in headless Chromium: what one sees, filters, hovers, downloads and shares.

Run as tests/scripts/page/page_test.py PROGRAM; exit code 77 (skipped) where Chromium or its driver is missing.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[3]
REPORT = ROOT / "scripts" / "report.py"
sys.path[:0] = [str(REPORT.parent), str(Path(__file__).resolve().parents[1])]
PROGRAM = ""
MOST_BYTES = 1_500_000  # of the page, before a reader opens anything
PATIENCE = 300  # seconds for what takes one on an idle machine
OTHER_MACHINE = "there, M, 8 cores"
PAPER = "A & B 2020, arXiv:2001.00001"
SOURCE = f"{PAPER}, section 1"
SPREAD = "stable_rank"  # a metric whose values are very large and very small, and of both signs

try:
    import numpy as np
    from matplotlib.image import imread
    from selenium import webdriver
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.remote.webelement import WebElement
    from selenium.webdriver.support.select import Select
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --ci installs it")
    sys.exit(77)

import report
import style
from example_stores import seal

USED_ROLES = ("link", "button", "combobox", "searchbox", "textbox", "checkbox", "image", "img", "table")
# Words whose contrast with what is behind them is below 4.5 (WCAG 2, 1.4.3).
FAINT_WORDS = """(() => {
  const channels = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const luminance = c => channels(c).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    const c = getComputedStyle(e).backgroundColor;
    return channels(c).length === 4 && channels(c)[3] === 0 ? (e.parentElement ? behind(e.parentElement) : "rgb(255, 255, 255)") : c;
  };
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  return [...document.querySelectorAll("main *, header *")].filter(e => own(e) && e.getClientRects().length).filter(e => {
    const [a, b] = [luminance(getComputedStyle(e).color), luminance(behind(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
  }).map(e => e.outerHTML.slice(0, 80));
})()"""

SCRATCH: tempfile.TemporaryDirectory[str]
BROWSER: webdriver.Chrome


def make_store(path: Path) -> None:
    """Two recipes as if at quick size: a verdict is not as expected, a cell crashed, timings are of two machines."""
    subprocess.run(
        [PROGRAM, "reproduce", "causal-rank", "decode", "--smoke", "--results", path, "-o", path.parent / "smoke"],
        check=True,
        capture_output=True,
    )
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("UPDATE reproduction SET size = 'quick'")
        store.execute("UPDATE verdict SET outcome = 'OPEN'")
        store.execute(
            "UPDATE verdict SET outcome = 'REFUTED', expected = 'HOLDS', source = ? "
            "WHERE recipe = 'causal-rank' AND position = 0",
            [SOURCE],
        )
        for remainder, value in enumerate((1e-5, -3, 0.25, -0.5, 20)):  # which texts have in another order
            store.execute(
                "UPDATE measurement SET value = ? WHERE metric = ? AND cell % 5 = ?", [value, SPREAD, remainder]
            )
        crashed = store.execute("SELECT max(id) FROM cell WHERE method = 'softmax' AND machine = ''").fetchone()
        store.execute("UPDATE replicate SET ending = 'crashed', reason = 'signal 11' WHERE cell = ?", crashed)
        store.execute("DELETE FROM measurement WHERE cell = ?", crashed)
        columns = [row[1] for row in store.execute("PRAGMA table_info(cell)") if row[1] not in ("id", "key", "machine")]
        store.execute(
            f"INSERT INTO cell(key, machine, {', '.join(columns)}) SELECT key || '-there', ?, {', '.join(columns)} "
            "FROM cell WHERE machine <> ''",
            [OTHER_MACHINE],
        )
        for table in ("replicate", "measurement"):
            names = [row[1] for row in store.execute(f"PRAGMA table_info({table})") if row[1] != "cell"]
            store.execute(
                f"INSERT INTO {table}(cell, {', '.join(names)}) SELECT there.id, {', '.join('t.' + n for n in names)} "
                f"FROM {table} t JOIN cell here ON here.id = t.cell JOIN cell there ON there.key = here.key || '-there'"
            )
        seal_all(store)


def seal_all(store: sqlite3.Connection) -> None:
    """The counts and digests of the changed rows, as if attnbench had written them."""
    store.execute(
        "UPDATE replicate SET measurements = (SELECT count(*) FROM measurement m "
        "WHERE m.cell = replicate.cell AND m.replicate = replicate.replicate)"
    )
    seal(store)


def page_of(store: Path, into: Path) -> Path:
    subprocess.run([PROGRAM, "plot", store, "--points"], check=True)
    with mock.patch.object(sys, "argv", ["report.py", str(store), "-o", str(into)]), redirect_stdout(StringIO()):
        if report.main() != 0:
            raise AssertionError(f"report.py of {store.name} failed")
    return into / "index.html"


def setUpModule() -> None:
    global SCRATCH, BROWSER
    SCRATCH = tempfile.TemporaryDirectory()
    folder = Path(SCRATCH.name)
    make_store(folder / "results.db")
    page_of(folder / "results.db", folder / "page")
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder / "downloads")})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    BROWSER = webdriver.Chrome(service=Service(shutil.which("chromedriver") or ""), options=options)


def tearDownModule() -> None:
    BROWSER.quit()
    SCRATCH.cleanup()


class InBrowser(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(SCRATCH.name)
        self.scripts(True)

    def scripts(self, run: bool) -> None:
        """Whether the browser runs the page's scripts."""
        self.scripts_run = run
        self.cdp("Emulation.setScriptExecutionDisabled", value=not run)

    def cdp(self, command: str, **arguments: Any) -> None:
        BROWSER.execute_cdp_cmd(command, arguments)

    def open(self, fragment: str = "", page: Path | None = None, width: int = 1280, **features: str) -> None:
        """Shows the page as new: at a width, with media features such as prefers_color_scheme."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=wanted)
        BROWSER.get("about:blank")
        BROWSER.get((page or self.folder / "page" / "index.html").as_uri() + fragment)
        if self.scripts_run:
            # The page restores its fragment in a timer that it sets when it is loaded. A later timer comes after it.
            BROWSER.execute_async_script("setTimeout(arguments[0])")

    def js(self, expression: str, *arguments: Any) -> Any:
        return BROWSER.execute_script(f"return {expression}", *arguments)

    def one(self, selector: str) -> WebElement:
        return BROWSER.find_element(By.CSS_SELECTOR, selector)

    def every(self, selector: str) -> list[WebElement]:
        return BROWSER.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        end = time.monotonic() + PATIENCE
        while True:
            if found := condition():
                return found
            if time.monotonic() > end:
                self.fail(f"after {PATIENCE} s still not: {what}; the console says {BROWSER.get_log('browser')}")
            time.sleep(0.05)

    def wait_for_plot(self) -> None:
        self.wait(lambda: self.js("document.getElementById('plot-words')?.textContent"), "a plot")

    def query(self, sql: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(self.folder / "results.db")) as store:
            return store.execute(sql, values).fetchall()

    def cells_of(self, recipe: str) -> set[str]:
        return set(json.loads(self.query("SELECT cells FROM reproduction WHERE recipe = ?", recipe)[0][0]))

    def traces(self, name: str = "") -> list[Any]:
        """The traces that Plotly draws: [name, number of points] each."""
        return [
            trace
            for trace in self.js("document.getElementById('plot').data.map(t => [t.name, t.x.length])")
            if name in trace[0]
        ]

    def asked(self) -> set[str]:
        """The addresses that the browser has asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in BROWSER.get_log("performance")]
        return {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}

    def assert_quiet(self) -> None:
        """Nothing on the console, and nothing asked of the network."""
        self.assertEqual(BROWSER.get_log("browser"), [])
        outside = {url for url in self.asked() if not url.startswith(("file:", "data:", "blob:", "about:"))}
        self.assertEqual(outside, set())


class Reading(InBrowser):
    def test_it_is_small_asks_for_nothing_and_does_not_move(self) -> None:
        self.assertLess((self.folder / "page" / "index.html").stat().st_size, MOST_BYTES)
        self.asked()
        self.open()
        self.js("document.querySelector('figure').scrollIntoView()")
        self.wait(lambda: self.js("document.querySelector('figure img').naturalWidth"), "a figure")
        files = {Path(url).name for url in self.asked()}
        self.assertIn("index.html", files)
        self.assertFalse({"plotly.js", "cells.js"} & files)
        shifts = self.js(
            "new Promise(done => new PerformanceObserver(list => done(list.getEntries().map(e => e.value)))"
            ".observe({type: 'layout-shift', buffered: true}) ?? setTimeout(() => done([]), 500))"
        )
        # Controls that a script adds move what is at the end of the first screen: 0.006, or 0.011 if the screen was painted
        # before. Browsers call a page steady below 0.1.
        self.assertLess(sum(shifts), 0.1)
        self.js("document.getElementById('cells').scrollIntoView()")
        self.wait_for_plot()
        asked = self.asked()
        self.assertLessEqual({"plotly.js", "cells.js"}, {Path(url).name for url in asked})
        self.assertEqual({url for url in asked if not url.startswith(("file:", "data:", "blob:"))}, set())
        self.assert_quiet()

    def test_a_page_without_its_folder_says_which_file_is_missing(self) -> None:
        alone = self.folder / "alone"
        alone.mkdir(exist_ok=True)
        shutil.copy(self.folder / "page" / "index.html", alone)
        self.open("#cells=recipe:decode", page=alone / "index.html")
        words = self.wait(lambda: self.one("#plot-words").text, "a word on the missing file")
        self.assertIn("cells.js is not beside this page", words)
        BROWSER.get_log("browser")

    def test_everything_that_a_reader_uses_has_a_name_and_contrast(self) -> None:
        """An audit: names of links, buttons, controls and images in the accessibility tree; contrast of all words."""
        for scheme in ("light", "dark"):
            with self.subTest(scheme=scheme):
                self.open(prefers_color_scheme=scheme)
                self.js("[...document.querySelectorAll('details')].forEach(d => d.open = true)")
                tree = BROWSER.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
                used = [n for n in tree if not n["ignored"] and n["role"]["value"] in USED_ROLES]
                self.assertGreater(len(used), 50)
                self.assertEqual([n["role"]["value"] for n in used if not n.get("name", {}).get("value")], [])
                self.assertEqual(self.js(FAINT_WORDS), [])
                levels = self.js("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
                self.assertEqual([(a, b) for a, b in zip(levels, levels[1:]) if b > a + 1], [])

    def test_a_claim_of_a_paper_is_found_in_three_presses(self) -> None:
        self.open()
        self.one("nav a[href='#literature']").click()
        (paper,) = [p for p in self.every(".paper > summary") if PAPER in p.text]
        paper.click()
        (claim,) = paper.find_element(By.XPATH, "..").find_elements(By.CSS_SELECTOR, ".claim > summary")
        self.assertIn("REFUTED", claim.text)
        claim.click()
        self.assertIn("Numbers.", claim.find_element(By.XPATH, "..").text)

    def test_a_figure_is_enlarged_and_closed(self) -> None:
        self.open()
        link = self.one("a.picture")
        self.js("arguments[0].scrollIntoView()", link)
        link.click()
        large = self.wait(lambda: self.js("document.querySelector('.zoom[open] img')?.naturalWidth"), "a large figure")
        self.assertGreater(large, 100)
        self.one(".zoom button[name=close]").click()
        self.assertEqual(self.every(".zoom[open]"), [])

    def test_a_figure_becomes_a_plot_with_values_and_a_legend_that_hides_series(self) -> None:
        self.open()
        link = self.one("a.picture")
        self.js("arguments[0].scrollIntoView()", link)
        link.click()
        self.one(".zoom button[name=plot]").click()
        self.wait(lambda: self.every(".zoom .plots .legendtext"), "a legend")
        names = [text.text for text in self.every(".zoom .plots .legendtext")]
        self.assertIn("Performer", names)
        first = "document.querySelector('.zoom .plots > div').data[0]"
        self.assertRegex(self.js(f"{first}.text[0]"), r"s<br>at 64<br>1 replicate")
        self.one(".zoom .plots .legendtoggle").click()
        self.wait(lambda: self.js(f"{first}.visible") == "legendonly", "a hidden series")
        self.one(".zoom button[name=plot]").click()
        self.assertTrue(self.one(".zoom img").is_displayed())

    def test_the_table_of_methods_sorts_by_its_headers(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "results.db"
            words = ["reproduce", "quality-speed-memory", "--smoke", "--results", str(store), "-o", f"{folder}/page"]
            subprocess.run([PROGRAM, *words], check=True, capture_output=True)
            BROWSER.get((Path(folder) / "page" / "index.html").as_uri())
            header = self.every("table.compared thead button")[2]
            values = "[...document.querySelectorAll('table.compared tbody tr')].map(r => r.cells[2].dataset.value)"
            for order, sign in (("ascending", 1), ("descending", -1)):
                header.click()
                found = self.js(values)
                numbers = [sign * float(value) for value in found if value is not None]
                self.assertEqual(numbers, sorted(numbers), order)
                self.assertGreater(len(set(numbers)), 4)
                self.assertEqual(found[len(numbers) :], [None] * (len(found) - len(numbers)))
                self.assertEqual(self.js("document.querySelector('table.compared th[aria-sort]').ariaSort"), order)
            self.assertEqual(self.every("table.compared td svg circle")[0].tag_name, "circle")

    def test_links_lead_somewhere(self) -> None:
        self.open()
        for link in self.js("[...document.querySelectorAll('main a, nav a')].map(a => a.getAttribute('href'))"):
            with self.subTest(link=link):
                if link.startswith("#"):
                    self.assertTrue(self.js("document.getElementById(arguments[0]) !== null", link[1:]))
                else:
                    self.assertTrue((self.folder / "page" / link).exists())

    def test_a_verdict_that_is_not_as_expected_is_marked(self) -> None:
        self.open()
        marks = "[...document.querySelectorAll('.claim .unexpected')]"
        (row,) = self.js(f"{marks}.map(mark => mark.closest('.claim').textContent)")
        self.assertIn("REFUTED", row)
        self.assertIn("HOLDS", row)
        self.assertIn("A & B", row)

    def test_a_smoke_run_is_compared_with_nothing(self) -> None:
        self.open(page=self.folder / "smoke" / "index.html")
        self.assertIn("smoke sizes", self.one(".notice").text)
        self.assertEqual(self.every(".unexpected"), [])

    def test_without_javascript_verdicts_and_figures_are_there(self) -> None:
        self.scripts(False)
        self.open("#literature")
        self.assertEqual(len(self.every(".claim")), self.query("SELECT count(*) FROM verdict")[0][0])
        self.assertEqual(len(self.every("figure img")), self.query("SELECT count(*) FROM figure")[0][0])
        self.assertFalse(self.one("#verdict-form").is_displayed())
        self.assertFalse(self.one("#cells-form").is_displayed())
        self.assertFalse(self.one("#figure-form").is_displayed())
        self.assertTrue(self.one("nav").is_displayed())
        self.assertIn("attnbench export", self.one("noscript").text)

    def test_on_paper_are_verdicts_and_figures_alone(self) -> None:
        self.open()
        self.cdp("Emulation.setEmulatedMedia", media="print")
        self.assertTrue(self.one(".paper").is_displayed())
        self.assertTrue(self.one("figure img").is_displayed())
        for hidden in ("#explorer", "#verdict-form", "nav"):
            self.assertFalse(self.one(hidden).is_displayed(), hidden)

    def test_the_navigation_stays_at_hand(self) -> None:
        for width in (1280, 390):
            with self.subTest(width=width):
                self.open(width=width)
                self.js("document.getElementById('runs').scrollIntoView()")
                bar = self.js("document.querySelector('nav').getBoundingClientRect().toJSON()")
                self.assertEqual(bar["top"], 0)
                self.assertLess(bar["height"], 60)
                self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
                self.assertGreaterEqual(self.one("#runs").rect["y"] - self.js("scrollY"), bar["bottom"] - 2)
                self.one("nav a[href='#top']").click()
                self.assertEqual(self.js("document.querySelector('h1').getBoundingClientRect().top > 0"), True)

    def test_figures_are_found_by_their_words_and_curves(self) -> None:
        figures = "[...document.querySelectorAll('figure')].filter(f => f.getClientRects().length).map(f => f.id)"
        self.open()
        every = self.js(figures)
        self.one("#figure-form [name=figure]").send_keys("DECODE softmax")
        self.wait(lambda: "of" in self.one("#figure-words").text, "a search")
        found = self.js(figures)
        self.assertTrue(found)
        self.assertEqual([name for name in found if not name.startswith("figure-decode")], [])
        self.assertEqual(self.one("#figure-words").text, f"{len(found)} of {len(every)} shown")
        self.assertFalse(self.one("#recipe-causal-rank").is_displayed())
        self.open("#figure=no%20such%20words")
        self.assertEqual(self.js(figures), [])
        self.one("#figure-form [data-reset]").click()
        self.assertEqual(self.js(figures), every)

    def test_nothing_overlaps_or_sticks_out(self) -> None:
        for width, scheme in ((1280, "light"), (400, "light"), (1280, "dark")):
            with self.subTest(width=width, scheme=scheme):
                self.open("#cells=recipe:causal-rank&facet=input", width=width, prefers_color_scheme=scheme)
                self.wait_for_plot()
                self.js("[...document.querySelectorAll('details')].forEach(d => d.open = true)")
                self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
                self.assertEqual(self.overlaps(), [])
                inside, room = self.js("['scrollHeight', 'clientHeight'].map(h => document.getElementById('plot')[h])")
                self.assertLessEqual(inside, room)
                for place in ("#literature", "figure", "#cells"):
                    self.js("document.querySelector(arguments[0]).scrollIntoView()", place)
                    self.assert_drawn(dark=scheme == "dark")

    def overlaps(self) -> list[str]:
        """Neighbours of the flow of text that share room."""
        found: list[str] = self.js(
            """[...document.querySelectorAll('body, header, main, section, form, figure, tr, dl, details')].flatMap(of => {
              const shown = [...of.children].map(e => [e, e.getBoundingClientRect()])
                .filter(([e, r]) => r.width > 1 && r.height > 1 && !['absolute', 'sticky'].includes(getComputedStyle(e).position));
              return shown.flatMap(([a, r], i) => shown.slice(i + 1).filter(([_, s]) =>
                Math.min(r.right, s.right) - Math.max(r.left, s.left) > 1 &&
                Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 1)
                .map(([b]) => `${a.outerHTML.slice(0, 60)} and ${b.outerHTML.slice(0, 60)}`));
            })"""
        )
        return found

    def test_words_of_figures_do_not_cover_each_other(self) -> None:
        pictures = sorted((self.folder / "page").glob("*.svg"))
        self.assertGreater(len(pictures), 1)
        for picture in pictures:
            with self.subTest(picture=picture.name):
                self.open(page=picture)
                self.assertGreater(self.js("document.querySelectorAll('text').length"), 5)
                self.assertEqual(self.covered_labels(), [])

    def covered_labels(self) -> list[str]:
        """Words of the figure that lie on other words of it."""
        found: list[str] = self.js("""(() => {
              const words = [...document.querySelectorAll('text')].filter(t => t.textContent.trim())
                .map(t => [t, t.getBoundingClientRect()]);
              return words.flatMap(([a, r], i) => words.slice(i + 1).filter(([_, s]) =>
                Math.min(r.right, s.right) - Math.max(r.left, s.left) > 2 &&
                Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 0.5 * Math.min(r.height, s.height))
                .map(([b]) => `${a.textContent} and ${b.textContent}`));
            })()""")
        return found

    def assert_drawn(self, dark: bool) -> None:
        """The screen is paper of the right lightness with enough ink on it, at once or when the browser has painted it."""

        def drawn() -> bool:
            pixels = imread(BytesIO(BROWSER.get_screenshot_as_png()))[:, :, :3].mean(axis=2)
            paper = float(np.median(pixels))
            ink = float((abs(pixels - paper) > 0.3).mean())
            return (paper < 0.2 if dark else paper > 0.9) and ink > 0.005

        self.wait(drawn, "paper of the right lightness with ink on it")


class Filtering(InBrowser):
    def visible_verdicts(self) -> int:
        return int(self.js("document.querySelectorAll('.claim:not([hidden])').length"))

    def test_verdicts_by_outcome_source_method_and_text(self) -> None:
        self.open()
        count = self.query("SELECT count(*) FROM verdict")[0][0]
        for name, value, where in (
            ("outcome", "REFUTED", "outcome = 'REFUTED'"),
            ("outcome", "not as expected", "outcome = 'REFUTED'"),
            ("source", PAPER, f"source = '{SOURCE}'"),
            ("tested", "vq", "recipe = 'decode'"),
        ):
            with self.subTest(name=name, value=value):
                wanted = self.query(f"SELECT count(*) FROM verdict WHERE {where}")[0][0]
                self.assertLess(wanted, count)
                Select(self.one(f"#verdict-form [name={name}]")).select_by_visible_text(value)
                self.assertEqual(self.visible_verdicts(), wanted)
                self.assertEqual(self.one("#verdict-words").text, f"{wanted} of {count} shown")
                self.one("#verdict-form [data-reset]").click()
                self.assertEqual(self.visible_verdicts(), count)
        self.one("#verdict-form [name=text]").send_keys("A & B")
        self.wait(lambda: self.visible_verdicts() == 1, "one verdict")
        self.open(self.js("location.hash"))
        self.assertEqual(self.visible_verdicts(), 1)

    def test_a_verdict_leads_to_the_cells_it_rests_on(self) -> None:
        self.open()
        self.js("document.querySelectorAll('.paper, .claim').forEach(d => { d.open = true; })")
        self.one('a[aria-label="Cells of causal-rank"]').click()
        self.wait_for_plot()
        self.wait(lambda: "100 are shown" in self.one("#table-words").text, "rows")
        cells = self.cells_of("causal-rank")
        self.assertIn(f"of {len(cells)} cells", self.one("#table-words").text)
        shown = set(self.js("[...document.querySelectorAll('#table td:first-child a')].map(a => a.title)"))
        self.assertTrue(shown)
        self.assertLessEqual(shown, cells)
        key = min(shown)
        self.js(f"location.hash = 'cells=key:{key}'")
        self.wait(lambda: "of 1 cell." in self.one("#table-words").text, "one cell")

    def test_the_table_is_sorted_by_a_column(self) -> None:
        for metric in ("numerical_rank", SPREAD):
            with self.subTest(metric=metric):
                self.open(f"#cells=recipe:causal-rank&find=metric={metric}")
                self.wait_for_plot()
                self.assert_sorted_by_value()

    def assert_sorted_by_value(self) -> None:
        """Once the head of the column is pressed, and the other way round once it is pressed again."""
        names = self.js("[...document.querySelectorAll('#table th')].map(head => head.textContent)")
        column = names.index("value") + 1
        self.one(f"#table th:nth-child({column}) button").send_keys(Keys.ENTER)
        self.assertEqual(self.js("document.activeElement.textContent"), "value")
        for direction, factor in (("ascending", 1), ("descending", -1)):
            head = self.one("#table th[aria-sort]:not([aria-sort=none])")
            self.assertEqual((head.get_attribute("aria-sort"), head.text.split()[0]), (direction, "value"))
            shown = f"[...document.querySelectorAll('#table tbody td:nth-child({column})')]"
            texts = self.js(f"{shown}.map(cell => cell.textContent)")
            values = [factor * float(text) for text in texts if text]
            self.assertGreater(len(set(values)), 1)
            self.assertEqual(values, sorted(values))
            head.find_element(By.TAG_NAME, "button").click()

    def test_the_download_has_the_numbers_of_the_store(self) -> None:
        self.open("#cells=recipe:causal-rank&find=metric=numerical_rank")
        self.wait_for_plot()
        self.one("#download").click()
        file = self.folder / "downloads" / "cells.csv"
        self.wait(lambda: file.exists() and file.stat().st_size, "a download")
        with file.open() as opened:
            lines = list(csv.DictReader(opened))
        ((unit,),) = self.query("SELECT DISTINCT unit FROM measurement WHERE metric = 'numerical_rank'")
        measured: dict[str, list[float]] = {}
        for key, value in self.query(
            "SELECT key, value FROM measurement JOIN cell ON id = cell WHERE metric = 'numerical_rank'"
        ):
            measured.setdefault(key, []).append(value)
        self.assertEqual({line["cell"] for line in lines}, set(measured) & self.cells_of("causal-rank"))
        for line in lines:
            values = measured[line["cell"]]
            self.assertEqual((line["metric"], line["unit"]), ("numerical_rank", unit))
            self.assertEqual(int(line["replicates"]), len(values))
            self.assertAlmostEqual(float(line["mean"]), statistics.mean(values), delta=1e-5 * abs(float(line["mean"])))

    def test_a_method_has_its_page(self) -> None:
        self.open("#method=vq")
        self.assertTrue(self.one("[id='method=vq']").get_attribute("open"))
        self.assertTrue(self.js("document.activeElement.closest('details')?.id"))
        self.assertEqual(self.one("[id='method=vq'] ul a").get_attribute("href").split("#")[1], "recipe-decode")


class Exploring(InBrowser):
    def choose(self, name: str, value: str) -> None:
        Select(self.one(f"#cells-form [name={name}]")).select_by_value(value)
        self.wait(lambda: f"{name}=" in self.js("location.hash"), f"{name}={value} in the fragment")

    def test_a_view_is_restored_from_its_fragment(self) -> None:
        self.open("#cells")
        self.wait_for_plot()
        self.choose("cells", "recipe:causal-rank")
        self.choose("y", "stable_rank")
        self.choose("facet", "input")
        self.one("#cells-form [name=logy]").click()
        self.one("#cells-form [name=find]").send_keys("n=64")
        fragment = self.wait(lambda: "n%3D64" in self.js("location.hash") and self.js("location.hash"), "the filter")
        self.wait(lambda: "stable" in self.js("document.getElementById('plot').layout.yaxis.title.text"), "y")
        before = self.js("JSON.stringify(document.getElementById('plot').data.map(t => [t.name, t.x, t.y]))")
        self.open(fragment)
        self.wait_for_plot()
        state = "JSON.stringify(document.getElementById('plot').data.map(t => [t.name, t.x, t.y]))"
        self.wait(lambda: self.js(state) == before, "the same plot")
        self.assertEqual(self.js("document.getElementById('plot').layout.yaxis.type"), "linear")
        self.js("location.hash = 'cells=recipe:decode'")
        self.wait(lambda: self.one("#cells-form [name=find]").get_attribute("value") == "", "another view")

    def test_methods_have_the_colours_and_names_of_figures(self) -> None:
        self.open("#cells=recipe:causal-rank&facet=none")
        self.wait_for_plot()
        traces = self.js(
            "document.getElementById('plot').data.filter(t => t.line).map(t => [t.name, t.line.color, t.line.dash, t.marker.symbol])"
        )
        looks = {name: colour for name, colour, *_ in traces}
        self.assertEqual(looks["Softmax (exact)"], style.INK)
        self.assertEqual(looks["Mean of V"], style.FAINT)
        self.assertEqual(len({tuple(trace[1:]) for trace in traces}), len(traces), "two series look the same")

    def test_a_series_is_hidden_from_the_keyboard(self) -> None:
        self.open("#cells=recipe:causal-rank")
        self.wait_for_plot()
        self.assertTrue(self.traces("Mean of V"))
        button = self.one("#legend button[data-series=uniform]")
        button.send_keys(Keys.SPACE)
        self.wait(lambda: not self.traces("Mean of V"), "no series")
        self.assertEqual(self.js("document.activeElement.dataset.series"), "uniform")
        self.assertEqual(self.one("#legend button[data-series=uniform]").get_attribute("aria-pressed"), "false")
        self.assertIn("hide=uniform", self.js("location.hash"))
        self.one("#legend button[data-series=uniform]").send_keys(Keys.SPACE)
        self.wait(lambda: self.traces("Mean of V"), "the series")

    def test_a_point_says_what_it_is(self) -> None:
        self.open("#cells=recipe:causal-rank&find=method=linear")
        self.wait_for_plot()
        point = self.wait(lambda: self.every("#plot .scatterlayer .point"), "points")[0]
        self.js("arguments[0].scrollIntoView({block: 'center'})", point)

        def words_at_point() -> Any:
            ActionChains(BROWSER).move_to_element(point).perform()
            return self.js("document.querySelector('#plot .hoverlayer')?.textContent")

        words = self.wait(words_at_point, "words")
        for expected in ("linear", "n = ", "replicate"):
            self.assertIn(expected, words)

    def test_cells_that_are_not_done_are_marks(self) -> None:
        self.open("#cells=recipe:causal-rank&find=method=softmax")
        self.wait_for_plot()
        self.assertEqual(self.traces("not done"), [["not done", 1]])
        self.assertIn("1 cell not (all) done", self.one("#plot-words").text)

    def test_timings_of_two_machines_are_two_series(self) -> None:
        self.open("#cells=recipe:decode&y=seconds")
        self.wait_for_plot()
        self.assertIn(OTHER_MACHINE, self.one(".notice").text)
        there = f"Softmax (exact) on {OTHER_MACHINE}"
        self.assertEqual(self.traces("Softmax (exact) on "), [], "the recipe's own cells are of one machine")
        self.choose("cells", "experiment:decode")
        self.wait(lambda: self.traces(there), "a series of the other machine")
        names = [name for name, _ in self.traces("Softmax")]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({name.split(" on ")[1] == OTHER_MACHINE for name in names}, {True, False})

    def test_a_link_to_other_cells_forgets_the_axes_of_the_first(self) -> None:
        self.open("#cells=recipe:causal-rank")
        self.wait_for_plot()
        self.js("location.hash = 'cells=recipe:decode'")
        self.wait(lambda: self.one("#cells-form [name=cells]").get_attribute("value") == "recipe:decode", "a view")
        self.wait(lambda: "series" in self.one("#plot-words").text and self.traces(), "its points")
        self.assertEqual(self.every(".unknown"), [])

    def test_unknown_names_of_a_link_are_said_with_those_that_there_are(self) -> None:
        for fragment, unknown, known in (
            ("#cells=recipe:ranks", "“recipe:ranks” is unknown here as cells", "recipe:causal-rank"),
            ("#cells=causal-rank", "“causal-rank” is unknown here as cells", "recipe:causal-rank"),
            ("#cells=recipe:causal-rank&y=rnk", "“rnk” is unknown here as y", "numerical_rank"),
            ("#cells=recipe:causal-rank&y=seconds", "“seconds” is unknown here as y", "numerical_rank"),
            ("#cells=recipe:causal-rank&x=metric:rnk", "“metric:rnk” is unknown here as x", "n, "),
            ("#cells=recipe:causal-rank&x=method", "“method” is unknown here as x", "n, "),
            ("#cells=recipe:causal-rank&series=hue", "“hue” is unknown here as series", "name"),
            ("#cells=recipe:causal-rank&facet=hue", "“hue” is unknown here as facet", "none"),
            ("#outcome=WRONG", "“WRONG” is unknown here as outcome", "REFUTED"),
            ("#method=perfromer", "“perfromer” is unknown here as a method", "softmax"),
            ("#cels=recipe:causal-rank", "“cels” is unknown here as a name of the link", "cells"),
            ("#cells=recipe:causal-rank&yy=rank", "“yy” is unknown here as a name of the link", "y"),
        ):
            with self.subTest(fragment=fragment):
                self.open(fragment)
                notice = self.wait(lambda: next(iter(self.every(".unknown")), None), "an answer")
                before, _, after = notice.text.partition("; there is ")
                self.assertEqual(before, unknown)
                self.assertIn(known, after)
                where = "document.querySelector('.unknown').getBoundingClientRect().toJSON()"
                self.wait(lambda: 0 <= self.js(where)["top"] < self.js(where)["bottom"] <= 900, "an answer in view")
        self.open("#cells=recipe:ranks")
        self.wait_for_plot()
        self.assertEqual(self.one("#plot-words").text, "Nothing to draw, as said above.")
        self.js("location.hash = 'cells=recipe:causal-rank'")
        self.wait(lambda: not self.every(".unknown"), "no answer to a link that is right")

    def test_costs_are_an_axis_and_the_best_are_joined(self) -> None:
        self.open("#cells=experiment:decode&y=state_bytes&x=metric:seconds&pareto=least&logy=off")
        self.wait_for_plot()
        front = self.js("document.getElementById('plot').data.find(t => t.name === 'Pareto front')")
        points = self.js(
            "document.getElementById('plot').data.filter(t => t.mode !== 'lines')"
            ".flatMap(t => t.x.map((x, i) => [x, t.y[i]]))"
        )
        best = [(x, y) for x, y in points if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)]
        self.assertEqual(sorted(set(zip(front["x"], front["y"]))), sorted(set(best)))


class OwnRuns(InBrowser):
    """The page of a run of a user's own."""

    page: Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = Path(SCRATCH.name)
        # A window of 64 hides a few keys of 72: its error is small, but not 0, which a logarithmic axis does not show.
        asked = "run attention-error --methods performer local uniform --input gaussian --input model -n 72".split()
        words = [PROGRAM, *asked, "--sweep", "m=16,32", "--results", str(folder / "own.db")]
        subprocess.run(words, check=True, capture_output=True)
        cls.page = page_of(folder / "own.db", folder / "own")

    def show(self, fragment: str = "", **how: Any) -> None:
        self.open(fragment, page=self.page, **how)
        if fragment:
            self.wait_for_plot()

    def plot(self, of: str) -> Any:
        return self.js(f"document.getElementById('plot').{of}")

    def drawn(self) -> Any:
        return self.plot("data.map(t => [t.name, t.mode, t.xaxis, t.x, t.y])")

    def test_it_says_what_was_run_and_begins_with_its_figures(self) -> None:
        self.show()
        title = "Attention error: local, performer, uniform"
        self.assertEqual(self.one("h1").text, title)
        self.assertEqual(self.js("document.title"), f"{title} - attnbench report")
        headings = self.js("[...document.querySelectorAll('.card h2, h2, h3, h4')].map(h => h.textContent)")
        self.assertIn("Error of the attention matrix and of the output against exact softmax", headings)
        self.assertEqual([words for words in headings if words[:1].islower()], [])
        text = self.one("main").text
        self.assertEqual(text.count("No statement of the literature was judged here"), 1)
        self.assertEqual(text.count("attnbench reproduce"), 1)
        self.assertGreater(text.index("No statement"), text.index("Runs and environment"))
        figure = self.js("document.querySelector('main img').getBoundingClientRect().top")
        self.assertLess(figure, 300)

    def test_cells_of_several_inputs_have_a_facet_each(self) -> None:
        self.show("#cells=all")
        self.assertEqual(self.plot("layout.annotations.map(a => a.text)"), ["input=gaussian", "input=model"])
        self.assertEqual([trace[1:3] for trace in self.drawn()], [["lines+markers", "x"], ["lines+markers", "x2"]])
        self.assertEqual(self.one("#plot-words").text, "4 points in 1 series; 4 cells without m, in the table alone.")
        self.show("#cells=all&facet=none")
        self.assertEqual([trace[1] for trace in self.drawn()], ["markers"])
        self.assertRegex(
            self.one("#plot-words").text, "which differ in input, causal, scale and [0-9]+ more, are not joined"
        )
        self.show("#cells=all&series=input")
        self.assertEqual(self.plot("layout.annotations"), [])
        self.assertEqual([trace[1] for trace in self.drawn()], ["lines+markers"] * 2)

    def test_metrics_have_the_labels_of_figures(self) -> None:
        self.show("#cells=all")
        self.assertEqual(self.plot("layout.yaxis.title.text"), "|A'V - AV| / |AV| (Frobenius), mean")
        self.assertIn("|A'V - AV| / |AV| (Frobenius), mean = ", self.plot("data[0].text[0]"))
        self.show("#cells=all&y=top_agreement&x=metric:flops")
        self.assertEqual(self.plot("layout.yaxis.title.text"), "top agreement, mean")
        self.assertEqual(self.plot("layout.xaxis.title.text"), "flops (FLOP)")

    def test_the_table_begins_with_the_value_of_the_chosen_metric(self) -> None:
        self.show("#cells=all&y=relative_frobenius")
        names = self.js("[...document.querySelectorAll('#table th')].map(head => head.textContent)")
        self.assertEqual(names[:6], ["cell", "method", "value", "low", "high", "metric"])
        self.assertLess(names.index("metric"), names.index("input"))
        metrics = self.js("[...document.querySelectorAll('#table tbody tr')].map(row => row.cells[5].textContent)")
        self.assertEqual([metric == "relative_frobenius" for metric in metrics[:9]], [True] * 8 + [False])
        self.show("#cells=all", width=390)
        value = self.js("document.querySelector('#table tbody tr').cells[2].getBoundingClientRect().right")
        self.assertLess(value, 390)

    def test_a_press_on_a_point_or_a_row_shows_the_cell_below_the_plot(self) -> None:
        self.show("#cells=all")
        before = self.drawn()
        key = self.plot("data[1].customdata[0]")
        point = self.every("#plot .scatterlayer .point")[2]
        self.js("arguments[0].scrollIntoView({block: 'center'})", point)
        ActionChains(BROWSER).move_to_element(point).click().perform()
        self.wait(lambda: self.one("#cell").is_displayed(), "the cell")
        self.assertEqual(self.drawn(), before)
        self.assertIn(f"cell={key}", self.js("location.hash"))
        self.assertEqual(self.one("#cell h3 span").text, "performer:m=16")
        self.assertIn("input = model", self.one("#cell p").text)
        first = self.js("[...document.querySelector('#cell tbody tr').cells].map(cell => cell.textContent)")
        self.assertEqual((first[0], float(first[1])), ("relative_output_error", float(f"{before[1][4][0]:.4g}")))
        for width in (1280, 390):
            self.show(f"#cells=all&cell={key}", width=width)
            self.assertTrue(self.one("#cell").is_displayed())
            self.assertEqual(self.drawn(), before)
            below = self.js(
                "['plot', 'cell', 'table'].map(id => document.getElementById(id).getBoundingClientRect().top)"
            )
            self.assertEqual(below, sorted(below))
            self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
        row = self.every("#table tbody a")[3]
        self.js("arguments[0].scrollIntoView({block: 'center'})", row)
        row.send_keys(Keys.ENTER)
        other = row.get_attribute("title")
        self.wait(lambda: f"cell={other}" in self.js("location.hash"), "the row's cell")
        self.assertEqual(self.drawn(), before)
        self.assertEqual(self.js("document.activeElement.id"), "cell")
        self.one("#cell button").click()
        self.wait(lambda: not self.one("#cell").is_displayed(), "no cell")
        self.assertNotIn("cell=", self.js("location.hash").replace("cells=", ""))
        self.show("#cells=all&cell=nokey")
        self.assertIn("“nokey” is the key of none of these 8 cells", self.one("#cell").text)

    def test_an_enlarged_figure_leads_to_the_explorer_with_its_axes(self) -> None:
        self.show()
        link = self.one("a.picture")
        self.js("arguments[0].scrollIntoView()", link)
        link.click()
        self.one(".zoom a").click()
        self.wait_for_plot()
        self.assertEqual(self.every(".zoom[open]"), [])
        self.assertEqual(
            self.js("['cells', 'y', 'x'].map(name => document.getElementById('cells-form').elements[name].value)"),
            ["experiment:attention-error", "relative_output_error", "m"],
        )
        self.assertEqual([self.plot(f"layout.{axis}.type") for axis in ("xaxis", "yaxis")], ["linear", "log"])
        self.assertTrue(self.drawn())
        self.assertLess(self.js("document.getElementById('cells').getBoundingClientRect().top"), 450)
        self.assert_quiet()


class Documented(InBrowser):
    def test_every_link_of_the_document_leads_to_what_it_says(self) -> None:
        """The fragments in docs/page.md, on a page that has what they name."""
        store = self.folder / "documented.db"
        into = ["--results", str(store)]
        for words in (
            ["reproduce", "rank", "--smoke", "-o", str(self.folder / "documented"), *into],
            ["run", "attention-error", "--methods", "performer", "local", "-n", "64", *into],
            ["run", "speed", "--methods", "performer", "local", "-n", "64", *into],
        ):
            subprocess.run([PROGRAM, *words], check=True, capture_output=True)
        with closing(sqlite3.connect(store)) as opened, opened:
            opened.execute("UPDATE verdict SET outcome = 'REFUTED' WHERE position = 0")
            seal_all(opened)
            key = opened.execute("SELECT key FROM cell WHERE experiment LIKE 'attention-error%'").fetchone()[0]
        page = page_of(store, self.folder / "documented")
        fragments = re.findall(r"`(#[^`]*=[^`]*)`", (ROOT / "docs" / "page.md").read_text())
        self.assertGreater(len(fragments), 4)
        for fragment in fragments:
            with self.subTest(fragment=fragment):
                self.open(fragment.replace("...", key), page=page)
                asked = dict(part.split("=") for part in fragment[1:].split("&"))
                if "cells" in asked:
                    self.wait_for_plot()
                    self.assertRegex(self.one("#plot-words").text, r"^[1-9]\d* points? in [1-9]")
                    axes = self.js("['x', 'y'].map(a => document.getElementById('plot').layout[`${a}axis`].title.text)")
                    self.assertEqual(len(set(axes)), 2)
                elif "outcome" in asked:
                    shown = self.js(
                        "[...document.querySelectorAll('.claim:not([hidden])')].map(c => c.dataset.outcome)"
                    )
                    self.assertEqual({outcome.split("|")[0] for outcome in shown}, {asked["outcome"]})
                elif "figure" in asked:
                    self.wait(lambda: self.one("#figure-words").text, "figures")
                    self.assertTrue(self.every("figure:not([hidden])"))
                else:
                    self.assertTrue(self.js("document.getElementById(arguments[0]).open", fragment[1:]))
                self.assertEqual(self.every(".unknown"), [])
                self.assertNotIn("unknown", self.one("main").text)


class BadInput(InBrowser):
    def changed_store(self, name: str, *statements: str) -> Path:
        """The store after SQL statements."""
        path = self.folder / f"{name}.db"
        shutil.copy(self.folder / "results.db", path)
        with closing(sqlite3.connect(path)) as store, store:
            for statement in statements:
                store.execute(statement)
            seal_all(store)
        return path

    def changed(self, name: str, *statements: str) -> Path:
        """Its page."""
        return page_of(self.changed_store(name, *statements), self.folder / name)

    def main_text(self, page: Path) -> str:
        self.open("#cells=all", page=page)
        return self.one("main").text

    def test_a_store_without_verdicts_says_what_makes_them(self) -> None:
        clear = [f"DELETE FROM {table}" for table in ("figure", "verdict", "reproduction")]
        text = self.main_text(self.changed("bare", *clear))
        self.assertRegex(
            text, r"No statement of the literature was judged here, and there is no figure.*attnbench reproduce"
        )
        self.wait_for_plot()
        self.assert_quiet()

    def test_an_empty_store_says_what_fills_it(self) -> None:
        tables = ("figure", "verdict", "reproduction", "measurement", "replicate", "cell", "run")
        text = self.main_text(self.changed("empty", *(f"DELETE FROM {table}" for table in tables)))
        self.assertIn("There are no results yet", text)
        self.assertIn("attnbench reproduce", text)
        self.assert_quiet()

    def test_cells_that_all_failed_are_shown_with_their_reason(self) -> None:
        clear = [f"DELETE FROM {table}" for table in ("figure", "verdict", "reproduction", "measurement")]
        failed = "UPDATE replicate SET ending = 'failed', reason = 'no such thing'"
        text = self.main_text(self.changed("failed", *clear, failed))
        self.assertIn("Nothing was done", text)
        self.assertIn("no such thing", text)
        self.wait_for_plot()
        self.assertIn("no such thing", self.one("#table tbody").text)
        self.assert_quiet()

    def test_names_that_attack_are_shown_as_they_are(self) -> None:
        """As a page's HTML, in Plotly's own tags, as a script, and as a formula in the table that one downloads."""
        owns = "document.title='owned'"
        image = f'<img src=x onerror="{owns}">'
        names = {
            "method": [image, f'<a href="javascript:{owns}">click</a>', "=1+1", f"</script><script>{owns}</script>"],
            "experiment": [f"<b>{image}</b>", "@SUM(1)", "$evil", "%{x}"],
        }
        statements = [
            f"UPDATE cell SET {column} = '{name.replace(chr(39), chr(39) * 2)}' WHERE id % {len(values)} = {i}"
            for column, values in names.items()
            for i, name in enumerate(values)
        ]
        attack = image.replace("'", "''")
        columns = ("outcome", "expected", "statement", "numbers", "source", "region", "quotation", "definition")
        statements += [f"UPDATE verdict SET {column} = '{attack}'" for column in columns]
        statements += [f"UPDATE measurement SET metric = '{attack}' WHERE metric = 'numerical_rank'"]
        statements += [f"UPDATE replicate SET reason = '{attack}' WHERE ending <> 'done'"]
        statements += [
            f"UPDATE run SET command = '{attack}', environment = json_set(environment, '$.host', '{attack}')"
        ]
        counted = f"json_object('what', 'a', 'side', 'b', 'value', 1, 'low', 0, 'high', 2, 'count', '{attack}')"
        statements += [f"UPDATE verdict SET compared = json_array({counted})", "DELETE FROM figure"]
        page = self.changed("hostile", *statements)
        self.open("#cells=all&facet=experiment&y=" + SPREAD, page=page)
        self.wait_for_plot()
        title = self.js("document.title")
        self.assertNotEqual(title, "owned")
        self.assertEqual(self.js("document.querySelectorAll('main img, #plot .main-svg a').length"), 0)
        text = self.one("main").text
        for name in (image, *names["method"]):
            self.assertIn(name, text)
        facets = self.js("[...document.querySelectorAll('#plot .annotation-text')].map(t => t.textContent).join('|')")
        self.assertIn(f"<b>{image}", facets)
        self.one("#download").click()
        there = self.folder / "downloads"
        rows = self.wait(lambda: [p for p in there.glob("*.csv") if "=1+1" in p.read_text()], "the table as CSV")[0]
        cells = {row["method"] for row in csv.DictReader(StringIO(rows.read_text()))}
        rows.unlink()  # other tests download a table of the same name
        self.assertIn("'=1+1", cells)
        self.assertNotIn("=1+1", cells)
        self.assertEqual(BROWSER.get_log("browser"), [])
        # The browser runs only the page's own scripts, even if others become part of the page.
        self.js("document.body.insertAdjacentHTML('beforeend', arguments[0])", image)
        script = "(() => { const s = document.createElement('script'); s.textContent = arguments[0]; "
        self.js(f"{script} document.body.append(s); }})()", owns)
        refused = ""
        for kind in ("inline event handler", "inline script"):

            def is_refused(kind: str = kind) -> bool:
                nonlocal refused
                self.assertEqual(self.js("document.title"), title)
                refused += " ".join(entry["message"].lower() for entry in BROWSER.get_log("browser"))
                return kind in refused

            self.wait(is_refused, f"a refusal of the {kind}")
        self.assertEqual(self.js("document.title"), title)

    def test_equal_results_give_an_equal_page(self) -> None:
        first = self.changed("first", "DELETE FROM figure")  # of equal figures: tests/scripts/plot_test.py
        subprocess.run([sys.executable, REPORT, self.folder / "first.db", "-o", self.folder / "second"], check=True)
        self.assertEqual((self.folder / "second" / "index.html").read_bytes(), first.read_bytes())

    def test_a_folder_that_cannot_be_written_is_misuse(self) -> None:
        path = self.changed_store("misuse", "DELETE FROM figure")
        words = [sys.executable, str(REPORT), str(path), "-o", str(path)]
        answer = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr.count("\n")), (2, "", 1), answer.stderr)


if __name__ == "__main__":
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("skipped: no chromium or chromedriver; scripts/setup.sh --ci installs them")
        sys.exit(77)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
