package import KeyhaulKit

extension ItemText {
  /// Returns an item in one line, with escaped names: `generic password "chat.example · anna"`.
  package static func line(of entry: KeychainEntry) -> String {
    "\(entry.kind.noun) \"\(UntrustedText.escaped(name(entry.identity), columns: 80))\""
  }

  /// The title of the column with the differences between items with the same description.
  package static var distinctionTitle: String { "DIFFERS IN" }

  /// Returns the differences between items with the same description in a table, such as "port 8443" or "access group
  /// ABCDE12345.org.example.chat".
  ///
  /// - Returns: One text for each item, in order; empty if the item is encrypted or its description is unique.
  package static func disambiguators<Items: RandomAccessCollection>(
    _ items: Items
  ) -> [String] where Items.Element == KeychainItem?, Items.Index == Int {
    let decryptedIndexes = items.indices.filter { items[$0] != nil }
    let differencesByItem = KeychainDifference.disambiguators(
      among: decryptedIndexes.lazy.map { index in
        // Every one of these indexes has an item, so the substitute is never used.
        let item = items[index] ?? KeychainItem(kind: .genericPassword)
        return (ItemDescriptor(item), item)
      })
    var texts = [String](repeating: "", count: items.count)
    for (index, differences) in zip(decryptedIndexes, differencesByItem) {
      texts[index] = differences.joined(separator: ", ")
    }
    return texts
  }

  /// Returns the name of an item for reports. A key without a label is named by its tag, or by its known attributes:
  /// "P-256, private", or "key" if none is known. Untrusted.
  package static func name(of item: KeychainItem) -> String {
    let identity = ItemDescriptor(item)
    guard item.kind == .key, identity.names.isEmpty else { return name(identity) }
    if let tag = item[.applicationTag]?.dataValue.flatMap({ String(validating: $0, as: UTF8.self) }), !tag.isEmpty {
      return tag
    }
    let parts = [material(of: item), role(of: item)].compactMap(\.self)
    return parts.isEmpty ? "key" : parts.joined(separator: ", ")
  }

  /// Returns the type and the size of a key, such as "RSA, 2,048 bits" or "P-256"; `nil` if the item states neither.
  private static func material(of item: KeychainItem) -> String? {
    let size = number(.keySizeInBits, of: item).flatMap { $0 > 0 ? $0 : nil }
    let bits = size.map { "\(HumanReadable.grouped($0)) bits" }
    switch number(.type, of: item).flatMap(KeyMaterial.KeyType.init(rawValue:)) {
    case .rsa: return ["RSA", bits].compactMap(\.self).joined(separator: ", ")
    case .ellipticCurve: return size.map { "P-\($0)" } ?? "elliptic curve"
    case nil: return bits
    }
  }

  /// Returns "public" or "private"; `nil` if the role of the key is unknown.
  private static func role(of item: KeychainItem) -> String? {
    switch number(.keyClass, of: item).flatMap(KeyMaterial.Role.init(rawValue:)) {
    case .publicKey: "public"
    case .privateKey: "private"
    case nil: nil
    }
  }

  /// Returns an attribute that is a number, or a text of digits, as some writers store it.
  private static func number(_ code: AttributeCode, of item: KeychainItem) -> Int64? {
    item[code]?.integerValue ?? item[code]?.stringValue.flatMap { Int64($0) }
  }
}
