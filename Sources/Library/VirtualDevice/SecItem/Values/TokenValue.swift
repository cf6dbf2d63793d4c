package import Basics
package import KeychainFormats

/// The `v_Data` of an item on a token: the token's identifier for the object, its access control, and its value if the
/// token reveals one.
///
/// Source: Apple `SecItem.m` (`SecTokenItemValueCreate`, `SecTokenItemValueCopy`).
package struct TokenValue: Sendable {
  private enum Key {
    static let object = "oid"
    static let accessControl = "ac"
    static let value = "data"
  }

  /// The token's identifier for the object. For a key of the Secure Enclave, it contains the wrapped private key.
  package let objectID: [UInt8]
  /// The constraints by operation; `nil` if there are none.
  package let accessControl: PropertyDictionary?
  /// The value that the token reveals, such as the public key of a private key.
  package let value: [UInt8]?

  /// Creates the value of an item on a token.
  package init(objectID: [UInt8], accessControl: PropertyDictionary?, value: [UInt8]?) {
    self.objectID = objectID
    self.accessControl = accessControl
    self.value = value
  }

  /// Decodes the value of an item.
  ///
  /// - Returns: `nil` if the item is not on a token or its bytes are not such a dictionary.
  package init?(of item: KeychainItem) {
    guard !(item[.tokenID]?.stringValue ?? "").isEmpty, let secret = item.secret,
      let value = try? secret.withBytes({ (bytes) throws(FormatError) in try DERPropertyList.decode(bytes) }),
      let fields = value.dictionaryValue, let objectID = fields[Key.object]?.dataValue
    else { return nil }
    self.init(
      objectID: objectID, accessControl: fields[Key.accessControl]?.dictionaryValue, value: fields[Key.value]?.dataValue
    )
  }

  /// Returns the DER encoding.
  ///
  /// - Throws: `.parameter` if it is too large for an item.
  package func encoded() throws(SecItemError) -> SensitiveBytes {
    var fields: PropertyDictionary = [Key.object: .data(objectID)]
    if let accessControl { fields[Key.accessControl] = .dictionary(accessControl) }
    if let value { fields[Key.value] = .data(value) }
    do throws(FormatError) {
      return SensitiveBytes(copying: try DERPropertyList.encode(.dictionary(fields)))
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }
}
