#!/usr/bin/env python3
"""Write the manual pages: keyhaul(1), one for each command, and keyhaul-formats(5).

    packaging/make_man_pages.py PROGRAM FOLDER [--date YYYY-MM-DD]

The commands, their flags and their texts come from the program, so a page has the text of --help. The page of the
formats is docs/Format.md. The output does not depend on the clock: without --date, the date is that of
SOURCE_DATE_EPOCH, or in 1970.
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


def escape(text):
    """Escape text for roff, so that it is printed unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace('"', "\\(dq")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def bold(text):
    """Return text in bold for roff."""
    return f"\\fB{escape(text)}\\fR"


def flag(name):
    """Return a flag in bold, such as --json or -o."""
    return bold(("--" if name["kind"] == "long" else "-") + name["name"])


def paragraph(text):
    """Return a paragraph of a help text for roff, without its line breaks."""
    return escape(" ".join(text.split()))


class PageWriter:
    """The program and the folder of the pages, with the pages written so far."""

    def __init__(self, program, folder, date):
        self.program, self.folder, self.date = program, folder, date
        self.version = json.loads(self.run_program("version", "--json"))["version"]
        self.names = []

    def run_program(self, *arguments):
        """Return the standard output of the program."""
        environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        return subprocess.run(
            [self.program, *arguments], check=True, capture_output=True, text=True, env=environment
        ).stdout

    def write(self, name, section, lines):
        """Write a page with a title line."""
        title = name.upper().replace("-", "\\-")
        title_line = f'.TH {title} {section} {self.date} "Keyhaul {self.version}" "Keyhaul Manual"'
        # A heading already starts a paragraph.
        lines = [
            line
            for previous, line in zip([""] + lines, lines)
            if line != ".PP" or not previous.startswith((".SH", ".SS"))
        ]
        text = "\n".join([title_line, *lines]) + "\n"
        (self.folder / f"{name}.{section}").write_text(re.sub(r"\n{2,}", "\n", text), encoding="utf-8")
        self.names.append((name, section))

    def exit_codes(self):
        """Return the topics of `explain` about exit codes."""
        topics = json.loads(self.run_program("explain", "--json"))["topics"]
        return [topic for topic in topics if "code" in topic]

    def write_command(self, command, path):
        """Write the page of a command."""
        name = "-".join(path)
        lines = [".SH NAME", f"{escape(name)} \\- {paragraph(command['abstract'])}", ".SH SYNOPSIS", ".nf"]
        text = self.run_program("help", *path[1:])
        lines += [bold(line.strip()) for line in re.search(r"USAGE: (.*?)\n\n", text, re.S)[1].split("\n")] + [".fi"]
        lines += self.discussion_lines(command.get("discussion", "").strip())
        lines += self.section_lines(command["arguments"], text)
        lines += [
            ".SH EXIT STATUS",
            "0 if the command succeeds. The other codes are listed in",
            bold("keyhaul") + "(1).",
            ".SH SEE ALSO",
            bold("keyhaul") + "(1), " + bold("keyhaul-formats") + "(5)",
        ]
        self.write(name, 1, lines)

    @staticmethod
    def discussion_lines(discussion):
        """Return the section with the description or the examples of a command."""
        if not discussion:
            return []
        lines = [".SH EXAMPLES" if discussion.startswith("Examples:") else ".SH DESCRIPTION"]
        for line in discussion.removeprefix("Examples:").strip("\n").split("\n"):
            example = line.strip()
            if example:
                lines += [".PP", bold(example) if example.startswith("keyhaul ") else paragraph(example)]
        return lines

    def section_lines(self, arguments, help_text):
        """Return the sections with the arguments and options of a command."""
        # The JSON lists the same values of --format for every command; the help text lists those of this command.
        formats_match = re.search(r"Output format\.\s+\(values: ([^)]*)\)", help_text)
        sections = {}
        for argument in arguments:
            if formats_match and any(name["name"] == "format" for name in argument.get("names") or []):
                argument = {**argument, "allValues": re.split(r",\s+", formats_match[1])}
            if argument["shouldDisplay"]:
                title = "ARGUMENTS" if argument["kind"] == "positional" else argument.get("sectionTitle") or "OPTIONS"
                sections.setdefault(title.upper(), []).append(argument)
        lines = []
        for title in sorted(sections, key=lambda title: (title != "ARGUMENTS", title != "OPTIONS", title)):
            lines.append(f".SH {escape(title)}")
            for argument in sections[title]:
                lines += self.argument_lines(argument)
        return lines

    @staticmethod
    def argument_lines(argument):
        """Return the entry of an argument or option, with its values and its default."""
        if argument["kind"] == "positional":
            term = f"\\fI{escape(argument['valueName'])}\\fR"
        else:
            short_names_first = sorted(argument["names"], key=lambda name: name["kind"] == "long")
            term = ", ".join(flag(name) for name in short_names_first)
            if argument["kind"] == "option":
                term += f" \\fI{escape(argument['valueName'])}\\fR"
        text = paragraph(argument.get("abstract", ""))
        values = argument.get("allValues") or []
        if values:
            text += f" One of {escape(', '.join(values))}."
        if argument.get("defaultValue"):
            text += f" Default: {escape(argument['defaultValue'])}."
        return [".TP", term, text]

    def write_main(self, command):
        """Write keyhaul(1), with the commands, exit codes and environment variables."""
        lines = [".SH NAME", f"keyhaul \\- {paragraph(command['abstract'])}", ".SH SYNOPSIS", bold("keyhaul") +
                 " \\fIcommand\\fR [\\fIarguments\\fR] [\\fIflags\\fR]", ".SH DESCRIPTION"]
        paragraphs = command["discussion"].split("\n\n")
        lines += [line for text in paragraphs if not text.startswith(("Exit codes", "Environment"))
                  for line in (".PP", paragraph(text))]
        lines.append(".SH COMMANDS")
        for subcommand, path in self.commands(command):
            lines += [".TP", bold("-".join(path)) + "(1)", paragraph(subcommand["abstract"])]
        lines.append(".SH EXIT STATUS")
        for topic in self.exit_codes():
            lines += [".TP", bold(str(topic["code"])), paragraph(topic["title"])]
        environment = next(text for text in paragraphs if text.startswith("Environment"))
        lines += [".SH ENVIRONMENT", paragraph(environment.removeprefix("Environment:")), ".SH SEE ALSO",
                  bold("keyhaul-formats") + "(5)"]
        self.write("keyhaul", 1, lines)

    def commands(self, command, path=()):
        """Yield each command without subcommands, and the words that call it."""
        path = (*path, command["commandName"])
        subcommands = [
            subcommand for subcommand in command.get("subcommands", []) if subcommand["commandName"] != "help"
        ]
        if not subcommands:
            yield command, path
        for subcommand in subcommands:
            yield from self.commands(subcommand, path)

    def write_formats(self):
        """Write keyhaul-formats(5) from docs/Format.md."""
        lines = [".SH NAME", "keyhaul\\-formats \\- formats that keyhaul reads and writes"]
        lines += self.markdown_lines((TOP / "docs/Format.md").read_text(encoding="utf-8"))
        while lines[-1] == ".PP":
            lines.pop()
        # A paragraph without text is omitted.
        lines = [line for line, following in zip(lines, lines[1:] + [""])
                 if line != ".PP" or not following.startswith((".PP", ".SH", ".SS", ".TP", ".IP"))]
        self.write("keyhaul-formats", 5, lines + [".SH SEE ALSO", bold("keyhaul") + "(1)"])

    def markdown_lines(self, text):
        """Convert a page in Markdown to roff: headings, code blocks, tables, lists and paragraphs."""
        lines = []
        in_code = False
        for line in text.split("\n"):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line).replace("**", "")
            if line.startswith("```"):
                in_code = not in_code
                lines.append(".nf" if in_code else ".fi")
            elif in_code:
                lines.append(escape(line) or "\\&")
            elif line.startswith("#"):
                title = plain.lstrip("# ").replace("`", "")
                lines.append(
                    f".SH {escape(title.upper())}" if line.startswith(("# ", "## ")) else f".SS {escape(title)}"
                )
            elif line.startswith("|"):
                lines += self.table_row_lines(plain)
            elif re.match(r"(- |\d+\. )", line):
                mark, text = plain.split(" ", 1)
                lines += [".IP " + ("\\(bu" if mark == "-" else mark) + " 4", self.inline(text)]
            else:
                lines.append(self.inline(plain.strip()) if line.strip() else ".PP")
        return lines

    def table_row_lines(self, line):
        """Return a row of a table as an entry of a list, or no lines for the row below the head."""
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not set("".join(cells)) - set("-: "):
            return []
        return [".TP", self.inline(cells[0]) or "\\&", self.inline("; ".join(cell for cell in cells[1:] if cell))]

    @staticmethod
    def inline(text):
        """Convert a line of Markdown to roff, with code in bold."""
        parts = re.split(r"`([^`]+)`", text)
        line = "".join(bold(part) if index % 2 else escape(part) for index, part in enumerate(parts))
        line = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"\\fI\1\\fR", line)
        return "\\&" + line if line.startswith((".", "'")) else line


def main():
    """Write all pages into the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    default_date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    parser.add_argument("--date", default=default_date.strftime("%Y-%m-%d"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    pages = PageWriter(os.path.abspath(arguments.program), arguments.folder, arguments.date)
    command = json.loads(pages.run_program("--experimental-dump-help"))["command"]
    pages.write_main(command)
    for subcommand, path in pages.commands(command):
        pages.write_command(subcommand, path)
    pages.write_formats()
    print(f"{len(pages.names)} pages in {arguments.folder}")


if __name__ == "__main__":
    sys.exit(main())
