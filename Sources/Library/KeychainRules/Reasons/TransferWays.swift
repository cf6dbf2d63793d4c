public import KeychainFormats

/// On which ways one item comes to another device, whatever is there already.
///
/// Only what is published is said. Source: for a backup, the rules of this part; for a direct transfer, Apple DTS,
/// Developer Forums thread 788360: an item that does not synchronize can move by Quick Start as by an encrypted backup,
/// and the classes "this device only" keep it from both; for iCloud Keychain, Apple, `kSecAttrSynchronizable`, and DTS,
/// thread 93373: what synchronizes travels apart from backups, and a person can turn it off.
public struct TransferWays: Sendable, Hashable {
  /// What a backup with a password brings.
  public let encryptedBackup: TransferAnswer
  /// What a backup without a password brings.
  public let unencryptedBackup: TransferAnswer
  /// What a transfer from device to device brings.
  public let directTransfer: TransferAnswer
  /// What iCloud Keychain brings.
  public let iCloudKeychain: TransferAnswer

  /// Decides for one item.
  ///
  /// - Parameters:
  ///   - withPassword: Why a backup with a password does not bring it; `nil` if it does.
  ///   - withoutPassword: The same of a backup without one.
  ///   - protection: Its class; `nil` if nothing says it.
  ///   - isSynchronizable: Whether it is marked to synchronize; `nil` if that is sealed.
  public init(
    withPassword: Reason?, withoutPassword: Reason?, protection: ProtectionClass?, isSynchronizable: Bool?
  ) {
    encryptedBackup = withPassword.map { .no(.reason($0)) } ?? .yes(.restored)
    unencryptedBackup = withoutPassword.map { .no(.reason($0)) } ?? .yes(.restored)
    let bound = withPassword == .deleted ? .deleted : protection.flatMap(Self.bindingReason)
    let ofBoth = bound.map { .no(.reason($0)) } ?? Self.unknown(withPassword)
    directTransfer = ofBoth ?? Self.direct(withPassword, protection, isSynchronizable)
    iCloudKeychain = ofBoth ?? Self.cloud(withPassword, isSynchronizable)
  }

  /// The answer for a way.
  public subscript(way: TransferWay) -> TransferAnswer {
    switch way {
    case .encryptedBackup: encryptedBackup
    case .unencryptedBackup: unencryptedBackup
    case .directTransfer: directTransfer
    case .iCloudKeychain: iCloudKeychain
    }
  }

  /// Why a class leaves its device on no way at all; `nil` if it may.
  private static func bindingReason(_ protection: ProtectionClass) -> Reason? {
    if protection == .whenPasscodeSetThisDeviceOnly { return .passcodeOnly }
    return protection.isThisDeviceOnly ? .deviceBound : nil
  }

  /// What a malformed item says of itself is not what the one on its device says.
  private static func unknown(_ reason: Reason?) -> TransferAnswer? {
    reason == .malformed ? .notKnown(.reason(.malformed)) : nil
  }

  /// The published rule is about the class of items that do not synchronize, and of no backup's other rules.
  private static func direct(
    _ reason: Reason?, _ protection: ProtectionClass?, _ isSynchronizable: Bool?
  ) -> TransferAnswer {
    switch reason {
    case .hardwareKey, .systemBound, .needsAuthentication, .sharedGroup, .appClip: return .notKnown(.noSource)
    case .deviceBound, .passcodeOnly, .backupNotEncrypted, .deleted, .noClassKey, .tagMismatch, .malformed,
      .unsupportedVersion, nil:
      break
    }
    guard protection != nil, let isSynchronizable else { return .notKnown(.sealed) }
    return isSynchronizable ? .notKnown(.noSource) : .yes(.movableClass)
  }

  /// The group brings its copies, by a way of its own.
  private static func cloud(_ reason: Reason?, _ isSynchronizable: Bool?) -> TransferAnswer {
    if reason == .sharedGroup { return .notKnown(.noSource) }
    guard let isSynchronizable else { return .notKnown(.sealed) }
    return isSynchronizable ? .yes(.synchronized) : .no(.notSynchronized)
  }
}

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
