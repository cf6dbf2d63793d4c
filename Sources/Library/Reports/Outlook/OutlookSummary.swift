public import KeyhaulKit

/// The outlook for a keychain on a new device and on the same one after it was erased, with the texts of its reports.
public struct OutlookSummary: Sendable {
  /// The outlook, without names if the report is redacted.
  let restoreOutlook: RestoreOutlook
  let source: PlanDocument.Source
  /// The time of the report, in RFC 3339 and UTC.
  let made: String
  let apps: AppDirectory
  /// The common name of the kind of device: "iPhone".
  let model: String
  /// The name of the device whose hardware key was tried; `nil` if none was tried.
  let hardware: String?
  let isRedacted: Bool
  /// The protection of the backup, if neither "encrypted" nor "no password" is correct.
  package var protection: String?
  /// The anomalies of the backup.
  package var findings: [PlanDocument.Finding] = []
  /// Whether the backup can be restored as it is.
  package var backupCondition = BackupCondition.usable
  /// The one-time passwords of the backup or the device; `nil` if they were not counted.
  package var codes: OneTimePasswordOverview?
  /// The names of the source and the backups in commands.
  let placeholders: CommandPlaceholders
  /// Whether the source was a stream, which no later command can read.
  private let isStream: Bool

  /// Creates the summary of an outlook.
  ///
  /// - Parameters:
  ///   - restoreOutlook: The outlook with all names. If `isRedacted` is `true`, this initializer removes them.
  ///   - source: The backup or the device.
  ///   - made: The time of the report, in RFC 3339 and UTC.
  ///   - apps: The names of the apps, if the backup or the device has them.
  ///   - productType: The product type, such as `iPhone15,2`. Untrusted.
  ///   - hardware: The name of the device whose hardware key was tried on a backup, or another name of the key; `nil` if
  ///     none was tried.
  ///   - sourceArgument: The argument for the source in commands; `nil` if the source was a stream.
  ///   - isRedacted: Whether names are left out.
  public init(
    _ restoreOutlook: RestoreOutlook, of source: PlanDocument.Source, made: String, apps: AppDirectory,
    productType: String?, hardware: String?, sourceArgument: String?, isRedacted: Bool = false
  ) {
    self.restoreOutlook = isRedacted ? restoreOutlook.redacted : restoreOutlook
    self.made = made
    self.apps = isRedacted ? AppDirectory([]) : apps
    self.hardware = hardware.map { isRedacted ? "the source device" : $0 }
    self.isRedacted = isRedacted
    model =
      productType.map { $0.hasPrefix("iPad") ? "iPad" : $0.hasPrefix("iPod") ? "iPod touch" : "iPhone" } ?? "iPhone"
    placeholders = CommandPlaceholders(source, isRedacted: isRedacted, source: sourceArgument, target: nil)
    isStream = sourceArgument == nil
    var reportedSource = source
    if isRedacted {
      reportedSource.name = source.kind.rawValue
      reportedSource.device = nil
      reportedSource.deviceName = nil
    }
    self.source = reportedSource
  }

  var sourceIsBackup: Bool { restoreOutlook.sourceIsBackup }
  var sourceDeviceItems: SourceDeviceItems? { restoreOutlook.sourceDeviceItems }

  /// The name of the device that will be erased or replaced; `nil` if it is unknown or left out.
  var phoneName: String? {
    if isRedacted { return nil }
    return switch source.kind {
    case .device, .dump: source.name
    case .archive: sourceDeviceItems?.device ?? source.deviceName
    }
  }

  /// The name in sentences of the device that will be erased or replaced, or a substitute.
  var phone: String { phoneName ?? (isRedacted ? "the source device" : "the \(model) that made this backup") }

  /// The name of the new device in sentences.
  package var newPhone: String { "a new \(model)" }
}

extension OutlookSummary {
  /// Items with the same outlook and reason. They share a heading in the text and a card on the page.
  struct Group {
    let title: String
    /// The reason why the items are lost; `nil` if they arrive or were added after the backup.
    let reason: Reason?
    let style: Tiles.Style
    let symbol: String
    let items: [RestoreOutlook.Item]
    /// The cause, for a group without a reason.
    var fact: String?
    /// The recommended action, for a group without a reason.
    var advice: String?
  }

  /// The groups of items that are lost on both devices, lost only on a new device, or unreadable. Each item that does not
  /// arrive on both devices is in one group.
  var losses: [Group] {
    let items = restoreOutlook.items.filter { $0.outlook != .both }
    func group(_ itemOutlook: RestoreOutlook.ItemOutlook, _ reason: Reason, isOnlyOnDevice: Bool = false) -> Group? {
      let members = items.filter {
        $0.outlook == itemOutlook && $0.reason == reason && ($0.index == nil) == isOnlyOnDevice
      }
      guard !members.isEmpty else { return nil }
      let style: Tiles.Style = reason.isDamage ? .lost : .stays
      return Group(
        title: title(itemOutlook, reason, isOnlyOnDevice: isOnlyOnDevice), reason: reason, style: style,
        symbol: reason.isDamage ? "!" : itemOutlook == .neither ? "x" : "<", items: members)
    }
    let rules = Reason.allCases.filter { !$0.isDamage }
    let damage = Reason.allCases.filter(\.isDamage)
    return rules.compactMap { group(.neither, $0, isOnlyOnDevice: true) } + [addedLater(items)].compactMap(\.self)
      + rules.compactMap { group(.neither, $0) } + rules.compactMap { group(.sameDevice, $0) }
      + damage.flatMap { [group(.neither, $0), group(.sameDevice, $0), group(.neither, $0, isOnlyOnDevice: true)] }
      .compactMap(\.self)
  }

  /// The items that arrive on both devices without a warning.
  var arrivingGroup: Group {
    Group(
      title: "Kept either way", reason: nil, style: .moves, symbol: "+",
      items: restoreOutlook.items.filter { $0.outlook == .both && $0.warning == nil })
  }

  /// The groups of items that arrive but may be unusable: first on a new device, then on the same device.
  var warningGroups: [Group] {
    func group(_ title: String, _ itemOutlook: RestoreOutlook.ItemOutlook, _ warning: ArrivalWarning) -> Group? {
      let members = restoreOutlook.items.filter { item in
        item.outlook == itemOutlook && (itemOutlook == .both ? item.warning : item.warningOnReturn) == warning
      }
      guard !members.isEmpty else { return nil }
      let explanation = warning.explanation
      return Group(
        title: title, reason: nil, style: .stays, symbol: "+", items: members,
        fact: "\(warning.rawValue): \(explanation.headline)", advice: explanation.action)
    }
    return [
      group("Kept either way, but unusable on \(newPhone)", .both, .migratesButUnusable),
      group("Restored to \(phone), but may be unusable there", .sameDevice, .useNotKnown),
    ].compactMap(\.self)
  }

  private func addedLater(_ items: [RestoreOutlook.Item]) -> Group? {
    let members = items.filter { $0.index == nil && $0.reason == nil }
    guard !members.isEmpty else { return nil }
    return Group(
      title: "Lost: not in this backup", reason: nil, style: .stays, symbol: "x", items: members,
      fact: "they were added to \(phone) after the backup was made, or the backup lacks their references",
      advice: "Make a new backup.")
  }

  private func title(_ itemOutlook: RestoreOutlook.ItemOutlook, _ reason: Reason, isOnlyOnDevice: Bool) -> String {
    if reason.isDamage { return isOnlyOnDevice ? "Cannot be read on \(phone)" : "Cannot be read" }
    switch itemOutlook {
    case .neither where !BackupBlindSpots.reasons.contains(reason): return "Lost either way"
    case .neither:
      return reason == .systemBound
        ? "Not restored, and not needed: never in a backup"
        : "Lost either way: never in a backup"
    case .sameDevice: return "Lost on \(newPhone); kept if restored to \(phone)"
    case .both: return "Kept either way"
    }
  }

  /// Returns the checklist to follow before the device is erased, for both outcomes.
  ///
  /// - Parameter showsAll: Whether every app has its own entry.
  func checklist(showsAll: Bool) -> Checklist {
    let withPassword = RestoreScenario(hasPassword: true, onSameDevice: false)
    let current = RestoreScenario(hasPassword: restoreOutlook.hasPassword, onSameDevice: false)
    let comparison = restoreOutlook.comparison
    let gainedByPassword = comparison[withPassword].arrives - comparison[current].arrives
    let newBackup = isVirtual ? SuggestedCommands.backup(of: placeholders.oldDevice, to: placeholders.newBackup) : nil
    let backup: WipeChecklist.BackupState
    if sourceIsBackup, !backupCondition.isUsable {
      backup = .unusable(
        backupCondition, hasPassword: restoreOutlook.hasPassword, argument: placeholders.source, command: newBackup)
    } else if !sourceIsBackup || (!restoreOutlook.hasPassword && gainedByPassword > 0) {
      backup = .missing(command: newBackup)
    } else if sourceDeviceItems?.addedSince.isEmpty == false, let newBackup {
      backup = .outdated(command: newBackup)
    } else {
      backup = .good(argument: placeholders.source)
    }
    let backupLosses = comparison.items.compactMap { item in
      item[withPassword].reason.map { WipeChecklist.Loss(index: item.index, identity: item.identity, reason: $0) }
    }
    let deviceLosses = WipeChecklist.losses(of: sourceDeviceItems, after: comparison.items.count)
    return WipeChecklist(
      phone: phone, target: "the new \(model)", isSameDevice: nil, backup: backup,
      gainedByPassword: sourceIsBackup && !restoreOutlook.hasPassword ? max(0, gainedByPassword) : 0,
      sourceIsBackup: sourceIsBackup,
      losses: backupLosses + deviceLosses, apps: apps, showsAll: showsAll, codes: codeEntries(showsAll: showsAll),
      appsWithCodeEntry: appsWithCodeEntry(showsAll: showsAll)
    ).checklist
  }

  /// Returns the checklist entries about one-time passwords: those to save, and the apps to export others from.
  private func codeEntries(showsAll: Bool) -> [Checklist.Entry] {
    guard let codes else { return [] }
    var entries: [Checklist.Entry] = []
    if let sentence = codes.checklistEntry(isRedacted: isRedacted, isRestorable: backupCondition.isUsable) {
      entries.append(
        .init(text: sentence, commands: isStream ? [] : [SuggestedCommands.codes(of: placeholders.source)]))
    }
    guard !isRedacted else { return entries }
    guard !showsAll else {
      return entries + codes.missing.map { .init(text: AuthenticatorText.sentence($0.app, $0.obstacle)) }
    }
    // The entry about installed authenticators already covers these apps.
    let listed = apps.installed.filter { $0.kind == .authenticator }.map(\.identifier)
    let unlisted = codes.missing.filter { !listed.contains($0.app.identifier) }
    if !unlisted.isEmpty {
      entries.append(.init(name: HumanReadable.list(unlisted.map(\.app.name)), text: "Export the codes in the app."))
    }
    return entries
  }

  /// Returns the installed apps whose codes have an entry, so that the entry of their kind would repeat it.
  private func appsWithCodeEntry(showsAll: Bool) -> Set<InstalledApp> {
    guard let codes else { return [] }
    return Set(
      apps.installed.filter { app in
        codes.coversAllCodes(of: app) || (showsAll && codes.lacksCodes(of: app))
      })
  }

  /// Whether the device is an available virtual device, so that Keyhaul can back it up.
  var isVirtual: Bool { !sourceIsBackup || sourceDeviceItems != nil }
}

extension OutlookSummary {
  /// A sentence about the items that reach a new device: the first line of the report in every format.
  package var verdict: String {
    if sourceIsBackup,
      let verdict = backupCondition.verdict(
        shortest: [phoneName, isRedacted ? phone : "the old \(model)"].compactMap(\.self))
    {
      return verdict
    }
    let counts = counts(onSameDevice: false)
    let (total, moving, unreadable) = (counts.total, counts.restoredCount, counts.unreadable)
    guard total > 0 else {
      return sourceIsBackup ? "The backup has no keychain items." : "There are no keychain items."
    }
    let totalText = HumanReadable.grouped(total)
    let staying = counts.lost - unreadable
    func shortenedVerdict(_ start: String, _ names: (String) -> String) -> String {
      let candidates = phoneName.map { [$0, "the old \(model)"] } ?? []
      return candidates.map { start + names($0) }.first(where: BackupCondition.isShort) ?? start + names("")
    }
    func stayingClause(_ name: String) -> String {
      let verb = staying == 1 ? "stays" : "stay"
      return name.isEmpty
        ? "\(HumanReadable.grouped(staying)) \(verb) behind" : "\(HumanReadable.grouped(staying)) \(verb) with \(name)"
    }
    switch (moving, staying, unreadable) {
    case (total, _, _):
      return total == 1
        ? "The only keychain item reaches \(newPhone)." : "All \(totalText) keychain items reach \(newPhone)."
    case (0, _, 0) where isBlockedByMissingPassword:
      let subject =
        total == 1 ? "The only keychain item does not reach" : "None of the \(totalText) keychain items reaches"
      return "\(subject) \(newPhone)\(sourceIsBackup ? ": the backup has no password." : " without a backup password.")"
    default:
      let start =
        "\(HumanReadable.grouped(moving)) of \(HumanReadable.count(total, "keychain item")) "
        + "\(moving == 1 ? "reaches" : "reach") \(newPhone); "
      guard unreadable > 0 else { return shortenedVerdict(start) { stayingClause($0) + "." } }
      let unreadableClause = "\(HumanReadable.grouped(unreadable)) unreadable."
      return staying == 0 ? start + unreadableClause : start + stayingClause("") + ", " + unreadableClause
    }
  }

  /// An explanation of the verdict for readers who do not know keychain items.
  package var verdictExplanation: String {
    guard backupCondition.isUsable || !sourceIsBackup else {
      return "A keychain item is a password, key or certificate of an app or of iOS."
    }
    return
      "A keychain item is a password, key or certificate of an app or of iOS. Photos, messages and app data are not "
      + "counted here." + (isVirtual ? "" : " Many items of a real \(model) are iOS's own.")
      + unusableKeysSentence(counts(onSameDevice: false))
  }

  /// The origin, protection and condition of the backup, as text; for a device, what was counted.
  package var state: String {
    guard let condition else {
      return
        "These are the items of \(HTMLWriter.shortened(phone)), a virtual device, as it is now; no backup was read."
    }
    let date = source.made.flatMap(Timestamp.date).map { " " + LocalTimeFormat.local($0) } ?? ""
    let device = isRedacted ? "the source device" : source.deviceName
    let by = device.map { " by \(HTMLWriter.shortened($0))" } ?? ""
    let password = protection ?? (source.encrypted ? "with a password" : "without a password")
    let sentences = ["The backup was made\(date)\(by), \(password).", condition, itemsSentence, deviceItemsSentence]
    return sentences.compactMap(\.self).joined(separator: " ")
  }

  /// A sentence about the items of a backup that cannot be restored as it is; `nil` if it can be.
  var itemsSentence: String? {
    let new = counts(onSameDevice: false)
    return backupCondition.itemsSentence(
      count: restoreOutlook.comparison.items.count, moving: new.restoredCount, to: newPhone,
      needsPassword: isBlockedByMissingPassword)
  }

  /// The introduction to the counts of a backup that cannot be restored as it is; `nil` if it can be.
  var hypothesis: String? { backupCondition.isUsable ? nil : "If this backup could be restored as it is:" }

  /// A sentence about counted items that are on the virtual device only; `nil` if there are none.
  private var deviceItemsSentence: String? {
    guard backupCondition.isUsable, let sourceDeviceItems, !sourceDeviceItems.absent.isEmpty else { return nil }
    let count = sourceDeviceItems.absent.count
    return "\(HumanReadable.count(count, "more item")) \(count == 1 ? "is" : "are") only on "
      + "\(HTMLWriter.shortened(sourceDeviceItems.device)), a virtual device that Keyhaul also read."
  }

  /// A sentence about the condition of the backup's keychain; `nil` if the source is a device.
  var condition: String? {
    guard sourceIsBackup else { return nil }
    if let obstacle = findings.obstacle { return "\(obstacle.prefix(1).uppercased() + obstacle.dropFirst())." }
    let damaged = counts(onSameDevice: false).unreadable - (sourceDeviceItems?.unreadable.count ?? 0)
    if damaged > 0 { return "\(HumanReadable.count(damaged, "item")) cannot be read in this copy." }
    switch backupCondition {
    case .usable: break
    case .unconfirmed: return "Nothing in it says whether the device finished it."
    case .changed, .damaged, .decryptedCopy: return "Keyhaul found damage in it."
    }
    let unchecked = restoreOutlook.items.count { $0.reason == .backupNotEncrypted || $0.reason == .deviceBound }
    guard unchecked > 0, !restoreOutlook.triedDeviceKey else { return "Keyhaul found no damage in its keychain." }
    return unchecked == restoreOutlook.comparison.items.count
      ? "Keyhaul could not check its items: only that device can decrypt them."
      : "Keyhaul found no damage in the items that it can decrypt."
  }
}

extension OutlookSummary {
  /// Sentences about the items that are restored and lost on each device.
  var details: String {
    if sourceIsBackup, !backupCondition.isUsable {
      return [verdict, itemsSentence, sourceDeviceItems == nil ? Self.uncountedSentence : nil].compactMap(\.self)
        .joined(separator: " ")
    }
    let new = counts(onSameDevice: false)
    guard new.total > 0 else { return emptyText }
    var sentences = [arrivalSentence(new) + unusableKeysSentence(new), returnSentence(counts(onSameDevice: true))]
    if !sourceIsBackup { sentences.append(otherPasswordSentence) }
    if sourceIsBackup, sourceDeviceItems == nil { sentences.append(Self.uncountedSentence) }
    if let sourceDeviceItems, sourceDeviceItems.removedCount > 0 {
      sentences.append(
        "Items that \(sourceDeviceItems.device) had when the backup was made, but no longer has, are not counted.")
    }
    return sentences.joined(separator: " ")
  }

  private static let uncountedSentence = "Items that never enter a backup are lost in both cases and are not counted."

  func counts(onSameDevice: Bool) -> RestoreOutlook.Counts { restoreOutlook.counts(onSameDevice: onSameDevice) }

  private var emptyText: String {
    guard sourceIsBackup else { return "\(phone) has no items, so nothing is lost." }
    return "The backup contains no items. Nothing moves to \(newPhone), and nothing is restored to \(phone)."
      + (sourceDeviceItems == nil ? " " + Self.uncountedSentence : "")
  }

  /// Returns the subject of sentences: "the 18 items in the backup".
  private func subject(_ counts: RestoreOutlook.Counts) -> String {
    let items = counts.total == 1 ? "the only item" : "the \(HumanReadable.grouped(counts.total)) items"
    guard sourceIsBackup else { return "\(items) on \(phone)" }
    guard let sourceDeviceItems, !sourceDeviceItems.absent.isEmpty else { return "\(items) in the backup" }
    return sourceDeviceItems.removedCount == 0
      ? "\(items) on \(sourceDeviceItems.device)" : "\(items) in the backup and on \(sourceDeviceItems.device)"
  }

  /// Returns the sentence about a new device: "Of the 18 items in the backup, 14 move to a new iPhone and 4 do not."
  private func arrivalSentence(_ counts: RestoreOutlook.Counts) -> String {
    let (moving, lost) = (counts.restoredCount, counts.lost)
    switch (moving, lost) {
    case (0, _): return "None of \(subject(counts)) moves to \(newPhone)\(causeSuffix(counts))."
    case (_, 0):
      let items = subject(counts)
      return moving == 1
        ? "\(items.prefix(1).uppercased() + items.dropFirst()) moves to \(newPhone)."
        : "All of \(items) move to \(newPhone)."
    case _:
      return
        "Of \(subject(counts)), \(HumanReadable.grouped(moving)) \(moving == 1 ? "moves" : "move") to \(newPhone) and "
        + "\(HumanReadable.grouped(lost)) \(lost == 1 ? "does" : "do") not."
    }
  }

  /// Returns the sentence about Secure Enclave keys that move but are unusable on a new device; empty if there are none.
  private func unusableKeysSentence(_ counts: RestoreOutlook.Counts) -> String {
    guard let count = counts.byWarning[.migratesButUnusable] else { return "" }
    let verbs = count == 1 ? ("has", "a key", "is") : ("have", "keys", "are")
    return
      " \(HumanReadable.grouped(count)) of the items that move \(verbs.0) the format of \(verbs.1) that only the Secure "
      + "Enclave of \(phone) can use, and \(verbs.2) unusable on \(newPhone)."
  }

  /// Returns the sentence about the erased device: "After an erase, 18 of them are restored to old-phone and 4 are not."
  private func returnSentence(_ counts: RestoreOutlook.Counts) -> String {
    let (arrives, lost) = (HumanReadable.grouped(counts.arrives), HumanReadable.grouped(counts.lost))
    let verb = counts.arrives == 1 ? "is" : "are"
    if counts.expected == 0 {
      switch counts.arrives {
      case 0: return "After an erase, none of them is restored to \(phone)."
      case counts.total:
        return "After an erase, \(counts.total == 1 ? "it is" : "all of them are") restored to \(phone)."
      case _:
        let lossClause = counts.lost == 0 ? "" : " and \(lost) \(counts.lost == 1 ? "is" : "are") not"
        return "After an erase, \(arrives) of them \(verb) restored to \(phone)\(lossClause)."
      }
    }
    let expected = HumanReadable.grouped(counts.expected)
    let classes = counts.expected == 1 ? "its class" : "their classes"
    let start =
      counts.arrives == 0
      ? "After an erase, \(expected) of them should be restored to \(phone)"
      : "After an erase, \(arrives) of them \(verb) restored to \(phone), and \(expected) more should be"
    let lossSentence = counts.lost == 0 ? "" : " \(lost) \(counts.lost == 1 ? "is" : "are") not restored."
    return "\(start), judging by \(classes); this could not be checked.\(lossSentence)"
  }

  /// Whether items stay behind because the backup has no password.
  private var isBlockedByMissingPassword: Bool {
    restoreOutlook.items.contains { $0.reason == .backupNotEncrypted } && !restoreOutlook.hasPassword
      && protection == nil
  }

  private func causeSuffix(_ counts: RestoreOutlook.Counts) -> String {
    guard isBlockedByMissingPassword else { return "" }
    return sourceIsBackup ? "; the backup has no password" : " in a backup without a password"
  }

  /// A sentence about a backup with the opposite choice of password, for a device.
  private var otherPasswordSentence: String {
    func restoredCount(onSameDevice: Bool) -> String {
      let counts = restoreOutlook.counts(
        RestoreScenario(hasPassword: !restoreOutlook.hasPassword, onSameDevice: onSameDevice))
      return counts.restoredCount == 0 ? "none" : HumanReadable.grouped(counts.restoredCount)
    }
    let (planned, other) = restoreOutlook.hasPassword ? ("with a", "Without") : ("without a", "With")
    return "This is for a backup \(planned) password. \(other) one, \(restoredCount(onSameDevice: false)) move to "
      + "\(newPhone), and \(restoredCount(onSameDevice: true)) are restored to \(phone)."
  }

  /// Sentences that state how Keyhaul determined the items that return to the same device.
  var basis: String {
    guard sourceIsBackup else {
      return "Keyhaul made a backup in memory, and decrypted it with \(phone)'s hardware key and with another device's."
    }
    let boundCount = restoreOutlook.items.count { $0.reason == .deviceBound || $0.reason == .backupNotEncrypted }
    let lostCount = restoreOutlook.items.count { $0.reason?.isLostInThisCopy == true }
    guard boundCount > 0 else {
      return lostCount == 0
        ? "Keyhaul decrypted every item. None of them needs a device's hardware key."
        : "Keyhaul tried to decrypt every item. \(HumanReadable.grouped(lostCount)) cannot be read in this copy. None of the "
          + "others needs a device's hardware key."
    }
    guard restoreOutlook.triedDeviceKey, let hardware else {
      return
        "For \(newPhone), Keyhaul tried to decrypt every item. For \(phone), it judged "
        + "\(HumanReadable.count(boundCount, "item")) by class, because the hardware key that decrypts "
        + "\(boundCount == 1 ? "it" : "them") is not available."
    }
    return "Keyhaul tried to decrypt every item. For \(phone), it used the hardware key of \(hardware)."
  }
}
