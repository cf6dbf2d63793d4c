#!/usr/bin/env python3
"""Writes the manual pages: keyhaul(1), one for each command, and keyhaul-formats(5).

    packaging/make_man_pages.py PROGRAM FOLDER [--date YYYY-MM-DD]

The commands, their flags and their texts come from the program, so a page says what --help says. The page of the formats is
docs/Format.md. Nothing is read from the clock: without --date, the date is that of SOURCE_DATE_EPOCH, or in 1970.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent


def escaped(text):
    """Escapes text for roff, so that it is shown byte for byte."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace('"', "\\(dq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def bold(text):
    return f"\\fB{escaped(text)}\\fR"


def words(text):
    """A paragraph of the program's help, without the line breaks of its source."""
    return escaped(" ".join(text.split()))


class Pages:
    def __init__(self, program, folder, date):
        self.program, self.folder, self.date = program, folder, date
        self.version = json.loads(self.say("version", "--json"))["version"]
        self.names = []

    def say(self, *arguments):
        environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        return subprocess.run([self.program, *arguments], check=True, capture_output=True, text=True, env=environment).stdout

    def write(self, name, section, lines):
        head = f'.TH {name.upper().replace("-", chr(92) + "-")} {section} {self.date} "Keyhaul {self.version}" "Keyhaul Manual"'
        # A title starts a paragraph by itself.
        lines = [line for before, line in zip([""] + lines, lines) if line != ".PP" or not before.startswith((".SH", ".SS"))]
        text = "\n".join([head, *lines]) + "\n"
        (self.folder / f"{name}.{section}").write_text(re.sub(r"\n{2,}", "\n", text), encoding="utf-8")
        self.names.append((name, section))

    def exit_codes(self):
        topics = json.loads(self.say("explain", "--json"))["topics"]
        return [topic for topic in topics if "code" in topic]

    def verb(self, command, path):
        name = "-".join(path)
        page = [".SH NAME", f"{escaped(name)} \\- {words(command['abstract'])}", ".SH SYNOPSIS", ".nf"]
        text = self.say("help", *path[1:])
        page += [bold(line.strip()) for line in re.search(r"USAGE: (.*?)\n\n", text, re.S)[1].split("\n")] + [".fi"]
        discussion = command.get("discussion", "").strip()
        if discussion:
            page.append(".SH DESCRIPTION" if not discussion.startswith("Examples:") else ".SH EXAMPLES")
            for line in discussion.removeprefix("Examples:").strip("\n").split("\n"):
                example = line.strip()
                page += [".PP", bold(example)] if example.startswith("keyhaul ") else [".PP", words(line)] if example else []
        # For the parser, --format takes the same values in every command; the help lists those that this command accepts.
        forms = re.search(r"Output format\.\s+\(values: ([^)]*)\)", text)
        sections = {}
        for argument in command["arguments"]:
            if forms and any(name["name"] == "format" for name in argument.get("names") or []):
                argument = {**argument, "allValues": re.split(r",\s+", forms[1])}
            if argument["shouldDisplay"]:
                kind = "ARGUMENTS" if argument["kind"] == "positional" else argument.get("sectionTitle") or "OPTIONS"
                sections.setdefault(kind.upper(), []).append(argument)
        for title in sorted(sections, key=lambda title: (title != "ARGUMENTS", title != "OPTIONS", title)):
            page.append(f".SH {escaped(title)}")
            for argument in sections[title]:
                page += self.argument(argument)
        page += [".SH EXIT STATUS", "0 if the command succeeds. The other codes are listed in", bold("keyhaul") + "(1).",
                 ".SH SEE ALSO", bold("keyhaul") + "(1), " + bold("keyhaul-formats") + "(5)"]
        self.write(name, 1, page)

    @staticmethod
    def argument(argument):
        if argument["kind"] == "positional":
            tag = f"\\fI{escaped(argument['valueName'])}\\fR"
        else:
            def flag(name):
                return bold(("--" if name["kind"] == "long" else "-") + name["name"])
            tag = ", ".join(flag(name) for name in sorted(argument["names"], key=lambda name: name["kind"] == "long"))
            if argument["kind"] == "option":
                tag += f" \\fI{escaped(argument['valueName'])}\\fR"
        text = words(argument.get("abstract", ""))
        values = argument.get("allValues") or []
        if values:
            text += f" One of {escaped(', '.join(values))}."
        if argument.get("defaultValue"):
            text += f" Default: {escaped(argument['defaultValue'])}."
        return [".TP", tag, text]

    def root(self, command):
        page = [".SH NAME", f"keyhaul \\- {words(command['abstract'])}", ".SH SYNOPSIS", bold("keyhaul") +
                " \\fIcommand\\fR [\\fIarguments\\fR] [\\fIflags\\fR]", ".SH DESCRIPTION"]
        paragraphs = command["discussion"].split("\n\n")
        page += [line for text in paragraphs if not text.startswith(("Exit codes", "Environment"))
                 for line in (".PP", words(text))]
        page.append(".SH COMMANDS")
        for verb, path in self.leaves(command):
            page += [".TP", bold("-".join(path)) + "(1)", words(verb["abstract"])]
        page.append(".SH EXIT STATUS")
        for topic in self.exit_codes():
            page += [".TP", bold(str(topic["code"])), words(topic["title"])]
        environment = next(text for text in paragraphs if text.startswith("Environment"))
        page += [".SH ENVIRONMENT", words(environment.removeprefix("Environment:")), ".SH SEE ALSO",
                 bold("keyhaul-formats") + "(5)"]
        self.write("keyhaul", 1, page)

    def leaves(self, command, path=()):
        path = (*path, command["commandName"])
        below = [verb for verb in command.get("subcommands", []) if verb["commandName"] != "help"]
        if not below:
            yield command, path
        for verb in below:
            yield from self.leaves(verb, path)

    def formats(self):
        lines = (TOP / "docs/Format.md").read_text(encoding="utf-8").split("\n")
        page = [".SH NAME", "keyhaul\\-formats \\- formats that keyhaul reads and writes"]
        is_code = False
        for line in lines:
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line).replace("**", "")
            if line.startswith("```"):
                is_code = not is_code
                page.append(".nf" if is_code else ".fi")
            elif is_code:
                page.append(escaped(line) or "\\&")
            elif line.startswith("#"):
                title = plain.lstrip("# ").replace("`", "")
                page.append(f".SH {escaped(title.upper())}" if line.startswith(("# ", "## ")) else f".SS {escaped(title)}")
            elif line.startswith("|"):
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", plain)[1:-1]]
                if set("".join(cells)) - set("-: "):
                    page += [".TP", self.inline(cells[0]) or "\\&", self.inline("; ".join(cell for cell in cells[1:] if cell))]
            elif re.match(r"(- |\d+\. )", line):
                mark, text = plain.split(" ", 1)
                page += [".IP " + ("\\(bu" if mark == "-" else mark) + " 4", self.inline(text)]
            else:
                page.append(self.inline(plain.strip()) if line.strip() else ".PP")
        while page[-1] == ".PP":
            page.pop()
        page = [line for line, following in zip(page, page[1:] + [""])
                if line != ".PP" or not following.startswith((".PP", ".SH", ".SS", ".TP", ".IP"))]
        self.write("keyhaul-formats", 5, page + [".SH SEE ALSO", bold("keyhaul") + "(1)"])

    @staticmethod
    def inline(text):
        """A line of Markdown, with code in bold."""
        parts = re.split(r"`([^`]+)`", text)
        shown = "".join(bold(part) if index % 2 else escaped(part) for index, part in enumerate(parts))
        shown = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"\\fI\1\\fR", shown)
        return "\\&" + shown if shown.startswith((".", "'")) else shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    moment = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    parser.add_argument("--date", default=moment.strftime("%Y-%m-%d"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    pages = Pages(os.path.abspath(options.program), options.folder, options.date)
    command = json.loads(pages.say("--experimental-dump-help"))["command"]
    pages.root(command)
    for verb, path in pages.leaves(command):
        pages.verb(verb, path)
    pages.formats()
    print(f"{len(pages.names)} pages in {options.folder}")


if __name__ == "__main__":
    sys.exit(main())
