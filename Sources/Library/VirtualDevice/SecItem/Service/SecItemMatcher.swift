import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains

/// A matching item. For an identity, `item` is its key, and `certificate` its certificate.
struct SecItemMatch {
  let item: KeychainItem
  let reference: RowReference
  let certificate: KeychainItem?
}

/// Finds the items that match a query.
///
/// Source: Apple `SecItemDb.c` (`s3dl_query`, `s3dl_query_row`, `s3dl_create_select_sql`).
struct SecItemMatcher {
  private let query: ParsedQuery
  private let groups: ItemQuery.AccessGroups
  private var undecodable: [RowReference] = []

  init(_ query: ParsedQuery, groups: ItemQuery.AccessGroups) {
    self.query = query
    self.groups = groups
  }

  /// The matching items, and the rows that can never be decrypted.
  struct Matches {
    var matches: [SecItemMatch]
    var undecodable: [RowReference]
  }

  /// Returns the matching items, up to the query's limit.
  ///
  /// The database applies the limit before rows are decrypted, unless there are conditions that it cannot check. Items
  /// that do not match are discarded immediately, so that memory use depends only on the matches.
  ///
  /// - Throws: `.interactionNotAllowed` at the first row whose class key is not in memory.
  mutating func matches(
    in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Matches {
    guard limit != 0 else { return Matches(matches: [], undecodable: []) }
    let filter = MatchFilter(query, groups: groups)
    let issuers = try filter.acceptedIssuers(in: transaction, keys: keys)
    var collector = MatchCollector(filter: filter, issuers: issuers, limit: limit)
    switch query.queryClass {
    case .items(let kind): try addItems(of: kind, to: &collector, in: transaction, keys: keys)
    case .identity: try addIdentities(to: &collector, in: transaction, keys: keys)
    }
    return Matches(matches: collector.matches, undecodable: undecodable)
  }

  private mutating func addItems(
    of kind: ItemKind, to collector: inout MatchCollector, in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) {
    var itemQuery = Self.itemQuery(query, kind: kind, groups: groups) { _ in true }
    itemQuery.limit = collector.rowLimit
    try transaction.scanRows(matching: itemQuery, keys: keys) { (row) throws(KeyhaulError) in
      // `true` continues the scan.
      guard let item = try matchingItem(row, itemQuery) else { return true }
      return collector.add(SecItemMatch(item: item, reference: row.summary.reference, certificate: nil))
    }
  }

  private mutating func addIdentities(
    to collector: inout MatchCollector, in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) {
    for pair in try identityPairs(in: transaction, limit: collector.rowLimit) {
      guard let certificate = try item(pair.certificate, in: transaction, keys: keys),
        let key = try item(pair.key, in: transaction, keys: keys)
      else { continue }
      let canAddMore = collector.add(SecItemMatch(item: key, reference: pair.key, certificate: certificate))
      guard canAddMore else { break }
    }
  }

  /// The largest number of matches, or `nil` if all are requested.
  private var limit: Int? {
    switch query.limit {
    case .one: 1
    case .all: nil
    case .atMost(let count): count
    }
  }

  /// Returns the item of a row; `nil` if the row can never be decrypted, or if the query's access groups do not contain
  /// the group of the decrypted item, although they contain the group in the row's column.
  private mutating func matchingItem(_ row: KeychainRow, _ query: ItemQuery) throws(KeyhaulError) -> KeychainItem? {
    switch row.content {
    case .item(let item): return query.matches(item) ? item : nil
    case .fault(let fault):
      guard fault.isPermanent else { throw KeyhaulError(fault) }
      undecodable.append(row.summary.reference)
      return nil
    }
  }

  private mutating func item(
    _ reference: RowReference, in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> KeychainItem? {
    let query = ItemQuery(kind: reference.kind, accessGroups: groups, tombstones: .included, row: reference)
    var item: KeychainItem?
    try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      item = try matchingItem(row, query)
    }
    return item
  }

  /// Returns pairs of a certificate and its private key.
  private func identityPairs(
    in transaction: KeychainTransaction, limit: Int?
  ) throws(KeyhaulError) -> [(certificate: RowReference, key: RowReference)] {
    var keyQuery = Self.itemQuery(query, kind: .key, groups: groups) {
      !QueryClass.certificateAttributes.contains($0)
    }
    keyQuery.attributes[.isPrivate] = .integer(1)
    // An identity has the persistent reference of its certificate.
    var certificateQuery = Self.itemQuery(query, kind: .certificate, groups: groups) {
      QueryClass.certificateAttributes.contains($0)
    }
    certificateQuery.tombstones = .excluded
    certificateQuery.synchronization = .any
    keyQuery.persistentReference = nil
    keyQuery.row = nil
    return try transaction.identities(certificates: certificateQuery, keys: keyQuery, limit: limit)
  }

  /// Returns the part of a query that the database can execute.
  ///
  /// Tombstones are excluded by default. Synchronized items are excluded unless the query mentions them or has a
  /// reference.
  static func itemQuery(
    _ query: ParsedQuery, kind: ItemKind, groups: ItemQuery.AccessGroups, where isIncluded: (AttributeCode) -> Bool
  ) -> ItemQuery {
    var itemQuery = ItemQuery(kind: kind, attributes: query.attributes.filter { isIncluded($0.key) })
    itemQuery.accessGroups = groups
    itemQuery.tombstones = query.attributes[.tombstone] == nil ? .excluded : .included
    itemQuery.synchronization = query.mentionsSynchronizable || query.reference != nil ? .any : .localOnly
    switch query.reference {
    case .row(let rowID): itemQuery.row = RowReference(kind: kind, rowID: rowID)
    case .uuid(let uuid): itemQuery.persistentReference = uuid
    case .token(let id, _): itemQuery.attributes[.tokenID] = .string(id)
    case nil: break
    }
    return itemQuery
  }
}

/// Collects the matches that pass a filter, up to a limit.
private struct MatchCollector {
  let filter: MatchFilter
  let issuers: Set<[UInt8]>
  let limit: Int?
  var matches: [SecItemMatch] = []

  /// The number of rows that the database has to return, or `nil` if the filter may reject some of them.
  var rowLimit: Int? { filter.isEmpty ? limit : nil }

  /// Adds a match that passes the filter. Returns whether the limit allows another match.
  mutating func add(_ match: SecItemMatch) -> Bool {
    if filter.matches(match, issuers: issuers) { matches.append(match) }
    return limit.map { matches.count < $0 } ?? true
  }
}
