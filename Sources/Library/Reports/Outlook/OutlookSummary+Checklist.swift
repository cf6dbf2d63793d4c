import KeyhaulKit

extension OutlookSummary {
  /// Returns the checklist to follow before the device is erased, for both outcomes.
  ///
  /// - Parameter showsAll: Whether every app has its own entry.
  func checklist(showsAll: Bool) -> Checklist {
    let withPassword = RestoreScenario(hasPassword: true, onSameDevice: false)
    let asPlanned = RestoreScenario(hasPassword: restoreOutlook.hasPassword, onSameDevice: false)
    let comparison = restoreOutlook.comparison
    let gainedByPassword = comparison[withPassword].arrives - comparison[asPlanned].arrives
    let backupLosses = comparison.items.compactMap { item in
      item[withPassword].reason.map { WipeChecklist.Loss(index: item.index, identity: item.identity, reason: $0) }
    }
    let deviceLosses = WipeChecklist.losses(of: sourceDeviceItems, after: comparison.items.count)
    return WipeChecklist(
      phone: phone, target: "the new \(model)", isSameDevice: nil,
      backup: backupState(gainedByPassword: gainedByPassword),
      gainedByPassword: sourceIsBackup && !restoreOutlook.hasPassword ? max(0, gainedByPassword) : 0,
      sourceIsBackup: sourceIsBackup,
      losses: backupLosses + deviceLosses, apps: apps, showsAll: showsAll, codes: codeEntries(showsAll: showsAll),
      appsWithCodeEntry: appsWithCodeEntry(showsAll: showsAll)
    ).checklist
  }

  private func backupState(gainedByPassword: Int) -> WipeChecklist.BackupState {
    let newBackup = isVirtual ? SuggestedCommands.backup(of: placeholders.oldDevice, to: placeholders.newBackup) : nil
    if sourceIsBackup, !backupCondition.isUsable {
      return .unusable(
        backupCondition, hasPassword: restoreOutlook.hasPassword, argument: placeholders.source, command: newBackup)
    }
    if !sourceIsBackup || (!restoreOutlook.hasPassword && gainedByPassword > 0) { return .missing(command: newBackup) }
    if sourceDeviceItems?.addedSince.isEmpty == false, let newBackup { return .outdated(command: newBackup) }
    return .good(argument: placeholders.source)
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
    let coveredIdentifiers = apps.installed.filter { $0.kind == .authenticator }.map(\.identifier)
    let otherApps = codes.missing.map(\.app).filter { !coveredIdentifiers.contains($0.identifier) }
    if !otherApps.isEmpty {
      entries.append(.init(name: HumanReadable.list(otherApps.map(\.name)), text: "Export the codes in the app."))
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
