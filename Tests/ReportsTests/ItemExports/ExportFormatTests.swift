import KeyhaulKit
import Testing

@testable import Reports

@Suite("Export formats")
struct ExportFormatTests {
  @Test("Each export format has its own name and file extension, and no file extension is a suffix of another")
  func names() {
    let formats = ExportFormat.all
    #expect(
      Set(formats.map(\.name)) == ["json", "csv", "otpauth", "qr", "migration", "pem", "wifi", "genp-plist", "cxf"])
    for format in formats {
      let matchingFormats = formats.filter { format.ending.hasSuffix($0.ending) }
      #expect(matchingFormats.map(\.name) == [format.name], "\(format.ending)")
    }
  }

  @Test("Every format except Keyhaul's own JSON skips items of unsupported kinds")
  func kinds() {
    let secret = Array("otpauth://totp/a".utf8)
    let items = ItemKind.allCases.map { KeychainItem.make($0, [.account: .string("a")], secret) }
    for format in ExportFormat.all where !format.isDocument {
      let unsupportedItems = items.filter { !format.kinds.contains($0.kind) }
      let export = ItemExport(unsupportedItems, as: format)
      #expect(export.counts.count == 0 && export.omittedItems.isEmpty, "\(format.name)")
    }
  }
}
