#!/usr/bin/python3
"""The site of a leaderboard with 60 methods in headless Chromium: at 390 px, without JavaScript, sorted, filtered, and audited
by axe. Exit code 77 (skipped) where Chromium, its driver or axe is missing; scripts/test_torch.sh installs axe and runs this.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "scripts" / part) for part in ("leaderboard", "")]

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --ci installs it")
    sys.exit(77)
AXE = importlib.util.find_spec("axe_core_python")
if AXE is None or not AXE.submodule_search_locations:
    print(f"skipped: {sys.executable} has no axe_core_python; scripts/test_torch.sh installs it in build/torch")
    sys.exit(77)

from board import make_board
from board_test import COST, ERROR, INPUTS, METHODS, SPEED, method, submission
from static_site import pages
from suite import Column, Regime, Run, Suite

COUNT = 60
MEMORY = Column(["times"], "speedup", "memory", unit="B")
SCRATCH: tempfile.TemporaryDirectory[str]
BROWSER: webdriver.Chrome


def write_site(folder: Path) -> None:
    names = [f"method-{place:02}" for place in range(COUNT - 1)] + ["method:with=[a-long:name-of,many=words],and=more"]
    methods = {name: METHODS[name] for name in ("softmax", "uniform")}
    for place, name in enumerate(names):
        methods[name] = method(0.01 * 1.1 ** (place // 2), 0.2, [1.0 + (17 * place) % COUNT] * 9, 0.01 * (place % 2))
    regimes = [
        Regime(name, f"Table {name}", "Words about it.", [ERROR, COST, SPEED, MEMORY], 0.25) for name in ("one", "two")
    ]
    runs = [Run("errors", "", "error", {}, False), Run("times", "", "speed", {}, True)]
    suite = Suite("made-up", "a made-up suite", runs, regimes, b"", {})
    both = [submission(methods), submission(methods, "another machine", "2" * 64)]
    board = make_board(suite, both, {name.partition(":")[0] for name in methods})
    for name, content in pages(board, [("bad.zip", "it is bad")]).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def setUpModule() -> None:
    global SCRATCH, BROWSER
    SCRATCH = tempfile.TemporaryDirectory()
    write_site(Path(SCRATCH.name))
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    BROWSER = webdriver.Chrome(service=Service(shutil.which("chromedriver") or ""), options=options)


def tearDownModule() -> None:
    BROWSER.quit()
    SCRATCH.cleanup()


class SiteTest(unittest.TestCase):
    def open(self, page: str = "index.html", width: int = 1280, scripts: bool = True, scheme: str = "light") -> None:
        BROWSER.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        BROWSER.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        BROWSER.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        BROWSER.get("about:blank")
        BROWSER.get((Path(SCRATCH.name) / page).as_uri())

    def js(self, expression: str) -> Any:
        return BROWSER.execute_script(f"return {expression}")

    def methods(self) -> list[str]:
        """Of the first table, those that are shown, from top to bottom."""
        rows = BROWSER.find_elements(By.CSS_SELECTOR, "table.compared")[0].find_elements(By.CSS_SELECTOR, "tbody tr")
        return [row.find_element(By.TAG_NAME, "th").text for row in rows if row.is_displayed()]

    def press(self, header: str) -> None:
        BROWSER.find_element(By.XPATH, f"(//table)[1]//thead//button[text()='{header}']").click()

    def method_page(self) -> str:
        return f"methods/{next((Path(SCRATCH.name) / 'methods').glob('method-with*')).name}"

    def test_axe_finds_nothing(self) -> None:
        assert AXE is not None and AXE.submodule_search_locations
        axe = (Path(AXE.submodule_search_locations[0]) / "axe.min.js").read_text()
        for page in ("index.html", self.method_page()):
            for scheme in ("light", "dark"):
                with self.subTest(page=page, scheme=scheme):
                    self.open(page, scheme=scheme)
                    for details in BROWSER.find_elements(By.TAG_NAME, "details"):
                        BROWSER.execute_script("arguments[0].open = true", details)
                    BROWSER.execute_script(axe)
                    found = BROWSER.execute_async_script(
                        "const done = arguments[0]; axe.run().then(r => done(r.violations.map("
                        "v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 100)).join(' | '))))"
                    )
                    self.assertEqual(found, [])

    def test_axe_finds_what_is_wrong(self) -> None:
        assert AXE is not None and AXE.submodule_search_locations
        self.open()
        BROWSER.execute_script("document.querySelector('img').removeAttribute('alt')")
        BROWSER.execute_script((Path(AXE.submodule_search_locations[0]) / "axe.min.js").read_text())
        found = BROWSER.execute_async_script(
            "const d = arguments[0]; axe.run().then(r => d(r.violations.map(v => v.id)))"
        )
        self.assertEqual(found, ["image-alt"])

    def test_a_phone_scrolls_tables_and_never_the_page(self) -> None:
        for page in ("index.html", self.method_page()):
            self.open(page, width=390)
            self.assertLessEqual(self.js("document.documentElement.scrollWidth"), 390, page)

    def test_without_javascript_tables_are_in_the_order_of_ranks(self) -> None:
        self.open(scripts=False)
        cells = BROWSER.find_elements(By.CSS_SELECTOR, "table.compared")[0].find_elements(
            By.CSS_SELECTOR, "tbody tr td:nth-child(2)"
        )
        ranks = [int(cell.get_attribute("data-value") or "") for cell in cells]
        self.assertEqual(len(ranks), COUNT + 2)
        self.assertEqual(ranks, sorted(ranks))
        self.assertGreater(len(set(ranks)), 10)
        self.assertFalse(BROWSER.find_element(By.ID, "filter").is_displayed())

    def test_headers_sort_and_words_filter(self) -> None:
        self.open()
        self.press("faster")
        speeds = [float(text.split()[0].split("[")[0]) for text in self.column(5)]
        self.assertEqual(speeds, sorted(speeds))
        self.press("faster")
        self.assertEqual([float(text.split()[0]) for text in self.column(5)], speeds[::-1])
        BROWSER.find_element(By.NAME, "words").send_keys("method-1")
        self.assertEqual(sorted(self.methods()), [f"method-{place}" for place in range(10, 20)])
        self.assertIn(f"20 of {2 * (COUNT + 2)} rows", BROWSER.find_element(By.CSS_SELECTOR, "#filter p").text)

    def column(self, place: int) -> list[str]:
        cells = BROWSER.find_elements(By.CSS_SELECTOR, "table.compared")[0].find_elements(
            By.CSS_SELECTOR, f"tbody tr td:nth-child({place})"
        )
        return [cell.text for cell in cells]

    def test_a_page_of_a_method_draws_its_heads(self) -> None:
        self.open(self.method_page())
        self.assertEqual(self.js("document.querySelectorAll('.strip').length"), 2)
        self.assertEqual(self.js("document.querySelectorAll('.strip')[0].querySelectorAll('circle').length"), INPUTS)
        caption = BROWSER.find_element(By.CSS_SELECTOR, ".strip + figcaption").text
        self.assertIn(f"error on each of {INPUTS} heads, on a logarithmic axis", caption)

    def test_every_link_leads_somewhere(self) -> None:
        self.open()
        links = self.js("[...document.querySelectorAll('a[href], img[src]')].map(e => e.href || e.src)")
        self.assertGreater(len(links), 2 * COUNT)
        for link in set(links):
            path = Path(link.removeprefix("file://").partition("#")[0])
            self.assertTrue(path.is_file(), link)
            if "#" in link:
                self.assertTrue(self.js(f"document.getElementById('{link.partition('#')[2]}') !== null"), link)

    def test_nothing_is_refused_by_the_browser(self) -> None:
        BROWSER.get_log("browser")
        self.open()
        self.press("faster")
        self.open(self.method_page())
        self.assertEqual(BROWSER.get_log("browser"), [])

    def test_the_first_page_is_small(self) -> None:
        self.assertLess((Path(SCRATCH.name) / "index.html").stat().st_size, 300_000)


if __name__ == "__main__":
    unittest.main()
