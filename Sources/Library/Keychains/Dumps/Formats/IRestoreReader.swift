import Basics
import KeychainFormats
import KeychainRules

/// A reader for the JSON object that `irestore dumpkeys` writes: an array of items for each kind (`.irestore`).
///
/// ```
/// Selected …
/// No key for class 11 genp [0 0 0 0 0 0 144 75]
/// {
///   "General": [{"acct": "anna", "v_Data": "c2VjcmV0", "_class": 6, "_fieldOrder": "acct,v_Data", …}],
///   "Internet": [], "Certs": null, "Keys": null
/// }
/// ```
///
/// Values keep their types, except that data is Base64 text. Newer versions list the types beside the attributes, under
/// names that begin with "_". The program writes null for a date that it cannot read. It omits items whose class
/// key it does not have. If it prints its lines about omitted items to the same file, they come before the JSON.
///
/// Source: dunhamsteve/ios, `cmd/irestore/irestore.go` (`dumpkeys`, `parseRecord`, `unparseRecord`); Go,
/// `encoding/json` (byte slices).
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

  // MARK: Lines before the JSON

  private static let firstLine = "Selected "
  /// The starts of lines about an item that the program omits. The number of the item's class follows.
  private static let omissionPrefixes = ["No key for class ", "unwrap failed for class "]

  private static let maximumOmissionByteCount = 200

  /// An item that the program omitted.
  struct OmittedItem {
    /// The table; `nil` if the line does not name it.
    let kind: ItemKind?
    let protection: ProtectionClass?
  }

  /// Returns whether a file that starts with these bytes may have lines before the JSON.
  static func hasLinesBefore(_ start: [UInt8]) -> Bool { start.starts(with: firstLine.utf8) }

  /// Separates the lines before the JSON, which begins with a line that is only a brace.
  ///
  /// - Returns: The JSON, with an empty line in place of each line before it, and the items that these lines name; `nil`
  ///   if there is no JSON.
  static func parts(of bytes: [UInt8]) -> (json: [UInt8], omitted: [OmittedItem])? {
    var omitted: [OmittedItem] = []
    var lineCount = 0
    var lines = TextLines(bytes[...])
    while let line = lines.next() {
      if line.elementsEqual("{".utf8) {
        // With the empty lines, an error in the JSON names the line of the file.
        return (Array(repeating: UInt8(ascii: "\n"), count: lineCount) + Array("{\n".utf8) + lines.remaining, omitted)
      }
      lineCount += 1
      if omitted.count <= KeychainDump.maximumItemCount, let item = omittedItem(line) { omitted.append(item) }
    }
    return nil
  }

  /// Reads "No key for class 11 genp [0 0 0 0 0 0 144 75]". Older versions end the line after the number.
  private static func omittedItem(_ line: ArraySlice<UInt8>) -> OmittedItem? {
    guard line.count <= maximumOmissionByteCount,
      let prefix = omissionPrefixes.first(where: { line.starts(with: $0.utf8) }),
      let words = String(validating: line.dropFirst(prefix.utf8.count), as: UTF8.self)?.split(separator: " "),
      let keyClass = words.first.flatMap({ UInt32($0) }).map(KeyClass.init(rawValue:))
    else { return nil }
    return OmittedItem(
      kind: words.dropFirst().first.flatMap { ItemKind(rawValue: String($0)) },
      protection: ProtectionClass(keyClass: keyClass))
  }

  // MARK: Reading

  /// Reads all entries.
  ///
  /// - Parameters:
  ///   - root: The JSON object.
  ///   - limit: The maximum number of entries to accept.
  ///   - omitted: The items that the lines before the JSON name.
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  static func read(
    _ root: JSONValue, _ limit: Int, omitted: [OmittedItem] = []
  ) throws(KeyhaulError) -> KeychainDump {
    var collector = DumpCollector(.irestore, acceptingAtMost: limit)
    for item in omitted { try append(item, to: &collector) }
    for (name, value) in root.fields ?? [] {
      for entry in value.arrayValue ?? [] {
        let position = try collector.countEntry()
        if let kind = kinds[name] {
          append(entry, at: position, as: kind, to: &collector)
        } else {
          collector.skip(.unknownTable, table: name)
        }
      }
    }
    return collector.dump()
  }

  private static func append(_ item: OmittedItem, to collector: inout DumpCollector) throws(KeyhaulError) {
    let position = try collector.countEntry()
    guard let kind = item.kind else { return collector.skip(.noTable) }
    let fault = DumpFault(.noClassKey, "irestore had no key of its class")
    collector.append(
      DumpedItem(entryPosition: position, kind: kind, content: .undecryptable(fault, protection: item.protection)))
  }

  private static func append(
    _ entry: JSONValue, at position: Int, as kind: ItemKind, to collector: inout DumpCollector
  ) {
    guard let members = entry.fields, !members.isEmpty else { return collector.skip(.notAnItem) }
    let (attributes, unusableAttributes) = attributes(in: members, of: kind)
    collector.append(
      attributes, at: position, as: kind, tableSource: .stated, style: .base64Text,
      unusableAttributes: unusableAttributes)
  }

  /// Returns the attributes of an item with their secrets as Base64 text, and the codes of attributes with unusable
  /// values.
  private static func attributes(
    in members: [(String, JSONValue)], of kind: ItemKind
  ) -> (attributes: PropertyDictionary, unusableAttributes: [AttributeCode]) {
    var entries: [PropertyDictionary.Entry] = []
    var unusableAttributes: [AttributeCode] = []
    let dataNames = dataNames(members)
    for (name, value) in members where !name.hasPrefix("_") {
      let code = AttributeCode(rawValue: name)
      let definition = AttributeTable.definition(of: code, in: kind)
      let isSecret = definition?.flags.contains(.returnedAsData) == true
      let isData = !isSecret && (dataNames.contains(name[...]) || definition.map { isAlwaysData($0.kind) } == true)
      if let converted = convert(value, isData: isData) {
        entries.append(.init(key: .string(name), value: converted))
      } else {
        unusableAttributes.append(code)
      }
    }
    if members.firstValue(named: AttributeCode.protection.rawValue) == nil, let protection = protection(in: members) {
      entries.append(.init(key: .string(AttributeCode.protection.rawValue), value: .string(protection.rawValue)))
    }
    return (PropertyDictionary(entries), unusableAttributes)
  }

  /// Returns the protection class with the number in `_class`, or `nil` if there is none.
  private static func protection(in members: [(String, JSONValue)]) -> ProtectionClass? {
    guard case .integer(let number)? = members.firstValue(named: "_class"), let rawClass = UInt32(exactly: number)
    else {
      return nil
    }
    return ProtectionClass(keyClass: KeyClass(rawValue: rawClass))
  }

  /// Returns the names of the attributes that newer versions list as data, in `_fieldOrder` and `_fieldTypes`.
  private static func dataNames(_ members: [(String, JSONValue)]) -> Set<Substring> {
    func values(ofMember name: String) -> [Substring] {
      members.firstValue(named: name)?.stringValue?.split(separator: ",", omittingEmptySubsequences: false) ?? []
    }
    let (names, types) = (values(ofMember: "_fieldOrder"), values(ofMember: "_fieldTypes"))
    guard names.count == types.count else { return [] }
    return Set(zip(names, types).filter { $1 == "[]uint8" }.map(\.0))
  }

  private static func isAlwaysData(_ kind: AttributeKind) -> Bool {
    switch kind {
    case .data, .encryptedData, .sha1, .primaryKey, .uuid, .accessControl: true
    case .rowID, .creationDate, .modificationDate, .date, .blob, .string, .number, .access, .sync, .tomb, .useTombstone:
      false
    }
  }

  /// Returns the value of an attribute; `nil` if no attribute can have this value.
  private static func convert(_ value: JSONValue, isData: Bool) -> PropertyValue? {
    switch value {
    case .string(let text): isData ? Base64Digits.bytes(of: text.utf8).map(PropertyValue.data) : .string(text)
    case .integer(let number): .integer(number)
    case .boolean(let flag): .boolean(flag)
    case .null, .number, .sensitive, .array, .elements, .object: nil
    }
  }
}
