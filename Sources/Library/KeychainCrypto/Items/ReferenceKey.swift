import Basics
internal import KeychainFormats

/// Keyhaul's counterpart of a key store's reference key. It contains the protection (`prot`), the constraints (`acl`),
/// and a MAC (`mac`): the HMAC-SHA256 of these two fields, with the item's key.
struct ReferenceKey {
  var protection: ProtectionClass
  var constraints: PropertyDictionary

  init(protection: ProtectionClass, constraints: PropertyDictionary) {
    self.protection = protection
    self.constraints = constraints
  }

  /// Reads a reference key.
  ///
  /// - Throws: `.unsupportedVersion` for bytes in another format, `.tagMismatch` if they were changed.
  init(decoding bytes: [UInt8], under key: borrowing Secret) throws(ItemFault) {
    guard let fields = (try? DERPropertyList.decode(bytes))?.dictionaryValue, let storedCode = fields["mac"]?.dataValue,
      let protection = fields[ItemAccessControl.protectionKey]?.stringValue.flatMap(ProtectionClass.init(rawValue:)),
      let constraints = fields[ItemAccessControl.constraintsKey]?.dictionaryValue
    else { throw .unsupportedVersion(AccessControlledItemBlob.version) }
    self.init(protection: protection, constraints: constraints)
    let expected = try code(under: key)
    guard storedCode.withRawBytes({ stored in expected.withRawBytes { constantTimeEquals(stored, $0) } }) else {
      throw .tagMismatch
    }
    // DER as Apple reads it allows several encodings of a value. Only the original encoding is accepted.
    guard try encoded(under: key) == bytes else { throw .tagMismatch }
  }

  func encoded(under key: borrowing Secret) throws(ItemFault) -> [UInt8] {
    var fields = fields
    fields["mac"] = .data(try code(under: key))
    return try convertingFormatError { [fields] () throws(FormatError) in
      try DERPropertyList.encode(.dictionary(fields))
    }
  }

  private var fields: PropertyDictionary {
    [
      ItemAccessControl.protectionKey: .string(protection.rawValue),
      ItemAccessControl.constraintsKey: .dictionary(constraints),
    ]
  }

  private func code(under key: borrowing Secret) throws(ItemFault) -> [UInt8] {
    let message = try convertingFormatError { () throws(FormatError) in try DERPropertyList.encode(.dictionary(fields))
    }
    do throws(DataProtectionError) {
      return try key.withBytes { (bytes) throws(DataProtectionError) in
        try MessageAuthentication.code(.sha256, key: bytes, message: message)
      }
    } catch {
      throw .failed(error)
    }
  }
}
