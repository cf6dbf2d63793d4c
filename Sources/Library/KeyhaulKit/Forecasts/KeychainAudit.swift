import KeychainFormats
package import KeychainRules

/// An overview of the items that apps store, for developers. It lists the items that can leave the device, the items that
/// never leave it, and the items with a deprecated protection class.
package struct KeychainAudit: Sendable {
  /// The items in the order of the backup or of the device's plan.
  package let items: [MigrationComparison.Item]

  /// Creates an audit from the outcomes of the four restores.
  package init(_ comparison: MigrationComparison) {
    items = comparison.items
  }

  /// Items that a locked device can read before its first unlock.
  package var deprecated: [MigrationComparison.Item] { items.filter(\.isDeprecated) }
  /// Items that arrive on another device if the backup has a password.
  package var leaving: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == true } }
  /// Items that never arrive on another device.
  package var staying: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == false } }
  /// Items that cannot be read, so their outcome is unknown.
  package var unreadable: [MigrationComparison.Item] { items.filter { $0.movesToOtherDevice == nil } }
}

extension MigrationComparison.Item {
  private static let otherDeviceWithPassword = RestoreScenario(hasPassword: true, onSameDevice: false)

  /// Whether the item arrives on another device if the backup has a password; `nil` if it cannot be read.
  package var movesToOtherDevice: Bool? {
    switch self[Self.otherDeviceWithPassword] {
    case .arrives: true
    case .staysBehind: false
    case .unreadable: nil
    }
  }

  /// The reason why the item does not arrive on another device; `nil` if it does.
  package var reasonToStay: Reason? { self[Self.otherDeviceWithPassword].reason }

  /// Whether a locked device can read the item before the first unlock. These classes are deprecated since iOS 12.
  ///
  /// Source: Apple, `kSecAttrAccessibleAlways`, `kSecAttrAccessibleAlwaysThisDeviceOnly`.
  package var isDeprecated: Bool {
    switch protection {
    case .always, .alwaysThisDeviceOnly: true
    default: false
    }
  }
}
