package import KeyhaulKit

/// The text that names an item in a line: its kind and its names.
package enum ItemText {
  package static func kind(_ kind: ItemKind) -> String {
    switch kind {
    case .genericPassword: "generic"
    case .internetPassword: "internet"
    case .certificate: "certificate"
    case .key: "key"
    }
  }

  /// "chat.example · push token". Hostile: to be escaped where it is shown, as tables do.
  package static func name(_ identity: ItemDescriptor) -> String {
    if !identity.names.isEmpty { return identity.names.joined(separator: " · ") }
    let state = identity.isSealed ? "sealed" : "unnamed"
    return identity.accessGroup.map { "(\(state), \($0))" } ?? "(\(state))"
  }

  /// Returns the title of a column of protection classes.
  package static func protectionTitle(isShort: Bool) -> String { isShort ? "CLASS" : "PROTECTION" }

  /// The protection class in words, in fewer of them in a narrow table; a dash where it is not known.
  package static func protection(_ protection: ProtectionClass?, isShort: Bool = false) -> String {
    (isShort ? protection?.shortPhrase : protection?.phrase) ?? "–"
  }
}
