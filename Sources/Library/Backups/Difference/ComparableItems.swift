import Basics
import KeychainFormats
import KeychainRules

/// Two lists of items, split into items that can be compared and items that are encrypted on either side.
struct ComparableItems {
  /// The decrypted items that do not correspond to an encrypted item of the other list.
  private(set) var first: [KeychainEntry] = []
  private(set) var second: [KeychainEntry] = []
  /// The encrypted items without a known counterpart in the other list.
  private(set) var encryptedInFirst: [KeychainEntry] = []
  private(set) var encryptedInSecond: [KeychainEntry] = []
  private(set) var counts = KeychainDifference.UndecryptedCounts()
  /// Whether both lists share a persistent reference, as two backups of a device do. Then items with different
  /// references are different items.
  private let sharesReferences: Bool

  /// Removes encrypted items: those with identical bytes in both lists, those with the same reference, and the rest.
  init(_ all: [KeychainEntry], _ others: [KeychainEntry]) {
    guard all.contains(where: \.isEncrypted) || others.contains(where: \.isEncrypted) else {
      (first, second, sharesReferences) = (all, others, false)
      return
    }
    let (named, alsoNamed) = (Self.byReference(all), Self.byReference(others))
    sharesReferences = named.keys.contains { alsoNamed[$0] != nil }
    let alike = Self.itemsWithEqualBytes(all, others)
    counts.identicalCount = alike.first.count
    counts.identicalDamagedCount = all.count { alike.first.contains($0.position) && $0.isDamaged }
    let one = alike.first.isEmpty ? all : all.filter { !alike.first.contains($0.position) }
    let other = alike.first.isEmpty ? others : others.filter { !alike.second.contains($0.position) }
    let inSecond = alike.first.isEmpty ? alsoNamed : Self.byReference(other)
    var partners: (first: Set<Int>, second: Set<Int>) = ([], [])
    for (reference, place) in alike.first.isEmpty ? named : Self.byReference(one) {
      guard let partner = inSecond[reference].map({ other[$0] }) else { continue }
      let item = one[place]
      guard item.isEncrypted || partner.isEncrypted else { continue }
      counts.inBoth += 1
      if !item.isEncrypted { counts.decryptedOnlyInFirst += 1 }
      if !partner.isEncrypted { counts.decryptedOnlyInSecond += 1 }
      if item.isDamaged || partner.isDamaged { counts.damaged += 1 }
      partners.first.insert(item.position)
      partners.second.insert(partner.position)
    }
    (first, encryptedInFirst) = Self.parted(one, without: partners.first)
    (second, encryptedInSecond) = Self.parted(other, without: partners.second)
    counts.onlyInFirst = encryptedInFirst.count
    counts.onlyInSecond = encryptedInSecond.count
    counts.damaged += (encryptedInFirst + encryptedInSecond).count(where: \.isDamaged)
    counts.possiblePairs = possiblePairs(encryptedInFirst, encryptedInSecond)
  }

  /// Returns the positions of items that are encrypted at least in one list and have identical bytes in both, paired in
  /// their order.
  private static func itemsWithEqualBytes(
    _ one: [KeychainEntry], _ other: [KeychainEntry]
  ) -> (first: Set<Int>, second: Set<Int>) {
    let sealed = Set((one + other).lazy.filter(\.isEncrypted).compactMap { Stored($0) })
    guard !sealed.isEmpty else { return ([], []) }
    var candidates: [Stored: [KeychainEntry]] = [:]
    for item in other.reversed() {
      if let stored = Stored(item), sealed.contains(stored) { candidates[stored, default: []].append(item) }
    }
    var alike: (first: Set<Int>, second: Set<Int>) = ([], [])
    for item in one {
      guard let stored = Stored(item), let partner = candidates[stored]?.last, item.isEqualEncrypted(partner) else {
        continue
      }
      candidates[stored]?.removeLast()
      alike.first.insert(item.position)
      alike.second.insert(partner.position)
    }
    return alike
  }

  private struct Stored: Hashable {
    let kind: ItemKind
    let fingerprint: ItemFingerprint

    init?(_ item: KeychainEntry) {
      guard let fingerprint = item.fingerprint else { return nil }
      kind = item.kind
      self.fingerprint = fingerprint
    }
  }

  private static func parted(
    _ items: [KeychainEntry], without partners: Set<Int>
  ) -> (open: [KeychainEntry], sealed: [KeychainEntry]) {
    let left = items.filter { !partners.contains($0.position) }
    return (left.filter { !$0.isEncrypted }, left.filter(\.isEncrypted))
  }

  /// Returns the positions of items by the UUID of their reference, if only one item has it.
  private static func byReference(_ items: [KeychainEntry]) -> [PersistentReference: Int] {
    var result: [PersistentReference: Int] = [:]
    var ambiguous: Set<PersistentReference> = []
    for (place, item) in items.enumerated() {
      guard let reference = item.uuidReference else { continue }
      if result.updateValue(place, forKey: reference) != nil { ambiguous.insert(reference) }
    }
    for reference in ambiguous { result[reference] = nil }
    return result
  }

  // MARK: Possible counterparts among encrypted items

  /// The visible properties of an encrypted item. Its class may be unknown.
  private struct ComparisonKey: Hashable {
    let kind: ItemKind
    let protection: ProtectionClass?

    init(kind: ItemKind, protection: ProtectionClass?) {
      self.kind = kind
      self.protection = protection
    }

    init(_ item: KeychainEntry) { self.init(kind: item.kind, protection: item.protection) }
  }

  /// Returns the maximum number of undecided items that may be pairs. The items of a pair have the same kind and class,
  /// only one of them is decrypted, and their references do not differ.
  func possiblePairs(_ one: [KeychainEntry], _ other: [KeychainEntry]) -> Int {
    let inSecond = Dictionary(grouping: other, by: ComparisonKey.init)
    return Dictionary(grouping: one, by: ComparisonKey.init).reduce(0) { sum, group in
      sum + maximumPairCount(group.value, inSecond[group.key] ?? [])
    }
  }

  /// Returns the maximum number of pairs. There are four groups of items, by whether an item is decrypted and whether
  /// it has a reference, which determine the possible partners. By König's theorem, the maximum number of pairs equals
  /// the minimum number of items that cover all pairs.
  private func maximumPairCount(_ one: [KeychainEntry], _ other: [KeychainEntry]) -> Int {
    let sorts = [(false, false), (false, true), (true, false), (true, true)]
    func counts(_ items: [KeychainEntry]) -> [Int] {
      sorts.map { sort in items.count { (!$0.isEncrypted, $0.uuidReference != nil) == sort } }
    }
    let (first, second) = (counts(one), counts(other))
    func couldMatch(_ left: Int, _ right: Int) -> Bool {
      !(sorts[left].0 && sorts[right].0) && !(sharesReferences && sorts[left].1 && sorts[right].1)
    }
    return (0..<16).map { chosen in
      let rest = sorts.indices.filter { chosen & (1 << $0) == 0 }
      let touched = sorts.indices.filter { right in rest.contains { couldMatch($0, right) } }
      return sorts.indices.filter { !rest.contains($0) }.reduce(0) { $0 + first[$1] }
        + touched.reduce(0) { $0 + second[$1] }
    }.min() ?? 0
  }

  /// Splits the decrypted items of one list into those that are certainly missing in the other and those that may be
  /// among its encrypted items, which have the same kind and class.
  func split(
    _ alone: [KeychainEntry], amongEncrypted encrypted: [KeychainEntry]
  ) -> (certain: [KeychainEntry], possible: [KeychainEntry]) {
    let all = Set(encrypted.map { ComparisonKey(kind: $0.kind, protection: $0.protection) })
    let nameless = Set(
      encrypted.filter { $0.uuidReference == nil }.map { ComparisonKey(kind: $0.kind, protection: $0.protection) })
    var (certain, possible): ([KeychainEntry], [KeychainEntry]) = ([], [])
    for item in alone {
      let candidates = sharesReferences && item.uuidReference != nil ? nameless : all
      let isPossible = [item.protection, nil].contains { protection in
        candidates.contains(ComparisonKey(kind: item.kind, protection: protection))
      }
      if isPossible { possible.append(item) } else { certain.append(item) }
    }
    return (certain, possible)
  }
}

extension KeychainEntry {
  fileprivate var isDamaged: Bool { reason?.isDamage == true }

  /// Returns whether two items with identical bytes count as the same: at least one is encrypted, and not only one of
  /// them is damaged.
  fileprivate func isEqualEncrypted(_ other: KeychainEntry) -> Bool {
    (isEncrypted || other.isEncrypted) && (reason == other.reason || !isDamaged && !other.isDamaged)
  }

  /// The reference of the item, if it is a UUID. Row numbers are not unique across devices.
  fileprivate var uuidReference: PersistentReference? {
    guard let bytes = persistentReference, let reference = try? PersistentReference(parsing: bytes),
      case .uuid(self.kind, _) = reference
    else { return nil }
    return reference
  }
}
