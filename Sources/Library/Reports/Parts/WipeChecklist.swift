import KeyhaulKit

/// The checklist before a phone is wiped: the backup, the apps that require signing in again or a transfer while the
/// phone still works, and the other ways to the new phone.
struct WipeChecklist {
  /// An item that even the best possible backup does not move to the target.
  struct Loss {
    let index: Int
    let identity: ItemDescriptor
    let reason: Reason
  }

  /// The states of the backup of the phone.
  enum BackupState {
    /// A usable backup exists. `argument` is the backup as an argument of commands.
    case good(argument: String)
    /// A backup with a password has to be made. The command is `nil` if the phone is a real one, because Keyhaul cannot
    /// back it up.
    case missing(command: String?)
    /// A usable backup exists, and a new one would contain more items.
    case outdated(command: String)
    /// A backup exists that cannot be restored as it is. `argument` is the backup as an argument of commands.
    case unusable(BackupCondition, hasPassword: Bool, argument: String, command: String?)
  }

  /// The name of the phone that will be wiped, or a substitute.
  let phone: String
  /// The name of the target: another phone, or the same one after the erase.
  let target: String
  /// Whether the target is the same phone; `nil` if the checklist covers both cases.
  let isSameDevice: Bool?
  let backup: BackupState
  /// The number of items that move only if the backup has a password.
  let gainedByPassword: Int
  /// Whether the losses are from a backup, which may not contain all items of its phone.
  let sourceIsBackup: Bool
  let losses: [Loss]
  let apps: AppDirectory
  /// Whether each app has its own entry; otherwise apps with the same advice share one.
  var showsAll = true
  /// The entries about one-time passwords.
  var codes: [Checklist.Entry] = []
  /// The installed apps whose codes have an entry in `codes`.
  var appsWithCodeEntry: Set<InstalledApp> = []

  /// The maximum number of listed apps, and of names in an entry, unless all are requested.
  private static let defaultNameLimit = 3
  /// The maximum width of an app's name in a list, in columns.
  private static let nameWidth = 30

  var checklist: Checklist {
    let name = HTMLWriter.shortened(phone)
    return Checklist(
      title: "Before you erase", name: phone,
      note: "Print this list and tick off each step. No backup can restore what is lost with an erased phone.",
      groups: [
        .init(title: "The backup", entries: backupEntries + (isSameDevice == nil ? restoreEntries : [])),
        .init(
          title: "Apps, while \(name) still works", note: sourceIsBackup ? BackupBlindSpots.line : nil,
          entries: appEntries),
        .init(
          title: isSameDevice == true ? "After the restore" : "On \(HTMLWriter.shortened(target))",
          entries: accountEntries),
        .init(title: "Last of all", entries: finalEntries),
      ])
  }

  /// Returns the losses of items that are in no backup, numbered after the backup's items.
  static func losses(of sourceDeviceItems: SourceDeviceItems?, after count: Int) -> [Loss] {
    (sourceDeviceItems?.absent ?? []).enumerated().compactMap { offset, item in
      item.reason.map { Loss(index: count + offset, identity: item.identity, reason: $0) }
    }
  }

  // MARK: The backup

  private var backupEntries: [Checklist.Entry] {
    let damaged = losses.count(where: \.reason.isLostInThisCopy)
    let name = HTMLWriter.shortened(phone)
    var entries: [Checklist.Entry] =
      switch backup {
      case .missing(let command?):
        [.init(text: "Make a backup with a password, and keep the password.\(gainSentence)", commands: [command])]
      case .missing(nil): [.init(text: "Make a new backup with a password.\(gainSentence)", details: passwordSteps)]
      case .outdated(let command):
        [.init(text: "Make a new backup: \(name) has items that are not in this one.", commands: [command])]
      case .unusable(.decryptedCopy, _, _, _):
        [.init(text: "Plan with the backup that this decrypted copy was made from: the copy cannot be restored.")]
      case .unusable(_, let hasPassword, let argument, let command):
        [
          .init(
            text: "Make a new backup with a password while \(name) still works.\(gainSentence)",
            details: command == nil && !hasPassword ? passwordSteps : [], commands: command.map { [$0] } ?? []),
          .init(text: "See what is wrong with this backup.", commands: [SuggestedCommands.verify(argument)]),
        ]
      case .good(let argument):
        [.init(text: "Check that the backup is intact.", commands: [SuggestedCommands.verify(argument)])]
      }
    if damaged > 0, sourceIsBackup, !isUnusable {
      entries.append(
        .init(
          text:
            "Find another copy of the backup, or make a new one: \(HumanReadable.count(damaged, "item")) cannot be "
            + "read in this one."))
    }
    return entries
  }

  private var isUnusable: Bool { if case .unusable = backup { true } else { false } }

  /// The steps that set a backup password, by computer.
  private var passwordSteps: [String] {
    showsAll
      ? (PublishedStep.passwordSteps + [.earlierBackups, .forgottenPassword, .resetKeeps, .resetCosts]).map(\.text)
      : PublishedStep.shortPasswordSteps
  }

  /// A sentence about the effect of a password, such as " 14 of these items would then move."; empty if there is none.
  private var gainSentence: String {
    switch gainedByPassword {
    case 0: ""
    case 1: " 1 of these items would then move."
    default: " \(HumanReadable.grouped(gainedByPassword)) of these items would then move."
    }
  }

  // MARK: Apps

  /// The entries about apps: those that lose items, then kinds of apps that often store secrets on the phone, then the
  /// number of the others.
  private var appEntries: [Checklist.Entry] {
    let appLosses = appLosses
    let appsWithLosses = Set(appLosses.map(\.name).filter { !$0.isEmpty })
    return codes + lossEntries(appLosses) + installedAppEntries(without: appsWithLosses)
  }

  private func lossEntries(_ appLosses: [AppLoss]) -> [Checklist.Entry] {
    let installed = Dictionary(apps.installed.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    func entry(_ appLoss: AppLoss) -> Checklist.Entry { self.entry(for: appLoss, of: installed[appLoss.name]) }
    let namedApps = appLosses.filter { !$0.name.isEmpty }
    let listCount = showsAll ? namedApps.count : Self.defaultListCount(of: namedApps.count)
    var entries = namedApps.prefix(listCount).map(entry)
    let omittedCount = namedApps.count - listCount
    if omittedCount > 0 {
      entries.append(.init(text: "\(HumanReadable.grouped(omittedCount)) more apps lose items (-v lists all)."))
    }
    // If only the password is missing, the verdict already counts the encrypted items.
    let omitsEncryptedItems = !showsAll && gainedByPassword > 0
    let itemsWithoutApp = appLosses.filter { $0.name.isEmpty && !(omitsEncryptedItems && $0.isEncrypted) }
    return entries + itemsWithoutApp.map(entry)
  }

  /// Returns the entries about the installed apps that do not lose items.
  private func installedAppEntries(without appsWithLosses: Set<String>) -> [Checklist.Entry] {
    var entries: [Checklist.Entry] = []
    let others = apps.installed.filter { !appsWithLosses.contains($0.name) && !appsWithCodeEntry.contains($0) }
    for kind in AppKind.allCases {
      let names = others.filter { $0.kind == kind }.map(\.name)
      if let entry = self.entry(forApps: names, action: kind.action) { entries.append(entry) }
    }
    let unclassified = others.filter { $0.kind == nil }
    // The plan of the new backup will list these apps.
    let isShortened = isUnusable && !showsAll
    if !unclassified.isEmpty, !isShortened {
      let noun = apps.installed.count == unclassified.count && codes.isEmpty ? "app" : "other app"
      let names = unclassified.map { Self.shortName($0.name) }.joined(separator: ", ")
      entries.append(
        .init(
          text: "\(HumanReadable.count(unclassified.count, noun)): Check that you can sign in"
            + (showsAll ? ": \(names)." : " (-v lists all).")))
    }
    if sourceIsBackup, apps.installed.isEmpty { entries.append(Self.unlistedApps) }
    return entries
  }

  /// Returns the number of apps to list, unless all are requested. A single app above the limit is listed too, because the
  /// note about it would be as long.
  private static func defaultListCount(of count: Int) -> Int {
    count == defaultNameLimit + 1 ? count : min(count, defaultNameLimit)
  }

  /// Returns an entry for apps of a kind; `nil` if there are none.
  private func entry(forApps names: [String], action: String) -> Checklist.Entry? {
    guard !names.isEmpty else { return nil }
    let listCount = showsAll ? Checklist.maximumEntryCount : Self.defaultListCount(of: names.count)
    let listedNames = names.prefix(listCount).map(Self.shortName)
    let omittedCount = names.count - listedNames.count
    let remark = omittedCount > 0 ? ["\(HumanReadable.grouped(omittedCount)) more"] : []
    return Checklist.Entry(name: HumanReadable.list(listedNames + remark), text: action)
  }

  /// Returns the name of an app without the subtitle that many names in the App Store have, as in "Signal - Private
  /// Messenger".
  private static func shortName(_ name: String) -> String {
    let start = String(name.unicodeScalars.prefix(200))
    let end = [" - ", " – ", " — ", ": ", " | "].compactMap { start.firstRange(of: $0)?.lowerBound }.min()
    let title = end.map { String(start[..<$0]) } ?? name
    return UntrustedText.shortened(title.isEmpty ? name : title, columns: nameWidth)
  }

  /// The entry for a backup that lists no apps.
  private static let unlistedApps = Checklist.Entry(
    text:
      "Open the apps that matter to you: banking, one-time passwords, chats. Can you move each of them to another "
      + "phone?")

  /// The lost items of an app.
  private struct AppLoss {
    /// The name of the app; empty for items that do not name one.
    let name: String
    let losses: [Loss]
    var isEncrypted: Bool { losses.allSatisfy { $0.identity.isEncrypted && $0.reason == .deviceBound } }
  }

  /// The losses that require an action, by app. Apps with the most losses come first, items without an app last.
  private var appLosses: [AppLoss] {
    var lossesByName: [String: [Loss]] = [:]
    for loss in losses where Self.isNeverBackedUp(loss.reason) || loss.reason == .deviceBound {
      let app = apps.app(of: loss.identity)
      let knownName = app.isAppleGroup ? AppName.appleGroupDescription : app.displayName
      lossesByName[app.isKnown ? knownName : "", default: []].append(loss)
    }
    let rankedLosses = lossesByName.map { name, losses in
      (rank: (name.isEmpty ? 1 : 0, -losses.count, losses[0].index), appLoss: AppLoss(name: name, losses: losses))
    }
    return rankedLosses.sorted { $0.rank < $1.rank }.map(\.appLoss)
  }

  /// Returns the entry of an app that loses items.
  ///
  /// - Parameters:
  ///   - appLoss: The lost items.
  ///   - app: The installed app; `nil` if the backup does not list it.
  private func entry(for appLoss: AppLoss, of app: InstalledApp?) -> Checklist.Entry {
    let reasons = Set(appLoss.losses.map(\.reason))
    let namedItems = appLoss.losses.map { ItemLabel($0.identity, index: $0.index) }.filter { !$0.isEncrypted }
    // The app's codes have an entry of their own.
    let kind = app.map(appsWithCodeEntry.contains) == true ? nil : app?.kind
    var sentences: [String] = []
    if appLoss.name.isEmpty {
      sentences.append(unnamedItems(appLoss))
    } else if !showsAll {
      sentences.append(Self.stayingItems(appLoss))
    }
    sentences.append(Self.actions(for: reasons))
    if reasons.contains(.deviceBound), isSameDevice != true {
      if !appLoss.name.isEmpty {
        sentences.append(kind?.action ?? Self.signIn)
      } else if appLoss.isEncrypted, !showsAll {
        // The sentence continues the one about the items, which ends in a colon.
        sentences.append("sign in where an app asks.")
      } else {
        sentences.append("Sign in again where an app asks for it.")
      }
    }
    return Checklist.Entry(
      name: appLoss.name, text: sentences.filter { !$0.isEmpty }.joined(separator: " "),
      items: showsAll ? namedItems : [], unnamedCount: showsAll ? appLoss.losses.count - namedItems.count : 0)
  }

  /// Returns the start of an entry for items whose app is unknown: "4 encrypted items stay (3 passwords, 1 key):"
  private func unnamedItems(_ appLoss: AppLoss) -> String {
    let count = appLoss.losses.count
    guard appLoss.isEncrypted else {
      return "\(HumanReadable.count(count, "item")) \(count == 1 ? "does" : "do") not name an app."
    }
    let kinds = Self.kinds(appLoss.losses)
    guard showsAll else {
      let stay = count == 1 ? "item stays" : "items stay"
      return "\(HumanReadable.grouped(count)) encrypted \(stay) (\(kinds.joined(separator: ", "))):"
    }
    return "\(HumanReadable.list(kinds)) \(count == 1 ? "stays" : "stay"): "
      + (count == 1 ? "its name and app are encrypted." : "their names and apps are encrypted.")
  }

  /// Returns the number of items of each kind: "2 passwords", "1 key".
  private static func kinds(_ losses: [Loss]) -> [String] {
    let counts: [(count: Int, noun: String)] = [
      (losses.count { $0.identity.kind == .genericPassword || $0.identity.kind == .internetPassword }, "password"),
      (losses.count { $0.identity.kind == .key }, "key"),
      (losses.count { $0.identity.kind == .certificate }, "certificate"),
    ]
    return counts.filter { $0.count > 0 }.map { HumanReadable.count($0.count, $0.noun) }
  }

  /// Returns the number of an app's items that stay: "2 items stay."
  private static func stayingItems(_ appLoss: AppLoss) -> String {
    "\(HumanReadable.count(appLoss.losses.count, "item")) \(appLoss.losses.count == 1 ? "stays" : "stay")."
  }

  private static let signIn = "Sign in or set it up again."

  /// Returns whether items with this reason are in no backup and can be used only on their own phone.
  private static func isNeverBackedUp(_ reason: Reason) -> Bool {
    switch reason {
    case .passcodeOnly, .needsAuthentication, .hardwareKey, .appClip: true
    case .deviceBound, .backupNotEncrypted, .systemBound, .sharedGroup, .deleted, .noClassKey, .tagMismatch, .malformed,
      .unsupportedVersion:
      false
    }
  }

  /// Returns the actions that items in no backup require; empty if there are none.
  private static func actions(for reasons: Set<Reason>) -> String {
    var sentences: [String] = []
    if !reasons.isDisjoint(with: [.passcodeOnly, .needsAuthentication]) {
      sentences.append("Export or move the protected data in the app.")
    }
    if reasons.contains(.hardwareKey) {
      sentences.append(
        "Make sure that you can register a new key; the old one works only on this device or its smart card.")
    }
    if reasons.contains(.appClip) {
      sentences.append("Install the full app, and check that it has the App Clip's data.")
    }
    return sentences.joined(separator: " ")
  }

  // MARK: The new phone

  private var accountEntries: [Checklist.Entry] {
    let sharedCount = losses.count { $0.reason == .sharedGroup }
    var entries: [Checklist.Entry] = []
    if isSameDevice == false {
      entries += otherTransferEntries
      if showsAll || !isUnusable { entries.append(.init(text: Self.addingCards + Self.cardsReason)) }
    }
    if sharedCount > 0 {
      entries.append(.init(text: "Sign in with the account that shares \(HumanReadable.count(sharedCount, "item"))."))
    }
    return entries
  }

  /// The entry about other ways to the target; empty if the list is short because the backup cannot be used.
  private var otherTransferEntries: [Checklist.Entry] {
    guard showsAll || !isUnusable else { return [] }
    return [
      .init(
        text: "iCloud Keychain and Quick Start also move items: \(SuggestedCommands.explaining("new-phone"))",
        details: showsAll ? [PublishedStep.iCloudKeychain, .quickStart].map(\.text) : [])
    ]
  }

  /// The entries about the move to the new phone. They precede the steps in apps, because some of them are done on the
  /// restored phone.
  private var restoreEntries: [Checklist.Entry] { [restoring] + otherTransferEntries }

  private static let addingCards = "Add your cards to Wallet again"
  private static let cardsReason = ": they are in no backup."

  /// The entry to restore a backup. It also names the cards in Wallet, so that the checklist does not get longer.
  private var restoring: Checklist.Entry {
    let target = HTMLWriter.shortened(target)
    let sentence =
      switch backup {
      case .unusable(.decryptedCopy, _, _, _): "Restore the original backup to \(target)."
      case .missing, .outdated, .unusable:
        "Run \(SuggestedCommands.planning) on the new backup, then restore it to \(target)."
      case .good where sourceIsBackup && losses.contains(where: \.reason.isLostInThisCopy):
        "Restore the other copy or the new backup to \(target)."
      case .good: "Restore this backup to \(target)."
      }
    if showsAll { return .init(text: "\(sentence) \(Self.addingCards)\(Self.cardsReason)") }
    return .init(text: isUnusable ? sentence : "\(sentence) \(Self.addingCards).")
  }

  private var finalEntries: [Checklist.Entry] {
    let name = HTMLWriter.shortened(phone)
    let copy = "Keep a copy of the backup, and its password."
    let eraseSentence = "Erase \(name) only when every app that you need works on \(HTMLWriter.shortened(target))."
    return switch isSameDevice {
    case true?: [.init(text: copy)]
    case false?: [.init(text: eraseSentence)]
    case nil: [.init(text: "\(eraseSentence) \(copy)")]
    }
  }
}

extension AppKind {
  /// The recommended action for apps of this kind before their phone is erased.
  var action: String {
    switch self {
    case .authenticator: "Export the codes."
    case .messenger: "Transfer the chats."
    case .wallet: "Have the recovery phrase ready."
    case .finance: "Register the new device."
    }
  }
}
