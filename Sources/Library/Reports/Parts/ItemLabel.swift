import KeyhaulKit

/// The name of an item on a page, with its account.
struct ItemLabel: Sendable {
  /// The first name of the item, or its position or kind if it has no name.
  let name: String
  /// The second name of the item, usually the account; `nil` if there is none.
  let account: String?
  /// Whether the name is encrypted.
  let isEncrypted: Bool

  init(_ identity: ItemDescriptor, index: Int?) {
    let names = identity.names
    isEncrypted = names.isEmpty && identity.accessGroup == nil
    let positionOrKind = index.map { "item \($0)" } ?? identity.kind.noun
    name = names.first ?? (isEncrypted ? "encrypted \(positionOrKind)" : "unnamed \(positionOrKind)")
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
  private let names: [ItemLabel]

  init(_ names: [ItemLabel]) { self.names = names }

  func write(to page: inout HTMLWriter) {
    guard !names.isEmpty else { return }
    page.element("ul", ["class": "names"]) { page in
      for item in names { page.element("li") { item.write(to: &$0) } }
    }
  }

  /// Writes the first names, and the others in a collapsed list.
  func write(collapsingAfter limit: Int, to page: inout HTMLWriter) {
    NameList(Array(names.prefix(limit))).write(to: &page)
    guard names.count > limit else { return }
    page.element("details") { page in
      page.element("summary", "\(HumanReadable.grouped(names.count - limit)) more")
      NameList(Array(names.dropFirst(limit))).write(to: &page)
    }
  }
}
