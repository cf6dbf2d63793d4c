"""Checks for the packages that the fleet needs. Imported first, so that one error lists all that are missing."""

from importlib.util import find_spec

absent = [name for name in ("distributed", "fsspec", "pyarrow") if find_spec(name) is None]
if absent:
    raise ImportError(f"keyhaul.fleet needs {', '.join(absent)}; try: pip install 'keyhaul[fleet]'")
