import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Attributes and secrets of items")
struct KeychainItemRuleTests {
  /// Reads an item in DER. The tags are 31 (dictionary), 30 (pair or array), 0c (string), 04 (data), 02 (integer),
  /// 18 (date) and 05 (null). The string 765f44617461 is `v_Data`, the secret, and 63646174 is `cdat`, the creation
  /// date.
  private func item(_ hex: String, _ kind: ItemKind = .genericPassword) throws -> KeychainItem {
    try KeychainItem(derDictionary: SensitiveBytes(copying: [UInt8](hex: hex)), kind: kind)
  }

  private func encodedHex(_ item: KeychainItem) throws -> String {
    try item.derDictionary().withBytes { Array($0).hex }
  }

  @Test("Unknown attributes are preserved, and a null means that an attribute is absent")
  func unknownAttributes() throws {
    let unknown = "310f" + "300d" + "0c047a7a7a7a" + "3005" + "020107" + "0500"
    let item = try self.item(unknown)
    #expect(item["zzzz"] == .array([.integer(7), .null]))
    #expect(try encodedHex(item) == unknown)
    #expect(try self.item("310a 3008 0c0461636374 0500").attributes.isEmpty)
  }

  @Test("The attribute bin0 is a secret of an internet password, but a plain attribute of other kinds")
  func extraSecrets() throws {
    let extra = "310b" + "3009" + "0c0462696e30" + "040101"
    let internet = try item(extra, .internetPassword)
    #expect(internet.attributes.isEmpty)
    #expect(internet.secrets[.extraClientDefined0]?.withBytes { Array($0) } == [1])
    #expect(try encodedHex(internet) == extra)
    let generic = try item(extra)
    #expect(generic["bin0"] == .data([1]))
    #expect(generic.secrets.isEmpty)
    #expect(try encodedHex(generic) == extra)
  }

  @Test("A secret that is text is read as bytes, an empty secret is preserved, and other types are rejected")
  func secretTypes() throws {
    #expect(try item("310d 300b 0c06765f44617461 0c0161").secret?.withBytes { Array($0) } == [0x61])
    let empty = "310c" + "300a" + "0c06765f44617461" + "0400"
    #expect(try item(empty).secret?.isEmpty == true)
    #expect(try encodedHex(item(empty)) == empty)
    #expect(try item("310c 300a 0c06765f44617461 0500").secret == nil)
    let numericSecret = try [UInt8](hex: "310d 300b 0c06765f44617461 020101")
    FaultyInput("a number as secret", numericSecret, .malformed, at: 12).check(.item) { bytes throws(FormatError) in
      try KeychainItem(derDictionary: SensitiveBytes(copying: bytes), kind: .certificate)
    }
  }

  @Test("A malformed date becomes 2001-03-24, but a date with a field out of range makes the item invalid")
  func dateRepair() throws {
    let repaired = try item("310d 300b 0c0463646174 1803313233")
    #expect(repaired.creationDate?.secondsSinceReferenceDate == 7_084_800.0)
    #expect(try encodedHex(repaired) == "3119" + "3017" + "0c0463646174" + "180f" + Array("20010324000000Z".utf8).hex)
    #expect(throws: FormatError.self) { try item("3119 3017 0c0463646174 180f" + Array("20011324000000Z".utf8).hex) }
  }

  @Test("A date with a time zone is written back unchanged, and the digest contains it in UTC")
  func dateWithTimeZone() throws {
    let zoned = "311d" + "301b" + "0c0463646174" + "1813" + Array("20010101010000+0100".utf8).hex
    let item = try self.item(zoned)
    #expect(try encodedHex(item) == zoned)
    let digest = try item.digestEncoding().withBytes { Array($0).hex }
    #expect(digest.contains("0c0463646174" + "180f" + Array("20010101000000Z".utf8).hex))
  }

  @Test("The error for an invalid item has the offset of the fault")
  func faults() throws {
    let inputs = [
      try FaultyInput("an array", hex: "3000", .malformed, at: 0),
      try FaultyInput("a number as key", hex: "3108 3006 020101 020101", .malformed, at: 4),
      try FaultyInput("a byte after the dictionary", hex: "3100 00", .trailingBytes, at: 2),
      try FaultyInput("a secret past the end", hex: "310c 300a 0c06765f44617461 0401", .truncated, at: 14),
      try FaultyInput("a pair cut short", hex: "3102 3001", .truncated, at: 4),
    ]
    for input in inputs {
      input.check(.item) { bytes throws(FormatError) in
        try KeychainItem(derDictionary: SensitiveBytes(copying: bytes), kind: .genericPassword)
      }
    }
  }

  @Test("If v_Data occurs twice in an item, the first secret is used")
  func duplicateSecret() throws {
    let twice = "311a" + "300b" + "0c06765f44617461" + "040101" + "300b" + "0c06765f44617461" + "040102"
    #expect(try item(twice).secret?.withBytes { Array($0) } == [1])
  }

  @Test("An item with a secret among its attributes, or a value that DER cannot represent, cannot be encoded")
  func unencodable() throws {
    let values: AttributeMap<PropertyValue> = [.valueData: .data([1]), .port: .real(0.5), "zzzz": .uid(1)]
    for (code, value) in values {
      let item = KeychainItem(kind: .internetPassword, attributes: [code: value])
      #expect { try item.derDictionary() } throws: { ($0 as? FormatError)?.code == .unencodable }
    }
  }

  @Test("The digest covers the secret and the defaults, but not the columns musr, UUID, persistref, sha1 and clip")
  func digestContents() throws {
    let item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .multiUser: .data([]), .uuid: .string("X"), .persistentReference: .data([1]), .digest: .data([2]),
        .appClip: .integer(0), .accessGroup: .string("g"), "zzzz": .integer(1),
      ], secrets: [.valueData: SensitiveBytes(copying: [5])])
    let encodedMembers = [
      "30080c04616363740400", "30080c04737663650400", "30090c04616772700c0167", "30090c0473796e63020100",
      "30090c04746f6d62020100", "300b0c06765f44617461040105",
    ]
    #expect(try item.digestEncoding().withBytes { Array($0).hex } == "3142" + encodedMembers.joined())
  }

  @Test("The dates and numbers of a key default to 2001 and 0, and a missing view hint is omitted")
  func keyDefaults() throws {
    let encoding = try KeychainItem(kind: .key).primaryKeyEncoding().hex
    #expect(encoding.contains("0c0473646174" + "180f" + Array("20010101000000Z".utf8).hex))
    #expect(encoding.contains("0c046273697a" + "020100"))
    #expect(encoding.contains("0c046b6c626c" + "0400"))
    for absent in ["vwht", "tkid", "ggrp", "perm"] { #expect(!encoding.contains(Array(absent.utf8).hex)) }
  }

  @Test("An iOS 5 item is read from its property list, with its secret separate from its attributes")
  func version2() throws {
    let plist: [String: Any] = [
      "acct": "bob", "v_Data": Data([1, 2]), "cdat": Date(timeIntervalSinceReferenceDate: 5), "zzzz": [1],
    ]
    let bytes = Array(try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0))
    let item = try KeychainItem(plistDictionary: SensitiveBytes(copying: bytes), kind: .genericPassword)
    #expect(item[.account] == .string("bob"))
    #expect(item.creationDate?.secondsSinceReferenceDate == 5)
    #expect(item["zzzz"] == .array([.integer(1)]))
    #expect(item[.valueData] == nil)
    #expect(item.secret?.withBytes { Array($0) } == [1, 2])
    readDamagedVariants(of: bytes) { damaged in
      _ = try? KeychainItem(plistDictionary: SensitiveBytes(copying: damaged), kind: .genericPassword)
    }
  }

  @Test("item_blob_v2: the real iOS 5 item, decrypted by OpenSSL, has the published attributes")
  func realVersion2() throws {
    let plaintext = try [UInt8](
      hex: """
        62706c6973743030d90102030405060708090a0a0b0c0d0e0e0f105473766365546c61626c5467656e61546163637454616772705463
        646174546d6461745470646d6e56765f4461746154414141414c67656e6572696320773030745f10266b536563417474724163636573
        7369626c65416c77617973546869734465766963654f6e6c79556170706c653341b41cccc2ceac3253646b754f104041414141414141
        414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141
        414141081b20252a2f34393e434a4f5c858b949800000000000001010000000000000011000000000000000000000000000000db
        """)
    let item = try KeychainItem(plistDictionary: SensitiveBytes(copying: plaintext), kind: .genericPassword)
    let expected = try TestVectors.section("item_blob_v2")["expect_attributes"]
    for code in ["svce", "labl", "acct", "agrp", "pdmn"] {
      #expect(item[AttributeCode(rawValue: code)]?.stringValue == (try expected[code].string))
    }
    #expect(item.secret?.withBytes { String(decoding: $0, as: UTF8.self) } == (try expected["v_Data_ascii"].string))
    // 2011-09-11T11:02:26.807315Z
    #expect(abs((item.creationDate?.secondsSinceReferenceDate ?? 0) - 337_431_746.807315) < 1e-6)
    #expect(item.protection == .alwaysThisDeviceOnly)
  }

  @Test("An iOS 5 item is rejected if it is not a dictionary or has a number as a key or secret")
  func version2Faults() throws {
    let inputs = [
      FaultyInput("an array", PlistParts([0xA0]).bytes, .malformed, at: 8),
      FaultyInput("a number as key", PlistParts([0xD1, 1, 1], [0x10, 1]).bytes, .malformed, at: 11),
      FaultyInput(
        "a number as secret", PlistParts([0xD1, 1, 2], [0x56] + Array("v_Data".utf8), [0x10, 1]).bytes, .malformed,
        at: 18),
    ]
    for input in inputs {
      input.check(.binaryPlist) { bytes throws(FormatError) in
        try KeychainItem(plistDictionary: SensitiveBytes(copying: bytes), kind: .genericPassword)
      }
    }
  }

  @Test("The descriptions of an item and its encoding contain no value")
  func quietDescriptions() throws {
    let secret = Array("swordfish".utf8)
    let item = KeychainItem(
      kind: .genericPassword, attributes: [.account: .string("visible")],
      secrets: [.valueData: SensitiveBytes(copying: secret)])
    let encoding = try item.derDictionary()
    var text = "\(item) \(encoding)"
    dump(item, to: &text)
    dump(encoding, to: &text)
    // The secret as text, as hexadecimal digits, and as numbers. Its first byte is 115.
    for value in ["visible", "swordfish", secret.hex, "115"] { #expect(!text.contains(value), "\(text)") }
  }
}
