"""Write keychain dumps in the formats of other tools: tables, arrays of items, JSON, text, encrypted entries.

The formats follow public readers of such files. A dump depends only on its seed, and comes with the items that a reader
has to find.
"""

import base64
import datetime
import json
import plistlib
import random

from . import apple_der, crypto

FORMATS = (
    "keychain-tables", "keychain-tables-untyped", "keychain-items", "generic-passwords", "objection", "sealed-entries",
    "irestore", "grapefruit", "keychain-dumper")
ACCESSIBLE_CONSTANTS = {"ak": "kSecAttrAccessibleWhenUnlocked", "ck": "kSecAttrAccessibleAfterFirstUnlock",
           "dk": "kSecAttrAccessibleAlways", "aku": "kSecAttrAccessibleWhenUnlockedThisDeviceOnly",
           "cku": "kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly", "dku": "kSecAttrAccessibleAlwaysThisDeviceOnly",
           "akpu": "kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly"}
TABLES = ("genp", "inet", "cert", "keys")
ITEM_CLASSES = dict(zip(TABLES, ("kSecClassGenericPassword", "kSecClassInternetPassword", "kSecClassCertificate",
                                 "kSecClassKey")))
GROUPS = ("ABCDE12345.org.example.chat", "apple", "com.apple.cfnetwork", "lockdown-identities")
OBJECTION_NAMES = {
    "acct": "account",
    "svce": "service",
    "srvr": "server",
    "labl": "label",
    "agrp": "entitlement_group",
    "desc": "description",
    "icmt": "comment",
    "type": "type",
    "cdat": "create_date",
    "mdat": "modification_date",
    "port": "port",
    "ptcl": "protocol",
    "path": "path",
}
# Source: dunhamsteve/ios, cmd/irestore/irestore.go.
IRESTORE_NAMES = {"genp": "General", "inet": "Internet", "cert": "Certs", "keys": "Keys"}
# Source: ChiChou/grapefruit, agent/src/fruity/modules/keychain.ts. The agent does not list keys.
GRAPEFRUIT_CLASSES = {"genp": "generic", "inet": "internet", "cert": "cert"}
GRAPEFRUIT_NAMES = {
    "cdat": "creation",
    "mdat": "modification",
    "desc": "description",
    "type": "type",
    "agrp": "entitlementGroup",
    "svce": "service",
    "acct": "account",
    "labl": "label",
}
# Source: ptoomey3/Keychain-Dumper, main.m.
DUMPER_TITLES = {"genp": "Generic Password", "inet": "Internet Password", "cert": "Certificate", "keys": "Key"}
DUMPER_ATTRIBUTES = {
    "genp": {"svce", "acct", "agrp", "labl", "pdmn", "desc"},
    "inet": {"srvr", "acct", "agrp", "labl", "pdmn"},
    "cert": {"agrp", "labl", "pdmn", "slnr"},
    "keys": {"agrp", "labl", "pdmn", "klbl"},
}
DUMPER_LEVELS = {"dk": 0, "ck": 1, "ak": 2, "dku": 3, "cku": 4, "aku": 5, "akpu": 6}
# The characters of the bytes from 0x80, in the encoding that keychain_dumper prints. Source: perl, Encode::Byte ("nextstep").
NEXTSTEP = (
    "\u00a0ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖÙÚÛÜÝÞµ×÷©¡¢£⁄¥ƒ§¤’“«‹›ﬁﬂ®–†‡·¦¶•‚„”»…‰¬¿¹ˋ´ˆ˜¯˘˙¨²˚¸³˝˛ˇ—±¼½¾àáâãäåçèéêëìÆíªîïðñŁØŒºòóôõöæùúû"
    "ıüýłøœßþÿ")
GENERIC_PASSWORD_ATTRIBUTES = {"cdat", "mdat", "desc", "labl", "agrp", "pdmn", "UUID", "acct"}
CLASS_NUMBERS = {"ak": 6, "ck": 7, "dk": 8, "aku": 9, "cku": 10, "dku": 11, "akpu": 12}
START = datetime.datetime(2024, 5, 6, 7, 8, 9)


def make_items(seed, tables=TABLES, count=24):
    """Return items as (table, attributes, secret). Values are strings, numbers, dates and bytes."""
    rng, items = random.Random(seed), []
    for number in range(count):
        table = tables[number % len(tables)]
        modified = START + datetime.timedelta(seconds=rng.randrange(10**7))
        attributes = {
            "agrp": rng.choice(GROUPS), "pdmn": rng.choice(sorted(ACCESSIBLE_CONSTANTS)), "labl": f"label {number} ü",
            "cdat": START, "mdat": modified}
        if table in ("genp", "inet"):
            attributes |= {"acct": f"person{number}", "desc": "made up"}
        if table == "genp":
            attributes["svce"] = f"service {number}"
        if table == "inet":
            attributes |= {"srvr": f"host{number}.example.org", "port": 8000 + number, "ptcl": "htps", "path": "/in"}
        if table == "cert":
            attributes |= {"issr": bytes([number]) * 4, "slnr": bytes([1, number])}
        if table == "keys":
            attributes |= {"klbl": rng.randbytes(20), "kcls": 1, "type": 42}
        secret = None if number % 11 == 10 else rng.choice(
            (f"secret {number}".encode(), rng.randbytes(24), b"ends in NUL\0"))
        items.append((table, attributes, secret))
    return items


def report_order(items):
    """Return the items in the order of every report: by table, then in the order of the dump."""
    return [item for table in TABLES for item in items if item[0] == table]


def _text_date(moment):
    """Return a date as Foundation describes it."""
    return moment.strftime("%Y-%m-%d %H:%M:%S +0000")


def _untyped(code, value):
    """Return a value as bytes, as tools that lose its type write it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, datetime.datetime):
        return _text_date(value).encode()
    return str(value).encode() + (b"\0" if code == "agrp" else b"")


def table_dump(items, is_typed=True, is_binary=False):
    """Return a property list with an array of items for each table."""
    root = {table: [] for table in TABLES}
    for table, attributes, secret in items:
        entry = attributes if is_typed else {code: _untyped(code, value) for code, value in attributes.items()}
        root[table].append(dict(entry) | ({} if secret is None else {"v_Data": secret}))
    return plistlib.dumps(root, fmt=plistlib.FMT_BINARY if is_binary else plistlib.FMT_XML)


def array_dump(items, has_tables=True):
    """Return a property list with one array of items."""
    entries = []
    for number, (table, attributes, secret) in enumerate(items):
        entry = (
            dict(attributes) | ({} if secret is None else {"v_Data": secret}) | {"TamperCheck": "0", "rowID": number}
        )
        entries.append(entry | ({"table": table} if has_tables else {}))
    return plistlib.dumps(entries)


def password_dump(items):
    """Return a property list of generic passwords without their services, with bytes in base64."""
    entries = []
    for _, attributes, secret in items:
        entry = {code: value for code, value in attributes.items() if code in GENERIC_PASSWORD_ATTRIBUTES}
        entry |= {code: value.strftime("%Y%m%d%H%M%SZ") for code, value in entry.items()
                  if isinstance(value, datetime.datetime)}
        entries.append(entry | ({} if secret is None else {"v_Data": base64.b64encode(secret).decode()}))
    return plistlib.dumps(entries)


def objection_dump(items):
    """Return the JSON that objection writes."""
    entries = []
    for table, attributes, secret in items:
        entry = dict.fromkeys(list(OBJECTION_NAMES.values()) + ["generic", "access_control", "data", "dataHex"], "")
        entry |= {"item_class": ITEM_CLASSES[table], "accessible_attribute": ACCESSIBLE_CONSTANTS[attributes["pdmn"]]}
        for code, value in attributes.items():
            if code in OBJECTION_NAMES:
                entry[OBJECTION_NAMES[code]] = _text_date(value) if isinstance(value, datetime.datetime) else str(value)
        if secret is not None:
            entry |= {"data": secret.decode("ascii", "replace"), "dataHex": secret.hex()}
        entries.append(entry)
    return json.dumps(entries).encode()


def irestore_dump(items):
    """Return the JSON that irestore writes: null for a kind without items, and bytes in base64, as Go encodes them.

    Every second item has the types of its values, as newer versions write them.
    """
    root = dict.fromkeys(sorted(IRESTORE_NAMES.values()))
    go_types = {bytes: "[]uint8", str: "string", int: "int64", datetime.datetime: "time.Time"}
    for number, (table, attributes, secret) in enumerate(items):
        entry, values = {}, attributes | ({} if secret is None else {"v_Data": secret})
        if number % 2:
            entry |= {
                "_class": CLASS_NUMBERS[attributes["pdmn"]], "_fieldOrder": ",".join(values), "_length": 40,
                "_fieldTypes": ",".join(go_types[type(value)] for value in values.values()), "_version": 3,
                "_ref": base64.b64encode(table.encode() + bytes(8)).decode(), "_wkey": base64.b64encode(bytes(40)).decode()}
        for code, value in values.items():
            if isinstance(value, datetime.datetime):
                value = value.strftime("%Y-%m-%dT%H:%M:%SZ")
            entry[code] = base64.b64encode(value).decode() if isinstance(value, bytes) else value
        name = IRESTORE_NAMES[table]
        root[name] = (root[name] or []) + [dict(sorted(entry.items()))]
    text = json.dumps(root, indent=2, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def described_bytes(value):
    """Return bytes as Foundation describes them, without the middle of long data."""
    digits = value.hex()
    if len(value) <= 24:
        return f"{{length = {len(value)}, bytes = 0x{digits}}}"
    start, end = digits[:32], digits[-16:]
    groups = " ".join(start[position:position + 8] for position in range(0, 32, 8))
    return f"{{length = {len(value)}, bytes = 0x{groups} ... {end[:8]} {end[8:]} }}"


def grapefruit_dump(items):
    """Return the JSON of grapefruit's agent. Every third description is data, which the agent prints as Foundation does."""
    entries = []
    for table, attributes, secret in items:
        entry = {"clazz": GRAPEFRUIT_CLASSES[table], "acl": "default", "prot": ACCESSIBLE_CONSTANTS[attributes["pdmn"]]}
        for code, value in attributes.items():
            if code in GRAPEFRUIT_NAMES:
                if isinstance(value, datetime.datetime):
                    value = value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
                entry[GRAPEFRUIT_NAMES[code]] = described_bytes(value) if isinstance(value, bytes) else value
        entry["account"] = attributes.get("acct", "null")
        if secret is not None:
            entry["data"] = described_bytes(secret)
        entry["raw"] = None if secret is None else base64.b64encode(secret).decode()
        entries.append(entry)
    return json.dumps(entries).encode()


def nextstep(text):
    """Return text in the encoding of NeXTSTEP."""
    return bytes(ord(character) if ord(character) < 0x80 else 0x80 + NEXTSTEP.index(character) for character in text)


def _dumper_lines(table, attributes, secret):
    """Return the lines of an item in the text of keychain_dumper."""
    def value(code):
        attribute = attributes.get(code)
        if attribute is None:
            return "(null)"
        return described_bytes(attribute) if isinstance(attribute, bytes) else str(attribute)

    pdmn = attributes["pdmn"]
    default = " (default)" if pdmn == "ak" else ""
    accessible = (
        f"\x1b[31mAccessible Attribute: {ACCESSIBLE_CONSTANTS[pdmn]}, protection level {DUMPER_LEVELS[pdmn]}{default}")
    common_lines = [f"Entitlement Group: {value('agrp')}", f"Label: {value('labl')}", accessible]
    # The escape sequence that ends the color comes after the line break.
    end_color = "\x1b[37m"
    shown_secret = "" if secret is None else secret.decode()
    if table == "genp":
        return [
            f"Service: {value('svce')}", f"Account: {value('acct')}", *common_lines,
            f"{end_color}Description: {value('desc')}", f"Comment: {value('icmt')}", f"Synchronizable: {value('sync')}",
            f"Generic Field: {value('gena')}", f"Keychain Data: {shown_secret}", ""]
    if table == "inet":
        return [
            f"Server: {value('srvr')}", f"Account: {value('acct')}", *common_lines,
            f"{end_color}Keychain Data: {shown_secret}", ""]
    if table == "cert":
        return [
            "Summary: made up", *common_lines, f"{end_color}Serial Number: {value('slnr')}", "Subject Key ID: (null)",
            "Subject Key Hash: (null)", "", "-----BEGIN CERTIFICATE-----", "bWFkZSB1cA==", "-----END CERTIFICATE-----", ""]
    return [
        *common_lines, f"{end_color}Application Label: {value('klbl')}", "Application Tag: (null)", "Key Class: Private",
        "Key Size: 2048", "Effective Key Size: 2048", "Permanent Key: True", "For Signatures: True",
        "For Key Unwrapping: True", "", "[INFO] Key data (EC, Symmetric, ...) output not implemented yet. Stay tuned.", ""]


def keychain_dumper_text(items):
    """Return the text that keychain_dumper prints, table by table, with an identity before the certificates."""
    lines = []
    for table in TABLES:
        items_of_table = [item for item in items if item[0] == table]
        if not items_of_table:
            lines += [f"[INFO] No {DUMPER_TITLES[table]} Keychain items found.", "[HINT] You should unlock your device!"]
        if table == "cert" and items_of_table:
            _, attributes, secret = items_of_table[0]
            lines += _underlined("Identity")
            lines += [*_underlined("Certificate"), *_dumper_lines("cert", attributes, secret)]
            lines += [*_underlined("Key"), *_dumper_lines("keys", attributes, secret)]
        for _, attributes, secret in items_of_table:
            lines += [*_underlined(DUMPER_TITLES[table]), *_dumper_lines(table, attributes, secret)]
    return nextstep("".join(line + "\n" for line in lines))


def _underlined(title):
    """Return a title with a line of hyphens below it."""
    return [title, "-" * len(title)]


def encrypted_archive(rng, key, plaintext):
    """Return a keyed archive of AES-256-GCM ciphertext with a nonce of 32 bytes."""
    nonce, uid = rng.randbytes(32), plistlib.UID
    encrypted = crypto.AESGCM(key).encrypt(nonce, plaintext, None)
    ciphertext, tag = encrypted[:-16], encrypted[-16:]
    objects = [
        "$null",
        {"$class": uid(5), "SFInitializationVector": uid(4), "SFCiphertext": uid(2), "SFAuthenticationCode": uid(3)},
        ciphertext,
        tag,
        nonce,
        {
            "$classname": "_SFAuthenticatedCiphertext",
            "$classes": ["_SFAuthenticatedCiphertext", "_SFCiphertext", "NSObject"],
        },
    ]
    return plistlib.dumps(
        {"$version": 100_000, "$objects": objects, "$archiver": "NSKeyedArchiver", "$top": {"root": uid(1)}},
        fmt=plistlib.FMT_BINARY, sort_keys=False)


def _with_der_dates(attributes):
    """Return the attributes with dates that can be encoded in DER."""
    return {
        code: apple_der.Moment.from_datetime(value) if isinstance(value, datetime.datetime) else value
        for code, value in attributes.items()
    }


def _encrypted_entry(rng, number, item, class_keys, has_tables=True):
    """Return an item as an encrypted entry. The item's number decides about its version and how its key is stored."""
    table, attributes, secret = item
    tamper_check = f"00000000-0000-4000-8000-{number:012X}"
    metadata_key, secret_key = rng.randbytes(32), rng.randbytes(32)
    control = apple_der.encode({"prot": attributes["pdmn"]})
    metadata = apple_der.encode(
        _with_der_dates(attributes) | {"TamperCheck": tamper_check, "SecAccessControl": control})
    data = apple_der.encode({"TamperCheck": tamper_check} | ({} if secret is None else {"v_Data": secret}))
    padding_count = 20 - len(data) % 20
    padded_data = data + bytes([padding_count]) * padding_count
    class_number = CLASS_NUMBERS[attributes["pdmn"]]
    # Every second key is in base64. Some of the other keys have 4 or 8 bytes after them.
    is_base64 = number % 2
    stored_key = base64.b64encode(secret_key).decode() if is_base64 else secret_key + bytes(number % 3 * 4)
    entry = {
        "rowID": number,
        "version": 7 + number % 2,
        "classKeyIdx": class_number,
        "metadata": {
            "wrappedKey": encrypted_archive(rng, class_keys[class_number], metadata_key),
            "ciphertext": encrypted_archive(rng, metadata_key, metadata),
            "tamperCheck": tamper_check,
        },
        "data": {
            "ciphertext": encrypted_archive(rng, secret_key, padded_data),
            "tamperCheck": tamper_check,
            "unwrappedKey": stored_key,
        },
    }
    return entry | ({"table": table} if has_tables else {})


def encrypted_dump(items, seed=1, omitted_classes=(), has_tables=True, is_binary=False):
    """Return encrypted entries with the keys of their classes, except those in `omitted_classes`.

    Every second class key has 8 bytes after it.
    """
    rng = random.Random(seed)
    class_keys = {number: rng.randbytes(32) for number in CLASS_NUMBERS.values()}
    entries = [_encrypted_entry(rng, number, item, class_keys, has_tables) for number, item in enumerate(items)]
    root = {
        "classKeyIdxToUnwrappedMetadataClassKey": {
            str(number): key + bytes(number % 2 * 8)
            for number, key in class_keys.items()
            if number not in omitted_classes
        },
        "keychainEntries": entries,
    }
    return plistlib.dumps(root, fmt=plistlib.FMT_BINARY if is_binary else plistlib.FMT_XML)


def is_text(secret):
    """Whether a secret is UTF-8."""
    try:
        secret.decode()
    except UnicodeDecodeError:
        return False
    return True


def _expected_items(dump_format, items):
    """Return the items that a reader finds in a dump of these items."""
    # The attributes that a format has. A format that is not listed has all of them.
    attributes_of_format = {
        "generic-passwords": GENERIC_PASSWORD_ATTRIBUTES,
        "objection": set(OBJECTION_NAMES) | {"pdmn"},
        "grapefruit": set(GRAPEFRUIT_NAMES) | {"pdmn"},
    }
    expected = []
    for table, attributes, secret in items:
        codes = DUMPER_ATTRIBUTES[table] if dump_format == "keychain-dumper" else attributes_of_format.get(dump_format)
        dumped = {code: value for code, value in attributes.items() if codes is None or code in codes}
        if dump_format == "objection":
            # objection writes values as text, so it drops attributes whose values are bytes.
            dumped = {code: value for code, value in dumped.items() if not isinstance(value, bytes)}
        if dump_format == "keychain-dumper" and table in ("cert", "keys"):
            secret = None
        expected.append((table, dumped, secret))
    return expected


def _set_binary_descriptions(items, dump_format):
    """Change the descriptions of some items to bytes."""
    for number, (_, attributes, _) in enumerate(items):
        # irestore records the types of every second item only. Without them, bytes look like text.
        has_types = dump_format == "grapefruit" or number % 2
        if number % 3 == 0 and "desc" in attributes and has_types:
            attributes["desc"] = b"made up"


def _with_text_secrets(items):
    """Return the items with text in the place of secrets that are not UTF-8."""
    return [
        (table, attributes, secret if secret is None or is_text(secret) else b"two\nlines")
        for table, attributes, secret in items
    ]


WRITERS = {
    "keychain-tables": table_dump,
    "keychain-items": array_dump,
    "generic-passwords": password_dump,
    "objection": objection_dump,
    "sealed-entries": encrypted_dump,
    "keychain-tables-untyped": lambda items: table_dump(items, is_typed=False),
    "irestore": irestore_dump,
    "grapefruit": grapefruit_dump,
    "keychain-dumper": keychain_dumper_text,
}


def make_dump(dump_format, seed):
    """Return a dump in a format, and the items that a reader finds in it."""
    tables = {"generic-passwords": TABLES[:1], "grapefruit": TABLES[:3]}.get(dump_format, TABLES)
    items = make_items(seed, tables=tables)
    if dump_format in ("grapefruit", "irestore"):
        _set_binary_descriptions(items, dump_format)
    if dump_format == "keychain-dumper":
        items = _with_text_secrets(items)
    return WRITERS[dump_format](items), report_order(_expected_items(dump_format, items))
