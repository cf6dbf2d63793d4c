import Backups
import KeychainFormats
public import KeychainRules

/// What a developer wants to know of the items that apps store: which may leave the device, which never do, and which
/// have a protection class that Apple has given up.
public struct KeychainAudit: Sendable {
  /// One item, with what becomes of it on another device.
  public struct Item: Sendable, Hashable {
    /// The item, with all four prospects.
    public let item: MigrationComparison.Item
    /// Whether it arrives on another device where the backup has a password; `nil` where it cannot be read here.
    public let leavesDevice: Bool?
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

  /// The items in the order of the archive or of the device's plan.
  public let items: [Item]

  /// Creates an audit of what four restores would bring.
  public init(_ comparison: MigrationComparison) {
    let leaving = RestoreSetting(hasPassword: true, onSameDevice: false)
    items = comparison.items.map { item in
      let leaves: Bool? =
        switch item[leaving] {
        case .arrives: true
        case .staysBehind: false
        case .unreadable: nil
        }
      return Item(item: item, leavesDevice: leaves, reason: item[leaving].reason)
    }
  }

  /// Items that a locked device shows before its first unlock.
  public var deprecated: [Item] { items.filter(\.isDeprecated) }
  /// Items that arrive on another device where the backup has a password.
  public var leaving: [Item] { items.filter { $0.leavesDevice == true } }
  /// Items that arrive on no other device.
  public var staying: [Item] { items.filter { $0.leavesDevice == false } }
  /// Where they would go another copy has to show.
  public var unreadable: [Item] { items.filter { $0.leavesDevice == nil } }
}
