#!/usr/bin/env python3
"""Create the commit and the tag of a release, which Swift packages use by version.

    packaging/make_release_tag.py [--check]

Package.swift reads environment variables, so a package that depends on a release could get different targets and flags
from one machine to the next. It also has unsafe flags, which Swift before 6.2 refuses in a dependency. Therefore the
tagged commit has a modified Package.swift without environment variables and unsafe flags: the lines between
"Development builds" and "End of development builds" are replaced with fixed values. Everything else equals the current
commit, which is the parent of the tagged one. The tag is named after the version of the program, such as v0.2.0. The
branch and the files in the folder do not change, and nothing is pushed.

--check only checks that such a manifest can be made. `make lint` runs it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
VERSION = re.compile(r'static let number = "([^"]+)"')
VERSION_FILE = "Sources/CommandLine/keyhaul/Output/ProgramVersion.swift"
DEVELOPMENT = re.compile(r"^// Development builds\b.*?^// End of development builds\.\n", re.M | re.S)
DECLARATION = re.compile(r"^let (\w+)(: \[\w+\])? = ", re.M)
FIXED = """\
// This is the manifest of a release, made by packaging/make_release_tag.py.
let environment = ["KEYHAUL_COMMIT": "COMMIT"]
let optimizesSwift: [SwiftSetting] = []
let optimizesC: [CSetting] = []
let importsSecurity: [SwiftSetting] = []
"""


def fail(message):
    """End with an error."""
    sys.exit(f"error: {message}")


def git(*arguments, **options):
    """Return the output of a git command in this repository."""
    run = subprocess.run(["git", *arguments], cwd=TOP, stdout=subprocess.PIPE, text=True, **options)
    if run.returncode:
        fail(f"git {arguments[0]} failed")
    return run.stdout.strip()


def release_manifest(manifest, commit):
    """Return the manifest of a release."""
    blocks = DEVELOPMENT.findall(manifest)
    if len(blocks) != 1:
        fail(f'Package.swift has {len(blocks)} blocks "Development builds"; there must be one')
    names = [match[0] for match in DECLARATION.findall(blocks[0])]
    fixed_names = [match[0] for match in DECLARATION.findall(FIXED)]
    if names != fixed_names:
        fail(f"the development builds declare {', '.join(names)}, but a release declares {', '.join(fixed_names)}")
    text = manifest.replace(blocks[0], FIXED.replace("COMMIT", commit))
    for word in "unsafeFlags", "Context.", "ProcessInfo", "getenv":
        if word in text:
            fail(f"Package.swift contains {word} outside of the development builds")
    return text


def main():
    """Create the release of the current commit, or with --check only its manifest."""
    manifest = (TOP / "Package.swift").read_text(encoding="utf-8")
    if sys.argv[1:] == ["--check"]:
        release_manifest(manifest, "0" * 40)
        return
    if sys.argv[1:]:
        fail("the only option is --check")
    if git("status", "--porcelain"):
        fail("files are not committed")
    version = VERSION.search((TOP / VERSION_FILE).read_text(encoding="utf-8"))[1]
    tag, commit = f"v{version}", git("rev-parse", "HEAD")
    if git("tag", "--list", tag):
        fail(f"the tag {tag} already exists")
    release = commit_release(release_manifest(manifest, commit), commit, version, tag)
    print(f"{tag} is {release}, made from {commit}; to publish it: git push origin {tag}")


def commit_release(manifest, commit, version, tag):
    """Create the commit with the manifest of the release, and its tag. Return the commit.

    The commit has the date of its parent, so that each run creates the same commit.
    """
    blob = git("hash-object", "-w", "--stdin", input=manifest)
    with tempfile.TemporaryDirectory() as folder:
        # A separate index, so that the index of the working folder does not change.
        index_environment = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", commit, env=index_environment)
        git("update-index", "--cacheinfo", f"100644,{blob},Package.swift", env=index_environment)
        tree = git("write-tree", env=index_environment)
    date = git("log", "-1", "--format=%cI", commit)
    dated_environment = {**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    release = git("commit-tree", tree, "-p", commit, "-m", f"Release {version}", env=dated_environment)
    git("tag", "--annotate", tag, release, "--message", f"Keyhaul {version}", env=dated_environment)
    return release


if __name__ == "__main__":
    main()
