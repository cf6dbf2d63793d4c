import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import KeyhaulKit
import VirtualDevice

/// A planned move of a phone's keychain, with the outcome for each item.
///
/// It predicts the restore of a backup of the phone's current keychain. The prediction uses real keys: for each
/// protection class, one item is encrypted for a backup keybag in memory and decrypted with the keys of the target.
/// `restore()` performs the move.
public struct Move: Sendable {
  /// The target of a move.
  public enum Target: String, Sendable, Hashable, CaseIterable {
    /// Another phone of the same model with the same apps and an empty keychain.
    case newPhone = "to a new phone"
    /// The phone that made the backup, erased before the restore.
    case samePhone = "to the same phone"
  }

  /// The kind of backup that a move uses.
  public enum Backup: String, Sendable, Hashable, CaseIterable {
    /// A backup with a password.
    case encrypted = "from an encrypted backup"
    /// A backup without a password.
    case unencrypted = "from an unencrypted backup"
  }

  enum Destination: Sendable {
    case emptyPhone(Target)
    case phone(Phone)
  }

  /// The kind of backup.
  public let backup: Backup
  /// All items of the phone with their outcomes: first those in the backup, then those that are never in a backup.
  /// Tombstones are excluded.
  public let items: [MovedItem]
  let destination: Destination
  let source: Phone
  /// The source's revision when the move was planned.
  let revision: String
  /// The number of items in the backup.
  let backedUpCount: Int

  /// Returns the move in words, such as "to a new phone from an encrypted backup".
  static func description(to destination: Destination, from backup: Backup) -> String {
    switch destination {
    case .emptyPhone(let target): "\(target.rawValue) \(backup.rawValue)"
    case .phone: "to the other phone \(backup.rawValue)"
    }
  }

  /// The items that move.
  public var migrating: [MovedItem] { items.filter { $0.fate.kind == .migrates } }

  /// The items that are in the backup but do not move.
  public var stayingBehind: [MovedItem] {
    items.filter { if case .staysBehind = $0.fate.kind { true } else { false } }
  }

  /// The items that are never in a backup.
  public var neverInBackup: [MovedItem] {
    items.filter { if case .neverInBackup = $0.fate.kind { true } else { false } }
  }

  /// The items that are damaged.
  public var unreadable: [MovedItem] {
    items.filter(\.fate.isDamage)
  }
}

extension Move: CustomStringConvertible {
  /// The number of items with each outcome, then every item with its outcome, and the reason if it does not move.
  public var description: String {
    guard !items.isEmpty else { return Self.emptyKeychainText }
    let counts: [(count: Int, outcome: String)] = [
      (migrating.count, "migrating"), (stayingBehind.count, "staying behind"), (neverInBackup.count, "in no backup"),
      (unreadable.count, "damaged"),
    ]
    let countText = counts.filter { $0.count > 0 }.map { "\($0.count) \($0.outcome)" }.joined(separator: ", ")
    let total = "\(items.count) item\(items.count == 1 ? "" : "s")"
    let heading = "\(total) in a move \(Self.description(to: destination, from: backup)): \(countText)"
    let lines = items.map { item in
      let reason = item.fate.reason.map { " (\($0.rawValue))" } ?? ""
      return "  \(item.title) \(item.fate.verb)\(reason)"
    }
    return ([heading] + lines).joined(separator: "\n")
  }
}

extension Move {
  /// The largest number of items in the description of an outcome.
  private static let maximumListCount = 8

  /// The description of a move without items, with advice.
  private static let emptyKeychainText =
    "the phone's keychain is empty: the app stored nothing in it. Check the status of its keychain calls, and that they "
    + "run inside phone.run. If the app makes them on a queue or in a detached task, write "
    + "phone.run(inWholeProcess: true)"

  /// The outcome for the item with a name: `move["session token"] == .migrates`.
  ///
  /// The name must equal the item's label, account, service or server, or `service/account` or `server/account`.
  ///
  /// If several items match, the result is the outcome that they share. If their outcomes or reasons differ, the result
  /// equals no outcome. The description of the result lists the matching items or, if no item matches, the existing
  /// names.
  public subscript(name: String) -> Fate {
    fate(of: items(named: name), request: "\"\(UntrustedText.escaped(name))\"", name: name)
  }

  /// The outcome for the item with a name in an access group.
  public subscript(name: String, inGroup accessGroup: String) -> Fate {
    let namedItems = items(named: name)
    let request = "\"\(UntrustedText.escaped(name))\" in the access group \"\(UntrustedText.escaped(accessGroup))\""
    return fate(
      of: namedItems.filter { $0.accessGroup == accessGroup }, request: request, inOtherGroups: namedItems)
  }

  /// Returns the items with a name.
  public func items(named name: String) -> [MovedItem] { items.filter { $0.allNames.contains(name) } }

  /// Returns the common outcome of items.
  ///
  /// - Parameters:
  ///   - matching: The items with the requested name and group.
  ///   - request: The requested name and group, for descriptions.
  ///   - name: The requested name, to find similar names.
  ///   - itemsInOtherGroups: If no item matches, the items with the name in other access groups.
  private func fate(
    of matching: [MovedItem], request: String, name: String? = nil,
    inOtherGroups itemsInOtherGroups: [MovedItem] = []
  ) -> Fate {
    guard !items.isEmpty else { return Fate(.nothingStored, details: Self.emptyKeychainText) }
    guard let first = matching.first else {
      let hint = itemsInOtherGroups.isEmpty ? similarNameHint(for: name) : Self.groupHint(for: itemsInOtherGroups)
      return fateOfMissingItem(request: request, hint: hint)
    }
    if matching.count == 1 { return first.fate }
    return Self.commonFate(of: matching, firstKind: first.fate.kind, request: request)
  }

  private func fateOfMissingItem(request: String, hint: String) -> Fate {
    let namelessCount = items.count { $0.allNames.isEmpty && $0.fate.isDamage }
    let remark = namelessCount == 0 ? "" : "\n  items whose names cannot be read: \(namelessCount)"
    return Fate(
      namelessCount == 0 ? .absent : .unclear, details: "no item on the phone is called \(request)\(hint)\(remark)")
  }

  /// Returns the outcome that several items share, or `.unclear` if one of them differs from the first.
  private static func commonFate(of items: [MovedItem], firstKind: Fate.Kind, request: String) -> Fate {
    let isShared = items.allSatisfy { $0.fate.kind == firstKind }
    let remark = isShared ? "" : " and have different outcomes; use \"service/account\" or inGroup: to name one of them"
    let lines = items.map { item in
      let group = item.accessGroup.map { "\n  in the access group \"\(UntrustedText.escaped($0))\"" } ?? ""
      return item.fate.description + group
    }
    let heading = "\(items.count) items are called \(request)\(remark)"
    return Fate(isShared ? firstKind : .unclear, details: ([heading] + shortened(lines)).joined(separator: "\n"))
  }

  /// Returns a hint with a similar name and the existing names.
  private func similarNameHint(for name: String?) -> String {
    let allNames = Set(items.flatMap(\.allNames))
    let similarName = name.flatMap { EditDistance.nearest(to: $0, among: allNames.sorted()) }
    let hint = similarName.map { "; \"\(UntrustedText.escaped($0))\" is similar" } ?? ""
    return (["\(hint)\n  the phone has:"] + Self.shortened(items.map { "  \($0.title)" })).joined(separator: "\n  ")
  }

  /// Returns a hint with the access groups of items.
  private static func groupHint(for items: [MovedItem]) -> String {
    let groups = Set(items.compactMap(\.accessGroup)).sorted().map { "\"\(UntrustedText.escaped($0))\"" }
    return groups.isEmpty ? "; the name occurs in no group" : "; the name occurs in \(groups.joined(separator: ", "))"
  }

  private static func shortened(_ lines: [String]) -> [String] {
    let remark = lines.count > maximumListCount ? ["… and \(lines.count - maximumListCount) more"] : []
    return lines.prefix(maximumListCount) + remark
  }
}

extension Move {
  /// The password of the backup that `restore` makes.
  private static let password = "correct horse battery staple"
  /// The key derivation iterations of the backup. Real phones use ten million, but this backup exists only for a
  /// moment.
  private static let rounds = 1

  /// Performs the move with a real backup file and a real restore, and compares the result with the prediction.
  ///
  /// In a move to the same phone, the phone is erased before the restore and gets the same passcode again. For a move to
  /// a new phone, a phone with the same model, iOS version, apps and passcode is created. In a move to another phone, the
  /// restore replaces that phone's items.
  ///
  /// - Returns: The phone that has the keychain afterwards.
  /// - Throws: `.staleMove` if the phone has changed since the move was planned; `.locked` if either phone is
  ///   locked; `.otherOutcome` if the result differs from the prediction; `.underlying` if a file operation fails.
  @discardableResult
  public func restore() throws(PhoneError) -> Phone {
    let path = "\(source.deviceSet.devices.path)/\(UUID().uuidString).tar"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try writeBackup(to: path)
    let target = try targetPhone()
    try check(restoreBackup(at: path, to: target))
    return target
  }

  private func writeBackup(to path: String) throws(PhoneError) {
    try source.withSession { (session) throws(PhoneError) in
      guard session.record.revision == revision else {
        throw PhoneError(
          .staleMove, .stalePlan, "the move is out of date",
          reason: "the keychain has changed since the move was planned",
          advice: "move(to:backup:) again, after the change")
      }
      try translatingErrors { () throws(KeyhaulError) in
        let prepared = try BackupExporter.prepare(session, password: secret, rounds: Self.rounds, listsExported: false)
        _ = try prepared.write(to: .file(path, .tar))
      }
    }
  }

  /// Restores a backup.
  ///
  /// - Returns: The plan of the restore.
  private func restoreBackup(at path: String, to target: Phone) throws(PhoneError) -> MigrationPlan {
    try target.withSession(.writing) { (session) throws(PhoneError) in
      try translatingErrors { () throws(KeyhaulError) in
        let deviceKey = try session.deviceKey()
        let archive = try BackupArchive.open(.path(path))
        let unlockedBackup = try archive.open(with: try archive.unlock(password: secret), deviceKey: deviceKey)
        let plan = try Restorer.plan(unlockedBackup, onto: session, policy: .replace)
        try Restorer.restore(plan, onto: session)
        return plan
      }
    }
  }

  private var secret: Secret? { backup == .encrypted ? Secret(utf8: Self.password) : nil }

  private func targetPhone() throws(PhoneError) -> Phone {
    switch destination {
    case .phone(let other): return other
    case .emptyPhone(.newPhone): return try Phone(like: source)
    case .emptyPhone(.samePhone):
      let passcode = source.passcode
      try source.erase()
      if let passcode { try source.setPasscode(passcode) }
      return source
    }
  }

  /// Compares the outcomes in the plan that was restored with the predicted outcomes.
  private func check(_ restoredPlan: MigrationPlan) throws(PhoneError) {
    let actual = restoredPlan.decisions.map { MovedItem($0, isInBackup: true, moveDescription: "").fate.kind }
    guard actual == items.prefix(backedUpCount).map(\.fate.kind) else {
      throw PhoneError(
        .otherOutcome, .failed, "the restore did not do what the move predicted",
        reason: "of \(backedUpCount) items in the backup, \(restoredPlan.summary.migrates) moved",
        advice: "report it: this is a bug in Keyhaul")
    }
  }
}
