import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Keychain files of backups")
struct KeychainBackupFileTests {
  private func parse(_ root: PropertyValue) throws -> KeychainBackupFile {
    try KeychainBackupFile(parsing: BinaryPlist.encode(root))
  }

  private func item(_ number: UInt8) -> PropertyValue {
    .dictionary(["v_Data": .data([number]), "v_PersistentRef": .data([number, number])])
  }

  @Test("synthetic_backup: Foundation can read the written file, and the reader gives the offset of each item")
  func synthetic() throws {
    var entries: [KeychainBackupFile.Entry] = []
    for vector in try TestVectors.section("synthetic_backup")["items"].elements {
      let kind = try #require(ItemKind(rawValue: vector["table"].string))
      let reference = try vector["v_PersistentRef_hex"].bytes
      #expect(try PersistentReference(parsing: reference).kind == kind)
      #expect(try PersistentReference(parsing: reference).serialized() == reference)
      entries.append(.init(kind: kind, blob: try vector["v_Data_hex"].bytes, persistentReference: reference))
    }
    let bytes = try KeychainBackupFile(keybagUUID: "3e13c52c-7f6c-7dfe-4789-6ec6af9328d0", entries: entries)
      .serialized()

    let foundation = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil) as? [String: Any]
    #expect(foundation?.keys.sorted() == ["genp", "inet", "keybag-uuid"])
    #expect((foundation?["genp"] as? [[String: Data]])?.count == 4)

    let file = try KeychainBackupFile(parsing: bytes)
    #expect(file.keybagUUID == "3e13c52c-7f6c-7dfe-4789-6ec6af9328d0")
    #expect(
      file.entries.map(\.kind) == [
        .genericPassword, .genericPassword, .genericPassword, .genericPassword, .internetPassword,
      ])
    for entry in file.entries {
      let blob = try #require(entry.blob)
      let offset = try #require(entry.blobOffset)
      #expect(Array(bytes[offset..<(offset + blob.count)]) == blob)
    }
    #expect(Set(file.entries.map(\.blob)) == Set(entries.map(\.blob)))
  }

  @Test("Entries are in the order genp, inet, cert, keys, independently of the order in the file")
  func order() throws {
    let file = try parse(
      .dictionary([
        "keys": .array([item(4)]), "cert": .array([item(3)]), "inet": .array([item(2)]),
        "genp": .array([item(0), item(1)]),
      ]))
    #expect(file.entries.map(\.kind) == [.genericPassword, .genericPassword, .internetPassword, .certificate, .key])
    #expect(file.entries.map(\.blob) == [[0], [1], [2], [3], [4]])
    #expect(file.entries.map(\.persistentReference) == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]])
  }

  @Test("A dictionary counts as an array of one item, and a UUID that is not text is ignored")
  func tolerances() throws {
    let file = try parse(.dictionary(["genp": item(7), "keybag-uuid": .integer(5)]))
    #expect(file.entries.map(\.blob) == [[7]])
    #expect(file.keybagUUID == nil)
    #expect(file.ignoredKeys.isEmpty)
  }

  @Test("Unknown classes and values of the wrong type are skipped and listed")
  func ignored() throws {
    let file = try parse(.dictionary(["wlan": .array([.integer(1)]), "cert": .string("x"), "genp": .array([item(1)])]))
    #expect(file.entries.count == 1)
    #expect(file.ignoredKeys == ["wlan", "cert"])
  }

  @Test("An item without v_Data, or with text instead of data, is an entry without a blob")
  func missingBlob() throws {
    let file = try parse(
      .dictionary([
        "genp": .array([
          .dictionary(["v_PersistentRef": .data([1])]), .dictionary(["v_Data": .string("x")]),
          .dictionary(["v_Data": .data([])]), .dictionary([:]),
        ])
      ]))
    #expect(file.entries.map(\.blob) == [nil, nil, [], nil])
    #expect(file.entries[0].persistentReference == [1])
    #expect(file.entries.map { $0.blobOffset == nil } == [true, true, false, true])
  }

  @Test("A file that a device would reject completely is rejected")
  func refused() throws {
    // 0xD1 begins a dictionary with one entry, 0xA1 an array with one element, and 0x54 a string of four letters.
    let inputs = [
      FaultyInput("an array", PlistParts([0xA0]).bytes, .malformed, at: 8),
      FaultyInput("a number as key", PlistParts([0xD1, 1, 1], [0x10, 5]).bytes, .malformed, at: 11),
      FaultyInput(
        "an idnt key", PlistParts([0xD1, 1, 2], [0x54] + Array("idnt".utf8), [0xA0]).bytes, .malformed, at: 11),
      FaultyInput(
        "a string among the items", PlistParts([0xD1, 1, 2], [0x54] + Array("genp".utf8), [0xA1, 1]).bytes, .malformed,
        at: 11),
    ]
    for input in inputs {
      input.check(.keychainFile) { bytes throws(FormatError) in try KeychainBackupFile(parsing: bytes) }
    }
  }

  @Test("A file with the maximum number of items is read, and one more item is rejected when reading and writing")
  func entryCount() throws {
    // A file with this many references to one empty item.
    func bytes(_ count: Int) -> [UInt8] {
      let root: [UInt8] = [0xD1, 1, 3]
      let key = [0x54] + Array("genp".utf8)
      let item: [UInt8] = [0xD0]
      let items = [0xAF, 0x12] + [UInt8](bigEndian: count, count: 4) + [UInt8](repeating: 2, count: count)
      return PlistParts(root, key, item, items).bytes
    }
    let limit = 60_000
    #expect(try KeychainBackupFile(parsing: bytes(limit), acceptingAtMost: limit).entries.count == limit)
    // The array starts after the header (8 bytes), the root (3), the key (5) and the item (1).
    FaultyInput("one more", bytes(limit + 1), .overLimit, at: 17)
      .check(.keychainFile) { bytes throws(FormatError) in
        try KeychainBackupFile(parsing: bytes, acceptingAtMost: limit)
      }
    let tooManyEntries = [KeychainBackupFile.Entry](
      repeating: .init(kind: .key, blob: nil), count: KeychainBackupFile.maximumEntryCount + 1)
    let tooLarge = KeychainBackupFile(keybagUUID: nil, entries: tooManyEntries)
    #expect { try tooLarge.serialized() } throws: { ($0 as? FormatError)?.code == .overLimit }
  }

  @Test("A file without items is an empty dictionary")
  func empty() throws {
    let bytes = try KeychainBackupFile(keybagUUID: nil, entries: []).serialized()
    #expect(try BinaryPlist.decode(bytes) == .dictionary([:]))
  }

  @Test("Truncating a keychain file or flipping any of its bits does not crash the reader")
  func damage() throws {
    let bytes = try BinaryPlist.encode(
      .dictionary(["genp": .array([item(1), item(2)]), "keybag-uuid": .string("x"), "inet": item(3)]))
    readDamagedVariants(of: bytes) { _ = try? KeychainBackupFile(parsing: $0) }
  }
}

@Suite("Persistent references")
struct PersistentReferenceTests {
  @Test("All three forms survive a round trip byte for byte, with a big-endian row number")
  func forms() throws {
    let row = try [UInt8](hex: "67656e70 0000000000000102")
    #expect(try PersistentReference(parsing: row) == .rowID(.genericPassword, 258))
    let uuid = Array("keys".utf8) + (0..<16)
    #expect(try PersistentReference(parsing: uuid) == .uuid(.key, Array(0..<16)))
    let token = try [UInt8](hex: "746b7072 300c 0c0463657274 0c0174 040109")
    #expect(try PersistentReference(parsing: token) == .token(.certificate, tokenID: "t", objectID: [9]))
    for bytes in [row, uuid, token] { #expect(try PersistentReference(parsing: bytes).serialized() == bytes) }
  }

  @Test("Persistent references with a wrong length, class or token are rejected")
  func faults() throws {
    let inputs = [
      FaultyInput("nothing", [], .truncated, at: 0),
      FaultyInput("half a class", Array("gen".utf8), .truncated, at: 0),
      FaultyInput("an identity", Array("idnt".utf8) + [UInt8](repeating: 0, count: 8), .malformed, at: 0),
      FaultyInput("eleven bytes", Array("genp".utf8) + [UInt8](repeating: 0, count: 7), .malformed, at: 4),
      FaultyInput("nineteen bytes", Array("genp".utf8) + [UInt8](repeating: 0, count: 15), .malformed, at: 4),
      FaultyInput("only a class", Array("inet".utf8), .malformed, at: 4),
      FaultyInput("a token without an array", Array("tkpr".utf8), .malformed, at: 4),
      FaultyInput("a token of two parts", try [UInt8](hex: "746b7072 3009 0c0463657274 0c0174"), .malformed, at: 4),
      FaultyInput(
        "a token of identities", try [UInt8](hex: "746b7072 300c 0c0469646e74 0c0174 040109"), .malformed, at: 4),
    ]
    for input in inputs { input.check(.persistentReference, PersistentReference.init(parsing:)) }
    #expect(throws: FormatError.self) { try PersistentReference.uuid(.key, [1]).serialized() }
  }
}
