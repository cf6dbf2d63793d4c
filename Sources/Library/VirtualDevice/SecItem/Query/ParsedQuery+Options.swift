import Basics
import KeychainFormats

extension ParsedQuery {
  /// The match keys. Those that the daemon of an iPhone does not look at count and do nothing.
  mutating func takeMatch(_ key: String, _ value: SecItemValue, now: KeychainDate) throws(SecItemError) {
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
      case .null: matches.validDate = now
      case .date(let date): matches.validDate = date
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

  mutating func takeUse(_ key: String, _ value: SecItemValue, for call: SecItemCall) throws(SecItemError) {
    switch key {
    case "u_AuthUI":
      guard let choice = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      try takeInteraction(choice, for: call)
    case "u_NoAuthUI":
      guard let isForbidden = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
      if isForbidden { interaction = .forbidden }
    case "u_AuthCtx":
      guard case .context(let given) = value else {
        throw SecItemError(.parameter, "\(key) is not an authentication context")
      }
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential exclude each other") }
      context = given
    case "u_CredRef":
      guard value.dataValue != nil else { throw SecItemError(.parameter, "\(key) is not data") }
      // Keys are taken by name, so a context was taken before.
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential exclude each other") }
    case "u_OpPrompt":
      guard let text = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      prompt = text
    case "u_CallerName", "u_CertWithIssuers": break
    case "u_TokenRawItems": wantsRawTokenItems = value.booleanValue ?? false
    case "u_Tomb": usesTombstone = try Self.tombstoneUse(value)
    case "u_SystemKeychain", "u_SyncBubbleKeychain":
      throw SecItemError(.missingEntitlement, "an app has no entitlement for the system's keychains")
    case "u_ItemList": throw SecItemError(.parameter, "lists of items are not supported")
    default: throw SecItemError(.parameter, "there is no such use key")
    }
  }

  private mutating func takeInteraction(_ choice: String, for call: SecItemCall) throws(SecItemError) {
    switch choice {
    case "u_AuthUIF": interaction = .forbidden
    case "u_AuthUIS":
      guard call == .copyMatching else {
        throw SecItemError(.parameter, "items are skipped by searches only")
      }
      interaction = .skipped
    default: break
    }
  }

  private static func tombstoneUse(_ value: SecItemValue) throws(SecItemError) -> Bool {
    switch value {
    case .boolean(let flag): return flag
    case .number(let number): return number != 0
    case .string(let text): return Int(text).map { $0 != 0 } ?? false
    default: throw SecItemError(.parameter, "u_Tomb is neither a boolean nor a number")
    }
  }
}
