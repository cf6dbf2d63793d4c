import Basics
internal import KeychainFormats

/// The two ways in which a keychain item is sealed.
public enum ItemForm: Sendable, Hashable {
  /// As a backup holds it: an IV of length zero, nothing authenticated beside the item.
  case backup
  /// As a device's database holds it: a fixed IV, the blob's header authenticated with it.
  case device

  /// The fixed IV: the first 12 bytes of SHA-256 of the text "keychainblobstaticiv" and a newline.
  /// Source: Apple `SecItemDb.c`.
  static let staticNonce: [UInt8] = [0x1E, 0xA0, 0x5C, 0xA9, 0x98, 0x2E, 0x87, 0xDC, 0xF1, 0x45, 0xE8, 0x24]
}

/// How the class number of an item's blob is to be read.
public enum ClassNumbering: Sendable, Hashable {
  /// As it stands. In a backup, a number with upper bits is another, unknown class.
  case exact
  /// Without the key generation that a device's own database keeps in the upper bits.
  case withGenerations

  func keyClass(of number: KeyClass) -> KeyClass {
    switch self {
    case .exact: number
    case .withGenerations: number.withoutGeneration
    }
  }
}
