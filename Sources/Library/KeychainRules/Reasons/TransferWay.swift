/// A way on which an item can come to another device.
///
/// The raw value is the word that JSON uses.
public enum TransferWay: String, Sendable, CaseIterable, Hashable, Codable {
  /// A backup with a password, restored there.
  case encryptedBackup = "encrypted-backup"
  /// A backup without a password, restored there.
  case unencryptedBackup = "unencrypted-backup"
  /// From one device straight to the other (Quick Start), without a backup.
  case directTransfer = "direct-transfer"
  /// iCloud Keychain, where it is turned on.
  case iCloudKeychain = "icloud-keychain"
}

/// Why an item takes a way, does not take it, or why nothing tells.
public enum TransferGround: Sendable, Hashable {
  /// The backup holds it, and its key can be had there.
  case restored
  /// Its class is not bound to the device.
  case movableClass
  /// It is marked to synchronize.
  case synchronized
  /// It is not marked to synchronize.
  case notSynchronized
  /// A rule keeps it, or it is damaged.
  case reason(Reason)
  /// It does not open, and what decides is sealed with it.
  case sealed
  /// Nothing that is published says it.
  case noSource

  /// The word that JSON uses.
  public var id: String {
    switch self {
    case .restored: "restored"
    case .movableClass: "movable-class"
    case .synchronized: "synchronized"
    case .notSynchronized: "not-synchronized"
    case .reason(let reason): reason.rawValue
    case .sealed: "sealed"
    case .noSource: "no-source"
    }
  }
}

/// Whether an item comes to another device on one of the ways, and why.
public enum TransferAnswer: Sendable, Hashable {
  /// It arrives.
  case yes(TransferGround)
  /// It does not arrive.
  case no(TransferGround)
  /// Nothing tells.
  case notKnown(TransferGround)

  /// The answer without its ground. The raw value is the word that JSON uses.
  public enum Verdict: String, Sendable, CaseIterable, Hashable {
    /// It arrives.
    case yes
    /// It does not arrive.
    case no
    /// Nothing tells.
    case notKnown = "not-known"
  }

  /// The answer without its ground.
  public var verdict: Verdict {
    switch self {
    case .yes: .yes
    case .no: .no
    case .notKnown: .notKnown
    }
  }

  /// Why.
  public var ground: TransferGround {
    switch self {
    case .yes(let ground), .no(let ground), .notKnown(let ground): ground
    }
  }
}
