import Basics
package import KeychainFormats

/// The 256-bit AES key of a device's chip, which never leaves it. A virtual device stores it in a file.
package struct HardwareUID: ~Copyable, Sendable {
  /// The size of a UID, in bytes.
  package static let size = 32
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

  /// Calls a closure with the bytes, to store them.
  package borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try key.withBytes(body)
  }

  /// Returns the 0x835 key: AES-ECB of 16 bytes 01 with the UID. Source: iphone-dataprotection, `IOAESAccelerator.c`.
  package borrowing func deviceKey() throws(DataProtectionError) -> DeviceKey {
    let context = try CipherContext(.aes256ECB, .encrypt)
    try key.withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes) }
    let constant = [UInt8](repeating: 1, count: DeviceKey.size)
    return try DeviceKey(
      try Secret(count: DeviceKey.size) { (output) throws(DataProtectionError) in
        try constant.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
      })
  }

  /// Returns the passcode key of a device's keybag: the passcode "tangled" with the UID, so that guessing requires the
  /// chip.
  ///
  /// 1. One iteration of PBKDF2-HMAC-SHA1 gives a block of 32 bytes.
  /// 2. For each iteration n, counted from 1, a copy of the block is made, and each of its 32-bit little-endian words is
  ///    xored with n.
  /// 3. The copies are encrypted as one stream: AES-256-CBC with the UID and a zero IV.
  /// 4. The key is the xor of all encrypted copies.
  ///
  /// Source: iphone-dataprotection, `AppleKeyStore_kdf.c`, the form for keybags of version 2 and later.
  ///
  /// - Parameters:
  ///   - passcode: The passcode in UTF-8; empty for a device without one.
  ///   - salt: The `SALT` of the keybag.
  ///   - rounds: The number of iterations: 50,000 on a virtual device; a chip is calibrated to take about 80 ms.
  ///   - limit: The maximum number of iterations to accept.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.roundsOverLimit` or `.damagedKeybag` (0 iterations) before any work is done; `.cancelled`.
  package borrowing func passcodeKey(
    passcode: borrowing Secret, salt: [UInt8], rounds: UInt32, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    try IterationLimit.check([rounds], acceptingAtMost: limit)
    let block = try PBKDF2.sha1(password: passcode, salt: salt, rounds: 1, count: PasscodeTangle.blockSize)
    let context = try CipherContext(.aes256CBC, .encrypt)
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: [UInt8](repeating: 0, count: 16))
    }
    return try PasscodeTangle.run(block, rounds: rounds, through: context) { progress($0, Int(rounds)) }
  }
}

/// Wraps private keys so that only the same chip can unwrap them.
///
/// The format is Keyhaul's own, because the format of a Secure Enclave is not public. A key is wrapped with RFC 3394. The
/// wrapping key is the HMAC-SHA-256, with the UID, of `secure enclave key 1 ` and the protection class.
extension HardwareUID {
  /// Wraps a private key.
  ///
  /// - Parameters:
  ///   - scalar: The private scalar on P-256, 32 bytes.
  ///   - protection: The class that the key is bound to, whose class key must be in memory for using it.
  /// - Returns: 40 bytes.
  /// - Throws: `.malformed` for another size; `.cryptoFailed`.
  package borrowing func wrapEnclaveKey(
    _ scalar: borrowing Secret, for protection: ProtectionClass
  ) throws(DataProtectionError) -> [UInt8] {
    guard scalar.count == Self.size else {
      throw DataProtectionError(.malformed, "a private number of \(scalar.count) bytes, not \(Self.size)")
    }
    return try KeyWrap.wrap(scalar, with: try enclaveKey(protection))
  }

  /// Unwraps a private key.
  ///
  /// - Returns: The private scalar, or `nil` if the bytes were changed, or were wrapped by another chip or for another
  ///   class.
  /// - Throws: `.cryptoFailed`.
  package borrowing func unwrapEnclaveKey(
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
