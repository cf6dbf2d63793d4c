// Makes the library visible in files of this module that do not import it, and in tests that import this module.
@_exported import KeyhaulKit
