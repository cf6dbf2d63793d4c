#!/usr/bin/env python3
"""Check the HTML reports in Chromium, and take the images in docs/images.

    screenshots.py --keyhaul PROGRAM [--out FOLDER] [--browser PROGRAM] [--items N]

The reports are made from the bundled devices in a temporary folder. Exit 1 if a check fails.
"""

import argparse
import contextlib
import json
import os
import pathlib
import plistlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import axe_core_python
from playwright.sync_api import sync_playwright

from checks import Checks

FOLDER = pathlib.Path(__file__).resolve().parent
PHONE, LAPTOP = 375, 1280
MAX_IMAGE_BYTES = 200_000
MAX_PAGE_BYTES = 5_000_000
# The longest printed report is the outlook, with a checklist of twenty items.
MAX_PRINTED_PAGES = 4
# The largest height of an image, in CSS pixels.
MAX_HEIGHT = {PHONE: 2_000, LAPTOP: 1_800}
VISIBLE_ROW_COUNT = (
    "[...document.querySelectorAll('.rows tbody tr')].filter(r => getComputedStyle(r).display !== 'none').length"
)
# The apps of the backups without a device: identifier, name and category in the App Store.
APPS = [
    ("com.google.Authenticator", "Google Authenticator", 6002), ("net.whatsapp.WhatsApp", "WhatsApp Messenger", 6005),
    ("io.metamask", "MetaMask - Crypto Wallet", 6015), ("org.example.savings", "Example Savings", 6015),
    ("org.example.chat", "Example Chat", 6005), ("org.example.game", "Example Game", 6014),
]
AXE = pathlib.Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
PAGE_CHECKS = (FOLDER / "page_checks.js").read_text(encoding="utf-8")

# Replaces the system's fonts, which the pages use, so that the images are the same on every machine.
FONT_CONFIGURATION = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir>
{families}
</fontconfig>"""
MONOSPACED = "JetBrains Mono"
# The font of the images. The layout must also work in the other fonts, because the pages cannot measure text.
IMAGE_FONT, OTHER_FONTS = "Inter", ("DejaVu Sans", "Liberation Sans", "Noto Sans")
MAX_PRINT_SECONDS = 30
# The text color of the light scheme, which paper also has.
PAPER_TEXT_COLOR = "rgb(28, 35, 48)"


class Workspace:
    """The devices and backups in a temporary folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEYHAUL_")}
        self.environment["KEYHAUL_HOME"] = str(folder / "devices")
        for name, text in (("old.pin", "135790"), ("new.pin", "2468"), ("password", "correct horse")):
            (folder / name).write_text(text + "\n", encoding="utf-8")
            (folder / name).chmod(0o600)

    def run(self, *arguments):
        """Run a command, and exit if it fails."""
        process = subprocess.run(
            [self.program, *arguments, "-q", "--no-input"], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if process.returncode not in (0, 3):
            sys.exit(f"keyhaul {' '.join(arguments)}: exit {process.returncode}\n{process.stderr.decode()}")

    def change_items(self):
        """Add, change and delete an item, so that the next backup differs."""
        (self.folder / "secret").write_text("x", encoding="utf-8")
        (self.folder / "secret").chmod(0o600)
        self.run("item", "add", "old-phone", "--service", "garden.example", "--account", "anna",
                 "--access-group", "ABCDE12345.org.example.garden", "--secret-file", "secret")
        self.run("item", "update", "old-phone", "--service", "AirPort", "--account", "Home",
                 "--new-label", "Wi-Fi at home", "--new-secret-file", "secret", "--yes")
        self.run("item", "delete", "old-phone", "--service", "home.example", "--account", "guest", "--yes")

    def imitate_finder(self, backup):
        """Make a backup look like one from Finder: add installed apps to Info.plist, and delete the seal."""
        path = self.folder / backup / "Info.plist"
        info = plistlib.loads(path.read_bytes())
        info["Applications"] = {
            identifier: {"iTunesMetadata": plistlib.dumps(
                {"itemName": name, "genreId": genre}, fmt=plistlib.FMT_BINARY)}
            for identifier, name, genre in APPS
        }
        info["Installed Applications"] = [identifier for identifier, _, _ in APPS]
        path.write_bytes(plistlib.dumps(info))
        (self.folder / backup / "Keyhaul.seal").unlink()

    def page(self, name, *arguments):
        """Return the HTML report of a command, with fixed dates, digests and measured times."""
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
        """Return the HTML report of a plan."""
        return self.page(name, "plan", backup, "--to", target, "--password-file", "password", *flags)


class Browser:
    """A Chromium that shows pages in several ways, and checks that they load nothing."""

    def __init__(self, chromium, checks):
        self.chromium, self.checks = chromium, checks

    @contextlib.contextmanager
    def showing(
        self, path, *, width=LAPTOP, is_dark=False, media="screen", scale=1, opens_details=False, allows_scripts=False
    ):
        """Open a page. Afterwards, check that it printed nothing to the console and loaded nothing."""
        description = f"{path.name} at {width} px, {'dark' if is_dark else 'light'}, {media}"
        context = self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if is_dark else "light",
            device_scale_factor=scale, java_script_enabled=allows_scripts)
        page = context.new_page()
        page.emulate_media(media=media, color_scheme="dark" if is_dark else "light")
        messages, requests = [], []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        if opens_details:
            page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
        yield page
        self.checks.check(not messages, f"{description}: messages on the console: {messages}")
        self.checks.check(set(requests) == {path.as_uri()}, f"{description}: other files are loaded: {requests}")
        context.close()


def check_layouts(browser, path, checks):
    """Check a page in each width and color scheme, and on paper."""
    for width in (320, PHONE, 768, LAPTOP):
        for is_dark in (False, True):
            check_screen(browser, path, width, is_dark, checks)
    for is_dark in (False, True):
        with browser.showing(path, media="print", is_dark=is_dark) as page:
            low_contrast = page.evaluate(PAGE_CHECKS)["lowContrast"]
            checks.check(not low_contrast, f"{path.name} on paper: contrast below AA: {low_contrast}")
            text_color = page.evaluate("getComputedStyle(document.documentElement).color")
            checks.check(text_color == PAPER_TEXT_COLOR, f"{path.name} on paper has the text color {text_color}")


def check_screen(browser, path, width, is_dark, checks):
    """Check a page in one width and color scheme."""
    with browser.showing(path, width=width, is_dark=is_dark, opens_details=True) as page:
        description = f"{path.name} at {width} px, {'dark' if is_dark else 'light'}"
        findings = page.evaluate(PAGE_CHECKS)
        checks.check(
            findings["scrollWidth"] <= width, f"{description}: scrolls horizontally, {findings['scrollWidth']} px wide")
        checks.check(not findings["outside"], f"{description}: text outside the window: {findings['outside']}")
        checks.check(not findings["lowContrast"], f"{description}: contrast below AA: {findings['lowContrast']}")
        checks.check(not findings["misplaced"], f"{description}: text outside its box: {findings['misplaced']}")
        unknown_markup = findings["unknownElements"] + findings["unknownAttributes"]
        checks.check(not unknown_markup, f"{description}: {unknown_markup}")
        checks.check(findings["texts"] > 20, f"{description}: {findings['texts']} texts were checked")


def check_accessibility(browser, path, checks):
    """Run axe on a page, on a phone and a laptop, in both color schemes, and on paper."""
    for width, is_dark, media in (
        (PHONE, False, "screen"), (PHONE, True, "screen"), (LAPTOP, False, "screen"), (LAPTOP, True, "screen"),
        (LAPTOP, False, "print"),
    ):
        with browser.showing(
            path, width=width, is_dark=is_dark, media=media, opens_details=True, allows_scripts=True
        ) as page:
            page.evaluate(AXE)
            findings = page.evaluate("axe.run()")
            faults = [f"{fault['id']}: {fault['nodes'][0]['html'][:80]}" for fault in findings["violations"]]
            description = f"{path.name} at {width} px, {'dark' if is_dark else 'light'}, {media}"
            checks.check(not faults, f"{description}: axe reports {faults}")
            checks.check(len(findings["passes"]) > 20, f"{description}: axe checked {len(findings['passes'])} rules")


def check_paper(browser, path, checks):
    """Check that the checklist of a page follows its heading on paper."""
    with browser.showing(path, media="print") as page:
        tops = page.evaluate("""[...document.querySelectorAll("main > *")].map(
            part => [part.getBoundingClientRect().top, part.tagName + "." + part.className])""")
        order = [name for _, name in sorted(tops)]
        checks.check(order[:2] == ["HEADER.", "SECTION.checklist"], f"{path.name} on paper: {order}")


def check_filters(browser, path, checks):
    """Check that each filter shows as many rows as its label states, without scripts."""
    with browser.showing(path, opens_details=True) as page:
        for label in page.query_selector_all(".filter label"):
            label.click()
            shown = page.evaluate(VISIBLE_ROW_COUNT)
            count = int(label.query_selector("span").inner_text().replace(",", ""))
            checks.check(shown == count, f"{path.name}: \"{label.inner_text()}\" shows {shown} rows")
            for show_all_label in page.query_selector_all("[for^=show-all]"):
                show_all_label.click()


def check_views(browser, path, checks):
    """Check that only the selected view of the diagram is visible."""
    with browser.showing(path) as page:
        choices = page.query_selector_all(".views > label")
        for number, label in enumerate(choices):
            label.click()
            shown = [figure.is_visible() for figure in page.query_selector_all(".flow")]
            checks.check(shown == [number == choice for choice in range(len(choices))],
                         f"{path.name}: \"{label.inner_text()}\" shows {shown}")


def check_labels(browser, path, font, checks):
    """Check that every label and number of the diagram is inside its box, in each view, on screens and on paper."""
    for width, media in ((320, "screen"), (PHONE, "screen"), (LAPTOP, "screen"), (LAPTOP, "print")):
        with browser.showing(path, width=width, media=media) as page:
            for view in page.query_selector_all(".views > input"):
                page.evaluate("input => input.checked = true", view)
                findings = page.evaluate(PAGE_CHECKS)
                description = f"{path.name} at {width} px, {media}, in {font}"
                checks.check(not findings["misplaced"], f"{description}: text outside its box: {findings['misplaced']}")
                checks.check(findings["labels"] > 2, f"{description}: {findings['labels']} labels were checked")


def with_digits(path, digit_count):
    """Return a copy of a page in which every count has `digit_count` eights. All digits have the same width."""
    number = f"{int('8' * digit_count):,}"
    changed = path.with_name(f"{path.stem}-{digit_count}-digits.html")
    text = path.read_text(encoding="utf-8")
    changed.write_text(re.sub(r"(?<=<p><b>)[\d,]+(?=</b>)", number, text), encoding="utf-8")
    return changed


def check_malicious_names(browser, path, title, checks):
    """Check that markup, terminal escapes and text direction in names are shown as text."""
    # Scripts are enabled only here, to show that none runs.
    with browser.showing(path, opens_details=True, allows_scripts=True) as page:
        findings = page.evaluate(PAGE_CHECKS)
        checks.check(page.title() == title, f"the title is {page.title()!r}")
        checks.check(findings["unknownElements"] == [], f"unexpected elements: {findings['unknownElements']}")
        checks.check(findings["unknownAttributes"] == [], f"unexpected attributes: {findings['unknownAttributes']}")
        checks.check(findings["cells"] == [5], f"cells in a row: {findings['cells']}")
        checks.check(findings["invisible"] == [], f"invisible or reordering characters: {findings['invisible']}")
        text = page.evaluate("document.body.textContent")
        for escape in (r"\u{202E}", r"\u{2066}", r"\u{1B}", r"\u{0}", r"\u{200B}", r"<script>alert(1)</script>"):
            checks.check(escape in text, f"{escape} is not shown as text")


def printed_pages(browser, path, folder):
    """Return the printed pages as images."""
    name = path.stem
    with browser.showing(path, media="print") as page:
        page.pdf(path=folder / f"{name}.pdf", format="A4", print_background=True)
    subprocess.run(["pdftoppm", "-r", "110", "-png", f"{name}.pdf", f"{name}-print"], cwd=folder, check=True)
    return sorted(folder.glob(f"{name}-print-*.png"))


def image_area(page, width):
    """Return the part of a page that an image shows."""
    height = page.evaluate("document.documentElement.scrollHeight")
    return {"x": 0, "y": 0, "width": width, "height": min(height, MAX_HEIGHT[width])}


def take_images(browser, path, folder, checks):
    """Take the images of a report on a phone, a laptop and paper."""
    name = path.stem
    for is_dark in (False, True):
        scheme = "dark" if is_dark else "light"
        with browser.showing(path, width=PHONE, is_dark=is_dark, scale=2) as page:
            page.screenshot(path=folder / f"{name}-phone-{scheme}.png", full_page=True, clip=image_area(page, PHONE))
        with browser.showing(path, width=LAPTOP, is_dark=is_dark, scale=1.5) as page:
            page.screenshot(path=folder / f"{name}-laptop-{scheme}.png", full_page=True, clip=image_area(page, LAPTOP))
        with browser.showing(path, width=LAPTOP, is_dark=is_dark, opens_details=True) as page:
            tables = page.query_selector_all(".items")
            if name == "plan" and tables:
                # The browser draws only visible rows.
                tables[0].evaluate("element => element.scrollIntoView()")
                box = tables[0].bounding_box()
                page.screenshot(path=folder / f"{name}-table-{scheme}.png", clip={
                    "x": box["x"] - 24, "y": max(0, box["y"] - 12), "width": box["width"] + 48, "height": 640})
    pages = printed_pages(browser, path, folder)
    checks.check(len(pages) <= MAX_PRINTED_PAGES, f"{name}: {len(pages)} pages on paper")


def publish(folder, out, checks):
    """Reduce the size of the images, and copy them to the documentation."""
    out.mkdir(parents=True, exist_ok=True)
    for image in sorted(folder.glob("*.png")):
        target = out / image.name
        if shutil.which("pngquant"):
            subprocess.run(
                ["pngquant", "--force", "--strip", "--speed", "1", "--output", target, "64", image], check=True
            )
        else:
            shutil.copyfile(image, target)
        size = target.stat().st_size
        checks.check(size <= MAX_IMAGE_BYTES, f"{image.name} has {size:,} bytes")
        print(f"{target.name:26} {size:>9,} bytes")


def write_large_description(path, count):
    """Write the description of a device with this many items."""
    items = [
        {
            "kind": "generic-password",
            "protection": ("ak", "ck", "cku")[number % 3],
            "attributes": {
                "acct": f"account-{number}@mail{number % 97}.example.org",
                "svce": f"service-{number % 613}.example.com",
                "agrp": f"ABCDE12345.com.example.app{number % 211}",
            },
            "secret": {"text": "x"},
        }
        for number in range(count)
    ]
    fixture = {"format": "device-fixture/1", "seed": 1, "created": "2026-11-20T17:58:00Z",
               "device": {"name": "large", "product_type": "iPhone15,2", "product_version": "18.1"},
               "apps": [], "items": items}
    path.write_text(json.dumps(fixture), encoding="utf-8")


def seconds_for(action):
    """Return the seconds that a function takes."""
    start = time.monotonic()
    action()
    return time.monotonic() - start


def check_large(browser, workspace, count, checks):
    """Check the size and the speed of a report on a very large keychain."""
    write_large_description(workspace.folder / "large.json", count)
    workspace.run("device", "create", "large", "--from", "./large.json")
    workspace.run("backup", "large", "-o", "large.backup", "--password-file", "password", "--rounds", "1")
    path = workspace.plan("large.backup", "new-phone", "large.html")
    size = path.stat().st_size
    checks.check(size < MAX_PAGE_BYTES, f"the page of {count:,} items has {size:,} bytes")
    with browser.showing(path, media="print") as page:
        pdf = workspace.folder / "large.pdf"
        print_seconds = seconds_for(lambda: page.pdf(path=pdf, format="A4", print_background=True))
    checks.check(print_seconds < MAX_PRINT_SECONDS, f"{count:,} items take {print_seconds:.1f} s to print")
    with browser.showing(path) as page:
        def click(selector):
            page.query_selector(selector).click()
            # Reading a size makes the browser lay out the page.
            page.evaluate("document.documentElement.offsetHeight")

        load_seconds = seconds_for(page.reload)
        open_seconds = seconds_for(lambda: click(".items summary"))
        filter_seconds = seconds_for(lambda: click("[for=show-s]"))
        rows = page.evaluate("[...document.querySelectorAll('.rows tbody tr')].slice(0, 30)"
                             ".map(r => [r.className, getComputedStyle(r).display])")
    checks.check(
        all((display == "none") == ("s" not in classes.split()) for classes, display in rows), f"rows shown: {rows}")
    print(f"{count:,} items: {size:,} bytes, loaded in {load_seconds:.2f} s, table open in {open_seconds:.2f} s, "
          f"filtered in {filter_seconds:.2f} s, printed in {print_seconds:.1f} s")
    return path


def launch_browser(playwright, program, folder, font):
    """Start a Chromium in which all text has one font."""
    fonts = {"system-ui": font, "sans-serif": font, "ui-monospace": MONOSPACED, "monospace": MONOSPACED}
    families = "".join(
        f'<match target="pattern"><test name="family"><string>{family}</string></test>'
        f'<edit name="family" mode="assign" binding="strong"><string>{name}</string></edit></match>'
        for family, name in fonts.items())
    configuration = folder / f"{font.replace(' ', '-')}.conf"
    configuration.write_text(FONT_CONFIGURATION.format(cache=folder / "fonts", families=families), encoding="utf-8")
    return playwright.chromium.launch(
        executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else [],
        env={**os.environ, "FONTCONFIG_FILE": str(configuration)})


class Reports:
    """The reports on the devices and backups of a workspace."""

    def __init__(self, workspace):
        password_options = ("--password-file", "password")
        make_backups(workspace, password_options)
        self.plan = workspace.plan("family.backup", "new-phone", "plan.html")
        self.inspection = workspace.page("inspection.html", "inspect", "family.backup", *password_options)
        self.difference = workspace.page("difference.html", "diff", "monday.backup", "family.backup", *password_options)
        self.comparison = workspace.page("comparison.html", "plan", "old-phone", "--to", "new-phone", "--compare")
        self.outlook = workspace.page("futures.html", "plan", "family.backup", *password_options)
        self.malicious = malicious_reports(workspace, password_options)
        # Outlooks of backups whose device is unknown.
        self.foreign_outlooks = [
            workspace.page("phone.html", "plan", "phone/", *password_options),
            workspace.page("plain-phone.html", "plan", "plain-phone/"),
        ]
        self.plans_with_diagram = [
            workspace.page("plain.html", "plan", "plain.backup", "--to", "new-phone"),
            workspace.plan("family.backup", "old-phone", "same.html"),
            workspace.plan("family.backup", "new-phone", "redacted.html", "--redact"),
            workspace.page("device.html", "plan", "old-phone", "--to", "new-phone"),
        ]
        self.without_diagram = [
            workspace.page(
                "archive-comparison.html", "plan", "family.backup", "--to", "new-phone", "--compare", *password_options
            ),
            workspace.page("device-futures.html", "plan", "old-phone"),
            workspace.page("plain-futures.html", "plan", "plain.backup"),
            workspace.page("redacted-futures.html", "plan", "family.backup", "--redact", *password_options),
            workspace.page("sealed-inspection.html", "inspect", "family.backup"),
            workspace.page("plain-inspection.html", "inspect", "plain.backup"),
            workspace.page("device-difference.html", "diff", "monday.backup", "old-phone", *password_options),
        ]

    @property
    def in_documentation(self):
        """The reports whose images are in docs/images."""
        return [self.plan, self.outlook, self.inspection, self.difference, self.comparison]

    @property
    def all(self):
        return [
            *self.in_documentation, *self.foreign_outlooks, *self.malicious.values(), *self.plans_with_diagram,
            *self.without_diagram]

    @property
    def diagrams(self):
        """The reports with a diagram, and copies of a plan whose numbers have one to five digits."""
        return [
            self.plan, self.outlook, *self.foreign_outlooks, *self.plans_with_diagram,
            *(with_digits(self.plan, digit_count) for digit_count in range(1, 6))]


def malicious_reports(workspace, password_options):
    """Return the reports on items with malicious names, by their titles."""
    return {
        "What moves to a new iPhone: hostile.backup": workspace.page(
            "hostile-futures.html", "plan", "hostile.backup", *password_options),
        "Four ways to restore hostile.backup": workspace.page(
            "hostile-comparison.html", "plan", "hostile.backup", "--to", "new-phone", "--compare", *password_options),
        "Moving hostile.backup to new-phone": workspace.plan("hostile.backup", "new-phone", "hostile.html"),
        "What is in hostile.backup": workspace.page(
            "hostile-inspection.html", "inspect", "hostile.backup", *password_options),
        "From family.backup to hostile.backup": workspace.page(
            "hostile-difference.html", "diff", "family.backup", "hostile.backup", *password_options),
    }


def make_backups(workspace, password_options):
    """Create the devices, and their backups before and after changes, with and without a password."""
    workspace.run("device", "create", "old-phone", "--from", "old-phone", "--passcode-file", "old.pin")
    workspace.run("device", "create", "new-phone", "--from", "new-phone", "--passcode-file", "new.pin")
    workspace.run("device", "create", "hostile", "--from", "hostile-names")
    for device, backup in (("old-phone", "monday.backup"), ("hostile", "hostile.backup")):
        workspace.run("backup", device, "-o", backup, *password_options, "--rounds", "1")
    workspace.change_items()
    # With real iteration counts, because the reports show them.
    workspace.run("backup", "old-phone", "-o", "family.backup", *password_options)
    workspace.run("backup", "old-phone", "-o", "plain.backup", "--no-password")
    # Two backups of a device that no longer exists.
    workspace.run("device", "create", "stranger", "--from", "old-phone")
    for backup, options in (("phone", password_options), ("plain-phone", ("--no-password",))):
        workspace.run("backup", "stranger", "-o", f"{backup}/", *options)
        workspace.imitate_finder(backup)
    workspace.run("device", "delete", "stranger", "--confirm", "stranger")


def check_reports(browser, reports, checks):
    """Check all reports of a workspace."""
    for path in (reports.outlook, *reports.foreign_outlooks):
        check_paper(browser, path, checks)
    for path in reports.all:
        check_accessibility(browser, path, checks)
        check_layouts(browser, path, checks)
        check_filters(browser, path, checks)
        check_views(browser, path, checks)
    for title, path in reports.malicious.items():
        check_malicious_names(browser, path, title, checks)


def main():
    parser = argparse.ArgumentParser(description="Check the HTML reports in Chromium, and take their images.")
    parser.add_argument("--keyhaul", required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="the folder for the images; without it, none are taken")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--items", type=int, default=10_000, help="the number of items in the large report")
    arguments = parser.parse_args()
    if not arguments.browser:
        sys.exit("error: there is no Chromium\n  try: apt-get install chromium")
    checks = Checks()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = pathlib.Path(name)
        chromium = launch_browser(playwright, arguments.browser, folder, IMAGE_FONT)
        browser = Browser(chromium, checks)
        workspace = Workspace(arguments.keyhaul.resolve(), folder)
        reports = Reports(workspace)
        check_reports(browser, reports, checks)
        diagrams = reports.diagrams
        if arguments.items:
            diagrams.append(check_large(browser, workspace, arguments.items, checks))
        if arguments.out:
            images = folder / "pictures"
            images.mkdir()
            for path in reports.in_documentation:
                take_images(browser, path, images, checks)
            publish(images, arguments.out, checks)
        chromium.close()
        for font in OTHER_FONTS:
            chromium = launch_browser(playwright, arguments.browser, folder, font)
            for path in diagrams:
                check_labels(Browser(chromium, checks), path, font, checks)
            chromium.close()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
