import Basics
public import KeychainCrypto
public import KeychainFormats
public import KeychainRules

/// An item of a backup after an attempt to decrypt it.
public struct BackupItem: Sendable {
  /// The index in the backup, from 0, in the order genp, inet, cert, keys.
  public let index: Int
  /// The availability of the class key, or `nil` if the item's data contains no class.
  public let classKey: ClassKeyAvailability?
  /// The contents, stored by reference because whole lists of items are copied.
  private let contents: Contents
  /// An item of the same class that was tried instead of this item, and whose failure is also this item's result. `nil`
  /// if this item was tried itself.
  private let failedTrial: Contents?

  private final class Contents: Sendable {
    let opening: Opening
    let persistentReference: InlinePersistentReference
    let fingerprint: ItemFingerprint?
    let kind: ItemKind
    let protection: ProtectionClass?
    let keyClass: KeyClass?
    let isSecretOnly: Bool
    let blob: BlobLocation?

    var failure: Failure? { if case .failed(let failure) = opening { failure } else { nil } }

    init(
      kind: ItemKind, protection: ProtectionClass?, keyClass: KeyClass?,
      persistentReference: InlinePersistentReference, fingerprint: ItemFingerprint?, blob: BlobLocation?,
      opening: Opening, isSecretOnly: Bool
    ) {
      self.kind = kind
      self.protection = protection
      self.keyClass = keyClass
      self.persistentReference = persistentReference
      self.fingerprint = fingerprint
      self.blob = blob
      self.opening = opening
      self.isSecretOnly = isSecretOnly
    }
  }

  /// The kind of item, from its array.
  public var kind: ItemKind { contents.kind }
  /// The protection class, or `nil` if the item's data contains none.
  public var protection: ProtectionClass? { contents.protection }
  /// The class of the key in the keybag, or `nil` if the item's data contains none.
  public var keyClass: KeyClass? { contents.keyClass }
  /// The persistent reference, which is stored with the item.
  public var persistentReference: [UInt8]? { contents.persistentReference.bytes }
  /// The location of the item's data in the keychain file, for diagnostics.
  public var blob: BlobLocation? { contents.blob }
  /// The result of decrypting the item.
  public var opening: Opening { (failedTrial ?? contents).opening }
  /// The reason why the item could not be decrypted, or `nil` if it was.
  public var failure: Failure? { (failedTrial ?? contents).failure }
  /// Whether the item's format contains only a secret (version 0, iOS 4). Without a name and an owner, it can be read
  /// but not restored.
  package var isSecretOnly: Bool { contents.isSecretOnly }
  /// The digest of the stored data, or of the persistent reference if the item has no data. `nil` if the item is not
  /// from a keychain file.
  package var fingerprint: ItemFingerprint? { contents.fingerprint }

  /// Creates an item. By default, `protection` determines the key class.
  package init(
    index: Int, kind: ItemKind, protection: ProtectionClass?, persistentReference: [UInt8]? = nil,
    blob: BlobLocation? = nil, keyClass: KeyClass? = nil, classKey: ClassKeyAvailability?, opening: Opening,
    isSecretOnly: Bool = false
  ) {
    self.init(
      index: index, kind: kind, protection: protection, persistentReference: persistentReference, blob: blob,
      keyClass: keyClass, classKey: classKey, opening: opening, isSecretOnly: isSecretOnly, fingerprint: nil)
  }

  /// Creates an item.
  ///
  /// - Parameter fingerprint: The digest of the stored data.
  init(
    index: Int, kind: ItemKind, protection: ProtectionClass?, persistentReference: [UInt8]?,
    blob: BlobLocation? = nil, keyClass: KeyClass? = nil, classKey: ClassKeyAvailability?, opening: Opening,
    isSecretOnly: Bool = false, fingerprint: ItemFingerprint?
  ) {
    self.init(
      index, classKey,
      Contents(
        kind: kind, protection: protection, keyClass: keyClass ?? protection?.keyClass,
        persistentReference: InlinePersistentReference(persistentReference), fingerprint: fingerprint, blob: blob,
        opening: opening, isSecretOnly: isSecretOnly))
  }

  private init(_ index: Int, _ classKey: ClassKeyAvailability?, _ contents: Contents, failedTrial: Contents? = nil) {
    self.index = index
    self.classKey = classKey
    self.contents = contents
    self.failedTrial = failedTrial
  }

  /// The location of an item's data.
  public struct BlobLocation: Sendable, Hashable {
    private let count: UInt32
    private let start: UInt32

    /// The size of the data in bytes.
    package var byteCount: Int { Int(count) }
    /// The offset in the decrypted keychain file in bytes.
    package var offset: Int { Int(start) }

    /// Creates a location. Keychain files are smaller than 4 GiB.
    package init(byteCount: Int, offset: Int) {
      count = UInt32(clamping: byteCount)
      start = UInt32(clamping: offset)
    }
  }

  /// The result of decrypting an item.
  public enum Opening: Sendable {
    /// The decrypted item.
    case opened(KeychainItem)
    /// The reason why it could not be decrypted.
    case failed(Failure)
  }

  /// The reason why an item cannot be decrypted. The reason in reports also depends on the backup (`Reason`).
  public enum Failure: Sendable, Hashable {
    /// The keybag has no key of this class.
    case noClassKey(KeyClass)
    /// The keybag's key of this class cannot be unwrapped.
    case classKeyDamaged(KeyClass)
    /// The class key requires a device key, and none was given.
    case hardwareMissing
    /// The item's key cannot be unwrapped with its class key. If a device key was used, which has no check value,
    /// either it is wrong or the bytes were changed.
    case keyUnwrapFailed
    /// The item's key can be unwrapped, but its content cannot be decrypted.
    case tagMismatch
    /// The decrypted data is not a valid item. The text describes the problem without values.
    case malformed(String)
    /// The version of the item's data is not supported.
    case unsupportedVersion(UInt32)
    /// The entry has no data.
    case missingData
  }

  /// Returns this item at `index`, with the result of `trial`. If `trial` was decrypted, this item keeps its own
  /// result.
  ///
  /// - Parameter trial: An item of the same class that was tried with different keys.
  package func withResult(of trial: BackupItem, at index: Int) -> BackupItem {
    let newTrial = trial.failure == nil ? failedTrial : trial.failedTrial ?? trial.contents
    return BackupItem(index, trial.classKey, contents, failedTrial: newTrial)
  }

  /// The decrypted item, or `nil` if it cannot be decrypted.
  public var item: KeychainItem? {
    switch opening {
    case .opened(let item): item
    case .failed: nil
    }
  }

  /// Whether the item proves the device key. The item's wrapped key has check bytes, so only the right keys unwrap it.
  ///
  /// `true` if the item's key was unwrapped, `false` if it could not be unwrapped, and `nil` if the device key was not
  /// needed or not tried.
  package var provesDeviceKey: Bool? {
    guard classKey == .availableThroughDevice else { return nil }
    return switch failure {
    case nil: true
    case .keyUnwrapFailed: false
    // Both are detected after the item's key was unwrapped.
    case .tagMismatch, .malformed: true
    case .noClassKey, .classKeyDamaged, .hardwareMissing, .unsupportedVersion, .missingData: nil
    }
  }
}

extension BackupItem {
  /// Returns the reason for reports why the item cannot be decrypted, or `nil` if it can.
  ///
  /// - Parameters:
  ///   - hardware: The evidence from all items about the device key that was tried.
  ///   - backupHasPassword: Whether the backup has a password. Without one, migratable items need the device key too.
  public func reason(hardware: DeviceKeyEvidence, backupHasPassword: Bool) -> Reason? {
    guard let failure else { return nil }
    return reason(of: failure, hardware: hardware, backupHasPassword: backupHasPassword)
  }

  /// Returns the reason for a failure of this item.
  public func reason(of failure: Failure, hardware: DeviceKeyEvidence, backupHasPassword: Bool) -> Reason {
    if mayNeedOtherDeviceKey(hardware) {
      let isMigratable = protection?.isThisDeviceOnly == false
      return isMigratable && !backupHasPassword ? .backupNotEncrypted : .deviceBound
    }
    return switch failure {
    case .noClassKey, .classKeyDamaged: .noClassKey
    case .hardwareMissing: .deviceBound
    case .keyUnwrapFailed, .tagMismatch: .tagMismatch
    case .malformed, .missingData: .malformed
    case .unsupportedVersion: .unsupportedVersion
    }
  }

  /// Returns whether the item may need the source device's key, which was not used.
  ///
  /// The device key's layer has no check value. Until an item of the class proves the device key, a wrong key and
  /// changed bytes cannot be distinguished.
  package func mayNeedOtherDeviceKey(_ hardware: DeviceKeyEvidence) -> Bool {
    switch failure {
    case .hardwareMissing: true
    case .keyUnwrapFailed: classKey == .availableThroughDevice && !hardware.proves(self)
    case nil, .noClassKey, .classKeyDamaged, .tagMismatch, .malformed, .unsupportedVersion, .missingData: false
    }
  }
}

/// The bytes of a persistent reference, stored inline if they are short. With arrays, 100,000 items would need 4 MB
/// more.
enum InlinePersistentReference: Sendable {
  case none
  /// Up to 20 bytes as little-endian numbers: bytes 0 to 7, 8 to 15, and 16 to 19.
  case short(UInt64, UInt64, UInt32, count: UInt8)
  case long([UInt8])

  private static let maximumShortCount = 20

  init(_ bytes: [UInt8]?) {
    guard let bytes else {
      self = .none
      return
    }
    guard bytes.count <= Self.maximumShortCount else {
      self = .long(bytes)
      return
    }
    func number(from range: Range<Int>) -> UInt64 {
      range.reversed().reduce(0) { $0 << 8 | ($1 < bytes.count ? UInt64(bytes[$1]) : 0) }
    }
    self = .short(
      number(from: 0..<8), number(from: 8..<16), UInt32(truncatingIfNeeded: number(from: 16..<20)),
      count: UInt8(bytes.count))
  }

  var bytes: [UInt8]? {
    switch self {
    case .none: return nil
    case .long(let bytes): return bytes
    case .short(let bytes0to7, let bytes8to15, let bytes16to19, let count):
      let numbers = [bytes0to7, bytes8to15, UInt64(bytes16to19)]
      return (0..<Int(count)).map { UInt8(truncatingIfNeeded: numbers[$0 / 8] >> (8 * ($0 % 8))) }
    }
  }
}
