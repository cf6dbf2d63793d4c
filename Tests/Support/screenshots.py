#!/usr/bin/env python3
"""Looks at the HTML reports in a real Chromium: checks them, and takes the pictures of docs/images.

    screenshots.py --keyhaul PROGRAM [--out FOLDER] [--browser PROGRAM] [--items N]

The reports are made from the bundled phones in a temporary folder. Exit 1 where a check fails.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

from checks import Checks

HERE = pathlib.Path(__file__).resolve().parent
PHONE, LAPTOP = 375, 1280
LARGEST_IMAGE = 200_000
LARGEST_PAGE = 5_000_000
# The checklist of what two futures hold for twenty items is the longest of them.
PAGES_ON_PAPER = 4
# What a picture shows of a page, in CSS pixels: enough to see what it is.
TALLEST = {PHONE: 2_000, LAPTOP: 1_800}
SHOWN_ROWS = "[...document.querySelectorAll('.rows tbody tr')].filter(r => getComputedStyle(r).display !== 'none').length"
IN_PAGE = (HERE / "page_checks.js").read_text(encoding="utf-8")

# The same letters on every machine: the page asks for the system's fonts, and here these are they.
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir>
{families}
</fontconfig>"""
MONOSPACED = "JetBrains Mono"
# What the pictures are taken with, and what the layout has to hold with besides: no letter of it is measured.
FONT, OTHER_FONTS = "Inter", ("DejaVu Sans", "Liberation Sans", "Noto Sans")
SECONDS_ON_PAPER = 30


class Desk:
    """Phones and their backups in a folder of their own."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEYHAUL_")}
        self.environment["KEYHAUL_HOME"] = str(folder / "devices")
        for name, text in (("old.pin", "135790"), ("new.pin", "2468"), ("password", "correct horse")):
            (folder / name).write_text(text + "\n", encoding="utf-8")
            (folder / name).chmod(0o600)

    def run(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments, "-q", "--no-input"], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode not in (0, 3):
            sys.exit(f"keyhaul {' '.join(arguments)}: exit {done.returncode}\n{done.stderr.decode()}")

    def live_on(self):
        """What becomes of a phone between two backups: something new, something changed, something gone."""
        (self.folder / "secret").write_text("x", encoding="utf-8")
        (self.folder / "secret").chmod(0o600)
        self.run("item", "add", "old-phone", "--service", "garden.example", "--account", "anna",
                 "--access-group", "ABCDE12345.org.example.garden", "--secret-file", "secret")
        self.run("item", "update", "old-phone", "--service", "AirPort", "--account", "Home",
                 "--new-label", "Wi-Fi at home", "--new-secret-file", "secret", "--yes")
        self.run("item", "delete", "old-phone", "--service", "home.example", "--account", "guest", "--yes")

    def page(self, name, *arguments):
        """A verb's page, with what differs from run to run made the same: dates, digests and measured times."""
        path = self.folder / name
        self.run(*arguments, "--format", "html", "-o", name)
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\d+ [A-Z][a-z]+ 20\d\d at \d\d:\d\d UTC", "20 November 2026 at 18:04 UTC", text)
        text = text.replace(time.strftime("%-d %B %Y", time.gmtime()), "20 November 2026")
        text = text.replace(time.strftime("%Y-%m-%d", time.gmtime()), "2026-11-20")
        text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "4f0c1a77d09e5a2b" * 4, text)
        text = re.sub(r"(about [\d.]+|under 0.1) s on the machine", "about 0.8 s on the machine", text)
        path.write_text(text, encoding="utf-8")
        return path

    def plan(self, backup, target, name, *flags):
        return self.page(name, "plan", backup, "--to", target, "--password-file", "password", *flags)


class Browser:
    """A Chromium without a network, in which a page can be looked at in every form."""

    def __init__(self, chromium, report):
        self.chromium, self.report = chromium, report

    @contextlib.contextmanager
    def looking_at(self, path, *, width=LAPTOP, dark=False, media="screen", scale=1, opened=False, scripts=False):
        form = f"{path.name} at {width} px, {'dark' if dark else 'light'}, {media}"
        context = self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light",
            device_scale_factor=scale, java_script_enabled=scripts)
        page = context.new_page()
        page.emulate_media(media=media, color_scheme="dark" if dark else "light")
        heard, asked = [], []
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        if opened:
            page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
        yield page
        self.report.check(not heard, f"{form}: nothing on the console: {heard}")
        self.report.check(set(asked) == {path.as_uri()}, f"{form}: nothing is fetched: {asked}")
        context.close()


def check_forms(browser, path, report):
    """Everything that has to hold in each form of a page."""
    for width in (320, PHONE, 768, LAPTOP):
        for dark in (False, True):
            with browser.looking_at(path, width=width, dark=dark, opened=True) as page:
                form = f"{path.name} at {width} px, {'dark' if dark else 'light'}"
                found = page.evaluate(IN_PAGE)
                report.check(found["scrollWidth"] <= width, f"{form}: scrolls sideways, {found['scrollWidth']} px wide")
                report.check(not found["outside"], f"{form}: stands outside the window: {found['outside']}")
                report.check(not found["faint"], f"{form}: contrast below AA: {found['faint']}")
                report.check(not found["loose"], f"{form}: outside of its box: {found['loose']}")
                report.check(found["foreign"] + found["handlers"] == [], f"{form}: {found['foreign'] + found['handlers']}")
                report.check(found["texts"] > 20, f"{form}: {found['texts']} texts were looked at")
    for dark in (False, True):
        with browser.looking_at(path, media="print", dark=dark) as page:
            found = page.evaluate(IN_PAGE)
            report.check(not found["faint"], f"{path.name} on paper: contrast below AA: {found['faint']}")
            light = page.evaluate("getComputedStyle(document.documentElement).color")
            report.check(light == "rgb(28, 35, 48)", f"{path.name} on paper is in ink: {light}")


def check_filters(browser, path, report):
    """The filters show what they say, though no script runs."""
    with browser.looking_at(path, opened=True) as page:
        for label in page.query_selector_all(".filter label"):
            label.click()
            shown = page.evaluate(SHOWN_ROWS)
            count = int(label.query_selector("span").inner_text().replace(",", ""))
            report.check(shown == count, f"{path.name}: \"{label.inner_text()}\" shows {shown} rows")
            for every in page.query_selector_all("[for^=show-all]"):
                every.click()


def check_views(browser, path, report):
    """Of the picture's views the one that is chosen is shown, and no other."""
    with browser.looking_at(path) as page:
        choices = page.query_selector_all(".views > label")
        for number, label in enumerate(choices):
            label.click()
            shown = [figure.is_visible() for figure in page.query_selector_all(".flow")]
            report.check(shown == [number == other for other in range(len(choices))],
                         f"{path.name}: \"{label.inner_text()}\" shows {shown}")


def check_labels(browser, path, font, report):
    """Every label and number of the picture stands in its box in any of its views, on screens and on paper."""
    for width, media in ((320, "screen"), (PHONE, "screen"), (LAPTOP, "screen"), (LAPTOP, "print")):
        with browser.looking_at(path, width=width, media=media) as page:
            for view in page.query_selector_all(".views > input"):
                page.evaluate("input => input.checked = true", view)
                found = page.evaluate(IN_PAGE)
                form = f"{path.name} at {width} px, {media}, in {font}"
                report.check(not found["loose"], f"{form}: outside of its box: {found['loose']}")
                report.check(found["labels"] > 2, f"{form}: {found['labels']} labels were looked at")


def with_digits(path, count):
    """The page with counts of so many digits, all of them as wide as a digit is."""
    number = f"{int('8' * count):,}"
    changed = path.with_name(f"{path.stem}-{count}-digits.html")
    text = path.read_text(encoding="utf-8")
    changed.write_text(re.sub(r"(?<=<p><b>)[\d,]+(?=</b>)", number, text), encoding="utf-8")
    return changed


def check_hostile(browser, path, title, report):
    """Names that are markup, escapes and text direction stay text."""
    # Here alone scripts are switched on: there is none to run.
    with browser.looking_at(path, opened=True, scripts=True) as page:
        found = page.evaluate(IN_PAGE)
        report.check(page.title() == title, f"the title is {page.title()!r}")
        report.check(found["foreign"] == [], f"elements that no report has: {found['foreign']}")
        report.check(found["handlers"] == [], f"attributes that no report has: {found['handlers']}")
        report.check(found["cells"] == [5], f"cells a row: {found['cells']}")
        report.check(found["hidden"] == [], f"characters that hide or reorder: {found['hidden']}")
        text = page.evaluate("document.body.textContent")
        for escape in (r"\u{202E}", r"\u{2066}", r"\u{1B}", r"\u{0}", r"\u{200B}", r"<script>alert(1)</script>"):
            report.check(escape in text, f"{escape} is shown as it is spelled")


def paper(browser, path, folder):
    """The pages that a printer would get, as pictures."""
    name = path.stem
    with browser.looking_at(path, media="print") as page:
        page.pdf(path=folder / f"{name}.pdf", format="A4", print_background=True)
    subprocess.run(["pdftoppm", "-r", "110", "-png", f"{name}.pdf", f"{name}-print"], cwd=folder, check=True)
    return sorted(folder.glob(f"{name}-print-*.png"))


def top(page, width):
    """The part of a page that a picture shows."""
    height = page.evaluate("document.documentElement.scrollHeight")
    return {"x": 0, "y": 0, "width": width, "height": min(height, TALLEST[width])}


def pictures(browser, path, folder, report):
    """A report as a phone, a laptop and a printer show it."""
    name = path.stem
    for dark in (False, True):
        scheme = "dark" if dark else "light"
        with browser.looking_at(path, width=PHONE, dark=dark, scale=2) as page:
            page.screenshot(path=folder / f"{name}-phone-{scheme}.png", full_page=True, clip=top(page, PHONE))
        with browser.looking_at(path, width=LAPTOP, dark=dark, scale=1.5) as page:
            page.screenshot(path=folder / f"{name}-laptop-{scheme}.png", full_page=True, clip=top(page, LAPTOP))
        with browser.looking_at(path, width=LAPTOP, dark=dark, opened=True) as page:
            tables = page.query_selector_all(".items")
            if name == "plan" and tables:
                # Rows are drawn where they are looked at.
                tables[0].evaluate("element => element.scrollIntoView()")
                box = tables[0].bounding_box()
                page.screenshot(path=folder / f"{name}-table-{scheme}.png", clip={
                    "x": box["x"] - 24, "y": max(0, box["y"] - 12), "width": box["width"] + 48, "height": 640})
    sheets = paper(browser, path, folder)
    report.check(len(sheets) <= PAGES_ON_PAPER, f"{name}: {len(sheets)} pages on paper")


def publish(folder, out, report):
    """Makes the pictures small and puts them where the documents show them."""
    out.mkdir(parents=True, exist_ok=True)
    for picture in sorted(folder.glob("*.png")):
        target = out / picture.name
        if shutil.which("pngquant"):
            subprocess.run(["pngquant", "--force", "--strip", "--speed", "1", "--output", target, "64", picture], check=True)
        else:
            shutil.copyfile(picture, target)
        size = target.stat().st_size
        report.check(size <= LARGEST_IMAGE, f"{picture.name} has {size:,} bytes")
        print(f"{target.name:26} {size:>9,} bytes")


def check_large(browser, desk, count, report):
    """A keychain as large as nobody's: the page stays small enough to send and quick to open."""
    items = [
        {"kind": "generic-password", "protection": ("ak", "ck", "cku")[number % 3],
         "attributes": {"acct": f"account-{number}@mail{number % 97}.example.org", "svce": f"service-{number % 613}.example.com",
                        "agrp": f"ABCDE12345.com.example.app{number % 211}"}, "secret": {"text": "x"}}
        for number in range(count)]
    fixture = {"format": "device-fixture/1", "seed": 1, "created": "2026-11-20T17:58:00Z",
               "device": {"name": "large", "product_type": "iPhone15,2", "product_version": "18.1"},
               "apps": [], "items": items}
    (desk.folder / "large.json").write_text(json.dumps(fixture), encoding="utf-8")
    desk.run("device", "create", "large", "--from", "./large.json")
    desk.run("backup", "large", "-o", "large.backup", "--password-file", "password", "--rounds", "1")
    path = desk.plan("large.backup", "new-phone", "large.html")
    size = path.stat().st_size
    report.check(size < LARGEST_PAGE, f"the page of {count:,} items has {size:,} bytes")
    with browser.looking_at(path, media="print") as page:
        start = time.monotonic()
        page.pdf(path=desk.folder / "large.pdf", format="A4", print_background=True)
        printed = time.monotonic() - start
    report.check(printed < SECONDS_ON_PAPER, f"{count:,} items are on paper after {printed:.1f} s")
    with browser.looking_at(path) as page:
        start = time.monotonic()
        page.reload()
        loaded = time.monotonic() - start
        start = time.monotonic()
        page.query_selector(".items summary").click()
        page.evaluate("document.documentElement.offsetHeight")
        opened = time.monotonic() - start
        start = time.monotonic()
        page.query_selector("[for=show-s]").click()
        page.evaluate("document.documentElement.offsetHeight")
        filtered = time.monotonic() - start
        first = page.evaluate("[...document.querySelectorAll('.rows tbody tr')].slice(0, 30)"
                              ".map(r => [r.className, getComputedStyle(r).display])")
    report.check(all((shown == "none") == ("s" not in name.split()) for name, shown in first), f"rows shown: {first}")
    print(f"{count:,} items: {size:,} bytes, loaded in {loaded:.2f} s, table open in {opened:.2f} s, "
          f"filtered in {filtered:.2f} s, on paper in {printed:.1f} s")
    return path


def launched(playwright, program, folder, font):
    """A Chromium to which every page's letters are those of one font."""
    given = {"system-ui": font, "sans-serif": font, "ui-monospace": MONOSPACED, "monospace": MONOSPACED}
    families = "".join(
        f'<match target="pattern"><test name="family"><string>{asked}</string></test>'
        f'<edit name="family" mode="assign" binding="strong"><string>{name}</string></edit></match>'
        for asked, name in given.items())
    configuration = folder / f"{font.replace(' ', '-')}.conf"
    configuration.write_text(FONTS.format(cache=folder / "fonts", families=families), encoding="utf-8")
    return playwright.chromium.launch(
        executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else [],
        env={**os.environ, "FONTCONFIG_FILE": str(configuration)})


def main():
    parser = argparse.ArgumentParser(description="Check the HTML reports in Chromium and take their pictures.")
    parser.add_argument("--keyhaul", required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="where the pictures go; none are taken without it")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--items", type=int, default=10_000, help="items of the large report")
    arguments = parser.parse_args()
    if not arguments.browser:
        sys.exit("error: there is no Chromium\n  try: apt-get install chromium")
    report = Checks()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        chromium = launched(playwright, arguments.browser, folder, FONT)
        browser = Browser(chromium, report)
        desk = Desk(arguments.keyhaul.resolve(), folder)
        desk.run("device", "create", "old-phone", "--from", "old-phone", "--passcode-file", "old.pin")
        desk.run("device", "create", "new-phone", "--from", "new-phone", "--passcode-file", "new.pin")
        desk.run("device", "create", "hostile", "--from", "hostile-names")
        secret = ("--password-file", "password")
        for device, backup in (("old-phone", "monday.backup"), ("hostile", "hostile.backup")):
            desk.run("backup", device, "-o", backup, *secret, "--rounds", "1")
        desk.live_on()
        # The rounds of a real one: the page of an archive shows them.
        desk.run("backup", "old-phone", "-o", "family.backup", *secret)
        desk.run("backup", "old-phone", "-o", "plain.backup", "--no-password")
        plan = desk.plan("family.backup", "new-phone", "plan.html")
        inspection = desk.page("inspection.html", "inspect", "family.backup", *secret)
        difference = desk.page("difference.html", "diff", "monday.backup", "family.backup", *secret)
        comparison = desk.page("comparison.html", "plan", "old-phone", "--to", "new-phone", "--compare")
        futures = desk.page("futures.html", "plan", "family.backup", *secret)
        hostile = {
            "What is lost: hostile.backup": desk.page("hostile-futures.html", "plan", "hostile.backup", *secret),
            "Four ways to restore hostile.backup":
                desk.page("hostile-comparison.html", "plan", "hostile.backup", "--to", "new-phone", "--compare", *secret),
            "Moving hostile.backup to new-phone": desk.plan("hostile.backup", "new-phone", "hostile.html"),
            "What is in hostile.backup": desk.page("hostile-inspection.html", "inspect", "hostile.backup", *secret),
            "From family.backup to hostile.backup":
                desk.page("hostile-difference.html", "diff", "family.backup", "hostile.backup", *secret)}
        others = [
            desk.page("plain.html", "plan", "plain.backup", "--to", "new-phone"), desk.plan("family.backup", "old-phone", "same.html"),
            desk.plan("family.backup", "new-phone", "redacted.html", "--redact"),
            desk.page("device.html", "plan", "old-phone", "--to", "new-phone"),
            desk.page("archive-comparison.html", "plan", "family.backup", "--to", "new-phone", "--compare", *secret),
            desk.page("device-futures.html", "plan", "old-phone"), desk.page("plain-futures.html", "plan", "plain.backup"),
            desk.page("redacted-futures.html", "plan", "family.backup", "--redact", *secret),
            desk.page("sealed-inspection.html", "inspect", "family.backup"),
            desk.page("plain-inspection.html", "inspect", "plain.backup"),
            desk.page("device-difference.html", "diff", "monday.backup", "old-phone", *secret)]
        for path in (plan, futures, inspection, difference, comparison, *hostile.values(), *others):
            check_forms(browser, path, report)
            check_filters(browser, path, report)
            check_views(browser, path, report)
        for title, path in hostile.items():
            check_hostile(browser, path, title, report)
        drawn = [plan, *others[:4], *(with_digits(plan, digits) for digits in range(1, 6))]
        if arguments.items:
            drawn.append(check_large(browser, desk, arguments.items, report))
        if arguments.out:
            shown = folder / "pictures"
            shown.mkdir()
            for path in (plan, futures, inspection, difference, comparison):
                pictures(browser, path, shown, report)
            publish(shown, arguments.out, report)
        chromium.close()
        for font in OTHER_FONTS:
            chromium = launched(playwright, arguments.browser, folder, font)
            for path in drawn:
                check_labels(Browser(chromium, report), path, font, report)
            chromium.close()
    return report.conclude()


if __name__ == "__main__":
    sys.exit(main())
