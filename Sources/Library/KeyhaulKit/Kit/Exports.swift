// One import for tools, the program and the reports: everything below the façade comes with it.
@_exported public import Backups
@_exported public import Basics
@_exported public import KeychainCrypto
@_exported public import KeychainFormats
@_exported public import KeychainRules
@_exported public import Keychains
@_exported public import VirtualDevice
