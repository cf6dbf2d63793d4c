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
      let position = try collector.countEntry()
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
      collector.append(attributes, at: position, as: kind, tableSource: .stated, style: .typed)
    } else if let kind = kind(of: attributes) {
      let isPassword = collector.format == .genericPasswords
      collector.append(
        attributes, at: position, as: kind, tableSource: isPassword ? .stated : .inferred,
        style: isPassword ? .base64Text : .typed)
    } else {
      collector.skip(.noTable)
    }
  }

  /// Returns whether an entry can be from a dump of `.genericPasswords`: it names no table, has no attribute that only
  /// another table has, and its secret is text or missing.
  private static func isEncodedPassword(_ entry: PropertyValue) -> Bool {
    guard let attributes = entry.dictionaryValue else { return false }
    let isGeneric = attributes[tableKey] == nil && kind(of: attributes) == .genericPassword
    guard isGeneric, let secret = attributes["v_Data"] else { return isGeneric }
    return secret.stringValue != nil
  }

  /// Returns the table of an item that has an attribute of only one table; `nil` if the item has no such attribute.
  ///
  /// - Parameter hasAttribute: Returns whether the item has the attribute with a code.
  static func kind(determinedBy hasAttribute: (String) -> Bool) -> ItemKind? {
    kindMarkers.first { $0.codes.contains(where: hasAttribute) }?.kind
  }

  /// Returns the table that the attributes indicate; `nil` if none of them is an attribute of an item.
  private static func kind(of attributes: PropertyDictionary) -> ItemKind? {
    if let kind = kind(determinedBy: { attributes[$0] != nil }) { return kind }
    let isItem = attributes.entries.contains { pair in
      guard let code = pair.key.stringValue.map(AttributeCode.init(rawValue:)) else { return false }
      return AttributeTable.definition(of: code, in: .genericPassword) != nil
    }
    return isItem ? .genericPassword : nil
  }
}
