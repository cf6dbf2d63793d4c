import KeyhaulKit
import Testing

@testable import Reports

@Suite("The formats of exported items")
struct ExportFormatTests {
  @Test("have a name and an ending of their own, and no ending is the end of another one")
  func names() {
    let formats = ExportFormat.all
    #expect(Set(formats.map(\.name)) == ["json", "csv", "otpauth", "pem", "wifi", "genp-plist", "cxf"])
    for format in formats {
      let alike = formats.filter { format.ending.hasSuffix($0.ending) }
      #expect(alike.map(\.name) == [format.name], "\(format.ending)")
    }
  }

  @Test("other than the document contain the kinds that they are written for, and skip the others")
  func kinds() {
    let secret = Array("otpauth://totp/a".utf8)
    let items = ItemKind.allCases.map { KeychainItem.made($0, [.account: .string("a")], secret) }
    for format in ExportFormat.all where !format.isDocument {
      let others = items.filter { !format.kinds.contains($0.kind) }
      let export = ItemExport(others, as: format)
      #expect(export.counts.count == 0 && export.leftOut.isEmpty, "\(format.name)")
    }
  }
}
