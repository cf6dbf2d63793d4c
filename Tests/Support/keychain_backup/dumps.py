"""Dumps of a keychain as other tools write them: tables with and without types, arrays of items, objection's JSON.

Written from what public readers of such files say, for a given seed; beside each dump stands what a reader has to find.
"""

import base64
import datetime
import json
import plistlib
import random

FORMS = ("keychain-tables", "keychain-tables-untyped", "keychain-items", "generic-passwords", "objection")
CLASSES = {"ak": "kSecAttrAccessibleWhenUnlocked", "ck": "kSecAttrAccessibleAfterFirstUnlock",
           "dk": "kSecAttrAccessibleAlways", "aku": "kSecAttrAccessibleWhenUnlockedThisDeviceOnly",
           "cku": "kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly", "dku": "kSecAttrAccessibleAlwaysThisDeviceOnly",
           "akpu": "kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly"}
TABLES = ("genp", "inet", "cert", "keys")
ITEM_CLASSES = dict(zip(TABLES, ("kSecClassGenericPassword", "kSecClassInternetPassword", "kSecClassCertificate",
                                 "kSecClassKey")))
GROUPS = ("ABCDE12345.org.example.chat", "apple", "com.apple.cfnetwork", "lockdown-identities")
OBJECTION = {"acct": "account", "svce": "service", "srvr": "server", "labl": "label", "agrp": "entitlement_group",
             "desc": "description", "icmt": "comment", "type": "type", "cdat": "create_date", "mdat": "modification_date",
             "port": "port", "ptcl": "protocol", "path": "path"}
PASSWORDS_HAVE = {"cdat", "mdat", "desc", "labl", "agrp", "pdmn", "UUID", "acct"}
START = datetime.datetime(2024, 5, 6, 7, 8, 9)


def items(seed, tables=TABLES, count=24):
    """Items as (table, attributes, secret): text, numbers, dates and bytes. A secret of None is none."""
    source, made = random.Random(seed), []
    for number in range(count):
        table = tables[number % len(tables)]
        when = START + datetime.timedelta(seconds=source.randrange(10**7))
        attributes = {
            "agrp": source.choice(GROUPS), "pdmn": source.choice(sorted(CLASSES)), "labl": f"label {number} ü",
            "cdat": START, "mdat": when}
        if table in ("genp", "inet"):
            attributes |= {"acct": f"person{number}", "desc": "made up"}
        if table == "genp":
            attributes["svce"] = f"service {number}"
        if table == "inet":
            attributes |= {"srvr": f"host{number}.example.org", "port": 8000 + number, "ptcl": "htps", "path": "/in"}
        if table == "cert":
            attributes |= {"issr": bytes([number]) * 4, "slnr": bytes([1, number])}
        if table == "keys":
            attributes |= {"klbl": source.randbytes(20), "kcls": 1, "type": 42}
        secret = None if number % 11 == 10 else source.choice(
            (f"secret {number}".encode(), source.randbytes(24), b"ends in NUL\0"))
        made.append((table, attributes, secret))
    return made


def in_order(made):
    """The items as every report numbers them: table by table, and within one as the dump has them."""
    return [item for table in TABLES for item in made if item[0] == table]


def _text_date(moment):
    return moment.strftime("%Y-%m-%d %H:%M:%S +0000")


def _untyped(code, value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, datetime.datetime):
        return _text_date(value).encode()
    return str(value).encode() + (b"\0" if code == "agrp" else b"")


def tables(made, typed=True, binary=False):
    root = {table: [] for table in TABLES}
    for table, attributes, secret in made:
        entry = attributes if typed else {code: _untyped(code, value) for code, value in attributes.items()}
        root[table].append(dict(entry) | ({} if secret is None else {"v_Data": secret}))
    return plistlib.dumps(root, fmt=plistlib.FMT_BINARY if binary else plistlib.FMT_XML)


def array(made, names_table=True):
    entries = []
    for number, (table, attributes, secret) in enumerate(made):
        entry = dict(attributes) | ({} if secret is None else {"v_Data": secret}) | {"TamperCheck": "0", "rowID": number}
        entries.append(entry | ({"table": table} if names_table else {}))
    return plistlib.dumps(entries)


def passwords(made):
    """Generic passwords alone, without their services, bytes in base64."""
    entries = []
    for _, attributes, secret in made:
        entry = {code: value for code, value in attributes.items() if code in PASSWORDS_HAVE}
        entry |= {code: value.strftime("%Y%m%d%H%M%SZ") for code, value in entry.items()
                  if isinstance(value, datetime.datetime)}
        entries.append(entry | ({} if secret is None else {"v_Data": base64.b64encode(secret).decode()}))
    return plistlib.dumps(entries)


def objection(made):
    entries = []
    for table, attributes, secret in made:
        entry = dict.fromkeys(list(OBJECTION.values()) + ["generic", "access_control", "data", "dataHex"], "")
        entry |= {"item_class": ITEM_CLASSES[table], "accessible_attribute": CLASSES[attributes["pdmn"]]}
        for code, value in attributes.items():
            if code in OBJECTION:
                entry[OBJECTION[code]] = _text_date(value) if isinstance(value, datetime.datetime) else str(value)
        if secret is not None:
            entry |= {"data": secret.decode("ascii", "replace"), "dataHex": secret.hex()}
        entries.append(entry)
    return json.dumps(entries).encode()


def written(form, seed):
    """A dump's bytes, the items that a reader finds, and how many entries it passes over, by why."""
    made = items(seed, tables=("genp",) if form == "generic-passwords" else TABLES)
    kept = {
        "generic-passwords": PASSWORDS_HAVE,
        "objection": set(OBJECTION) | {"pdmn"},
    }.get(form)
    expected = [
        (table, {code: value for code, value in attributes.items() if kept is None or code in kept}, secret)
        for table, attributes, secret in made]
    if form == "objection":
        # It has words for an attribute of every table, and a table takes its own.
        expected = [(table, {code: value for code, value in attributes.items() if not isinstance(value, bytes)}, secret)
                    for table, attributes, secret in expected]
    contents = {
        "keychain-tables": tables, "keychain-items": array, "generic-passwords": passwords, "objection": objection,
        "keychain-tables-untyped": lambda made: tables(made, typed=False),
    }[form](made)
    return contents, in_order(expected)
