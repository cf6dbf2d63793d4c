import Basics
import KeychainFormats

/// A move of a phone's keychain, decided and not carried out: what becomes of every item.
///
/// It is what a backup made now and restored there would do, found with real keys in memory: what opens on the other
/// phone was opened there. `restore()` carries it out.
public struct Move: Sendable {
  /// Where the keychain goes.
  public enum Target: String, Sendable, Hashable, CaseIterable {
    /// Another phone of the same model with the same apps, and nothing in its keychain.
    case newPhone = "to a new phone"
    /// The phone that made the backup, erased before.
    case samePhone = "to the same phone"
  }

  /// What the keychain goes with.
  public enum Backup: String, Sendable, Hashable, CaseIterable {
    /// A backup with a password.
    case encrypted = "from an encrypted backup"
    /// A backup without a password.
    case unencrypted = "from an unencrypted backup"
  }

  enum Destination: Sendable {
    case made(Target)
    case phone(Phone)
  }

  /// What the keychain goes with.
  public let backup: Backup
  /// All items of the phone, each with its fate: those that the backup would hold, then those that no backup holds.
  /// Marks of deleted items are none.
  public let items: [MovedItem]
  let destination: Destination
  let source: Phone
  /// The source's revision when the move was decided.
  let revision: String
  /// The number of items that the backup would hold.
  let backedUpCount: Int

  /// The move in words: "to a new phone from an encrypted backup".
  static func way(_ destination: Destination, _ backup: Backup) -> String {
    switch destination {
    case .made(let target): "\(target.rawValue) \(backup.rawValue)"
    case .phone: "to the other phone \(backup.rawValue)"
    }
  }

  /// The items that arrive.
  public var migrating: [MovedItem] { items.filter { $0.fate.kind == .migrates } }

  /// The items that are in the backup and do not arrive.
  public var stayingBehind: [MovedItem] {
    items.filter { if case .staysBehind = $0.fate.kind { true } else { false } }
  }

  /// The items that no backup of the phone holds.
  public var neverInBackup: [MovedItem] {
    items.filter { if case .neverInBackup = $0.fate.kind { true } else { false } }
  }

  /// The items that are damaged.
  public var unreadable: [MovedItem] {
    items.filter(\.fate.isDamage)
  }
}

extension Move: CustomStringConvertible {
  /// The counts, then each item that does not arrive with its reason.
  public var description: String {
    guard !items.isEmpty else { return Self.nothingStored }
    let counts = [
      (migrating.count, "migrating"), (stayingBehind.count, "staying behind"), (neverInBackup.count, "in no backup"),
      (unreadable.count, "damaged"),
    ]
    let told = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    let total = "\(items.count) item\(items.count == 1 ? "" : "s")"
    let lines = items.map { item in
      "  \(item.title) \(item.fate.verb)\(item.fate.reason.map { " (\($0.rawValue))" } ?? "")"
    }
    return (["\(total) in a move \(Self.way(destination, backup)): \(told)"] + lines).joined(separator: "\n")
  }
}
