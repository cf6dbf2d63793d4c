public import KeyhaulKit

/// The outlook for a keychain on a new device, and on the source device after it was erased. It has the texts of the reports.
public struct OutlookSummary: Sendable {
  /// The outlook, without names if the report is redacted.
  let restoreOutlook: RestoreOutlook
  /// The backup or the device. The name of a backup is not the name of its device, which is `sourcePhoneName`.
  let source: PlanDocument.Source
  /// The time of the report, in RFC 3339 and UTC.
  let reportTime: String
  let apps: AppDirectory
  /// The common name of the kind of device: "iPhone".
  let model: String
  /// The name of the device whose key was tried; `nil` if no key was tried.
  let deviceKeyOwner: String?
  let isRedacted: Bool
  /// The unusual protection of the backup, such as unencrypted files with password-protected items. `nil` if "with a
  /// password" or "without a password" describes it.
  package var nonstandardProtection: String?
  /// The findings about the backup.
  package var findings: [PlanDocument.Finding] = []
  /// The condition of the backup, which decides whether it can be restored as it is.
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
  ///   - reportTime: The time of the report, in RFC 3339 and UTC.
  ///   - apps: The names of the apps; empty if neither the backup nor the device has them.
  ///   - productType: The product type, such as `iPhone15,2`. Untrusted.
  ///   - deviceKeyOwner: The name of the device whose key was tried on a backup, or another name of the key;
  ///     `nil` if no key was tried.
  ///   - sourceArgument: The argument for the source in commands; `nil` if the source was a stream.
  ///   - isRedacted: Whether names are left out.
  public init(
    _ restoreOutlook: RestoreOutlook, of source: PlanDocument.Source, made reportTime: String, apps: AppDirectory,
    productType: String?, deviceKeyOwner: String?, sourceArgument: String?, isRedacted: Bool = false
  ) {
    self.restoreOutlook = isRedacted ? restoreOutlook.redacted : restoreOutlook
    self.reportTime = reportTime
    self.apps = isRedacted ? AppDirectory([]) : apps
    self.deviceKeyOwner = deviceKeyOwner.map { isRedacted ? "the source device" : $0 }
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
  var sourcePhoneName: String? {
    if isRedacted { return nil }
    return switch source.kind {
    case .device, .dump: source.name
    case .archive: sourceDeviceItems?.device ?? source.deviceName
    }
  }

  /// The name of the device that will be erased or replaced, or a substitute, for sentences.
  var sourcePhone: String {
    sourcePhoneName ?? (isRedacted ? "the source device" : "the \(model) that made this backup")
  }

  /// The name of the new device in sentences.
  package var newPhone: String { "a new \(model)" }
}

extension OutlookSummary {
  /// Returns the checklist to follow before the source device is erased, for a restore to either device.
  ///
  /// - Parameter showsAll: Whether the list is complete (`WipeChecklist.showsAll`).
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
      phone: sourcePhone, target: "the new \(model)", isSameDevice: nil,
      backup: backupState(gainedByPassword: gainedByPassword),
      gainedByPassword: sourceIsBackup && !restoreOutlook.hasPassword ? max(0, gainedByPassword) : 0,
      sourceIsBackup: sourceIsBackup,
      losses: backupLosses + deviceLosses, apps: apps, showsAll: showsAll, codeEntries: codeEntries(showsAll: showsAll),
      appsWithCodeEntry: appsWithCodeEntry(showsAll: showsAll)
    ).checklist
  }

  private func backupState(gainedByPassword: Int) -> WipeChecklist.BackupState {
    let newBackup =
      isSourceDeviceAvailable
      ? SuggestedCommands.backup(of: placeholders.oldDevice, to: placeholders.newBackup) : nil
    if sourceIsBackup, !backupCondition.isUsable {
      return .unusable(
        backupCondition, hasPassword: restoreOutlook.hasPassword, argument: placeholders.source, command: newBackup)
    }
    if !sourceIsBackup || (!restoreOutlook.hasPassword && gainedByPassword > 0) { return .missing(command: newBackup) }
    if sourceDeviceItems?.addedSince.isEmpty == false, let newBackup { return .outdated(command: newBackup) }
    return .good(argument: placeholders.source)
  }

  /// Returns the checklist entries about one-time passwords: the passwords to save, and the apps whose codes to export.
  private func codeEntries(showsAll: Bool) -> [Checklist.Entry] {
    guard let codes else { return [] }
    var entries: [Checklist.Entry] = []
    if let sentence = codes.checklistEntry(isRedacted: isRedacted, isRestorable: backupCondition.isUsable) {
      entries.append(
        .init(text: sentence, commands: isStream ? [] : [SuggestedCommands.qrCodes(of: placeholders.source)]))
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

  /// Returns the installed apps that already have an entry about their codes. The entry about their kind omits these apps.
  private func appsWithCodeEntry(showsAll: Bool) -> Set<InstalledApp> {
    guard let codes else { return [] }
    return Set(
      apps.installed.filter { app in
        codes.coversAllCodes(of: app) || (showsAll && codes.lacksCodes(of: app))
      })
  }

  /// Whether the source is a virtual device, or a backup whose virtual device is available. Keyhaul can then back it up.
  var isSourceDeviceAvailable: Bool { !sourceIsBackup || sourceDeviceItems != nil }
}
