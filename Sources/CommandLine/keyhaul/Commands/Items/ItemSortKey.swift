import ArgumentParser
import KeyhaulKit

/// The sort key of `item find --sort`. Items without the key come last. Items with equal keys keep the order of a backup.
enum ItemSortKey: String, KeywordArgument {
  case kind, name, account, label, group, protection, created, changed

  func sorted(_ entries: [KeychainEntry], descending: Bool) -> [KeychainEntry] {
    let candidates = entries.enumerated().map { (offset: $0.offset, value: value(of: $0.element), entry: $0.element) }
    return candidates.sorted { left, right in
      switch (left.value, right.value) {
      case (let leftValue?, let rightValue?) where leftValue != rightValue:
        descending ? rightValue < leftValue : leftValue < rightValue
      case (_?, nil): true
      case (nil, _?): false
      default: left.offset < right.offset
      }
    }.map(\.entry)
  }

  private enum SortValue: Comparable {
    case number(Double)
    case text(String)
  }

  private func value(of entry: KeychainEntry) -> SortValue? {
    let identity = entry.identity
    return switch self {
    case .kind: .number(Double(ItemKind.allCases.firstIndex(of: entry.kind) ?? 0))
    case .name: (identity.service ?? identity.server ?? identity.label).map(SortValue.text)
    case .account: identity.account.map(SortValue.text)
    case .label: identity.label.map(SortValue.text)
    case .group: identity.accessGroup.map(SortValue.text)
    case .protection:
      entry.protection.flatMap { ProtectionClass.allCases.firstIndex(of: $0) }.map { .number(Double($0)) }
    case .created: (entry.item?.creationDate?.secondsSinceReferenceDate).map(SortValue.number)
    case .changed: (entry.modificationDate?.secondsSinceReferenceDate).map(SortValue.number)
    }
  }
}
