import Basics
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// Private keys in the Secure Enclave of the virtual device.
extension SecKey {
  /// What the token keeps of the key; `nil` for a key whose bytes are its own.
  var tokenValue: TokenValue? { half == .privateKey ? TokenValue(of: item) : nil }

  /// The public key that the token shows; `nil` for a key whose bytes are its own.
  var publicOnToken: KeyMaterial? {
    get throws(SecItemError) {
      guard let tokenValue else { return nil }
      guard let shown = tokenValue.value else { throw SecItemError(.parameter, "the token shows no public key") }
      return try shown.withRawBytes { (bytes) throws(SecItemError) in
        try KeyMaterial(bytes, .ellipticCurve, .publicKey)
      }
    }
  }

  /// A new key in the chip of the device that calls go to.
  ///
  /// - Parameters:
  ///   - protection: The class whose key has to be in memory where it is used.
  ///   - accessControl: What the person is asked for before; `nil` for nothing.
  static func inSecureEnclave(
    protection: ProtectionClass, accessControl: AccessControl?
  ) throws(SecItemError) -> SecKey {
    let made: KeyMaterial
    do throws(MaterialError) { made = try .generate(on: .p256) } catch {
      throw SecItemError(.internalError, error.reason)
    }
    let number = made.externalRepresentation.withBytes { bytes in
      SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[made.publicKey.count...]))
    }
    guard let client = try? DefaultKeychain.client() else {
      throw SecItemError(.notAvailable, "there is no device to make the key on")
    }
    let object = try client.call { (session) throws(SecItemError) in
      try session.enclaveObject(of: number, protection: protection)
    }
    var item = KeychainItem(made)
    item[.tokenID] = .string(kSecAttrTokenIDSecureEnclave as String)
    for code: AttributeCode in [.isSensitive, .wasAlwaysSensitive, .wasNeverExtractable] { item[code] = .integer(1) }
    item[.isExtractable] = .integer(0)
    item.secret = try TokenValue(
      objectID: object, accessControl: accessControl?.operations, value: made.publicKey
    ).encoded()
    return SecKey(item)
  }
}
