import KeyhaulKit

/// The name of an item on a page, with its account.
struct ItemLabel: Sendable {
  /// The first name of the item, or its index or kind if it has no name.
  let name: String
  /// The second name of the item, usually the account; `nil` if there is none.
  let account: String?
  /// Whether the item is encrypted, and neither its name nor its access group is known.
  let isEncrypted: Bool

  init(_ identity: ItemDescriptor, index: Int?) {
    let names = identity.names
    isEncrypted = identity.isEncrypted && names.isEmpty && identity.accessGroup == nil
    let indexOrKind = index.map { "item \($0)" } ?? identity.kind.noun
    name = names.first ?? (isEncrypted ? "encrypted \(indexOrKind)" : "unnamed \(indexOrKind)")
    account = names.dropFirst().first
  }

  init(_ decision: MigrationPlan.Decision) { self.init(decision.identity, index: decision.index) }

  /// Writes the name with the account, for a sentence or a list.
  func write(to page: inout HTMLWriter) {
    if isEncrypted { page.text(name) } else { page.name(name) }
    if let account {
      page.text(" · ")
      page.name(account)
    }
  }
}

/// A list of item names next to each other.
struct NameList {
  private let labels: [ItemLabel]

  init(_ labels: [ItemLabel]) { self.labels = labels }

  func write(to page: inout HTMLWriter) {
    guard !labels.isEmpty else { return }
    page.element("ul", ["class": "names"]) { page in
      for label in labels { page.element("li") { label.write(to: &$0) } }
    }
  }

  /// Writes the first names, and all others in a collapsed list.
  func write(collapsingAfter limit: Int, to page: inout HTMLWriter) {
    NameList(Array(labels.prefix(limit))).write(to: &page)
    guard labels.count > limit else { return }
    page.element("details") { page in
      page.element("summary", "\(HumanReadable.grouped(labels.count - limit)) more")
      NameList(Array(labels.dropFirst(limit))).write(to: &page)
    }
  }
}
