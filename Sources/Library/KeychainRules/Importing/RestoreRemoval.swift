import Basics
package import KeychainFormats

/// Which rows a restore removes before it puts a backup in place: what is not synchronized, not in one of the kept groups
/// and not a shared copy.
///
/// Source: Apple `SecItemDb.c` (`SecServerImportKeychainInPlist`).
package enum RestoreRemoval {
  /// Whose rows a restore leaves in place.
  package static let keptAccessGroups = [
    "com.apple.security.sos", "com.apple.security.sos-usercredential", "com.apple.security.ckks",
    "com.apple.security.egoIdentities", "com.apple.security.octagon",
  ]

  /// The condition of the statement that removes, on columns of any type: a NULL keeps the row.
  package static func removes(_ columns: [AttributeCode: ColumnValue]) -> Bool {
    guard columns[.synchronizable] == .integer(0), columns[.sharingGroup] == .text([]) else { return false }
    return !keptAccessGroups.contains { columns[.accessGroup] == .text($0) }
  }
}
