public import DataProtection
public import KeychainFormats

/// One item of an archive after every key at hand was tried on it.
public struct ArchivedItem: Sendable {
  /// Its position in the archive, counting genp, inet, cert, keys in that order from 0.
  public let index: Int
  /// The kind whose array it stands in.
  public let kind: ItemKind
  /// The class its blob names; `nil` where the blob doesn't say.
  public let protection: ProtectionClass?
  /// The class of the keybag whose key it is sealed with; `nil` where the blob doesn't say.
  public let keyClass: KeyClass?
  /// The bytes beside it in the archive.
  public let persistentReference: [UInt8]?
  /// Where its blob lies in the keychain file, for people who look at bytes.
  public let blob: BlobPlace?
  /// How far the key of its class was at hand; `nil` where the blob names no class.
  public let classKey: ClassKeyAvailability?
  /// What came of trying to open it.
  public let opening: Opening
  /// Whether its form holds nothing but a secret (version 0, of iOS 4): nothing says what the item is called or whose it
  /// is, so that it can be read and not be restored.
  public let isSecretOnly: Bool
  /// What the archive stores of it, as SHA-256: of its blob or, where it has none, of its reference. `nil` of an item that
  /// was read from no keychain file.
  package var fingerprint: [UInt8]?

  /// Creates an item as it came out of an archive; the class of the key follows from `protection` where it is not
  /// given.
  public init(
    index: Int, kind: ItemKind, protection: ProtectionClass?, persistentReference: [UInt8]? = nil,
    blob: BlobPlace? = nil, keyClass: KeyClass? = nil, classKey: ClassKeyAvailability?, opening: Opening,
    isSecretOnly: Bool = false
  ) {
    self.index = index
    self.kind = kind
    self.protection = protection
    self.keyClass = keyClass ?? protection?.keyClass
    self.persistentReference = persistentReference
    self.blob = blob
    self.classKey = classKey
    self.opening = opening
    self.isSecretOnly = isSecretOnly
  }

  /// Where an item's blob lies.
  public struct BlobPlace: Sendable, Hashable {
    /// The length of the blob, in bytes.
    public let byteCount: Int
    /// In bytes from the start of the decrypted keychain file.
    public let offset: Int

    /// Creates a place.
    public init(byteCount: Int, offset: Int) {
      self.byteCount = byteCount
      self.offset = offset
    }
  }

  /// What came of trying to open it.
  public enum Opening: Sendable {
    /// The item in clear.
    case opened(KeychainItem)
    /// Why it stayed shut.
    case failed(Failure)
  }

  /// Why one item does not open. What a report calls it depends on the archive as well (`Reason`).
  public enum Failure: Sendable, Hashable {
    /// The keybag has no key of this class.
    case noClassKey(KeyClass)
    /// The keybag has one, but it does not unwrap.
    case classKeyDamaged(KeyClass)
    /// The class key needs a device's hardware and none was given.
    case hardwareMissing
    /// The item's own key does not unwrap with the key of its class. Where that one went through a device's hardware,
    /// which has no check value, either the hardware is another one or the bytes were changed.
    case keyUnwrapFailed
    /// The item's key unwraps, its content does not.
    case tagMismatch
    /// It opens, or parses, into something that is no item; the text says what is wrong and quotes no value.
    case malformed(String)
    /// The blob has a version that is not read.
    case unsupportedVersion(UInt32)
    /// The entry has no bytes at all.
    case missingData
  }

  /// The same item under another position, where another one of its class was tried with other keys: what that one lacks
  /// it lacks too.
  package func tried(like trial: ArchivedItem, at index: Int) -> ArchivedItem {
    var opening = opening
    if case .failed = trial.opening { opening = trial.opening }
    return ArchivedItem(
      index: index, kind: kind, protection: protection, persistentReference: persistentReference, blob: blob,
      keyClass: keyClass, classKey: trial.classKey, opening: opening, isSecretOnly: isSecretOnly)
  }

  /// The item in clear; `nil` where it does not open.
  public var item: KeychainItem? {
    switch opening {
    case .opened(let item): item
    case .failed: nil
    }
  }

  /// What the item says about its class key, which went through the hardware key that was tried: `true` where the item's
  /// own key, which is wrapped with check bytes, came off under it; `false` where it did not; `nil` where it was no
  /// matter of hardware.
  public var provesHardware: Bool? {
    guard classKey == .availableThroughDevice else { return nil }
    return switch opening {
    case .opened: true
    case .failed(.keyUnwrapFailed): false
    // Both are found out after the item's key came off.
    case .failed(.tagMismatch), .failed(.malformed): true
    case .failed: nil
    }
  }
}
