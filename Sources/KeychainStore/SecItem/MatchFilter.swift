import DataProtection
import KeychainFormats

/// The conditions of a query that are looked at in the opened item.
///
/// Source: Apple `SecItemServer.c` (`match_item`, `items_matching_issuer_parent`).
struct MatchFilter {
  /// How many certificates lie between an item and the issuer it is found by, at most.
  private static let deepestChain = 10

  private let conditions: MatchConditions
  private let token: [UInt8]?
  private let groups: ItemQuery.AccessGroups

  init(_ query: ParsedQuery, groups: ItemQuery.AccessGroups) {
    conditions = query.matches
    self.groups = groups
    if case .token(_, let object) = query.reference { token = object } else { token = nil }
  }

  var isEmpty: Bool { !conditions.filters && token == nil }

  /// Issuers by their subjects, of the certificates that the caller sees.
  func certificates(
    in transaction: KeychainTransaction, keys: borrowing ClassKeys
  ) throws(KeychainStoreError) -> [[UInt8]: [[UInt8]]] {
    guard conditions.issuers != nil else { return [:] }
    var issuers: [[UInt8]: [[UInt8]]] = [:]
    let all = ItemQuery(kind: .certificate, accessGroups: groups)
    try transaction.forEachRow(matching: all, keys: keys) { (row) throws(KeychainStoreError) in
      guard let item = row.item, all.admits(item), let subject = item[.subject]?.dataValue,
        let issuer = item[.issuer]?.dataValue
      else { return }
      issuers[subject, default: []].append(issuer)
    }
    return issuers
  }

  func admits(_ match: SecItemMatch, _ certificates: [[UInt8]: [[UInt8]]]) -> Bool {
    if let token, TokenValue(of: match.item)?.objectID != token { return false }
    if let host = conditions.host, !Self.isHost(match.item[.server], host) { return false }
    let certificate = match.certificate ?? match.item
    guard certificate.kind == .certificate else { return true }
    if let issuers = conditions.issuers {
      let names = issuers.compactMap(CertificateFacts.normalizedName)
      guard let issuer = certificate[.issuer]?.dataValue,
        Self.leads(issuer, to: names, through: certificates, depth: Self.deepestChain)
      else { return false }
    }
    if let date = conditions.validDate {
      guard let der = certificate.secret?.withBytes({ Array($0) }), let facts = try? CertificateFacts(der: der),
        facts.isValid(at: date)
      else { return false }
    }
    // A virtual device trusts no authority.
    return !conditions.isTrustedOnly
  }

  /// Whether a server is the host or lies below it.
  private static func isHost(_ server: PropertyValue?, _ host: String) -> Bool {
    guard let name = server?.stringValue?.lowercased() else { return false }
    let host = host.lowercased()
    return !host.isEmpty && (name == host || name.hasSuffix("." + host))
  }

  private static func leads(
    _ issuer: [UInt8], to wanted: [[UInt8]], through certificates: [[UInt8]: [[UInt8]]], depth: Int
  ) -> Bool {
    if wanted.contains(issuer) { return true }
    guard depth > 0 else { return false }
    return (certificates[issuer] ?? []).contains { next in
      next != issuer && leads(next, to: wanted, through: certificates, depth: depth - 1)
    }
  }
}
