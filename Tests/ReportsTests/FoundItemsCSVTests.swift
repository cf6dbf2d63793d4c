import Backups
import Basics
import Foundation
import KeychainFormats
import KeyhaulKit
import Testing

@testable import Reports

@Suite("CSV of found items")
struct FoundItemsCSVTests {
  private func item(_ secret: [UInt8], isProtected: Bool = false) -> KeychainItem {
    var item = KeychainItem(
      kind: .internetPassword,
      attributes: [
        .server: .string("imap.example.org"), .account: .string("anna"), .label: .string("a, label"),
        .accessGroup: .string("=group"), .protocolType: .string("imps"), .port: .integer(993), .path: .string("/p"),
        .synchronizable: .integer(1), .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 60)),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: 3600)),
      ])
    item.protection = .afterFirstUnlock
    item.secret = SensitiveBytes(copying: secret)
    if isProtected { item[.accessControl] = .dictionary(["od": .boolean(true)]) }
    return item
  }

  private func lines(_ items: [KeychainItem], revealsSecrets: Bool, omitsProtectedSecrets: Bool = true) -> [String] {
    let entries = items.enumerated().map { KeychainEntry(index: $0, item: $1) }
    let table = FoundItemsCSV.table(
      of: entries, revealsSecrets: revealsSecrets, omitsProtectedSecrets: omitsProtectedSecrets)
    return table.withBytes { String(decoding: $0, as: UTF8.self) }.components(separatedBy: "\r\n")
  }

  private static let columns =
    "kind,service,server,account,label,access_group,protection,protocol,port,path,synchronizable,created,changed,readable"
  /// An apostrophe makes the name of a group inert in a spreadsheet.
  private static let fields =
    "\(ItemKind.internetPassword.reportName),,imap.example.org,anna,\"a, label\",'=group,ck,imps,993,/p,1,"
    + "2001-01-01T00:01:00Z,2001-01-01T01:00:00Z,1"

  @Test("Each column has its own attribute")
  func attributes() {
    #expect(lines([item([])], revealsSecrets: false) == [Self.columns, Self.fields, ""])
  }

  @Test("A secret is in one of two columns, as text unless it is binary or a formula")
  func secrets() {
    // A formula and binary data are in the second column, in base64.
    let cases: [(secret: [UInt8], fields: String)] = [
      (Array("plain".utf8), "plain,"), (Array("a,\"b\"".utf8), "\"a,\"\"b\"\"\","), (Array("=1+1".utf8), ",PTErMQ=="),
      (Array("+49 30".utf8), "+49 30,"), ([0xFF, 0], ",/wA="), ([], ","),
    ]
    for (secret, fields) in cases {
      #expect(
        lines([item(secret)], revealsSecrets: true)
          == [Self.columns + ",secret,secret_base64", "\(Self.fields),\(fields)", ""], "\(fields)")
    }
  }

  @Test("A protected secret has two empty fields, unless the source does not protect it")
  func protected() {
    let protected = item(Array("plain".utf8), isProtected: true)
    #expect(lines([protected], revealsSecrets: true)[1] == "\(Self.fields),,")
    #expect(lines([protected], revealsSecrets: true, omitsProtectedSecrets: false)[1] == "\(Self.fields),plain,")
    #expect(lines([protected], revealsSecrets: false, omitsProtectedSecrets: false)[1] == Self.fields)
  }
}
