public import DataProtection
public import KeychainFormats

/// One item of an archive after every key at hand was tried on it.
public struct ArchivedItem: Sendable {
  /// Its position in the archive, counting genp, inet, cert, keys in that order from 0.
  public let index: Int
  /// How far the key of its class was at hand; `nil` where the blob names no class.
  public let classKey: ClassKeyAvailability?
  /// By reference: an item is handed from list to list, of which each has all of them.
  private let contents: Contents
  /// Of another one of its class, which does not open: what that one lacks it lacks too.
  private let shut: Contents?

  private final class Contents: Sendable {
    let opening: Opening
    let persistentReference: HeldReference
    let fingerprint: ItemFingerprint?
    let kind: ItemKind
    let protection: ProtectionClass?
    let keyClass: KeyClass?
    let isSecretOnly: Bool
    let blob: BlobPlace?

    /// Asked for of each item: the item in clear is not taken in hand for it.
    var isShut: Bool { if case .failed = opening { true } else { false } }

    init(
      _ kind: ItemKind, _ protection: ProtectionClass?, _ keyClass: KeyClass?, _ persistentReference: HeldReference,
      _ fingerprint: ItemFingerprint?, _ blob: BlobPlace?, _ opening: Opening, isSecretOnly: Bool
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

  /// The kind whose array it stands in.
  public var kind: ItemKind { contents.kind }
  /// The class its blob names; `nil` where the blob doesn't say.
  public var protection: ProtectionClass? { contents.protection }
  /// The class of the keybag whose key it is sealed with; `nil` where the blob doesn't say.
  public var keyClass: KeyClass? { contents.keyClass }
  /// The bytes beside it in the archive.
  public var persistentReference: [UInt8]? { contents.persistentReference.bytes }
  /// Where its blob lies in the keychain file, for people who look at bytes.
  public var blob: BlobPlace? { contents.blob }
  /// What came of trying to open it.
  public var opening: Opening { shut?.opening ?? contents.opening }
  /// Whether its form holds nothing but a secret (version 0, of iOS 4): nothing says what the item is called or whose it
  /// is, so that it can be read and not be restored.
  public var isSecretOnly: Bool { contents.isSecretOnly }
  /// What the archive stores of it: its blob or, where it has none, its reference. `nil` of an item that was read from no
  /// keychain file.
  package var fingerprint: ItemFingerprint? { contents.fingerprint }

  /// Creates an item as it came out of an archive; the class of the key follows from `protection` where it is not
  /// given.
  public init(
    index: Int, kind: ItemKind, protection: ProtectionClass?, persistentReference: [UInt8]? = nil,
    blob: BlobPlace? = nil, keyClass: KeyClass? = nil, classKey: ClassKeyAvailability?, opening: Opening,
    isSecretOnly: Bool = false
  ) {
    self.init(
      index: index, kind: kind, protection: protection, persistentReference: persistentReference, blob: blob,
      keyClass: keyClass, classKey: classKey, opening: opening, isSecretOnly: isSecretOnly, fingerprint: nil)
  }

  /// - Parameter fingerprint: What the archive stores of it.
  init(
    index: Int, kind: ItemKind, protection: ProtectionClass?, persistentReference: [UInt8]?,
    blob: BlobPlace? = nil, keyClass: KeyClass? = nil, classKey: ClassKeyAvailability?, opening: Opening,
    isSecretOnly: Bool = false, fingerprint: ItemFingerprint?
  ) {
    self.init(
      index, classKey,
      Contents(
        kind, protection, keyClass ?? protection?.keyClass, HeldReference(persistentReference), fingerprint, blob,
        opening, isSecretOnly: isSecretOnly))
  }

  private init(_ index: Int, _ classKey: ClassKeyAvailability?, _ contents: Contents, shut: Contents? = nil) {
    self.index = index
    self.classKey = classKey
    self.contents = contents
    self.shut = shut
  }

  /// Where an item's blob lies.
  public struct BlobPlace: Sendable, Hashable {
    private let count: UInt32
    private let start: UInt32

    /// The length of the blob, in bytes.
    public var byteCount: Int { Int(count) }
    /// In bytes from the start of the decrypted keychain file.
    public var offset: Int { Int(start) }

    /// Creates a place; no keychain file that is read has four gigabytes.
    public init(byteCount: Int, offset: Int) {
      count = UInt32(clamping: byteCount)
      start = UInt32(clamping: offset)
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
    let tried = trial.shut ?? trial.contents
    if tried.isShut { return ArchivedItem(index, trial.classKey, contents, shut: tried) }
    return ArchivedItem(index, trial.classKey, contents, shut: shut)
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
