"""Where a backup's files come from: a folder, or a tar or zip made from one (with or without one leading folder)."""

import pathlib
import tarfile
import zipfile

from . import NotABackup


class Folder:
    def __init__(self, path):
        self._path = pathlib.Path(path)

    def read(self, name):
        path = self._path / name
        return path.read_bytes() if path.is_file() else None


class Packed:
    """All regular files of a tar or zip, in memory; nothing is written to disk."""

    def __init__(self, path):
        files = {}
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                files = {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
        else:
            with tarfile.open(path) as archive:
                files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
        files = {name[2:] if name.startswith("./") else name: content for name, content in files.items()}
        manifest = min((name for name in files if name.split("/")[-1] == "Manifest.plist"), key=len, default=None)
        if manifest is None or manifest.count("/") > 1:
            raise NotABackup("there is no Manifest.plist")
        self._prefix, self._files = manifest[:-len("Manifest.plist")], files

    def read(self, name):
        return self._files.get(self._prefix + name)


def open_source(path):
    if pathlib.Path(path).is_dir():
        return Folder(path)
    try:
        return Packed(path)
    except tarfile.ReadError as error:
        raise NotABackup("the file is no tar and no zip") from error
