"""What the fleet says where a package that it needs is not there."""

import importlib
import importlib.util

import pytest

from keyhaul.fleet import _needed


def test_names_what_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    with monkeypatch.context() as patched:
        patched.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else found(name))
        with pytest.raises(ImportError, match=r"needs pyarrow; try: pip install 'keyhaul\[fleet\]'"):
            importlib.reload(_needed)
    assert importlib.reload(_needed).absent == []
