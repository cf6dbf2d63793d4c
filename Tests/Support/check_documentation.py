#!/usr/bin/env python3
"""Count the doc comments of the public library.

    check_documentation.py [--missing] [--target NAME] [FOLDER]

The count includes everything that a client of the package can name: declarations marked `public` or `open`, the cases
of a public enumeration, and the requirements of a public protocol. A comment counts if it starts with a summary, not
with its parameters, its result or its errors. Requirements of the standard library (`==`, `hash(into:)`, `description`
and others below) do not count.

Exit 1 if less than 90 percent of a target of the library products, or of all of them, is documented. Exit 1 also if a
comment documents only some of the parameters, or a parameter that does not exist: the documentation build rejects that,
but only after minutes. --missing prints every declaration without a comment.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass, field

MIN_PERCENT = 90

# The targets of the library products, from the bottom.
TARGETS = [
    "Library/Basics", "Library/KeychainFormats", "Library/KeychainCrypto", "Library/KeychainRules", "Library/Keychains",
    "Library/VirtualDevice", "Library/Backups", "Library/KeyhaulKit", "Library/Explanations",
    "Library/Reports", "Apple/KeychainServices", "Apple/KeyhaulTesting", "Apple/KeyhaulServing",
]

# Attributes before a declaration: "@MainActor @available(*, deprecated) ".
ATTRIBUTES = r"(?:@\w+(?:\([^)\n]*\))?\s+)*"
# Modifiers of a declaration: "public private(set) static ".
MODIFIERS = (
    r"(?P<modifiers>(?:(?:public|package|internal|fileprivate|private|open|final|static|class|indirect|nonisolated|"
    r"mutating|nonmutating|consuming|borrowing|override|required|convenience|lazy|weak|unowned|dynamic|prefix|postfix|infix)"
    r"(?:\((?:set|unsafe)\))?\s+)*)"
)
TYPES = "struct|class|enum|actor|protocol|extension"
# The start of a declaration, at the start of a line or after "{" or ";", up to its name: "public struct Box",
# "static func ==", "case one" or "public init".
DECLARATION = re.compile(
    rf"(?:^|(?<=[{{;]))[ \t]*{ATTRIBUTES}{MODIFIERS}"
    rf"(?:(?P<kind>{TYPES}|func|var|let|typealias|associatedtype|case)\s+(?P<name>[\w.`]+|[^\s\w(]+)|"
    r"(?P<nameless_kind>init|deinit|subscript)\b)",
    re.M,
)
# An interpolation in a string literal, with up to two nested pairs of parentheses: "\\(name(of: box(1)))".
INTERPOLATION = r"\\\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\)"
# Comments, and string literals of one or several lines, also with "#" delimiters: // a, /* b */, "c", #"d"#.
NOT_CODE = re.compile(
    rf'//[^\n]*|/\*.*?\*/|(#*)"""(?:.*?)"""\1|#+"[^\n]*?"#+|"(?:{INTERPOLATION}|\\.|[^"\\\n])*"', re.S)
# A line that may be between a doc comment and its declaration: "@discardableResult", "#if os(Linux)".
ATTRIBUTE_LINE = re.compile(r"\s*(?:@\w|#if|#else)")
# Requirements of the standard library's protocols: "description", "init(from decoder".
STANDARD_LIBRARY_NAMES = re.compile(
    r"==|<|hash|description|debugDescription|customMirror|rawValue|init\(rawValue:|encode\(to |init\(from ")


@dataclass
class Declaration:
    """A declaration that counts."""

    name: str
    line: int
    is_documented: bool
    # The errors in the parameters of its comment.
    faults: list[str] = field(default_factory=list)


@dataclass
class Scope:
    """The scope of a pair of braces."""

    kind: str
    is_public: bool


def without_text(source):
    """Return the source with comments and string literals replaced with spaces. Line numbers stay the same."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def comment(lines, index):
    """Return the lines of the doc comment above a declaration or its attributes, without the slashes."""
    index -= 1
    while index >= 0 and ATTRIBUTE_LINE.match(lines[index]):
        index -= 1
    comment_lines = []
    while index >= 0 and lines[index].lstrip().startswith("///"):
        comment_lines.insert(0, lines[index].lstrip()[3:])
        index -= 1
    return comment_lines


def is_documented(lines, index):
    """Return whether a declaration has a doc comment that starts with a summary."""
    first = next(iter(comment(lines, index)), "").strip()
    return first != "" and not re.match(r"- (?:Parameters?|Returns|Throws)\b", first)


# The functions below read parameters from a comment and from the code. An example:
#
#     /// - Parameters:                  documented_parameters: door, key
#     ///   - door: The door.
#     ///   - key: The key, one of:
#     ///     - front: A nested list, which does not count.
#     /// - Parameter time: The time.    documented_parameters: time
#     func open(_ door: Door, with key: [UInt8: Int], at time: (Int, Int) = (1, 2))
#
# parameters: door, key, time. The commas and colons in brackets do not separate parameters.


def documented_parameters(lines):
    """Yield the parameter names that a doc comment documents, each in a line of its own or in a list."""
    is_list, depth = False, None
    for line in lines:
        if item := re.match(r"( *)- `?(\w+)`?(?: `?(\w+)`?)?:", line):
            indent, word, name = len(item.group(1)), item.group(2), item.group(3)
            if is_list and indent > 1 and name is None:
                depth = depth or indent
                if indent == depth:
                    yield word
                continue
            is_list, depth = word == "Parameters" and name is None, None
            if word == "Parameter" and name:
                yield name


def parameters(code, start):
    """Return the internal parameter names of a declaration."""
    depth, part, parts = 0, "", []
    for character in code[code.find("(", start):]:
        depth -= character in ")]}"
        if depth == 0 or (depth == 1 and character == ","):
            parts.append(part)
            part = ""
            if depth == 0 and character == ")":
                break
        else:
            part += character
        depth += character in "([{"
    # The words before the colon: the label, if there is one, and the internal name.
    names = (part.split(":")[0].split() for part in parts if ":" in part)
    return [words[-1].strip("`") for words in names if words and re.fullmatch(r"`?\w+`?", words[-1])]


def parameter_faults(lines, code, declaration_match):
    """Return the errors in the parameters of a comment."""
    documented, names = list(documented_parameters(lines)), parameters(code, declaration_match.end())
    if not documented:
        return []
    return ([f"does not document its parameter {name}" for name in names if name != "_" and name not in documented]
            + [f"documents {name}, which is not one of its parameters" for name in documented if name not in names])


def case_names(code, start):
    """Return the names of `case a, b(Int), c`, which may extend over several lines."""
    text, depth = "", 0
    for character in code[start:]:
        depth += {"(": 1, "[": 1}.get(character, 0)
        if depth == 0 and (character in "{};" or character == "\n" and not text.rstrip().endswith(",")):
            break
        text += character if depth == 0 else ""
        depth -= {")": 1, "]": 1}.get(character, 0)
    names = (re.match(r"`?\w+`?", part.strip()) for part in text.split(","))
    return [name.group() for name in names if name]


def scope_after(declaration_match, outer):
    """Return the scope that a brace opens after a declaration. `declaration_match` is None after other code."""
    if declaration_match is None or outer.kind == "body" or declaration_match["kind"] not in TYPES.split("|"):
        return Scope("body", False)
    if declaration_match["kind"] == "extension":
        return Scope("extension", True)
    return Scope(declaration_match["kind"], is_marked(declaration_match) and outer.is_public)


def is_marked(declaration_match):
    """Return whether a declaration is marked `public` or `open`."""
    return re.search(r"\b(?:public|open)\b", declaration_match["modifiers"]) is not None


def counted_declarations(declaration_match, scope, code, lines):
    """Yield the declarations that count: none, the declaration itself, or each case of it."""
    nameless_kind = declaration_match["nameless_kind"]
    kind, name = declaration_match["kind"] or nameless_kind, declaration_match["name"] or nameless_kind
    if scope.kind == "body" or not scope.is_public or kind in ("extension", "deinit"):
        return
    start, end = declaration_match.span()
    line = code.count("\n", 0, start)
    # A declaration after a brace on the same line cannot have its own comment.
    documented = start == code.rfind("\n", 0, start) + 1 and is_documented(lines, line)
    if kind == "case":
        if scope.kind == "enum":
            cases = case_names(code, declaration_match.start("name"))
            yield from (Declaration(case, line + 1, documented) for case in cases)
    elif is_marked(declaration_match) or scope.kind == "protocol":
        signature = re.sub(r"\s+", " ", code[end:end + 40]).lstrip()
        if not (STANDARD_LIBRARY_NAMES.fullmatch(name) or STANDARD_LIBRARY_NAMES.match(name + signature)):
            has_parameters = kind in ("func", "init", "subscript")
            faults = parameter_faults(comment(lines, line), code, declaration_match) if has_parameters else []
            yield Declaration(name, line + 1, documented, faults)


def declarations(source):
    """Yield the public declarations of one file, in order."""
    code, lines = without_text(source), source.split("\n")
    remaining, scopes, last = list(DECLARATION.finditer(code)), [Scope("file", True)], None
    # Go from brace to brace. The declarations before a brace belong to the current scope, and an opening brace belongs
    # to the last of them.
    for match in re.finditer(r"[{}]|\Z", code):
        while remaining and remaining[0].start() < match.start():
            last = remaining.pop(0)
            yield from counted_declarations(last, scopes[-1], code, lines)
        if match.group() == "{":
            scopes.append(scope_after(last, scopes[-1]))
        elif match.group() == "}" and len(scopes) > 1:
            scopes.pop()
        last = None


def percent(documented, total):
    """Return the percentage that is documented, or 100 if there is nothing to document."""
    return 100 if total == 0 else 100 * documented / total


def main():
    parser = argparse.ArgumentParser(description="Count the doc comments of the public library.")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--target")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    counts, failed = [], 0
    for target in [arguments.target] if arguments.target else TARGETS:
        documented = total = 0
        for path in sorted((arguments.folder / "Sources" / target).rglob("*.swift")):
            for declaration in declarations(path.read_text(encoding="utf-8")):
                total += 1
                documented += declaration.is_documented
                for fault in declaration.faults:
                    failed += 1
                    print(f"{path.relative_to(arguments.folder)}:{declaration.line}: {declaration.name} {fault}")
                if arguments.missing and not declaration.is_documented:
                    print(f"{path.relative_to(arguments.folder)}:{declaration.line}: {declaration.name}")
        counts.append((target, documented, total))
    if not arguments.target:
        counts.append((
            "all", sum(documented for _, documented, _ in counts), sum(total for _, _, total in counts)))
    for name, documented, total in counts:
        reached = percent(documented, total)
        failed += reached < MIN_PERCENT or total == 0
        verdict = "  too few" if reached < MIN_PERCENT else ""
        print(f"{name:18} {documented:5} of {total:5}  {reached:5.1f} %{verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
