import ArchivedKeychain
import CommandSession
import KeychainFormats
import KeychainStore
import Migration

/// How an item is named in a line of text: its kind in a word, and what a person knows it by.
enum ItemText {
  static func kind(_ kind: ItemKind) -> String {
    switch kind {
    case .genericPassword: "generic"
    case .internetPassword: "internet"
    case .certificate: "certificate"
    case .key: "key"
    }
  }

  /// "chat.example · push token". Hostile: to be escaped where it is shown, as tables do.
  static func name(_ identity: ItemIdentity) -> String {
    if !identity.names.isEmpty { return identity.names.joined(separator: " · ") }
    let state = identity.isSealed ? "sealed" : "unnamed"
    return identity.accessGroup.map { "(\(state), \($0))" } ?? "(\(state))"
  }

  /// "generic password "chat.example · anna"", in one line that is safe to show.
  static func line(of row: ItemRow) -> String {
    "\(row.summary.kind.noun) \"\(HostileText.shown(name(row.identity), columns: 80))\""
  }

  /// What stands above a column of protection classes.
  static func protectionTitle(isShort: Bool) -> String { isShort ? "CLASS" : "PROTECTION" }

  /// The protection class in words, or by its code in a narrow table; a dash where it is not known.
  static func protection(_ protection: ProtectionClass?, isShort: Bool = false) -> String {
    (isShort ? protection?.rawValue : protection?.phrase) ?? "–"
  }
}
