import KeychainCrypto
package import KeychainFormats

extension KeychainItem {
  /// Makes of every known attribute what is stored of it: of "42" in a number attribute 42, of a group given as data text.
  ///
  /// - Returns: Whether one of them became another value.
  /// - Throws: `.parameter` for a value that its attribute cannot have.
  @discardableResult
  package mutating func convertAttributes() throws(KeychainRuleError) -> Bool {
    var isChanged = false
    for definition in ColumnDefinitions.all(of: kind) {
      guard let value = attributes[definition.code] else { continue }
      let stored = value == .null ? nil : try ItemColumns.convert(value, for: definition)
      // Most are as they should be, and telling is cheaper than setting.
      guard stored != value else { continue }
      self[definition.code] = stored
      isChanged = true
    }
    return isChanged
  }

  /// SHA-1 of the attributes and the secret that make the item what it is; the column `sha1`.
  package func storedDigest() throws(KeychainRuleError) -> [UInt8] {
    do { return try digest() } catch { throw KeychainRuleError(digesting: error) }
  }
}
