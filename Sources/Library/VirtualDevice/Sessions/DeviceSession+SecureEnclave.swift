public import Basics
import KeychainCrypto
public import KeychainFormats

/// Keys of the device's Secure Enclave: their private numbers are wrapped by its chip, and leave it for the length of an
/// operation alone.
///
/// What a token calls such a key is the protection class's name, a zero byte and the wrapped number, 40 bytes.
extension DeviceSession {
  /// Wraps the private number of a new key.
  ///
  /// - Parameters:
  ///   - number: Of P-256, 32 bytes.
  ///   - protection: The class whose key has to be in memory where the key is used.
  /// - Throws: `.authFailed` for the class that needs a passcode where none is set, `.interactionNotAllowed` where the
  ///   class is locked, `.parameter` for another size.
  public func enclaveObject(
    of number: SensitiveBytes, protection: ProtectionClass
  ) throws(SecItemError) -> [UInt8] {
    try requireKey(of: protection)
    do throws(DataProtectionError) {
      let wrapped = try number.withBytes { (bytes) throws(DataProtectionError) in
        try hardware.wrapEnclaveKey(Secret(copying: bytes), for: protection)
      }
      return Array(protection.rawValue.utf8) + [0] + wrapped
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }

  /// The private number of a key, for an operation that the person allows where the key's access control asks for them.
  ///
  /// - Parameters:
  ///   - key: An item on the token `com.apple.setoken`.
  ///   - operation: What is done with it.
  /// - Returns: 32 bytes.
  /// - Throws: `.parameter` for another item; `.interactionNotAllowed` where the key's class is locked, or nobody is there
  ///   to be asked; `.authFailed`, `.userCanceled`; `.decode` for a key that this chip did not wrap.
  public func enclaveNumber(
    of key: KeychainItem, for operation: AccessOperation
  ) throws(SecItemError) -> SensitiveBytes {
    guard let object = TokenValue(of: key)?.objectID, let end = object.firstIndex(of: 0),
      let protection = ProtectionClass(rawValue: String(decoding: object[..<end], as: UTF8.self))
    else { throw SecItemError(.parameter, "the key is not a Secure Enclave key") }
    try requireKey(of: protection)
    try SecItemService.authorize(operation, with: key, environment: secItemEnvironment)
    let number: Secret?
    do throws(DataProtectionError) {
      number = try hardware.unwrapEnclaveKey(Array(object[(end + 1)...]), for: protection)
    } catch {
      throw SecItemError(.internalError, error.reason)
    }
    guard let number else {
      throw SecItemError(.decode, "the key belongs to another device's Secure Enclave, or was changed")
    }
    return number.withBytes { SensitiveBytes(copying: $0) }
  }

  private func requireKey(of protection: ProtectionClass) throws(SecItemError) {
    settleLock()
    guard classKeys.hasKey(of: protection.keyClass) else {
      throw protection == .whenPasscodeSetThisDeviceOnly && !isPasscodeSet
        ? SecItemError(.authFailed, "the key needs a passcode, but the device has none")
        : SecItemError(.interactionNotAllowed, "the key's protection class is locked")
    }
  }
}
