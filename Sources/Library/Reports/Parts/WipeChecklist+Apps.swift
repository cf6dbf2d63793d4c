import KeyhaulKit

/// The part of the checklist about apps.
extension WipeChecklist {
  /// The maximum number of listed apps, and of names in an entry, unless all are requested.
  private static let defaultNameLimit = 3
  /// The maximum width of an app's name in a list, in columns.
  private static let nameWidth = 30

  /// The entries in order: one-time passwords, apps that lose items, kinds of apps that often store secrets on the phone,
  /// and all other apps.
  var appEntries: [Checklist.Entry] {
    let appLosses = appLosses
    let appsWithLosses = Set(appLosses.map(\.name).filter { !$0.isEmpty })
    return codeEntries + lossEntries(appLosses) + installedAppEntries(without: appsWithLosses)
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
    let otherApps = apps.installed.filter { !appsWithLosses.contains($0.name) && !appsWithCodeEntry.contains($0) }
    for kind in AppKind.allCases {
      let names = otherApps.filter { $0.kind == kind }.map(\.name)
      if let entry = self.entry(forApps: names, action: kind.action) { entries.append(entry) }
    }
    let unclassified = otherApps.filter { $0.kind == nil }
    if !unclassified.isEmpty, !omitsLaterSteps {
      let noun = apps.installed.count == unclassified.count && codeEntries.isEmpty ? "app" : "other app"
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
    let omission = omittedCount > 0 ? ["\(HumanReadable.grouped(omittedCount)) more"] : []
    return Checklist.Entry(name: HumanReadable.list(listedNames + omission), text: action)
  }

  /// Returns the name of an app without the subtitle that many names in the App Store have, as in "Signal - Private
  /// Messenger".
  private static func shortName(_ name: String) -> String {
    // In a very long name, only the start is searched.
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
      sentences.append(unnamedItemsSentence(appLoss))
    } else if !showsAll {
      sentences.append(Self.stayingItemsSentence(appLoss))
    }
    sentences.append(Self.actions(for: reasons))
    if reasons.contains(.deviceBound), isSameDevice != true {
      sentences.append(signInSentence(for: appLoss, kind: kind))
    }
    return Checklist.Entry(
      name: appLoss.name, text: sentences.filter { !$0.isEmpty }.joined(separator: " "),
      items: showsAll ? namedItems : [], unnamedCount: showsAll ? appLoss.losses.count - namedItems.count : 0)
  }

  /// Returns the action that replaces the lost items of an app.
  ///
  /// - Parameter kind: The kind of the app; `nil` if it is unknown, or if its codes have their own entry.
  private func signInSentence(for appLoss: AppLoss, kind: AppKind?) -> String {
    if !appLoss.name.isEmpty { return kind?.action ?? "Sign in or set it up again." }
    // The sentence about encrypted items ends in a colon, so this sentence continues it.
    return appLoss.isEncrypted && !showsAll ? "sign in where an app asks." : "Sign in again where an app asks for it."
  }

  /// Returns the start of an entry for items whose app is unknown: "4 encrypted items stay (3 passwords, 1 key):"
  private func unnamedItemsSentence(_ appLoss: AppLoss) -> String {
    let count = appLoss.losses.count
    guard appLoss.isEncrypted else {
      return "\(HumanReadable.count(count, "item")) \(count == 1 ? "does" : "do") not name an app."
    }
    let kindCountTexts = Self.kindCountTexts(of: appLoss.losses)
    guard showsAll else {
      let stay = count == 1 ? "item stays" : "items stay"
      return "\(HumanReadable.grouped(count)) encrypted \(stay) (\(kindCountTexts.joined(separator: ", "))):"
    }
    return "\(HumanReadable.list(kindCountTexts)) \(count == 1 ? "stays" : "stay"): "
      + (count == 1 ? "its name and app are encrypted." : "their names and apps are encrypted.")
  }

  /// Returns the number of items of each kind: "2 passwords", "1 key".
  private static func kindCountTexts(of losses: [Loss]) -> [String] {
    let counts: [(count: Int, noun: String)] = [
      (losses.count { $0.identity.kind == .genericPassword || $0.identity.kind == .internetPassword }, "password"),
      (losses.count { $0.identity.kind == .key }, "key"),
      (losses.count { $0.identity.kind == .certificate }, "certificate"),
    ]
    return counts.filter { $0.count > 0 }.map { HumanReadable.count($0.count, $0.noun) }
  }

  /// Returns the number of an app's items that stay: "2 items stay."
  private static func stayingItemsSentence(_ appLoss: AppLoss) -> String {
    "\(HumanReadable.count(appLoss.losses.count, "item")) \(appLoss.losses.count == 1 ? "stays" : "stay")."
  }

  /// The actions for items that are in no backup and can be used only on their own phone, by the reason why no backup
  /// contains them.
  private static let actionsForUnsavedItems: [(reasons: Set<Reason>, action: String)] = [
    ([.passcodeOnly, .needsAuthentication], "Export or move the protected data in the app."),
    (
      [.hardwareKey],
      "Make sure that you can register a new key; the old one works only on this device or its smart card."
    ),
    ([.appClip], "Install the full app, and check that it has the App Clip's data."),
  ]

  /// Returns whether items with this reason are in no backup and can be used only on their own phone.
  private static func isNeverBackedUp(_ reason: Reason) -> Bool {
    actionsForUnsavedItems.contains { $0.reasons.contains(reason) }
  }

  /// Returns the actions that items in no backup require; empty if there are none.
  private static func actions(for reasons: Set<Reason>) -> String {
    actionsForUnsavedItems.filter { !$0.reasons.isDisjoint(with: reasons) }.map(\.action).joined(separator: " ")
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
