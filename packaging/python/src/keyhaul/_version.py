"""The version of this package, equal to the program's."""

__version__ = "0.2.0"
