import KeychainFormats
import KeychainRules

/// Two keychains without what is sealed in either, and what is known of that.
struct ComparableItems {
  /// The open items of either list that are not known to be sealed ones of the other.
  private(set) var first: [ComparedItem] = []
  private(set) var second: [ComparedItem] = []
  /// The sealed items of either list to which nothing in the other is known to belong.
  private(set) var sealedInFirst: [ComparedItem] = []
  private(set) var sealedInSecond: [ComparedItem] = []
  private(set) var counts = KeychainDifference.SealedCounts()
  /// Whether both lists call some item by one reference, as two backups of a device do: then an item that has another
  /// reference is another item.
  private let sharesReferences: Bool

  /// Takes out what cannot be compared: sealed items, and the open items of the other list that are known to be the same
  /// ones by the reference beside them.
  init(_ one: [ComparedItem], _ other: [ComparedItem]) {
    let inFirst = Self.byReference(one)
    let inSecond = Self.byReference(other)
    sharesReferences = inFirst.keys.contains { inSecond[$0] != nil }
    var partners: (first: Set<Int>, second: Set<Int>) = ([], [])
    for (reference, item) in inFirst {
      guard let partner = inSecond[reference], item.item == nil || partner.item == nil else { continue }
      counts.inBoth += 1
      if item.item != nil { counts.openInFirst += 1 }
      if partner.item != nil { counts.openInSecond += 1 }
      if item.isDamaged || partner.isDamaged { counts.damaged += 1 }
      partners.first.insert(item.index)
      partners.second.insert(partner.index)
    }
    (first, sealedInFirst) = Self.parted(one, without: partners.first)
    (second, sealedInSecond) = Self.parted(other, without: partners.second)
    counts.onlyInFirst = sealedInFirst.count
    counts.onlyInSecond = sealedInSecond.count
    counts.damaged += (sealedInFirst + sealedInSecond).count(where: \.isDamaged)
  }

  private static func parted(
    _ items: [ComparedItem], without partners: Set<Int>
  ) -> (open: [ComparedItem], sealed: [ComparedItem]) {
    let left = items.filter { !partners.contains($0.index) }
    return (left.filter { $0.item != nil }, left.filter { $0.item == nil })
  }

  /// Items by the UUID of the reference beside them, where only one item has it.
  private static func byReference(_ items: [ComparedItem]) -> [PersistentReference: ComparedItem] {
    var result: [PersistentReference: ComparedItem] = [:]
    var ambiguous: Set<PersistentReference> = []
    for item in items {
      guard let reference = item.lastingReference else { continue }
      if result.updateValue(item, forKey: reference) != nil { ambiguous.insert(reference) }
    }
    for reference in ambiguous { result[reference] = nil }
    return result
  }

  // MARK: What may be sealed on the other side

  /// As much as a sealed item says of itself. Its class may be unknown.
  private struct Likeness: Hashable {
    let kind: ItemKind
    let protection: ProtectionClass?
  }

  /// Parts open items that one list alone has from those that may be among the other's sealed ones: of the same kind and
  /// class, and with nothing that says they are not.
  func split(
    _ alone: [ComparedItem], bySealed sealed: [ComparedItem]
  ) -> (certain: [ComparedItem], doubtful: [ComparedItem]) {
    let all = Set(sealed.map { Likeness(kind: $0.kind, protection: $0.protection) })
    let nameless = Set(
      sealed.filter { $0.lastingReference == nil }.map { Likeness(kind: $0.kind, protection: $0.protection) })
    var (certain, doubtful): ([ComparedItem], [ComparedItem]) = ([], [])
    for item in alone {
      let candidates = sharesReferences && item.lastingReference != nil ? nameless : all
      let isDoubtful = [item.protection, nil].contains { protection in
        candidates.contains(Likeness(kind: item.kind, protection: protection))
      }
      if isDoubtful { doubtful.append(item) } else { certain.append(item) }
    }
    return (certain, doubtful)
  }
}

extension ComparedItem {
  fileprivate var isDamaged: Bool { reason?.isDamage == true }

  /// The reference beside it where it is a UUID. Two devices number their rows alike, so that a row's number says nothing.
  fileprivate var lastingReference: PersistentReference? {
    guard let bytes = persistentReference, let reference = try? PersistentReference(parsing: bytes),
      case .uuid(self.kind, _) = reference
    else { return nil }
    return reference
  }
}
