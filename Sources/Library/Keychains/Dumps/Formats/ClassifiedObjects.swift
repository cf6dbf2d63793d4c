import Basics
import KeychainFormats
import KeychainRules

/// A reader for a JSON array of objects that each name the class of their item, as objection and grapefruit write it.
struct ClassifiedObjects {
  let format: DumpFormat
  /// The member that names the class.
  let classMember: String
  let kinds: [String: ItemKind]
  /// The names of the class of identities.
  let identities: Set<String>

  /// Returns whether a value is an array that contains an object with a class.
  func recognizes(_ root: JSONValue) -> Bool {
    root.arrayValue?.contains { $0[classMember]?.stringValue != nil } ?? false
  }

  /// Reads all entries of an array.
  ///
  /// - Parameters:
  ///   - root: The array.
  ///   - limit: The most entries to accept.
  ///   - item: Converts the members of an entry of a known class. It also gets the entry's position and its table.
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  func read(
    _ root: JSONValue, _ limit: Int, item: (_ members: [(String, JSONValue)], _ position: Int, ItemKind) -> DumpedItem
  ) throws(KeyhaulError) -> KeychainDump {
    var collector = DumpCollector(format, acceptingAtMost: limit)
    for entry in root.arrayValue ?? [] {
      let position = try collector.nextEntry()
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
      } else if identities.contains(className) {
        collector.skip(.identity)
      } else {
        collector.skip(.unknownTable, table: className)
      }
    }
    return collector.dump()
  }
}

extension [(String, JSONValue)] {
  /// Returns the value of the first member with a name, or `nil` if there is none.
  func firstValue(named name: String) -> JSONValue? { first { $0.0 == name }?.1 }
}
