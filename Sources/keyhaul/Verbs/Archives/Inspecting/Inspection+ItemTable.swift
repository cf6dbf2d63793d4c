import ArchivedKeychain
import CommandArguments
import CommandSession
import KeychainFormats
import KeychainRules
import Reports

extension Inspection {
  /// The items in their order; classes by their codes where room is short.
  func itemTable(_ opened: OpenedArchive, isShort: Bool) -> Table {
    let reasons = opened.items.map { reason(of: $0) }
    // A column that says the same of every item takes room from the names.
    let showsState = reasons.contains { $0 != nil }
    let distinctions = ItemText.distinctions(opened.items.map(\.item))
    let showsDistinctions = distinctions.contains { !$0.isEmpty }
    var table = Table(
      [
        .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
        .init(ItemText.protectionTitle(isShort: isShort)),
      ] + (showsState ? [.init("STATE")] : [])
        + (showsDistinctions ? [.init(ItemText.distinctionTitle, flexible: true)] : []))
    for (position, (item, reason)) in zip(opened.items, reasons).enumerated() {
      let name = item.item.map { ItemText.name(ItemIdentity($0)) } ?? "(sealed)"
      table.add(
        [
          String(item.index), ItemText.kind(item.kind), name, ItemText.protection(item.protection, isShort: isShort),
        ] + (showsState ? [reason?.rawValue ?? "readable"] : [])
          + (showsDistinctions ? [distinctions[position]] : []))
    }
    return table
  }
}
