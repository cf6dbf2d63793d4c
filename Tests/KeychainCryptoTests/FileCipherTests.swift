import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("File encryption in backups")
struct FileCipherTests {
  private func key() -> Secret { Secret(copying: (0..<32).map { UInt8($0) }) }

  @Test("AES-256-CBC with a zero IV matches the first block of NIST SP 800-38A, F.2.5")
  func knownAnswer() throws {
    // F.2.5 has the IV 00 01 ... 0f. Its first plaintext block, xored with that IV, gives the same ciphertext with a
    // zero IV.
    let key = try Secret(hex: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    let block = zip(try [UInt8](hex: "6bc1bee22e409f96e93d7e117393172a"), 0..<16).map { $0 ^ UInt8($1) }
    let encrypted = try FileCipher.encrypt(block, key: key)
    #expect(encrypted.count == 32)
    #expect(Array(encrypted.prefix(16)).hex == "f58c4c04d6e5f1ba779eabfb5f7bfbd6")
  }

  @Test("Files of every length survive a round trip, and complete blocks get a block of padding")
  func roundTrip() throws {
    for count in 0...70 {
      let plain = (0..<count).map { UInt8($0) }
      let encrypted = try FileCipher.encrypt(plain, key: key())
      #expect(encrypted.count == (count / 16 + 1) * 16)
      #expect(FileCipher.encryptedSize(of: UInt64(count)) == UInt64(encrypted.count))
      #expect(try FileCipher.decrypt(encrypted, key: key()) == .init(bytes: plain, hasValidPadding: true))
    }
  }

  private func chunks(of bytes: [UInt8], size: Int) -> [[UInt8]] {
    stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
  }

  @Test("Chunks of any size give the same bytes", arguments: [1, 15, 16, 17, 31, 33, 500, 1000])
  func chunks(chunkSize: Int) throws {
    let plain = (0..<1000).map { UInt8(truncatingIfNeeded: $0 * 7) }
    let expected = try FileCipher.encrypt(plain, key: key())

    let encryptor = try FileEncryptor(key: key())
    var encrypted: [UInt8] = []
    for chunk in chunks(of: plain, size: chunkSize) { encrypted += try encryptor.update(chunk) }
    encrypted += try encryptor.finish()
    #expect(encrypted == expected)

    let decryptor = try FileDecryptor(key: key())
    var decrypted: [UInt8] = []
    for chunk in chunks(of: expected, size: chunkSize) { decrypted += try decryptor.update(chunk) }
    let end = try decryptor.finish()
    #expect(decrypted + end.bytes == plain)
    #expect(end.hasValidPadding)
  }

  @Test("The end of a file shows the same length and padding as decrypting the whole file")
  func ending() throws {
    let plain = (0..<70).map { UInt8($0) }
    let padded = try (0...70).map { try FileCipher.encrypt(Array(plain.prefix($0)), key: key()) }
    let withInvalidPadding = padded.map { Array($0.dropLast(16)) }
    let withIncompleteBlock = padded.map { Array($0.dropLast(3)) }
    for stored in padded + withInvalidPadding + withIncompleteBlock + [[]] {
      let decrypted = stored.count % 16 == 0 && !stored.isEmpty ? try FileCipher.decrypt(stored, key: key()) : nil
      for chunkSize in [1, 15, 16, 17, 33, 100] {
        var ending = FileEnding(decryptor: try FileDecryptor(key: key()))
        for chunk in chunks(of: stored, size: chunkSize) { chunk.withUnsafeBytes { ending.update($0) } }
        let result = try ending.finish()
        #expect(result.hasValidPadding == decrypted?.hasValidPadding ?? false)
        #expect(result.plainByteCount == Int64(decrypted?.bytes.count ?? stored.count / 16 * 16))
      }
    }
  }

  /// Encrypts complete blocks without adding a block of padding.
  private func encryptWithoutPadding(_ blocks: [UInt8]) throws -> [UInt8] {
    Array(try FileCipher.encrypt(blocks, key: key()).dropLast(16))
  }

  @Test("A file without padding is decrypted completely and reported")
  func unpadded() throws {
    let plain = [UInt8](repeating: 0x41, count: 64)
    let decrypted = try FileCipher.decrypt(encryptWithoutPadding(plain), key: key())
    #expect(decrypted == .init(bytes: plain, hasValidPadding: false))
  }

  @Test("Invalid padding is reported", arguments: [[0], [17], [2, 3, 3], [1, 2]] as [[UInt8]])
  func invalidPadding(lastBytes: [UInt8]) throws {
    let plain = [UInt8](repeating: 0x41, count: 32 - lastBytes.count) + lastBytes
    let encrypted = try encryptWithoutPadding(plain)
    #expect(try FileCipher.decrypt(encrypted, key: key()).hasValidPadding == false)
  }

  @Test("A file is malformed if its length is zero or not a multiple of 16", arguments: [0, 1, 15, 17, 31])
  func lengths(count: Int) {
    let error = #expect(throws: DataProtectionError.self) {
      _ = try FileCipher.decrypt([UInt8](repeating: 0, count: count), key: key())
    }
    #expect(error?.code == .malformed)
  }

  @Test("A file key must have 32 bytes")
  func keySize() {
    #expect(throws: DataProtectionError.self) { _ = try FileEncryptor(key: Secret(copying: [1])) }
    #expect(throws: DataProtectionError.self) { _ = try FileDecryptor(key: .empty) }
  }

  @Test("An encrypted size that does not fit into 64 bits is nil")
  func overflow() {
    #expect(FileCipher.encryptedSize(of: .max) == nil)
    #expect(FileCipher.encryptedSize(of: .max - 16) == UInt64.max - 15)
  }
}

@Suite("File keys")
struct FileKeyTests {
  @Test("The key of the synthetic manifest is unwrapped")
  func manifest() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    let key = try keys.unwrapFileKey(backup.vectors["manifest_key_field_hex"].bytes)
    #expect(try key.revealed == backup.vectors["manifest_key_hex"].bytes)
  }

  @Test("A wrapped file key is unwrapped with its class")
  func roundTrip() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    let key = Secret(copying: [UInt8](repeating: 7, count: 32))
    let field = try keys.wrapFileKey(key, keyClass: .fileUntilFirstUserAuthentication)
    #expect(field.count == 44)
    #expect(field.prefix(4) == [3, 0, 0, 0])
    #expect(try keys.unwrapFileKey(field).revealed == key.revealed)
  }

  @Test("A file key that cannot be unwrapped gives the expected error code")
  func faults() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    let field = try backup.vectors["manifest_key_field_hex"].bytes
    func errorCode(_ field: [UInt8]) -> DataProtectionError.Code? {
      #expect(throws: DataProtectionError.self) { _ = try keys.unwrapFileKey(field) }?.code
    }
    // The field is the class in 4 little-endian bytes, and the wrapped key of 40 bytes.
    for count in [0, 3, 4, 43] { #expect(errorCode(Array(field.prefix(count))) == .malformed) }
    #expect(errorCode(field + [0]) == .malformed)
    #expect(errorCode(field.flipping(bit: 100)) == .keyUnwrapFailed)
    // A different class, a class that the keybag lacks, a class whose key only the device has, and an unknown class.
    #expect(errorCode([4] + field.dropFirst()) == .keyUnwrapFailed)
    #expect(errorCode([12] + field.dropFirst()) == .keyUnavailable)
    #expect(errorCode([9] + field.dropFirst()) == .keyUnavailable)
    #expect(errorCode([3, 0, 0, 1] + field.dropFirst(4)) == .keyUnavailable)
    // A wrapped key of 72 bytes belongs to a Curve25519 class.
    #expect(errorCode(Array(field.prefix(4)) + [UInt8](repeating: 0, count: 72)) == .keyUnwrapFailed)
  }
}
