import Basics
import KeychainFormats

/// A reader for an array of dictionaries, one for each item (`.items`, `.genericPasswords`).
enum ItemArrayReader {
  /// Keys that identify the dictionary of an item. At least one entry of an array has one of them.
  private static let signatureKeys = ["v_Data", "agrp", "pdmn", "TamperCheck"]
  private static let tableKey = "table"
  /// Attributes that only items of one table have, in the order in which they are checked.
  private static let kindMarkers: [(codes: [String], kind: ItemKind)] = [
    (["srvr", "ptcl"], .internetPassword), (["kcls", "klbl"], .key), (["issr", "slnr"], .certificate),
  ]

  /// Returns whether an array contains an item.
  static func recognizes(_ root: [PropertyValue]) -> Bool {
    root.contains { entry in
      guard let attributes = entry.dictionaryValue else { return false }
      return signatureKeys.contains { attributes[$0] != nil }
    }
  }

  /// Reads all entries of an array.
  ///
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  static func read(_ root: [PropertyValue], _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    let hasOnlyPasswords = root.allSatisfy(isEncodedPassword)
    var collector = DumpCollector(hasOnlyPasswords ? .genericPasswords : .items, acceptingAtMost: limit)
    for entry in root {
      let position = try collector.nextEntry()
      append(entry, at: position, to: &collector)
    }
    return collector.dump()
  }

  private static func append(_ entry: PropertyValue, at position: Int, to collector: inout DumpCollector) {
    guard case .dictionary(let attributes) = entry else { return collector.skip(.notAnItem) }
    if let table = attributes[tableKey] {
      guard let kind = table.stringValue.flatMap(ItemKind.init(rawValue:)) else {
        return collector.skipEntry(ofTable: table.stringValue)
      }
      collector.append(attributes, at: position, as: kind, .stated, .typed)
    } else if let kind = kind(of: attributes) {
      let isPassword = collector.format == .genericPasswords
      collector.append(
        attributes, at: position, as: kind, isPassword ? .stated : .inferred, isPassword ? .base64Text : .typed)
    } else {
      collector.skip(.noTable)
    }
  }

  /// Returns whether an entry can be one of `.genericPasswords`: it names no table, has no attribute of another table,
  /// and its secret is text.
  private static func isEncodedPassword(_ entry: PropertyValue) -> Bool {
    guard let attributes = entry.dictionaryValue else { return false }
    let isGeneric = attributes[tableKey] == nil && kind(of: attributes) == .genericPassword
    guard isGeneric, let secret = attributes["v_Data"] else { return isGeneric }
    return secret.stringValue != nil
  }

  /// Returns the table that one of the present attributes belongs to exclusively; `nil` if there is no such attribute.
  static func kind(naming isPresent: (String) -> Bool) -> ItemKind? {
    kindMarkers.first { $0.codes.contains(where: isPresent) }?.kind
  }

  /// Returns the table that the attributes indicate; `nil` if none of them is an attribute of an item.
  private static func kind(of attributes: PropertyDictionary) -> ItemKind? {
    if let kind = kind(naming: { attributes[$0] != nil }) { return kind }
    let isItem = attributes.entries.contains { pair in
      guard let code = pair.key.stringValue.map(AttributeCode.init(rawValue:)) else { return false }
      return AttributeTable.definition(of: code, in: .genericPassword) != nil
    }
    return isItem ? .genericPassword : nil
  }
}
