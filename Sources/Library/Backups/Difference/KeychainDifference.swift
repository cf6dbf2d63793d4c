package import Basics
import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// The difference between two lists of keychain items. Contains names and dates, but no secrets.
public struct KeychainDifference: Sendable {
  /// The items of the second list only, in its order.
  package let added: [UnmatchedItem]
  /// The items of both lists that differ, in the second list's order.
  package let changed: [ItemChange]
  /// The items of the first list only, in its order.
  package let removed: [UnmatchedItem]
  /// The number of items that are equal in both lists: decrypted items by their content, encrypted ones by their bytes
  /// (`UndecryptedCounts.identicalCount`).
  package let sameCount: Int
  /// The number of items that were compared without their secrets, because at least one list does not contain them.
  package let uncomparedSecretCount: Int
  /// The items that could not be compared, because they are encrypted in at least one list.
  package let undecrypted: UndecryptedCounts
  /// Decrypted items of the first list that may be among the encrypted items of the second, in the first list's order.
  /// It is unknown whether they are missing or equal.
  package let possiblyInSecond: [UnmatchedItem]
  /// Decrypted items of the second list that may be among the encrypted items of the first.
  package let possiblyInFirst: [UnmatchedItem]

  /// An item that is, or seems to be, only in one list.
  package struct UnmatchedItem: Sendable, Equatable {
    /// The item's position in its list.
    package let index: Int
    /// The item's names.
    package let identity: ItemDescriptor
    /// The item's protection class, or `nil` if it is unknown.
    package let protection: ProtectionClass?
    /// The modification date, or `nil` if the item is encrypted or has none.
    package let modified: KeychainDate?
    /// Differences from other items with the same names: "port 8443", "not synced". Values of the primary key, never of
    /// a secret. Untrusted.
    package let disambiguators: [String]

    init(_ entry: KeychainEntry, disambiguators: [String] = []) {
      self.disambiguators = disambiguators
      index = entry.position
      identity = entry.identity
      protection = entry.protection
      modified = entry.item?.modificationDate
    }
  }

  /// The counts of encrypted items. Items with different bytes count neither as equal nor as changed, because their
  /// content is unknown.
  package struct UndecryptedCounts: Sendable, Equatable {
    /// Items with identical bytes in both lists that are encrypted in at least one, as in two copies of a backup. These
    /// items are equal. Of the other counts, only `identicalDamagedCount` includes them.
    package var identicalCount = 0
    /// Items with identical bytes that are damaged in both lists.
    package var identicalDamagedCount = 0
    /// Items with the same reference in both lists, at least one of them encrypted.
    package var inBoth = 0
    /// Items in both lists that are decrypted in the first one only.
    package var decryptedOnlyInFirst = 0
    /// Items in both lists that are decrypted in the second one only.
    package var decryptedOnlyInSecond = 0
    /// Encrypted items of the first list without a known counterpart in the second.
    package var onlyInFirst = 0
    /// Encrypted items of the second list without a known counterpart in the first.
    package var onlyInSecond = 0
    /// The maximum number of encrypted items of both lists that may be the same, by kind and class.
    package var possiblePairs = 0
    /// Items with different bytes that are damaged, not only bound to a device.
    package var damaged = 0

    /// The minimum number of distinct encrypted items.
    package var total: Int { occurrenceCount - possiblePairs }
    /// The number of encrypted items, with possible pairs counted twice.
    package var occurrenceCount: Int { inBoth + onlyInFirst + onlyInSecond }
  }

  /// The minimum number of items for which it is unknown whether they were added, changed, removed, or are equal. An
  /// item that may be in both lists counts once.
  package let unknownCount: Int

  /// Whether no difference is known. If there are more undecided items than possible encrypted counterparts, the lists
  /// differ, although it is unknown in which items.
  public var isEmpty: Bool {
    added.isEmpty && changed.isEmpty && removed.isEmpty && possiblyInSecond.count <= undecrypted.onlyInSecond
      && possiblyInFirst.count <= undecrypted.onlyInFirst
  }

  /// Whether all differences are known: all items are decrypted or have identical bytes, and all secrets were compared.
  package var isComplete: Bool { undecrypted.total == 0 && uncomparedSecretCount == 0 }

  /// Compares two keychains by item. Items correspond if they have the same primary key: kind, names, access group, and
  /// synchronization (attributes with the flag P in Apple's schema).
  ///
  /// If a damaged list contains a primary key twice, the items are paired in their order.
  ///
  /// - Throws: `KeyhaulError` if the cryptography fails.
  package init(from first: [KeychainEntry], to second: [KeychainEntry]) throws(KeyhaulError) {
    let comparable = ComparableItems(first, second)
    let matches = try Matches(comparable.decryptedInFirst, comparable.decryptedInSecond)
    let added = comparable.split(matches.onlyInSecond, amongEncrypted: comparable.encryptedInFirst)
    let removed = comparable.split(matches.onlyInFirst, amongEncrypted: comparable.encryptedInSecond)
    let disambiguators = Self.disambiguators(among: added.certain + removed.certain)
    self.added = zip(added.certain, disambiguators).map { UnmatchedItem($0, disambiguators: $1) }
    self.removed = zip(removed.certain, disambiguators.dropFirst(added.certain.count)).map {
      UnmatchedItem($0, disambiguators: $1)
    }
    possiblyInFirst = added.possible.map { UnmatchedItem($0) }
    possiblyInSecond = removed.possible.map { UnmatchedItem($0) }
    changed = matches.changed
    sameCount = matches.sameCount + comparable.counts.identicalCount
    uncomparedSecretCount = matches.uncomparedSecretCount
    undecrypted = comparable.counts
    let undecidedInFirst = comparable.encryptedInFirst + removed.possible
    let undecidedInSecond = comparable.encryptedInSecond + added.possible
    unknownCount =
      undecrypted.inBoth + undecidedInFirst.count + undecidedInSecond.count
      - comparable.possiblePairs(undecidedInFirst, undecidedInSecond)
  }

  /// The result of matching the decrypted items of two lists by their keys.
  private struct Matches {
    private(set) var onlyInFirst: [KeychainEntry] = []
    private(set) var onlyInSecond: [KeychainEntry] = []
    private(set) var changed: [ItemChange] = []
    private(set) var sameCount = 0
    private(set) var uncomparedSecretCount = 0

    init(_ firstItems: [KeychainEntry], _ secondItems: [KeychainEntry]) throws(KeyhaulError) {
      var unmatched = try ItemsByKey(firstItems)
      var isMatched = Array(repeating: false, count: firstItems.count)
      for after in secondItems {
        guard let new = after.item, let position = try unmatched.removeMatch(for: new),
          let old = firstItems[position].item
        else {
          onlyInSecond.append(after)
          continue
        }
        isMatched[position] = true
        let before = firstItems[position]
        if before.cannotCompareSecret(with: after) { uncomparedSecretCount += 1 }
        let change = ItemChange(from: before, decryptedTo: old, to: after, decryptedTo: new)
        if let change { changed.append(change) } else { sameCount += 1 }
      }
      onlyInFirst = zip(firstItems, isMatched).filter { !$0.1 }.map(\.0)
    }
  }

  /// The positions of decrypted items by the key that a restore uses. So a difference and a restore agree on which items
  /// correspond.
  private struct ItemsByKey {
    /// The positions sorted by key, then in the items' order. Keys are stored as digests, which take less memory.
    private var positions: [(key: ItemFingerprint, position: Int)] = []
    /// For each key, the number of matched items, at the index of the key's first item in `positions`.
    private var matchedCounts: [Int]

    init(_ items: [KeychainEntry]) throws(KeyhaulError) {
      positions.reserveCapacity(items.count)
      for (position, entry) in items.enumerated() {
        guard let item = entry.item, let key = try Self.key(of: item) else { continue }
        positions.append((key, position))
      }
      positions.sort { $0 < $1 }
      matchedCounts = Array(repeating: 0, count: positions.count)
    }

    /// Returns the position of the first unmatched item with the same key, and marks that item as matched.
    mutating func removeMatch(for item: KeychainItem) throws(KeyhaulError) -> Int? {
      guard let key = try Self.key(of: item) else { return nil }
      // A binary search for the first item whose key does not precede the given one.
      var (first, end) = (0, positions.count)
      while first < end {
        let middle = first + (end - first) / 2
        if positions[middle].key < key { first = middle + 1 } else { end = middle }
      }
      guard first < positions.count else { return nil }
      let next = first + matchedCounts[first]
      guard next < positions.count, positions[next].key == key else { return nil }
      matchedCounts[first] += 1
      return positions[next].position
    }

    /// Returns the key of an item, or `nil` if a value is not valid in a database. Such an item matches no other item.
    private static func key(of item: KeychainItem) throws(KeyhaulError) -> ItemFingerprint? {
      let key: PrimaryKey
      do throws(KeychainRuleError) {
        key = try PrimaryKey(of: item)
      } catch {
        if error.code == .parameter { return nil }
        throw KeyhaulError(error)
      }
      do throws(DataProtectionError) {
        return try ItemFingerprint(of: key)
      } catch {
        throw KeyhaulError(error)
      }
    }
  }
}

extension KeychainDifference {
  /// The visible names of an item.
  private struct VisibleNames: Hashable {
    let kind: ItemKind
    let names: [String]
  }

  /// Returns the differences of items with the same visible names: the parts of their primary keys that differ.
  ///
  /// - Returns: The differences for each item in order, empty if its names are unique.
  static func disambiguators(among items: [KeychainEntry]) -> [[String]] {
    disambiguators(among: items.lazy.map { ($0.identity, $0.item) })
  }

  /// Returns the differences of items in any collection. Items without known attributes have none.
  ///
  /// - Parameter items: The items, with indices from 0. Each is read several times, so not all have to be in memory.
  package static func disambiguators<Items: RandomAccessCollection>(
    among items: Items
  ) -> [[String]] where Items.Element == (identity: ItemDescriptor, item: KeychainItem?), Items.Index == Int {
    var result = [[String]](repeating: [], count: items.count)
    for (visibleNames, positions) in positionsByRepeatedNames(items) {
      for definition in AttributeTable.definitions(of: visibleNames.kind) where definition.flags.contains(.primaryKey) {
        let values = positions.map { position in
          items[position].item.flatMap { ItemChange.value(of: definition.code, in: $0) }
        }
        guard values.contains(where: { !ItemChange.isEquivalent(values[0], $0) }) else { continue }
        for (position, phrase) in zip(positions, phrases(definition, values)) { result[position].append(phrase) }
      }
    }
    return result
  }

  /// Returns the positions of items with the same visible names, by these names. Unique names are not kept.
  private static func positionsByRepeatedNames<Items: RandomAccessCollection>(
    _ items: Items
  ) -> [VisibleNames: [Int]]
  where Items.Element == (identity: ItemDescriptor, item: KeychainItem?), Items.Index == Int {
    func visibleNames(_ position: Int) -> VisibleNames {
      let identity = items[position].identity
      return VisibleNames(kind: identity.kind, names: identity.names)
    }
    let hashes = items.indices.map { visibleNames($0).hashValue }
    let sorted = hashes.sorted()
    let repeated = Set(zip(sorted, sorted.dropFirst()).lazy.filter { $0 == $1 }.map(\.0))
    guard !repeated.isEmpty else { return [:] }
    let candidates = items.indices.filter { repeated.contains(hashes[$0]) }
    return Dictionary(grouping: candidates, by: visibleNames).filter { $0.value.count > 1 }
  }

  /// Returns a phrase such as "port 8443" for each value of an attribute.
  private static func phrases(_ definition: AttributeDefinition, _ values: [PropertyValue?]) -> [String] {
    if definition.code == .synchronizable {
      return values.map { $0 == .integer(1) ? "synced" : "not synced" }
    }
    let texts = values.map { value in
      if case .date(let date) = value { return Timestamp.text(of: date) }
      return ItemDescriptor.text(value) ?? ""
    }
    // Two Unicode spellings of a text look the same, so their bytes are shown.
    let hasSameDescription = Set(texts).count == 1
    return texts.map { text in
      if text.isEmpty || text == "0" { return "no \(definition.displayName)" }
      return "\(definition.displayName) \(hasSameDescription ? "0x" + String(hexadecimal: Array(text.utf8)) : text)"
    }
  }
}
