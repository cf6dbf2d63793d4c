package import Basics
package import KeychainFormats

extension ClassKeys {
  /// Decrypts the secret of an iOS 4 item. Only the padding shows whether the result is correct.
  ///
  /// - Throws: `.malformed` if the padding is invalid because the item is damaged or the key is wrong.
  package func openSecret(of blob: LegacyItemBlob) throws(ItemCryptoError) -> SensitiveBytes {
    do throws(ItemFault) {
      let key = try unwrap(blob.wrappedKey, keyClass: blob.keyClass)
      let plaintext = try decrypted(blob.ciphertext, key: key)
      // Each byte of the padding is its length (PKCS#7).
      let paddingCount = plaintext.withBytes { bytes -> Int? in
        guard let count = bytes.last.map(Int.init), (1...FileCipher.blockSize).contains(count), bytes.count >= count,
          bytes.suffix(count).allSatisfy({ Int($0) == count })
        else { return nil }
        return count
      }
      guard let paddingCount else {
        throw .malformed(FormatError(.itemBlob, .malformed, "it does not end with valid padding"))
      }
      return plaintext.withBytes {
        SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: $0.dropLast(paddingCount)))
      }
    } catch {
      throw ItemCryptoError(error, keyClass: blob.keyClass)
    }
  }

  private func decrypted(
    _ ciphertext: [UInt8], key: borrowing Secret
  ) throws(ItemFault) -> SensitiveBytes {
    do throws(DataProtectionError) {
      let context = try CipherContext(.aes256CBC, .decrypt)
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try context.begin(key: bytes, iv: FileCipher.zeroVector)
      }
      return try SensitiveBytes(count: ciphertext.count) { (output) throws(DataProtectionError) in
        try ciphertext.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
      }
    } catch {
      throw .failed(error)
    }
  }
}
