"""Walks: people do what a page of the documentation says, in its order and with its own words."""

import shlex
import subprocess
import sys
from pathlib import Path
from string import Template
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from tests.app.cli.in_process import run_in_process
from tests.browser.server import Showhow
from tests.browser.settled import CONFIRM_NAME, PATIENCE, settle
from tests.browser.walks.page import Commands, File, Item, NotRun, Picture, read_page, read_text

WIDTH, HEIGHT = 1440, 900
"""The size of the window."""


class Walk:
    """One page, done in a home and a browser.

    What is used is quoted: a name that the section does not have fails at once, and what a section has and nobody used
    fails when it is left. The blocks run and the pictures are taken in the order of the page.
    """

    def __init__(self, path: str, showhow: Showhow, page: Page, pictures: Path) -> None:
        self.showhow, self.page = showhow, page
        self.stands_for: dict[str, str] = {}
        """What a word of commands stands for, such as an id."""
        self.not_run: list[str] = []
        """Why blocks were left out."""
        self._path, self._pictures = path, pictures
        # Nothing is before the title.
        self._sections = read_page(path)[1:]
        self._text = read_text(path)
        self._used: set[str] = set()
        self._written: set[str] = set()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(CONFIRM_NAME)
        expect.set_options(timeout=PATIENCE)

    def section(self, heading: str) -> None:
        """Go on to the section of that heading; all before it must be done."""
        while self._sections and self._sections[0].heading != heading:
            self._leave()
        assert self._sections, f"{self._path} has no further section {heading!r}"

    def finish(self) -> None:
        """Check that the whole page is done."""
        while self._sections:
            self._leave()

    def _leave(self) -> None:
        place = f"{self._path}, {self._sections[0].heading!r}"
        rest = self._peek()
        assert rest is None, f"{place}: the walk leaves out {rest}"
        unused = self._sections[0].names - self._used
        assert not unused, f"{place}: nothing in the walk uses {sorted(unused)}"
        del self._sections[0]
        self._used = set()

    def name(self, text: str) -> str:
        """A name in italics, or a key, that the section has."""
        section = self._sections[0]
        assert text in section.names, f"{self._path}, {section.heading!r} has no {text!r}: {sorted(section.names)}"
        self._used.add(text)
        return text

    def quote(self, text: str) -> str:
        """Words that the page has in quotation marks."""
        assert f'"{text}"' in self._text, f"{self._path} does not say {text!r}"
        return text

    # Blocks and pictures.

    def run(self) -> str:
        """Write the next files, and run the next block of commands; returns what it prints."""
        return "".join(self._run_line(line) for line in self._take_commands().lines)

    def serve(self) -> str:
        """As `run`, where the last line starts the server: on a free port, in place of the one that runs."""
        *lines, last = self._take_commands().lines
        printed = "".join(self._run_line(line) for line in lines)
        assert shlex.split(last, comments=True) in (["make", "run"], [".venv/bin/showhow", "run"]), last
        self.showhow.stop()
        self.showhow.start()
        return printed

    def picture(self, *shows: Locator, height: int = HEIGHT) -> None:
        """Take the next picture of the page, of a window of that height, once all of this is in sight."""
        item = self._take()
        assert isinstance(item, Picture), f"{self._path}: {item} is next, no picture"
        self.page.set_viewport_size({"width": WIDTH, "height": height})
        # A tooltip would cover what is below it.
        self.page.mouse.move(0, 0)
        self.settle()
        for locator in shows:
            expect(locator.first).to_be_in_viewport()
        expect(self.page.get_by_test_id("stSkeleton")).to_have_count(0)
        self.page.evaluate("document.fonts.ready")
        file = self._pictures / item.path
        file.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=file)
        self.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})

    def _peek(self) -> Item | None:
        """The next item of the section that no comment leaves out."""
        items = self._sections[0].items
        while items and isinstance(items[0], NotRun):
            self.not_run.append(items.pop(0).reason)  # type: ignore[union-attr]
        return items[0] if items else None

    def _take(self) -> Item:
        item = self._peek()
        assert item is not None, f"{self._path}, {self._sections[0].heading!r} has no further block or picture"
        return self._sections[0].items.pop(0)

    def _take_commands(self) -> Commands:
        while isinstance(item := self._take(), File):
            self._write(item)
        assert isinstance(item, Commands), f"{self._path}: {item} is next, no commands"
        return item

    def _write(self, file: File) -> None:
        path = self.showhow.home / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if file.name in self._written else "w", encoding="utf-8") as stream:
            stream.write(f"{file.text}\n")
        self._written.add(file.name)

    def _run_line(self, line: str) -> str:
        words = shlex.split(line, comments=True)
        environment, home = self.showhow.environment, self.showhow.home
        if words[0] == "export":
            for word in words[1:]:
                name, _, value = word.partition("=")
                environment[name] = Template(value).substitute(environment, PWD=home)
            return ""
        words = [self.stands_for.get(word, word) for word in words]
        if (program := words[0].removeprefix(".venv/bin/")) != "showhow":
            path = Path(sys.executable).with_name(program)
            done = subprocess.run(
                [path, *words[1:]], cwd=home, env=environment, capture_output=True, text=True, check=False
            )
        else:
            words, target = (words[:-2], words[-1]) if words[-2] == ">" else (words, "")
            done = run_in_process(home, *words[1:], **environment)
            if target:
                (home / target).write_text(done.stdout, encoding="utf-8")
        assert done.returncode == 0, f"{self._path}: {line}: {done.stdout}{done.stderr}"
        return done.stdout

    # The browser.

    def open(self, you: str, project: str, path: str = "", **query: str) -> None:
        """Open a page of the app as that person."""
        self.page.goto(f"{self.showhow.url}/{path}?{urlencode({'you': you, 'project': project, **query})}")
        self.page.wait_for_selector(".st-key-product_header")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def go(self, title: str) -> None:
        """Go to a page that the section names, by the navigation."""
        self.page.get_by_role("link", name=self.name(title)).first.click()
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn and no script runs."""
        settle(self.page)

    def press(self, key: str) -> None:
        """Press a key that the section names."""
        self.page.keyboard.press(self.name(key).replace("Ctrl", "Control"))
        self.settle()

    @property
    def scope(self) -> Locator:
        """The open dialog, or else the page."""
        dialog = self.page.get_by_role("dialog")
        return dialog if dialog.count() else self.page.locator("body")

    def click(self, name: str) -> None:
        """Click a button that the section names."""
        self.scope.get_by_role("button", name=self.name(name), exact=True).first.click()
        self.settle()

    def see(self, *names: str) -> None:
        """Look for the names of the section on the page."""
        for name in names:
            by_text = self.scope.get_by_text(self.name(name), exact=True)
            shown = by_text.or_(self.scope.get_by_label(name, exact=True)).or_(
                self.scope.get_by_role("button", name=name, exact=True)
            )
            expect(shown.filter(visible=True).first).to_be_visible()

    def fill(self, label: str, text: str) -> None:
        """Type into a field, and leave it."""
        field = self.scope.get_by_label(label, exact=True)
        field.fill(text)
        field.press("Tab")
        self.settle()

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a select box."""
        field = self.scope.get_by_label(label, exact=True)
        field.scroll_into_view_if_needed()
        self.settle()
        field.click()
        self.page.get_by_role("option", name=option, exact=True).click()
        self.settle()
