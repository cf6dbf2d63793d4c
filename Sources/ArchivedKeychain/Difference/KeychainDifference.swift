import DataProtection
public import KeychainFormats

/// What a second keychain has that a first one has not, and the other way round. Made of two lists of items without any
/// file or key at hand; holds names and dates, never a secret.
public struct KeychainDifference: Sendable {
  /// Items of the second list alone, in its order.
  public let added: [Side]
  /// Items of both that differ, in the second list's order.
  public let changed: [ItemChange]
  /// Items of the first list alone, in its order.
  public let removed: [Side]
  /// How many items are equal in both.
  public let sameCount: Int
  /// What could not be compared, because it is sealed in one list or in both.
  public let sealed: SealedCounts

  /// An item that one list alone has.
  public struct Side: Sendable, Equatable {
    public let index: Int
    public let identity: ItemIdentity
    public let protection: ProtectionClass?
    public let modified: KeychainDate?

    init(_ compared: ComparedItem) {
      index = compared.index
      identity = compared.identity
      protection = compared.protection
      modified = compared.item?.modificationDate
    }
  }

  /// Items of which something is sealed. Their contents are unknown, so that they count neither as equal nor as changed.
  public struct SealedCounts: Sendable, Equatable {
    /// Both lists name it by the same reference; at least one of the two does not open.
    public var inBoth = 0
    /// Sealed items of the first list to which nothing in the second is known to belong.
    public var onlyInFirst = 0
    public var onlyInSecond = 0
    /// Of all these, items that are damaged, rather than bound to a device.
    public var damaged = 0

    public var total: Int { inBoth + onlyInFirst + onlyInSecond }
  }

  /// Whether anything is known to differ.
  public var isEmpty: Bool { added.isEmpty && changed.isEmpty && removed.isEmpty }

  /// Compares two keychains item by item. Equal items are those with the same primary key: kind, names, access group,
  /// whether it syncs (the attributes flagged P in Apple's schema).
  ///
  /// Where a list holds one primary key twice, as only a damaged archive does, they are paired in their order.
  ///
  /// - Throws: `ArchivedKeychainError` where the cryptography itself fails.
  public init(from first: [ComparedItem], to second: [ComparedItem]) throws(ArchivedKeychainError) {
    var sealed = SealedCounts()
    let (first, second) = Self.withoutSealed(first, second, counting: &sealed)
    let old = try Self.byPrimaryKey(first)
    var pairs: [Int: ComparedItem] = [:]
    var unmatched = old.mapValues { $0[...] }
    let keys = try second.map { (compared) throws(ArchivedKeychainError) in try Self.primaryKey(of: compared) }
    for (position, key) in keys.enumerated() {
      guard let key, let match = unmatched[key]?.popFirst() else { continue }
      pairs[position] = match
    }
    var added: [Side] = []
    var changed: [ItemChange] = []
    var sameCount = 0
    for (position, compared) in second.enumerated() {
      guard let match = pairs[position], let old = match.item, let new = compared.item else {
        added.append(Side(compared))
        continue
      }
      if let change = ItemChange(match, old, compared, new) { changed.append(change) } else { sameCount += 1 }
    }
    let matched = Set(pairs.values.map(\.index))
    removed = first.filter { !matched.contains($0.index) }.map(Side.init)
    self.added = added
    self.changed = changed
    self.sameCount = sameCount
    self.sealed = sealed
  }

  // MARK: Sealed items

  /// Takes out what cannot be compared: sealed items, and the open items of the other list that are known to be the same
  /// ones.
  private static func withoutSealed(
    _ first: [ComparedItem], _ second: [ComparedItem], counting counts: inout SealedCounts
  ) -> (first: [ComparedItem], second: [ComparedItem]) {
    let inFirst = byReference(first)
    let inSecond = byReference(second)
    var partners: (first: Set<Int>, second: Set<Int>) = ([], [])
    for (reference, one) in inFirst {
      guard let other = inSecond[reference], one.item == nil || other.item == nil else { continue }
      counts.inBoth += 1
      if one.isDamaged || other.isDamaged { counts.damaged += 1 }
      partners.first.insert(one.index)
      partners.second.insert(other.index)
    }
    func rest(_ items: [ComparedItem], _ partners: Set<Int>, _ count: inout Int) -> [ComparedItem] {
      let left = items.filter { !partners.contains($0.index) }
      let alone = left.filter { $0.item == nil }
      count += alone.count
      counts.damaged += alone.count(where: \.isDamaged)
      return left.filter { $0.item != nil }
    }
    var (onlyInFirst, onlyInSecond) = (0, 0)
    let open = (rest(first, partners.first, &onlyInFirst), rest(second, partners.second, &onlyInSecond))
    counts.onlyInFirst = onlyInFirst
    counts.onlyInSecond = onlyInSecond
    return open
  }

  /// Items by the UUID of the reference beside them, where only one item has it. References by row number are left out:
  /// two devices number their rows alike.
  private static func byReference(_ items: [ComparedItem]) -> [PersistentReference: ComparedItem] {
    var result: [PersistentReference: ComparedItem] = [:]
    var ambiguous: Set<PersistentReference> = []
    for item in items {
      guard let bytes = item.persistentReference, let reference = try? PersistentReference(parsing: bytes),
        case .uuid(item.kind, _) = reference
      else { continue }
      if result.updateValue(item, forKey: reference) != nil { ambiguous.insert(reference) }
    }
    for reference in ambiguous { result[reference] = nil }
    return result
  }

  // MARK: Open items

  private static func byPrimaryKey(
    _ items: [ComparedItem]
  ) throws(ArchivedKeychainError) -> [[UInt8]: [ComparedItem]] {
    var result: [[UInt8]: [ComparedItem]] = [:]
    for item in items {
      guard let key = try primaryKey(of: item) else { continue }
      result[key, default: []].append(item)
    }
    return result
  }

  /// - Returns: `nil` for an item whose names have no encoding; it is equal to none.
  private static func primaryKey(of compared: ComparedItem) throws(ArchivedKeychainError) -> [UInt8]? {
    guard let item = compared.item else { return nil }
    do throws(ItemSealError) {
      return Array(item.kind.rawValue.utf8) + (try item.primaryKeyDigest())
    } catch {
      guard case .failed(let fault) = error.fault else { return nil }
      throw ArchivedKeychainError(fault)
    }
  }
}

extension ComparedItem {
  fileprivate var isDamaged: Bool { reason?.isDamage == true }
}
