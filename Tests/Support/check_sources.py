#!/usr/bin/env python3
"""House rules that no formatter knows, checked over all files that git tracks or would add.

    check_sources.py [FOLDER]

Each finding is printed as file:line and the rule. Exit 1 where there is one.
"""

import argparse
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

MAX_SWIFT_LINES = 400


@dataclass
class Rule:
    """A pattern that may not occur in files whose path matches `where`."""

    why: str
    pattern: str
    where: str
    unless: str = r"(?!)"

    def __post_init__(self):
        self.pattern, self.where, self.unless = map(re.compile, (self.pattern, self.where, self.unless))


def import_of(modules):
    attributes, access = r"(?:@\w+(?:\([^)]*\))?\s+)*", r"(?:(?:public|package|internal|private|fileprivate) )?"
    return rf"^\s*{attributes}{access}import (?:\w+ )?(?:{modules})\b"


# What needs the C library for anything else than files: memory, time, processes, signals, terminals, streams that are open
# already, the text of libarchive.
NOT_ABOUT_FILES = r"^Sources/(?:" + "|".join([
    r"Files/System/(?:SystemCalls|DirectoryEntry)",
    r"SecretMemory/(?:WipedMemory|SecretPages)",
    r"VirtualDevice/Values/DeviceClock", r"VirtualDevice/Files/DeviceFileLock",
    r"BackupArchive/Container/(?:LibArchiveReader|GzipCheck)",
    r"CommandSession/System/(?:ByteStream|Errno\+Streams|StandardStreams|WipedBuffer)",
    r"CommandSession/Failures/Interruption", r"CommandSession/Secrets/SecretCommand",
    r"CommandSession/Terminal/(?:TerminalDevice|TerminalSettings)", r"TextLayout/TimeText",
    r"keyhaul/Main/Program",
]) + r")\.swift$"
# Foundation and SystemPackage have them too. `open`, `read` and the like are also names of ours; "stat(2)" is a page of the manual.
FILE_CALLS = (
    r"(?<![.\w])(?:openat|[lf]?stat|fstatat|f?sync|fdatasync|unlink(?:at)?|linkat|symlink(?:at)?|readlink(?:at)?|renameat"
    r"|mkdir(?:at)?|rmdir|flock|f?chmod|fchmodat|f?chown|fchownat|mk[sd]?temp|f?truncate|f?opendir|readdir|closedir|preadv?"
    r"|pwritev?|lseek|realpath|access|strerror(?:_r)?)\((?!\d\))|\bFileDescriptor\.open\b|(?<![.\w])Stat\(")

SWIFT_SOURCES = r"^(?:Sources|Fixtures|docs/Examples)/.*\.swift$"
RULES = [
    Rule("an error is thrown on, never forced away", r"\btry!", SWIFT_SOURCES),
    Rule("a cast is tested, never forced", r"\bas!", SWIFT_SOURCES),
    Rule("these parts do without Foundation", import_of("Foundation|FoundationNetworking|FoundationXML"),
         r"^Sources/(?:SecretMemory|KeychainFormats|DataProtection|Certificates|KeychainRules|KeychainDumps|KeychainDatabases|SecItem|BackupArchive|BackupWriting|ArchivedKeychain|Migration|Reports)/"),
    Rule("OpenSSL lives in DataProtection and Certificates", import_of("COpenSSL|CKeyDerivation"), r"^Sources/.*\.swift$",
         r"^Sources/(?:DataProtection|Certificates)/"),
    Rule("libarchive lives in BackupArchive alone", import_of("CArchive"), r"^Sources/.*\.swift$",
         r"^Sources/BackupArchive/"),
    Rule("utf8proc lives in DataProtection and TextLayout", import_of("CUTF8Proc"), r"^Sources/.*\.swift$",
         r"^Sources/(?:DataProtection|TextLayout)/"),
    Rule("SQLite lives in KeychainStore, KeychainDatabases and BackupArchive", import_of("GRDB|GRDBSQLite|CSQLite|SQLite3"), r"^Sources/.*\.swift$",
         r"^Sources/(?:KeychainStore|KeychainDatabases|BackupArchive)/"),
    Rule("threads take turns by ParallelWork's Locked, which the thread sanitizer sees", r"\bMutex[<(]",
         r"^Sources/.*\.swift$"),
    Rule("threads are started by ParallelWork, whose leave nothing on their stacks",
         r"(?<!\w)Thread(?: \{|\()|\bDispatchQueue\(|\bdetachNewThread|\bconcurrentPerform|\bpthread_create",
         r"^Sources/.*\.swift$", r"^Sources/ParallelWork/WorkThread\.swift$"),
    Rule("the C library is imported by Files, and by name for what is not a file", import_of("Glibc|Musl|Darwin"),
         r"^Sources/.*\.swift$", NOT_ABOUT_FILES),
    Rule("calls about files are made by Files", FILE_CALLS, r"^Sources/.*\.swift$", r"^Sources/Files/"),
    Rule("a flag or a verb belongs to the program; Reports has its calls in Commands.swift",
         r'^(?!\s*//).*"[^"]*(?:(?<!var\()--[a-z]|\bkeyhaul [a-z])', r"^Sources/.*\.swift$",
         r"^Sources/(?:keyhaul/|(?:Simulator|Item)Verbs/|ExportVerb/|ManyBackups/|CommandSession/|CommandArguments/|Reports/Words/Commands\.swift)"),
    Rule("a path of somebody's machine", r"(?<![\w.}])/(?:(?:work|tmp|root|Users)/[\w.]|home/[\w.]+/)", r".",
         r"^Tests/TestSupport/test-vectors\.json$"),
    Rule("a document that is not in this repository", r"(?<![\w/.-])(?:spec|shared)/[\w-]", r"."),
    Rule("a note to ourselves", r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b", r"."),
    Rule("the number of an issue", r"(?i)\bissue\s+#?\d", r"."),
    Rule("an unfinished merge", r"^(?:<{7}|={7}|>{7})(?: |$)", r"."),
]
LEFT_OUT = re.compile(r"^(?:LICENSE|Package\.resolved)$")


def tracked(folder):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=folder, check=True,
        stdout=subprocess.PIPE).stdout.decode("utf-8")
    return sorted(name for name in listed.split("\0") if name and (folder / name).is_file())


def findings(name, content):
    """Line number and reason of everything in one file that breaks a rule."""
    if LEFT_OUT.match(name) or "\0" in content:
        return
    lines = content.split("\n")
    if name.endswith(".swift") and len(lines) > MAX_SWIFT_LINES:
        yield MAX_SWIFT_LINES, f"longer than {MAX_SWIFT_LINES} lines: more than one idea"
    rules = [rule for rule in RULES if rule.where.search(name) and not rule.unless.search(name)]
    for number, line in enumerate(lines, start=1):
        for rule in rules:
            if rule.pattern.search(line):
                yield number, rule.why


def main():
    parser = argparse.ArgumentParser(description="Check the house rules that no formatter knows.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    folder = parser.parse_args().folder
    passed = failed = 0
    for name in tracked(folder):
        found = list(findings(name, (folder / name).read_bytes().decode("utf-8", "replace")))
        for number, why in found:
            print(f"{name}:{number}: {why}")
        passed, failed = passed + (not found), failed + bool(found)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
