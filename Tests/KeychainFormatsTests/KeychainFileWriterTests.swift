import Basics
import KeychainFormats
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

  /// Returns the file's bytes, encoded from a property list value.
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

  /// The form of counts changes at about 14 items, and the size of references at about 85 and 22,000.
  @Test(
    "A file that is written in chunks has the same bytes as a file that is encoded at once",
    arguments: [0, 1, 14, 15, 16, 84, 85, 86, 87, 3000, 22_100], ["3e13c52c-7f6c-7dfe-4789-6ec6af9328d0", "genp", nil])
  func same(count: Int, uuid: String?) throws {
    let entries = makeEntries(count)
    let file = try KeychainBackupFile(keybagUUID: uuid, entries: entries).serialized()
    #expect(try file == expectedFile(keybagUUID: uuid, entries))
  }

  /// The bytes of entries in one buffer, and entries that contain only their ranges in it.
  private struct IndexedEntries {
    private(set) var source: [UInt8] = []
    private(set) var locations: [Entry] = []

    init(_ entries: [Entry]) {
      for entry in entries {
        let blobRange = entry.blob.map { append($0) }
        let referenceRange = entry.persistentReference.map { append($0) }
        locations.append(Entry(kind: entry.kind, in: [], blob: blobRange, persistentReference: referenceRange))
      }
    }

    private mutating func append(_ bytes: [UInt8]) -> Range<Int> {
      source += bytes
      return source.count - bytes.count..<source.count
    }
  }

  @Test("The writer outputs chunks, requests each entry once in order, and needs only the ranges of entries")
  func chunks() throws {
    let entries = makeEntries(5000)
    let indexed = IndexedEntries(entries)
    var output: [UInt8] = []
    var largestChunk = 0
    var requestedKinds: [ItemKind] = []
    // The number of bytes that the requested locations contain themselves.
    var contentByteCount = 0

    let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: "genp", entries: indexed.locations))
    try writer.write { (location) throws(FormatError) in
      contentByteCount += (location.blob?.count ?? 0) + (location.persistentReference?.count ?? 0)
      requestedKinds.append(location.kind)
      return Entry(location, in: indexed.source)
    } to: { (chunk) throws(FormatError) in
      largestChunk = max(largestChunk, chunk.count)
      output += Array(chunk)
    }

    #expect(try output == expectedFile(keybagUUID: "genp", entries))
    #expect(output.count > 1_000_000 && largestChunk < 300_000)
    #expect(contentByteCount == 0)
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
