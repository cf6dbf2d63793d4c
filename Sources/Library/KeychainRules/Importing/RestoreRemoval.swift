package import Basics
package import KeychainFormats

/// Selects the rows that a restore removes before it imports a backup. It keeps synchronized rows, shared copies and rows
/// in a preserved access group.
///
/// Source: Apple `SecItemDb.c` (`SecServerImportKeychainInPlist`).
package enum RestoreRemoval {
  /// The access groups whose rows a restore keeps.
  package static let preservedAccessGroups = [
    "com.apple.security.sos", "com.apple.security.sos-usercredential", "com.apple.security.ckks",
    "com.apple.security.egoIdentities", "com.apple.security.octagon",
  ]

  /// Returns whether a restore removes the row. As in Apple's SQL condition, a row stays if its `sync` or `ggrp` is NULL
  /// or has a value of another type.
  package static func removes(_ columns: [AttributeCode: ColumnValue]) -> Bool {
    guard columns[.synchronizable] == .integer(0), columns[.sharingGroup] == .text([]) else { return false }
    return !preservedAccessGroups.contains { columns[.accessGroup] == .text($0) }
  }
}
