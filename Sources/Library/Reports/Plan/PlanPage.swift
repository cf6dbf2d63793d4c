public import KeyhaulKit

/// A page about a plan: the items that move, the items that are lost, and the next steps.
public struct PlanPage: HTMLPage {
  let plan: MigrationPlan
  let document: PlanDocument
  let apps: AppDirectory
  let sourceDeviceItems: SourceDeviceItems?
  let sourceArgument: String?
  let targetArgument: String?
  /// Name and version of the program that makes the page.
  let program: String
  let counts: MigrationPlan.Summary
  /// The condition of the backup, which decides whether it can be restored as it is.
  var condition = BackupCondition.usable
  /// A sentence about the items of a backup that cannot be restored as it is; `nil` if the backup can be restored.
  var itemsSentence: String?
  /// The step that saves the one-time passwords; `nil` if there are none.
  var codesStep: StepList.Step?

  /// Creates the page of a plan.
  ///
  /// - Parameters:
  ///   - plan: The plan, without names if the page is redacted (`MigrationPlan.redacted`).
  ///   - document: The document of the same plan. It supplies the source, the target, the findings and the date, and states
  ///     whether the page is redacted.
  ///   - apps: The names of the apps; empty if neither the backup nor the device has them.
  ///   - sourceDeviceItems: The items of the source device that are not in the backup; `nil` if the device was not available.
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if it is unknown.
  ///   - program: Name and version of the program that makes the page.
  public init(
    _ plan: MigrationPlan, as document: PlanDocument, apps: AppDirectory, sourceDeviceItems: SourceDeviceItems? = nil,
    sourceArgument: String?, targetArgument: String?, program: String
  ) {
    self.plan = plan
    self.document = document
    self.apps = apps
    self.sourceDeviceItems = sourceDeviceItems
    self.sourceArgument = sourceArgument
    self.targetArgument = targetArgument
    self.program = program
    counts = plan.summary
  }

  var source: PlanDocument.Source { document.source }
  var target: PlanDocument.Target { document.target }
  var isRedacted: Bool { document.redacted == true }
  var isSameDevice: Bool { target.sameDevice == true }

  /// The name of the source device; `nil` if it is unknown or left out.
  var sourceName: String? { source.kind == .device && !isRedacted ? source.name : source.deviceName }
  /// The name of the source device, or a substitute.
  var sourceDevice: String { sourceName ?? "the source device" }

  /// Returns the name of an item's app; empty if the app is unknown or the page is redacted.
  func app(of identity: ItemDescriptor) -> String {
    let app = apps.app(of: identity)
    return isRedacted || app.kind == .encrypted ? "" : app.displayName
  }

  /// Returns the page as one document. Equal plans give equal pages.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "Moving \(HTMLWriter.shortened(source.name)) to \(HTMLWriter.shortened(target.name))"
    var frame = ReportPage(title: title, program: program, style: PageStyle.sankey)
    if isRedacted { frame.privacyNote = "Names are left out." }
    return try frame.html(
      body: { page in
        writeHeading(to: &page)
        tiles.write(to: &page)
        if counts.total + counts.removed > 0 { SankeyTabs(self).write(to: &page) }
        LossSection(self).write(to: &page)
        FindingSection(document.findings).write(to: &page)
        NotInBackupSection(sourceDeviceItems: sourceDeviceItems).write(to: &page)
        SignInSection(self).write(to: &page)
        PageTable(self).write(to: &page)
        StepList(self).write(to: &page)
      },
      footer: { page in
        page.element("p") { page in
          let planTime = LongDateFormat.dateAndTime(document.planTime)
          page.text("Plan made \(planTime). \(source.kind == .archive ? "Backup" : "Device") ")
          page.element("code", source.digest)
          page.text(", \(HTMLWriter.shortened(target.name)) at revision ")
          page.element("code", HTMLWriter.shortened(target.revision))
          page.text(".")
        }
      })
  }

  private func writeHeading(to page: inout HTMLWriter) {
    page.element("header") { page in
      page.element("h1") { page in
        page.text(isSameDevice ? "Restoring to " : "Moving to ")
        page.name(target.name)
      }
      page.element("p", ["class": "verdict"], verdict)
      page.element("p", ["class": "facts"]) { page in
        page.text(source.kind == .archive ? "From " : "From the device ")
        page.element("strong") { $0.name(source.name) }
        page.text(source.kind == .archive ? originClause : ", as a backup made now would contain it")
        page.text(protectionClause)
      }
      page.element("p", ["class": "facts"]) { page in
        page.text("To ")
        page.element("strong") { $0.name(target.name) }
        page.text(
          ": \(stateText), \(target.isPasscodeSet ? "passcode set" : "no passcode"), "
            + "\(HumanReadable.count(target.itemCount, "item")). \(policyText) Nothing has been changed yet.")
      }
      if source.kind == .archive {
        page.element("p", ["class": "facts"], BackupBlindSpots.line)
      }
    }
  }

  /// The origin of the backup, such as ", made 20 November 2026 at 18:04 UTC by old-phone"; empty if it is unknown.
  private var originClause: String {
    let date = source.backupDate.map { " " + LongDateFormat.dateAndTime($0) } ?? ""
    let device = source.deviceName.map { " by " + HTMLWriter.shortened($0) } ?? ""
    return date.isEmpty && device.isEmpty ? "" : ", made" + date + device
  }

  private var protectionClause: String {
    if isDecryptedCopy { return ", a decrypted copy with password-protected items." }
    if let protection = document.findings.nonstandardProtection { return ", with \(protection)." }
    return source.encrypted ? ", with a password." : ", without a password."
  }

  private var stateText: String { target.state == "before-first-unlock" ? "before first unlock" : target.state }

  private var policyText: String {
    switch plan.policy {
    case .replace: "As in iOS, existing items are replaced."
    case .merge: "Existing items are kept. If two items have the same primary key, the newer one is kept."
    }
  }

  /// The label of the tile about items that stay behind. If nothing in a backup stays behind, the label says "of these",
  /// because the device may have items that are not in the backup.
  private var stayingLabel: String {
    switch counts.staysBehind {
    case 0 where source.kind == .archive: "of these stay behind"
    case 1: "stays behind"
    default: "stay behind"
    }
  }

  private var arrivingLabel: String {
    guard condition.isUsable else { return isSameDevice ? "could be restored" : "could move" }
    guard isSameDevice else { return "will move" }
    return counts.migrates == 1 ? "is restored" : "are restored"
  }

  private var tiles: Tiles {
    Tiles(
      tiles: [
        .init(style: .moves, symbol: "+", count: counts.migrates, text: arrivingLabel),
        .init(style: .stays, symbol: "<", count: counts.staysBehind, text: stayingLabel),
        .init(style: .lost, symbol: "!", count: counts.unreadable, text: "cannot be read"),
        .init(
          style: .gone, symbol: "-", count: counts.removed, text: "removed from " + HTMLWriter.shortened(target.name)),
      ] + NotInBackupSection.tile(sourceDeviceItems))
  }
}

extension SankeyTabs {
  /// Creates the diagrams of a plan. The first is by app, or by kind if no app is known; the second is by protection class.
  init(_ page: PlanPage) {
    let hasAppNames = page.plan.decisions.contains { !page.app(of: $0.identity).isEmpty }
    tabs = [hasAppNames ? .app : .kind, .protection].map { (axis: $0, view: SankeyView(page, by: $0)) }
  }
}

extension SankeyView {
  /// Creates a diagram of a plan.
  init(_ page: PlanPage, by axis: SankeyDiagram.Axis) {
    self.init(
      SankeyDiagram(page.plan.decisions, by: axis, apps: page.apps, removedCount: page.counts.removed),
      source: page.sourceName, target: page.target.name, isSameDevice: page.isSameDevice)
  }
}

extension PlanPage {
  /// The plan in one or two sentences, at the top of the page.
  var verdict: String {
    let deviceNames = [HTMLWriter.shortened(sourceDevice), "the source device"]
    if let conditionVerdict = condition.verdict(deviceNames: deviceNames) {
      return [conditionVerdict, itemsSentence].compactMap(\.self).joined(separator: " ")
    }
    return PlanVerdict(counts, sourceIsBackup: source.kind == .archive, isSameDevice: isSameDevice, target: target.name)
      .text
      + (sourceDeviceItems?.absence.map { " \($0)." } ?? "")
  }
}

extension PageTable {
  /// Creates the table of all items of a plan, each with its outcome.
  init(_ page: PlanPage) {
    let count = page.counts.total
    self.init(
      title: count == 1 ? "The item" : "All \(HumanReadable.grouped(count)) items", resultTitle: "What happens",
      rows: page.plan.decisions.map { Row($0, app: page.app(of: $0.identity)) },
      filters: [(.moves, "move"), (.stays, "stay"), (.lost, "unreadable")])
  }
}

extension PageTable.Row {
  fileprivate init(_ decision: MigrationPlan.Decision, app: String) {
    let arrivalDetail = decision.warning?.explanation.headline ?? decision.detail
    let (style, symbol, result, detail): (PageTable.Style, String, String, String?) =
      switch decision.outcome {
      case .migrates(.new): (.moves, "+", "new", arrivalDetail)
      case .migrates(.replaces): (.moves, "~", "replaces the existing item", arrivalDetail)
      case .migrates(.keepsExisting): (.moves, "^", "the existing item stays", arrivalDetail)
      case .migrates(.identical): (.moves, "=", "already there", arrivalDetail)
      case .staysBehind(let reason): (.stays, "<", "stays behind", reason.rawValue)
      case .unreadable(let reason):
        (
          .lost, "!", "cannot be read",
          [reason.rawValue, decision.detail].compactMap(\.self).joined(separator: ": ")
        )
      }
    self.init(
      style: style, symbol: symbol, item: ItemLabel(decision), kind: decision.identity.kind, app: app,
      protection: decision.protection, result: result, detail: detail)
  }
}
