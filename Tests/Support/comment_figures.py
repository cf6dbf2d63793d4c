#!/usr/bin/env python3
"""Count how the doc comments of the sources begin, by folder.

    comment_figures.py [FOLDER]

Any checkout can be measured. A summary is the first line of a doc comment. Verbs are recognized by their ending in the
third person.
"""

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
    """Return the counts of types, questions, functions, verbs and lines counted by NIL_WHERE."""
    counts = [0] * 5
    for file in files:
        lines = file.read_text(encoding="utf-8").split("\n")
        counts[4] += sum(bool(NIL_WHERE.search(line)) for line in lines)
        for kind, summary in summaries(lines):
            if kind == "type":
                counts[0] += 1
                counts[1] += bool(QUESTION.match(summary))
            else:
                counts[2] += 1
                counts[3] += bool(VERB.match(summary))
    return counts


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    folders = sorted(folder for parent in (root / "Sources").iterdir() if parent.is_dir()
                     for folder in parent.iterdir() if any(folder.rglob("*.swift")))
    total = [0] * 5
    print(f"{'folder':34} {'types: questions':>18} {'functions: verbs':>18} {'nil where':>10}")
    for folder in [*folders, None]:
        counts = figures(sorted(folder.rglob("*.swift"))) if folder else total
        total = [sum(pair) for pair in zip(total, counts)] if folder else total
        types, questions, functions, verbs, nil_where = counts
        name = folder.relative_to(root) if folder else "all"
        print(f"{str(name):34} {f'{questions} of {types}':>18} {f'{verbs} of {functions}':>18} {nil_where:>10}")
    if total[0] and total[2]:
        print(f"{total[1] / total[0]:.0%} of the types begin with a question, {total[3] / total[2]:.0%} of the functions"
              " with a verb")


if __name__ == "__main__":
    main()
