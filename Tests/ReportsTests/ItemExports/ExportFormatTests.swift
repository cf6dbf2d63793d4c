import KeyhaulKit
import Testing

@testable import Reports

@Suite("Export formats")
struct ExportFormatTests {
  @Test("Each export format has its own name and file ending, and no ending is the end of another one")
  func names() {
    let formats = ExportFormat.all
    #expect(
      Set(formats.map(\.name)) == ["json", "csv", "otpauth", "qr", "migration", "pem", "wifi", "genp-plist", "cxf"])
    for format in formats {
      let alike = formats.filter { format.ending.hasSuffix($0.ending) }
      #expect(alike.map(\.name) == [format.name], "\(format.ending)")
    }
  }

  @Test("Export formats other than the document skip the kinds of items that they are not written for")
  func kinds() {
    let secret = Array("otpauth://totp/a".utf8)
    let items = ItemKind.allCases.map { KeychainItem.make($0, [.account: .string("a")], secret) }
    for format in ExportFormat.all where !format.isDocument {
      let others = items.filter { !format.kinds.contains($0.kind) }
      let export = ItemExport(others, as: format)
      #expect(export.counts.count == 0 && export.leftOut.isEmpty, "\(format.name)")
    }
  }
}
