public import KeyhaulKit

/// A page that compares four restores: with and without a password, to the same device and to another. It includes a
/// checklist to print, for the steps before the phone is wiped.
public struct ComparisonPage: HTMLPage {
  let comparison: MigrationComparison
  let document: PlanDocument
  let apps: AppDirectory
  let sourceDeviceItems: SourceDeviceItems?
  let placeholders: CommandPlaceholders
  let program: String
  /// The condition of the backup, which decides whether it can be restored as it is.
  var condition: BackupCondition

  /// Creates the page of a comparison of restores.
  ///
  /// - Parameters:
  ///   - comparison: The outcomes of the four restores.
  ///   - document: The plan document of the current restore, which is one of the four. It supplies the source, the
  ///     target, the findings and the date.
  ///   - apps: The names of the apps; empty if neither the backup nor the device has them.
  ///   - sourceDeviceItems: The items of the source device that are not in the backup; `nil` if the device was not available.
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if it is unknown.
  ///   - program: Name and version of the program that makes the page.
  public init(
    _ comparison: MigrationComparison, of document: PlanDocument, apps: AppDirectory,
    sourceDeviceItems: SourceDeviceItems? = nil,
    sourceArgument: String?, targetArgument: String?, program: String
  ) {
    self.comparison = comparison
    self.document = document
    self.apps = apps
    self.sourceDeviceItems = sourceDeviceItems
    self.program = program
    condition = BackupCondition(damage: [], findings: document.findings)
    placeholders = CommandPlaceholders(document, source: sourceArgument, target: targetArgument)
  }

  var current: RestoreScenario { comparison.current }
  var sourceIsBackup: Bool { document.source.kind == .archive }

  /// The restore of a backup with a password to the current target. No other restore to this target brings more items.
  var best: RestoreScenario { RestoreScenario(hasPassword: true, onSameDevice: current.onSameDevice) }

  /// The name of the source device, or a substitute if it is unknown.
  var phone: String {
    switch document.source.kind {
    case .device, .dump: document.source.name
    case .archive: document.source.deviceName ?? "the source device"
    }
  }

  var verdict: String {
    let sentence = comparison.advice.sentence(for: current)
    return sentence.prefix(1).uppercased() + sentence.dropFirst() + "."
      + (sourceDeviceItems?.absence.map { " \($0)." } ?? "")
  }

  /// Returns the page as one document. Equal comparisons give equal pages.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "Four ways to restore \(HTMLWriter.shortened(document.source.name))"
    return try ReportPage(title: title, program: program, style: PageStyle.comparison).html(
      body: { page in
        writeHeading(to: &page)
        FindingSection(document.findings).write(to: &page)
        RestoreTable(self).write(to: &page)
        TransferMethodTable(comparison).write(to: &page)
        NotInBackupSection(sourceDeviceItems: sourceDeviceItems).write(to: &page)
        checklist.write(to: &page)
        PageTable(self).write(to: &page)
      },
      footer: { page in
        page.element("p") { page in
          let planTime = LongDateFormat.dateAndTime(document.planTime)
          page.text("Compared \(planTime). \(sourceIsBackup ? "Backup" : "Device") ")
          page.element("code", document.source.digest)
          page.text(".")
        }
      })
  }

  private func writeHeading(to page: inout HTMLWriter) {
    page.element("header") { page in
      page.element("h1") { page in
        page.text("Four ways to restore ")
        page.name(document.source.name)
      }
      page.element("p", ["class": "verdict"], verdict)
      page.element("p", ["class": "facts"]) { page in
        page.text(sourceIsBackup ? "From " : "From the device ")
        page.element("strong") { $0.name(document.source.name) }
        page.text(
          ", \(HumanReadable.count(comparison.items.count, "item")), \(document.source.encrypted ? "with" : "without") a password"
            + (sourceIsBackup ? ". To " : ", as a backup made now would contain them. To "))
        page.element("strong") { $0.name(document.target.name) }
        page.text(current.onSameDevice ? ", the source device." : ", another device.")
        page.text(
          " The numbers count the items that are on the device afterwards, including those it already has. Nothing "
            + "has been changed yet.")
      }
    }
  }

  // MARK: Before the phone is wiped

  /// The checklist for the steps before the phone is wiped.
  ///
  /// It asks for a new backup if there is none yet, if this one cannot be restored, or if a password would move more
  /// items. Otherwise it asks the user to verify the existing backup.
  var checklist: Checklist {
    let backupLosses = comparison.items.compactMap { item in
      item[best].reason.map { WipeChecklist.Loss(index: item.index, identity: item.identity, reason: $0) }
    }
    let deviceLosses = WipeChecklist.losses(of: sourceDeviceItems, after: comparison.items.count)
    return WipeChecklist(
      phone: phone, target: document.target.name, isSameDevice: current.onSameDevice, backup: backupState,
      gainedByPassword: sourceIsBackup ? comparison.advice.gainedByPassword : 0, sourceIsBackup: sourceIsBackup,
      losses: backupLosses + deviceLosses, apps: apps
    ).checklist
  }

  private var backupState: WipeChecklist.BackupState {
    let isDeviceAvailable = !sourceIsBackup || sourceDeviceItems != nil
    let newBackup =
      isDeviceAvailable ? SuggestedCommands.backup(of: placeholders.oldDevice, to: placeholders.newBackup) : nil
    if sourceIsBackup, !condition.isUsable {
      return .unusable(
        condition, hasPassword: current.hasPassword, argument: placeholders.source, command: newBackup)
    }
    let lacksUsefulPassword = !current.hasPassword && comparison.advice.gainedByPassword > 0
    return !sourceIsBackup || lacksUsefulPassword
      ? .missing(command: newBackup) : .good(argument: placeholders.source)
  }
}

extension PageStyle {
  /// The style rules of the table of restores.
  static let comparison = """
    .four{margin-top:1.6rem}
    .four th:first-child{width:32%}
    .four tbody td b{font-size:1.5rem;font-variant-numeric:tabular-nums}
    .four .current{background:var(--moves-tint)}
    .four tbody td{padding-left:.75rem}.four thead th:not(:first-child){padding-left:.75rem}
    .four .current small{color:var(--ink)}

    """
}

extension RestoreTable {
  /// Creates the table of the four restores.
  init(_ page: ComparisonPage) {
    columnTitles = [
      { markup in
        markup.text("Back to ")
        markup.name(page.phone)
      },
      { $0.text("To another device") },
    ]
    rows = [true, false].map { hasPassword in
      (
        hasPassword ? "A backup with a password" : "A backup without a password",
        [true, false].map { onSameDevice in
          Cell(RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice), of: page)
        }
      )
    }
  }
}

extension RestoreTable.Cell {
  /// Creates the cell of one restore's counts.
  ///
  /// "0 stay behind" is shown only for a device. A backup does not contain all items, so the count would be wrong.
  fileprivate init(_ scenario: RestoreScenario, of page: ComparisonPage) {
    let counts = page.comparison[scenario]
    let isCurrent = scenario == page.current
    self.init(
      isCurrent: isCurrent, count: counts.arrives, unit: "restored",
      details: ArrivalWarning.countTexts(counts.byWarning)
        + [
          counts.staysBehind > 0 || !page.sourceIsBackup ? Self.staysBehind(counts.staysBehind) : nil,
          Self.unreadable(counts.unreadable), isCurrent ? "planned here" : nil,
        ].compactMap(\.self))
  }
}

extension PageTable {
  /// Creates the table of all items, each with the devices that it can be moved to.
  init(_ page: ComparisonPage) {
    let count = page.comparison.items.count
    self.init(
      title: count == 1 ? "The item" : "All \(HumanReadable.grouped(count)) items", resultTitle: "Moves to",
      rows: page.comparison.items.map { Row($0, page) },
      filters: [(.moves, "any device"), (.stays, "the source device or none"), (.lost, "unreadable")])
  }
}

extension PageTable.Row {
  fileprivate init(_ item: MigrationComparison.Item, _ page: ComparisonPage) {
    func arrives(hasPassword: Bool, onSameDevice: Bool) -> Bool {
      item[RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice)] == .arrives
    }
    let reason = item[page.best].reason
    let (style, symbol, result): (PageTable.Style, String, String) =
      if reason?.isDamage == true {
        (.lost, "!", "cannot be read")
      } else if arrives(hasPassword: false, onSameDevice: false) {
        (.moves, "+", "any device")
      } else if arrives(hasPassword: true, onSameDevice: false) {
        (.moves, "+", "any device, with a password")
      } else if arrives(hasPassword: true, onSameDevice: true)
        || arrives(hasPassword: false, onSameDevice: true)
      {
        (.stays, "<", "\(HTMLWriter.shortened(page.phone)) only")
      } else {
        (.stays, "<", "no device")
      }
    let app = page.apps.app(of: item.identity)
    let details = [
      reason?.explanation.headline, item.warningOnOtherDevice?.explanation.headline, Self.otherTransfers(item),
    ].compactMap(\.self)
    self.init(
      style: style, symbol: symbol, item: ItemLabel(item.identity, index: item.index), kind: item.identity.kind,
      app: app.kind == .encrypted ? "" : app.displayName, protection: item.protection, result: result,
      detail: details.joined(separator: "; "))
  }

  /// Returns the verdicts of the methods without a backup: "direct transfer: yes, iCloud Keychain: no".
  private static func otherTransfers(_ item: MigrationComparison.Item) -> String {
    let transfers = item.transfers
    return "direct transfer: \(transfers.directTransfer.verdict.displayName), "
      + "iCloud Keychain: \(transfers.iCloudKeychain.verdict.displayName)"
  }
}

extension MigrationComparison.Item {
  /// The warning that an item may be unusable on another device; `nil` if there is no warning, or if no backup moves
  /// the item there.
  fileprivate var warningOnOtherDevice: ArrivalWarning? {
    RestoreScenario.allCases.lazy.filter { !$0.onSameDevice }.compactMap { self.warning(in: $0) }.first
  }
}
