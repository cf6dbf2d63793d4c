"""What the fleet needs beside the package itself; imported before everything else, so that what is missing has one name."""

from importlib.util import find_spec

absent = [name for name in ("distributed", "fsspec", "pyarrow") if find_spec(name) is None]
if absent:
    raise ImportError(f"keyhaul.fleet needs {', '.join(absent)}; try: pip install 'keyhaul[fleet]'")
