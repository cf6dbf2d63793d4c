"""Check the packages that `keyhaul.fleet` needs. Imported first, so that one error lists all missing packages."""

from importlib.util import find_spec

missing = [name for name in ("distributed", "fsspec", "pyarrow") if find_spec(name) is None]
if missing:
    raise ImportError(f"keyhaul.fleet needs {', '.join(missing)}; try: pip install 'keyhaul[fleet]'")
