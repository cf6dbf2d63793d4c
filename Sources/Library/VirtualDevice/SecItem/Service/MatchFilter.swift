import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains

/// The conditions of a query that apply to decrypted items.
///
/// Source: Apple `SecItemServer.c` (`match_item`, `items_matching_issuer_parent`).
struct MatchFilter {
  /// The largest number of certificates between an item and a requested issuer.
  private static let maximumChainDepth = 10

  private let conditions: MatchConditions
  /// The object ID of the token item that the query names.
  private let tokenObjectID: [UInt8]?
  private let groups: ItemQuery.AccessGroups

  init(_ query: ParsedQuery, groups: ItemQuery.AccessGroups) {
    conditions = query.matches
    self.groups = groups
    if case .token(_, let objectID) = query.reference { tokenObjectID = objectID } else { tokenObjectID = nil }
  }

  /// Whether every row matches.
  var isEmpty: Bool { !conditions.requiresRowChecks && tokenObjectID == nil }

  /// Returns the accepted issuers of a certificate: the issuers in the query, and the subjects of all certificates that
  /// these issuers issued, directly or indirectly. Certificates outside the caller's groups are ignored.
  func acceptedIssuers(
    in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Set<[UInt8]> {
    var accepted = Set((conditions.issuers ?? []).compactMap(CertificateAttributes.normalizedName))
    var newIssuers = accepted
    for _ in 0..<Self.maximumChainDepth where !newIssuers.isEmpty {
      var subjects: Set<[UInt8]> = []
      for issuer in newIssuers {
        subjects.formUnion(try certificateSubjects(issuedBy: issuer, in: transaction, keys: keys))
      }
      newIssuers = subjects.subtracting(accepted)
      accepted.formUnion(newIssuers)
    }
    return accepted
  }

  private func certificateSubjects(
    issuedBy issuer: [UInt8], in transaction: KeychainTransaction, keys: ClassKeys
  ) throws(KeyhaulError) -> Set<[UInt8]> {
    let query = ItemQuery(kind: .certificate, attributes: [.issuer: .data(issuer)], accessGroups: groups)
    var subjects: Set<[UInt8]> = []
    try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      guard let item = row.item, query.matches(item), let subject = item[.subject]?.dataValue else { return }
      subjects.insert(subject)
    }
    return subjects
  }

  /// Returns whether a candidate meets the conditions. Conditions on certificates apply to certificates and to the
  /// certificate of an identity, and not to other items.
  func matches(_ candidate: SecItemMatch, issuers: Set<[UInt8]>) -> Bool {
    if let tokenObjectID, TokenValue(of: candidate.item)?.objectID != tokenObjectID { return false }
    if let host = conditions.host, !Self.isHostOrSubdomain(candidate.item[.server], host) { return false }
    let certificate = candidate.certificate ?? candidate.item
    guard certificate.kind == .certificate else { return true }
    if conditions.issuers != nil {
      guard let issuer = certificate[.issuer]?.dataValue, issuers.contains(issuer) else { return false }
    }
    if let address = conditions.emailAddress {
      let addresses = Self.attributes(of: certificate)?.emailAddresses ?? []
      guard addresses.contains(where: { $0.lowercased() == address.lowercased() }) else { return false }
    }
    if let date = conditions.validOnDate {
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
