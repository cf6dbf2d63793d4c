import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("The attribute table")
struct AttributeTableTests {
  private func codes(_ kind: ItemKind, _ flag: AttributeFlags) -> [String] {
    AttributeTable.definitions(of: kind).filter { $0.flags.contains(flag) }.map(\.code.rawValue)
  }

  @Test("The primary keys have the columns of Apple's UNIQUE clauses")
  func primaryKeys() {
    let tail = ["agrp", "sync", "vwht", "tkid", "musr", "ggrp"]
    #expect(codes(.genericPassword, .primaryKey) == ["acct", "svce"] + tail)
    #expect(
      codes(.internetPassword, .primaryKey) == ["acct", "sdmn", "srvr", "ptcl", "atyp", "port", "path"] + tail)
    #expect(codes(.certificate, .primaryKey) == ["ctyp", "issr", "slnr"] + tail)
    #expect(
      codes(.key, .primaryKey)
        == ["kcls", "klbl", "atag", "crtr", "type", "bsiz", "esiz", "sdat", "edat"] + tail)
  }

  @Test("The secrets are v_Data and the six extra values of internet passwords")
  func secrets() {
    #expect(codes(.internetPassword, .returnedAsData) == ["v_Data", "binn", "bini", "bin0", "bin1", "bin2", "bin3"])
    for kind in [ItemKind.genericPassword, .certificate, .key] { #expect(codes(kind, .returnedAsData) == ["v_Data"]) }
  }

  @Test("Only required attributes have a default, of the type of their kind")
  func defaults() {
    for kind in ItemKind.allCases {
      for definition in AttributeTable.definitions(of: kind) {
        #expect((definition.defaultValue != nil) == definition.flags.contains(.notNull))
      }
    }
    #expect(AttributeTable.definition(of: .tombstone, in: .key)?.defaultValue == .integer(0))
    #expect(AttributeTable.definition(of: .startDate, in: .key)?.defaultValue == .date(.reference))
    #expect(AttributeTable.definition(of: .account, in: .genericPassword)?.defaultValue == .data([]))
    #expect(AttributeTable.definition(of: .port, in: .genericPassword) == nil)
  }

  @Test("Codes with different bytes are different, even if their letters look the same")
  func exactCodes() {
    #expect(AttributeCode(rawValue: "\u{E9}") != AttributeCode(rawValue: "e\u{301}"))
    #expect(Set<AttributeCode>(["\u{E9}", "e\u{301}", "acct", "acct"]).count == 3)
  }

  @Test(
    "A code of any length is preserved",
    arguments: [
      "", "a", "acct", "acct\0", "é", "sevenby", "é67é1", "eightbyt", "é67é12", String(repeating: "x", count: 300),
    ])
  func codeTexts(_ text: String) {
    let code = AttributeCode(rawValue: text)
    #expect(Array(code.rawValue.utf8) == Array(text.utf8))
    #expect(code == AttributeCode(rawValue: String(decoding: Array(text.utf8), as: UTF8.self)))
    #expect(code != AttributeCode(rawValue: text + "\0"))
    #expect(code < AttributeCode(rawValue: text + "a"))
  }
}

@Suite("UUID texts")
struct UUIDTextTests {
  @Test("16 bytes are formatted in upper and lower case, and other sizes are rejected")
  func texts() throws {
    let bytes = try [UInt8](hex: "50184A35 4480 E8BA 769B 567CF72F1EC0")
    #expect(UUIDText.uppercase(bytes) == "50184A35-4480-E8BA-769B-567CF72F1EC0")
    #expect(UUIDText.lowercase(bytes) == "50184a35-4480-e8ba-769b-567cf72f1ec0")
    #expect(UUIDText.uppercase(bytes.dropLast()) == nil && UUIDText.lowercase(bytes + [0]) == nil)
  }
}

@Suite("Sensitive bytes")
struct SensitiveBytesTests {
  private struct Refused: Error {}

  @Test("Sensitive bytes contain what the closure wrote")
  func lending() {
    let bytes = SensitiveBytes(count: 3) { $0[1] = 9 }
    #expect(bytes.withBytes { Array($0) } == [0, 9, 0])
    #expect(SensitiveBytes(copying: []).isEmpty)
  }

  @Test("An error of the closure that fills sensitive bytes is rethrown")
  func failing() {
    #expect(throws: Refused.self) {
      try SensitiveBytes(count: 3) { (_: UnsafeMutableRawBufferPointer) throws(Refused) in throw Refused() }
    }
  }

  @Test("Sensitive bytes are compared byte for byte")
  func comparing() {
    let bytes = SensitiveBytes(copying: [1, 2, 3])
    #expect(bytes.constantTimeEquals(SensitiveBytes(copying: [1, 2, 3])))
    for otherBytes: [UInt8] in [[1, 2, 4], [0, 2, 3], [1, 2], [1, 2, 3, 4], []] {
      #expect(!bytes.constantTimeEquals(SensitiveBytes(copying: otherBytes)))
    }
  }

  @Test("The description and dump of sensitive bytes contain only the number of bytes")
  func printing() {
    let bytes = SensitiveBytes(copying: Array("hunter2".utf8))
    var text = "\(bytes) \(String(reflecting: bytes))"
    dump(bytes, to: &text)
    #expect(text.contains("7 sensitive bytes"))
    // "h" is the byte 104.
    #expect(!text.contains("hunter2") && !text.contains("104"))
  }
}

@Suite("Format errors")
struct FormatErrorTests {
  @Test("A format error contains the format, the kind of error, the offset and a suggestion")
  func wording() {
    let error = FormatError(.keybag, .truncated, "VERS of 4 bytes does not fit", offset: 8)
    #expect("\(error)" == "the keybag is cut short: VERS of 4 bytes does not fit, at byte 8")
    #expect(error.category == .damaged)
    #expect(error.advice == "use another copy")
    #expect(FormatError(.der, .overLimit, "x").category == .refused)
    #expect(FormatError(.der, .unsupportedVersion, "x").category == .refused)
    #expect(FormatError(.der, .unencodable, "x").category == .failed)
    #expect(FormatError(.der, .overLimit, "x").offset == nil)
  }
}
