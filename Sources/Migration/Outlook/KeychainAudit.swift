public import ArchivedKeychain
import KeychainFormats

/// What a developer wants to know of the items that apps store: which may leave the device, which never do, and which
/// have a protection class that Apple has given up.
public struct KeychainAudit: Sendable {
  public struct Item: Sendable, Hashable {
    public let item: MigrationComparison.Item
    /// Arrives on another device where the backup has a password.
    public let leavesDevice: Bool
    /// Why it does not.
    public let reason: Reason?

    /// Readable on a locked device before anyone has unlocked it: deprecated since iOS 12.
    ///
    /// Source: Apple, `kSecAttrAccessibleAlways`, `kSecAttrAccessibleAlwaysThisDeviceOnly`.
    public var isDeprecated: Bool {
      switch item.protection {
      case .always, .alwaysThisDeviceOnly: true
      default: false
      }
    }
  }

  public let items: [Item]

  public init(_ comparison: MigrationComparison) {
    let leaving = RestoreSetting(hasPassword: true, onSameDevice: false)
    items = comparison.items.map {
      Item(item: $0, leavesDevice: $0[leaving] == .arrives, reason: $0[leaving].reason)
    }
  }

  public var deprecated: [Item] { items.filter(\.isDeprecated) }
  public var leaving: [Item] { items.filter(\.leavesDevice) }
  public var staying: [Item] { items.filter { !$0.leavesDevice } }
}
