import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Item blobs with one fault")
struct ItemBlobFaultTests {
  private static func littleEndian(_ value: UInt32) -> [UInt8] { [UInt8](littleEndian: Int(value), count: 4) }

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  /// Returns a blob: the version, the class and the length of the wrapped key in four bytes each, the wrapped key, and
  /// the tail with the ciphertext and a tag of 16 bytes.
  private static func blob(
    version: UInt32 = 3, keyClass: UInt32 = 6, length: UInt32 = 40, keyByteCount: Int = 40, tailByteCount: Int = 20
  ) -> [UInt8] {
    littleEndian(version) + littleEndian(keyClass) + littleEndian(length) + zeros(keyByteCount) + zeros(tailByteCount)
  }

  static let faultyInputs: [FaultyInput] =
    [
      FaultyInput("no bytes", [], .truncated, at: 0),
      FaultyInput("half a version", [3, 0, 0], .truncated, at: 0),
      FaultyInput("a version without a class", littleEndian(3) + [6], .truncated, at: 4),
      FaultyInput("a class without a length", littleEndian(3) + littleEndian(6) + [40, 0], .truncated, at: 8),
      FaultyInput("a wrapped key of 0 bytes", blob(length: 0, keyByteCount: 0), .malformed, at: 8),
      FaultyInput("a wrapped key of 39 bytes", blob(length: 39, keyByteCount: 39), .malformed, at: 8),
      FaultyInput("a wrapped key of 41 bytes", blob(length: 41, keyByteCount: 41), .malformed, at: 8),
      FaultyInput("a wrapped key of 71 bytes", blob(length: 71, keyByteCount: 71), .malformed, at: 8),
      FaultyInput("a wrapped key of 73 bytes", blob(length: 73, keyByteCount: 73), .malformed, at: 8),
      FaultyInput("the largest length", blob(length: .max), .malformed, at: 8),
      FaultyInput("a length in big-endian", blob(length: 0x2800_0000), .malformed, at: 8),
      FaultyInput("a wrapped key cut short", blob(keyByteCount: 39, tailByteCount: 0), .truncated, at: 12),
      FaultyInput("a tag of fifteen bytes", blob(tailByteCount: 15), .truncated, at: 52),
      FaultyInput("no tag", blob(tailByteCount: 0), .truncated, at: 52),
      FaultyInput(
        "a long wrapped key that leaves no tag", blob(length: 72, keyByteCount: 72, tailByteCount: 15), .truncated,
        at: 84),
      FaultyInput("one byte too many", blob(tailByteCount: ItemBlob.maximumByteCount - 51), .overLimit, at: nil),
    ]
    + [0, 1, 4, 5, 6, 7, 8, 9, 0x7FFF_FFFF, 0x8000_0006, 0x8000_0009].map { version in
      FaultyInput("version \(version)", blob(version: version), .unsupportedVersion, at: 0)
    }

  @Test("An item blob with a fault is rejected with the reason and the offset", arguments: faultyInputs)
  func rejected(_ input: FaultyInput) { input.check(.itemBlob, ItemBlob.init(parsing:)) }

  @Test("The smallest blob has no ciphertext, and the largest has 72 MiB in total")
  func sizes() throws {
    #expect(try ItemBlob(parsing: Self.blob(tailByteCount: 16)).ciphertext.isEmpty)
    #expect(try ItemBlob(parsing: Self.blob(tailByteCount: ItemBlob.maximumByteCount - 52)).tag.count == 16)
  }

  @Test("The flag of the fixed IV, the class with its generation, and version 2 survive a round trip")
  func header() throws {
    let bytes = Self.blob(version: 0x8000_0002, keyClass: 0x17)
    let blob = try ItemBlob(parsing: bytes)
    #expect(blob.hasStaticIV)
    #expect(blob.version == .v2)
    #expect(blob.keyClass.rawValue == 0x17)
    #expect(blob.keyClass.withoutGeneration == .afterFirstUnlock)
    #expect(blob.authenticatedHeader == [2, 0, 0, 0x80, 0x17, 0, 0, 0, 40, 0, 0, 0])
    #expect(blob.serialized() == bytes)
    #expect(ItemBlob.versionNumber(of: bytes) == 2)
    #expect(ItemBlob.versionNumber(of: [2, 0, 0]) == nil)
  }

  @Test("A blob cannot be created with a wrapped key of 41 bytes or a tag of 15 bytes")
  func building() throws {
    func make(key: Int, tag: Int) throws(FormatError) -> ItemBlob {
      try ItemBlob(
        hasStaticIV: false, keyClass: .always, wrappedKey: Self.zeros(key), ciphertext: [], tag: Self.zeros(tag))
    }
    #expect(throws: FormatError.self) { try make(key: 41, tag: 16) }
    #expect(throws: FormatError.self) { try make(key: 40, tag: 15) }
    #expect(try make(key: 72, tag: 16).serialized() == [3, 0, 0, 0, 8, 0, 0, 0, 72, 0, 0, 0] + Self.zeros(88))
  }

  @Test(
    "Truncating a blob or flipping any of its bits does not crash the reader, and every valid blob survives a round trip"
  )
  func damage() {
    readDamagedVariants(of: Self.blob()) { damaged in
      if let blob = try? ItemBlob(parsing: damaged) { #expect(blob.serialized() == damaged) }
    }
  }
}

@Suite("Item blobs with an access-control list")
struct AccessControlledItemBlobTests {
  /// Version 6, `ak` as DER, `{d1: 01 02, d2: 03}` as DER, two bytes of ciphertext, the tag.
  private static func bytes(
    version: String = "06000000", protection: String = "04000000 0c02616b",
    keys: String = "15000000 3113 3007 0c026432 040103 3008 0c026431 04020102"
  ) throws -> [UInt8] {
    try [UInt8](hex: version + protection + keys + "aabb" + String(repeating: "cc", count: 16))
  }

  @Test(
    "All parts of the blob are read, its header ends after the second length, and the round trip preserves its bytes")
  func reading() throws {
    let bytes = try Self.bytes()
    let blob = try AccessControlledItemBlob(parsing: bytes)
    #expect(blob.protection == "ak")
    #expect(blob.wrappedKey == [1, 2])
    #expect(blob.referenceKey == [3])
    #expect(blob.ciphertext == [0xAA, 0xBB])
    #expect(blob.tag == [UInt8](repeating: 0xCC, count: 16))
    #expect(!blob.hasStaticIV)
    #expect(blob.authenticatedHeader == Array(bytes.prefix(16)))
    #expect(blob.serialized() == bytes)
    #expect(
      try AccessControlledItemBlob(
        hasStaticIV: false, protection: "ak", wrappedKey: [1, 2], referenceKey: [3], ciphertext: [0xAA, 0xBB],
        tag: blob.tag
      ).serialized() == bytes)
  }

  @Test("A blob with an access-control list and a fault is rejected with the reason and the offset")
  func faults() throws {
    let inputs = [
      FaultyInput("version 3", try Self.bytes(version: "03000000"), .unsupportedVersion, at: 0),
      FaultyInput("version 4", try Self.bytes(version: "04000000"), .unsupportedVersion, at: 0),
      FaultyInput("a protection past the end", try Self.bytes(protection: "ffffffff 0c02616b"), .truncated, at: 8),
      FaultyInput("a protection that is data", try Self.bytes(protection: "04000000 0402616b"), .malformed, at: 8),
      FaultyInput("keys past the end", try Self.bytes(keys: "00010000 3100"), .truncated, at: 16),
      FaultyInput("keys without d1 and d2", try Self.bytes(keys: "02000000 3100"), .malformed, at: 16),
      FaultyInput("keys that are an array", try Self.bytes(keys: "02000000 3000"), .malformed, at: 16),
      FaultyInput("a tag of fifteen bytes", Array(try Self.bytes().dropLast(3)), .truncated, at: 37),
    ]
    for input in inputs { input.check(.itemBlob, AccessControlledItemBlob.init(parsing:)) }
    readDamagedVariants(of: try Self.bytes()) { _ = try? AccessControlledItemBlob(parsing: $0) }
  }
}
