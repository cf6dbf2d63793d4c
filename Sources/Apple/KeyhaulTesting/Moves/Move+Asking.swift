import Basics
import KeychainFormats

extension Move {
  /// The most items that a story lists.
  private static let listed = 8

  static let nothingStored =
    "the phone's keychain is empty: the app stored nothing in it. Check the status of its keychain calls, and that "
    + "they ran inside phone.run, not before it and not on another queue or thread"

  /// What becomes of the item with this name: `move["session token"] == .migrates`.
  ///
  /// An item is meant where its label, account, service or server is the name, or `service/account` or
  /// `server/account`, to the letter. Where several are, the answer is the fate that all of them share, for the same
  /// reason; where they share none it is equal to nothing. Printed, the answer tells of each item that is meant; or,
  /// where none is, which names there are.
  public subscript(name: String) -> Fate {
    fate(of: items(named: name), called: "\"\(HostileText.shown(name))\"", name: name)
  }

  /// What becomes of the item with this name in one access group.
  public subscript(name: String, inGroup accessGroup: String) -> Fate {
    let named = items(named: name)
    let called = "\"\(HostileText.shown(name))\" in the access group \"\(HostileText.shown(accessGroup))\""
    return fate(of: named.filter { $0.accessGroup == accessGroup }, called: called, elsewhere: named)
  }

  /// The items that a name means.
  public func items(named name: String) -> [MovedItem] { items.filter { $0.allNames.contains(name) } }

  /// - Parameters:
  ///   - name: What was asked for, to look for names that are near.
  ///   - elsewhere: Items of the name that were not meant, because they are in other access groups.
  private func fate(
    of found: [MovedItem], called: String, name: String? = nil, elsewhere: [MovedItem] = []
  ) -> Fate {
    guard !items.isEmpty else { return Fate(.nothingStored, story: Self.nothingStored) }
    guard let first = found.first else {
      let hint = elsewhere.isEmpty ? names(near: name) : Self.groups(of: elsewhere)
      let nameless = items.count { $0.allNames.isEmpty && $0.fate.isDamage }
      let remark = nameless == 0 ? "" : "\n  \(nameless) cannot be read, so their names are unknown"
      return Fate(
        nameless == 0 ? .absent : .unclear, story: "no item of the phone is called \(called)\(hint)\(remark)")
    }
    guard found.count > 1 else { return first.fate }
    let isShared = found.allSatisfy { $0.fate.kind == first.fate.kind }
    let remark = isShared ? "" : ", and not all share a fate; \"service/account\" or inGroup: means one of them"
    let lines = found.map { item in
      item.fate.description + (item.accessGroup.map { "\n  in the access group \"\(HostileText.shown($0))\"" } ?? "")
    }
    return Fate(
      isShared ? first.fate.kind : .unclear,
      story: (["\(found.count) items are called \(called)\(remark)"] + Self.short(lines)).joined(separator: "\n"))
  }

  /// The name that is near, and which names there are.
  private func names(near name: String?) -> String {
    let known = Set(items.flatMap(\.allNames))
    let near = name.flatMap { EditDistance.nearest(to: $0, among: known.sorted()) }
    let hint = near.map { "; \"\(HostileText.shown($0))\" is near" } ?? ""
    return (["\(hint)\n  there are:"] + Self.short(items.map { "  \($0.title)" })).joined(separator: "\n  ")
  }

  private static func groups(of items: [MovedItem]) -> String {
    let groups = Set(items.compactMap(\.accessGroup)).sorted().map { "\"\(HostileText.shown($0))\"" }
    return groups.isEmpty ? "; it is in none" : "; it is in \(groups.joined(separator: ", "))"
  }

  private static func short(_ lines: [String]) -> [String] {
    let rest = lines.count > listed ? ["… and \(lines.count - listed) more"] : []
    return lines.prefix(listed) + rest
  }
}
