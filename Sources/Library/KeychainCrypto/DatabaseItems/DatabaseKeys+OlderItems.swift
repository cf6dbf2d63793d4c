import Basics
import KeychainFormats

/// Decrypts items of earlier versions in the same tables. They have one box for attributes and secret.
extension DatabaseKeys {
  /// Decrypts an item of version 2 or 3; versions 4 to 6 are reported as unsupported instead of damaged.
  func openOlder(_ bytes: [UInt8], version: UInt32, kind: ItemKind) throws(DataProtectionError) -> DecryptedDatabaseItem
  {
    var result = DecryptedDatabaseItem()
    do throws(DatabaseItemError) {
      if version == AccessControlledItemBlob.version, (try? AccessControlledItemBlob(parsing: bytes)) != nil {
        throw DatabaseItemError(.accessControl, .secretKey, "only the item's own device can decrypt it")
      }
      let blob: ItemBlob
      do throws(FormatError) {
        blob = try ItemBlob(parsing: bytes)
      } catch {
        throw .fault(DatabaseItemFault(error, error.code == .unsupportedVersion ? .version : .messages))
      }
      result.keyClass = blob.keyClass
      let item = try item(in: blob, kind: kind, &result)
      result.content = .open(item)
    } catch {
      switch error {
      case .fault(let fault): result.fault = fault
      case .failed(let failure): throw failure
      }
    }
    return result
  }

  private func item(
    in blob: ItemBlob, kind: ItemKind, _ result: inout DecryptedDatabaseItem
  ) throws(DatabaseItemError) -> KeychainItem {
    let keyClass = blob.keyClass.withoutGeneration
    guard let blobClass = ProtectionClass(keyClass: keyClass) else {
      throw DatabaseItemError(.malformed, .messages, "its class \(blob.keyClass.rawValue) is not a protection class")
    }
    let unwrapped = try unwrap(SensitiveBytes(copying: blob.wrappedKey), keyClass: keyClass, at: .secretKey)
    let plaintext = try plaintext(of: blob, key: unwrapped.key)
    let item = try convertingFormatError(at: .secretDictionary) { () throws(FormatError) in
      switch blob.version {
      case .v2: try KeychainItem(plistDictionary: plaintext, kind: kind)
      case .v3: try KeychainItem(derDictionary: plaintext, kind: kind)
      }
    }
    guard item.protection == blobClass else {
      throw DatabaseItemError(.malformed, .classes, "its pdmn does not name its class, \(keyClass.rawValue)")
    }
    if unwrapped.store != nil, blob.keyClass.generation != 0 { result.findings.insert(.generationInSimulator) }
    return item
  }

  private func plaintext(of blob: ItemBlob, key: borrowing Secret) throws(DatabaseItemError) -> SensitiveBytes {
    let sealed = Sealed(ciphertext: blob.ciphertext, tag: blob.tag)
    let plaintext: SensitiveBytes?
    do throws(DataProtectionError) {
      plaintext = try withCipher { (cipher) throws(DataProtectionError) in
        guard blob.hasStaticIV else { return try cipher.olderItems.openWithEmptyNonce(sealed, key: key) }
        return try cipher.olderItems.openWithNonce(
          ItemEncryptionMode.staticNonce, header: blob.authenticatedHeader, sealed, key: key)
      }
    } catch {
      throw .failed(error)
    }
    guard let plaintext else {
      throw DatabaseItemError(.tagMismatch, .secretBox, "its authentication tag does not match its bytes")
    }
    return plaintext
  }
}
