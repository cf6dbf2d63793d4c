/// The two modes of encrypting a keychain item.
package enum ItemEncryptionMode: Sendable, Hashable {
  /// The mode of backups: an IV of length zero, without additional data.
  case backup
  /// The mode of a device's database: a fixed IV, with the blob's header as additional data.
  case device

  /// The fixed IV: the first 12 bytes of SHA-256 of the text "keychainblobstaticiv" and a newline.
  /// Source: Apple `SecItemDb.c`.
  static let staticNonce: [UInt8] = [0x1E, 0xA0, 0x5C, 0xA9, 0x98, 0x2E, 0x87, 0xDC, 0xF1, 0x45, 0xE8, 0x24]
}
