import KeyhaulKit
import Testing

@testable import Reports

@Suite("A table of items in a report")
struct ReportItemTableTests {
  private struct Item {
    var name = "chat · anna"
    var group: String? = "org.example.chat"
    var place: Int?
    var protection = ProtectionClass.whenUnlocked
    var isSealed = false
  }

  private func lines(_ items: [Item], showsAll: Bool = false) -> [String] {
    let table = ReportItemTable(
      items, showsAll: showsAll,
      group: { $0.isSealed ? .init(kind: .genericPassword, protection: $0.protection) : nil },
      row: { item in
        .init(
          symbol: "+", kind: .genericPassword, name: item.name, protection: item.protection.phrase,
          accessGroup: item.group, place: item.place)
      })
    return table.lines(style: TextStyle(width: 120, usesColor: false, isUnicode: true))
  }

  @Test("says the access groups of rows that would read the same, and of no others")
  func groups() {
    let shown = lines([Item(), Item(group: "org.example.other"), Item(group: nil), Item(name: "mail · anna")])
    #expect(
      shown == [
        "  + generic      chat · anna  when unlocked  access group org.example.chat",
        "  + generic      chat · anna  when unlocked  access group org.example.other",
        "  + generic      chat · anna  when unlocked  no access group", "  + generic      mail · anna  when unlocked",
      ])
    #expect(lines([Item(), Item(protection: .always)]).allSatisfy { !$0.contains("access group") })
  }

  @Test("says the places of those that are of one group too, and nothing where nothing is known to differ")
  func places() {
    let shown = lines([Item(place: 3), Item(place: 7), Item(group: "b", place: 9)])
    #expect(
      shown.map { $0.split(separator: "unlocked  ").last.map(String.init) } == [
        "access group org.example.chat, item 3", "access group org.example.chat, item 7", "access group b",
      ])
    #expect(lines([Item(), Item()]).allSatisfy { $0.hasSuffix("when unlocked") })
  }

  @Test("counts sealed items of one kind and class in one row, each in its own where all are shown")
  func sealed() {
    let items =
      (0..<12).map { (place: Int) in
        Item(name: "(encrypted, item \(place))", group: nil, place: place, isSealed: true)
      }
      + [Item(name: "(encrypted, item 12)", group: nil, protection: .always, isSealed: true), Item()]
    #expect(
      lines(items) == [
        "  + generic      (12 encrypted)        when unlocked", "  + generic      (encrypted, item 12)  always",
        "  + generic      chat · anna           when unlocked",
      ])
    #expect(lines(items, showsAll: true).count == 14)
  }

  @Test("says how many items it does not show, those of a row together")
  func hidden() {
    let named = (0..<12).map { (place: Int) in Item(name: "account \(place)") }
    let sealed = (0..<5).map { (place: Int) in Item(name: "(encrypted, item \(place))", isSealed: true) }
    // The row of five and nine others are shown.
    #expect(lines(sealed + named).last == "    … 3 more (-v shows all)")
    #expect(lines(named + sealed).last == "    … 7 more (-v shows all)")
  }
}
