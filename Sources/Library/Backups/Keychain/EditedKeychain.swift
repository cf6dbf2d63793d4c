package import Basics
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

/// A backup's keychain in memory while its items are changed, and the file that holds what it then is.
///
/// An item that does not open here stays, with the bytes that it has. Whether it is one that is added again nobody can see.
package final class EditedKeychain {
  private let opened: OpenedArchive
  private let keys: ClassKeys
  private let now: KeychainDate
  private let random: any RandomSource
  private var file: KeychainBackupFile
  /// Of each entry: the item in clear, `nil` if it does not open.
  private var items: [KeychainItem?]
  /// Entries that are taken out: they go last, so that positions stay what they are.
  private var removed: Set<Int> = []
  private var places: [PrimaryKey: Int] = [:]

  /// Begins with what a backup holds.
  ///
  /// - Parameters:
  ///   - opened: The backup, opened for `.rewriting`.
  ///   - keys: The class keys that it was opened with.
  ///   - now: The date of what is changed.
  /// - Throws: `.unknownContent` where its keychain file holds what would not be written again.
  package init(
    _ opened: OpenedArchive, keys: ClassKeys, now: KeychainDate,
    random: any RandomSource = SystemRandomSource()
  ) throws(ItemEditError) {
    self.opened = opened
    self.keys = keys
    self.now = now
    self.random = random
    let payload: KeychainPayload
    do throws(KeyhaulError) {
      payload = try opened.archive.keychainFile(in: opened.fileList, with: self.keys)
    } catch {
      throw ItemEditError(.failed, error.reason)
    }
    file = payload.file
    items = opened.items.map(\.item)
    guard try Self.isWholly(payload.file, payload.bytes), file.entries.count == items.count else {
      throw ItemEditError(
        .unknownContent, "its keychain file contains data that no device writes and that would be lost")
    }
    for (index, item) in items.enumerated() {
      guard let item, let key = try? PrimaryKey(of: item) else { continue }
      places[key] = index
    }
  }

  /// How many of its items do not open here.
  package var sealedCount: Int { items.count { $0 == nil } }

  // MARK: Changes

  /// Adds an item, as a device does; one that is marked as deleted makes room for it.
  ///
  /// - Returns: The item as it is stored, and its position in the backup that comes of it.
  package func add(_ item: KeychainItem) throws(ItemEditError) -> (item: KeychainItem, index: Int) {
    let prepared = try byRule { () throws(KeychainRuleError) in
      try Self.digested(try NewItemDefaults.prepared(item, now: now, random: random))
    }
    let key = try byRule { () throws(KeychainRuleError) in try PrimaryKey(of: prepared) }
    if let place = places[key], !removed.contains(place) {
      guard items[place]?.isTombstone == true else { throw Self.duplicate(prepared.kind) }
      removed.insert(place)
    }
    let reference = prepared[.persistentReference]?.dataValue ?? []
    file.entries.append(
      .init(
        kind: prepared.kind, blob: try sealed(prepared),
        persistentReference: try? PersistentReference.uuid(prepared.kind, reference).serialized()))
    items.append(prepared)
    places[key] = items.count - 1
    return (prepared, position(of: items.count - 1))
  }

  /// Changes items that open.
  ///
  /// - Parameter indices: Their positions in the backup as it was opened.
  /// - Returns: The items as they are then, in the same order.
  package func update(_ indices: [Int], with changes: ItemChanges) throws(ItemEditError) -> [KeychainItem] {
    var changed: [KeychainItem] = []
    for index in indices {
      guard items.indices.contains(index), let old = items[index] else { continue }
      let new = try byRule { () throws(KeychainRuleError) in
        try Self.digested(try changes.applied(to: old, now: now))
      }
      let (oldKey, newKey) = try byRule { () throws(KeychainRuleError) in
        (try PrimaryKey(of: old), try PrimaryKey(of: new))
      }
      if newKey != oldKey {
        if let place = places[newKey], place != index, !removed.contains(place) {
          guard items[place]?.isTombstone == true else { throw Self.duplicate(new.kind) }
          removed.insert(place)
        }
        if places[oldKey] == index { places[oldKey] = nil }
        places[newKey] = index
      }
      file.entries[index].blob = try sealed(new)
      items[index] = new
      changed.append(new)
    }
    return changed
  }

  /// Takes items out, those that do not open too.
  ///
  /// - Parameter indices: Their positions in the backup as it was opened.
  package func remove(_ indices: [Int]) { removed.formUnion(indices) }

  /// Where an item stands once those that are taken out are gone, counting genp, inet, cert, keys in that order from 0.
  private func position(of index: Int) -> Int {
    let kind = file.entries[index].kind
    let order = { (kind: ItemKind) in ItemKind.allCases.firstIndex(of: kind) ?? 0 }
    return file.entries.indices.count { other in
      guard !removed.contains(other) else { return false }
      let (own, its) = (order(kind), order(file.entries[other].kind))
      return its < own || its == own && other < index
    }
  }

  // MARK: The result

  /// The keychain file that holds all of it, in clear.
  package func serialized() throws(ItemEditError) -> [UInt8] {
    var result = file
    result.entries = file.entries.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
    do throws(FormatError) {
      return try result.serialized()
    } catch {
      throw ItemEditError(.failed, error.reason)
    }
  }

  // MARK: Sealing

  /// The item with the digest of what it holds now, as a device stores it.
  private static func digested(_ item: KeychainItem) throws(KeychainRuleError) -> KeychainItem {
    var item = item
    item[.digest] = .data(try item.storedDigest())
    return item
  }

  private func sealed(_ item: KeychainItem) throws(ItemEditError) -> [UInt8] {
    // A backup that is read has no column that marks an app clip's item.
    let candidate = ExportCandidate(
      item: item, isAccessControlled: item[.accessControl] != nil, isAppClip: false, deviceSyncs: true)
    if let reason = ExportExclusions.exclusionReason(for: candidate) {
      throw ItemEditError(.neverInBackup(reason), "a device omits it from every backup")
    }
    guard let keyClass = item.protection?.keyClass else {
      throw ItemEditError(.notAnItem, "the item has no protection class")
    }
    switch keys.availability(of: keyClass) {
    case .available: break
    case .availableThroughDevice:
      // With a wrong key the item would be one that nothing ever opens.
      guard opened.hardwareVerdict == .proven else {
        throw ItemEditError(
          .hardwareUnproven(keyClass),
          "its class key needs a hardware key, and no item of the backup proves that the available one is the source "
            + "device's")
      }
    case .deviceBound:
      throw ItemEditError(
        .classKeyMissing(keyClass), "the key of its class unwraps only with the device's hardware key")
    case .locked, .damaged, .absent:
      throw ItemEditError(.classKeyMissing(keyClass), "the keybag has no usable key for its class")
    }
    do throws(ItemCryptoError) {
      return try keys.seal(item, as: .backup, random: random).serialized()
    } catch {
      throw ItemEditError(.notAnItem, error.reason)
    }
  }

  private static func duplicate(_ kind: ItemKind) -> ItemEditError {
    ItemEditError(.duplicate, "another \(kind.reportName) in it has the same primary key")
  }

  /// Whether the file says nothing that writing it again would leave out.
  private static func isWholly(_ file: KeychainBackupFile, _ bytes: [UInt8]) throws(ItemEditError) -> Bool {
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

  private func byRule<Value>(_ body: () throws(KeychainRuleError) -> Value) throws(ItemEditError) -> Value {
    do throws(KeychainRuleError) { return try body() } catch { throw ItemEditError(error) }
  }
}

/// Why an item of a backup could not be added, changed or taken out. Nothing was changed.
package struct ItemEditError: ExplainedError {
  /// Why, for a program to switch on.
  package enum Code: Sendable, Hashable {
    /// An item with the same primary key is in the backup.
    case duplicate
    /// No backup holds such an item, for this reason.
    case neverInBackup(Reason)
    /// The key of the item's class is not available.
    case classKeyMissing(KeyClass)
    /// The key of the item's class went through a hardware key, and no item shows that it is the right one.
    case hardwareUnproven(KeyClass)
    /// What was asked for is no item.
    case notAnItem
    /// The keychain file holds what would be lost.
    case unknownContent
    /// The cryptography or the writing of the file failed.
    case failed
  }

  /// Why, for a program to switch on.
  package let code: Code
  /// The fact found; it quotes no value of an item.
  package let reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  init(_ error: KeychainRuleError) { self.init(error.code == .notAvailable ? .failed : .notAnItem, error.reason) }

  /// One sentence and one advice for each code.
  package var meaning: ErrorMeaning {
    switch code {
    case .duplicate:
      .init(.failed, "the backup already has this item", advice: "another name, or change the existing item")
    case .neverInBackup:
      .init(.refused, "no backup contains such an item", advice: "another protection class, or add it on a device")
    case .classKeyMissing:
      .init(.refused, "the item cannot be encrypted", advice: "the hardware key of the source device")
    case .hardwareUnproven:
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
