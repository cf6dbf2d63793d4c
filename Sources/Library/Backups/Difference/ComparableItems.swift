import Basics
import KeychainFormats
import KeychainRules

/// Two keychains without what is sealed in either, and what is known of that.
struct ComparableItems {
  /// The open items of either list that are not known to be sealed ones of the other.
  private(set) var first: [KeychainEntry] = []
  private(set) var second: [KeychainEntry] = []
  /// The sealed items of either list to which nothing in the other is known to belong.
  private(set) var sealedInFirst: [KeychainEntry] = []
  private(set) var sealedInSecond: [KeychainEntry] = []
  private(set) var counts = KeychainDifference.SealedCounts()
  /// Whether both lists call some item by one reference, as two backups of a device do: then an item that has another
  /// reference is another item.
  private let sharesReferences: Bool

  /// Takes out what is sealed: items that both lists have byte for byte, those of one reference, of which nothing more is
  /// known, and the rest.
  init(_ all: [KeychainEntry], _ others: [KeychainEntry]) {
    guard all.contains(where: \.isSealed) || others.contains(where: \.isSealed) else {
      (first, second, sharesReferences) = (all, others, false)
      return
    }
    let (named, alsoNamed) = (Self.byReference(all), Self.byReference(others))
    sharesReferences = named.keys.contains { alsoNamed[$0] != nil }
    let alike = Self.storedAlike(all, others)
    counts.alike = alike.first.count
    counts.damagedAlike = all.count { alike.first.contains($0.position) && $0.isDamaged }
    let one = alike.first.isEmpty ? all : all.filter { !alike.first.contains($0.position) }
    let other = alike.first.isEmpty ? others : others.filter { !alike.second.contains($0.position) }
    let inSecond = alike.first.isEmpty ? alsoNamed : Self.byReference(other)
    var partners: (first: Set<Int>, second: Set<Int>) = ([], [])
    for (reference, place) in alike.first.isEmpty ? named : Self.byReference(one) {
      guard let partner = inSecond[reference].map({ other[$0] }) else { continue }
      let item = one[place]
      guard item.isSealed || partner.isSealed else { continue }
      counts.inBoth += 1
      if !item.isSealed { counts.openInFirst += 1 }
      if !partner.isSealed { counts.openInSecond += 1 }
      if item.isDamaged || partner.isDamaged { counts.damaged += 1 }
      partners.first.insert(item.position)
      partners.second.insert(partner.position)
    }
    (first, sealedInFirst) = Self.parted(one, without: partners.first)
    (second, sealedInSecond) = Self.parted(other, without: partners.second)
    counts.onlyInFirst = sealedInFirst.count
    counts.onlyInSecond = sealedInSecond.count
    counts.damaged += (sealedInFirst + sealedInSecond).count(where: \.isDamaged)
    counts.possiblePairs = possiblePairs(sealedInFirst, sealedInSecond)
  }

  /// The positions of items of which something is sealed and whose bytes both lists have, paired in their order.
  private static func storedAlike(
    _ one: [KeychainEntry], _ other: [KeychainEntry]
  ) -> (first: Set<Int>, second: Set<Int>) {
    let sealed = Set((one + other).lazy.filter(\.isSealed).compactMap { Stored($0) })
    guard !sealed.isEmpty else { return ([], []) }
    var candidates: [Stored: [KeychainEntry]] = [:]
    for item in other.reversed() {
      if let stored = Stored(item), sealed.contains(stored) { candidates[stored, default: []].append(item) }
    }
    var alike: (first: Set<Int>, second: Set<Int>) = ([], [])
    for item in one {
      guard let stored = Stored(item), let partner = candidates[stored]?.last, item.isSealedAlike(partner) else {
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
    return (left.filter { !$0.isSealed }, left.filter(\.isSealed))
  }

  /// The places of items by the UUID of the reference beside them, where only one item has it.
  private static func byReference(_ items: [KeychainEntry]) -> [PersistentReference: Int] {
    var result: [PersistentReference: Int] = [:]
    var ambiguous: Set<PersistentReference> = []
    for (place, item) in items.enumerated() {
      guard let reference = item.lastingReference else { continue }
      if result.updateValue(place, forKey: reference) != nil { ambiguous.insert(reference) }
    }
    for reference in ambiguous { result[reference] = nil }
    return result
  }

  // MARK: What may be sealed on the other side

  /// As much as a sealed item says of itself. Its class may be unknown.
  private struct Likeness: Hashable {
    let kind: ItemKind
    let protection: ProtectionClass?

    init(kind: ItemKind, protection: ProtectionClass?) {
      self.kind = kind
      self.protection = protection
    }

    init(_ item: KeychainEntry) { self.init(kind: item.kind, protection: item.protection) }
  }

  /// How many items of which nothing can be said may be one item of both lists, at most: each is of one kind and class with
  /// its partner, only one of the two opens, and no reference tells them apart.
  func possiblePairs(_ one: [KeychainEntry], _ other: [KeychainEntry]) -> Int {
    let inSecond = Dictionary(grouping: other, by: Likeness.init)
    return Dictionary(grouping: one, by: Likeness.init).reduce(0) { sum, group in
      sum + mostPairs(group.value, inSecond[group.key] ?? [])
    }
  }

  /// An item is of one of four sorts: whether it opens, and whether a reference names it, decides which of the other side
  /// it may be. The most pairs are as many as the fewest items without which there is no pair (König's theorem): some sorts
  /// of one side, and of the other those that the rest may be.
  private func mostPairs(_ one: [KeychainEntry], _ other: [KeychainEntry]) -> Int {
    let sorts = [(false, false), (false, true), (true, false), (true, true)]
    func counts(_ items: [KeychainEntry]) -> [Int] {
      sorts.map { sort in items.count { (!$0.isSealed, $0.lastingReference != nil) == sort } }
    }
    let (first, second) = (counts(one), counts(other))
    func mayBeOne(_ left: Int, _ right: Int) -> Bool {
      !(sorts[left].0 && sorts[right].0) && !(sharesReferences && sorts[left].1 && sorts[right].1)
    }
    return (0..<16).map { chosen in
      let rest = sorts.indices.filter { chosen & (1 << $0) == 0 }
      let touched = sorts.indices.filter { right in rest.contains { mayBeOne($0, right) } }
      return sorts.indices.filter { !rest.contains($0) }.reduce(0) { $0 + first[$1] }
        + touched.reduce(0) { $0 + second[$1] }
    }.min() ?? 0
  }

  /// Parts open items that one list alone has from those that may be among the other's sealed ones: of the same kind and
  /// class, and with nothing that says they are not.
  func split(
    _ alone: [KeychainEntry], bySealed sealed: [KeychainEntry]
  ) -> (certain: [KeychainEntry], doubtful: [KeychainEntry]) {
    let all = Set(sealed.map { Likeness(kind: $0.kind, protection: $0.protection) })
    let nameless = Set(
      sealed.filter { $0.lastingReference == nil }.map { Likeness(kind: $0.kind, protection: $0.protection) })
    var (certain, doubtful): ([KeychainEntry], [KeychainEntry]) = ([], [])
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

extension KeychainEntry {
  fileprivate var isDamaged: Bool { reason?.isDamage == true }

  /// Whether two items of the same bytes are one as far as anybody can tell: something of them is sealed, and neither is
  /// damaged to the eye of its own keybag alone.
  fileprivate func isSealedAlike(_ other: KeychainEntry) -> Bool {
    (isSealed || other.isSealed) && (reason == other.reason || !isDamaged && !other.isDamaged)
  }

  /// The reference beside it where it is a UUID. Two devices number their rows alike, so that a row's number says nothing.
  fileprivate var lastingReference: PersistentReference? {
    guard let bytes = persistentReference, let reference = try? PersistentReference(parsing: bytes),
      case .uuid(self.kind, _) = reference
    else { return nil }
    return reference
  }
}
