import Basics
import KeychainFormats
import KeychainRules

/// Reads a JSON array whose objects each name the class of their item: the format of objection and grapefruit. Each class
/// corresponds to a table of the keychain.
struct ClassTaggedObjectReader {
  let format: DumpFormat
  /// The member that names the class.
  let classMember: String
  /// The kind of item for each class name.
  let kinds: [String: ItemKind]
  /// The class names of identities, which are skipped.
  let identityClassNames: Set<String>
  /// The attribute for each member name.
  let codes: [String: AttributeCode]

  /// Returns whether a value is an array that contains an object with a class name.
  func recognizes(_ root: JSONValue) -> Bool {
    root.arrayValue?.contains { $0[classMember]?.stringValue != nil } ?? false
  }

  /// Reads all entries of an array.
  ///
  /// - Parameters:
  ///   - root: The array.
  ///   - limit: The maximum number of entries to accept.
  ///   - item: Converts an entry of a known kind of item.
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  func read(
    _ root: JSONValue, _ limit: Int,
    item: (_ members: [(String, JSONValue)], _ position: Int, _ kind: ItemKind) -> DumpedItem
  ) throws(KeyhaulError) -> KeychainDump {
    var collector = DumpCollector(format, acceptingAtMost: limit)
    for entry in root.arrayValue ?? [] {
      let position = try collector.countEntry()
      guard let members = entry.fields else {
        collector.skip(.notAnItem)
        continue
      }
      guard let className = entry[classMember]?.stringValue, !className.isEmpty else {
        collector.skip(.noTable)
        continue
      }
      if let kind = kinds[className] {
        collector.append(item(members, position, kind))
      } else if identityClassNames.contains(className) {
        collector.skip(.identity)
      } else {
        collector.skip(.unknownTable, table: className)
      }
    }
    return collector.dump()
  }

  /// Returns the attributes of an item, and the codes of attributes with unusable values.
  ///
  /// - Parameters:
  ///   - members: The members of the item's object.
  ///   - kind: The kind of the item.
  ///   - textValue: Returns the value for a text that is not empty, or `nil` if it cannot be used.
  func attributes(
    in members: [(String, JSONValue)], of kind: ItemKind, textValue: (String, AttributeCode) -> PropertyValue?
  ) -> (attributes: PropertyDictionary, unusableAttributes: [AttributeCode]) {
    var attributes = PropertyDictionary()
    var unusableAttributes: [AttributeCode] = []
    for (name, member) in members {
      guard let code = codes[name], AttributeTable.definition(of: code, in: kind) != nil else { continue }
      let value: PropertyValue?
      switch member {
      case .string(""), .null: continue
      case .string(let text): value = textValue(text, code)
      case .integer(let number): value = .integer(number)
      case .boolean(let flag): value = .boolean(flag)
      case .number, .sensitive, .array, .elements, .object: value = nil
      }
      if let value { attributes[code.rawValue] = value } else { unusableAttributes.append(code) }
    }
    return (attributes, unusableAttributes)
  }
}

extension [(String, JSONValue)] {
  /// Returns the value of the first member with a name, or `nil` if there is none.
  func firstValue(named name: String) -> JSONValue? { first { $0.0 == name }?.1 }

  /// Returns the value of the last member with a name, or `nil` if there is none.
  func lastValue(named name: String) -> JSONValue? { last { $0.0 == name }?.1 }
}
