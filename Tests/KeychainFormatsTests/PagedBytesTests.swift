import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Bytes that are read page by page")
struct PagedBytesTests {
  private func paged(_ bytes: [UInt8], noting note: @escaping (Int) -> Void = { _ in }) -> PagedBytes {
    PagedBytes(count: bytes.count) { offset, page in
      note(offset)
      page.copyBytes(from: bytes[offset..<offset + page.count])
      return true
    }
  }

  @Test("Paged bytes are correct in any order of access, and each page is read once if all pages fit into the cache")
  func same() throws {
    var random = SeededRandom(seed: 3)
    for count in [1, 16_383, 16_384, 16_385, 5 << 20] {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
      var reads: [Int: Int] = [:]
      let pages = paged(bytes) { reads[$0, default: 0] += 1 }
      for _ in 0..<20_000 {
        let offset = Int.random(in: 0..<count, using: &random)
        #expect(pages[offset] == bytes[offset])
      }
      #expect(pages[count - 1] == bytes[count - 1] && !pages.hasFailed)
      // The cache has 256 pages of 16 KiB.
      #expect(count > 4 << 20 || reads.values.allSatisfy { $0 == 1 })
    }
  }

  @Test("Unreadable paged bytes are zeros, and nothing is read after a failure")
  func failing() {
    var readCount = 0
    let pages = PagedBytes(count: 40_000) { _, page in
      readCount += 1
      page.initializeMemory(as: UInt8.self, repeating: 7)
      return readCount < 2
    }
    #expect(pages[0] == 7 && !pages.hasFailed)
    #expect(pages[20_000] == 0 && pages.hasFailed)
    #expect(pages[39_999] == 0 && pages[1] == 7 && readCount == 2)
  }

  private struct Contents: Equatable {
    let keybagUUID: String?
    let ignoredKeys: [String]
    let entries: [KeychainBackupFile.Entry]
  }

  private func contents(of bytes: [UInt8]) -> Result<Contents, FormatError> {
    Result { () throws(FormatError) in
      let file = try KeychainBackupFile(parsing: bytes)
      return Contents(keybagUUID: file.keybagUUID, ignoredKeys: file.ignoredKeys, entries: file.entries)
    }
  }

  private func indexedContents(of bytes: [UInt8]) -> Result<Contents, FormatError> {
    Result { () throws(FormatError) in
      let file = try KeychainBackupFile(indexing: paged(bytes))
      return Contents(
        keybagUUID: file.keybagUUID, ignoredKeys: file.ignoredKeys, entries: file.entries.map { .init($0, in: bytes) })
    }
  }

  private func makeFile(itemCount: Int, blobByteCount: Int) throws -> [UInt8] {
    let entries = (0..<itemCount).map { number in
      KeychainBackupFile.Entry(
        kind: ItemKind.allCases[number % 4],
        blob: Array(repeating: UInt8(number % 251), count: blobByteCount + number % 7),
        persistentReference: number.isMultiple(of: 5) ? nil : [UInt8(number % 250), 1, 2])
    }
    return try KeychainBackupFile(keybagUUID: "3e13c52c-7f6c-7dfe-4789-6ec6af9328d0", entries: entries).serialized()
  }

  @Test("A keychain file in paged bytes has the same items as in memory", arguments: [(0, 1), (5, 20), (3000, 3000)])
  func keychain(itemCount: Int, blobByteCount: Int) throws {
    let bytes = try makeFile(itemCount: itemCount, blobByteCount: blobByteCount)
    let indexed = try indexedContents(of: bytes).get()
    #expect(indexed == (try contents(of: bytes).get()) && indexed.entries.count == itemCount)
  }

  @Test(
    "A damaged keychain file in paged bytes gives the same error or items as in memory: 40,000 faults, or 4,000 in a quick run"
  )
  func faults() throws {
    let valid = try makeFile(itemCount: 9, blobByteCount: 6)
    var random = SeededRandom(seed: 11)
    var errorCount = 0
    for _ in 0..<Cases.count(40_000, quick: 4_000) {
      var bytes = valid
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if Int.random(in: 0..<8, using: &random) == 0 {
        bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
      }
      // An XML file is not read page by page.
      guard bytes.first != UInt8(ascii: "<") else { continue }
      let result = contents(of: bytes)
      #expect(indexedContents(of: bytes) == result)
      if case .failure = result { errorCount += 1 }
    }
    #expect(errorCount > 500)
  }
}
