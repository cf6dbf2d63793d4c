// One import for tools, the program and the reports: all targets below this one are re-exported.
@_exported public import Backups
@_exported public import Basics
@_exported public import KeychainCrypto
@_exported public import KeychainFormats
@_exported public import KeychainRules
@_exported public import Keychains
@_exported public import VirtualDevice
