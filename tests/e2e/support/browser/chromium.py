"""A headless Chromium that a test drives as a user does: by clicks and keys, and by waiting for what is seen."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.e2e.support.clusters.cluster import PATIENCE
from tests.e2e.support.clusters.processes import wait_until

WIDE, NARROW = (1280, 800), (320, 640)
_PROGRAMS: Final = ("chromium", "chromedriver")
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    # no name but those of loopback is looked up, so nothing leaves the machine
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE *.localhost",
)
_SECONDS: Final = 30.0


def missing_programs() -> Sequence[str]:
    """Those of Debian's packages chromium and chromium-driver that are not installed."""
    return [name for name in _PROGRAMS if shutil.which(name) is None]


class Chromium:
    """One process for many tests. Raises WaitTimeout where a wait is in vain."""

    def __init__(self, directory: Path) -> None:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*_FLAGS, f"--user-data-dir={directory / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        log = str(directory / "chromedriver.log")
        self.driver = Chrome(options, Service(shutil.which("chromedriver"), log_output=log))
        self.driver.set_script_timeout(PATIENCE)
        self.look()

    def close(self) -> None:
        self.driver.quit()

    def look(self, *, size: tuple[int, int] = WIDE, dark: bool = False, calm: bool = True) -> None:
        """Sets the size of the window in CSS pixels, the colour scheme, and the wish for less motion."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        features = {"prefers-color-scheme": "dark" if dark else "light"}
        features["prefers-reduced-motion"] = "reduce" if calm else "no-preference"
        self.command("Emulation.setDeviceMetricsOverride", metrics)
        listed = [{"name": name, "value": value} for name, value in features.items()]
        self.command("Emulation.setEmulatedMedia", {"features": listed})

    def command(self, name: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """A command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(name, dict(parameters or {}))

    def open(self, url: str) -> None:
        self.driver.get(url)

    def run(self, script: str, *arguments: object) -> Any:
        """The result of a JavaScript function body."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, what: str, script: str, *arguments: object) -> Any:
        """The first true value of a JavaScript expression."""
        try:
            return wait_until(what, lambda: self.run(f"return {script}", *arguments), seconds=_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text('body')}\n{self.messages()}") from error

    def find(self, selector: str, text: str = "") -> WebElement:
        """The first visible element with the selector whose text or aria-label contains `text`."""
        script = """[...document.querySelectorAll(arguments[0])].find(each => each.checkVisibility()
            && `${each.textContent} ${each.getAttribute("aria-label") ?? ""}`.includes(arguments[1]))"""
        found: WebElement = self.wait(f"there is {selector} {text!r}", script, selector, text)
        return found

    def click(self, selector: str, text: str = "") -> None:
        self._act(selector, text, lambda found: found.click())

    def write(self, selector: str, text: str) -> None:
        """Replaces the text of an input, key by key."""

        def replace_text(found: WebElement) -> None:
            found.clear()
            found.send_keys(text)

        self._act(selector, "", replace_text)

    def _act(self, selector: str, text: str, act: Callable[[WebElement], None]) -> None:
        """Acts on the element that is there, which the page may have drawn again since it was found."""

        def has_acted() -> bool:
            try:
                act(self.find(selector, text))
            except StaleElementReferenceException:
                return False
            return True

        wait_until(f"{selector} {text!r} stays", has_acted, seconds=_SECONDS)

    def press(self, *keys: str) -> None:
        """Presses keys one after another, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def text(self, selector: str) -> str:
        return str(self.driver.find_element(By.CSS_SELECTOR, selector).text)

    def wait_for_text(self, selector: str, text: str) -> None:
        script = "[...document.querySelectorAll(arguments[0])].some(each => each.textContent.includes(arguments[1]))"
        self.wait(f"{selector} has {text!r}", script, selector, text)

    def focused(self) -> str:
        """The accessible name of the element with the focus, as far as its attributes and its text tell it."""
        script = """const at = document.activeElement;
            return at.getAttribute("aria-label") || at.labels?.[0]?.textContent || at.textContent"""
        return str(self.run(script))

    def messages(self) -> Sequence[str]:
        """The warnings and errors of the browser's console since the last call."""
        entries: Sequence[Mapping[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [str(each["message"]) for each in entries if each["level"] in ("WARNING", "SEVERE")]

    def violations(self) -> Sequence[str]:
        """The findings of axe-core (https://github.com/dequelabs/axe-core), each with the elements that it is about.

        The DevTools evaluate it, since the page's Content-Security-Policy forbids scripts of others."""
        axe = files("axe_core_python").joinpath("axe.min.js").read_text()
        self.command("Runtime.evaluate", {"expression": axe})
        asked = {"expression": "axe.run().then(found => JSON.stringify(found.violations))", "awaitPromise": True}
        found = json.loads(self.command("Runtime.evaluate", asked)["result"]["value"])
        return [f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes']]}" for each in found]

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))
