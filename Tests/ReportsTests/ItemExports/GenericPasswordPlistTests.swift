import KeyhaulKit
import Testing

@testable import Reports

@Suite("Property list of generic passwords")
struct GenericPasswordPlistTests {
  private func item(_ kind: ItemKind, _ attributes: AttributeMap<PropertyValue>, secret: [UInt8]?) -> KeychainItem {
    var item = KeychainItem(kind: kind, attributes: attributes)
    item.secret = secret.map { SensitiveBytes(copying: $0) }
    return item
  }

  @Test("Entries are in genp, with escaped text, data for text that XML cannot represent, and dates in whole seconds")
  func entries() throws {
    let export = ItemExport(
      [
        item(
          .genericPassword,
          [
            .account: .string("a<b&c"), .service: .string("bell\u{7}"), .synchronizable: .integer(1),
            .generic: .data([0, 255]), .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 0.75)),
          ], secret: [0, 1, 2]),
        item(.internetPassword, [.account: .string("x")], secret: [9]),
        item(.genericPassword, [.account: .string("none")], secret: nil),
      ], as: .genericPasswordPlist)

    let text = export.contents.withBytes { String(decoding: $0, as: UTF8.self) }
    #expect(
      text == """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
        \t<key>genp</key>
        \t<array>
        \t\t<dict>
        \t\t\t<key>acct</key><string>a&lt;b&amp;c</string>
        \t\t\t<key>cdat</key><date>2001-01-01T00:00:00Z</date>
        \t\t\t<key>gena</key><data>AP8=</data>
        \t\t\t<key>svce</key><data>YmVsbAc=</data>
        \t\t\t<key>sync</key><integer>1</integer>
        \t\t\t<key>v_Data</key><data>AAEC</data>
        \t\t</dict>
        \t</array>
        </dict>
        </plist>

        """)
    #expect(export.counts.count == 1 && export.counts.secretCount == 1)
    #expect(export.omittedItems.map(\.reason) == ["it has no secret"])
  }

  @Test("Without items, genp is empty")
  func noItems() throws {
    let export = ItemExport([], as: .genericPasswordPlist)
    let root = try XMLPlist.decode(export.contents.withBytes { Array($0) })
    #expect(root == .dictionary(["genp": .array([])]))
  }
}
