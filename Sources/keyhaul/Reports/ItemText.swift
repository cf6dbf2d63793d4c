import ArchivedKeychain
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

  /// "generic password", for sentences.
  static func noun(_ kind: ItemKind) -> String {
    switch kind {
    case .genericPassword: "generic password"
    case .internetPassword: "internet password"
    case .certificate: "certificate"
    case .key: "key"
    }
  }

  /// "chat.example · push token". Hostile: to be escaped where it is shown, as tables do.
  static func name(_ identity: ItemIdentity) -> String {
    let parts: [String?] =
      switch identity.kind {
      case .genericPassword: [identity.service, identity.account]
      case .internetPassword: [identity.server, identity.account]
      case .certificate, .key: [identity.label]
      }
    let known = parts.compactMap(\.self).filter { !$0.isEmpty }
    if !known.isEmpty { return known.joined(separator: " · ") }
    if let label = identity.label, !label.isEmpty { return label }
    let state = identity.isSealed ? "sealed" : "unnamed"
    return identity.accessGroup.map { "(\(state), \($0))" } ?? "(\(state))"
  }

  /// "generic password "chat.example · anna"", in one line that is safe to show.
  static func line(of row: ItemRow) -> String {
    "\(noun(row.summary.kind)) \"\(HostileText.shown(name(row.identity), columns: 80))\""
  }

  /// The protection class in words, or a dash where it is not known.
  static func protection(_ protection: ProtectionClass?) -> String { protection?.phrase ?? "–" }
}
