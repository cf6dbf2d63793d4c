import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Gzip checksums")
struct GzipChecksumTests {
  private let tar: [UInt8]
  private let digest: String

  init() throws {
    var files = try SampleBackup.storedFiles()
    // A gzip file inside the tar, and the first bytes of another one, must not be mistaken for members.
    var inner = GzipFixture()
    inner.add(Array("a letter, packed".utf8))
    inner.add(Array("and another".utf8))
    files["ab/ab00000000000000000000000000000000000000"] = inner.bytes + [1, 2, 3, 4, 5, 6, 7, 8, 0x1F, 0x8B, 8, 0]
    tar = packed(files)
    digest = try open(tar).digest
  }

  @Test("A tar.gz with several members has valid checksums")
  func members() throws {
    for count in [1, 2, 3, 50] {
      var gzip = GzipFixture()
      let memberByteCount = (tar.count + count - 1) / count
      for start in stride(from: 0, to: tar.count, by: memberByteCount) {
        gzip.add(Array(tar[start...].prefix(memberByteCount)))
      }
      #expect(try open(gzip.bytes).digest == digest, "\(count) members")
    }
  }

  @Test("A tar.gz with empty members and trailing zeros has valid checksums")
  func emptyMembers() throws {
    var gzip = GzipFixture()
    gzip.add([])
    gzip.add(Array(tar[..<1000]))
    gzip.add([])
    gzip.add(Array(tar[1000...]))
    gzip.add([])
    #expect(try open(gzip.bytes).digest == digest)
    #expect(try open(gzip.bytes + [UInt8](repeating: 0, count: 10_240)).digest == digest)
  }

  @Test("A change of a bit in the content, checksum, or length, and a missing end, are detected")
  func damage() throws {
    var valid = GzipFixture()
    valid.add(tar)
    let contentOffset = try #require(valid.bytes.firstRange(of: Array("a letter, packed".utf8))).lowerBound
    let checksumOffset = valid.bytes.count - 8
    let lengthOffset = valid.bytes.count - 1
    for offset in [contentOffset, checksumOffset, lengthOffset] {
      var changed = valid.bytes
      changed[offset] ^= 4
      let error = try #require(try failure(opening: changed))
      #expect(error == KeyhaulError(.damaged, "the gzip checksum does not match the contents"), "byte \(offset)")
    }
    for missingCount in 1...8 {
      let error = try #require(try failure(opening: Array(valid.bytes.dropLast(missingCount))))
      #expect(error.category == .damaged, "\(missingCount) bytes less")
    }
  }

  @Test("A wrong checksum of any of three members is detected", arguments: [0, 1, 2])
  func anyMember(wrongIndex: Int) throws {
    var gzip = GzipFixture()
    let third = tar.count / 3
    for (index, content) in [tar[..<third], tar[third..<2 * third], tar[(2 * third)...]].enumerated() {
      gzip.add(Array(content), checksum: index == wrongIndex ? 0x1234_5678 : nil)
    }
    #expect(try failure(opening: gzip.bytes)?.code == .damaged)
  }

  @Test("A doubly compressed tar is refused")
  func twice() throws {
    var (inner, outer) = (GzipFixture(), GzipFixture())
    inner.add(tar)
    outer.add(inner.bytes)
    let error = try #require(try failure(opening: outer.bytes))
    #expect(error == KeyhaulError(.unsupported, "it is compressed more than once"))
  }

  @Test("The checksum of the fixtures has the published check value")
  func checkValue() {
    // Source: Catalogue of parametrised CRC algorithms, CRC-32/ISO-HDLC.
    #expect(GzipFixture.checksum(Array("123456789".utf8)) == 0xCBF4_3926)
  }

  @Test("CRC-32 matches RFC 1952 for data in two chunks of any size")
  func chunks() {
    // Enough bytes for several blocks of the parallel computation, and a remainder.
    let bytes = (0..<7001).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }
    for firstCount in [0, 1, 7, 8, 9, 500, 1024, 2047, 2048, 2049, 3500, 4096, 4953, 7000, 7001] {
      var checksum = CRC32()
      bytes[..<firstCount].withUnsafeBytes { checksum.update($0) }
      bytes[firstCount...].withUnsafeBytes { checksum.update($0) }
      #expect(checksum.value == GzipFixture.checksum(bytes))
    }
  }
}
