import DataProtection
package import KeychainFormats

extension KeychainItem {
  /// The item with every known attribute as it is stored: "42" in a number attribute is 42, a group given as data is text.
  ///
  /// - Throws: `.parameter` for a value that its attribute cannot have.
  package func withConvertedAttributes() throws(KeychainRuleError) -> KeychainItem {
    var converted = self
    for definition in ColumnDefinitions.all(of: kind) {
      guard let value = attributes[definition.code] else { continue }
      let stored = value == .null ? nil : try ItemColumns.convert(value, for: definition)
      // Most are as they should be, and telling is cheaper than setting.
      if stored != value { converted[definition.code] = stored }
    }
    return converted
  }

  /// SHA-1 of the attributes and the secret that make the item what it is; the column `sha1`.
  package func storedDigest() throws(KeychainRuleError) -> [UInt8] {
    do { return try digest() } catch { throw KeychainRuleError(digesting: error) }
  }
}
