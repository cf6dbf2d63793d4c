import ArgumentParser
import KeyhaulKit

/// The sort key of `item find --sort`. Items without the key come last. Items with equal keys keep the order of a backup.
enum ItemSortKey: String, KeywordArgument {
  case kind, name, account, label, group, protection, created, changed

  func sorted(_ entries: [KeychainEntry], descending: Bool) -> [KeychainEntry] {
    let keyedEntries = entries.enumerated().map { (offset: $0.offset, key: key(of: $0.element), entry: $0.element) }
    return keyedEntries.sorted { left, right in
      switch (left.key, right.key) {
      case (let leftKey?, let rightKey?) where leftKey != rightKey: descending ? rightKey < leftKey : leftKey < rightKey
      case (_?, nil): true
      case (nil, _?): false
      default: left.offset < right.offset
      }
    }.map(\.entry)
  }

  private enum Key: Comparable {
    case number(Double)
    case text(String)
  }

  private func key(of entry: KeychainEntry) -> Key? {
    let identity = entry.identity
    return switch self {
    case .kind: .number(Double(ItemKind.allCases.firstIndex(of: entry.kind) ?? 0))
    case .name: (identity.service ?? identity.server ?? identity.label).map(Key.text)
    case .account: identity.account.map(Key.text)
    case .label: identity.label.map(Key.text)
    case .group: identity.accessGroup.map(Key.text)
    case .protection:
      entry.protection.flatMap { ProtectionClass.allCases.firstIndex(of: $0) }.map { .number(Double($0)) }
    case .created: (entry.item?.creationDate?.secondsSinceReferenceDate).map(Key.number)
    case .changed: (entry.modificationDate?.secondsSinceReferenceDate).map(Key.number)
    }
  }
}
