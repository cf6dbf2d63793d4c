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
  ///   - withPassword: Why a backup with a password does not bring it; `nil` where it does.
  ///   - withoutPassword: The same of a backup without one.
  ///   - protection: Its class; `nil` where nothing says it.
  ///   - isSynchronizable: Whether it is marked to synchronize; `nil` where that is sealed.
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

  /// Why a class leaves its device on no way at all; `nil` where it may.
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
