import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// The encryption of items in the `data` column: with the key of the item's class, in the format of iOS 10, which has a
/// fixed nonce and an authenticated header. An item with an access control is encrypted as version 6.
///
/// An item's access control is its attribute `accc`, a dictionary from operation to constraint. It has no column and is
/// not in the plaintext. Source: Apple `SecDbKeychainItem.m` (`ks_encrypt_data`, `ks_decrypt_data`).
enum RowEncryption {
  /// Encrypts an item.
  ///
  /// - Throws: `.interactionNotAllowed` if the class key is not in memory, `.notAvailable` if there is no class key (or
  ///   `.authFailed`, if the class requires a passcode), `.parameter` if the item cannot be encoded.
  static func encrypt(
    _ item: KeychainItem, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) -> [UInt8] {
    let accessControl = item[.accessControl]
    var plaintextItem = item
    if accessControl != nil { plaintextItem[.accessControl] = nil }
    let encrypted: [UInt8]
    do {
      switch accessControl {
      case nil: encrypted = try keys.seal(plaintextItem, as: .device, random: random).serialized()
      case .dictionary(let constraints):
        encrypted = try keys.sealAccessControlled(plaintextItem, constraints: constraints, random: random).serialized()
      default: throw KeyhaulError(.parameter, "the access control is not a dictionary of constraints")
      }
    } catch let error as ItemCryptoError {
      throw KeyhaulError(itemCryptoError: error)
    } catch {
      throw KeyhaulError(fromDatabase: error)
    }
    guard encrypted.count <= ItemBlob.maximumByteCount else {
      throw KeyhaulError(
        .parameter, "the item has \(encrypted.count) bytes; the limit is \(ItemBlob.maximumByteCount)")
    }
    return encrypted
  }

  /// Decrypts a row, or determines the reason why that is not possible.
  ///
  /// - Throws: `.notAvailable` if a cryptographic operation does not work.
  static func decrypt(_ raw: RawRow, keys: ClassKeys) throws(KeyhaulError) -> KeychainRow {
    guard let encrypted = raw.encryptedItem else {
      return KeychainRow(summary: raw.summary, content: .fault(.undecodable(reason: "the row has no encrypted item")))
    }
    do throws(ItemCryptoError) {
      let item = try decryptedItem(encrypted, kind: raw.summary.kind, keys: keys)
      return KeychainRow(summary: raw.summary, content: .item(item))
    } catch {
      return KeychainRow(summary: raw.summary, content: .fault(try fault(of: error)))
    }
  }

  private static func decryptedItem(
    _ encrypted: [UInt8], kind: ItemKind, keys: ClassKeys
  ) throws(ItemCryptoError) -> KeychainItem {
    guard ItemBlob.versionNumber(of: encrypted) == AccessControlledItemBlob.version else {
      var item = try keys.open(blob: encrypted, kind: kind, numbering: .withGenerations)
      if item[.accessControl] != nil { item[.accessControl] = nil }
      return item
    }
    let blob: AccessControlledItemBlob
    do throws(FormatError) {
      blob = try AccessControlledItemBlob(parsing: encrypted)
    } catch {
      throw ItemCryptoError(.malformed(error))
    }
    let decrypted = try keys.open(blob, kind: kind)
    var item = decrypted.item
    item[.accessControl] = .dictionary(decrypted.constraints)
    return item
  }

  private static func fault(of error: ItemCryptoError) throws(KeyhaulError) -> RowFault {
    switch (error.fault, error.keyClass) {
    case (.locked, let keyClass?): return .locked(keyClass)
    case (.deviceBound, let keyClass?), (.classKeyDamaged, let keyClass?): return .keyUnavailable(keyClass)
    case (.failed(let failure), _): throw KeyhaulError(dataProtectionError: failure)
    default: return .undecodable(reason: error.description)
    }
  }
}
