public import Basics
public import KeychainFormats

extension ClassKeys {
  /// Opens the secret of an item that iOS 4 sealed. All that proves it is its padding.
  ///
  /// - Throws: `.malformed` for a padding that is none: damage, or a key that is another one.
  public borrowing func openSecret(of blob: LegacyItemBlob) throws(ItemSealError) -> SensitiveBytes {
    do throws(ItemFault) {
      let key = try unwrap(blob.wrappedKey, keyClass: blob.keyClass)
      let plain = try decrypted(blob.ciphertext, key: key)
      let padding = plain.withBytes { bytes -> Int? in
        guard let last = bytes.last.map(Int.init), (1...FileCipher.blockSize).contains(last), bytes.count >= last,
          bytes.suffix(last).allSatisfy({ Int($0) == last })
        else { return nil }
        return last
      }
      guard let padding else {
        throw .malformed(FormatError(.itemBlob, .malformed, "it does not end with valid padding"))
      }
      return plain.withBytes { SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: $0.dropLast(padding))) }
    } catch {
      throw ItemSealError(error, keyClass: blob.keyClass)
    }
  }

  private borrowing func decrypted(
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
