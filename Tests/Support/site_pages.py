#!/usr/bin/env python3
"""Puts the pages of docs/ into the DocC catalogs, for `make docs`.

    site_pages.py [FOLDER]

A page lives in docs/ alone, where its links are paths. In a catalog, in a folder `Pages` that git ignores, it is a copy
with DocC's links: to another page of the catalog, and to one of its headings, a link that DocC checks; to any other file
of the repository its path in words. Pictures come along. A link to a file that is not there is an error.
"""

import argparse
import pathlib
import re
import shutil
import sys

PAGES = {
    "Sources/Library/KeyhaulKit/KeyhaulKit.docc": [
        "docs/Install.md", "docs/Tutorials/GettingStarted.md", "docs/Tutorials/ReadABackup.md", "docs/Rules.md",
        "docs/Format.md", "docs/Threats.md", "docs/SECURITY.md", "docs/Scripting.md", "docs/Fleet.md", "docs/Performance.md",
        "docs/Reports.md", "docs/Troubleshooting.md",
    ],
    "Sources/Apple/KeychainServices/KeychainServices.docc": [
        "docs/Tutorials/TestYourAppsMigration.md", "docs/Tutorials/1-password-manager.md", "docs/Tutorials/2-duplicates.md",
        "docs/Tutorials/3-keychain-wrapper.md", "docs/Tutorials/4-on-off-game.md", "docs/Tutorials/5-plain-functions.md",
        "docs/Tutorials/6-backup-on-the-desk.md", "docs/Tutorials/7-four-digits.md", "docs/Tutorials/8-app-test-suite.md",
        "docs/Tutorials/9-port-a-package.md",
    ],
}

LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


class BrokenLink(Exception):
    """A link to a file that the repository does not have."""


def heading_anchor(anchor, text):
    """The heading that GitHub calls by this anchor, as DocC calls it: its words with hyphens between them, case kept."""
    for heading in re.findall(r"^#{2,}\s+(.*)$", text, re.M):
        words = re.sub(r"[`*_]", "", heading)
        if re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") == anchor:
            return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
    raise BrokenLink(f"there is no heading #{anchor}")


def converted(text, page, pages, root):
    """A page's text as its catalog has it, and the pictures that it shows."""
    pictures = []

    def link(match):
        mark, words, target = match.groups()
        if re.match(r"[a-z]+:", target):
            return match.group()
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page.resolve()
        if not file.exists():
            raise BrokenLink(f"{page.relative_to(root)}: {target} is not there")
        if mark:
            pictures.append(file)
            return f"![{words}]({file.name})"
        if file in pages or file == page.resolve():
            place = "#" + heading_anchor(anchor, file.read_text(encoding="utf-8")) if anchor else ""
            return f"[{words}](<doc:{file.stem}{place}>)"
        path = f"`{file.relative_to(root)}`"
        return path if words.strip("`") in (file.name, str(file.relative_to(root))) else f"{words} ({path})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(link, text[end:fence.start()]), fence.group()]
        end = fence.end()
    return "".join(parts + [LINK.sub(link, text[end:])]), pictures


def main():
    parser = argparse.ArgumentParser(description="Put the pages of docs/ into the DocC catalogs.")
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
            text, pictures = converted(page.read_text(encoding="utf-8"), page, pages, root)
            (target / page.name).write_text(text, encoding="utf-8")
            for picture in pictures:
                shutil.copyfile(picture, target / picture.name)
            count += 1
    print(f"{count} pages for the site")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenLink as error:
        sys.exit(f"error: {error}")
