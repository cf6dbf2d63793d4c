import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("Passwords for another password manager")
struct PasswordCSVTests {
  @Test("begin with the header that Apple's Passwords writes, and end each line with CR LF")
  func header() {
    let export = ItemExport([], as: .passwords)
    #expect(export.text == "Title,URL,Username,Password,Notes,OTPAuth\r\n")
    #expect(export.counts.count == 0 && export.counts.secretCount == 0)
  }

  @Test("have a row each, with the label, the address, the account, the password and the comment")
  func row() {
    let export = ItemExport(
      [
        .internet([
          .label: .string("Mail"), .server: .string("imap.example.org"), .protocolType: .string("imps"),
          .port: .integer(0), .account: .string("anna"), .comment: .string("work"),
        ])
      ], as: .passwords)
    #expect(export.rows == [#""Mail","imaps://imap.example.org","anna","hunter2","work","""#])
    #expect(export.counts.count == 1 && export.counts.secretCount == 1 && export.leftOut.isEmpty)
  }

  @Test("are read by Python's csv module as what they were, with quotes, line ends and commas")
  func foreignReader() throws {
    let password = "a\"b,c\r\nd 'e' ä🔑"
    let export = ItemExport(
      [
        .generic([.label: .string("say \"hi\", twice"), .account: .string("anna")], secret: password)
      ], as: .passwords)
    let script = """
      import csv,json,sys,io
      rows=list(csv.reader(io.TextIOWrapper(sys.stdin.buffer,encoding='utf-8',newline='')))
      print(json.dumps(rows))
      """
    let output = try run("python3", ["-c", script], input: export.contents.withBytes { Data($0) })
    let rows = try #require(try JSONSerialization.jsonObject(with: output) as? [[String]])
    #expect(rows == [ItemExport.passwordColumns, ["say \"hi\", twice", "", "anna", password, "", ""]])
  }

  @Test("of items without a label are named after the server or service, else after the account")
  func titles() {
    let items: [KeychainItem] = [
      .internet([.server: .string("shop.example"), .account: .string("a")]),
      .generic([.service: .string("chat"), .account: .string("a")]), .generic([.account: .string("a")]),
      .generic([.label: .string(""), .service: .data(Array("bytes".utf8))]), .generic([:]),
    ]
    let titles = ItemExport(items, as: .passwords).rows.map {
      $0.split(separator: ",", omittingEmptySubsequences: false)[0]
    }
    #expect(titles == [#""shop.example""#, #""chat""#, #""a""#, #""bytes""#, #""""#])
    #expect(ItemExport(items, as: .passwords).counts.namelessCount == 1)
  }

  @Test(
    "are no formula to a spreadsheet, but for the password itself, which arrives as it is",
    arguments: ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "\nx", "＝1"])
  func formulas(text: String) {
    let export = ItemExport(
      [
        .internet(
          [.label: .string(text), .server: .string(text), .account: .string(text), .comment: .string(text)],
          secret: text)
      ], as: .passwords)
    let quoted = "\"\(text)\""
    let inert = "\"'\(text)\""
    #expect(export.text.hasSuffix("\r\n\(inert),\(inert),\(inert),\(quoted),\(inert),\"\"\r\n"))
    #expect(export.counts.inertNameCount == 4)
    #expect(export.counts.formulaSecretCount == (text.hasPrefix("＝") ? 0 : 1))
  }

  @Test("keep a telephone number as the user name, which no spreadsheet runs")
  func telephone() {
    func user(_ text: String) -> String {
      let row = ItemExport([.generic([.account: .string(text)])], as: .passwords).rows[0]
      return String(row.split(separator: ",", omittingEmptySubsequences: false)[2])
    }
    #expect(user("+49 170 1234567") == "\"+49 170 1234567\"")
    #expect(user("+1555") == "\"+1555\"")
    // A handle reads as a name that a spreadsheet may have given to cells.
    for text in ["@", "@anna", "@SUM(A1)", "@SUM(1+1)*cmd|' /C calc'!A0", "@a!A1"] {
      #expect(user(text) == "\"'\(text)\"")
    }
    for text in ["+", "+1+2", "+49a", "++1", "-49170", "+1-2"] { #expect(user(text) == "\"'\(text)\"") }
  }

  @Test("put the secret of one-time passwords into the last column, and no password beside it")
  func oneTime() {
    let address = "otpauth://totp/a?secret=JBSWY3DPEHPK3PXP"
    let export = ItemExport([.generic([.service: .string("2FA")], secret: address)], as: .passwords)
    #expect(export.rows == [#""2FA","","a","","","\#(address)""#])
  }

  @Test("leave out, by name, what is not text, and what has no secret")
  func leftOut() {
    let export = ItemExport(
      [
        .made(.genericPassword, [.service: .string("key")], [0xFF, 0xFE, 1]),
        .made(.genericPassword, [.service: .string("nul")], [0x61, 0, 0x62]),
        .generic([.service: .string("bare")], secret: nil), .generic([.service: .string("empty")], secret: ""),
        .made(.certificate, [:], [1]), .made(.key, [:], [1]), .generic([.service: .string("good")]),
      ], as: .passwords)
    #expect(export.counts.count == 1)
    #expect(export.leftOut.map(\.identity.service) == ["key", "nul", "bare", "empty"])
    #expect(
      export.leftOut.map(\.reason) == [
        "its secret is not text", "its secret is not text", "it has no secret", "it has no secret",
      ])
  }

  @Test("grow over the first buffer without losing a byte")
  func many() {
    let items = (0..<2_000).map { KeychainItem.generic([.service: .string("s\($0)")], secret: "secret \($0)") }
    let export = ItemExport(items, as: .passwords)
    #expect(export.counts.count == 2_000 && export.rows.count == 2_000)
    #expect(export.rows.last == #""s1999","","","secret 1999","","""#)
  }
}

/// What a program prints.
func run(_ program: String, _ arguments: [String], input: Data) throws -> Data {
  let outcome = try ChildProcess(program, arguments).run(input: input)
  try #require(outcome.status == 0, "\(program) failed: \(String(decoding: outcome.errors, as: UTF8.self))")
  return outcome.output
}
