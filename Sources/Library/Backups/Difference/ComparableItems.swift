import Basics
import KeychainFormats
import KeychainRules

/// Two lists of items, split into items that can be compared and items that are encrypted in either list.
struct ComparableItems {
  /// The decrypted items of the first list that do not correspond to an encrypted item of the second.
  private(set) var decryptedInFirst: [KeychainEntry] = []
  /// The decrypted items of the second list that do not correspond to an encrypted item of the first.
  private(set) var decryptedInSecond: [KeychainEntry] = []
  /// The encrypted items of the first list without a known counterpart in the second.
  private(set) var encryptedInFirst: [KeychainEntry] = []
  /// The encrypted items of the second list without a known counterpart in the first.
  private(set) var encryptedInSecond: [KeychainEntry] = []
  private(set) var counts = KeychainDifference.UndecryptedCounts()
  /// Whether both lists share a persistent reference, as two backups of a device do. Then items with different
  /// references are different items.
  private let sharesReferences: Bool

  /// Separates the items that cannot be compared: encrypted items with identical bytes in both lists, encrypted items
  /// with the same reference in both lists, and other encrypted items.
  init(_ firstItems: [KeychainEntry], _ secondItems: [KeychainEntry]) {
    guard firstItems.contains(where: \.isEncrypted) || secondItems.contains(where: \.isEncrypted) else {
      (decryptedInFirst, decryptedInSecond, sharesReferences) = (firstItems, secondItems, false)
      return
    }
    var firstIndices = Self.indicesByReference(firstItems)
    var secondIndices = Self.indicesByReference(secondItems)
    sharesReferences = firstIndices.keys.contains { secondIndices[$0] != nil }
    let identicalPositions = Self.positionsOfIdenticalItems(firstItems, secondItems)
    counts.identicalCount = identicalPositions.first.count
    counts.identicalDamagedCount = firstItems.count { identicalPositions.first.contains($0.position) && $0.isDamaged }
    let firstDifferent = firstItems.filter { !identicalPositions.first.contains($0.position) }
    let secondDifferent = secondItems.filter { !identicalPositions.second.contains($0.position) }
    if !identicalPositions.first.isEmpty {
      firstIndices = Self.indicesByReference(firstDifferent)
      secondIndices = Self.indicesByReference(secondDifferent)
    }
    let pairedPositions = countPairs(firstDifferent, firstIndices, secondDifferent, secondIndices)
    (decryptedInFirst, encryptedInFirst) = Self.separated(firstDifferent, without: pairedPositions.first)
    (decryptedInSecond, encryptedInSecond) = Self.separated(secondDifferent, without: pairedPositions.second)
    counts.onlyInFirst = encryptedInFirst.count
    counts.onlyInSecond = encryptedInSecond.count
    counts.damaged += (encryptedInFirst + encryptedInSecond).count(where: \.isDamaged)
    counts.possiblePairs = possiblePairs(encryptedInFirst, encryptedInSecond)
  }

  /// The positions of items in their lists.
  private typealias Positions = (first: Set<Int>, second: Set<Int>)

  /// Counts the items with the same reference in both lists, if at least one of them is encrypted.
  ///
  /// - Returns: The positions of the counted items.
  private mutating func countPairs(
    _ firstItems: [KeychainEntry], _ firstIndices: [PersistentReference: Int],
    _ secondItems: [KeychainEntry], _ secondIndices: [PersistentReference: Int]
  ) -> Positions {
    var pairedPositions: Positions = ([], [])
    for (reference, firstIndex) in firstIndices {
      guard let secondIndex = secondIndices[reference] else { continue }
      let (item, partner) = (firstItems[firstIndex], secondItems[secondIndex])
      guard item.isEncrypted || partner.isEncrypted else { continue }
      counts.inBoth += 1
      if !item.isEncrypted { counts.decryptedOnlyInFirst += 1 }
      if !partner.isEncrypted { counts.decryptedOnlyInSecond += 1 }
      if item.isDamaged || partner.isDamaged { counts.damaged += 1 }
      pairedPositions.first.insert(item.position)
      pairedPositions.second.insert(partner.position)
    }
    return pairedPositions
  }

  /// Returns the positions of items that are encrypted at least in one list and have identical bytes in both, paired in
  /// their order.
  private static func positionsOfIdenticalItems(
    _ firstItems: [KeychainEntry], _ secondItems: [KeychainEntry]
  ) -> Positions {
    let encryptedBytes = Set((firstItems + secondItems).lazy.filter(\.isEncrypted).compactMap { StoredBytes($0) })
    guard !encryptedBytes.isEmpty else { return ([], []) }
    // In reverse order, so that `removeLast` removes the first candidate.
    var candidates: [StoredBytes: [KeychainEntry]] = [:]
    for item in secondItems.reversed() {
      if let bytes = StoredBytes(item), encryptedBytes.contains(bytes) { candidates[bytes, default: []].append(item) }
    }
    var identicalPositions: Positions = ([], [])
    for item in firstItems {
      guard let bytes = StoredBytes(item), let partner = candidates[bytes]?.last, item.isEqualEncrypted(partner) else {
        continue
      }
      candidates[bytes]?.removeLast()
      identicalPositions.first.insert(item.position)
      identicalPositions.second.insert(partner.position)
    }
    return identicalPositions
  }

  /// The kind and the digest of an item's data in a backup.
  private struct StoredBytes: Hashable {
    let kind: ItemKind
    let fingerprint: ItemFingerprint

    init?(_ item: KeychainEntry) {
      guard let fingerprint = item.fingerprint else { return nil }
      kind = item.kind
      self.fingerprint = fingerprint
    }
  }

  /// Returns the decrypted and the encrypted items, without the items at the given positions.
  private static func separated(
    _ items: [KeychainEntry], without pairedPositions: Set<Int>
  ) -> (decrypted: [KeychainEntry], encrypted: [KeychainEntry]) {
    let unpaired = items.filter { !pairedPositions.contains($0.position) }
    return (unpaired.filter { !$0.isEncrypted }, unpaired.filter(\.isEncrypted))
  }

  /// Returns the indices of items by the UUID of their reference, if only one item has it.
  private static func indicesByReference(_ items: [KeychainEntry]) -> [PersistentReference: Int] {
    var indices: [PersistentReference: Int] = [:]
    var ambiguous: Set<PersistentReference> = []
    for (index, item) in items.enumerated() {
      guard let reference = item.uuidReference else { continue }
      if indices.updateValue(index, forKey: reference) != nil { ambiguous.insert(reference) }
    }
    for reference in ambiguous { indices[reference] = nil }
    return indices
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

  /// Returns the maximum number of pairs among the undecided items. The items of a pair have the same kind and class, at
  /// most one of them is decrypted, and their references do not differ.
  func possiblePairs(_ firstItems: [KeychainEntry], _ secondItems: [KeychainEntry]) -> Int {
    let secondGroups = Dictionary(grouping: secondItems, by: ComparisonKey.init)
    return Dictionary(grouping: firstItems, by: ComparisonKey.init).reduce(0) { sum, group in
      sum + maximumPairCount(group.value, secondGroups[group.key] ?? [])
    }
  }

  /// The items of a list that have the same possible partners in the other list.
  private struct PartnerGroup {
    let isDecrypted: Bool
    let hasReference: Bool

    static let all: [PartnerGroup] = [false, true].flatMap { isDecrypted in
      [false, true].map { PartnerGroup(isDecrypted: isDecrypted, hasReference: $0) }
    }

    func contains(_ item: KeychainEntry) -> Bool {
      item.isEncrypted != isDecrypted && (item.uuidReference != nil) == hasReference
    }
  }

  /// Returns the maximum number of pairs of items that may be the same.
  ///
  /// By König's theorem, this equals the minimum number of items that cover all pairs. A minimum cover consists of some
  /// groups of the first list, and of the partners of that list's other groups.
  private func maximumPairCount(_ firstItems: [KeychainEntry], _ secondItems: [KeychainEntry]) -> Int {
    let groups = PartnerGroup.all
    let firstCounts = groups.map { group in firstItems.count(where: group.contains) }
    let secondCounts = groups.map { group in secondItems.count(where: group.contains) }
    func canMatch(_ group: PartnerGroup, _ partner: PartnerGroup) -> Bool {
      let areBothDecrypted = group.isDecrypted && partner.isDecrypted
      let haveBothReferences = group.hasReference && partner.hasReference
      return !areBothDecrypted && !(sharesReferences && haveBothReferences)
    }
    // Bit i of a cover means that it contains group i of the first list.
    let coverSizes = (0..<(1 << groups.count)).map { cover in
      var size = 0
      for (index, group) in groups.enumerated() {
        let isCovered = cover & (1 << index) != 0
        if isCovered { size += firstCounts[index] }
        let isPartnerOfUncovered = groups.indices.contains { otherIndex in
          cover & (1 << otherIndex) == 0 && canMatch(groups[otherIndex], group)
        }
        if isPartnerOfUncovered { size += secondCounts[index] }
      }
      return size
    }
    return coverSizes.min() ?? 0
  }

  /// Splits the unmatched decrypted items of one list into items that are certainly missing in the other list, and items
  /// that may be encrypted there. An item may be encrypted there if an encrypted item has the same kind and class.
  func split(
    _ unmatched: [KeychainEntry], amongEncrypted encrypted: [KeychainEntry]
  ) -> (certain: [KeychainEntry], possible: [KeychainEntry]) {
    let allKeys = Set(encrypted.map { ComparisonKey($0) })
    let keysWithoutReference = Set(encrypted.filter { $0.uuidReference == nil }.map { ComparisonKey($0) })
    var (certain, possible): ([KeychainEntry], [KeychainEntry]) = ([], [])
    for item in unmatched {
      let candidates = sharesReferences && item.uuidReference != nil ? keysWithoutReference : allKeys
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

  /// Returns whether two items with identical bytes count as equal. At least one must be encrypted. Both must be
  /// undamaged, or have the same reason why they cannot be decrypted.
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
