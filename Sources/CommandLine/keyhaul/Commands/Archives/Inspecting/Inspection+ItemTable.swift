import KeyhaulKit
import Reports

extension Inspection {
  /// The items in their order; classes by their codes where room is short.
  func itemTable(_ opened: OpenedArchive, isShort: Bool) -> Table {
    let items = opened.items
    // A column that says the same of every item takes room from the names.
    let showsState = items.contains { reason(of: $0) != nil }
    let distinctions = ItemText.distinctions(items.lazy.map(\.item))
    let showsDistinctions = distinctions.contains { !$0.isEmpty }
    return Table(
      [
        .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
        .init(ItemText.protectionTitle(isShort: isShort)),
      ] + (showsState ? [.init("STATE")] : [])
        + (showsDistinctions ? [.init(ItemText.distinctionTitle, flexible: true)] : []), count: items.count
    ) { position in
      let item = items[position]
      let name = item.item.map { ItemText.name(ItemIdentity($0)) } ?? "(encrypted)"
      return [
        String(item.index), ItemText.kind(item.kind), name, ItemText.protection(item.protection, isShort: isShort),
      ] + (showsState ? [reason(of: item)?.rawValue ?? "readable"] : [])
        + (showsDistinctions ? [distinctions[position]] : [])
    }
  }
}
