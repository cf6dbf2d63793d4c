package import Basics
import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// What a second keychain has that a first one has not, and the other way round. Made of two lists of items without any
/// file or key at hand; holds names and dates, never a secret.
public struct KeychainDifference: Sendable {
  /// Items of the second list alone, in its order.
  package let added: [Side]
  /// Items of both that differ, in the second list's order.
  package let changed: [ItemChange]
  /// Items of the first list alone, in its order.
  package let removed: [Side]
  /// How many items are equal in both: open ones by their content, sealed ones by their bytes (`SealedCounts.alike`).
  package let sameCount: Int
  /// How many items that both lists have were compared without their secrets: one of the lists does not tell it.
  package let openSecretCount: Int
  /// What could not be compared, because it is sealed in one list or in both.
  package let sealed: SealedCounts
  /// Open items of the first list that the second one may have among its sealed ones, in the first list's order: they are
  /// neither gone nor the same, as far as anybody can tell.
  package let doubtfulInFirst: [Side]
  /// The same of the second list: they are not called new.
  package let doubtfulInSecond: [Side]

  /// An item that one list alone has, or seems to have.
  package struct Side: Sendable, Equatable {
    /// Its position in its own list, counted from 0.
    package let index: Int
    /// The names that it is known by.
    package let identity: ItemIdentity
    /// The class that protects it; `nil` if nothing says it.
    package let protection: ProtectionClass?
    /// The date of the last change; `nil` if it is sealed or has none.
    package let modified: KeychainDate?
    /// What tells it from others that are new or gone under the same names: "port 8443", "not synced". Hostile; values of
    /// its primary key, never of a secret.
    package let distinctions: [String]

    init(_ compared: KeychainEntry, distinctions: [String] = []) {
      self.distinctions = distinctions
      index = compared.position
      identity = compared.identity
      protection = compared.protection
      modified = compared.item?.modificationDate
    }
  }

  /// Items of which something is sealed. The contents of those that are not stored alike are unknown, so that they count
  /// neither as equal nor as changed.
  package struct SealedCounts: Sendable, Equatable {
    /// Both lists have it byte for byte, as two copies of one backup do, whatever their passwords; it does not open in one
    /// of them or in both. These are equal, and in none of the counts that follow but the next.
    package var alike = 0
    /// Of those that are stored alike, the ones that are damaged in both.
    package var damagedAlike = 0
    /// Both lists name it by the same reference; at least one of the two does not open.
    package var inBoth = 0
    /// Of those in both, the ones that open in the first list. What opens in the second is counted beside them; no item
    /// is in both counts.
    package var openInFirst = 0
    /// Of those in both, the ones that open in the second list.
    package var openInSecond = 0
    /// Sealed items of the first list to which nothing in the second is known to belong.
    package var onlyInFirst = 0
    /// Sealed items of the second list to which nothing in the first is known to belong.
    package var onlyInSecond = 0
    /// How many sealed items of the first list may be ones of the second, at most: they are of one kind and class.
    package var possiblePairs = 0
    /// Of all that are not stored alike, those that are damaged, rather than bound to a device.
    package var damaged = 0

    /// The items of all three places, each once; where some may be in two of them, as few as there can be.
    package var total: Int { placeCount - possiblePairs }
    /// The same with an item of either list twice, though the two may be one.
    package var placeCount: Int { inBoth + onlyInFirst + onlyInSecond }
  }

  /// How many items are not known to be new, changed, gone or the same, as few as there can be: sealed ones, and those that
  /// may be sealed in the other list. An item that both lists may have counts once.
  package let unknownCount: Int

  /// Whether nothing is known to differ. More doubtful items than there are sealed ones to be them are a difference, though
  /// which of them it is stays open.
  public var isEmpty: Bool {
    added.isEmpty && changed.isEmpty && removed.isEmpty && doubtfulInFirst.count <= sealed.onlyInSecond
      && doubtfulInSecond.count <= sealed.onlyInFirst
  }

  /// Whether it is known of every item what it differs in: nothing is sealed but what is stored alike, and every secret
  /// is told.
  package var isComplete: Bool { sealed.total == 0 && openSecretCount == 0 }

  /// Compares two keychains item by item. Equal items are those with the same primary key: kind, names, access group,
  /// whether it syncs (the attributes flagged P in Apple's schema).
  ///
  /// Where a list holds one primary key twice, as only a damaged archive does, they are paired in their order.
  ///
  /// - Throws: `KeyhaulError` where the cryptography itself fails.
  package init(from first: [KeychainEntry], to second: [KeychainEntry]) throws(KeyhaulError) {
    let comparable = ComparableItems(first, second)
    var unmatched = try ItemsByKey(comparable.first)
    var isMatched = Array(repeating: false, count: comparable.first.count)
    var added: [KeychainEntry] = []
    var changed: [ItemChange] = []
    var sameCount = 0
    var openSecretCount = 0
    for compared in comparable.second {
      guard let new = compared.item, let place = try unmatched.take(new), let old = comparable.first[place].item else {
        added.append(compared)
        continue
      }
      isMatched[place] = true
      let match = comparable.first[place]
      if match.leavesSecretOpen(beside: compared) { openSecretCount += 1 }
      if let change = ItemChange(match, old, compared, new) { changed.append(change) } else { sameCount += 1 }
    }
    let removed = zip(comparable.first, isMatched).filter { !$0.1 }.map(\.0)
    let (new, doubtfulInSecond) = comparable.split(added, bySealed: comparable.sealedInFirst)
    let (gone, doubtfulInFirst) = comparable.split(removed, bySealed: comparable.sealedInSecond)
    let distinctions = Self.distinctions(among: new + gone)
    self.added = zip(new, distinctions).map { Side($0, distinctions: $1) }
    self.removed = zip(gone, distinctions.dropFirst(new.count)).map { Side($0, distinctions: $1) }
    self.doubtfulInFirst = doubtfulInFirst.map { Side($0) }
    self.doubtfulInSecond = doubtfulInSecond.map { Side($0) }
    self.changed = changed
    self.sameCount = sameCount + comparable.counts.alike
    self.openSecretCount = openSecretCount
    sealed = comparable.counts
    let (one, other) = (comparable.sealedInFirst + doubtfulInFirst, comparable.sealedInSecond + doubtfulInSecond)
    unknownCount = sealed.inBoth + one.count + other.count - comparable.possiblePairs(one, other)
  }

  /// The places of open items by the key by which a restore would meet them, so that both agree about which items are one.
  private struct ItemsByKey {
    /// By key, those of one key in the items' order. There is one for every item, so that keys are held by their digests.
    private var places: [(key: ItemFingerprint, place: Int)] = []
    /// How many of a key were taken, at where its first one stands.
    private var takenCounts: [Int]

    init(_ items: [KeychainEntry]) throws(KeyhaulError) {
      places.reserveCapacity(items.count)
      for (place, compared) in items.enumerated() {
        guard let item = compared.item, let key = try Self.key(of: item) else { continue }
        places.append((key, place))
      }
      places.sort { $0 < $1 }
      takenCounts = Array(repeating: 0, count: places.count)
    }

    /// The place of the first item with the key of this one that was not taken yet.
    mutating func take(_ item: KeychainItem) throws(KeyhaulError) -> Int? {
      guard let key = try Self.key(of: item) else { return nil }
      var (first, end) = (0, places.count)
      while first < end {
        let middle = first + (end - first) / 2
        if places[middle].key < key { first = middle + 1 } else { end = middle }
      }
      guard first < places.count else { return nil }
      let next = first + takenCounts[first]
      guard next < places.count, places[next].key == key else { return nil }
      takenCounts[first] += 1
      return places[next].place
    }

    /// - Returns: `nil` for an item with a value that no database takes; it is equal to none.
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
  /// What a reader sees of an item.
  private struct Reading: Hashable {
    let kind: ItemKind
    let names: [String]
  }

  /// What tells items apart that read the same: those parts of their primary keys in which they differ.
  ///
  /// - Returns: For each item, in order; nothing for one whose names no other has.
  static func distinctions(among items: [KeychainEntry]) -> [[String]] {
    distinctions(among: items.lazy.map { ($0.identity, $0.item) })
  }

  /// The same of items in any table; those of which nothing but a name is known are told apart from no other.
  ///
  /// - Parameter items: From 0 on. Each is asked for some times, so that not all have to be there at once.
  package static func distinctions<Items: RandomAccessCollection>(
    among items: Items
  ) -> [[String]] where Items.Element == (identity: ItemIdentity, item: KeychainItem?), Items.Index == Int {
    var result = [[String]](repeating: [], count: items.count)
    for (reading, positions) in readAlike(items) {
      for definition in AttributeTable.definitions(of: reading.kind) where definition.flags.contains(.primaryKey) {
        let values = positions.map { position in
          items[position].item.flatMap { ItemChange.value(of: definition.code, in: $0) }
        }
        guard values.contains(where: { !ItemChange.isSame(values[0], $0) }) else { continue }
        for (position, phrase) in zip(positions, phrases(definition, values)) { result[position].append(phrase) }
      }
    }
    return result
  }

  /// The positions of items that read the same, by what a reader sees. Most read like no other, and no name of them is kept.
  private static func readAlike<Items: RandomAccessCollection>(
    _ items: Items
  ) -> [Reading: [Int]] where Items.Element == (identity: ItemIdentity, item: KeychainItem?), Items.Index == Int {
    func reading(_ position: Int) -> Reading {
      let identity = items[position].identity
      return Reading(kind: identity.kind, names: identity.names)
    }
    let hashes = items.indices.map { reading($0).hashValue }
    let sorted = hashes.sorted()
    let repeated = Set(zip(sorted, sorted.dropFirst()).lazy.filter { $0 == $1 }.map(\.0))
    guard !repeated.isEmpty else { return [:] }
    let candidates = items.indices.filter { repeated.contains(hashes[$0]) }
    return Dictionary(grouping: candidates, by: reading).filter { $0.value.count > 1 }
  }

  private static func phrases(_ definition: AttributeDefinition, _ values: [PropertyValue?]) -> [String] {
    if definition.code == .synchronizable {
      return values.map { $0 == .integer(1) ? "synced" : "not synced" }
    }
    let texts = values.map { value in
      if case .date(let date) = value { return Timestamp.text(of: date) }
      return ItemIdentity.text(value) ?? ""
    }
    // Two spellings that Unicode has for one text look the same, and are compared by their bytes.
    let looksTheSame = Set(texts).count == 1
    return texts.map { text in
      if text.isEmpty || text == "0" { return "no \(definition.words)" }
      return "\(definition.words) \(looksTheSame ? "0x" + String(hexadecimal: Array(text.utf8)) : text)"
    }
  }
}
