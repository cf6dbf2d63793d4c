import Basics
package import KeychainFormats

extension KeychainDifference {
  /// What a reader sees of an item.
  private struct Reading: Hashable {
    let kind: ItemKind
    let names: [String]
  }

  /// What tells items apart that read the same: those parts of their primary keys in which they differ.
  ///
  /// - Returns: For each item, in order; nothing for one whose names no other has.
  static func distinctions(among items: [ComparedItem]) -> [[String]] {
    distinctions(among: items.lazy.map { ($0.identity, $0.item) })
  }

  /// The same of items in any table; those of which nothing but a name is known are told apart from no other.
  ///
  /// - Parameter items: From 0 on. Each is asked for some times, so that not all have to be there at once.
  package static func distinctions<Items: RandomAccessCollection>(
    among items: Items
  ) -> [[String]] where Items.Element == (identity: ItemIdentity, item: KeychainItem?), Items.Index == Int {
    var result = [[String]](repeating: [], count: items.count)
    for (reading, positions) in readAlike(items) {
      for definition in AttributeTable.definitions(of: reading.kind) where definition.flags.contains(.primaryKey) {
        let values = positions.map { position in
          items[position].item.flatMap { ItemChange.value(of: definition.code, in: $0) }
        }
        guard values.contains(where: { !ItemChange.isSame(values[0], $0) }) else { continue }
        for (position, phrase) in zip(positions, phrases(definition, values)) { result[position].append(phrase) }
      }
    }
    return result
  }

  /// The positions of items that read the same, by what a reader sees. Most read like no other, and no name of them is kept.
  private static func readAlike<Items: RandomAccessCollection>(
    _ items: Items
  ) -> [Reading: [Int]] where Items.Element == (identity: ItemIdentity, item: KeychainItem?), Items.Index == Int {
    func reading(_ position: Int) -> Reading {
      let identity = items[position].identity
      return Reading(kind: identity.kind, names: identity.names)
    }
    let hashes = items.indices.map { reading($0).hashValue }
    let sorted = hashes.sorted()
    let repeated = Set(zip(sorted, sorted.dropFirst()).lazy.filter { $0 == $1 }.map(\.0))
    guard !repeated.isEmpty else { return [:] }
    let candidates = items.indices.filter { repeated.contains(hashes[$0]) }
    return Dictionary(grouping: candidates, by: reading).filter { $0.value.count > 1 }
  }

  private static func phrases(_ definition: AttributeDefinition, _ values: [PropertyValue?]) -> [String] {
    if definition.code == .synchronizable {
      return values.map { $0 == .integer(1) ? "synced" : "not synced" }
    }
    let texts = values.map { value in
      if case .date(let date) = value { return Timestamp.text(of: date) }
      return ItemIdentity.text(value) ?? ""
    }
    // Two spellings that Unicode has for one text look the same, and are compared by their bytes.
    let looksTheSame = Set(texts).count == 1
    return texts.map { text in
      if text.isEmpty || text == "0" { return "no \(definition.words)" }
      return "\(definition.words) \(looksTheSame ? "0x" + String(hexadecimal: Array(text.utf8)) : text)"
    }
  }
}
