"""Dumps of a keychain as other tools write them: tables, arrays of items, objection's JSON, sealed entries with keys.

Written from what public readers of such files say, for a given seed; beside each dump stands what a reader has to find.
"""

import base64
import datetime
import json
import plistlib
import random

from . import apple_der, crypto

FORMS = ("keychain-tables", "keychain-tables-untyped", "keychain-items", "generic-passwords", "objection", "sealed-entries")
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
CLASS_NUMBERS = {"ak": 6, "ck": 7, "dk": 8, "aku": 9, "cku": 10, "dku": 11, "akpu": 12}
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


def _box(source, key, plaintext):
    """A keyed archive of AES-256-GCM with a nonce of 32 bytes."""
    nonce, uid = source.randbytes(32), plistlib.UID
    sealed = crypto.AESGCM(key).encrypt(nonce, plaintext, None)
    objects = [
        "$null", {"$class": uid(5), "SFInitializationVector": uid(4), "SFCiphertext": uid(2),
                  "SFAuthenticationCode": uid(3)},
        sealed[:-16], sealed[-16:], nonce,
        {"$classname": "_SFAuthenticatedCiphertext",
         "$classes": ["_SFAuthenticatedCiphertext", "_SFCiphertext", "NSObject"]}]
    return plistlib.dumps(
        {"$version": 100_000, "$objects": objects, "$archiver": "NSKeyedArchiver", "$top": {"root": uid(1)}},
        fmt=plistlib.FMT_BINARY, sort_keys=False)


def _sealed_entry(source, number, item, class_keys, names_table=True):
    table, attributes, secret = item
    check, metadata_key, secret_key = f"00000000-0000-4000-8000-{number:012X}", source.randbytes(32), source.randbytes(32)
    moments = {code: apple_der.Moment.from_datetime(value) if isinstance(value, datetime.datetime) else value
               for code, value in attributes.items()}
    control = apple_der.encode({"prot": attributes["pdmn"]})
    shown = apple_der.encode(moments | {"TamperCheck": check, "SecAccessControl": control})
    hidden = apple_der.encode({"TamperCheck": check} | ({} if secret is None else {"v_Data": secret}))
    fill = 20 - len(hidden) % 20
    keyclass = CLASS_NUMBERS[attributes["pdmn"]]
    text = number % 2
    entry = {
        "rowID": number, "version": 7 + number % 2, "classKeyIdx": keyclass,
        "metadata": {"wrappedKey": _box(source, class_keys[keyclass], metadata_key),
                     "ciphertext": _box(source, metadata_key, shown), "tamperCheck": check},
        "data": {"ciphertext": _box(source, secret_key, hidden + bytes([fill]) * fill), "tamperCheck": check,
                 # Some have a tail, some stand as base64 text.
                 "unwrappedKey": base64.b64encode(secret_key).decode() if text else secret_key + bytes(number % 3 * 4)}}
    return entry | ({"table": table} if names_table else {})


def sealed(made, seed=1, without=(), names_table=True, binary=False):
    """Entries that are sealed, with the keys of the classes beside them, but for those of the numbers in `without`."""
    source = random.Random(seed)
    class_keys = {number: source.randbytes(32) for number in CLASS_NUMBERS.values()}
    entries = [_sealed_entry(source, number, item, class_keys, names_table) for number, item in enumerate(made)]
    root = {
        "classKeyIdxToUnwrappedMetadataClassKey": {
            str(number): key + bytes(number % 2 * 8) for number, key in class_keys.items() if number not in without},
        "keychainEntries": entries}
    return plistlib.dumps(root, fmt=plistlib.FMT_BINARY if binary else plistlib.FMT_XML)


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
        "sealed-entries": sealed, "keychain-tables-untyped": lambda made: tables(made, typed=False),
    }[form](made)
    return contents, in_order(expected)
