import KeyhaulKit
import Reports

extension Explanation {
  /// A group of pages under one title in the list of topics.
  struct Section {
    let title: String
    let pages: [Explanation]
    var numbers = NumberColumn.none
  }

  /// The number before a topic in the list.
  enum NumberColumn {
    case none
    case exitCode
    case appleError
  }

  /// The list of topics.
  static let sections = [
    Section(title: "Possible results for an item", pages: outcomes),
    Section(title: "Reasons in a report", pages: terms),
    Section(title: "Ways to transfer items to another device", pages: transferMethods),
    Section(title: "Terms", pages: vocabulary),
    Section(title: "Results for a backup", pages: results),
    Section(title: "Protection classes", pages: classes),
    Section(title: "Findings in a backup", pages: findings + faults),
    Section(title: "Exit codes", pages: exitCodes, numbers: .exitCode),
    Section(title: "Apple's keychain statuses", pages: keychainStatuses, numbers: .appleError),
    Section(title: "Errors of a device's backup service", pages: backupErrors),
  ]

  /// All pages.
  static let all = sections.flatMap(\.pages)
}
