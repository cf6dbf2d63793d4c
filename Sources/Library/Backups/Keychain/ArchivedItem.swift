import Basics
public import KeychainCrypto
public import KeychainFormats
public import KeychainRules

/// One item of an archive after every key at hand was tried on it.
public struct ArchivedItem: Sendable {
  /// Its position in the archive, counting genp, inet, cert, keys in that order from 0.
  public let index: Int
  /// How far the key of its class was available; `nil` if the blob names no class.
  public let classKey: ClassKeyAvailability?
  /// A reference, because items are copied between lists, and each list has all of them.
  private let contents: Contents
  /// Another item of this class that could not be opened, for a reason that applies to this item too; `nil` if this
  /// item was tried.
  private let tried: Contents?

  private final class Contents: Sendable {
    let opening: Opening
    let persistentReference: HeldReference
    let fingerprint: ItemFingerprint?
    let kind: ItemKind
    let protection: ProtectionClass?
    let keyClass: KeyClass?
    let isSecretOnly: Bool
    let blob: BlobPlace?

    var failure: Failure? { if case .failed(let failure) = opening { failure } else { nil } }

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
  /// The class its blob names; `nil` if the blob doesn't say.
  public var protection: ProtectionClass? { contents.protection }
  /// The class of the keybag whose key it is sealed with; `nil` if the blob doesn't say.
  public var keyClass: KeyClass? { contents.keyClass }
  /// The bytes beside it in the archive.
  public var persistentReference: [UInt8]? { contents.persistentReference.bytes }
  /// Where its blob lies in the keychain file, for people who look at bytes.
  public var blob: BlobPlace? { contents.blob }
  /// What came of trying to open it.
  public var opening: Opening { (tried ?? contents).opening }
  /// The reason why the item could not be opened; `nil` if it was opened.
  public var failure: Failure? { (tried ?? contents).failure }
  /// Whether its form holds nothing but a secret (version 0, of iOS 4): nothing says what the item is called or whose it
  /// is, so that it can be read and not be restored.
  public var isSecretOnly: Bool { contents.isSecretOnly }
  /// What the archive stores of it: its blob or, where it has none, its reference. `nil` of an item that was read from no
  /// keychain file.
  package var fingerprint: ItemFingerprint? { contents.fingerprint }

  /// Creates an item as it came out of an archive; the class of the key follows from `protection` where it is not
  /// given.
  package init(
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

  private init(_ index: Int, _ classKey: ClassKeyAvailability?, _ contents: Contents, tried: Contents? = nil) {
    self.index = index
    self.classKey = classKey
    self.contents = contents
    self.tried = tried
  }

  /// Where an item's blob lies.
  public struct BlobPlace: Sendable, Hashable {
    private let count: UInt32
    private let start: UInt32

    /// The length of the blob, in bytes.
    package var byteCount: Int { Int(count) }
    /// In bytes from the start of the decrypted keychain file.
    package var offset: Int { Int(start) }

    /// Creates a place; no keychain file that is read has four gigabytes.
    package init(byteCount: Int, offset: Int) {
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
    let failed = trial.failure == nil ? tried : trial.tried ?? trial.contents
    return ArchivedItem(index, trial.classKey, contents, tried: failed)
  }

  /// The item in clear; `nil` if it does not open.
  public var item: KeychainItem? {
    switch opening {
    case .opened(let item): item
    case .failed: nil
    }
  }

  /// What the item says about its class key, which went through the hardware key that was tried: `true` where the item's
  /// own key, which is wrapped with check bytes, came off under it; `false` where it did not; `nil` if it was no
  /// matter of hardware.
  public var provesHardware: Bool? {
    guard classKey == .availableThroughDevice else { return nil }
    return switch failure {
    case nil: true
    case .keyUnwrapFailed: false
    // Both are found out after the item's key came off.
    case .tagMismatch, .malformed: true
    case .noClassKey, .classKeyDamaged, .hardwareMissing, .unsupportedVersion, .missingData: nil
    }
  }
}

extension ArchivedItem {
  /// Why the item does not open here, as every report names it; `nil` if it opens.
  ///
  /// - Parameters:
  ///   - hardware: What all items of the archive prove about the hardware key that was tried.
  ///   - backupHasPassword: Without one, also the items that could go anywhere need the hardware.
  public func reason(hardware: HardwareProof, backupHasPassword: Bool) -> Reason? {
    guard let failure else { return nil }
    return reason(of: failure, hardware: hardware, backupHasPassword: backupHasPassword)
  }

  /// The same for a failure of this item.
  public func reason(of failure: Failure, hardware: HardwareProof, backupHasPassword: Bool) -> Reason {
    if mayNeedOtherHardware(hardware) {
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

  /// Whether what keeps the item closed is the hardware of the device that made it, as far as anybody can tell: the
  /// hardware's layer has no check value, so until some item has proved the key of this one's class, nothing tells
  /// other hardware from changed bytes.
  public func mayNeedOtherHardware(_ hardware: HardwareProof) -> Bool {
    switch failure {
    case .hardwareMissing: true
    case .keyUnwrapFailed: classKey == .availableThroughDevice && !hardware.proves(self)
    case nil, .noClassKey, .classKeyDamaged, .tagMismatch, .malformed, .unsupportedVersion, .missingData: false
    }
  }
}

/// The bytes of a persistent reference, without an array if they are as few as usual. There is one for every item: with
/// arrays, 100,000 items take 4 MB more.
enum HeldReference: Sendable {
  case none
  /// Up to 20 bytes, the first ones lowest.
  case short(UInt64, UInt64, UInt32, count: UInt8)
  case long([UInt8])

  private static let longestShort = 20

  init(_ bytes: [UInt8]?) {
    guard let bytes else {
      self = .none
      return
    }
    guard bytes.count <= Self.longestShort else {
      self = .long(bytes)
      return
    }
    func word(_ range: Range<Int>) -> UInt64 {
      range.reversed().reduce(0) { $0 << 8 | ($1 < bytes.count ? UInt64(bytes[$1]) : 0) }
    }
    self = .short(word(0..<8), word(8..<16), UInt32(truncatingIfNeeded: word(16..<20)), count: UInt8(bytes.count))
  }

  var bytes: [UInt8]? {
    switch self {
    case .none: return nil
    case .long(let bytes): return bytes
    case .short(let first, let second, let third, let count):
      let words = [first, second, UInt64(third)]
      return (0..<Int(count)).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> (8 * ($0 % 8))) }
    }
  }
}
