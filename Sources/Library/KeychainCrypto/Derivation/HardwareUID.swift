import Basics
public import KeychainFormats

/// The 256-bit AES key that a device's chip is made with and never gives out; a virtual device keeps it in a file.
public struct HardwareUID: ~Copyable, Sendable {
  /// The size of a UID, in bytes.
  public static let size = 32
  private let key: Secret

  /// Takes over the bytes of a UID.
  ///
  /// - Throws: `.malformed` where the UID has not 32 bytes.
  public init(_ key: consuming Secret) throws(DataProtectionError) {
    let count = key.count
    guard count == Self.size else {
      throw DataProtectionError(.malformed, "a hardware UID has \(Self.size) bytes, not \(count)")
    }
    self.key = key
  }

  /// A new chip.
  public init(from random: some RandomSource) throws(DataProtectionError) {
    key = try Secret(count: Self.size, from: random)
  }

  /// Lends the bytes, to store them.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try key.withBytes(body)
  }

  /// Key 0x835: AES-ECB under the UID of sixteen bytes 01. Source: iphone-dataprotection, `IOAESAccelerator.c`.
  public borrowing func deviceKey() throws(DataProtectionError) -> DeviceKey {
    let context = try CipherContext(.aes256ECB, .encrypt)
    try key.withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes) }
    let constant = [UInt8](repeating: 1, count: DeviceKey.size)
    return try DeviceKey(
      try Secret(count: DeviceKey.size) { (output) throws(DataProtectionError) in
        try constant.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
      })
  }

  /// The passcode key of a system keybag: the passcode "tangled" with the UID, so that guesses need the chip.
  ///
  /// P is one round of PBKDF2-HMAC-SHA1. Copies of P, the n-th with each of its little-endian words xored with n
  /// (counting from 1), run through AES-256-CBC under the UID with a zero IV as one stream, and the 32-byte blocks that
  /// come out are xored together. Source: iphone-dataprotection, `AppleKeyStore_kdf.c`, the form for bags of version 2 and up.
  ///
  /// - Parameters:
  ///   - passcode: UTF-8 bytes; empty for a device without one.
  ///   - salt: `SALT` of the keybag.
  ///   - rounds: 50,000 on a virtual device; a chip is calibrated to take some 80 ms.
  ///   - limit: The most rounds to accept; above it nothing is derived.
  ///   - progress: Where it answers `false` the derivation ends with `.cancelled`.
  /// - Throws: `.roundsOverLimit` and `.damagedKeybag` (0 rounds) before any work is done.
  public borrowing func passcodeKey(
    passcode: borrowing Secret, salt: [UInt8], rounds: UInt32, acceptingAtMost limit: Int = RoundLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    try RoundLimit.check([rounds], acceptingAtMost: limit)
    let start = try PBKDF2.sha1(password: passcode, salt: salt, rounds: 1, count: PasscodeTangle.blockSize)
    let context = try CipherContext(.aes256CBC, .encrypt)
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: [UInt8](repeating: 0, count: 16))
    }
    return try PasscodeTangle.run(start, rounds: rounds, through: context) { progress($0, Int(rounds)) }
  }
}

/// Private keys that only the chip that wrapped them opens again.
///
/// The form is this project's own: what a Secure Enclave writes is not known. Wrapped by RFC 3394 under
/// HMAC-SHA-256(UID, `secure enclave key 1 ` and the protection class).
extension HardwareUID {
  /// - Parameters:
  ///   - number: A private number of P-256, 32 bytes.
  ///   - protection: The class whose key has to be in memory where it is used, which the bytes are bound to.
  /// - Returns: 40 bytes.
  /// - Throws: `.malformed` for another size; `.cryptoFailed`.
  public borrowing func wrapEnclaveKey(
    _ number: borrowing Secret, for protection: ProtectionClass
  ) throws(DataProtectionError) -> [UInt8] {
    guard number.count == Self.size else {
      throw DataProtectionError(.malformed, "a private number of \(number.count) bytes, not \(Self.size)")
    }
    return try KeyWrap.wrap(number, with: try enclaveKey(protection))
  }

  /// The private number again.
  ///
  /// - Returns: `nil` for bytes that another chip wrapped, or for another class, or that were changed.
  /// - Throws: `.cryptoFailed`.
  public borrowing func unwrapEnclaveKey(
    _ wrapped: [UInt8], for protection: ProtectionClass
  ) throws(DataProtectionError) -> Secret? {
    guard wrapped.count == Self.size + KeyWrap.overhead else { return nil }
    return try KeyWrap.unwrap(wrapped, with: try enclaveKey(protection))
  }

  private borrowing func enclaveKey(_ protection: ProtectionClass) throws(DataProtectionError) -> Secret {
    var key = try withBytes { (bytes) throws(DataProtectionError) in
      try MessageAuthentication.code(
        .sha256, key: bytes, message: Array("secure enclave key 1 \(protection.rawValue)".utf8))
    }
    defer { key.withUnsafeMutableBytes { wipe($0) } }
    return Secret(copying: key)
  }
}
