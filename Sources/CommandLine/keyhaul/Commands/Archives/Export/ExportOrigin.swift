import KeyhaulKit
import Reports

/// Where the items of an export are from.
struct ExportOrigin {
  enum Kind { case archive, device, dump }

  let kind: Kind
  /// What the user called it.
  let name: String
  /// Whether it is some of its items that are meant.
  let isRestricted: Bool
  /// Of a dump: what is said of it. Its secrets are in clear, also those that an access control guarded.
  var statement: DumpStatement?

  /// What a document says of what it cannot know.
  var unseenFields: [(String, JSONValue)] {
    kind == .archive ? [UnseenItems.field] : statement.map { [$0.field] } ?? []
  }

  var keepsGuarded: Bool { kind != .dump }

  /// Of the items, before they are written.
  func document(revealsSecrets: Bool) -> ItemDocument {
    let noun =
      switch kind {
      case .archive: "archive"
      case .device: "device"
      case .dump: "dump"
      }
    return ItemDocument(source: (noun, name), indexes: [:], revealsSecrets: revealsSecrets, keepsGuarded: keepsGuarded)
  }
}
