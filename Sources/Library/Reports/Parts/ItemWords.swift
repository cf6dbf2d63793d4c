import KeyhaulKit

/// How a page names an item: a name, who it belongs to, and what kind of thing it is.
struct ItemWords: Sendable {
  /// What the item is for: a service, a server, a label.
  let name: String
  /// Whose it is, where that says more.
  let account: String?
  let isSealed: Bool

  init(_ identity: ItemIdentity, index: Int?) {
    let names = identity.names
    isSealed = names.isEmpty && identity.accessGroup == nil
    let place = index.map { "item \($0)" } ?? identity.kind.noun
    name = names.first ?? (isSealed ? "encrypted \(place)" : "unnamed \(place)")
    account = names.dropFirst().first
  }

  init(_ decision: MigrationPlan.Decision) { self.init(decision.identity, index: decision.index) }

  /// The name with the account in a sentence or a list.
  func write(to page: inout Markup) {
    if isSealed { page.words(name) } else { page.name(name) }
    if let account {
      page.words(" · ")
      page.name(account)
    }
  }
}
