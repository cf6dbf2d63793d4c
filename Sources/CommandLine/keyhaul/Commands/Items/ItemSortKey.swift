import ArgumentParser
import KeyhaulKit

/// The sort key of `item find --sort`. Items without the key come last. Items with equal keys keep the order of a backup.
enum ItemSortKey: String, KeywordArgument {
  case kind, name, account, label, group, protection, created, changed

  func sorted(_ rows: [KeychainEntry], descending: Bool) -> [KeychainEntry] {
    let keyedRows = rows.enumerated().map { (offset: $0.offset, key: key(of: $0.element), row: $0.element) }
    return keyedRows.sorted { left, right in
      switch (left.key, right.key) {
      case (let leftKey?, let rightKey?) where leftKey != rightKey: descending ? rightKey < leftKey : leftKey < rightKey
      case (_?, nil): true
      case (nil, _?): false
      default: left.offset < right.offset
      }
    }.map(\.row)
  }

  private enum Key: Comparable {
    case number(Double)
    case text(String)
  }

  private func key(of row: KeychainEntry) -> Key? {
    let identity = row.identity
    return switch self {
    case .kind: .number(Double(ItemKind.allCases.firstIndex(of: row.kind) ?? 0))
    case .name: (identity.service ?? identity.server ?? identity.label).map(Key.text)
    case .account: identity.account.map(Key.text)
    case .label: identity.label.map(Key.text)
    case .group: identity.accessGroup.map(Key.text)
    case .protection: row.protection.flatMap { ProtectionClass.allCases.firstIndex(of: $0) }.map { .number(Double($0)) }
    case .created: (row.item?.creationDate?.secondsSinceReferenceDate).map(Key.number)
    case .changed: (row.modificationDate?.secondsSinceReferenceDate).map(Key.number)
    }
  }
}
