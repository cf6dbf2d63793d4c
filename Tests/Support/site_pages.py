#!/usr/bin/env python3
"""Copy the pages of docs/ into the DocC catalogs, for `make docs`.

    site_pages.py [FOLDER]

The pages in docs/ have links with paths. Their copies are in a folder `Pages` of a catalog, which git ignores, and have
DocC's links. A link to a page of the catalog, or to a heading, becomes a DocC link, which DocC checks. A link to
another file becomes the path of the file. Images are copied too. A broken link is an error.
"""

import argparse
import pathlib
import re
import shutil
import sys

PAGES = {
    "Sources/Library/KeyhaulKit/KeyhaulKit.docc": [
        "docs/Install.md", "docs/Tutorials/SaveYourCodes.md", "docs/Tutorials/GettingStarted.md",
        "docs/Tutorials/ReadABackup.md", "docs/Rules.md", "docs/Format.md", "docs/Threats.md", "docs/SECURITY.md",
        "docs/Scripting.md", "docs/Fleet.md", "docs/Performance.md", "docs/Reports.md", "docs/Troubleshooting.md"],
    "Sources/Apple/KeychainServices/KeychainServices.docc": [
        "docs/Tutorials/TestYourAppsMigration.md", "docs/Tutorials/1-password-manager.md",
        "docs/Tutorials/2-duplicates.md", "docs/Tutorials/3-keychain-wrapper.md", "docs/Tutorials/4-on-off-game.md",
        "docs/Tutorials/5-plain-functions.md", "docs/Tutorials/6-backup-on-the-desk.md",
        "docs/Tutorials/7-four-digits.md", "docs/Tutorials/8-app-test-suite.md", "docs/Tutorials/9-port-a-package.md"],
}

LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


class BrokenLink(Exception):
    """A link to a file or heading that does not exist."""


def heading_anchor(anchor, text):
    """Return the DocC name of the heading with a GitHub anchor. DocC keeps capital letters, and GitHub does not."""
    for heading in re.findall(r"^#{2,}\s+(.*)$", text, re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"[`*_]", "", heading))
        name = words.replace(" ", "-")
        if name.lower() == anchor:
            return name
    raise BrokenLink(f"there is no heading #{anchor}")


def convert_page(text, page, pages, root):
    """Return the text of a page for its catalog, and the images that it shows."""
    images = []

    def convert_link(match):
        """Return a link of docs/ in the format of DocC."""
        mark, label, target = match.groups()
        if re.match(r"[a-z]+:", target):
            return match.group()
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page.resolve()
        if not file.exists():
            raise BrokenLink(f"{page.relative_to(root)}: {target} does not exist")
        if mark:
            images.append(file)
            return f"![{label}]({file.name})"
        if file in pages or file == page.resolve():
            fragment = "#" + heading_anchor(anchor, file.read_text(encoding="utf-8")) if anchor else ""
            return f"[{label}](<doc:{file.stem}{fragment}>)"
        path = f"`{file.relative_to(root)}`"
        return path if label.strip("`") in (file.name, str(file.relative_to(root))) else f"{label} ({path})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(convert_link, text[end:fence.start()]), fence.group()]
        end = fence.end()
    return "".join(parts + [LINK.sub(convert_link, text[end:])]), images


def main():
    parser = argparse.ArgumentParser(description="Copy the pages of docs/ into the DocC catalogs.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().folder.resolve()
    count = 0
    for catalog, names in PAGES.items():
        target = root / catalog / "Pages"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        pages = {(root / name).resolve() for name in names}
        for name in names:
            page = root / name
            text, images = convert_page(page.read_text(encoding="utf-8"), page, pages, root)
            (target / page.name).write_text(text, encoding="utf-8")
            for image in images:
                shutil.copyfile(image, target / image.name)
            count += 1
    print(f"{count} pages copied for the site")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenLink as error:
        sys.exit(f"error: {error}")
