import Basics
import Foundation
import KeychainFormats
import KeychainRules
import Keychains
import TestSupport
import Testing

/// Returns an XML property list with this content.
func plist(_ content: String) -> [UInt8] {
  Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\(content)</plist>".utf8)
}

/// Returns an array of dictionaries in XML.
func entries(_ contents: String...) -> String {
  "<array>" + contents.map { "<dict>\($0)</dict>" }.joined() + "</array>"
}

/// Returns a key with a text in XML.
func text(_ key: String, _ value: String) -> String { "<key>\(key)</key><string>\(value)</string>" }
/// Returns a key with the bytes of a text as data in XML.
func data(_ key: String, _ value: String) -> String {
  "<key>\(key)</key><data>\(base64(Array(value.utf8)))</data>"
}
func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
func secret(_ item: DumpedItem?) -> [UInt8]? { item?.item?.secret?.withBytes { Array($0) } }

/// 2026-11-20T18:04:00Z, which is 9,454 days and 65,040 seconds after 2001-01-01.
let moment: Double = 9454 * 86_400 + 65_040

@Suite("Recognizing dumps by their content")
struct DumpReadingTests {
  @Test("Values in dumped tables keep their types, and become text if the attribute is text")
  func tables() throws {
    let dump = try KeychainDump(
      parsing: plist(
        "<dict><key>genp</key>"
          + entries(
            text("agrp", "ABCDE12345.org.example.chat") + text("acct", "anna") + text("svce", "chat.example")
              + text("pdmn", "ak")
              + "<key>sync</key><integer>1</integer><key>cdat</key><date>2026-11-20T18:04:00Z</date>"
              + data("gena", "raw\u{1}") + data("v_Data", "hunter2\u{0}"))
          + "<key>inet</key>"
          + entries(
            text("agrp", "com.apple.cfnetwork") + text("srvr", "mail.example.org") + text("ptcl", "imps")
              + "<key>port</key><string>993</string>" + text("pdmn", "cku") + text("v_Data", "correct horse"))
          + "</dict>"))

    #expect(dump.format == .tables)
    #expect(dump.items.map(\.kind) == [.genericPassword, .internetPassword])
    let (password, mail) = (dump.items[0], dump.items[1])
    #expect(password.item?[.account] == .string("anna"))
    #expect(password.item?[.generic] == .data(Array("raw\u{1}".utf8)))
    #expect(password.item?.isSynchronizable == true)
    #expect(password.item?.creationDate?.secondsSinceReferenceDate == moment)
    #expect(secret(password) == Array("hunter2\u{0}".utf8), "a secret keeps its final NUL")
    #expect(mail.item?[.port] == .integer(993))
    #expect(mail.item?[.protocolType] == .string("imps"))
    #expect(mail.protection == .afterFirstUnlockThisDeviceOnly)
    #expect(secret(mail) == Array("correct horse".utf8))
    #expect(dump.items.allSatisfy { $0.tableSource == .stated && $0.unusableAttributes.isEmpty })
  }

  @Test("In dumps in which every value is data, values are converted to the types of the attributes")
  func valuesAsData() throws {
    let dump = try KeychainDump(
      parsing: plist(
        "<dict><key>genp</key>"
          + entries(
            data("agrp", "apple\u{0}") + data("acct", "anna") + data("pdmn", "ck") + data("sync", "1")
              + data("invi", "007")
              + data("mdat", "2026-11-20 18:04:00 +0000") + data("cdat", "yesterday") + data("gena", "a\u{7}b")
              + data("labl", "two\u{0}\u{0}") + data("v_Data", "text\u{0}"))
          + "</dict>"))

    let item = try #require(dump.items.first)
    #expect(dump.format == .untypedTables)
    #expect(item.item?.accessGroup == "apple", "a final NUL is not part of the text")
    #expect(item.item?[.account] == .string("anna"))
    #expect(item.item?[.synchronizable] == .integer(1))
    #expect(item.item?[.isInvisible] == .string("007"), "007 is not a canonical number")
    #expect(item.item?.modificationDate?.secondsSinceReferenceDate == moment)
    #expect(item.item?.creationDate == nil)
    #expect(item.unusableAttributes == [.creationDate])
    #expect(item.item?[.generic] == .data(Array("a\u{7}b".utf8)), "data with a control character is not text")
    #expect(item.item?[.label] == .data(Array("two\u{0}\u{0}".utf8)))
    #expect(secret(item) == Array("text\u{0}".utf8))
  }

  @Test("An item in an array records whether its table is stated or follows from its attributes")
  func array() throws {
    let dump = try KeychainDump(
      parsing: plist(
        entries(
          text("table", "keys") + text("agrp", "a") + text("klbl", "k") + data("v_Data", "1")
            + text("TamperCheck", "x"),
          text("agrp", "a") + text("srvr", "s") + data("v_Data", "2"),
          text("agrp", "a") + data("issr", "i") + data("v_Data", "3"),
          text("agrp", "a") + text("svce", "s") + data("v_Data", "4"),
          text("table", "idnt") + text("agrp", "a"),
          text("table", "tombs\u{202E}") + text("agrp", "a"),
          text("rowID", "7"))))

    #expect(dump.format == .items)
    #expect(dump.items.map(\.kind) == [.genericPassword, .internetPassword, .certificate, .key])
    #expect(dump.items.map(\.entryPosition) == [3, 1, 2, 0])
    #expect(dump.items.map(\.tableSource) == [.inferred, .inferred, .inferred, .stated])
    #expect(dump.skippedEntryCounts == [.identity: 1, .unknownTable: 1, .noTable: 1])
    #expect(dump.unknownTableNames == ["tombs\u{202E}"])
    #expect(dump.entryCount == 7)
    #expect(dump.items.last?.item?.attributes.keys.contains("TamperCheck") == false)
  }

  @Test("Base64 secrets of generic passwords are decoded")
  func base64Text() throws {
    let dump = try KeychainDump(
      parsing: plist(
        entries(
          text("agrp", "a") + text("acct", "anna") + text("pdmn", "ak") + text("cdat", "20261120180400Z")
            + text("v_Data", "aHVudGVyMg=="),
          text("agrp", "a") + text("acct", "otto") + text("v_Data", "no base64!"))))

    #expect(dump.format == .genericPasswords)
    #expect(secret(dump.items[0]) == Array("hunter2".utf8))
    #expect(
      dump.items[0].item?[.account] == .string("anna"),
      "the account is also valid Base64, but nothing states that it encodes bytes")
    #expect(dump.items[0].item?.creationDate?.secondsSinceReferenceDate == moment)
    #expect(dump.items[1].fault?.reason == .malformed)
    #expect(!dump.items[1].hasSecret)
  }

  @Test("A JSON dump can begin with a byte order mark")
  func byteOrderMark() throws {
    let bytes = Array("\u{FEFF}[{\"item_class\": \"kSecClassGenericPassword\", \"account\": \"a\"}]".utf8)
    #expect(KeychainDump.hasSignature(Array(bytes.prefix(KeychainDump.signatureByteCount))))
    #expect(try KeychainDump(parsing: bytes).items.count == 1)
  }

  @Test("In objection's JSON, constants are mapped, the exact secret is preferred, and identities are counted")
  func objection() throws {
    let dump = try KeychainDump(
      parsing: Array(
        """
        [{"item_class": "kSecClassGenericPassword", "accessible_attribute": "kSecAttrAccessibleWhenUnlockedThisDeviceOnly",
          "account": "anna", "service": "chat.example", "label": "", "entitlement_group": "ABCDE12345.org.example.chat",
          "create_date": "2026-11-20 18:04:00 +0000", "data": "hunter?", "dataHex": "68756e74657232"},
         {"item_class": "kSecClassInternetPassword", "accessible_attribute": "kSecAttrAccessibleAlways", "data": "secret",
          "account": "otto", "access_control": "kSecAccessControlUserPresence", "type": "5"},
         {"item_class": "kSecClassKey", "data": "(Key data not displayed)", "label": "k"},
         {"item_class": "kSecClassIdentity"}, {"item_class": "kSecClassWhatever"}, {"account": "x"}, 7]
        """.utf8))

    #expect(dump.format == .objection)
    #expect(dump.items.map(\.kind) == [.genericPassword, .internetPassword, .key])
    let (chat, mail, key) = (dump.items[0], dump.items[1], dump.items[2])
    #expect(chat.protection == .whenUnlockedThisDeviceOnly)
    #expect(secret(chat) == Array("hunter2".utf8))
    #expect(!chat.isSecretRendered)
    #expect(chat.item?[.label] == nil)
    #expect(chat.item?.creationDate?.secondsSinceReferenceDate == moment)
    #expect(secret(mail) == Array("secret".utf8))
    #expect(mail.isSecretRendered)
    #expect(mail.item?[.accessControl] == .string("kSecAccessControlUserPresence"))
    #expect(mail.item?[.type] == .integer(5))
    #expect(!key.hasSecret && key.fault == nil)
    #expect(dump.skippedEntryCounts == [.identity: 1, .unknownTable: 1, .noTable: 1, .notAnItem: 1])
  }

  @Test("Placeholders in objection's JSON count as missing values, and a secret in the other member is used")
  func placeholders() throws {
    // The first, third and last come from objection's helpers.ts, and the second from its keychain.ts.
    let placeholders = [
      "(failed to decode)", "(Key data not displayed)", "(could not get string for class: __NSArrayM)",
      "(could not get string for class: undefined)",
    ]
    for text in placeholders {
      let dump = try KeychainDump(
        parsing: Array(
          """
          [{"item_class": "kSecClassGenericPassword", "account": "\(text)", "service": "chat.example", "label": "\(text)",
            "accessible_attribute": "\(text)", "access_control": "\(text)", "create_date": "\(text)", "data": "\(text)",
            "dataHex": ""},
           {"item_class": "kSecClassGenericPassword", "account": "anna", "service": "chat.example",
            "accessible_attribute": "kSecAttrAccessibleWhenUnlocked", "data": "\(text)", "dataHex": "00ff"},
           {"item_class": "kSecClassGenericPassword", "account": "otto", "data": "x", "dataHex": "\(text)"}]
          """.utf8))
      let (withoutSecret, withExactSecret, withRenderedSecret) = (dump.items[0], dump.items[1], dump.items[2])
      #expect(!withoutSecret.hasSecret && withoutSecret.fault == nil && !withoutSecret.isSecretRendered, "\(text)")
      #expect(withoutSecret.item?.attributes == [.service: .string("chat.example")], "\(text)")
      #expect(withoutSecret.unusableAttributes == [.account, .creationDate, .label, .protection].sorted(), "\(text)")
      #expect(secret(withExactSecret) == [0, 0xFF] && !withExactSecret.isSecretRendered, "\(text)")
      #expect(secret(withRenderedSecret) == Array("x".utf8) && withRenderedSecret.isSecretRendered, "\(text)")
    }
  }

  @Test("A secret that only resembles a placeholder of objection is kept")
  func similarText() throws {
    for text in ["failed to decode", "(failed to decode) ", "(could not get string for class: a b)", "(could not get"] {
      let dump = try KeychainDump(
        parsing: Array("[{\"item_class\": \"kSecClassGenericPassword\", \"data\": \"\(text)\"}]".utf8))
      #expect(secret(dump.items[0]) == Array(text.utf8))
    }
  }

  @Test("An access control in a dump is kept if it has constraints, and may determine the protection class")
  func accessControl() throws {
    let withoutConstraints = try DERPropertyList.encode(.dictionary(["prot": .string("aku")]))
    let withConstraints = try DERPropertyList.encode(
      .dictionary(["prot": .string("ak"), "acl": .dictionary(["od": .boolean(true)])]))
    let invalidConstraints: [UInt8] = [0x31, 0x7F]
    func entry(_ accessControl: [UInt8]) -> String {
      text("agrp", "a") + "<key>accc</key><data>\(base64(accessControl))</data>" + data("v_Data", "1")
    }
    let dump = try KeychainDump(
      parsing: plist(entries(entry(withoutConstraints), entry(withConstraints), entry(invalidConstraints))))

    #expect(dump.items.map(\.protection) == [.whenUnlockedThisDeviceOnly, .whenUnlocked, nil])
    #expect(dump.items.map { $0.item?[.accessControl] != nil } == [false, true, false])
    #expect(dump.items[2].unusableAttributes == [.accessControl])
  }
}
