import Basics

extension ParsedQuery {
  /// Adds a use key, such as `u_AuthUI`.
  mutating func parseUse(_ key: String, _ value: SecItemValue, for call: SecItemCall) throws(SecItemError) {
    switch key {
    case "u_AuthUI":
      guard let choice = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      try parseInteraction(choice, for: call)
    case "u_NoAuthUI":
      guard let isForbidden = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
      if isForbidden { interaction = .forbidden }
    case "u_AuthCtx":
      guard case .context(let newContext) = value else {
        throw SecItemError(.parameter, "\(key) is not an authentication context")
      }
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential cannot be combined") }
      context = newContext
    case "u_CredRef":
      guard value.dataValue != nil else { throw SecItemError(.parameter, "\(key) is not data") }
      // The keys are parsed in the order of their names, so the context was parsed before.
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential cannot be combined") }
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

  private mutating func parseInteraction(_ choice: String, for call: SecItemCall) throws(SecItemError) {
    switch choice {
    case "u_AuthUIF": interaction = .forbidden
    case "u_AuthUIS":
      guard call == .copyMatching else {
        throw SecItemError(.parameter, "only searches can skip items")
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
