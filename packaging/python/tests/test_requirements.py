"""Test the error of the fleet module if a required package is not installed."""

import importlib
import importlib.util

import pytest

from keyhaul.fleet import _requirements


def test_the_error_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    with monkeypatch.context() as patched:
        patched.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))
        with pytest.raises(ImportError, match=r"needs pyarrow; try: pip install 'keyhaul\[fleet\]'"):
            importlib.reload(_requirements)
    assert importlib.reload(_requirements).missing == []
