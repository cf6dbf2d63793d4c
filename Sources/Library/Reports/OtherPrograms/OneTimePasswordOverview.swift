package import KeyhaulKit

/// The one-time passwords that can be saved from a backup: how many, in which apps, and how many of them a restore brings
/// to a new phone.
package struct OneTimePasswordOverview: Sendable {
  /// An app, and the number of its one-time passwords.
  package struct App: Sendable, Hashable {
    /// The app's name, its identifier, or the access group. From the backup, so it may contain anything.
    package let name: String
    package var count = 0
    /// The number of them that a restore moves to a new phone.
    package var movingCount = 0
  }

  /// The apps with one-time passwords, those with the most first.
  package let apps: [App]
  /// The apps whose codes are missing.
  package let missing: [AuthenticatorAccounts.Missing]

  /// The number of one-time passwords, each counted once.
  package var count: Int { apps.reduce(0) { $0 + $1.count } }
  /// The number of one-time passwords that a restore moves to a new phone.
  package var movingCount: Int { apps.reduce(0) { $0 + $1.movingCount } }
  /// Whether there is nothing to report.
  package var isEmpty: Bool { apps.isEmpty && missing.isEmpty }

  /// Counts one-time passwords.
  ///
  /// - Parameters:
  ///   - items: The backup's items, as far as they can be decrypted.
  ///   - moving: The indexes of the items that a restore brings to a new phone.
  ///   - accounts: The accounts in files, which a restore brings to any phone.
  ///   - names: The names of the apps.
  package init(
    _ items: [BackupItem], moving: Set<Int>, _ accounts: AuthenticatorAccounts, names: AppDirectory
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
    for item in items {
      guard let opened = item.item else { continue }
      let app = names.app(of: ItemDescriptor(opened))
      add(opened, app.text.isEmpty ? app.words : app.text, isMoving: moving.contains(item.index))
    }
    for account in accounts.accounts { add(account.item, account.app.name, isMoving: true) }
    self.apps = apps.values.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    missing = accounts.missing
  }
}

extension OneTimePasswordOverview {
  /// Returns how many one-time passwords there are, as something to do: "Save 5 one-time passwords of Tofu (3) and
  /// org.example.codes (2); 4 of them also move."
  ///
  /// - Parameter isRedacted: Whether the names of apps are left out.
  /// - Returns: `nil` if there is none.
  package func sentence(isRedacted: Bool) -> String? {
    guard count > 0 else { return nil }
    let shown = apps.prefix(apps.count > 3 ? 2 : 3).map { app in
      let name = UntrustedText.shortened(app.name, columns: 40)
      return apps.count == 1 ? name : "\(name) (\(HumanReadable.grouped(app.count)))"
    }
    let rest = apps.count - shown.count
    let names = HumanReadable.list(rest > 0 ? shown + ["\(HumanReadable.grouped(rest)) more apps"] : shown)
    let moving =
      switch movingCount {
      case count: count == 1 ? "it also moves" : "all also move"
      case 0: count == 1 ? "it does not move" : "none of them moves"
      default: "\(HumanReadable.grouped(movingCount)) of them also \(movingCount == 1 ? "moves" : "move")"
      }
    let passwords = HumanReadable.count(count, "one-time password")
    return "Save \(passwords)\(isRedacted ? "" : " of \(names)"); \(moving)."
  }

  /// The overview for programs.
  ///
  /// - Parameter isRedacted: Whether the names of apps are left out.
  package func value(isRedacted: Bool) -> JSONValue {
    let listed = isRedacted ? [] : apps
    return [
      "count": .count(count), "moving": .count(movingCount),
      "apps": .array(
        listed.map { ["name": .string($0.name), "count": .count($0.count), "moving": .count($0.movingCount)] }),
      "missing": .array(
        (isRedacted ? [] : missing).map { missing in
          ["app": .string(missing.app.rawValue), "reason": .string(missing.obstacle.identifier)]
        }),
    ]
  }
}
