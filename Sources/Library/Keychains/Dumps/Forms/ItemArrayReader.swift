import Basics
import KeychainFormats

/// Reads an array of dictionaries, one for each item (`.items`, `.genericPasswords`).
enum ItemArrayReader {
  /// What at least one entry has of each such array.
  private static let telling = ["v_Data", "agrp", "pdmn", "TamperCheck"]
  private static let table = "table"
  /// Attributes that items of one table alone have, in the order in which they are asked for.
  private static let marks: [(codes: [String], kind: ItemKind)] = [
    (["srvr", "ptcl"], .internetPassword), (["kcls", "klbl"], .key), (["issr", "slnr"], .certificate),
  ]

  /// Whether an array holds an item.
  static func recognizes(_ root: [PropertyValue]) -> Bool {
    root.contains { entry in
      guard let attributes = entry.dictionaryValue else { return false }
      return telling.contains { attributes[$0] != nil }
    }
  }

  /// - Throws: `.dumpOverLimit` for more entries than a dump may have.
  static func read(_ root: [PropertyValue], _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    let isPasswords = root.allSatisfy(isEncodedPassword)
    var collector = DumpCollector(isPasswords ? .genericPasswords : .items, acceptingAtMost: limit)
    for entry in root {
      let position = try collector.nextEntry()
      guard case .dictionary(let attributes) = entry else {
        collector.skip(.notAnItem)
        continue
      }
      guard let named = attributes[table] else {
        guard let kind = kind(of: attributes) else {
          collector.skip(.noTable)
          continue
        }
        collector.take(
          attributes, at: position, as: kind, isPasswords ? .stated : .inferred, isPasswords ? .base64Text : .typed)
        continue
      }
      guard let name = named.stringValue, let kind = ItemKind(rawValue: name) else {
        let isIdentity = named.stringValue == TableName.identities
        collector.skip(isIdentity ? .identity : .unknownTable, table: isIdentity ? nil : named.stringValue)
        continue
      }
      collector.take(attributes, at: position, as: kind, .stated, .typed)
    }
    return collector.dump()
  }

  /// Whether an entry is one of `.genericPasswords`: nothing names a table or is of another one, and the secret is text.
  private static func isEncodedPassword(_ entry: PropertyValue) -> Bool {
    guard let attributes = entry.dictionaryValue else { return false }
    let isGeneric = attributes[table] == nil && kind(of: attributes) == .genericPassword
    guard isGeneric, let secret = attributes["v_Data"] else { return isGeneric }
    return secret.stringValue != nil
  }

  /// The table that has one of the attributes to itself; `nil` if none of them is there.
  static func kind(naming isThere: (String) -> Bool) -> ItemKind? {
    marks.first { $0.codes.contains(where: isThere) }?.kind
  }

  /// Returns the table that the attributes indicate; `nil` if none of them is an attribute of an item.
  private static func kind(of attributes: PropertyDictionary) -> ItemKind? {
    if let kind = kind(naming: { attributes[$0] != nil }) { return kind }
    let isItem = attributes.entries.contains { pair in
      pair.key.stringValue.map { AttributeTable.definition(of: .init(rawValue: $0), in: .genericPassword) != nil }
        ?? false
    }
    return isItem ? .genericPassword : nil
  }
}
