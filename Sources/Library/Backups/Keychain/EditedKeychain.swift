package import Basics
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

/// A backup's keychain that is changed in memory, and then serialized as a new keychain file.
///
/// Items that cannot be decrypted stay unchanged. An added item cannot be compared with them.
package final class EditedKeychain {
  private let backup: UnlockedBackup
  private let keys: ClassKeys
  private let now: KeychainDate
  private let random: any RandomSource
  private var file: KeychainBackupFile
  /// The decrypted item of each entry, or `nil`.
  private var items: [KeychainItem?]
  /// The indices of removed items. Their entries are removed at the end, so that the other indices stay valid.
  private var removedIndices: Set<Int> = []
  /// The index of the item with each primary key.
  private var indicesByKey: [PrimaryKey: Int] = [:]

  /// Starts with the items of a backup.
  ///
  /// - Parameters:
  ///   - backup: The backup, opened for `.rewriting`.
  ///   - keys: The class keys with which it was opened.
  ///   - now: The date for changed items.
  /// - Throws: `.unknownContent` if the keychain file has content that would be lost.
  package init(
    _ backup: UnlockedBackup, keys: ClassKeys, now: KeychainDate,
    random: any RandomSource = SystemRandomSource()
  ) throws(ItemEditError) {
    self.backup = backup
    self.keys = keys
    self.now = now
    self.random = random
    let payload: KeychainPayload
    do throws(KeyhaulError) {
      payload = try backup.archive.keychainFile(in: backup.fileList, with: self.keys)
    } catch {
      throw ItemEditError(.failed, error.reason)
    }
    file = payload.file
    items = backup.items.map(\.item)
    guard try Self.preservesContent(of: payload.file, payload.bytes), file.entries.count == items.count else {
      throw ItemEditError(
        .unknownContent, "its keychain file contains data that no device writes and that would be lost")
    }
    for (index, item) in items.enumerated() {
      guard let item, let key = try? PrimaryKey(of: item) else { continue }
      indicesByKey[key] = index
    }
  }

  /// The number of items that cannot be decrypted.
  package var undecryptableCount: Int { items.count { $0 == nil } }

  // MARK: Changes

  /// Adds an item, as a device does. An item with the same primary key is replaced if it is marked as deleted.
  ///
  /// - Returns: The stored item, and its index in the changed backup.
  package func add(_ item: KeychainItem) throws(ItemEditError) -> (item: KeychainItem, index: Int) {
    let prepared = try translatingRuleErrors { () throws(KeychainRuleError) in
      try Self.withCurrentDigest(try NewItemDefaults.prepared(item, now: now, random: random))
    }
    let key = try translatingRuleErrors { () throws(KeychainRuleError) in try PrimaryKey(of: prepared) }
    try removeTombstone(with: key)
    let reference = prepared[.persistentReference]?.dataValue ?? []
    file.entries.append(
      .init(
        kind: prepared.kind, blob: try encrypted(prepared),
        persistentReference: try? PersistentReference.uuid(prepared.kind, reference).serialized()))
    items.append(prepared)
    indicesByKey[key] = items.count - 1
    return (prepared, finalIndex(of: items.count - 1))
  }

  /// Changes decrypted items. Other items are skipped.
  ///
  /// - Parameter indices: The items' indices in the original backup.
  /// - Returns: The changed items, in the order of their indices.
  package func update(_ indices: [Int], with changes: ItemChanges) throws(ItemEditError) -> [KeychainItem] {
    var changedItems: [KeychainItem] = []
    for index in indices {
      guard items.indices.contains(index), let old = items[index] else { continue }
      let new = try translatingRuleErrors { () throws(KeychainRuleError) in
        try Self.withCurrentDigest(try changes.applied(to: old, now: now))
      }
      let (oldKey, newKey) = try translatingRuleErrors { () throws(KeychainRuleError) in
        (try PrimaryKey(of: old), try PrimaryKey(of: new))
      }
      if newKey != oldKey {
        try removeTombstone(with: newKey, except: index)
        if indicesByKey[oldKey] == index { indicesByKey[oldKey] = nil }
        indicesByKey[newKey] = index
      }
      file.entries[index].blob = try encrypted(new)
      items[index] = new
      changedItems.append(new)
    }
    return changedItems
  }

  /// Removes the item with a primary key, which must be marked as deleted. Does nothing if no item has the key.
  ///
  /// - Parameter index: The index of an item that stays.
  /// - Throws: `.duplicate` if the item is not marked as deleted.
  private func removeTombstone(with key: PrimaryKey, except index: Int? = nil) throws(ItemEditError) {
    guard let existingIndex = indicesByKey[key], existingIndex != index, !removedIndices.contains(existingIndex)
    else { return }
    guard items[existingIndex]?.isTombstone == true else { throw Self.duplicate(key.kind) }
    removedIndices.insert(existingIndex)
  }

  /// Removes items, including those that cannot be decrypted.
  ///
  /// - Parameter indices: The items' indices in the original backup.
  package func remove(_ indices: [Int]) { removedIndices.formUnion(indices) }

  /// Returns the index of an item after the removals, from 0, in the order genp, inet, cert, keys.
  private func finalIndex(of index: Int) -> Int {
    func order(_ index: Int) -> Int { ItemKind.allCases.firstIndex(of: file.entries[index].kind) ?? 0 }
    let kindOrder = order(index)
    return file.entries.indices.count { otherIndex in
      guard !removedIndices.contains(otherIndex) else { return false }
      let otherKindOrder = order(otherIndex)
      return otherKindOrder < kindOrder || otherKindOrder == kindOrder && otherIndex < index
    }
  }

  // MARK: Result

  /// Returns the new keychain file in plaintext.
  package func serialized() throws(ItemEditError) -> [UInt8] {
    var newFile = file
    newFile.entries = file.entries.enumerated().filter { !removedIndices.contains($0.offset) }.map(\.element)
    do throws(FormatError) {
      return try newFile.serialized()
    } catch {
      throw ItemEditError(.failed, error.reason)
    }
  }

  // MARK: Encryption

  /// Returns the item with the digest of its current content, as a device stores it.
  private static func withCurrentDigest(_ item: KeychainItem) throws(KeychainRuleError) -> KeychainItem {
    var item = item
    item[.digest] = .data(try item.storedDigest())
    return item
  }

  /// Encrypts an item with the key of its class, if a device would include it in a backup.
  private func encrypted(_ item: KeychainItem) throws(ItemEditError) -> [UInt8] {
    // A backup does not contain the column for App Clip items.
    let candidate = ExportCandidate(
      item: item, isAccessControlled: item[.accessControl] != nil, isAppClip: false, deviceSyncs: true)
    if let reason = ExportExclusions.exclusionReason(for: candidate) {
      throw ItemEditError(.neverInBackup(reason), "a device omits it from every backup")
    }
    guard let keyClass = item.protection?.keyClass else {
      throw ItemEditError(.notAnItem, "the item has no protection class")
    }
    try checkKeyIsUsable(of: keyClass)
    do throws(ItemCryptoError) {
      return try keys.seal(item, as: .backup, random: random).serialized()
    } catch {
      throw ItemEditError(.notAnItem, error.reason)
    }
  }

  /// Checks that the key of a class is available, and that the source device's key is proven if the class needs it.
  private func checkKeyIsUsable(of keyClass: KeyClass) throws(ItemEditError) {
    switch keys.availability(of: keyClass) {
    case .available: break
    case .availableThroughDevice:
      // With a wrong key, the item could never be decrypted.
      guard backup.deviceKeyVerification == .proven else {
        throw ItemEditError(
          .deviceKeyUnproven(keyClass),
          "its class key needs a device key, and no item of the backup proves that the available one is the source "
            + "device's")
      }
    case .deviceBound:
      throw ItemEditError(
        .classKeyMissing(keyClass), "the key of its class unwraps only with the device key")
    case .locked, .damaged, .absent:
      throw ItemEditError(.classKeyUnusable(keyClass), "the keybag has no usable key for its class")
    }
  }

  private static func duplicate(_ kind: ItemKind) -> ItemEditError {
    ItemEditError(.duplicate, "another \(kind.reportName) in it has the same primary key")
  }

  /// Returns whether writing the file again would preserve all of its content.
  private static func preservesContent(of file: KeychainBackupFile, _ bytes: [UInt8]) throws(ItemEditError) -> Bool {
    guard !file.isXML, file.ignoredKeys.isEmpty else { return false }
    do throws(FormatError) {
      let root = try BinaryPlist.decode(bytes, limits: .keychainFile).dictionaryValue
      return ItemKind.allCases.allSatisfy { kind in
        (root?[kind.rawValue]?.arrayValue ?? []).allSatisfy { element in
          element.dictionaryValue?.entries.allSatisfy { entry in
            ["v_Data", "v_PersistentRef"].contains(entry.key.stringValue) && entry.value.dataValue != nil
          } ?? false
        }
      }
    } catch {
      throw ItemEditError(.failed, error.reason)
    }
  }

  private func translatingRuleErrors<Value>(_ body: () throws(KeychainRuleError) -> Value) throws(ItemEditError)
    -> Value
  {
    do throws(KeychainRuleError) { return try body() } catch { throw ItemEditError(error) }
  }
}

/// An error while an item of a backup is added, changed, or removed. The backup is unchanged. The edited keychain may
/// have changed and must not be used again.
package struct ItemEditError: ExplainedError {
  /// The error codes.
  package enum Code: Sendable, Hashable {
    /// The backup contains an item with the same primary key.
    case duplicate
    /// No backup contains such an item. The value says why.
    case neverInBackup(Reason)
    /// The key of the item's class unwraps only with the source device's key, which was not given.
    case classKeyMissing(KeyClass)
    /// The keybag has no usable key for the item's class: the key is missing, damaged, or still encrypted.
    case classKeyUnusable(KeyClass)
    /// The key of the item's class depends on a device key that no item proves.
    case deviceKeyUnproven(KeyClass)
    /// The arguments do not describe a valid item.
    case notAnItem
    /// The keychain file has content that would be lost.
    case unknownContent
    /// The cryptography or writing the file failed.
    case failed
  }

  /// The error code.
  package let code: Code
  /// The details, without values of an item.
  package let reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  init(_ error: KeychainRuleError) { self.init(error.code == .notAvailable ? .failed : .notAnItem, error.reason) }

  /// The summary and the advice for each code.
  package var meaning: ErrorMeaning {
    switch code {
    case .duplicate:
      .init(.failed, "the backup already has this item", advice: "another name, or change the existing item")
    case .neverInBackup:
      .init(.refused, "no backup contains such an item", advice: "another protection class, or add it on a device")
    case .classKeyMissing:
      .init(.refused, "the item cannot be encrypted", advice: "the source device's key")
    case .classKeyUnusable:
      .init(.refused, "the item cannot be encrypted", advice: "another protection class, or another copy of the backup")
    case .deviceKeyUnproven:
      .init(
        .refused, "the item cannot be encrypted", advice: "a protection class that may leave the device")
    case .notAnItem:
      .init(.failed, "the keychain does not accept this item", advice: "see the attributes of this kind of item")
    case .unknownContent:
      .init(.refused, "the backup's keychain was not rewritten", advice: "another copy of the backup")
    case .failed: .init(.failed, "the keychain cannot be written", advice: "run it again")
    }
  }
}
