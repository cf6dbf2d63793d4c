import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import Keychains

@Suite("Dumps of irestore, grapefruit and keychain_dumper")
struct ToolDumpTests {
  private func dump(_ text: String) throws -> KeychainDump { try KeychainDump(parsing: Array(text.utf8)) }

  // MARK: irestore

  @Test("In irestore's JSON, data is Base64, text stays text, and a kind without items is null")
  func irestore() throws {
    let dump = try dump(
      """
      {"Certs": [{"agrp": "a", "issr": "MAA=", "slnr": "not base64!", "v_Data": "MAA="}], "Extra": [{"acct": "x"}],
       "General": [
        {"acct": "YW5uYQ==", "svce": "chat.example \\u0026 more", "agrp": "ABCDE12345.org.example.chat", "pdmn": "cku",
         "cdat": "2026-11-20T18:04:00Z", "mdat": null, "sync": 1, "v_Data": "aHVudGVyMg=="},
        {"acct": "otto", "agrp": "a", "v_Data": "{length = 6}"}, {"acct": "eve", "agrp": "a"}, {}, 7],
       "Internet": null, "Keys": []}
      """)
    #expect(dump.format == .irestore && dump.recordedAttributes == nil)
    #expect(dump.items.map(\.kind) == [.genericPassword, .genericPassword, .genericPassword, .certificate])
    let (anna, otto, eve, certificate) = (dump.items[0], dump.items[1], dump.items[2], dump.items[3])
    #expect(anna.item?[.account] == .string("YW5uYQ=="), "the dump does not say that the text encodes bytes")
    #expect(anna.item?[.service] == .string("chat.example & more"))
    #expect(anna.protection == .afterFirstUnlockThisDeviceOnly && anna.item?.isSynchronizable == true)
    #expect(anna.item?.creationDate?.secondsSinceReferenceDate == moment)
    #expect(anna.unusableAttributes == [.modificationDate], "irestore writes null for a date that it cannot read")
    #expect(secret(anna) == Array("hunter2".utf8) && !anna.isSecretRendered)
    #expect(otto.fault == DumpFault(.malformed, "the secret is not Base64 text") && !otto.hasSecret)
    #expect(eve.fault == nil && !eve.hasSecret)
    #expect(certificate.item?[.issuer] == .data([0x30, 0]) && certificate.unusableAttributes == [.serialNumber])
    #expect(dump.skippedEntryCounts == [.unknownTable: 1, .notAnItem: 2] && dump.unknownTableNames == ["Extra"])
  }

  @Test("Newer versions of irestore list the types, so text and data in an attribute can be distinguished")
  func irestoreTypes() throws {
    let dump = try dump(
      """
      {"Certs": null, "General": [
        {"_class": 10, "_fieldOrder": "acct,gena,svce,v_Data", "_fieldTypes": "[]uint8,[]uint8,string,[]uint8", "_length": 40,
         "_ref": "Z2VucA==", "_version": 3, "_wkey": "AAAA", "acct": "YW5uYQ==", "gena": "not base64!", "svce": "YWJj",
         "v_Data": "aHVudGVyMg=="},
        {"_class": 99, "_fieldOrder": "acct", "_fieldTypes": "[]uint8,string", "acct": "YW5uYQ=="}], "Internet": null,
       "Keys": null}
      """)
    let (withTypes, withInvalidTypes) = (dump.items[0], dump.items[1])
    #expect(withTypes.item?.attributes.keys.sorted() == [.account, .protection, .service].sorted())
    #expect(withTypes.item?[.account] == .data(Array("anna".utf8)) && withTypes.item?[.service] == .string("YWJj"))
    #expect(withTypes.unusableAttributes == [.generic] && withTypes.protection == .afterFirstUnlockThisDeviceOnly)
    #expect(secret(withTypes) == Array("hunter2".utf8))
    // Its list of fields is shorter than its list of types.
    #expect(withInvalidTypes.item?[.account] == .string("YW5uYQ==") && withInvalidTypes.protection == nil)
  }

  @Test("Items that irestore's JSON omits are read from the lines before it")
  func irestoreLines() throws {
    let json = "{\n  \"Certs\": null, \"General\": [{\"acct\": \"a\"}], \"Internet\": null, \"Keys\": null}\n"
    let dump = try dump(
      "Selected MyPad 0123\n\n{KeychainDomain keychain-backup.plist 7}\nread 7\nNo key for class 11 genp [0 0 144 75]\n"
        + "No key for class 9 keys [0 0 144 76]\nNo key for class 10\nunwrap failed for class x\n" + json)
    #expect(dump.format == .irestore && dump.items.map(\.kind) == [.genericPassword, .genericPassword, .key])
    #expect(dump.items.map(\.protection) == [.alwaysThisDeviceOnly, nil, .whenUnlockedThisDeviceOnly])
    #expect(dump.items.map { $0.fault?.reason } == [.noClassKey, nil, .noClassKey])
    #expect(dump.skippedEntryCounts == [.noTable: 1])
  }

  @Test("Output of irestore without valid JSON is rejected, and an error in the JSON states its location in the file")
  func irestoreLinesWithoutJSON() throws {
    for text in ["Selected MyPad 0123\n", "Selected MyPad\n{\n}\n", "Selected MyPad\n{\n"] {
      #expect(throws: KeyhaulError.self) { try dump(text) }
    }
    let error = #expect(throws: KeyhaulError.self) {
      try dump("Selected MyPad 0123\n\n{\n  \"General\": x\n}\n")
    }
    #expect(error?.reason.contains("(line 4, column 14)") == true)
    #expect(KeychainDump.hasSignature(Array("Selected MyPad 0123\n".utf8)))
  }

  @Test(
    "A JSON object is irestore's only if it has an array or null for each kind",
    arguments: [
      "{\"General\": [], \"Internet\": [], \"Certs\": []}",
      "{\"General\": {}, \"Internet\": [], \"Certs\": [], \"Keys\": []}",
      "{}",
    ])
  func otherObjects(text: String) {
    #expect(throws: KeyhaulError.self) { try dump(text) }
  }

  // MARK: grapefruit

  @Test("In grapefruit's JSON, the secret is in raw and never in data, and attributes that describe bytes are decoded")
  func grapefruit() throws {
    let dump = try dump(
      """
      [{"clazz": "generic", "acl": "default", "prot": "kSecAttrAccessibleWhenUnlocked", "account": "anna",
        "service": "chat.example", "entitlementGroup": "ABCDE12345.org.example.chat", "label": "<616263>", "type": 5,
        "generic": "{length = 32, bytes = 0x00010203 04050607 08090a0b 0c0d0e0f ... 18191a1b 1c1d1e1f }",
        "invisible": true, "creation": "2026-11-20T18:04:00.000Z", "data": "{length = 7, bytes = 0x00}", "raw": "aHVudGVyMg=="},
       {"clazz": "kSecClassInternetPassword", "accessibleAttribute": "kSecAttrAccessibleAlwaysThisDeviceOnly",
        "account": "null", "service": "not of this class", "data": "{length = 6, bytes = 0x736563726574}", "raw": null},
       {"clazz": "cert", "acl": "kSecAccessControlUserPresence", "account": "undefined", "raw": ""},
       {"clazz": "kSecClassKey", "raw": "no base64!"}, {"clazz": "generic", "raw": 5}, {"clazz": "generic", "account": "eve"},
       {"clazz": "id"}, {"clazz": "kSecClassIdentity"}, {"clazz": "other"}, {"account": "x"}, 7]
      """)
    #expect(dump.format == .grapefruit && dump.recordedAttributes?.contains(.server) == false)
    #expect(
      dump.items.map(\.kind) == [
        .genericPassword, .genericPassword, .genericPassword, .internetPassword, .certificate, .key,
      ])
    let (anna, withoutText, eve) = (dump.items[0], dump.items[1], dump.items[2])
    let (mail, certificate, key) = (dump.items[3], dump.items[4], dump.items[5])
    #expect(secret(anna) == Array("hunter2".utf8) && anna.protection == .whenUnlocked)
    #expect(anna.item?[.label] == .data(Array("abc".utf8)) && anna.item?[.type] == .integer(5))
    #expect(anna.item?[.isInvisible] == .integer(1) && anna.item?[.accessControl] == nil)
    #expect(anna.item?.creationDate?.secondsSinceReferenceDate == moment)
    #expect(anna.unusableAttributes == [.generic], "the description omits bytes")
    #expect(withoutText.fault == DumpFault(.malformed, "raw is not text"))
    #expect(eve.item?[.account] == .string("eve") && eve.fault == nil && !eve.hasSecret)
    #expect(mail.fault == DumpFault(.malformed, "data only describes the secret") && !mail.hasSecret)
    #expect(mail.protection == .alwaysThisDeviceOnly && mail.unusableAttributes == [.account])
    #expect(certificate.fault == nil && !certificate.hasSecret)
    #expect(certificate.item?[.accessControl] == .string("kSecAccessControlUserPresence"))
    #expect(key.fault == DumpFault(.malformed, "raw is not Base64 text"))
    #expect(dump.skippedEntryCounts == [.identity: 2, .unknownTable: 1, .noTable: 1, .notAnItem: 1])
  }

  @Test(
    "Only text in the formats that Foundation prints is a description of data",
    arguments: [
      ("<>", nil), ("<616263>", [0x61, 0x62, 0x63]), ("<61626364 65>", [0x61, 0x62, 0x63, 0x64, 0x65]),
      ("<6162 63>", nil), ("<616>", nil), ("<616263", nil), ("<b>", nil), ("{length = 0, bytes = 0x}", []),
      ("{length = 0}", []), ("{length = 1, bytes = 0x61}", [0x61]), ("{length = -1, bytes = 0x61}", nil),
      ("{length = 1}", nil), ("{length = 1, bytes = 0x6}", nil), ("{length = 1, bytes = 61}", nil), ("", nil),
      ("{length = 99999999999999999999, bytes = 0x61}", nil), ("{length = }", nil),
      ("{length = 0, bytes = 0x61}", nil), ("{length = , bytes = 0x0}", nil), ("{length = +1, bytes = 0x61}", nil),
      ("{length = 9, bytes = 0xno ... digits }", nil), ("<61626364  65>", nil), ("<61626364 >", nil), ("< >", nil),
      ("<61626364 65666768 69>", [0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69]),
    ] as [(String, [UInt8]?)])
  func descriptions(text: String, bytes: [UInt8]?) {
    #expect(DataDescription.read(text) == (bytes.map(DataDescription.Reading.bytes) ?? .other))
  }

  @Test(
    "A description that omits bytes is incomplete",
    arguments: ["{length = 2, bytes = 0x61}", "{length = 32, bytes = 0x61626364 ... 65666768 }"])
  func incomplete(text: String) {
    #expect(DataDescription.read(text) == .incomplete)
  }

  // MARK: keychain_dumper

  /// Returns an item in the format of keychain_dumper since 2013, without the lines about protection.
  private static func printedItem(_ account: String, _ secret: String) -> String {
    """
    Generic Password
    ----------------
    Service: chat.example
    Account: \(account)
    Entitlement Group: ABCDE12345.org.example.chat
    Label: (null)
    Generic Field: <01ff>
    Keychain Data: \(secret)


    """
  }

  @Test("In keychain_dumper's text, the lines of each item are read, and its placeholders are not secrets")
  func keychainDumper() throws {
    let dump = try dump(
      Self.printedItem("anna", "hunter2") + Self.printedItem("otto", "two\nlines\n")
        + Self.printedItem("", "(null)")
        + Self.printedItem("eve", "<Not Accessible>") + Self.printedItem("empty", "")
        + "[INFO] No Internet Password Keychain items found.\n[HINT] You should unlock your device!\n")
    #expect(dump.format == .keychainDumper && dump.items.count == 5 && dump.skippedEntryCounts.isEmpty)
    #expect(
      dump.items.map { secret($0).map { String(decoding: $0, as: UTF8.self) } } == [
        "hunter2", "two\nlines\n", nil, nil, nil,
      ])
    #expect(dump.items.map { $0.fault?.reason } == [nil, nil, .malformed, .malformed, nil])
    #expect(dump.items[0].item?[.generic] == .data([1, 0xFF]) && dump.items[0].item?[.label] == nil)
    #expect(dump.items[2].item?[.account] == nil && dump.items[0].isSecretRendered)
    #expect(dump.recordedAttributes?.contains(.protection) == false)
  }

  @Test("Text without headings, as the first versions print it, is read, also with CRLF line ends")
  func firstVersion() throws {
    let lines = Self.printedItem("anna", "hunter2").split(separator: "\n", omittingEmptySubsequences: false)
    let item = lines.dropFirst(2).joined(separator: "\r\n")
    let dump = try dump(item + item)
    #expect(dump.items.map { secret($0) } == [Array("hunter2".utf8), Array("hunter2".utf8)])
    #expect(dump.items.allSatisfy { $0.kind == .genericPassword && $0.item?[.account] == .string("anna") })
  }

  @Test("In keychain_dumper's text, certificates and keys are read, except the copies in identities")
  func certificatesAndKeys() throws {
    let certificate = """
      Certificate
      -----------
      Summary: made up
      Entitlement Group: apple
      Label: a
      \u{1B}[31mAccessible Attribute: kSecAttrAccessibleAfterFirstUnlock, protection level 1
      \u{1B}[37mSerial Number: <0102>
      Subject Key ID: (null)
      Subject Key Hash: (null)

      -----BEGIN CERTIFICATE-----
      Label: not an attribute

      """
    let key = """
      Key
      ---
      Entitlement Group: apple
      Label: b
      Application Label: {length = 2, bytes = 0x0304}
      Key Class: Private
      Permanent Key: True

      """
    let identity = "Identity\n--------\n" + certificate + key
    // The line of the PEM text that looks like an attribute would make a certificate unreadable. In the identity's
    // certificate, it has no effect.
    let readableCertificate = certificate.replacing("Label: not", with: "not")
    let dump = try dump(identity + key + readableCertificate)
    #expect(dump.items.map(\.kind) == [.certificate, .key] && dump.skippedEntryCounts == [.identity: 1])
    #expect(dump.items[0].protection == .afterFirstUnlock && dump.items[0].item?[.serialNumber] == .data([1, 2]))
    #expect(dump.items[1].item?[.applicationLabel] == .data([3, 4]))
    #expect(dump.items.allSatisfy { !$0.hasSecret && $0.fault == nil && $0.unusableAttributes.isEmpty })
  }

  @Test(
    "An item is not read if its lines are not exactly those that the tool prints",
    arguments: [
      ToolDumpTests.printedItem("anna\nKeychain Data: forged", "hunter2"),
      ToolDumpTests.printedItem("anna\nEntitlement Group: other", "hunter2"),
      ToolDumpTests.printedItem("anna\nComment: forged", "hunter2"),
      ToolDumpTests.printedItem("anna", "hunter2\nKeychain Data: forged"),
      ToolDumpTests.printedItem("anna", "hunter2\nLabel: forged"),
      ToolDumpTests.printedItem("anna\nAccessible Attribute: forged", "hunter2"),
      String(ToolDumpTests.printedItem("anna", "hunter2").prefix { $0 != "<" }),
      ToolDumpTests.printedItem("anna", "x").replacing(
        "Service: chat.example\n", with: "noise\nService: chat.example\n"),
    ])
  func forged(text: String) throws {
    let dump = try dump(text)
    let item = try #require(dump.items.first)
    #expect(dump.items.count == 1 && item.item == nil && item.fault?.reason == .malformed)
  }

  /// Reads an item with the account "Grün" and the secret "straße", with the given bytes for ü and ß.
  private func dump(bytesOfUmlaut: [UInt8], bytesOfSharpS: [UInt8]) throws -> KeychainDump {
    let (umlautPlaceholder, sharpSPlaceholder): (UInt8, UInt8) = (1, 2)
    let bytes = Self.printedItem("Gr\u{1}n", "stra\u{2}e").utf8.flatMap { byte -> [UInt8] in
      switch byte {
      case umlautPlaceholder: bytesOfUmlaut
      case sharpSPlaceholder: bytesOfSharpS
      default: [byte]
      }
    }
    return try KeychainDump(parsing: bytes)
  }

  @Test("Text that is not UTF-8 is in the encoding of NeXTSTEP")
  func encoding() throws {
    // Source: Perl's Encode::Byte ("nextstep").
    let inNeXTSTEP = try dump(bytesOfUmlaut: [0xF6], bytesOfSharpS: [0xFB])
    let inUTF8 = try dump(bytesOfUmlaut: Array("ü".utf8), bytesOfSharpS: Array("ß".utf8))
    for dump in [inNeXTSTEP, inUTF8] {
      #expect(dump.items.first?.item?[.account] == .string("Grün"))
      #expect(secret(dump.items.first) == Array("straße".utf8))
    }
  }

  @Test("An attribute and a secret with bytes that are not characters in the encoding of NeXTSTEP are unusable")
  func undefinedCharacters() throws {
    let item = try #require(try dump(bytesOfUmlaut: [0xFE], bytesOfSharpS: [0xFE]).items.first)
    #expect(item.unusableAttributes == [.account] && !item.hasSecret)
    #expect(item.fault?.reason == .malformed)
  }

  @Test("Text that reports no items is an empty dump, and other text is not a dump")
  func noItems() throws {
    let notices = ["Generic Password", "Internet Password"].map { "No \($0) Keychain items found.\n" }.joined()
    #expect(try dump(notices).entryCount == 0)
    for text in ["Service: none\nof these\n", "Key\n--\n", "Generic Password\n", "[INFO] Server started\n"] {
      #expect(throws: KeyhaulError.self) { try dump(text) }
    }
  }

  // MARK: All formats

  @Test("A truncated dump is rejected, or its items have faults, and no secret is truncated")
  func truncation() throws {
    let examples = [
      Self.printedItem("anna", "hunter2") + Self.printedItem("otto", "hunter2"),
      "[{\"clazz\": \"generic\", \"account\": \"anna\", \"raw\": \"aHVudGVyMg==\"}]",
      "{\"General\": [{\"acct\": \"a\", \"v_Data\": \"aHVudGVyMg==\"}], \"Internet\": null, \"Certs\": null, \"Keys\": null}",
    ]
    var secretCount = 0
    for example in examples {
      let bytes = Array(example.utf8)
      for count in bytes.indices {
        guard let dump = try? KeychainDump(parsing: Array(bytes[..<count])) else { continue }
        for item in dump.items where item.hasSecret {
          secretCount += 1
          #expect(secret(item) == Array("hunter2".utf8), "truncated to \(count) bytes")
        }
        for item in dump.items { #expect(item.item != nil || item.fault != nil) }
      }
    }
    #expect(secretCount > 0, "some truncated dumps must have a readable item")
  }

  @Test("A damaged dump is rejected, or each of its items has attributes or a fault")
  func damage() throws {
    var random = SeededRandom(seed: 53)
    let examples = [
      Self.printedItem("anna", "hunter2")
        + "Identity\n--------\nKey\n---\nLabel: <61>\n\nKey\n---\nEntitlement Group: a\n",
      "[{\"clazz\": \"generic\", \"label\": \"{length = 1, bytes = 0x61}\", \"raw\": \"aHVudGVyMg==\"}]",
      "{\"General\": [{\"gena\": \"a\", \"v_Data\": \"aHVudGVyMg==\"}], \"Internet\": [], \"Certs\": null, \"Keys\": null}",
    ].map { Array($0.utf8) }
    var readCount = 0
    for iteration in 0..<9_000 {
      var bytes = examples[iteration % examples.count]
      for _ in 0...Int.random(in: 0..<3, using: &random) { Self.damage(&bytes, using: &random) }
      guard let dump = try? KeychainDump(parsing: bytes) else { continue }
      readCount += 1
      for item in dump.items { #expect(item.item != nil || item.fault != nil) }
    }
    #expect(readCount > 1000, "many damaged dumps must still be readable")
  }

  /// Changes a byte, removes up to eight bytes, or inserts a copy of up to twelve bytes.
  private static func damage(_ bytes: inout [UInt8], using random: inout SeededRandom) {
    let index = Int.random(in: bytes.indices, using: &random)
    switch Int.random(in: 0..<3, using: &random) {
    case 0: bytes[index] = .random(in: 0...255, using: &random)
    case 1: bytes.removeSubrange(index..<min(index + .random(in: 1...8, using: &random), bytes.count - 1))
    default:
      let start = Int.random(in: bytes.indices, using: &random)
      bytes.insert(contentsOf: bytes[start..<min(start + 12, bytes.count)], at: index)
    }
  }

  @Test("The number of entries is limited in each format")
  func limits() throws {
    let examples = [
      Self.printedItem("anna", "a") + Self.printedItem("otto", "b"), "[{\"clazz\": \"generic\"}, 0]",
      "{\"General\": [{}, 0], \"Internet\": null, \"Certs\": null, \"Keys\": null}",
    ]
    for example in examples {
      #expect(throws: Never.self) { try KeychainDump(parsing: Array(example.utf8), acceptingAtMost: 2) }
      #expect(throws: KeyhaulError(.dumpOverLimit, "more than 1 entries")) {
        try KeychainDump(parsing: Array(example.utf8), acceptingAtMost: 1)
      }
    }
  }

  @Test("XML that is not a property list is rejected with a note about Elcomsoft's keychain XML")
  func otherXML() {
    #expect(
      throws: KeyhaulError(
        .unknownDump,
        "it is XML, but not a property list. Keyhaul reads no other XML: no description of Elcomsoft's keychain XML is "
          + "known")
    ) { try dump("<?xml version=\"1.0\"?><Keychain><Item/></Keychain>") }
  }
}
