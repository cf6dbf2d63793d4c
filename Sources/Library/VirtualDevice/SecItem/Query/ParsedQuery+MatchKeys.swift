import Basics

/// The match keys of a query.
struct MatchConditions {
  /// The number of keys that begin with `m_`, including `m_Limit`.
  var count = 0
  /// `m_HostOrSubdomainOfHost`.
  var host: String?
  /// `m_EmailAddressIfPresent`.
  var emailAddress: String?
  /// `m_Issuers`: issuer names in DER.
  var issuers: [[UInt8]]?
  /// Whether the query contains `m_Policy`.
  var hasPolicy = false
  /// `m_ValidOnDate`.
  var validOnDate: KeychainDate?
  /// `m_TrustedOnly`.
  var isTrustedOnly = false

  /// Whether rows have to be checked individually, so that the database cannot apply the limit.
  var requiresRowChecks: Bool {
    host != nil || emailAddress != nil || issuers != nil || validOnDate != nil || isTrustedOnly
  }
}

extension ParsedQuery {
  /// Adds a match key. Keys that the daemon of an iPhone ignores are counted but have no effect.
  mutating func parseMatch(_ key: String, _ value: SecItemValue, now: KeychainDate) throws(SecItemError) {
    matches.count += 1
    switch key {
    case "m_Limit": limit = try Self.limit(value)
    case "m_HostOrSubdomainOfHost":
      guard let host = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      matches.host = host
    case "m_EmailAddressIfPresent":
      guard let address = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      matches.emailAddress = address
    case "m_Issuers":
      guard let names = value.arrayValue else { return }
      let issuers = names.compactMap(\.dataValue)
      if !issuers.isEmpty { matches.issuers = issuers }
    case "m_Policy": matches.hasPolicy = true
    case "m_ValidOnDate":
      switch value {
      case .null: matches.validOnDate = now
      case .date(let date): matches.validOnDate = date
      default: throw SecItemError(.parameter, "\(key) is not a date or null")
      }
    case "m_TrustedOnly":
      guard let isTrustedOnly = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
      matches.isTrustedOnly = isTrustedOnly
    default: break
    }
  }

  private static func limit(_ value: SecItemValue) throws(SecItemError) -> Limit {
    switch value {
    case .string("m_LimitOne"), .number(1): return .one
    case .string("m_LimitAll"): return .all
    case .number(let count):
      guard let count = Int(exactly: count), count >= 0 else { break }
      return .atMost(count)
    default: break
    }
    throw SecItemError(.parameter, "m_Limit is neither a number nor one of its two constants")
  }
}
