import KeyhaulKit

/// What to do before a phone is wiped, from what is known of its keychain: the backup, what has to be moved by hand while
/// the phone still opens it, and where to sign in again.
struct WipeChecklist {
  /// An item that the best backup there can be does not bring to where it should go.
  struct Loss {
    let index: Int
    let identity: ItemIdentity
    let reason: Reason
  }

  /// The backup that the phone's keychain goes into.
  enum BackupState {
    /// It is there, with a password or on its way back to its own phone; `word` is what a command calls it.
    case good(word: String)
    /// One has to be made.
    case missing(command: String)
  }

  /// The phone that will be wiped, as far as anybody knows.
  let phone: String
  /// Where its items go: another phone, or itself after it was wiped; "the new phone" where that is not decided.
  let target: String
  /// Whether they come back to the phone itself; `nil` if both are thought of.
  let isReturn: Bool?
  let backup: BackupState
  /// Whether the losses are those that a backup shows, which is not all that its phone has.
  let isOfBackup: Bool
  let losses: [Loss]
  let apps: AppDirectory

  var checklist: Checklist {
    Checklist(
      title: "Before you wipe", name: phone,
      note: "Print this list and tick off each step. No backup can restore what is lost with a wiped phone.",
      groups: [
        .init(title: "The backup", entries: backupEntries),
        .init(
          title: "While \(Markup.shortened(phone)) still works",
          note: isOfBackup ? UnseenItems.line : nil,
          entries: entries(where: Self.isGuarded, Self.moving) + (isOfBackup ? [Self.unseen] : [])),
        .init(
          title: isReturn == true
            ? "After the restore" : "On \(Markup.shortened(target)), before you wipe the old phone",
          entries: entries(where: { $0 == .deviceBound }) { _ in "Sign in or set it up again." } + accountEntries),
        .init(title: "Last of all", entries: last),
      ])
  }

  /// What the device has that no backup holds, numbered after the items of its backup.
  static func losses(of maker: MakerItems?, after count: Int) -> [Loss] {
    (maker?.absent ?? []).enumerated().compactMap { offset, item in
      item.reason.map { Loss(index: count + offset, identity: item.identity, reason: $0) }
    }
  }

  // MARK: Groups

  private var backupEntries: [Checklist.Entry] {
    let damaged = losses.count(where: \.reason.isLostInThisCopy)
    var entries: [Checklist.Entry] =
      switch backup {
      case .missing(let command):
        [.init(words: "Make a backup with a password, and keep the password.", commands: [command])]
      case .good(let word): [.init(words: "Check that the backup is intact.", commands: [Commands.verify(word)])]
      }
    if damaged > 0, isOfBackup {
      entries.append(
        .init(
          words:
            "Find another copy of the backup, or make a new one: \(HumanReadable.count(damaged, "item")) cannot be read "
            + "in this one."))
    }
    return entries
  }

  /// What is in no backup, and nothing but its own phone opens.
  private static func isGuarded(_ reason: Reason) -> Bool {
    switch reason {
    case .passcodeOnly, .needsAuthentication, .hardwareKey, .appClip: true
    case .deviceBound, .backupNotEncrypted, .systemBound, .sharedGroup, .deleted, .noClassKey, .tagMismatch, .malformed,
      .unsupportedVersion:
      false
    }
  }

  private static func moving(_ reasons: Set<Reason>) -> String {
    var words: [String] = []
    if !reasons.isDisjoint(with: [.passcodeOnly, .needsAuthentication]) {
      words.append("In the app, export or move the protected data.")
    }
    if reasons.contains(.hardwareKey) {
      words.append(
        "Make sure that you can register a new key. The old one works only on this phone, or with its "
          + "smart card.")
    }
    if reasons.contains(.appClip) { words.append("Install the full app, and check that it has the App Clip's data.") }
    return words.joined(separator: " ")
  }

  private static let unseen = Checklist.Entry(
    words:
      "Open the apps that matter to you: banking, one-time passwords, chats. Can you move each of them to another "
      + "phone?")

  private var accountEntries: [Checklist.Entry] {
    let shared = losses.count { $0.reason == .sharedGroup }
    let cloud = Checklist.Entry(
      words: "If you use iCloud Keychain, enable it on the new phone and wait until your passwords have arrived.")
    return [cloud]
      + (shared > 0
        ? [.init(words: "Sign in with the account that shares \(HumanReadable.count(shared, "item")).")] : [])
  }

  private var last: [Checklist.Entry] {
    let back = Checklist.Entry(
      words: "You have a copy of the backup that is not on \(Markup.shortened(phone)), and you know its password.")
    let away = Checklist.Entry(
      words: "Every app that you need works on \(Markup.shortened(target)). Only then wipe the old phone.")
    return switch isReturn {
    case true?: [back]
    case false?: [away]
    case nil: [back, away]
    }
  }

  // MARK: Apps

  /// One entry for each app that loses something for such a reason, those with the most first; what says no app has one
  /// together.
  private func entries(
    where isSelected: (Reason) -> Bool, _ words: (Set<Reason>) -> String
  ) -> [Checklist.Entry] {
    // What is Apple's stands together, and so does all that is nobody's.
    var shares: [String: [Loss]] = [:]
    for loss in losses where isSelected(loss.reason) {
      let app = apps.app(of: loss.identity)
      shares[!app.isKnown ? "" : app.isApples ? AppName.applesWords : app.words, default: []].append(loss)
    }
    let ranked = shares.map { name, losses in
      (rank: (name.isEmpty ? 1 : 0, -losses.count, losses[0].index), name: name, losses: losses)
    }
    return ranked.sorted { $0.rank < $1.rank }.map { _, name, losses in
      let named = losses.map { ItemWords($0.identity, index: $0.index) }.filter { !$0.isSealed }
      let count = HumanReadable.count(losses.count, "item")
      return Checklist.Entry(
        name: name,
        words: (!name.isEmpty ? "" : "\(count) \(losses.count == 1 ? "does" : "do") not name an app. ")
          + words(Set(losses.map(\.reason))),
        items: named, unnamedCount: losses.count - named.count)
    }
  }
}
