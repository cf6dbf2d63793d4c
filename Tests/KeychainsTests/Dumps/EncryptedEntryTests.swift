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

  /// Returns the dump of the file with replaced text.
  private func changed(_ replacements: (String, String)...) throws -> KeychainDump {
    var text = String(decoding: bytes, as: UTF8.self)
    for (old, new) in replacements {
      #expect(text.contains(old), "\(old)")
      text = text.replacing(old, with: new)
    }
    return try KeychainDump(parsing: Array(text.utf8))
  }

  @Test("Encrypted entries are decrypted as far as their keys allow, with the results of another reader")
  func opening() throws {
    let dump = try KeychainDump(parsing: bytes)
    let expected = try vector["items"].elements

    #expect(dump.format == .encryptedEntries)
    #expect(dump.skipped == [.unknownLayout: 1])
    #expect(dump.items.count == 6 && expected.count == 6)
    for item in dump.items {
      let expectedItem = expected[item.entry]
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
      let attributes = try expectedItem["attributes"].members.reduce(into: AttributeMap<PropertyValue>()) {
        all, member in
        all[AttributeCode(rawValue: member.key)] = try member.value.property
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

  @Test("Attributes determine the table of an entry without one, and undecryptable entries are skipped")
  func withoutTables() throws {
    let dump = try changed(("<key>table</key>", "<key>other</key>"))

    #expect(
      dump.items.map(\.kind) == [
        .genericPassword, .genericPassword, .genericPassword, .genericPassword, .internetPassword,
      ])
    #expect(dump.items.allSatisfy { $0.tableSource == .inferred })
    #expect(dump.skipped == [.unknownLayout: 1, .noTable: 1])
  }

  @Test("A fault in the version, class, tamper check or parts of an entry does not affect other entries")
  func damaged() throws {
    func faults(_ dump: KeychainDump) -> [String?] { dump.items.map { $0.fault?.reason.rawValue } }

    let version = try changed(("<integer>7</integer>\n\t\t</dict>", "<integer>9</integer>\n\t\t</dict>"))
    #expect(faults(version) == [nil, "unsupported-version", "no-class-key", "tag-mismatch", "no-class-key", nil])
    let withoutClass = try changed(("<key>classKeyIdx</key>", "<key>classKey</key>"))
    #expect(faults(withoutClass) == Array(repeating: "malformed", count: 6))
    #expect(withoutClass.items.allSatisfy { $0.item == nil && $0.protection == nil })
    let tamper = try changed(("<string>37B79A1C-259F-CD90-363E-EC8F40821958</string>", "<string>37</string>"))
    #expect(faults(tamper).first == "malformed" && faults(tamper).dropFirst().first == .some(nil))
    #expect(tamper.items.first?.item == nil)
    let withoutMetadata = try changed(("<key>metadata</key>", "<key>meta</key>"))
    #expect(faults(withoutMetadata) == Array(repeating: "malformed", count: 6))
  }

  @Test("Base64 text counts as data, and an unusable class key affects only items of its class")
  func keys() throws {
    let key = "<data>\n\t\t9sv/78Y9zuXKbDVmdoJKsxJvlSqmD2ke4nyIJrm8MkM=\n\t\t</data>"
    let text = try changed((key, "<string>9sv/78Y9zuXKbDVmdoJKsxJvlSqmD2ke4nyIJrm8MkM=</string>"))
    #expect(text.items.first?.hasSecret == true)

    for unusableKey in ["<data>AAAA</data>", "<string>*</string>", "<integer>1</integer>", "<dict/>"] {
      let dump = try changed((key, unusableKey))
      #expect(dump.items.filter { $0.protection == .whenUnlocked }.allSatisfy { $0.fault?.reason == .malformed })
      #expect(dump.items.filter(\.hasSecret).map(\.protection) == [.afterFirstUnlock, .whenUnlockedThisDeviceOnly])
    }
  }

  @Test("Entries that are not items are counted, too many entries are rejected, and so are tables beside entries")
  func hostile() throws {
    func read(_ entries: String, _ more: String = "", limit: Int = 10) throws -> KeychainDump {
      try KeychainDump(
        parsing: plist(
          "<dict><key>classKeyIdxToUnwrappedMetadataClassKey</key><dict/><key>keychainEntries</key>"
            + "<array>\(entries)</array>\(more)</dict>"), acceptingAtMost: limit)
    }
    let dump = try read("<string/><dict/><dict>\(text("table", "idnt"))</dict><dict>\(text("table", "x"))</dict>")
    #expect(dump.items.isEmpty)
    #expect(dump.skipped == [.notAnItem: 1, .noTable: 1, .identity: 1, .unknownTable: 1])
    #expect(dump.unknownTables == ["x"])
    #expect(throws: KeyhaulError(.dumpOverLimit, "more than 2 entries")) {
      try read("<dict/><dict/><dict/>", limit: 2)
    }
    #expect(
      throws: KeyhaulError(.unknownDump, "it has both encrypted entries and tables, which no known tool writes")
    ) { try read("", "<key>genp</key><array/>") }
    let huge = try read(
      "<dict>\(text("table", "genp"))<key>classKeyIdx</key><integer>-1</integer><key>version</key>"
        + "<integer>9223372036854775807</integer></dict>")
    #expect(huge.items.first?.fault?.reason == .unsupportedVersion)
  }
}
