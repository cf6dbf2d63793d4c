"""What a disk may hold after a power cut: a recorded log of changes, played up to any of them.

Names and bytes count apart. The bytes of a file are safe once the file was synced, a name once its directory was; of what
was not, any part may be on the disk: a write as a whole, not at all or some of its 512-byte sectors, the changes of names
up to any one of them. Source of the rules: POSIX `fsync`; a journal keeps the order of names and not of bytes.
"""

import pathlib
import random
from dataclasses import dataclass

SECTOR = 512


@dataclass
class Change:
    op: str
    path: str
    other: str
    offset: int
    length: int
    content: bytes


def read_log(path):
    """The changes in the order in which they were made."""
    raw, at, found = path.read_bytes(), 0, []
    while at < len(raw):
        end = raw.index(b"\n", at)
        op, name, other, offset, length = raw[at:end].decode("utf-8").split("\t")
        at = end + 1
        content = b""
        if op == "write":
            content = raw[at:at + int(length)]
            at += int(length)
        found.append(Change(op, name, other, int(offset), int(length), content))
    return found


class File:
    def __init__(self, content=b""):
        self.safe, self.now, self.pending = content, bytearray(content), []

    def write(self, offset, content):
        self.apply(self.now, ("write", offset, content))
        self.pending.append(("write", offset, content))

    def truncate(self, length):
        self.apply(self.now, ("truncate", length, None))
        self.pending.append(("truncate", length, None))

    def sync(self):
        self.safe, self.pending = bytes(self.now), []

    @staticmethod
    def apply(target, change, sectors=None):
        kind, at, content = change
        if kind == "truncate":
            del target[at:]
            target.extend(bytes(at - len(target)))
            return
        target.extend(bytes(max(0, at + len(content) - len(target))))
        for start in range(0, len(content), SECTOR):
            part = content[start:start + SECTOR]
            if sectors is None or sectors():
                target[at + start:at + start + len(part)] = part

    def after_cut(self, how, source):
        """Its bytes: what was safe, and of the rest nothing, all of it, or torn sectors of some writes."""
        content = bytearray(self.safe)
        for change in self.pending:
            fate = source.choice(("none", "all", "torn")) if how == "torn" else how
            if fate == "all":
                self.apply(content, change)
            elif fate == "torn" and change[0] == "write":
                self.apply(content, change, lambda: source.random() < 0.5)
        return bytes(content)


class Folder:
    def __init__(self):
        self.safe, self.now = {}, {}


class Disk:
    """A tree of files, what of it is safe, and which changes of names are not."""

    def __init__(self, folder):
        self.root, self.top, self.pending = str(folder), Folder(), []
        for path in sorted(folder.rglob("*")):
            node = Folder() if path.is_dir() else File(path.read_bytes())
            parent, name = self.place(str(path))
            parent.now[name] = parent.safe[name] = node

    def place(self, path):
        """The folder that holds a path's last name, and that name."""
        *above, name = pathlib.PurePath(path).relative_to(self.root).parts
        folder = self.top
        for part in above:
            folder = folder.now[part]
        return folder, name

    def node(self, path):
        if path == self.root:
            return self.top
        folder, name = self.place(path)
        return folder.now.get(name)

    def rename(self, *moves):
        for folder, name, node in moves:
            if node is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = node
        self.pending.append(moves)

    def play(self, change):
        if change.path.endswith("-shm") or change.path.endswith(" (deleted)"):
            # The index of a log is memory that has a name; what has no name any more is not found again.
            return
        if change.op == "syncall":
            self.sync_all(self.top)
            return
        node = self.node(change.path)
        if change.op == "write":
            node.write(change.offset, change.content)
        elif change.op == "truncate":
            node.truncate(change.length)
        elif change.op == "sync":
            self.sync(node)
        elif change.op in ("create", "mkdir"):
            if node is None:
                self.rename((*self.place(change.path), File() if change.op == "create" else Folder()))
        elif change.op == "remove":
            self.rename((*self.place(change.path), None))
        elif change.op == "rename":
            self.rename((*self.place(change.path), None), (*self.place(change.other), node))
        elif change.op == "link":
            self.rename((*self.place(change.other), node))
        elif change.op == "exchange":
            self.rename((*self.place(change.path), self.node(change.other)), (*self.place(change.other), node))
        elif change.op != "mode":
            raise ValueError(f"what is {change.op}?")

    def sync(self, node):
        if isinstance(node, File):
            return node.sync()
        # A directory's names are safe, and a name that moved between two with both of its ends.
        node.safe = dict(node.now)
        self.pending = [moves for moves in self.pending if any(folder is not node for folder, _, _ in moves)]

    def sync_all(self, folder):
        for node in folder.now.values():
            node.sync() if isinstance(node, File) else self.sync_all(node)
        folder.safe, self.pending = dict(folder.now), []

    def after_cut(self, names, contents, source):
        """What is on the disk: relative path to bytes, `None` for a folder."""
        kept = len(self.pending) if names == "all" else source.randint(0, len(self.pending)) if names == "some" else 0
        changed = {}
        for moves in self.pending[:kept]:
            for folder, name, node in moves:
                changed.setdefault(id(folder), {})[name] = node
        found = {}

        def walk(folder, prefix):
            entries = {**folder.safe, **changed.get(id(folder), {})}
            for name, node in entries.items():
                if isinstance(node, Folder):
                    found[prefix + name] = None
                    walk(node, prefix + name + "/")
                elif node is not None:
                    found[prefix + name] = node.after_cut(contents, source)

        walk(self.top, "")
        return found


def images(folder, changes, seed, variants):
    """After each change, in each of the variants of what is lost: the number of the change and what the disk holds."""
    disk, source = Disk(folder), random.Random(seed)
    for number, change in enumerate(changes):
        disk.play(change)
        for names, contents in variants:
            yield number, names, contents, disk.after_cut(names, contents, source)
