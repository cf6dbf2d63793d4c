import ArchivedKeychain
import KeychainFormats
import Migration

/// How a page names an item: a name, who it belongs to, and what kind of thing it is.
struct ItemWords: Sendable {
  /// What the item is for: a service, a server, a label.
  let name: String
  /// Whose it is, where that says more.
  let account: String?
  let isSealed: Bool

  init(_ identity: ItemIdentity, index: Int?) {
    let (name, account): (String?, String?) =
      switch identity.kind {
      case .genericPassword: (identity.service, identity.account)
      case .internetPassword: (identity.server, identity.account)
      case .certificate, .key: (identity.label, nil)
      }
    let known = [name, account, identity.label].compactMap(\.self).filter { !$0.isEmpty }
    isSealed = known.isEmpty && identity.accessGroup == nil
    let place = index.map { "item \($0)" } ?? Self.noun(identity.kind)
    self.name = known.first ?? (isSealed ? "sealed \(place)" : "unnamed \(place)")
    self.account = name == known.first ? account.flatMap { $0.isEmpty ? nil : $0 } : nil
  }

  init(_ decision: MigrationPlan.Decision) { self.init(decision.identity, index: decision.index) }

  /// "generic password"
  static func noun(_ kind: ItemKind) -> String { kind.reportName.replacing("-", with: " ") }

  /// The name with the account in a sentence or a list.
  func write(to page: inout Markup) {
    if isSealed { page.words(name) } else { page.name(name) }
    if let account {
      page.words(" · ")
      page.name(account)
    }
  }
}

/// How a page names the app that an access group belongs to.
enum AppWords {
  /// The group without the identifier of the developer's team, which tells nobody anything: "org.example.chat".
  static func name(of accessGroup: String) -> String {
    let parts = accessGroup.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let team = parts.first, let rest = parts.last, parts.count == 2, !rest.isEmpty, isTeam(team) else {
      return accessGroup
    }
    return String(rest)
  }

  /// Ten capital letters and digits. Source: Apple, "TN3125: Inside Code Signing: Provisioning Profiles".
  private static func isTeam(_ text: Substring) -> Bool {
    text.utf8.count == 10
      && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
  }
}
