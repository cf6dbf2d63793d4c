import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import KeyhaulKit
import VirtualDevice

/// A move of a phone's keychain, decided and not carried out: what becomes of every item.
///
/// It is what a backup made now and restored there would do, found with real keys in memory: what opens on the other
/// phone was opened there. `restore()` carries it out.
public struct Move: Sendable {
  /// Where the keychain goes.
  public enum Target: String, Sendable, Hashable, CaseIterable {
    /// Another phone of the same model with the same apps, and nothing in its keychain.
    case newPhone = "to a new phone"
    /// The phone that made the backup, erased before.
    case samePhone = "to the same phone"
  }

  /// What the keychain goes with.
  public enum Backup: String, Sendable, Hashable, CaseIterable {
    /// A backup with a password.
    case encrypted = "from an encrypted backup"
    /// A backup without a password.
    case unencrypted = "from an unencrypted backup"
  }

  enum Destination: Sendable {
    case made(Target)
    case phone(Phone)
  }

  /// What the keychain goes with.
  public let backup: Backup
  /// All items of the phone, each with its fate: those that the backup would hold, then those that no backup holds.
  /// Marks of deleted items are none.
  public let items: [MovedItem]
  let destination: Destination
  let source: Phone
  /// The source's revision when the move was decided.
  let revision: String
  /// The number of items that the backup would hold.
  let backedUpCount: Int

  /// The move in words: "to a new phone from an encrypted backup".
  static func way(_ destination: Destination, _ backup: Backup) -> String {
    switch destination {
    case .made(let target): "\(target.rawValue) \(backup.rawValue)"
    case .phone: "to the other phone \(backup.rawValue)"
    }
  }

  /// The items that arrive.
  public var migrating: [MovedItem] { items.filter { $0.fate.kind == .migrates } }

  /// The items that are in the backup and do not arrive.
  public var stayingBehind: [MovedItem] {
    items.filter { if case .staysBehind = $0.fate.kind { true } else { false } }
  }

  /// The items that no backup of the phone holds.
  public var neverInBackup: [MovedItem] {
    items.filter { if case .neverInBackup = $0.fate.kind { true } else { false } }
  }

  /// The items that are damaged.
  public var unreadable: [MovedItem] {
    items.filter(\.fate.isDamage)
  }
}

extension Move: CustomStringConvertible {
  /// The counts, then each item that does not arrive with its reason.
  public var description: String {
    guard !items.isEmpty else { return Self.nothingStored }
    let counts = [
      (migrating.count, "migrating"), (stayingBehind.count, "staying behind"), (neverInBackup.count, "in no backup"),
      (unreadable.count, "damaged"),
    ]
    let told = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    let total = "\(items.count) item\(items.count == 1 ? "" : "s")"
    let lines = items.map { item in
      "  \(item.title) \(item.fate.verb)\(item.fate.reason.map { " (\($0.rawValue))" } ?? "")"
    }
    return (["\(total) in a move \(Self.way(destination, backup)): \(told)"] + lines).joined(separator: "\n")
  }
}

extension Move {
  /// The most items that a story lists.
  private static let listed = 8

  static let nothingStored =
    "the phone's keychain is empty: the app stored nothing in it. Check the status of its keychain calls, and that they "
    + "run inside phone.run. If the app makes them on a queue or in a detached task, write "
    + "phone.run(inWholeProcess: true)"

  /// What becomes of the item with this name: `move["session token"] == .migrates`.
  ///
  /// An item is meant where its label, account, service or server is the name, or `service/account` or
  /// `server/account`, to the letter. Where several are, the answer is the fate that all of them share, for the same
  /// reason; where they share none it is equal to nothing. Printed, the answer tells of each item that is meant; or,
  /// where none is, which names there are.
  public subscript(name: String) -> Fate {
    fate(of: items(named: name), called: "\"\(UntrustedText.escaped(name))\"", name: name)
  }

  /// What becomes of the item with this name in one access group.
  public subscript(name: String, inGroup accessGroup: String) -> Fate {
    let named = items(named: name)
    let called = "\"\(UntrustedText.escaped(name))\" in the access group \"\(UntrustedText.escaped(accessGroup))\""
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
      let remark = nameless == 0 ? "" : "\n  items whose names cannot be read: \(nameless)"
      return Fate(
        nameless == 0 ? .absent : .unclear, story: "no item on the phone is called \(called)\(hint)\(remark)")
    }
    guard found.count > 1 else { return first.fate }
    let isShared = found.allSatisfy { $0.fate.kind == first.fate.kind }
    let remark = isShared ? "" : " and have different outcomes; use \"service/account\" or inGroup: to name one of them"
    let lines = found.map { item in
      item.fate.description
        + (item.accessGroup.map { "\n  in the access group \"\(UntrustedText.escaped($0))\"" } ?? "")
    }
    return Fate(
      isShared ? first.fate.kind : .unclear,
      story: (["\(found.count) items are called \(called)\(remark)"] + Self.short(lines)).joined(separator: "\n"))
  }

  /// The name that is near, and which names there are.
  private func names(near name: String?) -> String {
    let known = Set(items.flatMap(\.allNames))
    let near = name.flatMap { EditDistance.nearest(to: $0, among: known.sorted()) }
    let hint = near.map { "; \"\(UntrustedText.escaped($0))\" is similar" } ?? ""
    return (["\(hint)\n  the phone has:"] + Self.short(items.map { "  \($0.title)" })).joined(separator: "\n  ")
  }

  private static func groups(of items: [MovedItem]) -> String {
    let groups = Set(items.compactMap(\.accessGroup)).sorted().map { "\"\(UntrustedText.escaped($0))\"" }
    return groups.isEmpty ? "; the name occurs in no group" : "; the name occurs in \(groups.joined(separator: ", "))"
  }

  private static func short(_ lines: [String]) -> [String] {
    let rest = lines.count > listed ? ["… and \(lines.count - listed) more"] : []
    return lines.prefix(listed) + rest
  }
}

extension Move {
  /// The password of the backup that `restore` makes.
  private static let password = "correct horse battery staple"
  /// Of the backup password's derivation. Real phones ask for ten million; nobody attacks a backup that is gone in a
  /// moment.
  private static let rounds = 1

  /// Carries the move out: a real backup, written to a file, and a real restore of it. What came of each item is held
  /// against what the move had said.
  ///
  /// The same phone is erased first, and is given its passcode again. A new phone has the apps and the passcode of the
  /// old one.
  ///
  /// - Returns: The phone that the keychain is on afterwards.
  /// - Throws: `.outdatedMove` where the phone has changed since the move was decided; `.locked` where one of the two
  ///   is.
  @discardableResult
  public func restore() throws(PhoneError) -> Phone {
    let path = "\(source.home.home.path)/\(UUID().uuidString).tar"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try source.withSession { (session) throws(PhoneError) in
      guard session.record.revision == revision else {
        throw PhoneError(
          .outdatedMove, .stalePlan, "the move is out of date",
          "the keychain has changed since the move was planned", advice: "move(to:backup:) again, after the change")
      }
      try telling { () throws(KeyhaulError) in
        let prepared = try BackupExporter.prepare(session, password: secret, rounds: Self.rounds, listsExported: false)
        _ = try prepared.write(to: .file(path, .tar))
      }
    }
    let target = try arrivingPhone()
    let plan = try target.withSession(.writing) { (session) throws(PhoneError) in
      let deviceKey = try telling { () throws(KeyhaulError) in try session.deviceKey() }
      let opened = try telling { () throws(KeyhaulError) in try BackupArchive.open(.path(path)) }
      let archive = try telling { () throws(KeyhaulError) in
        try opened.open(with: try opened.unlock(password: secret), deviceKey: deviceKey)
      }
      return try telling { () throws(KeyhaulError) in
        let plan = try Restorer.plan(archive, onto: session, policy: .replace)
        try Restorer.restore(plan, onto: session)
        return plan
      }
    }
    try check(plan)
    return target
  }

  private var secret: Secret? { backup == .encrypted ? Secret(utf8: Self.password) : nil }

  private func arrivingPhone() throws(PhoneError) -> Phone {
    switch destination {
    case .phone(let other): return other
    case .made(.newPhone): return try Phone(like: source)
    case .made(.samePhone):
      let passcode = source.passcode
      try source.erase()
      if let passcode { try source.setPasscode(passcode) }
      return source
    }
  }

  /// Holds what the restore did against what was said of it.
  private func check(_ plan: MigrationPlan) throws(PhoneError) {
    let done = plan.decisions.map { MovedItem($0, isInBackup: true, way: "").fate.kind }
    guard done == items.prefix(backedUpCount).map(\.fate.kind) else {
      throw PhoneError(
        .otherOutcome, .failed, "the restore did not do what the move predicted",
        "of \(backedUpCount) items in the backup, \(plan.summary.migrates) moved",
        advice: "report it: this is a bug in Keyhaul")
    }
  }
}
