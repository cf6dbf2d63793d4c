import Basics
import KeychainFormats

/// A reader for the JSON object that `irestore dumpkeys` writes: an array of items for each kind (`.irestore`).
///
/// Values keep their types, except that data is Base64 text. The program writes null for a date that it cannot read, and
/// leaves out items whose class key it does not have.
///
/// Source: dunhamsteve/ios, `cmd/irestore/irestore.go` (`dumpkeys`, `parseRecord`); Go, `encoding/json` (byte slices).
enum IRestoreReader {
  private static let kinds: [String: ItemKind] = [
    "General": .genericPassword, "Internet": .internetPassword, "Certs": .certificate, "Keys": .key,
  ]

  /// Returns whether a value is an object with an array or null for each kind.
  static func recognizes(_ root: JSONValue) -> Bool {
    guard let members = root.objectValue else { return false }
    return kinds.keys.allSatisfy { name in
      guard let value = members[name] else { return false }
      if case .null = value { return true }
      return value.arrayValue != nil
    }
  }

  /// Reads all entries.
  ///
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  static func read(_ root: JSONValue, _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    var collector = DumpCollector(.irestore, acceptingAtMost: limit)
    for (name, value) in root.fields ?? [] {
      for entry in value.arrayValue ?? [] {
        let position = try collector.nextEntry()
        guard let kind = kinds[name] else {
          collector.skip(.unknownTable, table: name)
          continue
        }
        guard let members = entry.fields, !members.isEmpty else {
          collector.skip(.notAnItem)
          continue
        }
        var unusable: [AttributeCode] = []
        let attributes = attributes(members, of: kind, &unusable)
        collector.append(attributes, at: position, as: kind, .stated, .base64Text, unusable: unusable)
      }
    }
    return collector.dump()
  }

  /// Converts the members of an item. Secrets stay Base64 text.
  private static func attributes(
    _ members: [(String, JSONValue)], of kind: ItemKind, _ unusable: inout [AttributeCode]
  ) -> PropertyDictionary {
    var entries: [PropertyDictionary.Entry] = []
    for (name, value) in members {
      let code = AttributeCode(rawValue: name)
      if let converted = convert(value, AttributeTable.definition(of: code, in: kind)) {
        entries.append(.init(key: .string(name), value: converted))
      } else {
        unusable.append(code)
      }
    }
    return PropertyDictionary(entries)
  }

  /// Returns a value with the type of the attribute; `nil` if it cannot have this value.
  private static func convert(_ value: JSONValue, _ definition: AttributeDefinition?) -> PropertyValue? {
    switch value {
    case .string(let text):
      guard let definition, !definition.flags.contains(.returnedAsData) else { return .string(text) }
      switch definition.kind {
      case .data, .encryptedData, .sha1, .primaryKey, .uuid, .accessControl:
        return Base64Digits.bytes(of: text.utf8).map(PropertyValue.data)
      case .rowID, .creationDate, .modificationDate, .date, .blob, .string, .number, .access, .sync, .tomb,
        .useTombstone:
        return .string(text)
      }
    case .integer(let number): return .integer(number)
    case .boolean(let flag): return .boolean(flag)
    case .null, .number, .sensitive, .array, .elements, .object: return nil
    }
  }
}
