import KeychainCrypto
package import KeychainFormats

extension KeychainItem {
  /// Converts every known attribute to the type that is stored: "42" in a number attribute becomes 42.
  ///
  /// - Returns: Whether a value changed.
  /// - Throws: `.parameter` if an attribute cannot have its value.
  @discardableResult
  package mutating func convertAttributes() throws(KeychainRuleError) -> Bool {
    var isChanged = false
    for definition in ColumnDefinitions.all(of: kind) {
      guard let value = attributes[definition.code] else { continue }
      let stored = value == .null ? nil : try ItemColumns.convert(value, for: definition)
      // Most values need no conversion, and comparing them is cheaper than setting them.
      guard stored != value else { continue }
      self[definition.code] = stored
      isChanged = true
    }
    return isChanged
  }

  /// Returns the SHA-1 of the attributes and the secret that identify the item, for the column `sha1`.
  package func storedDigest() throws(KeychainRuleError) -> [UInt8] {
    do {
      return try digest()
    } catch {
      throw KeychainRuleError(digesting: error)
    }
  }
}
