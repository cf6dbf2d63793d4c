import Basics
import KeychainCrypto
import KeychainFormats
import Keychains

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
    in transaction: KeychainTransaction, keys: borrowing ClassKeys
  ) throws(KeychainStoreError) -> Set<[UInt8]> {
    var accepted = Set((conditions.issuers ?? []).compactMap(CertificateFacts.normalizedName))
    var latest = accepted
    for _ in 0..<Self.maximumChainDepth where !latest.isEmpty {
      var found: Set<[UInt8]> = []
      for issuer in latest {
        let issued = ItemQuery(kind: .certificate, attributes: [.issuer: .data(issuer)], accessGroups: groups)
        try transaction.forEachRow(matching: issued, keys: keys) { (row) throws(KeychainStoreError) in
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

  private static func facts(of certificate: KeychainItem) -> CertificateFacts? {
    certificate.secret.flatMap { try? CertificateFacts(der: $0.withBytes { Array($0) }) }
  }

  /// Whether a server is the host or lies below it.
  private static func isHost(_ server: PropertyValue?, _ host: String) -> Bool {
    guard let name = server?.stringValue?.lowercased() else { return false }
    let host = host.lowercased()
    return !host.isEmpty && (name == host || name.hasSuffix("." + host))
  }
}
