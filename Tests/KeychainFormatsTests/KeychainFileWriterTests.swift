import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Writing keychain files in chunks")
struct KeychainFileWriterTests {
  private typealias Entry = KeychainBackupFile.Entry

  /// Returns entries of all kinds and of different lengths, some without a blob or a reference.
  private func makeEntries(_ count: Int) -> [Entry] {
    (0..<count).map { number in
      Entry(
        kind: ItemKind.allCases[number % 3 == 0 ? 3 : number % 4],
        blob: number % 11 == 5 ? nil : Array(repeating: UInt8(number % 251), count: number % 600),
        persistentReference: number % 5 == 0 ? nil : [UInt8(number % 250), 1, 2])
    }
  }

  /// Returns the bytes of a keychain file with the given entries, which are encoded at once from a property list value.
  private func expectedFile(keybagUUID: String?, _ entries: [Entry]) throws -> [UInt8] {
    var root = PropertyDictionary()
    root["keybag-uuid"] = keybagUUID.map { .string($0) }
    for kind in ItemKind.allCases {
      let items = entries.filter { $0.kind == kind }.map { entry in
        var item = PropertyDictionary()
        item["v_Data"] = entry.blob.map { .data($0) }
        item["v_PersistentRef"] = entry.persistentReference.map { .data($0) }
        return PropertyValue.dictionary(item)
      }
      if !items.isEmpty { root[kind.rawValue] = .array(items) }
    }
    return try BinaryPlist.encode(.dictionary(root))
  }

  private static let uuid = "3e13c52c-7f6c-7dfe-4789-6ec6af9328d0"

  /// The tested UUIDs of keybags. One is the name of a kind, because the file must contain equal strings only once.
  private static let keybagUUIDs = [uuid, "genp", nil]

  /// `plistlib` tests most of these sizes and says what changes at them. The longest blobs of 14, 15 and 16 entries have
  /// 13, 14 and 15 bytes. A blob stores its length in the same way as an array.
  @Test(
    "A file that is written in chunks has the same bytes as a file that is encoded at once",
    arguments: [0, 1, 14, 15, 16, 30, 31, 90, 511, 512, 3000, 24_187], keybagUUIDs)
  func sameBytes(count: Int, uuid: String?) throws {
    let entries = makeEntries(count)
    let file = try KeychainBackupFile(keybagUUID: uuid, entries: entries).serialized()
    #expect(try file == expectedFile(keybagUUID: uuid, entries))
  }

  /// A Python script that makes the entries of `makeEntries` itself, and compares them with the file on standard input.
  ///
  /// It prints whether they are equal, the length of the longest array, and the file's number of objects and bytes per
  /// reference. A binary property list stores these two numbers at its end.
  private static let comparisonScript = """
    import plistlib, sys
    count, uuid, kinds = int(sys.argv[1]), sys.argv[2], ["genp", "inet", "cert", "keys"]
    expected, longest = {"keybag-uuid": uuid} if uuid else {}, 0
    for number in range(count):
        item = {}
        if number % 11 != 5:
            item["v_Data"] = bytes([number % 251]) * (number % 600)
        if number % 5 != 0:
            item["v_PersistentRef"] = bytes([number % 250, 1, 2])
        items = expected.setdefault(kinds[3 if number % 3 == 0 else number % 4], [])
        items.append(item)
        longest = max(longest, len(items))
    file = sys.stdin.buffer.read()
    print(plistlib.loads(file) == expected, longest, int.from_bytes(file[-24:-16], "big"), file[-25])
    """

  /// The first byte of an array contains its length up to 14. A longer array has an integer, which has 1 byte up to 255
  /// and 2 bytes from 256. References have 1 byte in a file of at most 256 objects, 2 bytes up to 65,536 objects, and 4
  /// bytes in a larger file.
  ///
  /// The expected numbers of objects are from files that plistlib wrote.
  @Test(
    "Python's plistlib reads the same entries at sizes at which arrays or references change their form",
    arguments: [
      (30, uuid, 14, 94, 1), (31, uuid, 15, 96, 1), (90, nil, 44, 255, 1), (90, "genp", 44, 256, 1),
      (90, uuid, 44, 257, 2), (511, uuid, 255, 1397, 2), (512, uuid, 256, 1399, 2), (24_187, nil, 12_093, 65_535, 2),
      (24_187, "genp", 12_093, 65_536, 2), (24_187, uuid, 12_093, 65_537, 4),
    ] as [(Int, String?, Int, Int, Int)])
  func plistlib(
    entryCount: Int, uuid: String?, longestArrayCount: Int, objectCount: Int, referenceByteCount: Int
  ) throws {
    let file = try KeychainBackupFile(keybagUUID: uuid, entries: makeEntries(entryCount)).serialized()
    let python = ChildProcess("python3", ["-c", Self.comparisonScript, String(entryCount), uuid ?? ""])
    let outcome = try python.run(input: Data(file))
    #expect(
      String(decoding: outcome.output, as: UTF8.self)
        == "True \(longestArrayCount) \(objectCount) \(referenceByteCount)\n",
      "\(String(decoding: outcome.errors, as: UTF8.self))")
  }

  /// A buffer with the bytes of all entries, and for each entry the ranges of its bytes in the buffer.
  private struct IndexedEntries {
    private(set) var buffer: [UInt8] = []
    private(set) var entriesWithoutBytes: [Entry] = []

    init(_ entries: [Entry]) {
      for entry in entries {
        let blobRange = entry.blob.map { append($0) }
        let referenceRange = entry.persistentReference.map { append($0) }
        entriesWithoutBytes.append(
          Entry(kind: entry.kind, in: [], blob: blobRange, persistentReference: referenceRange))
      }
    }

    /// Appends bytes to the buffer.
    ///
    /// - Returns: The range of the bytes in the buffer.
    private mutating func append(_ bytes: [UInt8]) -> Range<Int> {
      buffer += bytes
      return buffer.count - bytes.count..<buffer.count
    }
  }

  @Test("The writer outputs chunks, requests each entry once in order, and needs only the ranges of entries")
  func chunks() throws {
    let entries = makeEntries(5000)
    let indexed = IndexedEntries(entries)
    var output: [UInt8] = []
    var largestChunk = 0
    var requestedKinds: [ItemKind] = []
    // The number of bytes in the entries that the writer passes to the closure.
    var requestedByteCount = 0

    let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: "genp", entries: indexed.entriesWithoutBytes))
    try writer.write { (entry) throws(FormatError) in
      requestedByteCount += (entry.blob?.count ?? 0) + (entry.persistentReference?.count ?? 0)
      requestedKinds.append(entry.kind)
      return Entry(entry, in: indexed.buffer)
    } to: { (chunk) throws(FormatError) in
      largestChunk = max(largestChunk, chunk.count)
      output += Array(chunk)
    }

    #expect(try output == expectedFile(keybagUUID: "genp", entries))
    #expect(output.count > 1_000_000 && largestChunk < 300_000)
    // The entries have only ranges, and the writer does not read their bytes itself.
    #expect(requestedByteCount == 0)
    #expect(requestedKinds == ItemKind.allCases.flatMap { kind in entries.map(\.kind).filter { $0 == kind } })
  }

  private static let failure = FormatError(.keychainFile, .truncated, "injected")

  @Test("The writer stops if an entry cannot be read", arguments: [0, 1, 2999])
  func failedRead(successfulReadCount: Int) throws {
    let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: nil, entries: makeEntries(3000)))
    var readCount = 0
    #expect(throws: Self.failure) {
      try writer.write { (entry) throws(FormatError) in
        guard readCount < successfulReadCount else { throw Self.failure }
        readCount += 1
        return entry
      } to: { (_) throws(FormatError) in
      }
    }
    #expect(readCount == successfulReadCount)
  }

  @Test("The writer stops if a chunk cannot be written")
  func failedWrite() throws {
    let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: nil, entries: makeEntries(3000)))
    var chunkCount = 0
    #expect(throws: Self.failure) {
      try writer.write { (entry) throws(FormatError) in
        entry
      } to: { (_) throws(FormatError) in
        chunkCount += 1
        throw Self.failure
      }
    }
    #expect(chunkCount == 1)
  }
}
