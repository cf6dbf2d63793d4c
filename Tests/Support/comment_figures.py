#!/usr/bin/env python3
"""Count how the doc comments of the sources begin, by folder.

    comment_figures.py [FOLDER]

Any checkout can be measured. A summary is the first line of a doc comment. Verbs are recognized by their ending in the
third person.
"""

import collections
import pathlib
import re
import sys

DECLARATION = re.compile(
    r"\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate|open|static|final|indirect|mutating"
    r"|borrowing|consuming|nonisolated|convenience|override|isolated)(?:\([^)]*\))?\s+)*"
    r"(?P<kind>struct|class|enum|actor|protocol|typealias|func)\b")
QUESTION = re.compile(r"(?:What|Why|Which|How|Where|When|Whose?)\b")
# The third person of a verb, such as Returns, but not the plural of a noun.
VERB = re.compile(
    r"(?!(?:Arguments|Bytes|Capitals|Days|Devices|Flags|Groups|Items|Letters|Names|Parts|Passwords|Rows|Seconds|Secrets"
    r"|Sizes|Statements|Strings)\b)(?:[A-Z][a-z]+(?:[^s\W]s|sses|shes|ches|xes|zes)|Does|Goes|Undoes)\b|Whether\b")
NIL_WHERE = re.compile(r"`nil`? where\b")


def summaries(lines):
    """Yield the kind of declaration and the first line of its doc comment."""
    start = None
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("///"):
            start = stripped[3:].strip() if start is None else start
        elif start is not None and stripped and not re.fullmatch(r"@\w+(?:\([^)]*\))?|#(?:if|else|endif).*", stripped):
            if match := DECLARATION.match(line):
                yield "function" if match["kind"] == "func" else "type", start
            start = None


def figures(files):
    """Return the counts of types, questions, functions, verbs, and lines that match NIL_WHERE."""
    counts = collections.Counter()
    for file in files:
        lines = file.read_text(encoding="utf-8").split("\n")
        counts["nil where"] += sum(bool(NIL_WHERE.search(line)) for line in lines)
        for kind, summary in summaries(lines):
            if kind == "type":
                counts["types"] += 1
                counts["questions"] += bool(QUESTION.match(summary))
            else:
                counts["functions"] += 1
                counts["verbs"] += bool(VERB.match(summary))
    return counts


def print_row(name, counts):
    """Print the counts of one folder."""
    questions = f"{counts['questions']} of {counts['types']}"
    verbs = f"{counts['verbs']} of {counts['functions']}"
    print(f"{name:34} {questions:>18} {verbs:>18} {counts['nil where']:>10}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    folders = sorted(folder for parent in (root / "Sources").iterdir() if parent.is_dir()
                     for folder in parent.iterdir() if any(folder.rglob("*.swift")))
    total = collections.Counter()
    print(f"{'folder':34} {'types: questions':>18} {'functions: verbs':>18} {'nil where':>10}")
    for folder in folders:
        counts = figures(sorted(folder.rglob("*.swift")))
        print_row(str(folder.relative_to(root)), counts)
        total += counts
    print_row("all", total)
    if total["types"] and total["functions"]:
        print(
            f"{total['questions'] / total['types']:.0%} of the types begin with a question, "
            f"{total['verbs'] / total['functions']:.0%} of the functions with a verb")


if __name__ == "__main__":
    main()
