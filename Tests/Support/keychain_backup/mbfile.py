"""Read and write the record of a file in Manifest.db: a keyed archive of an MBFile object."""

import hashlib
import plistlib
from dataclasses import dataclass

from . import FormatError

REGULAR, DIRECTORY, LINK = 0x8000, 0x4000, 0xA000


def file_id(domain, path):
    """Return the fileID of a file: the SHA-1 digest of its domain and path, in hexadecimal."""
    return hashlib.sha1(f"{domain}-{path}".encode("utf-8")).hexdigest()


@dataclass
class FileRecord:
    """The attributes of a file, as its record stores them."""

    path: str
    mode: int
    size: int = 0
    protection_class: int = 0
    key_class: int = 0
    wrapped_key: object = None
    digest: object = None
    modified: int = 0
    target: object = None

    @property
    def is_regular(self):
        return self.mode & 0xF000 == REGULAR

    @classmethod
    def parse(cls, data):
        """Return the record that a keyed archive encodes."""
        try:
            archive = plistlib.loads(data, fmt=plistlib.FMT_BINARY)
            objects = archive["$objects"]

            def resolve(value, depth=8):
                """Follow references, and unwrap NSData and NSString, in at most `depth` steps."""
                while isinstance(value, plistlib.UID) and depth:
                    value, depth = objects[value.data], depth - 1
                if isinstance(value, dict) and ("NS.data" in value or "NS.string" in value):
                    return resolve(value.get("NS.data", value.get("NS.string")), depth - 1)
                return value

            record = {key: resolve(value) for key, value in resolve(archive["$top"]["root"]).items()}
            # The class number in 4 bytes, and the wrapped key.
            key_field = record.get("EncryptionKey")
            if key_field is not None and len(key_field) not in (44, 76):
                raise FormatError("a file's key has an invalid length")
            return cls(
                path=record.get("RelativePath", ""), mode=record["Mode"], size=record.get("Size", 0),
                protection_class=record.get("ProtectionClass", 0), digest=record.get("Digest"),
                key_class=int.from_bytes(key_field[:4], "little") if key_field else 0,
                wrapped_key=key_field[4:] if key_field else None, modified=record.get("LastModified", 0),
                target=record.get("Target"))
        except FormatError:
            raise
        except Exception as error:
            raise FormatError("a file's record cannot be read") from error

    def encode(self):
        """Return the record as a keyed archive."""
        objects = ["$null", None, self.path]
        root = {
            "RelativePath": plistlib.UID(2), "Mode": self.mode, "InodeNumber": 12345, "UserID": 0, "GroupID": 0,
            "LastModified": self.modified, "LastStatusChange": self.modified, "Birth": self.modified,
            "Size": self.size, "ProtectionClass": self.protection_class, "Flags": 0,
        }

        def add(value):
            objects.append(value)
            return plistlib.UID(len(objects) - 1)

        if self.target is not None:
            root["Target"] = add(self.target)
        if self.digest is not None:
            root["Digest"] = add(self.digest)
        if self.wrapped_key is not None:
            data_class = add({"$classname": "NSMutableData", "$classes": ["NSMutableData", "NSData", "NSObject"]})
            key_field = self.key_class.to_bytes(4, "little") + self.wrapped_key
            root["EncryptionKey"] = add({"$class": data_class, "NS.data": key_field})
        root["$class"] = add({"$classname": "MBFile", "$classes": ["MBFile", "NSObject"]})
        objects[1] = root
        return plistlib.dumps({
            "$version": 100000, "$archiver": "NSKeyedArchiver", "$top": {"root": plistlib.UID(1)}, "$objects": objects
        }, fmt=plistlib.FMT_BINARY)
