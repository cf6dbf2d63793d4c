"""The sources of a backup's files: a folder, or a tar or zip archive with or without a leading folder."""

import pathlib
import tarfile
import zipfile

from . import NotABackup


class FolderSource:
    """A backup in a folder."""

    def __init__(self, path):
        self._path = pathlib.Path(path)

    def read(self, name):
        """Return the contents of a file, or None if there is no such file."""
        path = self._path / name
        return path.read_bytes() if path.is_file() else None


class ArchiveSource:
    """A backup in a tar or zip archive. All regular files are read into memory."""

    def __init__(self, path):
        files = {}
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                files = {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
        else:
            with tarfile.open(path) as archive:
                files = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
        self._files = {name[2:] if name.startswith("./") else name: content for name, content in files.items()}
        # The manifest is in the archive's root or in one folder. The shortest path belongs to the backup.
        manifests = [name for name in self._files if name.split("/")[-1] == "Manifest.plist"]
        manifest = min(manifests, key=len, default=None)
        if manifest is None or manifest.count("/") > 1:
            raise NotABackup("Manifest.plist is missing")
        self._folder_prefix = manifest[:-len("Manifest.plist")]

    def read(self, name):
        """Return the contents of a file, or None if there is no such file."""
        return self._files.get(self._folder_prefix + name)


def open_source(path):
    """Return the source for a path. Raise NotABackup if it is neither a folder nor a readable archive."""
    if pathlib.Path(path).is_dir():
        return FolderSource(path)
    try:
        return ArchiveSource(path)
    except tarfile.ReadError as error:
        raise NotABackup("the file is neither a tar nor a zip archive") from error
