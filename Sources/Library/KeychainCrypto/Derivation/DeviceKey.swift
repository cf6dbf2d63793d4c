import Basics

/// The "0x835" key that a device's hardware derives for its keybags, which ties a class key to the device.
///
/// It wraps the 32 bytes of a class key with AES-CBC and a zero IV. This layer has no integrity check: the key of a wrong
/// device results in wrong bytes, but not in an error. Source: iphone-dataprotection, `IOAESAccelerator.c`, `keybag.py`.
public final class DeviceKey: Sendable {
  /// The size, 16 bytes for AES-128.
  package static let size = 16
  private let key: Secret

  /// Creates a device key from its bytes.
  ///
  /// - Throws: `.malformed` if the key does not have 16 bytes.
  package init(_ key: consuming Secret) throws(DataProtectionError) {
    let count = key.count
    guard count == Self.size else {
      throw DataProtectionError(.malformed, "a device key has \(Self.size) bytes, not \(count)")
    }
    self.key = key
  }

  /// Returns a digest that identifies the key, 32 bytes. It does not reveal the key, which is 16 random bytes.
  package func fingerprint() throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha256)
    try Array("fingerprint of a device key".utf8).withRawBytes { (label) throws(DataProtectionError) in
      try context.update(label)
    }
    try key.withBytes { (bytes) throws(DataProtectionError) in try context.update(bytes) }
    return try context.finish()
  }

  /// Returns a class key wrapped with the device key.
  func wrap(_ classKey: borrowing Secret) throws(DataProtectionError) -> Secret {
    try classKey.withBytes { (bytes) throws(DataProtectionError) in try transform(bytes, .encrypt) }
  }

  /// Removes the device key's wrap from a class key.
  func unwrap(_ wrapped: UnsafeRawBufferPointer) throws(DataProtectionError) -> Secret {
    try transform(wrapped, .decrypt)
  }

  /// Calls a closure with the key, for the wrap of a device keybag's HMAC key.
  func withKey<Result: ~Copyable>(
    _ body: (borrowing Secret) throws(DataProtectionError) -> Result
  ) throws(DataProtectionError) -> Result {
    try body(key)
  }

  private func transform(
    _ input: UnsafeRawBufferPointer, _ direction: CipherContext.Direction
  ) throws(DataProtectionError) -> Secret {
    let context = try CipherContext(.aes128CBC, direction)
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: [UInt8](repeating: 0, count: 16))
    }
    return try Secret(count: input.count) { (output) throws(DataProtectionError) in
      try context.update(input, into: output)
    }
  }
}
