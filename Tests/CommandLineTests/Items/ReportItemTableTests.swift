import KeyhaulKit
import Testing

@testable import Reports

@Suite("Item tables in reports")
struct ReportItemTableTests {
  private struct Item {
    var name = "chat · anna"
    var group: String? = "org.example.chat"
    var index: Int?
    var protection = ProtectionClass.whenUnlocked
    var isEncrypted = false
  }

  private func lines(_ items: [Item], showsAll: Bool = false) -> [String] {
    let table = ReportItemTable(
      items, showsAll: showsAll,
      group: { $0.isEncrypted ? .init(kind: .genericPassword, protection: $0.protection) : nil },
      row: { item in
        .init(
          symbol: "+", kind: .genericPassword, name: item.name, protection: item.protection.phrase,
          accessGroup: item.group, index: item.index)
      })
    return table.lines(style: TextStyle(width: 120, usesColor: false, isUnicode: true))
  }

  @Test("Rows that would look the same show their access groups, and other rows do not")
  func groups() {
    let shownLines = lines([Item(), Item(group: "org.example.other"), Item(group: nil), Item(name: "mail · anna")])
    #expect(
      shownLines == [
        "  + generic      chat · anna  when unlocked  access group org.example.chat",
        "  + generic      chat · anna  when unlocked  access group org.example.other",
        "  + generic      chat · anna  when unlocked  no access group", "  + generic      mail · anna  when unlocked",
      ])
    #expect(lines([Item(), Item(protection: .always)]).allSatisfy { !$0.contains("access group") })
  }

  @Test("Rows with equal access groups show their item indexes, if they are known")
  func indexes() {
    let shownLines = lines([Item(index: 3), Item(index: 7), Item(group: "b", index: 9)])
    #expect(
      shownLines.map { $0.split(separator: "unlocked  ").last.map(String.init) } == [
        "access group org.example.chat, item 3", "access group org.example.chat, item 7", "access group b",
      ])
    #expect(lines([Item(), Item()]).allSatisfy { $0.hasSuffix("when unlocked") })
  }

  @Test("Undecryptable items of one kind and class share a row, unless all items are shown")
  func encrypted() {
    let items =
      (0..<12).map { (index: Int) in
        Item(name: "(encrypted, item \(index))", group: nil, index: index, isEncrypted: true)
      }
      + [Item(name: "(encrypted, item 12)", group: nil, protection: .always, isEncrypted: true), Item()]
    #expect(
      lines(items) == [
        "  + generic      (12 encrypted)        when unlocked", "  + generic      (encrypted, item 12)  always",
        "  + generic      chat · anna           when unlocked",
      ])
    #expect(lines(items, showsAll: true).count == 14)
  }

  @Test("The number of hidden items is shown, and rows of several items are counted by item")
  func hidden() {
    let namedItems = (0..<12).map { Item(name: "account \($0)") }
    let encryptedItems = (0..<5).map { Item(name: "(encrypted, item \($0))", isEncrypted: true) }
    // The table shows ten rows. The five encrypted items share one of them.
    #expect(lines(encryptedItems + namedItems).last == "    … 3 more (-v shows all)")
    #expect(lines(namedItems + encryptedItems).last == "    … 7 more (-v shows all)")
  }
}
