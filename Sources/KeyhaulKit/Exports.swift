// What a tool names when it reads backups, plans and restores: one import of this module gives all of it.
@_exported public import ArchivedKeychain
@_exported public import BackupArchive
@_exported public import BackupRewriting
@_exported public import BackupWriting
@_exported public import DataProtection
@_exported public import KeychainFormats
@_exported public import KeychainRules
@_exported public import KeychainStore
@_exported public import Migration
@_exported public import VirtualDevice
