"""Model what a disk may contain after a power cut, given a recorded log of changes.

Names and contents are separate. A sync of a file makes its contents safe, and a sync of a folder makes its names safe.
An unsynced write may have reached the disk completely, not at all, or in some of its 512-byte sectors. Unsynced changes
of names reach the disk in order, because a file system's journal keeps their order, but the last ones may be missing.
Source: POSIX `fsync`.
"""

import pathlib
import random
from dataclasses import dataclass

SECTOR = 512


@dataclass
class Change:
    """One recorded change: a write, sync, rename and so on."""

    operation: str
    path: str
    other_path: str
    offset: int
    length: int
    content: bytes


def read_log(log):
    """Return the recorded changes in order."""
    data, position, changes = log.read_bytes(), 0, []
    while position < len(data):
        end = data.index(b"\n", position)
        operation, path, other_path, offset, length = data[position:end].decode("utf-8").split("\t")
        position = end + 1
        content = b""
        if operation == "write":
            content = data[position:position + int(length)]
            position += int(length)
        changes.append(Change(operation, path, other_path, int(offset), int(length), content))
    return changes


class File:
    """A file: its safe contents, its current contents, and the changes that are not synced."""

    def __init__(self, content=b""):
        self.safe, self.current, self.pending = content, bytearray(content), []

    def write(self, offset, content):
        self.apply(self.current, ("write", offset, content))
        self.pending.append(("write", offset, content))

    def truncate(self, length):
        self.apply(self.current, ("truncate", length, None))
        self.pending.append(("truncate", length, None))

    def sync(self):
        self.safe, self.pending = bytes(self.current), []

    @staticmethod
    def apply(target, change, keeps_sector=None):
        """Apply a change to contents. `keeps_sector` decides for each sector whether it is written."""
        kind, offset, content = change
        if kind == "truncate":
            del target[offset:]
            target.extend(bytes(offset - len(target)))
            return
        target.extend(bytes(max(0, offset + len(content) - len(target))))
        for start in range(0, len(content), SECTOR):
            part = content[start:start + SECTOR]
            if keeps_sector is None or keeps_sector():
                target[offset + start:offset + start + len(part)] = part

    def after_cut(self, remainder, rng):
        """Return the contents after a power cut.

        `remainder` tells how much of the unsynced changes remains: "none", "all" or "torn" (a random part).
        """
        content = bytearray(self.safe)
        for change in self.pending:
            outcome = rng.choice(("none", "all", "torn")) if remainder == "torn" else remainder
            if outcome == "all":
                self.apply(content, change)
            elif outcome == "torn" and change[0] == "write":
                self.apply(content, change, lambda: rng.random() < 0.5)
        return bytes(content)


class Folder:
    """A folder: its safe names, and its current names."""

    def __init__(self):
        self.safe, self.current = {}, {}


class Disk:
    """A tree of files, with the changes of names that are not synced."""

    def __init__(self, folder):
        self.root, self.top, self.pending = str(folder), Folder(), []
        for path in sorted(folder.rglob("*")):
            node = Folder() if path.is_dir() else File(path.read_bytes())
            parent, name = self.locate(str(path))
            parent.current[name] = parent.safe[name] = node

    def locate(self, path):
        """Return the folder that contains a path, and the last name of the path."""
        *parents, name = pathlib.PurePath(path).relative_to(self.root).parts
        folder = self.top
        for part in parents:
            folder = folder.current[part]
        return folder, name

    def node(self, path):
        """Return the file or folder at a path, or None."""
        if path == self.root:
            return self.top
        folder, name = self.locate(path)
        return folder.current.get(name)

    def rename(self, *moves):
        """Change names in one step. A node of None removes a name."""
        for folder, name, node in moves:
            if node is None:
                folder.current.pop(name, None)
            else:
                folder.current[name] = node
        self.pending.append(moves)

    def apply_change(self, change):
        """Apply a recorded change."""
        if change.path.endswith("-shm") or change.path.endswith(" (deleted)"):
            # SQLite's "-shm" file is shared memory, which it builds again. A deleted file is lost after a power cut.
            return
        if change.operation == "syncall":
            self.sync_all(self.top)
            return
        node = self.node(change.path)
        if change.operation == "write":
            node.write(change.offset, change.content)
        elif change.operation == "truncate":
            node.truncate(change.length)
        elif change.operation == "sync":
            self.sync(node)
        elif change.operation in ("create", "mkdir"):
            if node is None:
                self.rename((*self.locate(change.path), File() if change.operation == "create" else Folder()))
        elif change.operation == "remove":
            self.rename((*self.locate(change.path), None))
        elif change.operation == "rename":
            self.rename((*self.locate(change.path), None), (*self.locate(change.other_path), node))
        elif change.operation == "link":
            self.rename((*self.locate(change.other_path), node))
        elif change.operation == "exchange":
            other_node = self.node(change.other_path)
            self.rename((*self.locate(change.path), other_node), (*self.locate(change.other_path), node))
        elif change.operation != "mode":
            raise ValueError(f"unknown operation {change.operation}")

    def sync(self, node):
        if isinstance(node, File):
            return node.sync()
        # A sync makes the folder's names safe. A move to or from a different folder stays pending for that folder.
        node.safe = dict(node.current)
        self.pending = [moves for moves in self.pending if any(folder is not node for folder, _, _ in moves)]

    def sync_all(self, folder):
        for node in folder.current.values():
            node.sync() if isinstance(node, File) else self.sync_all(node)
        folder.safe, self.pending = dict(folder.current), []

    def after_cut(self, names, contents, rng):
        """Return the contents of the disk after a power cut, by relative path. A folder is None.

        `names` ("none", "some" or "all") and `contents` ("none", "torn" or "all") tell how much of the unsynced changes
        of each remains.
        """
        kept_change_count = 0
        if names == "all":
            kept_change_count = len(self.pending)
        elif names == "some":
            kept_change_count = rng.randint(0, len(self.pending))
        kept_changes = {}
        for moves in self.pending[:kept_change_count]:
            for folder, name, node in moves:
                kept_changes.setdefault(id(folder), {})[name] = node
        image = {}

        def collect(folder, prefix):
            entries = {**folder.safe, **kept_changes.get(id(folder), {})}
            for name, node in entries.items():
                if isinstance(node, Folder):
                    image[prefix + name] = None
                    collect(node, prefix + name + "/")
                elif node is not None:
                    image[prefix + name] = node.after_cut(contents, rng)

        collect(self.top, "")
        return image


def images(folder, changes, seed, variants):
    """Yield the possible disks after a power cut that follows each change, one disk for each variant.

    A variant is a pair (names, contents), as in `Disk.after_cut`. Each disk is yielded as (number of the change, names,
    contents, files).
    """
    disk, rng = Disk(folder), random.Random(seed)
    for number, change in enumerate(changes):
        disk.apply_change(change)
        for names, contents in variants:
            yield number, names, contents, disk.after_cut(names, contents, rng)
