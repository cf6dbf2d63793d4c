public import Basics
public import KeychainCrypto
public import KeychainFormats
import KeychainRules

extension BackupItem {
  /// The number of items that a job decrypts at a time.
  private static let chunkItemCount = 256

  /// Decrypts all items of a keychain file with the class keys of a keybag, on all cores.
  ///
  /// An item that cannot be decrypted does not affect the others.
  ///
  /// - Throws: `KeyhaulError` if the cryptography fails, independent of the items.
  public static func openAll(
    in file: KeychainBackupFile, with keys: ClassKeys
  ) throws(KeyhaulError) -> [BackupItem] {
    try openAll(in: KeychainIndex(file), with: keys, reusing: [])
  }

  /// Decrypts all items. Reuses items that were decrypted before without a device key.
  ///
  /// - Parameter earlierItems: All items of the same file, or none.
  static func openAll(
    in file: KeychainIndex, with keys: ClassKeys, reusing earlierItems: [BackupItem]
  ) throws(KeyhaulError) -> [BackupItem] {
    var items: [BackupItem] = []
    items.reserveCapacity(file.count)
    try openChunks(
      of: file, with: keys, reusing: earlierItems.count == file.count ? earlierItems : [], packsItems: true
    ) {
      items += $0
    }
    return items
  }

  /// Decrypts the items in order and in chunks, for callers that do not keep all of them.
  ///
  /// - Parameters:
  ///   - packsItems: Whether the items are packed to use less memory, for a caller that keeps them.
  ///   - availability: If given, only items whose class key has this availability are passed.
  ///   - shouldContinue: Called before each chunk. Returns `false` to stop.
  static func openChunks(
    of file: KeychainIndex, with keys: ClassKeys, reusing earlierItems: [BackupItem] = [],
    packsItems: Bool = false, only availability: ClassKeyAvailability? = nil, shouldContinue: () -> Bool = { true },
    _ body: ([BackupItem]) -> Void
  ) throws(KeyhaulError) {
    guard file.count > chunkItemCount else {
      let range = 0..<file.count
      return body(
        try open(range, of: file, with: keys, reusing: earlierItems, packsItems: packsItems, only: availability))
    }
    var start = 0
    try ParallelMap.run(
      jobs: ParallelMap.standardJobCount,
      next: { () throws(KeyhaulError) -> Range<Int>? in
        guard start < file.count else { return nil }
        let end = min(start + chunkItemCount, file.count)
        defer { start = end }
        return start..<end
      },
      shouldContinue: shouldContinue,
      work: { (range) throws(KeyhaulError) -> [BackupItem] in
        try open(
          range, of: file, with: keys.sharing(), reusing: earlierItems, packsItems: packsItems, only: availability)
      },
      deliver: { (items) throws(KeyhaulError) in body(items) })
  }

  /// Decrypts a range of items.
  static func open(
    _ range: Range<Int>, of file: KeychainIndex, with keys: ClassKeys, reusing earlierItems: [BackupItem] = [],
    packsItems: Bool = false, only availability: ClassKeyAvailability? = nil
  ) throws(KeyhaulError) -> [BackupItem] {
    func isReusable(_ index: Int) -> Bool {
      earlierItems.indices.contains(index) && earlierItems[index].classKey == .available
    }
    var items: [BackupItem] = []
    items.reserveCapacity(availability == nil ? range.count : 0)
    // If all items can be reused, no entry is read.
    let entries = try file.entries(range.allSatisfy(isReusable) ? range.prefix(0) : range)
    let digest = try translatingErrors { () throws(DataProtectionError) in try DigestStream(.sha256) }
    for index in range {
      if isReusable(index) {
        items.append(earlierItems[index])
        continue
      }
      let entry = entries[index - range.lowerBound]
      let data = entry.blob
      if let availability {
        guard let keyClass = data.flatMap(Self.keyClass), keys.availability(of: keyClass) == availability else {
          continue
        }
      }
      let fingerprint = try translatingErrors { () throws(DataProtectionError) in
        try digest.update(data ?? entry.persistentReference ?? [])
        return try digest.finish { ItemFingerprint($0) }
      }
      let stored = StoredItem(index: index, entry: entry, data: data, fingerprint: fingerprint)
      items.append(try open(stored, with: keys, packsItem: packsItems))
    }
    return items
  }

  /// Returns the key class of an encrypted item, or `nil` if its data cannot be parsed.
  private static func keyClass(of data: [UInt8]) -> KeyClass? {
    (try? ItemBlob(parsing: data))?.keyClass ?? (try? LegacyItemBlob(parsing: data))?.keyClass
  }

  /// Returns the summaries of the items that need the source device's key, by index.
  ///
  /// - Parameter keys: The class keys, unwrapped with the source device's key.
  static func summaries(
    of items: [BackupItem], in file: KeychainIndex, with keys: ClassKeys
  ) throws(KeyhaulError) -> [Int: ItemSummary] {
    var summaries: [Int: ItemSummary] = [:]
    for item in items where item.needsDeviceKey {
      guard (0..<file.count).contains(item.index),
        let entry = try file.entries(item.index..<item.index + 1).first
      else { continue }
      let stored = StoredItem(index: item.index, entry: entry, data: entry.blob, fingerprint: nil)
      summaries[item.index] = try open(stored, with: keys).item.map(ItemSummary.init)
    }
    return summaries
  }

  /// Whether the item may need a device key that was not used.
  private var needsDeviceKey: Bool {
    switch failure {
    case .hardwareMissing: true
    case .keyUnwrapFailed: classKey == .availableThroughDevice
    case nil, .noClassKey, .classKeyDamaged, .tagMismatch, .malformed, .unsupportedVersion, .missingData: false
    }
  }

  /// An item of the keychain file before it is decrypted.
  private struct StoredItem {
    /// The index in the backup.
    let index: Int
    let entry: KeychainBackupFile.Entry
    /// The encrypted data, or `nil` if the item has none. It is kept here because each access through `entry` copies it
    /// from the file.
    let data: [UInt8]?
    let fingerprint: ItemFingerprint?

    /// Creates the item with the result of decrypting it.
    ///
    /// - Parameters:
    ///   - keyClass: The class, or `nil` if the data cannot be parsed.
    ///   - classKey: The availability of the class key.
    func item(
      _ opening: Opening, keyClass: KeyClass? = nil, classKey: ClassKeyAvailability? = nil, isSecretOnly: Bool = false
    ) -> BackupItem {
      let location = data.flatMap { data in entry.blobOffset.map { BlobLocation(byteCount: data.count, offset: $0) } }
      return BackupItem(
        index: index, kind: entry.kind, protection: keyClass.flatMap { ProtectionClass(keyClass: $0) },
        persistentReference: entry.persistentReference, blob: location, keyClass: keyClass, classKey: classKey,
        opening: opening, isSecretOnly: isSecretOnly, fingerprint: fingerprint)
    }
  }

  /// Decrypts an item.
  private static func open(
    _ stored: StoredItem, with keys: ClassKeys, packsItem: Bool = false
  ) throws(KeyhaulError) -> BackupItem {
    guard let data = stored.data else { return stored.item(.failed(.missingData)) }
    let blob: ItemBlob
    do throws(FormatError) {
      blob = try ItemBlob(parsing: data)
    } catch {
      let version = error.code == .unsupportedVersion ? ItemBlob.versionNumber(of: data) : nil
      if version == 0 { return try openLegacy(stored, data, with: keys) }
      return stored.item(.failed(version.map(Failure.unsupportedVersion) ?? .malformed(error.reason)))
    }
    let opening: Opening
    do throws(ItemCryptoError) {
      opening = .opened(try keys.open(blob, kind: stored.entry.kind, packs: packsItem))
    } catch {
      opening = .failed(try Failure(error, keyClass: blob.keyClass))
    }
    return stored.item(opening, keyClass: blob.keyClass, classKey: keys.availability(of: blob.keyClass))
  }

  /// Decrypts an item of version 0, as in iOS 4, which contains only a secret.
  private static func openLegacy(
    _ stored: StoredItem, _ data: [UInt8], with keys: ClassKeys
  ) throws(KeyhaulError) -> BackupItem {
    let blob: LegacyItemBlob
    do throws(FormatError) {
      blob = try LegacyItemBlob(parsing: data)
    } catch {
      return stored.item(.failed(.malformed(error.reason)), isSecretOnly: true)
    }
    let opening: Opening
    do throws(ItemCryptoError) {
      var item = KeychainItem(kind: stored.entry.kind, attributes: [:])
      item.secret = try keys.openSecret(of: blob)
      opening = .opened(item)
    } catch {
      opening = .failed(try Failure(error, keyClass: blob.keyClass))
    }
    return stored.item(
      opening, keyClass: blob.keyClass, classKey: keys.availability(of: blob.keyClass), isSecretOnly: true)
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
