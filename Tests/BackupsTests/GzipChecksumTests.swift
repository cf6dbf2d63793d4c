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
    // The content contains a stored gzip file, and bytes that look like one.
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
      let size = (tar.count + count - 1) / count
      for start in stride(from: 0, to: tar.count, by: size) {
        gzip.add(Array(tar[start..<min(start + size, tar.count)]))
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
    let letter = try #require(valid.bytes.firstRange(of: Array("a letter, packed".utf8)))
    for offset in [letter.lowerBound, valid.bytes.count - 8, valid.bytes.count - 1] {
      var changed = valid.bytes
      changed[offset] ^= 4
      let error = try #require(try failure(opening: changed))
      #expect(error == KeyhaulError(.damaged, "the gzip checksum does not match the contents"), "byte \(offset)")
    }
    for missing in 1...8 {
      let error = try #require(try failure(opening: Array(valid.bytes.dropLast(missing))))
      #expect(error.category == .damaged, "\(missing) bytes less")
    }
  }

  @Test("A wrong checksum of an earlier member is detected", arguments: [0, 1, 2])
  func earlierMember(wrong: Int) throws {
    var gzip = GzipFixture()
    let third = tar.count / 3
    for (index, part) in [tar[..<third], tar[third..<2 * third], tar[(2 * third)...]].enumerated() {
      gzip.add(Array(part), checksum: index == wrong ? 0x1234_5678 : nil)
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

  @Test("CRC-32 matches RFC 1952 for data in portions of any size")
  func checksums() {
    // The standard check value of this checksum.
    #expect(GzipFixture.checksum(Array("123456789".utf8)) == 0xCBF4_3926)
    // Several ranges for two parallel computations, and a remainder.
    let bytes = (0..<7001).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }
    for cut in [0, 1, 7, 8, 9, 500, 1024, 2047, 2048, 2049, 3500, 4096, 4953, 7000, 7001] {
      var sum = CRC32()
      bytes[..<cut].withUnsafeBytes { sum.update($0) }
      bytes[cut...].withUnsafeBytes { sum.update($0) }
      #expect(sum.value == GzipFixture.checksum(bytes))
    }
  }
}
