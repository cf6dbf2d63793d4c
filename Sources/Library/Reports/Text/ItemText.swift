package import KeyhaulKit

/// The texts of one line about an item: its kind, its names and its class.
package enum ItemText {
  package static func kind(_ kind: ItemKind) -> String {
    switch kind {
    case .genericPassword: "generic"
    case .internetPassword: "internet"
    case .certificate: "certificate"
    case .key: "key"
    }
  }

  /// Returns the names of an item: "chat.example · push token". Untrusted: the caller must escape it, as `Table` does.
  package static func name(_ identity: ItemDescriptor) -> String {
    if !identity.names.isEmpty { return identity.names.joined(separator: " · ") }
    let state = identity.isEncrypted ? "encrypted" : "unnamed"
    return identity.accessGroup.map { "(\(state), \($0))" } ?? "(\(state))"
  }

  /// Returns a number of tombstones: "2 tombstones of deleted items".
  package static func tombstones(_ count: Int) -> String {
    HumanReadable.count(count, "tombstone of a deleted item", plural: "tombstones of deleted items")
  }

  /// Returns the title of a column of protection classes.
  package static func protectionTitle(isShort: Bool) -> String { isShort ? "CLASS" : "PROTECTION" }

  /// Returns a protection class as text, shorter for a narrow table; a dash if the class is unknown.
  package static func protection(_ protection: ProtectionClass?, isShort: Bool = false) -> String {
    (isShort ? protection?.shortPhrase : protection?.phrase) ?? "–"
  }
}
