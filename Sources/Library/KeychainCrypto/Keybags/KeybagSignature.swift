import Basics
internal import KeychainFormats

/// The signature of a device's keybag: the HMAC-SHA1 of its bytes, with a key that the device key wraps (`HMCK`). This
/// is the format of version 4 and later, and Keyhaul creates no earlier versions.
///
/// Source: iphone-dataprotection, `keystore/keybag.py`.
enum KeybagSignature {
  /// Returns a random HMAC key of 32 bytes, wrapped with the device key (40 bytes).
  static func makeWrappedKey(
    deviceKey: DeviceKey, random: some RandomSource
  ) throws(DataProtectionError) -> [UInt8] {
    let key = try Secret(count: 32, from: random)
    return try deviceKey.withKey { (wrappingKey) throws(DataProtectionError) in
      try KeyWrap.wrap(key, with: wrappingKey)
    }
  }

  static func make(_ keybag: Keybag, deviceKey: DeviceKey) throws(DataProtectionError) -> [UInt8] {
    try sign(keybag.serialized(), of: keybag, deviceKey)
  }

  /// Checks the signature.
  ///
  /// - Throws: `.damagedKeybag` if the keybag was changed, or belongs to different hardware.
  static func verify(_ signed: SignedKeybag, deviceKey: DeviceKey) throws(DataProtectionError) {
    let expected = try sign(signed.signedBytes, of: signed.keybag, deviceKey)
    let matches = expected.withRawBytes { expected in signed.signature.withRawBytes { constantTimeEquals(expected, $0) }
    }
    guard matches else { throw DataProtectionError(.damagedKeybag, "its signature does not match its bytes") }
  }

  private static func sign(
    _ bytes: [UInt8], of keybag: Keybag, _ deviceKey: DeviceKey
  ) throws(DataProtectionError) -> [UInt8] {
    guard let wrapped = keybag.hmacKey else { throw DataProtectionError(.missingField, "it has no HMCK") }
    let unwrapped = try deviceKey.withKey { (wrappingKey) throws(DataProtectionError) -> Secret? in
      try KeyWrap.unwrap(wrapped, with: wrappingKey)
    }
    guard let key = unwrapped else {
      throw DataProtectionError(.damagedKeybag, "its signature key fails to unwrap with the device key")
    }
    return try key.withBytes { (keyBytes) throws(DataProtectionError) in
      try MessageAuthentication.code(.sha1, key: keyBytes, message: bytes)
    }
  }
}
