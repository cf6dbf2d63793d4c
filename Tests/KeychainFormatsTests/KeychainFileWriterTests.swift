import Basics
import KeychainFormats
import Testing

@Suite("Writing keychain files in portions")
struct KeychainFileWriterTests {
  private typealias Entry = KeychainBackupFile.Entry

  /// Returns entries of all kinds and of different lengths, some without a blob or a reference.
  private func entries(_ count: Int) -> [Entry] {
    (0..<count).map { number in
      Entry(
        kind: ItemKind.allCases[number % 3 == 0 ? 3 : number % 4],
        blob: number % 11 == 5 ? nil : Array(repeating: UInt8(number % 251), count: number % 600),
        persistentReference: number % 5 == 0 ? nil : [UInt8(number % 250), 1, 2])
    }
  }

  /// Returns the file's bytes, encoded from a property list value.
  private func expected(_ uuid: String?, _ entries: [Entry]) throws -> [UInt8] {
    var root = PropertyDictionary()
    root["keybag-uuid"] = uuid.map { .string($0) }
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
    "A file that is written in portions has the same bytes as one that is encoded at once",
    arguments: [0, 1, 14, 15, 16, 84, 85, 86, 87, 3000, 22_100], ["3e13c52c-7f6c-7dfe-4789-6ec6af9328d0", "genp", nil])
  func same(count: Int, uuid: String?) throws {
    let entries = entries(count)
    #expect(try KeychainBackupFile(keybagUUID: uuid, entries: entries).serialized() == expected(uuid, entries))
  }

  @Test("The writer outputs portions, requests each entry once in order, and needs only the ranges of entries")
  func portions() throws {
    let entries = entries(5000)
    var locations: [Entry] = []
    var (source, offset): ([UInt8], Int) = ([], 0)
    for entry in entries {
      let (blob, reference) = (entry.blob, entry.persistentReference)
      source += (blob ?? []) + (reference ?? [])
      let middle = offset + (blob?.count ?? 0)
      locations.append(
        Entry(
          kind: entry.kind, in: [], blob: blob.map { _ in offset..<middle },
          persistentReference: reference.map { middle..<middle + $0.count }))
      offset = source.count
    }
    var (written, largest, kinds, contentByteCount): ([UInt8], Int, [ItemKind], Int) = ([], 0, [], 0)
    let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: "genp", entries: locations))
    try writer.write { (location) throws(FormatError) in
      contentByteCount += (location.blob?.count ?? 0) + (location.persistentReference?.count ?? 0)
      kinds.append(location.kind)
      return Entry(location, in: source)
    } to: { (portion) throws(FormatError) in
      largest = max(largest, portion.count)
      written += Array(portion)
    }
    #expect(try written == expected("genp", entries))
    #expect(contentByteCount == 0 && written.count > 1_000_000 && largest < 300_000)
    #expect(kinds == ItemKind.allCases.flatMap { kind in entries.map(\.kind).filter { $0 == kind } })
  }

  @Test("The writer stops if an entry cannot be read or a portion cannot be written", arguments: [0, 1, 2999])
  func failing(successfulReads: Int) throws {
    let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: nil, entries: entries(3000)))
    let failure = FormatError(.keychainFile, .truncated, "injected")
    var reads = 0
    #expect(throws: failure) {
      try writer.write { (entry) throws(FormatError) in
        guard reads < successfulReads else { throw failure }
        reads += 1
        return entry
      } to: { (_) throws(FormatError) in
      }
    }
    #expect(reads == successfulReads)
    var portions = 0
    #expect(throws: failure) {
      try writer.write { (entry) throws(FormatError) in
        entry
      } to: { (_) throws(FormatError) in
        portions += 1
        throw failure
      }
    }
    #expect(portions == 1)
  }
}
