import Basics
package import KeychainFormats

/// A decrypted item with an access-control list.
package struct AccessControlledItem: Sendable {
  /// The decrypted item, without its constraints.
  package var item: KeychainItem
  /// The constraints by operation, as the item's creator set them.
  package var constraints: PropertyDictionary
}

/// Items with an access-control list (version 6).
///
/// On a real device, the key store creates the blob's reference key (`d2`), and only the key store can use it. Keyhaul
/// stores a DER dictionary in its own format instead (`ReferenceKey`). The blob authenticates only its header, so this
/// dictionary binds the constraints to the item's key.
extension ClassKeys {
  /// Encrypts an item for its own protection class together with its constraints, as in a device's database.
  package func sealAccessControlled(
    _ item: KeychainItem, constraints: PropertyDictionary, random: some RandomSource = SystemRandomSource()
  ) throws(ItemCryptoError) -> AccessControlledItemBlob {
    guard let protection = item.protection else { throw ItemCryptoError(.malformed(.noProtection)) }
    do throws(ItemFault) {
      let key = try itemKey(from: random)
      let wrappedKey = try wrap(key, keyClass: protection.keyClass, random: random)
      let reference = try ReferenceKey(protection: protection, constraints: constraints).encoded(under: key)
      let plaintext = try convertingFormatError { () throws(FormatError) in try item.derDictionary() }
      func blob(_ sealed: Sealed) throws(ItemFault) -> AccessControlledItemBlob {
        try convertingFormatError { () throws(FormatError) in
          try AccessControlledItemBlob(
            hasStaticIV: true, protection: protection.rawValue, wrappedKey: wrappedKey, referenceKey: reference,
            ciphertext: sealed.ciphertext, tag: sealed.tag)
        }
      }
      // The header does not contain the ciphertext, so a blob without a ciphertext has the same header.
      let noTag = [UInt8](repeating: 0, count: ItemBlob.tagByteCount)
      let header = try blob(Sealed(ciphertext: [], tag: noTag)).authenticatedHeader
      return try blob(try seal(plaintext, header: header, key: key))
    } catch {
      throw ItemCryptoError(error, keyClass: protection.keyClass)
    }
  }

  /// Decrypts an item that `sealAccessControlled` encrypted.
  ///
  /// - Throws: `.unsupportedVersion` if the reference key is not in Keyhaul's format; `.tagMismatch` if the constraints
  ///   were changed; the other errors of decryption.
  package func open(
    _ blob: AccessControlledItemBlob, kind: ItemKind
  ) throws(ItemCryptoError) -> AccessControlledItem {
    guard let protection = ProtectionClass(rawValue: blob.protection) else {
      throw ItemCryptoError(.malformed(FormatError(.itemBlob, .malformed, "its protection is not a protection class")))
    }
    do throws(ItemFault) {
      let key = try unwrap(blob.wrappedKey, keyClass: protection.keyClass)
      let reference = try ReferenceKey(decoding: blob.referenceKey, under: key)
      let header = blob.hasStaticIV ? blob.authenticatedHeader : nil
      let plaintext = try open(Sealed(ciphertext: blob.ciphertext, tag: blob.tag), header: header, key: key)
      let item = try convertingFormatError { () throws(FormatError) in
        try plaintext.withBytes { (bytes) throws(FormatError) in try KeychainItem(derDictionary: bytes, kind: kind) }
      }
      guard item.protection == protection, reference.protection == protection else {
        throw .malformed(
          FormatError(.item, .malformed, "its pdmn, its blob and its constraints name different classes"))
      }
      return AccessControlledItem(item: item, constraints: reference.constraints)
    } catch {
      throw ItemCryptoError(error, keyClass: protection.keyClass)
    }
  }
}

/// The two modes of encrypting a keychain item.
package enum ItemEncryptionMode: Sendable, Hashable {
  /// The mode of backups: an empty nonce, without additional data.
  case backup
  /// The mode of a device's database: a fixed nonce, with the blob's header as additional data.
  case device

  /// The fixed nonce: the first 12 bytes of SHA-256 of the text "keychainblobstaticiv" and a newline.
  /// Source: Apple `SecItemDb.c`.
  static let staticNonce: [UInt8] = [0x1E, 0xA0, 0x5C, 0xA9, 0x98, 0x2E, 0x87, 0xDC, 0xF1, 0x45, 0xE8, 0x24]
}

/// The interpretation of the class number in an item's blob.
package enum ClassNumbering: Sendable, Hashable {
  /// The complete number. In a backup, a number with upper bits is an unknown class.
  case exact
  /// The number without the key generation that a device's own database stores in the upper bits.
  case withGenerations

  func keyClass(from stored: KeyClass) -> KeyClass {
    switch self {
    case .exact: stored
    case .withGenerations: stored.withoutGeneration
    }
  }
}
