#!/usr/bin/env python3
"""Runs Keyhaul over backups of every layout and over single faults, and compares each answer with the expected one.

    check_backups.py --keyhaul .build/release/keyhaul [--only NAME] [--verbs inspect,verify,export,plan,convert]

`backup_cases` and `backup_faults` make the backups without Keyhaul's code. The script also checks of every run that it
ends by itself, that its output contains no secret, and that it leaves no temporary files behind.
"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import html
import json
import os
import pathlib
import plistlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from backup_cases import CASES, FIXTURES, write_parent
from backup_faults import FAULTS
from faults import DAMAGED, NOT_FOUND, OK, PARTIAL, REFUSED, WRONG_PASSWORD, Fault, flipped
from keychain_backup import apple_der, mbfile
from keychain_backup.recipe import KEYCHAIN, NOTES

VERBS = ("inspect", "verify", "export", "plan", "convert")
SECONDS = 120
DATES = {"cdat", "mdat", "sdat", "edat"}
# Kept for the keychain itself; compared where the program shows them.
BOOKKEEPING = {"sha1", "UUID", "persistref", "musr", "tomb", "sync"}
SECRETS = (b"hunter2", b"correct horse", b"plum-orchard-42", b"push-9f2c71d0a4", b"tr0ub4dor&3")


class Result:
    def __init__(self, code, output, errors):
        self.code, self.output, self.errors = code, output, errors

    @property
    def said(self):
        return (self.output + self.errors).decode("utf-8", "replace")

    @property
    def last_words(self):
        lines = [line.strip() for line in self.errors.decode("utf-8", "replace").splitlines()]
        return " / ".join(line for line in lines if line and '"message_type":"status"' not in line)[:300]

    @property
    def json(self):
        try:
            return json.loads(self.output)
        except ValueError:
            return None


class Bench:
    """A place for one task: the program, a folder, and the misses so far."""

    def __init__(self, program, folder, verbs):
        self.program, self.verbs = program, verbs
        self.folder, self.home = folder, folder.parent / "home"
        self.passed, self.misses = 0, []
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)

    def that(self, holds, text):
        if holds:
            self.passed += 1
        else:
            self.misses.append(text)
        return holds

    def equal(self, found, expected, text):
        return self.that(found == expected, f"{text}: expected {expected!r}, got {found!r}")

    def run(self, *arguments, reveals=False):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
        environment["TMPDIR"] = str(self.temporary)
        name = " ".join(str(argument) for argument in arguments[:1])
        command = [str(self.program), *map(str, arguments), "--home", str(self.home), "--no-input"]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            self.that(False, f"{name}: still runs after {SECONDS} s")
            return Result(None, b"", b"")
        result = Result(ended.returncode, ended.stdout, ended.stderr)
        self.that(result.code >= 0, f"{name}: ended by signal {-result.code}")
        if not reveals:
            told = [secret for secret in SECRETS if secret in ended.stdout or secret in ended.stderr]
            self.that(not told, f"{name}: says a secret")
        left = sorted(path.name for path in self.temporary.iterdir())
        self.that(not left, f"{name}: leaves {left} among the temporary files")
        for path in self.temporary.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return result

    def ends(self, result, code, text, says=()):
        matches = self.that(
            result.code == code, f"{text}: expected {code}, got {result.code}  ({result.last_words})")
        said = " ".join(result.said.lower().split())
        for word in says if matches else ():
            self.that(word.lower() in said, f"{text}: doesn't say {word!r}  ({result.last_words})")
        return matches

    def password(self, password, name="password"):
        """The flags that give a password; one newline after it doesn't belong to it."""
        if password is None:
            return []
        path = self.folder / name
        path.write_bytes(password + (b"" if password.endswith(b"\r") else b"\n"))
        path.chmod(0o600)
        return ["--password-file", path]


# Good backups.

def check_case(bench, case):
    path, answers = case.write(bench.folder / "written")
    password = bench.password(case.typed_password)
    if "inspect" in bench.verbs:
        inspected(bench, bench.run("inspect", path, "--json"), answers, with_password=False)
        inspected(bench, bench.run("inspect", path, "--json", *password), answers, with_password=True)
        if password and case.code == 0:
            wrong = bench.run("inspect", path, "--json", *bench.password(b"not the password", "wrong"))
            bench.ends(wrong, WRONG_PASSWORD, "inspect with a wrong password", ("password",))
    if "verify" in bench.verbs:
        verified(bench, bench.run("verify", path, "--json", *password), answers)
        quick = bench.run("verify", path, "--quick", "--json")
        bench.ends(quick, answers["codes"]["verify-quick"], "verify --quick")
    if "export" in bench.verbs and case.code == 0:
        if answers["keychain"]:
            exported(bench, path, answers, password, "with_password")
            key = bench.folder / "device-key"
            key.write_bytes(bytes.fromhex(answers["device_key"]))
            key.chmod(0o600)
            exported(bench, path, answers, [*password, "--device-key-file", key], "with_device_key")
        for file in answers["files"]:
            taken_out(bench, path, file, password)


def inspected(bench, result, answers, with_password):
    name = "inspect with the password" if with_password else "inspect"
    code = answers["codes"]["inspect-password" if with_password else "inspect"]
    if not bench.ends(result, code, name) or code != 0:
        return
    found = result.json
    if not bench.that(isinstance(found, dict), f"{name}: prints no JSON document"):
        return
    bench.equal(found.get("format"), "backup-inspection/1", f"{name}: format")
    for field in ("layout", "encrypted"):
        bench.equal(found.get(field), answers[field], f"{name}: {field}")
    for field, expected in answers["device"].items():
        bench.equal((found.get("device") or {}).get(field), expected, f"{name}: device.{field}")
    keybag = found.get("keybag") or {}
    bench.equal(keybag.get("version"), answers["keybag"]["version"], f"{name}: keybag.version")
    bench.equal([count for count in keybag.get("rounds") or [] if count],
                [count for count in answers["keybag"]["rounds"] if count], f"{name}: keybag.rounds")
    bench.equal(len(keybag.get("classes") or []), answers["keybag"]["classes"], f"{name}: keybag.classes")
    keychain = found.get("keychain") or {}
    bench.equal(keychain.get("present"), answers["keychain"], f"{name}: keychain.present")
    if not answers["keychain"]:
        return
    if answers["encrypted"] and not with_password:
        bench.equal((keychain.get("items"), keychain.get("by_protection")), (None, None), f"{name}: keychain's items")
        return
    bench.equal(found.get("missing"), answers["missing"], f"{name}: missing")
    for field, key in (("items", "table"), ("by_protection", "protection")):
        expected = dict(collections.Counter(item[key] for item in answers["items"]))
        shown = {word: count for word, count in (keychain.get(field) or {}).items() if count}
        bench.equal(shown, expected, f"{name}: keychain.{field}")


def verified(bench, result, answers):
    code = answers["codes"]["verify"]
    if not bench.ends(result, code, "verify") or code != 0:
        return
    found = result.json or {}
    bench.equal(found.get("format"), "backup-verification/1", "verify: format")
    bound = [item["with_password"] is not None for item in answers["items"]]
    # Of a file without a digest a change cannot be seen.
    is_proven = answers["without_digest"] == 0
    bench.equal(found.get("whole"), is_proven, "verify: whole")
    verdict = "foreign" if answers["keychain"] and bound and all(bound) else "whole" if is_proven else "unproven"
    bench.equal(found.get("verdict"), verdict, "verify: verdict")
    bench.equal((found.get("files") or {}).get("without_digest"), answers["without_digest"], "verify: without a digest")
    bound = sum(item["with_password"] is not None for item in answers["items"])
    bench.equal((found.get("items") or {}) if answers["keychain"] else None,
                {"readable": len(answers["items"]) - bound, "device_bound": bound, "damaged": 0}
                if answers["keychain"] else None, "verify: items")
    failed = [check.get("id") for check in found.get("checks", []) if not check.get("ok")]
    bench.equal(failed, [], "verify: failed checks")


def exported(bench, path, answers, opening, state):
    name = f"export {state.replace('_', ' ')}"
    target = bench.folder / f"{state}.json"
    result = bench.run("export", path, *opening, "--format", "json", "--reveal", "-o", target, reveals=True)
    if not bench.ends(result, 0, name):
        return
    if not bench.that(target.is_file(), f"{name}: writes no file"):
        return
    bench.equal(target.stat().st_mode & 0o777, 0o600, f"{name}: the file's mode")
    found = json.loads(target.read_bytes())
    bench.equal(found.get("format"), "keychain-items/1", f"{name}: format")
    entries = {entry["index"]: entry for entry in found.get("items", [])}
    bench.equal(sorted(entries), [item["index"] for item in answers["items"]], f"{name}: the items' numbers")
    for item in answers["items"]:
        entry = entries.get(item["index"], {})
        place = f"{name}: item {item['index']}"
        for field in ("kind", "table", "protection"):
            bench.equal(entry.get(field), item[field], f"{place}: {field}")
        bench.equal((entry.get("readable"), entry.get("reason")), (item[state] is None, item[state]), place)
        if item[state] is not None:
            bench.that("secret" not in entry, f"{place}: has a secret although it cannot be decrypted")
            continue
        bench.equal(secret_of(entry), secret_of(item), f"{place}: secret")
        bench.equal(faults_of(item["attributes"], entry.get("attributes", {})), [], f"{place}: attributes")


def secret_of(entry):
    secret = entry.get("secret") or {}
    return base64.b64decode(secret.get("base64", ""))


def faults_of(expected, found):
    """The codes of attributes that differ; an item of version 0 has none to compare."""
    def comparable(code, value):
        return apple_der.Moment.from_rfc3339(value).seconds if code in DATES else value

    different = []
    for code in sorted(set(expected) | set(found)) if expected else []:
        if code in BOOKKEEPING and (code not in expected or code not in found):
            continue
        if code not in expected or code not in found or (
                comparable(code, expected[code]) != comparable(code, found[code])):
            different.append(code)
    return different


def taken_out(bench, path, file, password):
    target = bench.folder / "taken-out"
    result = bench.run(
        "export", path, *password, "--domain", file["domain"], "--path", file["path"], "-o", target)
    name = f"export --path {file['path']}"
    if bench.ends(result, 0, name):
        content = target.read_bytes() if target.is_file() else None
        bench.that(content == base64.b64decode(file["base64"]), f"{name}: the content differs")
    target.unlink(missing_ok=True)


def check_parent(bench):
    """Keyhaul lists a folder of several devices and does not choose one. Each device can be read by its own name."""
    if "inspect" not in bench.verbs:
        return
    names = write_parent(bench.folder / "devices")
    result = bench.run("inspect", bench.folder / "devices")
    bench.ends(result, 0, "inspect of several devices")
    for name in names:
        bench.that(name in result.said, f"inspect of several devices: doesn't name {name}  ({result.last_words})")
        bench.ends(bench.run("inspect", bench.folder / "devices" / name), 0, f"inspect of {name}")
    shortened = bench.run("inspect", bench.folder / "devices" / names[0][:8])
    bench.ends(shortened, 10, "inspect of a part of a device's name")


# Faults.

def check_fault(bench, fault):
    path = fault.write(bench.folder / "written")
    password = bench.password(fault.recipe.password)
    for verb, code in fault.codes.items():
        if verb not in bench.verbs:
            continue
        arguments = {
            "inspect": ["inspect", path], "verify": ["verify", path, *password],
            "plan": ["plan", path, "--to", "new-phone", *password],
        }[verb]
        bench.ends(bench.run(*arguments), code, verb, fault.says if verb == "verify" else ())
    if "convert" in bench.verbs and fault.base == "encrypted":
        copied_in_clear(bench, fault, path, password)
    if "plan" in bench.verbs and fault.name.startswith("part-decrypted"):
        page = bench.folder / "futures.html"
        for flags in ([], ["--format", "html", "-o", page]):
            result = bench.run("plan", path, *flags)
            said = " ".join((result.said + (page.read_text(encoding="utf-8") if page.is_file() else "")).split())
            # It is not known whether the backup had a password: the manifest says so, and the stored files do not.
            said = re.sub(r"\b(?:and|but) no passwords\b", "", said)
            told = [words for words in ("no password", "without a password") if words in said]
            bench.equal(told, [], f"plan for a new device {' '.join(map(str, flags[:2]))}: claims that there is no password")


# The exit codes of a call that writes no copy: a wrong flag, no backup, a wrong password, damage, or a limit.
STOPS = {64, NOT_FOUND, WRONG_PASSWORD, DAMAGED, REFUSED}


def copied_in_clear(bench, fault, path, password):
    """Checks that `convert --decrypted` of a faulty backup copies everything readable, or leaves nothing behind.

    The exit code is 3 if a file is missing or changed. The result names a changed file, and its digest in the manifest of
    the copy does not match.
    """
    target = bench.folder / "clear"
    result = bench.run("convert", path, "--decrypted", "-o", f"{target}/", *password, "--json")
    name = "convert --decrypted"
    bench.that(result.code in STOPS | {OK, PARTIAL}, f"{name}: ended with {result.code}  ({result.last_words})")
    bench.equal(target.exists(), result.code in (OK, PARTIAL), f"{name}: whether there is a copy after {result.code}")
    left = {path.name for path in bench.folder.iterdir()} - {"written", "temporary", "password", "clear"}
    bench.that(not left, f"{name}: leaves {sorted(left)} beside the copy")
    if not target.exists():
        return
    manifest = plistlib.loads((target / "Manifest.plist").read_bytes())
    bench.that(not manifest["IsEncrypted"], f"{name}: its Manifest.plist claims that it is encrypted")
    rows = {}
    with contextlib.closing(sqlite3.connect(f"file:{target / 'Manifest.db'}?mode=ro", uri=True)) as database:
        try:
            rows = {(row[0], row[1]): row[2] for row in database.execute("SELECT domain, relativePath, file FROM Files")}
        except sqlite3.DatabaseError as error:
            bench.that(result.code == PARTIAL, f"{name}: sqlite3 cannot read its list ({error}), and it ended with 0")
    missing, other = [], []
    for file in fault.recipe.files:
        if not file.is_regular or not file.is_stored:
            continue
        payload = target / file.identifier[:2] / file.identifier
        if not payload.is_file():
            missing.append(file.path)
        elif payload.read_bytes() != file.content:
            other.append((file, payload.read_bytes()))
    bench.that(not missing or result.code == PARTIAL, f"{name}: {missing} is missing in the copy, and it ended with 0")
    if bench.that(isinstance(result.json, dict), f"{name}: prints no JSON document"):
        named = {entry["file_id"] for entry in result.json["differing"]}
        for file, content in other:
            bench.equal(result.code, PARTIAL, f"{name}: {file.path} is another one")
            bench.that(file.identifier in named, f"{name}: {file.path} is another one, and is not named")
            # As in the original, the digest in the list shows that it is not what was backed up.
            record = mbfile.FileRecord.parse(rows.get((file.domain, file.path)) or b"")
            bench.that(
                record.digest is not None and record.digest != hashlib.sha1(content).digest(),
                f"{name}: {file.path} is another one, and nothing says so")


# Untruths.

UNTRUE = re.compile(
    r"\bis (?:whole|intact)\b|nothing is damaged|nothing in .{0,300}? is damaged|\"verdict\": ?\"whole\""
    r"|\"whole\": ?true", re.I)


# Tells to look, or that nobody knows.
ASKED = re.compile(r"\b(?:check that|whether|nothing shows)\b[^.:;]{0,100}? is (?:whole|intact)\b", re.I)


def untruths(said):
    """Returns the claims in a report that the whole backup is intact. Line breaks and markup may stand anywhere."""
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", said)).split())
    return UNTRUE.findall(ASKED.sub("", text))


def changed(base, suffix, what):
    """Returns a backup with one changed byte in a file.

    `what` selects whether the file has no digest, a padding, or a digest of another form than the other files.
    """
    identifier = mbfile.file_id(*NOTES)

    def listed(entries):
        def digest(file, key, digest):
            if what == "no digest":
                return digest if file.domain == KEYCHAIN[0] else None
            if what == "other form" and file.identifier == identifier:
                return hashlib.sha1(file.content).digest()
            return None if file.identifier == identifier else digest
        return [(file, key, digest(file, key, found)) for file, key, found in entries]

    def flip(contents):
        # The byte 17 before the end changes the last byte of the plaintext, which is the padding's length.
        contents[identifier] = flipped(contents[identifier], -17 if what == "padding" else 3)

    return Fault(f"changed {what}", "one byte of a file is another", {}, (), base,
                 edits={"listed": listed, "stored": flip}, suffix=suffix)


VERIFICATIONS = ([], ["-v"], ["--json"], ["--quick"], ["--quick", "--json"])


def check_untruths(bench):
    """No report of any command calls a backup with a changed byte intact, whether or not a digest or padding shows the change."""
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        for suffix in (None, "tar", "zip"):
            for what in ("no digest", "padding", "other form") if suffix is None else ("no digest",):
                # Unencrypted files have no padding, and digests of one form.
                if what == "no digest" or "plain" not in base:
                    told_of(bench, changed(base, suffix, what), f"{what}, {base} {suffix or 'folder'}", what != "no digest")


def told_of(bench, fault, name, is_seen):
    place = bench.folder / name.replace(" ", "-").replace(",", "")
    path = fault.write(place)
    good = dataclasses.replace(fault, edits={}).write(place / "good")
    password = bench.password(fault.recipe.password)

    def told(*arguments, page=None, codes=None):
        result = bench.run(*arguments)
        form = f"{' '.join(str(word) for word in arguments if str(word)[:1] != '/')} ({name})"
        if codes is not None:
            bench.that(result.code in codes, f"{form}: expected {codes}, got {result.code}  ({result.last_words})")
        said = result.said + (page.read_text(encoding="utf-8") if page is not None and page.is_file() else "")
        bench.equal(untruths(said), [], f"{form}: says more than it saw")
        return result

    if "verify" in bench.verbs:
        for flags in VERIFICATIONS:
            is_quick = "--quick" in flags
            # Without the password, the files are not compared with an encrypted manifest.
            codes = {OK, DAMAGED} if is_quick else {DAMAGED if is_seen else OK}
            result = told("verify", path, *flags, *([] if is_quick else password), codes=codes)
            if "--json" in flags:
                bench.equal((result.json or {}).get("whole"), False, f"verify {' '.join(flags)} ({name}): whole")
    if path.is_file():
        return
    page = place / "page.html"
    for verb, arguments in {
            "inspect": ["inspect", path], "plan": ["plan", path, "--to", "new-phone"], "futures": ["plan", path],
            "diff": ["diff", good, path]}.items():
        if verb in ("inspect", "plan") and verb not in bench.verbs:
            continue
        for flags in ([], ["--json"], ["--format", "html", "-o", page]):
            told(*arguments, *flags, *password, page=page)
            page.unlink(missing_ok=True)
    for flags in ([], ["--json"]):
        if "convert" in bench.verbs:
            told("convert", path, "-o", f"{place / 'copy'}/", *flags)
            told("convert", path, "--decrypted", "-o", f"{place / 'clear'}/", *flags, *password,
                 codes={PARTIAL if is_seen else OK, *STOPS})
        if "export" in bench.verbs:
            told("export", path, "--files", place / "files", *flags, *password, codes={PARTIAL if is_seen else OK})
        for left in ("copy", "clear", "files"):
            shutil.rmtree(place / left, ignore_errors=True)


# Faults that the program is known not to find. Once the program finds one, it has to leave this list.
KNOWN = {}


def tasks(only):
    chosen = [("backup", case.name, case.what, lambda bench, case=case: check_case(bench, case)) for case in CASES]
    chosen.append(("backup", "several-devices", "a folder with several devices", check_parent))
    chosen.append(("backup", "untruths", "a changed byte in a report that calls the backup intact", check_untruths))
    chosen += [
        ("fault", fault.name, fault.wrong, lambda bench, fault=fault: check_fault(bench, fault)) for fault in FAULTS]
    return [task for task in chosen if only in (None, task[1])]


def perform(program, work, verbs, number, task):
    kind, name, _, check = task
    bench = Bench(program, work / f"{number:04}", verbs)
    try:
        check(bench)
    except Exception as error:
        bench.that(False, f"the check itself failed: {type(error).__name__}: {error}")
    shutil.rmtree(bench.folder, ignore_errors=True)
    return task, bench


def main():
    parser = argparse.ArgumentParser(description="Run Keyhaul over backups of every layout and with single faults.")
    parser.add_argument("--keyhaul", type=pathlib.Path, required=True, help="the built program")
    parser.add_argument("--only", metavar="NAME", help="one backup or fault")
    parser.add_argument("--verbs", default=",".join(VERBS), help=f"those to run (default: {','.join(VERBS)})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    verbs = arguments.verbs.split(",")
    if not arguments.keyhaul.is_file():
        parser.error("--keyhaul has to name the built program")
    if not set(verbs) <= set(VERBS):
        parser.error(f"--verbs knows {', '.join(VERBS)}")
    chosen = tasks(arguments.only)
    if not chosen:
        parser.error(f"nothing is named {arguments.only}")
    passed, missed, counts = 0, [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="keyhaul-backups-") as folder:
        work, program = pathlib.Path(folder), arguments.keyhaul.resolve()
        subprocess.run(
            [str(program), "device", "create", "new-phone", "--from", str(FIXTURES / "devices" / "new-phone.json"),
             "--home", str(work / "home"), "--no-input"], check=True, stdout=subprocess.DEVNULL)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            running = [
                pool.submit(perform, program, work, verbs, number, task) for number, task in enumerate(chosen)]
            for done in running:
                (kind, name, what, _), bench = done.result()
                passed += bench.passed
                counts[kind] += 1
                if name in KNOWN and "verify" in verbs:
                    if bench.misses:
                        print(f"known {kind} {name}: {KNOWN[name]}")
                    else:
                        missed.append(name)
                        print(f"FAIL  {kind} {name}: it is found now and has to leave the list of what is not")
                elif bench.misses:
                    missed.append(name)
                    print(f"FAIL  {kind} {name}: {what}")
                    print("\n".join(f"        {miss}" for miss in bench.misses), flush=True)
    print(f"{counts['backup']} backups, {counts['fault']} faults, {passed} answers as expected")
    print(f"{len(chosen) - len(missed)} passed, {len(missed)} failed")
    return 0 if passed and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
