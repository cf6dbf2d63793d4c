import Basics
package import KeychainFormats

/// The 256-bit AES key of a device's chip. It never leaves the chip of a real device; a virtual device stores it in a
/// file.
package struct HardwareUID: ~Copyable, Sendable {
  /// The size of a UID, in bytes.
  package static let size = 32
  /// The size of a private scalar on P-256, in bytes.
  private static let scalarSize = 32
  private let key: Secret

  /// Creates a UID from its bytes.
  ///
  /// - Throws: `.malformed` if the UID does not have 32 bytes.
  package init(_ key: consuming Secret) throws(DataProtectionError) {
    let count = key.count
    guard count == Self.size else {
      throw DataProtectionError(.malformed, "a hardware UID has \(Self.size) bytes, not \(count)")
    }
    self.key = key
  }

  /// Creates a random UID, for a new device.
  package init(from random: some RandomSource) throws(DataProtectionError) {
    key = try Secret(count: Self.size, from: random)
  }

  /// Passes the UID's bytes to a closure, such as one that stores them.
  package borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try key.withBytes(body)
  }

  /// Derives the device key ("key 0x835"), which wraps class keys: 16 bytes of value 1, encrypted with the UID
  /// (AES-ECB).
  ///
  /// Source: iphone-dataprotection, `IOAESAccelerator.c`.
  package borrowing func deviceKey() throws(DataProtectionError) -> DeviceKey {
    let context = try CipherContext(.aes256ECB, .encrypt)
    try key.withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes) }
    let constant = [UInt8](repeating: 1, count: DeviceKey.size)
    return try DeviceKey(
      try Secret(count: DeviceKey.size) { (output) throws(DataProtectionError) in
        try constant.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
      })
  }

  /// Derives the passcode key of a device's keybag. The passcode is "tangled" with the UID, so that guessing it
  /// requires the chip.
  ///
  /// 1. One iteration of PBKDF2-HMAC-SHA1 gives a block of 32 bytes.
  /// 2. For each iteration n, counted from 1, a copy of the block is made, and each of its 32-bit little-endian words
  ///    is xored with n.
  /// 3. The copies are encrypted as one stream: AES-256-CBC with the UID and a zero IV.
  /// 4. The key is the xor of all encrypted copies.
  ///
  /// Source: iphone-dataprotection, `AppleKeyStore_kdf.c`, the form for keybags of version 2 and later.
  ///
  /// - Parameters:
  ///   - passcode: The passcode in UTF-8, or an empty one for a device without a passcode.
  ///   - salt: The `SALT` of the keybag.
  ///   - iterations: The number of iterations that the keybag states.
  ///   - limit: The maximum number of iterations to accept.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.roundsOverLimit` or, for 0 iterations, `.damagedKeybag` before any work is done; `.cancelled`.
  package borrowing func passcodeKey(
    passcode: borrowing Secret, salt: [UInt8], iterations: UInt32, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    try IterationLimit.check([iterations], acceptingAtMost: limit)
    let block = try PBKDF2.sha1(password: passcode, salt: salt, iterations: 1, count: PasscodeTangle.blockSize)
    let context = try CipherContext(.aes256CBC, .encrypt)
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: [UInt8](repeating: 0, count: 16))
    }
    return try PasscodeTangle.run(block, iterations: iterations, through: context) { progress($0, Int(iterations)) }
  }
}

/// Wraps the private keys of the virtual Secure Enclave, so that only the same device can unwrap them.
///
/// The format is Keyhaul's own, because Apple's is not public. A private key is wrapped with RFC 3394. The wrapping key
/// is an HMAC-SHA-256 with the UID as its key. Its message is `secure enclave key 1 ` and the code of the protection
/// class.
extension HardwareUID {
  /// Wraps a private key.
  ///
  /// - Parameters:
  ///   - scalar: The private scalar on P-256, 32 bytes.
  ///   - protection: The protection class of the key. It is part of the wrap, so it cannot be replaced later.
  /// - Returns: The wrapped key, 40 bytes.
  /// - Throws: `.malformed` if the scalar has another size; `.cryptoFailed`.
  package borrowing func wrapEnclaveKey(
    _ scalar: borrowing Secret, for protection: ProtectionClass
  ) throws(DataProtectionError) -> [UInt8] {
    guard scalar.count == Self.scalarSize else {
      throw DataProtectionError(.malformed, "a private number of \(scalar.count) bytes, not \(Self.scalarSize)")
    }
    return try KeyWrap.wrap(scalar, with: try enclaveWrappingKey(for: protection))
  }

  /// Unwraps a private key.
  ///
  /// - Returns: The private scalar, or `nil` if the bytes were changed, or were wrapped with another UID or for another
  ///   class.
  /// - Throws: `.cryptoFailed`.
  package borrowing func unwrapEnclaveKey(
    _ wrapped: [UInt8], for protection: ProtectionClass
  ) throws(DataProtectionError) -> Secret? {
    guard wrapped.count == Self.scalarSize + KeyWrap.overhead else { return nil }
    return try KeyWrap.unwrap(wrapped, with: try enclaveWrappingKey(for: protection))
  }

  /// Derives the key that wraps the private keys of a protection class.
  private borrowing func enclaveWrappingKey(for protection: ProtectionClass) throws(DataProtectionError) -> Secret {
    var key = try withBytes { (bytes) throws(DataProtectionError) in
      try MessageAuthentication.code(
        .sha256, key: bytes, message: Array("secure enclave key 1 \(protection.rawValue)".utf8))
    }
    defer { key.withUnsafeMutableBytes { wipe($0) } }
    return Secret(copying: key)
  }
}
