package import KeyhaulKit

/// Counts the one-time passwords of each app in a backup: all of them, and those that a restore moves to a new phone.
package struct OneTimePasswordOverview: Sendable {
  /// An app, and the number of its one-time passwords.
  package struct App: Sendable, Hashable {
    /// The app's name, its identifier, or the access group. Untrusted.
    package let name: String
    /// The number of one-time passwords.
    package var count = 0
    /// The number of one-time passwords that a restore moves to a new phone.
    package var movingCount = 0
    /// The app's bundle identifier; `nil` if only its name or its access group is known.
    var identifier: String?
  }

  /// The apps with one-time passwords, those with the most first.
  package let apps: [App]
  /// The apps with codes that are not counted, because the codes are not in the backup or cannot be decrypted.
  package let missing: [AuthenticatorAccounts.Missing]
  /// The names of the apps, and the bundle identifiers that are known. Sets, because a backup may list any number of apps.
  private let appNames: Set<String>
  private let appIdentifiers: Set<String>

  /// The number of one-time passwords, without duplicates.
  package var count: Int { apps.reduce(0) { $0 + $1.count } }
  /// The number of one-time passwords that a restore moves to a new phone.
  package var movingCount: Int { apps.reduce(0) { $0 + $1.movingCount } }
  /// Whether there is nothing to report.
  package var isEmpty: Bool { apps.isEmpty && missing.isEmpty }

  /// Counts one-time passwords.
  ///
  /// - Parameters:
  ///   - items: The items with their indexes, without those that cannot be decrypted.
  ///   - moving: The indexes of the items that a restore moves to a new phone.
  ///   - accounts: The accounts in files, which a restore moves to any phone.
  ///   - names: The names of the apps.
  package init(
    _ items: some Sequence<(index: Int, item: KeychainItem)>, moving: Set<Int>, _ accounts: AuthenticatorAccounts,
    names: AppDirectory
  ) {
    var apps: [String: App] = [:]
    var digests: Set<[UInt8]> = []
    func add(_ item: KeychainItem, _ name: @autoclosure () -> String, isMoving: Bool) {
      guard let password = OneTimePassword(item) else { return }
      if let digest = password.digest, !digests.insert(digest).inserted { return }
      let name = name()
      apps[name, default: App(name: name)].count += 1
      if isMoving { apps[name]?.movingCount += 1 }
    }
    func appName(_ item: KeychainItem) -> String {
      let app = names.app(of: ItemDescriptor(item))
      return app.text.isEmpty ? app.displayName : app.text
    }
    for (index, item) in items { add(item, appName(item), isMoving: moving.contains(index)) }
    for account in accounts.accounts {
      add(account.item, account.app.name, isMoving: true)
      apps[account.app.name]?.identifier = account.app.identifier
    }
    self.apps = apps.values.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    missing = accounts.missing
    appNames = Set(apps.keys)
    appIdentifiers = Set(apps.values.compactMap(\.identifier))
  }
}

extension OneTimePasswordOverview {
  /// Counts the one-time passwords of a backup.
  ///
  /// - Parameter items: The backup's items. Those that cannot be decrypted are ignored.
  package init(
    _ items: [BackupItem], moving: Set<Int>, _ accounts: AuthenticatorAccounts, names: AppDirectory
  ) {
    self.init(
      items.lazy.compactMap { item in item.item.map { (index: item.index, item: $0) } }, moving: moving, accounts,
      names: names)
  }

  /// Returns whether all known codes of an installed app are counted. If so, the checklist has no separate entry for
  /// the app.
  func coversAllCodes(of app: InstalledApp) -> Bool {
    !lacksCodes(of: app)
      && (appIdentifiers.contains(app.identifier) || appNames.contains(app.name) || appNames.contains(app.identifier))
  }

  /// Returns whether an app has codes that are not counted. If so, a complete checklist has a separate entry for them.
  func lacksCodes(of app: InstalledApp) -> Bool { missing.contains { $0.app.identifier == app.identifier } }

  /// Returns a checklist entry with the number of one-time passwords: "Save 5 one-time passwords of Tofu (3) and
  /// org.example.codes (2); 4 of them also move."
  ///
  /// - Parameters:
  ///   - isRedacted: Whether to leave out the names of apps.
  ///   - isRestorable: Whether the backup can be restored as it is. Otherwise, nothing in it moves.
  /// - Returns: `nil` if there are no one-time passwords.
  package func checklistEntry(isRedacted: Bool, isRestorable: Bool) -> String? {
    guard count > 0 else { return nil }
    // The entry names up to three apps. If there are more, it names two and counts the rest. 40 columns keep it short.
    let listedApps = apps.prefix(apps.count > 3 ? 2 : 3).map { app in
      let name = UntrustedText.shortened(app.name, columns: 40)
      return apps.count == 1 ? name : "\(name) (\(HumanReadable.grouped(app.count)))"
    }
    let moreCount = apps.count - listedApps.count
    let names = HumanReadable.list(
      moreCount > 0 ? listedApps + ["\(HumanReadable.grouped(moreCount)) more apps"] : listedApps)
    let movingClause =
      switch movingCount {
      case count: count == 1 ? "it also moves" : "all also move"
      case 0: count == 1 ? "it does not move" : "none of them moves"
      default: "\(HumanReadable.grouped(movingCount)) of them also \(movingCount == 1 ? "moves" : "move")"
      }
    let passwords = HumanReadable.count(count, "one-time password")
    return "Save \(passwords)\(isRedacted ? "" : " of \(names)")\(isRestorable ? "; \(movingClause)" : "")."
  }

  /// Returns the overview in JSON.
  ///
  /// - Parameter isRedacted: Whether to leave out the names of apps.
  package func json(isRedacted: Bool) -> JSONValue {
    let namedApps = isRedacted ? [] : apps
    return [
      "count": .count(count), "moving": .count(movingCount),
      "apps": .array(
        namedApps.map { ["name": .string($0.name), "count": .count($0.count), "moving": .count($0.movingCount)] }),
      "missing": .array(
        (isRedacted ? [] : missing).map { missing in
          ["app": .string(missing.app.rawValue), "reason": .string(missing.obstacle.identifier)]
        }),
    ]
  }
}
