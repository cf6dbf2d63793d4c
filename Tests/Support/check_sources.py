#!/usr/bin/env python3
"""Check rules that no formatter knows, in all files that git tracks or would add.

    check_sources.py [FOLDER]

Each finding is printed as file:line and the rule. Exit 1 if there is one.
"""

import argparse
import io
import pathlib
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass


@dataclass
class Rule:
    """A pattern that must not occur in files whose path matches `where` but not `unless`."""

    reason: str
    pattern: str
    where: str
    unless: str = r"(?!)"

    def __post_init__(self):
        self.pattern, self.where, self.unless = map(re.compile, (self.pattern, self.where, self.unless))


def import_of(modules):
    """Return a pattern for imports of these Swift modules."""
    attributes, access = r"(?:@\w+(?:\([^)]*\))?\s+)*", r"(?:(?:public|package|internal|private|fileprivate) )?"
    return rf"^\s*{attributes}{access}import (?:\w+ )?(?:{modules})\b"


# Files that may import the C library: for files, memory, time, processes, signals, terminals, streams and the error
# messages of libarchive.
C_LIBRARY_FILES = r"^Sources/(?:" + "|".join([
    r"Library/Basics/Files/SystemCalls",
    r"Library/Basics/Sockets/StreamSocket",
    r"Library/Basics/Secrets/(?:SecureMemory|SecretPages)",
    r"Library/VirtualDevice/Values/DeviceClock", r"Library/VirtualDevice/Files/DeviceFileLock",
    r"Library/Backups/Container/(?:LibArchiveReader|GzipChecksumVerifier)",
    r"CommandLine/keyhaul/Session/Streams/(?:BufferedOutput|SecureInputBuffer)",
    r"CommandLine/keyhaul/Session/Process/Interruption", r"CommandLine/keyhaul/Session/Secrets/SecretCommand",
    r"CommandLine/keyhaul/Session/Terminal/TerminalDevice", r"Library/Basics/Text/LocalTimeFormat",
    r"CommandLine/keyhaul/Main/Program",
]) + r")\.swift$"
# Calls of the C library that change or inspect files. `open` and `read` are missing, because our methods have these
# names. "stat(2)" is a page of the manual.
FILE_CALLS = (
    r"(?<![.\w])(?:openat|[lf]?stat|fstatat|f?sync|fdatasync|unlink(?:at)?|linkat|symlink(?:at)?|readlink(?:at)?|renameat"
    r"|mkdir(?:at)?|rmdir|flock|f?chmod|fchmodat|f?chown|fchownat|mk[sd]?temp|f?truncate|f?opendir|readdir|closedir|preadv?"
    r"|pwritev?|lseek|realpath|access|strerror(?:_r)?)\((?!\d\))|\bFileDescriptor\.open\b|(?<![.\w])Stat\(")

SWIFT_SOURCES = r"^(?:Sources|Fixtures|docs/Examples)/.*\.swift$"
RULES = [
    Rule("`try!` is not allowed", r"\btry!", SWIFT_SOURCES),
    Rule("`as!` is not allowed", r"\bas!", SWIFT_SOURCES),
    Rule("this module does not import Foundation", import_of("Foundation|FoundationNetworking|FoundationXML"),
         r"^Sources/Library/(?:Basics/(?:Secrets|JSON|Values|Errors|Names)|KeychainFormats|KeychainCrypto|KeychainRules"
         r"|Keychains/(?:Databases|Simulator|Dumps)|VirtualDevice/SecItem|Backups|KeyhaulKit|Explanations|Reports)/"),
    Rule("only KeychainCrypto imports OpenSSL", import_of("COpenSSL"), r"^Sources/.*\.swift$",
         r"^Sources/Library/KeychainCrypto/"),
    Rule("only Backups imports libarchive", import_of("CArchive"), r"^Sources/.*\.swift$",
         r"^Sources/Library/Backups/"),
    Rule("only Basics and KeychainCrypto import utf8proc", import_of("CUTF8Proc"), r"^Sources/.*\.swift$",
         r"^Sources/Library/(?:Basics|KeychainCrypto)/"),
    Rule("only Keychains/Store and Backups/Writing import GRDB", import_of("GRDB|GRDBSQLite"),
         r"^Sources/.*\.swift$", r"^Sources/Library/(?:Keychains/Store|Backups/Writing)/"),
    Rule("only Basics and the code that uses GRDB import the C interface of SQLite", import_of("CSQLite|SQLite3"),
         r"^Sources/.*\.swift$", r"^Sources/Library/(?:Basics/SQLite|Keychains/Store|Backups/Writing)/"),
    Rule("use `Locked` of Basics, which the thread sanitizer understands", r"\bMutex[<(]",
         r"^Sources/.*\.swift$"),
    Rule("start threads with `SecureThread` of Basics, which wipes their stacks",
         r"(?<!\w)Thread(?: \{|\()|\bDispatchQueue\(|\bdetachNewThread|\bconcurrentPerform|\bpthread_create",
         r"^Sources/.*\.swift$", r"^Sources/Library/Basics/Threads/SecureThread\.swift$"),
    Rule("only the files listed in C_LIBRARY_FILES import the C library", import_of("Glibc|Musl|Darwin"),
         r"^Sources/.*\.swift$", C_LIBRARY_FILES),
    Rule("only Basics calls file functions of the C library", FILE_CALLS, r"^Sources/.*\.swift$",
         r"^Sources/Library/Basics/Files/"),
    Rule("only the program, Explanations and the Results of Reports name flags and commands",
         r'^(?!\s*//).*"[^"]*(?:(?<!var\()--[a-z]|\bkeyhaul [a-z])', r"^Sources/.*\.swift$",
         r"^Sources/(?:CommandLine/|Library/(?:Explanations|Reports/Results)/)"),
    Rule("these tests also compile with Apple's Security, so only VirtualPhones.swift imports our own modules",
         import_of(r"Basics|Keychain\w+|VirtualDevice|Backups|Keyhaul(?:Kit|Serving)|Explanations|Reports|DeviceServer"
                   r"|TestSupport"),
         r"^Tests/AppleComparisonTests/", r"/VirtualPhones\.swift$"),
    Rule("a path on a developer's machine", r"(?<![\w.}])/(?:(?:work|tmp|root|Users)/[\w.]|home/[\w.]+/)", r".",
         r"^Tests/TestSupport/test-vectors\.json$"),
    Rule("a reference to a document outside this repository", r"(?<![\w/.-])(?:spec|shared)/[\w-]", r"."),
    Rule("a note about unfinished work", r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b", r"."),
    Rule("the number of an issue", r"(?i)\bissue\s+#?\d", r"."),
    Rule("a merge conflict marker", r"^(?:<{7}|={7}|>{7})(?: |$)", r"."),
]

# Documentation: pages, examples, schemas, packages and their descriptions, the targets that `make` lists, and .ci.
DOCUMENTS = re.compile(r"\.md$|(?:^|/)Makefile$|^(?:docs/(?:Examples|schemas)|packaging|\.ci)/")
# Phrases that read like a translation. Key: pattern. Value: what the message suggests.
FORMS_OF_BE = r"(?<!\bthere\s)(?:is|are|was|were)"
DISCOURAGED_PHRASES = {
    # "(?-i:none)" does not match Python's `is None`.
    rf"{FORMS_OF_BE} (?-i:none)": '"is not one"',
    rf"{FORMS_OF_BE} no (?!(?:longer|more|less|other than|\w+er than)\b)\w+": '"is not a", "has no" or "cannot"',
    r"nil`? (?:where|for)": '"nil if"',
    r"anew": '"again", or a verb with "re-"',
    r"whoever": '"anyone who" or "a caller that"',
    r"besides": '"also" or "in addition to"',
    r"meanwhile": '"since then" or "in the meantime"',
    r"but for": '"except"',
    r"as far as": "what the limit is",
    r"of which": '"whose", or a second sentence',
    r"held against": '"compared with"',
    r"com(?:e|es|ing) to|came to": '"becomes", "reaches" or "results in"',
    r"at hand": '"available"',
}
ALTERNATIVES = "|".join(f"({phrase})" for phrase in DISCOURAGED_PHRASES).replace(" ", r"\s+")
DISCOURAGED_PHRASE = re.compile(rf"\b(?:{ALTERNATIVES})\b", re.IGNORECASE)
# The start of a line. Removing it finds phrases that are broken over two lines of a comment.
LINE_START = re.compile(r"\n[ \t]*(?:#|//+)?[ \t]+")
# Folders with Swift code whose comments are checked for these phrases, and whose test names must be understandable on
# their own.
PHRASE_CHECKED_FOLDERS = [
    "Sources/Library/Basics", "Sources/Library/KeychainFormats", "Sources/Library/KeychainCrypto",
    "Sources/Library/KeychainRules", "Sources/Library/Keychains", "Sources/Library/VirtualDevice",
    "Sources/Library/Backups", "Sources/Library/KeyhaulKit", "Sources/Library/DeviceServer",
    "Sources/Library/Explanations", "Sources/Library/Reports", "Tests/ReportsTests", "Tests/KeyhaulKitTests",
    "Tests/DeviceServerTests", "Tests/TestSupport", "Tests/FoundationOnlyTests", "Tests/Benchmarks", "Tests/Fuzzing",
    "Tests/BasicsTests", "Tests/KeychainFormatsTests", "Tests/KeychainCryptoTests", "Tests/KeychainRulesTests",
    "Tests/KeychainsTests", "Tests/VirtualDeviceTests", "Tests/AppleComparisonTests",
    "Sources/Apple", "Sources/CommandLine", "Tests/CommandLineTests", "Tests/BackupsTests",
    "Tests/KeychainServicesTests", "Tests/KeyhaulTestingTests", "Tests/KeyhaulServingTests", "Tests/SecurityTests",
]
PHRASE_CHECKED_SOURCES = re.compile(rf"^(?:{'|'.join(PHRASE_CHECKED_FOLDERS)})/.*\.swift$")
# Scripts whose comments and docstrings are checked for these phrases.
PHRASE_CHECKED_SCRIPTS = re.compile(r"^(?:Tests/Support|Fixtures)/.*\.py$")
COMMENT = re.compile(r"\s*//")
# Starts of doc comment lines. Key: pattern. Value: what the message suggests.
DISCOURAGED_STARTS = {
    r"(?:What|Why|Which|How|Where|Whose?)\b": "a noun phrase, or a verb such as Returns",
    r"(?:The same|Of|As|Those|One)\b": "the name of the thing",
    r"- (?:Parameter )?\w+: (?:Of|As|That|Those|What|Where)\b": "a noun phrase with its article",
}
DISCOURAGED_START = re.compile(r"\s*///\s+(?:" + "|".join(f"({start})" for start in DISCOURAGED_STARTS) + ")")
# The name of a fixture or a table, such as `synthetic_backup:`, may come first.
TEST_NAME = re.compile(r'@Test\(\s*"(?!\w+(?:_\w+|s): )[a-z]')
SUITE_NAME = re.compile(r'@Suite\(\s*"(?:[a-z]|(?:What|Why|Which|How|Where|Who)\b)')
# Quotations that contain a discouraged phrase: file, quotation, and reason. Remove entries that are no longer quoted.
QUOTATIONS: list[tuple[str, str, str]] = [
]
EXCLUDED = re.compile(r"^(?:LICENSE|Package\.resolved)$")


def tracked_files(folder):
    """Return the names of all files that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=folder, check=True,
        stdout=subprocess.PIPE).stdout.decode("utf-8")
    return sorted(name for name in listed.split("\0") if name and (folder / name).is_file())


def findings(name, content):
    """Yield the line number and the reason of each violation in one file."""
    if EXCLUDED.match(name) or "\0" in content:
        return
    lines = content.split("\n")
    rules = [rule for rule in RULES if rule.where.search(name) and not rule.unless.search(name)]
    for number, line in enumerate(lines, start=1):
        for rule in rules:
            if rule.pattern.search(line):
                yield number, rule.reason
    if DOCUMENTS.search(name):
        yield from phrase_findings(name, content)
    if PHRASE_CHECKED_SOURCES.search(name):
        yield from comment_findings(name, lines)
        yield from test_name_findings(content)
    if PHRASE_CHECKED_SCRIPTS.search(name):
        yield from phrase_findings(name, script_comments(content))


def script_comments(content):
    """Return the comments and docstrings of a Python script. Code becomes empty lines, so that line numbers stay."""
    texts, is_statement_start = [""] * (content.count("\n") + 2), True
    try:
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            if token.type == tokenize.COMMENT or token.type == tokenize.STRING and is_statement_start:
                for number, text in enumerate(token.string.split("\n"), start=token.start[0] - 1):
                    texts[number] = text
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                is_statement_start = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    except (tokenize.TokenError, SyntaxError):
        # Other checks report invalid scripts.
        pass
    return "\n".join(texts)


def comment_findings(name, lines):
    """Yield the line number and the reason of each discouraged phrase in the comments of Swift code."""
    for number, line in enumerate(lines, start=1):
        if match := DISCOURAGED_START.match(line):
            replacement = list(DISCOURAGED_STARTS.values())[match.lastindex - 1]
            yield number, f"a doc comment starts with {match[match.lastindex]!r}; write: {replacement}"
    # Code becomes empty lines, so that line numbers stay and a phrase cannot continue in code.
    yield from phrase_findings(name, "\n".join(line if COMMENT.match(line) else "" for line in lines))


def test_name_findings(content):
    """Yield the line number and the reason of each name of a test or suite that needs its context."""
    for pattern, replacement in (TEST_NAME, "a sentence"), (SUITE_NAME, "a noun phrase"):
        for match in pattern.finditer(content):
            yield content.count("\n", 0, match.start()) + 1, f"this name needs its context; write: {replacement}"


def phrase_findings(name, content):
    """Yield the line number and the reason of each discouraged phrase in a document."""
    for path, quotation, _ in QUOTATIONS:
        if path == name and quotation not in content:
            yield 1, f"no longer quotes {quotation!r}; see QUOTATIONS in check_sources.py"
        elif path == name:
            content = content.replace(quotation, "")
    content = LINE_START.sub("\n", content)
    for match in DISCOURAGED_PHRASE.finditer(content):
        phrase = " ".join(match.group().split())
        replacement = list(DISCOURAGED_PHRASES.values())[match.lastindex - 1]
        yield content.count("\n", 0, match.start()) + 1, f"reads like a translation: {phrase!r}; write: {replacement}"


def main():
    parser = argparse.ArgumentParser(description="Check rules that no formatter knows.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    folder = parser.parse_args().folder
    passed = failed = 0
    for name in tracked_files(folder):
        violations = list(findings(name, (folder / name).read_bytes().decode("utf-8", "replace")))
        for number, reason in violations:
            print(f"{name}:{number}: {reason}")
        passed, failed = passed + (not violations), failed + bool(violations)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
