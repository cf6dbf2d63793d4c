import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains

/// An item that a query means; of an identity both halves.
struct SecItemMatch {
  let item: KeychainItem
  let reference: RowReference
  let certificate: KeychainItem?
}

/// Finds the rows that a query means.
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

  struct Found {
    var matches: [SecItemMatch]
    var undecodable: [RowReference]
  }

  /// The matching items, at most as many as the query's limit.
  ///
  /// The database counts the limit before rows are opened, unless there are conditions that it cannot look at. What does
  /// not match is not kept, so that memory grows with the matches alone.
  /// - Throws: `.interactionNotAllowed` at the first row that is locked.
  mutating func matches(
    in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Found {
    guard rowLimit != 0 else { return Found(matches: [], undecodable: []) }
    let filter = MatchFilter(query, groups: groups)
    let issuers = try filter.acceptedIssuers(in: transaction, keys: keys)
    var matches: [SecItemMatch] = []
    /// Whether more may follow.
    func take(_ match: SecItemMatch) -> Bool {
      if filter.admits(match, issuers: issuers) { matches.append(match) }
      return rowLimit.map { matches.count < $0 } ?? true
    }
    let sqlLimit = filter.isEmpty ? rowLimit : nil
    switch query.queryClass {
    case .items(let kind):
      var itemQuery = Self.itemQuery(query, kind: kind, groups: groups) { _ in true }
      itemQuery.limit = sqlLimit
      try transaction.walkRows(matching: itemQuery, keys: keys) { (row) throws(KeyhaulError) in
        guard let item = try admitted(row, itemQuery) else { return true }
        return take(SecItemMatch(item: item, reference: row.summary.reference, certificate: nil))
      }
    case .identity:
      for pair in try identityPairs(in: transaction, limit: sqlLimit) {
        guard let certificate = try item(pair.certificate, in: transaction, keys: keys),
          let key = try item(pair.key, in: transaction, keys: keys)
        else { continue }
        guard take(SecItemMatch(item: key, reference: pair.key, certificate: certificate)) else { break }
      }
    }
    return Found(matches: matches, undecodable: undecodable)
  }

  private var rowLimit: Int? {
    switch query.limit {
    case .one: 1
    case .all: nil
    case .atMost(let count): count
    }
  }

  /// The item of a row; `nil` if it will never open, or belongs to another group than its column says.
  private mutating func admitted(_ row: KeychainRow, _ query: ItemQuery) throws(KeyhaulError) -> KeychainItem? {
    switch row.content {
    case .item(let item): return query.admits(item) ? item : nil
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
    var found: KeychainItem?
    try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      found = try admitted(row, query)
    }
    return found
  }

  /// The rows of certificates and private keys that belong together.
  private func identityPairs(
    in transaction: KeychainTransaction, limit: Int?
  ) throws(KeyhaulError) -> [(certificate: RowReference, key: RowReference)] {
    var keyQuery = Self.itemQuery(query, kind: .key, groups: groups) {
      !QueryClass.certificateAttributes.contains($0)
    }
    keyQuery.attributes[.isPrivate] = .integer(1)
    // The reference of an identity is its certificate's.
    var certificateQuery = Self.itemQuery(query, kind: .certificate, groups: groups) {
      QueryClass.certificateAttributes.contains($0)
    }
    certificateQuery.tombstones = .excluded
    certificateQuery.synchronization = .any
    keyQuery.persistentReference = nil
    keyQuery.row = nil
    return try transaction.identities(certificates: certificateQuery, keys: keyQuery, limit: limit)
  }

  /// The part of a query that the database answers.
  ///
  /// Tombstones are left out unless asked for; what is synchronized unless asked for or a reference is used.
  static func itemQuery(
    _ query: ParsedQuery, kind: ItemKind, groups: ItemQuery.AccessGroups, where isIncluded: (AttributeCode) -> Bool
  ) -> ItemQuery {
    var itemQuery = ItemQuery(kind: kind, attributes: query.attributes.filter { isIncluded($0.key) })
    itemQuery.accessGroups = groups
    itemQuery.tombstones = query.attributes[.tombstone] == nil ? .excluded : .included
    itemQuery.synchronization = query.mentionsSynchronizable || query.reference != nil ? .any : .localOnly
    switch query.reference {
    case .row(let number): itemQuery.row = RowReference(kind: kind, rowID: number)
    case .uuid(let uuid): itemQuery.persistentReference = uuid
    case .token(let id, _): itemQuery.attributes[.tokenID] = .string(id)
    case nil: break
    }
    return itemQuery
  }
}

/// The conditions of a query that are looked at in the opened item.
///
/// Source: Apple `SecItemServer.c` (`match_item`, `items_matching_issuer_parent`).
struct MatchFilter {
  /// How many certificates lie between an item and the issuer it is found by, at most.
  private static let maximumChainDepth = 10

  private let conditions: MatchConditions
  private let token: [UInt8]?
  private let groups: ItemQuery.AccessGroups

  init(_ query: ParsedQuery, groups: ItemQuery.AccessGroups) {
    conditions = query.matches
    self.groups = groups
    if case .token(_, let object) = query.reference { token = object } else { token = nil }
  }

  var isEmpty: Bool { !conditions.filters && token == nil }

  /// The names that a certificate's issuer may have: those that the query lists, and those of the certificates that
  /// they issued, directly or through others. Certificates that the caller does not see are no link.
  func acceptedIssuers(
    in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Set<[UInt8]> {
    var accepted = Set((conditions.issuers ?? []).compactMap(CertificateAttributes.normalizedName))
    var latest = accepted
    for _ in 0..<Self.maximumChainDepth where !latest.isEmpty {
      var found: Set<[UInt8]> = []
      for issuer in latest {
        let issued = ItemQuery(kind: .certificate, attributes: [.issuer: .data(issuer)], accessGroups: groups)
        try transaction.forEachRow(matching: issued, keys: keys) { (row) throws(KeyhaulError) in
          guard let item = row.item, issued.admits(item), let subject = item[.subject]?.dataValue else { return }
          found.insert(subject)
        }
      }
      latest = found.subtracting(accepted)
      accepted.formUnion(latest)
    }
    return accepted
  }

  func admits(_ match: SecItemMatch, issuers: Set<[UInt8]>) -> Bool {
    if let token, TokenValue(of: match.item)?.objectID != token { return false }
    if let host = conditions.host, !Self.isHost(match.item[.server], host) { return false }
    let certificate = match.certificate ?? match.item
    guard certificate.kind == .certificate else { return true }
    if conditions.issuers != nil {
      guard let issuer = certificate[.issuer]?.dataValue, issuers.contains(issuer) else { return false }
    }
    if let address = conditions.emailAddress {
      let addresses = Self.facts(of: certificate)?.emailAddresses ?? []
      guard addresses.contains(where: { $0.lowercased() == address.lowercased() }) else { return false }
    }
    if let date = conditions.validDate {
      guard let facts = Self.facts(of: certificate), facts.isValid(at: date) else { return false }
    }
    // A virtual device trusts no authority.
    return !conditions.isTrustedOnly
  }

  private static func facts(of certificate: KeychainItem) -> CertificateAttributes? {
    certificate.secret.flatMap { try? CertificateAttributes(der: $0.withBytes { Array($0) }) }
  }

  /// Whether a server is the host or lies below it.
  private static func isHost(_ server: PropertyValue?, _ host: String) -> Bool {
    guard let name = server?.stringValue?.lowercased() else { return false }
    let host = host.lowercased()
    return !host.isEmpty && (name == host || name.hasSuffix("." + host))
  }
}
