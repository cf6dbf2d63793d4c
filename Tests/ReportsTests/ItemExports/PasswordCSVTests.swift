import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("Password CSV")
struct PasswordCSVTests {
  @Test("The table begins with the header of Apple's Passwords, and lines end with CR LF")
  func header() {
    let export = ItemExport([], as: .passwords)
    #expect(export.text == "Title,URL,Username,Password,Notes,OTPAuth\r\n")
    #expect(export.counts.count == 0 && export.counts.secretCount == 0)
  }

  @Test("A row has the label, URL, account, password and comment")
  func row() {
    let export = ItemExport(
      [
        .internet([
          .label: .string("Mail"), .server: .string("imap.example.org"), .protocolType: .string("imps"),
          .port: .integer(0), .account: .string("anna"), .comment: .string("work"),
        ])
      ], as: .passwords)
    #expect(export.rows == [#""Mail","imaps://imap.example.org","anna","hunter2","work","""#])
    #expect(export.counts.count == 1 && export.counts.secretCount == 1 && export.omittedItems.isEmpty)
  }

  @Test("Python's csv module reads quotes, line breaks and commas correctly")
  func pythonReader() throws {
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

  @Test("The title of an item without a label is its server or service, or its account")
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
    "A spreadsheet does not evaluate any cell except the password, which is unchanged",
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
    // Only an ASCII character at the start makes a secret count as a formula.
    #expect(export.counts.formulaSecretCount == (text.hasPrefix("＝") ? 0 : 1))
  }

  @Test("A telephone number is unchanged as the user name")
  func telephone() {
    func user(_ text: String) -> String {
      let row = ItemExport([.generic([.account: .string(text)])], as: .passwords).rows[0]
      return String(row.split(separator: ",", omittingEmptySubsequences: false)[2])
    }
    #expect(user("+49 170 1234567") == "\"+49 170 1234567\"")
    #expect(user("+1555") == "\"+1555\"")
    // A spreadsheet may evaluate a handle as the name of cells.
    for text in ["@", "@anna", "@SUM(A1)", "@SUM(1+1)*cmd|' /C calc'!A0", "@a!A1"] {
      #expect(user(text) == "\"'\(text)\"")
    }
    for text in ["+", "+1+2", "+49a", "++1", "-49170", "+1-2"] { #expect(user(text) == "\"'\(text)\"") }
  }

  @Test("A one-time password is in the last column, and the password column is empty")
  func oneTime() {
    let address = "otpauth://totp/a?secret=JBSWY3DPEHPK3PXP"
    let export = ItemExport([.generic([.service: .string("2FA")], secret: address)], as: .passwords)
    #expect(export.rows == [#""2FA","","a","","","\#(address)""#])
  }

  @Test("Items without a secret, or with one that is not text, are reported as left out")
  func omittedItems() {
    let export = ItemExport(
      [
        .make(.genericPassword, [.service: .string("key")], [0xFF, 0xFE, 1]),
        .make(.genericPassword, [.service: .string("nul")], [0x61, 0, 0x62]),
        .generic([.service: .string("bare")], secret: nil), .generic([.service: .string("empty")], secret: ""),
        .make(.certificate, [:], [1]), .make(.key, [:], [1]), .generic([.service: .string("good")]),
      ], as: .passwords)
    #expect(export.counts.count == 1)
    #expect(export.omittedItems.map(\.identity.service) == ["key", "nul", "bare", "empty"])
    #expect(
      export.omittedItems.map(\.reason) == [
        "its secret is not text", "its secret is not text", "it has no secret", "it has no secret",
      ])
  }

  @Test("A table that is larger than the buffer is complete")
  func largeTable() {
    let items = (0..<2_000).map { KeychainItem.generic([.service: .string("s\($0)")], secret: "secret \($0)") }
    let export = ItemExport(items, as: .passwords)
    #expect(export.counts.count == 2_000 && export.rows.count == 2_000)
    #expect(export.rows.last == #""s1999","","","secret 1999","","""#)
  }
}

/// Runs a program, requires that it succeeds, and returns its output.
func run(_ program: String, _ arguments: [String], input: Data) throws -> Data {
  let outcome = try ChildProcess(program, arguments).run(input: input)
  try #require(outcome.status == 0, "\(program) failed: \(String(decoding: outcome.errors, as: UTF8.self))")
  return outcome.output
}
