import Basics
import KeychainFormats
import KeychainRules
import Keychains
import TestSupport
import Testing

@Suite("Encrypted entries with their keys")
struct EncryptedEntryTests {
  private let vector: TestVectors
  private let bytes: [UInt8]

  init() throws {
    vector = try #require(try TestVectors.databaseItems()["sealed_entries"].elements.first)
    bytes = try vector["base64"].base64Bytes
  }

  /// Reads the dump with a part of its text replaced.
  private func dump(replacing old: String, with new: String) throws -> KeychainDump {
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.contains(old), "\(old)")
    return try KeychainDump(parsing: Array(text.replacing(old, with: new).utf8))
  }

  @Test("Encrypted entries with an available key are decrypted, with the same results as another reader's")
  func opening() throws {
    let dump = try KeychainDump(parsing: bytes)
    let expected = try vector["items"].elements

    #expect(dump.format == .encryptedEntries)
    #expect(dump.skippedEntryCounts == [.unknownLayout: 1])
    #expect(dump.items.count == 6 && expected.count == 6)
    for item in dump.items {
      let expectedItem = expected[item.entryPosition]
      let verdict = try expectedItem["verdict"].string
      #expect(try item.kind.rawValue == expectedItem["table"].string)
      #expect(item.tableSource == .stated)
      #expect(try item.protection?.rawValue == expectedItem["protection"].string)
      #expect((item.fault?.reason.rawValue ?? "ok") == verdict)
      #expect(item.hasSecret == (verdict == "ok"))
      #expect(try secret(item) == (verdict == "ok" ? expectedItem["secret"]["v_Data"]["hex"].bytes : nil))
      guard expectedItem.has("attributes") else {
        #expect(item.item == nil)
        continue
      }
      var attributes = AttributeMap<PropertyValue>()
      for (code, value) in try expectedItem["attributes"].members {
        attributes[AttributeCode(rawValue: code)] = try value.property
      }
      #expect(item.item?.attributes == attributes)
    }
  }

  @Test("Undecryptable entries are counted by class and reason")
  func undecryptable() throws {
    let counts = try KeychainDump(parsing: bytes).undecryptedCounts
    #expect(
      counts.map { "\($0.itemCount) \($0.protection?.rawValue ?? "-") \($0.reason.rawValue) \($0.hasAttributes)" } == [
        "1 ak no-class-key true", "1 ak tag-mismatch true", "1 dku no-class-key false",
      ])
  }

  @Test("Attributes determine the table of an entry that names no table, and undecryptable entries are skipped")
  func withoutTables() throws {
    let dump = try dump(replacing: "<key>table</key>", with: "<key>other</key>")

    #expect(
      dump.items.map(\.kind) == [
        .genericPassword, .genericPassword, .genericPassword, .genericPassword, .internetPassword,
      ])
    #expect(dump.items.allSatisfy { $0.tableSource == .inferred })
    #expect(dump.skippedEntryCounts == [.unknownLayout: 1, .noTable: 1])
  }

  private func faults(_ dump: KeychainDump) -> [String?] { dump.items.map { $0.fault?.reason.rawValue } }

  @Test("An unsupported version of an entry does not affect other entries")
  func unsupportedVersion() throws {
    let dump = try dump(
      replacing: "<integer>7</integer>\n\t\t</dict>", with: "<integer>9</integer>\n\t\t</dict>")
    #expect(faults(dump) == [nil, "unsupported-version", "no-class-key", "tag-mismatch", "no-class-key", nil])
  }

  @Test("A wrong tamper check of an entry does not affect other entries")
  func wrongTamperCheck() throws {
    let dump = try dump(
      replacing: "<string>37B79A1C-259F-CD90-363E-EC8F40821958</string>", with: "<string>37</string>")
    #expect(faults(dump).prefix(2) == ["malformed", nil])
    #expect(dump.items.first?.item == nil)
  }

  @Test("Entries without a class or without metadata are malformed")
  func missingKeys() throws {
    let withoutClass = try dump(replacing: "<key>classKeyIdx</key>", with: "<key>classKey</key>")
    #expect(faults(withoutClass) == Array(repeating: "malformed", count: 6))
    #expect(withoutClass.items.allSatisfy { $0.item == nil && $0.protection == nil })
    let withoutMetadata = try dump(replacing: "<key>metadata</key>", with: "<key>meta</key>")
    #expect(faults(withoutMetadata) == Array(repeating: "malformed", count: 6))
  }

  /// The class key of items that are accessible when unlocked.
  private static let whenUnlockedKey = "<data>\n\t\t9sv/78Y9zuXKbDVmdoJKsxJvlSqmD2ke4nyIJrm8MkM=\n\t\t</data>"

  @Test("A class key can be Base64 text instead of data")
  func keyAsText() throws {
    let dump = try dump(
      replacing: Self.whenUnlockedKey, with: "<string>9sv/78Y9zuXKbDVmdoJKsxJvlSqmD2ke4nyIJrm8MkM=</string>")
    #expect(dump.items.first?.hasSecret == true)
  }

  @Test(
    "An unusable class key affects only items of its class",
    arguments: ["<data>AAAA</data>", "<string>*</string>", "<integer>1</integer>", "<dict/>"])
  func unusableKey(key: String) throws {
    let dump = try dump(replacing: Self.whenUnlockedKey, with: key)
    #expect(dump.items.filter { $0.protection == .whenUnlocked }.allSatisfy { $0.fault?.reason == .malformed })
    #expect(dump.items.filter(\.hasSecret).map(\.protection) == [.afterFirstUnlock, .whenUnlockedThisDeviceOnly])
  }

  /// Reads a dump with the given entries.
  ///
  /// - Parameters:
  ///   - entries: The entries in XML.
  ///   - xml: Keys and values beside the entries.
  ///   - limit: The maximum number of entries.
  private func dump(entries: String, beside xml: String = "", limit: Int = 10) throws -> KeychainDump {
    try KeychainDump(
      parsing: plist(
        "<dict><key>classKeyIdxToUnwrappedMetadataClassKey</key><dict/><key>keychainEntries</key>"
          + "<array>\(entries)</array>\(xml)</dict>"), acceptingAtMost: limit)
  }

  @Test("Entries that are not items are counted by the reason")
  func skippedEntries() throws {
    let dump = try dump(
      entries: "<string/><dict/><dict>\(text("table", "idnt"))</dict><dict>\(text("table", "x"))</dict>")
    #expect(dump.items.isEmpty)
    #expect(dump.skippedEntryCounts == [.notAnItem: 1, .noTable: 1, .identity: 1, .unknownTable: 1])
    #expect(dump.unknownTableNames == ["x"])
  }

  @Test("Too many entries are rejected")
  func tooManyEntries() {
    #expect(throws: KeyhaulError(.dumpOverLimit, "more than 2 entries")) {
      try dump(entries: "<dict/><dict/><dict/>", limit: 2)
    }
  }

  @Test("Tables beside entries are rejected")
  func tablesBesideEntries() {
    #expect(
      throws: KeyhaulError(.unknownDump, "it has both encrypted entries and tables, which no known tool writes")
    ) { try dump(entries: "", beside: "<key>genp</key><array/>") }
  }

  @Test("An entry with the largest version number is unsupported")
  func largestVersion() throws {
    let dump = try dump(
      entries: "<dict>\(text("table", "genp"))<key>classKeyIdx</key><integer>-1</integer><key>version</key>"
        + "<integer>9223372036854775807</integer></dict>")
    #expect(dump.items.first?.fault?.reason == .unsupportedVersion)
  }
}
