import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains

/// A matching item. For an identity, its key and its certificate.
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
  /// The database applies the limit before rows are decrypted, unless there are conditions that it cannot check. Other
  /// items are discarded immediately, so that memory use depends only on the matches.
  ///
  /// - Throws: `.interactionNotAllowed` at the first locked row.
  mutating func matches(
    in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Matches {
    guard rowLimit != 0 else { return Matches(matches: [], undecodable: []) }
    let filter = MatchFilter(query, groups: groups)
    let issuers = try filter.acceptedIssuers(in: transaction, keys: keys)
    var matches: [SecItemMatch] = []
    /// Adds a match, and returns whether more may follow.
    func append(_ match: SecItemMatch) -> Bool {
      if filter.matches(match, issuers: issuers) { matches.append(match) }
      return rowLimit.map { matches.count < $0 } ?? true
    }
    let sqlLimit = filter.isEmpty ? rowLimit : nil
    switch query.queryClass {
    case .items(let kind):
      var itemQuery = Self.itemQuery(query, kind: kind, groups: groups) { _ in true }
      itemQuery.limit = sqlLimit
      try transaction.scanRows(matching: itemQuery, keys: keys) { (row) throws(KeyhaulError) in
        guard let item = try matchingItem(row, itemQuery) else { return true }
        return append(SecItemMatch(item: item, reference: row.summary.reference, certificate: nil))
      }
    case .identity:
      for pair in try identityPairs(in: transaction, limit: sqlLimit) {
        guard let certificate = try item(pair.certificate, in: transaction, keys: keys),
          let key = try item(pair.key, in: transaction, keys: keys)
        else { continue }
        guard append(SecItemMatch(item: key, reference: pair.key, certificate: certificate)) else { break }
      }
    }
    return Matches(matches: matches, undecodable: undecodable)
  }

  private var rowLimit: Int? {
    switch query.limit {
    case .one: 1
    case .all: nil
    case .atMost(let count): count
    }
  }

  /// Returns the item of a row; `nil` if the row can never be decrypted, or if its item belongs to another group than
  /// its column states.
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

/// The conditions of a query that apply to decrypted items.
///
/// Source: Apple `SecItemServer.c` (`match_item`, `items_matching_issuer_parent`).
struct MatchFilter {
  /// The largest number of certificates between an item and a requested issuer.
  private static let maximumChainDepth = 10

  private let conditions: MatchConditions
  private let token: [UInt8]?
  private let groups: ItemQuery.AccessGroups

  init(_ query: ParsedQuery, groups: ItemQuery.AccessGroups) {
    conditions = query.matches
    self.groups = groups
    if case .token(_, let object) = query.reference { token = object } else { token = nil }
  }

  var isEmpty: Bool { !conditions.requiresRowChecks && token == nil }

  /// Returns the accepted issuers of a certificate: the names in the query, and the subjects of all certificates that
  /// these issued, directly or indirectly. Certificates outside the caller's groups are ignored.
  func acceptedIssuers(
    in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Set<[UInt8]> {
    var accepted = Set((conditions.issuers ?? []).compactMap(CertificateAttributes.normalizedName))
    var newIssuers = accepted
    for _ in 0..<Self.maximumChainDepth where !newIssuers.isEmpty {
      var subjects: Set<[UInt8]> = []
      for issuer in newIssuers {
        let issuedCertificates = ItemQuery(
          kind: .certificate, attributes: [.issuer: .data(issuer)], accessGroups: groups)
        try transaction.forEachRow(matching: issuedCertificates, keys: keys) { (row) throws(KeyhaulError) in
          guard let item = row.item, issuedCertificates.matches(item), let subject = item[.subject]?.dataValue else {
            return
          }
          subjects.insert(subject)
        }
      }
      newIssuers = subjects.subtracting(accepted)
      accepted.formUnion(newIssuers)
    }
    return accepted
  }

  func matches(_ match: SecItemMatch, issuers: Set<[UInt8]>) -> Bool {
    if let token, TokenValue(of: match.item)?.objectID != token { return false }
    if let host = conditions.host, !Self.isHostOrSubdomain(match.item[.server], host) { return false }
    let certificate = match.certificate ?? match.item
    guard certificate.kind == .certificate else { return true }
    if conditions.issuers != nil {
      guard let issuer = certificate[.issuer]?.dataValue, issuers.contains(issuer) else { return false }
    }
    if let address = conditions.emailAddress {
      let addresses = Self.attributes(of: certificate)?.emailAddresses ?? []
      guard addresses.contains(where: { $0.lowercased() == address.lowercased() }) else { return false }
    }
    if let date = conditions.validDate {
      guard let attributes = Self.attributes(of: certificate), attributes.isValid(at: date) else { return false }
    }
    // A virtual device trusts no certificate authority.
    return !conditions.isTrustedOnly
  }

  private static func attributes(of certificate: KeychainItem) -> CertificateAttributes? {
    certificate.secret.flatMap { try? CertificateAttributes(der: $0.withBytes { Array($0) }) }
  }

  /// Returns whether a server is the host or one of its subdomains.
  private static func isHostOrSubdomain(_ server: PropertyValue?, _ host: String) -> Bool {
    guard let name = server?.stringValue?.lowercased() else { return false }
    let host = host.lowercased()
    return !host.isEmpty && (name == host || name.hasSuffix("." + host))
  }
}
