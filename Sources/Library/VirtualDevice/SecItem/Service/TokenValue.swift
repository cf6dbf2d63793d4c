public import Basics
public import KeychainFormats

/// What stands in `v_Data` of an item whose object a token holds: the token's name for the object, its access control,
/// and the object's value where the token shows it.
///
/// Source: Apple `SecItem.m` (`SecTokenItemValueCreate`, `SecTokenItemValueCopy`).
public struct TokenValue: Sendable {
  private enum Key {
    static let object = "oid"
    static let accessControl = "ac"
    static let value = "data"
  }

  /// What the token calls the object; for a key of the Secure Enclave its private number, wrapped.
  public let objectID: [UInt8]
  /// Operation to constraint, as an access control keeps it; `nil` where nothing guards the object.
  public let accessControl: PropertyDictionary?
  /// What the token shows of the object: of a private key the public one.
  public let value: [UInt8]?

  /// Creates the value of an item on a token.
  public init(objectID: [UInt8], accessControl: PropertyDictionary?, value: [UInt8]?) {
    self.objectID = objectID
    self.accessControl = accessControl
    self.value = value
  }

  /// Reads the value of an item.
  ///
  /// - Returns: `nil` for an item on no token, and for one whose bytes are no such dictionary.
  public init?(of item: KeychainItem) {
    guard !(item[.tokenID]?.stringValue ?? "").isEmpty, let secret = item.secret,
      let decoded = try? secret.withBytes({ (bytes) throws(FormatError) in try DERPropertyList.decode(bytes) }),
      let fields = decoded.dictionaryValue, let object = fields[Key.object]?.dataValue
    else { return nil }
    self.init(
      objectID: object, accessControl: fields[Key.accessControl]?.dictionaryValue, value: fields[Key.value]?.dataValue)
  }

  /// The DER that stands in the item.
  ///
  /// - Throws: `.parameter` for more than an item holds.
  public func encoded() throws(SecItemError) -> SensitiveBytes {
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
