public import Basics
public import KeychainCrypto
public import KeychainFormats
import KeychainRules

extension BackupItem {
  /// The number of items that a job decrypts at a time.
  private static let portionCount = 256

  /// Decrypts all items of a keychain file with the class keys of a keybag, on all cores.
  ///
  /// An item that cannot be decrypted does not affect the others.
  ///
  /// - Throws: `KeyhaulError` if the cryptography fails, independent of the items.
  public static func openAll(
    in file: KeychainBackupFile, with keys: ClassKeys
  ) throws(KeyhaulError) -> [BackupItem] {
    try openAll(in: KeychainIndex(file), with: keys, knowing: [])
  }

  /// Decrypts all items, and reuses those that were decrypted with the password's keys alone.
  ///
  /// - Parameter known: All items of the same file, or none.
  static func openAll(
    in file: KeychainIndex, with keys: ClassKeys, knowing known: [BackupItem]
  ) throws(KeyhaulError) -> [BackupItem] {
    var items: [BackupItem] = []
    items.reserveCapacity(file.count)
    try openPortions(of: file, with: keys, knowing: known.count == file.count ? known : [], areHeld: true) {
      items += $0
    }
    return items
  }

  /// Decrypts the items in order and in portions, for callers that do not keep all of them.
  ///
  /// - Parameters:
  ///   - areHeld: Whether the caller keeps the items, so that they use less memory.
  ///   - availability: The availability of the class keys of the wanted items, or `nil` to pass all items.
  ///   - shouldContinue: Called before each portion. Returns `false` to stop.
  static func openPortions(
    of file: KeychainIndex, with keys: ClassKeys, knowing known: [BackupItem] = [],
    areHeld: Bool = false, only availability: ClassKeyAvailability? = nil, shouldContinue: () -> Bool = { true },
    _ body: ([BackupItem]) -> Void
  ) throws(KeyhaulError) {
    guard file.count > portionCount else {
      let range = 0..<file.count
      return body(try open(range, of: file, with: keys, knowing: known, areHeld: areHeld, only: availability))
    }
    var start = 0
    try ParallelMap.run(
      jobs: ParallelMap.standardJobCount,
      next: { () throws(KeyhaulError) -> Range<Int>? in
        guard start < file.count else { return nil }
        let end = min(start + portionCount, file.count)
        defer { start = end }
        return start..<end
      },
      shouldContinue: shouldContinue,
      work: { (range) throws(KeyhaulError) -> [BackupItem] in
        try open(range, of: file, with: keys.sharing(), knowing: known, areHeld: areHeld, only: availability)
      },
      deliver: { (items) throws(KeyhaulError) in body(items) })
  }

  /// Decrypts a range of items.
  static func open(
    _ range: Range<Int>, of file: KeychainIndex, with keys: ClassKeys, knowing known: [BackupItem] = [],
    areHeld: Bool = false, only availability: ClassKeyAvailability? = nil
  ) throws(KeyhaulError) -> [BackupItem] {
    func isKnown(_ index: Int) -> Bool { known.indices.contains(index) && known[index].classKey == .available }
    var items: [BackupItem] = []
    items.reserveCapacity(availability == nil ? range.count : 0)
    let unknown = range.first { !isKnown($0) }
    let entries = try read(unknown == nil ? range.prefix(0) : range, of: file)
    let digest = try explained { () throws(DataProtectionError) in try DigestStream(.sha256) }
    for index in range {
      if isKnown(index) {
        items.append(known[index])
        continue
      }
      let entry = entries[index - range.lowerBound]
      let blob = entry.blob
      if let availability {
        guard let keyClass = blob.flatMap(Self.keyClass), keys.availability(of: keyClass) == availability else {
          continue
        }
      }
      let fingerprint = try explained { () throws(DataProtectionError) in
        try digest.update(blob ?? entry.persistentReference ?? [])
        return try digest.finish { ItemFingerprint($0) }
      }
      items.append(try open(entry, blob, fingerprint, index: index, with: keys, isHeld: areHeld))
    }
    return items
  }

  /// Returns the key class of an encrypted item, or `nil` if its data cannot be parsed.
  private static func keyClass(of blob: [UInt8]) -> KeyClass? {
    (try? ItemBlob(parsing: blob))?.keyClass ?? (try? LegacyItemBlob(parsing: blob))?.keyClass
  }

  private static func read(
    _ range: Range<Int>, of file: KeychainIndex
  ) throws(KeyhaulError) -> [KeychainBackupFile.Entry] {
    return try file.entries(range)
  }

  private static func explained<Value: ~Copyable>(
    _ body: () throws(DataProtectionError) -> Value
  ) throws(KeyhaulError) -> Value {
    try translatingErrors(body)
  }

  /// Returns the names of items that could not be decrypted without the source device's key, if these keys decrypt
  /// them.
  static func known(
    of items: [BackupItem], in file: KeychainIndex, with keys: ClassKeys
  ) throws(KeyhaulError) -> [Int: ItemSummary] {
    var known: [Int: ItemSummary] = [:]
    for item in items where item.needsDeviceKey {
      guard (0..<file.count).contains(item.index),
        let entry = try read(item.index..<item.index + 1, of: file).first
      else { continue }
      known[item.index] = try open(entry, entry.blob, nil, index: item.index, with: keys).item.map(ItemSummary.init)
    }
    return known
  }

  /// Whether the key of another device may be missing.
  private var needsDeviceKey: Bool {
    switch failure {
    case .hardwareMissing: true
    case .keyUnwrapFailed: classKey == .availableThroughDevice
    case nil, .noClassKey, .classKeyDamaged, .tagMismatch, .malformed, .unsupportedVersion, .missingData: false
    }
  }

  /// Decrypts an entry.
  ///
  /// - Parameter blob: The entry's data, which the entry would copy from the file for each access.
  private static func open(
    _ entry: KeychainBackupFile.Entry, _ blob: [UInt8]?, _ fingerprint: ItemFingerprint?, index: Int,
    with keys: ClassKeys, isHeld: Bool = false
  ) throws(KeyhaulError) -> BackupItem {
    let reference = entry.persistentReference
    guard let bytes = blob else {
      return BackupItem(
        index: index, kind: entry.kind, protection: nil, persistentReference: reference, classKey: nil,
        opening: .failed(.missingData), fingerprint: fingerprint)
    }
    let place = entry.blobOffset.map { BlobPlace(byteCount: bytes.count, offset: $0) }
    let blob: ItemBlob
    do throws(FormatError) {
      blob = try ItemBlob(parsing: bytes)
    } catch {
      let version = error.code == .unsupportedVersion ? ItemBlob.versionNumber(of: bytes) : nil
      if version == 0 { return try openLegacy(bytes, of: entry, fingerprint, index: index, place: place, with: keys) }
      let failure = version.map(Failure.unsupportedVersion) ?? .malformed(error.reason)
      return BackupItem(
        index: index, kind: entry.kind, protection: nil, persistentReference: reference, blob: place, classKey: nil,
        opening: .failed(failure), fingerprint: fingerprint)
    }
    let opening: Opening
    do throws(ItemCryptoError) {
      opening = .opened(try keys.open(blob, kind: entry.kind, packs: isHeld))
    } catch {
      opening = .failed(try Failure(error, keyClass: blob.keyClass))
    }
    return BackupItem(
      index: index, kind: entry.kind, protection: ProtectionClass(keyClass: blob.keyClass),
      persistentReference: reference, blob: place, keyClass: blob.keyClass,
      classKey: keys.availability(of: blob.keyClass), opening: opening, fingerprint: fingerprint)
  }

  private static func openLegacy(
    _ bytes: [UInt8], of entry: KeychainBackupFile.Entry, _ fingerprint: ItemFingerprint?, index: Int,
    place: BlobPlace?, with keys: ClassKeys
  ) throws(KeyhaulError) -> BackupItem {
    let blob: LegacyItemBlob
    do throws(FormatError) {
      blob = try LegacyItemBlob(parsing: bytes)
    } catch {
      return BackupItem(
        index: index, kind: entry.kind, protection: nil, persistentReference: entry.persistentReference, blob: place,
        classKey: nil, opening: .failed(.malformed(error.reason)), isSecretOnly: true, fingerprint: fingerprint)
    }
    let opening: Opening
    do throws(ItemCryptoError) {
      var item = KeychainItem(kind: entry.kind, attributes: [:])
      item.secret = try keys.openSecret(of: blob)
      opening = .opened(item)
    } catch {
      opening = .failed(try Failure(error, keyClass: blob.keyClass))
    }
    return BackupItem(
      index: index, kind: entry.kind, protection: ProtectionClass(keyClass: blob.keyClass),
      persistentReference: entry.persistentReference, blob: place, keyClass: blob.keyClass,
      classKey: keys.availability(of: blob.keyClass), opening: opening, isSecretOnly: true,
      fingerprint: fingerprint)
  }
}

extension BackupItem.Failure {
  package init(_ error: ItemCryptoError, keyClass: KeyClass) throws(KeyhaulError) {
    switch error.fault {
    case .noClassKey: self = .noClassKey(keyClass)
    case .classKeyDamaged: self = .classKeyDamaged(keyClass)
    case .deviceBound, .locked: self = .hardwareMissing
    case .keyUnwrapFailed: self = .keyUnwrapFailed
    case .tagMismatch: self = .tagMismatch
    case .malformed(let format): self = .malformed(format.reason)
    case .unsupportedVersion(let version): self = .unsupportedVersion(version)
    case .failed(let fault): throw KeyhaulError(fault)
    }
  }
}
