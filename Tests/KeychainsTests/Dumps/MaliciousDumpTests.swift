import Basics
import KeychainFormats
import KeychainRules
import Keychains
import Testing

@Suite("Malicious dumps")
struct MaliciousDumpTests {
  /// Returns the error code of an attempt to read a dump, or `nil` if the dump is read.
  private func errorCode(_ bytes: [UInt8]) -> KeyhaulError.Code? {
    do throws(KeyhaulError) {
      _ = try KeychainDump(parsing: bytes)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("The encrypted keychain of a backup is rejected as a backup's keychain, not as an unknown dump")
  func backupKeychain() {
    #expect(
      errorCode(plist("<dict><key>genp</key>\(entries(data("v_Data", "x") + data("v_PersistentRef", "y")))</dict>"))
        == .backupKeychain)
    #expect(
      errorCode(plist("<dict><key>keybag-uuid</key><string>a</string><key>genp</key><array/></dict>"))
        == .backupKeychain)
  }

  @Test(
    "Files that are not dumps are rejected with a code for each reason",
    arguments: [
      ("", KeyhaulError.Code.unreadableDump), ("[]", .unknownDump), ("[[]]", .unknownDump),
      ("{\"a\": 1}", .unknownDump),
      ("[{\"item_class\": \"a\"", .unreadableDump),
      ("[{\"item_class\": \"a\", \"item_class\": \"b\"}]", .unreadableDump),
      ("<plist><array/></plist>", .unknownDump), ("<plist><dict/></plist>", .unknownDump),
      ("<plist><dict>", .unreadableDump),
      ("<plist><string>x</string></plist>", .unknownDump), ("bplist00", .unreadableDump),
      ("\u{0}\u{0}", .unreadableDump),
      (String(repeating: "[", count: 100_000), .dumpOverLimit),
      ("<plist>" + String(repeating: "<array>", count: 100_000), .dumpOverLimit),
    ])
  func rejected(_ text: String, _ expected: KeyhaulError.Code) {
    #expect(errorCode(Array(text.utf8)) == expected)
  }

  @Test("A dump that is one byte too long is rejected before it is read")
  func tooLong() {
    let space = UInt8(ascii: " ")
    var bytes = [UInt8](repeating: space, count: KeychainDump.maximumByteCount)
    bytes[0] = 0
    #expect(errorCode(bytes) == .unreadableDump)
    #expect(errorCode(bytes + [space]) == .dumpOverLimit)
  }

  @Test("A dump may have as many entries as the limit and no more")
  func tooMany() {
    let threeEntries = Array("[{\"item_class\": \"a\"}, 0, 0]".utf8)
    #expect(throws: Never.self) { try KeychainDump(parsing: threeEntries, acceptingAtMost: 3) }
    #expect(throws: KeyhaulError(.dumpOverLimit, "more than 2 entries")) {
      try KeychainDump(parsing: threeEntries, acceptingAtMost: 2)
    }
    #expect(KeychainDump.maximumItemCount == 200_000)
  }

  @Test("Values of wrong types make attributes unusable, but not the item")
  func wrongTypes() throws {
    // After the item, the dictionary has two entries that are not items.
    let dump = try KeychainDump(
      parsing: plist(
        "<dict><key>genp</key>"
          + entries(
            "<key>agrp</key><array/><key>acct</key><dict/><key>pdmn</key><integer>7</integer><key>cdat</key><true/>"
              + "<key>musr</key>" + "<data>AAAA</data>" + "<key>sync</key><real>0.5</real><key>v_Data</key><array/>"
              + "<key>xyzw</key><real>1</real><key>svce</key><string>a</string>",
            "") + "<key>keys</key><string>none</string><key>made</key><string>by someone</string></dict>"))

    let item = try #require(dump.items.first)
    #expect(dump.items.count == 1)
    #expect(
      item.unusableAttributes == ["acct", "agrp", "cdat", "musr", "pdmn", "sync", "v_Data", "xyzw"])
    #expect(item.item?.attributes == [.service: .string("a")])
    #expect(item.fault?.reason == .malformed)
    #expect(dump.skippedEntryCounts == [.notAnItem: 2])
  }

  @Test("The first value of a repeated key is used, and repetitions are counted")
  func repeated() throws {
    let dump = try KeychainDump(
      parsing: plist(
        "<dict><key>genp</key>\(entries(text("acct", "a") + text("acct", "b") + data("v_Data", "1") + data("v_Data", "2")))"
          + "<key>genp</key>\(entries(text("acct", "c")))</dict>"))

    #expect(dump.items.map { $0.item?[.account] } == [.string("a")])
    #expect(secret(dump.items.first) == Array("1".utf8))
    #expect(dump.repeatedKeyCount == 3)
  }

  @Test("Names keep their control characters, and no description contains a secret")
  func names() throws {
    let dump = try KeychainDump(
      parsing: Array(
        "[{\"item_class\": \"kSecClassGenericPassword\", \"account\": \"a\\u0000\\u001b[31m\", \"dataHex\": \"6869\"}]"
          .utf8))

    #expect(dump.items.first?.item?[.account] == .string("a\u{0}\u{1B}[31m"))
    #expect(!"\(dump)".contains("hi"))
  }

  @Test("Only a few names of unknown tables are kept, but all their entries are counted")
  func unknownTables() throws {
    let tables = (0..<20).map { "<key>t\($0)</key>\(entries(text("a", "b")))" }.joined()
    let dump = try KeychainDump(parsing: plist("<dict><key>genp</key><array/>\(tables)</dict>"))

    #expect(dump.skippedEntryCounts == [.unknownTable: 20])
    #expect(dump.unknownTableNames == (0..<8).map { "t\($0)" })
  }
}
