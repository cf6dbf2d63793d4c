public import KeyhaulKit

/// A page about the items that are lost if a backup is restored to a new device, or to the source device after an erase.
/// A printable checklist lists the steps to take before the erase.
public struct OutlookPage: HTMLPage {
  let summary: OutlookSummary
  let program: String

  /// Creates the page.
  ///
  /// - Parameters:
  ///   - summary: The outlook with its texts.
  ///   - program: Name and version of the program that makes the page.
  public init(_ summary: OutlookSummary, program: String) {
    self.summary = summary
    self.program = program
  }

  /// Returns the page as one document. Equal outlooks give equal pages.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "What moves to \(summary.newPhone): \(HTMLWriter.shortened(summary.source.name))"
    var frame = ReportPage(
      title: title, program: program, style: PageStyle.sankey + PageStyle.comparison + PageStyle.checklistFirst)
    if summary.isRedacted { frame.privacyNote = "Names are left out." }
    return try frame.html(
      body: { page in
        writeHeading(to: &page)
        tiles.write(to: &page)
        if !summary.restoreOutlook.planForNewDevice.decisions.isEmpty { SankeyTabs(summary).write(to: &page) }
        FindingSection(summary.findings).write(to: &page)
        summary.checklist(showsAll: true).write(to: &page)
        writeLosses(to: &page)
        writeComparison(to: &page)
        PageTable(self).write(to: &page)
      },
      footer: { page in
        page.element("p") { page in
          page.text(
            "As of \(LongDateFormat.dateAndTime(summary.reportTime)). \(summary.sourceIsBackup ? "Backup" : "Device") ")
          page.element("code", summary.source.digest)
          page.text(".")
        }
      })
  }

  private func writeHeading(to page: inout HTMLWriter) {
    page.element("header") { page in
      page.element("h1", "Moving to \(summary.newPhone)")
      page.element("p", ["class": "verdict"], summary.verdict)
      page.element("p", ["class": "facts"], summary.verdictExplanation)
      page.element("p", ["class": "facts"]) { page in
        page.text(summary.sourceIsBackup ? "From " : "From the device ")
        page.element("strong") { $0.name(summary.source.name) }
        page.text(summary.sourceIsBackup ? originClause : ", as a backup made now would contain it")
        let passwordClause = summary.source.encrypted ? "with a password" : "without a password"
        page.text(", \(summary.nonstandardProtection ?? passwordClause). ")
        if let sentence = summary.conditionSentence { page.escapedText("\(sentence) ") }
        if let sentence = summary.itemsSentence { page.text("\(sentence) ") }
        page.text("Nothing has been changed.")
      }
    }
  }

  /// The numbers of items that a new device gets, and does not get.
  private var tiles: Tiles {
    let counts = summary.counts(onSameDevice: false)
    let neverTile = counts.never.map { Tiles.Tile(style: .lost, symbol: "x", count: $0, text: "never in a backup") }
    let moves = counts.restoredCount == 1 ? "moves" : "move"
    return Tiles(
      tiles: [
        .init(
          style: .moves, symbol: "+", count: counts.restoredCount,
          text: "\(summary.backupCondition.isUsable ? moves : "could move") to \(summary.newPhone)"),
        .init(
          style: .stays, symbol: "<", count: counts.staysBehind,
          text: counts.staysBehind == 1 ? "stays behind" : "stay behind"),
        .init(style: .lost, symbol: "!", count: counts.unreadable, text: "cannot be read"),
      ] + (neverTile.map { [$0] } ?? []))
  }

  /// The origin of the backup, such as ", made 20 November 2026 at 18:04 UTC by old-phone"; empty if it is unknown.
  private var originClause: String {
    let date = summary.source.backupDate.map { " " + LongDateFormat.dateAndTime($0) } ?? ""
    let device = summary.source.deviceName.map { " by " + HTMLWriter.shortened($0) } ?? ""
    return date.isEmpty && device.isEmpty ? "" : ", made" + date + device
  }

  /// Writes the numbers of items that a new device and the erased source device get, and how Keyhaul determined them.
  private func writeComparison(to page: inout HTMLWriter) {
    page.newLine()
    page.element("section") { page in
      page.element("h2", "A new device, or the same one")
      if let hypothesis = summary.hypothesis { page.element("p", hypothesis) }
      RestoreTable(summary).write(to: &page)
      writeBasis(to: &page)
    }
  }

  private func writeBasis(to page: inout HTMLWriter) {
    page.element("p", ["class": "more"], "\(summary.details) \(summary.basis)")
    page.element(
      "p", ["class": "more"], "Both devices are assumed to be empty, unlocked and protected by a passcode.")
    if let sourceDeviceItems = summary.sourceDeviceItems {
      page.element("p", ["class": "more"], sourceDeviceItems.statement)
    }
  }

  private func writeLosses(to page: inout HTMLWriter) {
    let groups = summary.losses + summary.warningGroups
    guard !groups.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Lost items, and what to do")
      for group in groups {
        if let reason = group.reason {
          ReasonCard(
            reason: reason, style: group.style, items: group.items.map { .init($0.index, $0.identity) },
            outcome: group.title
          ).write(to: &page)
        } else {
          writeGroup(group, to: &page)
        }
      }
    }
  }

  /// Writes the card of a group without a reason: items that were added after the backup, or that may be unusable.
  private func writeGroup(_ group: OutlookSummary.Group, to page: inout HTMLWriter) {
    page.element("article", ["class": "card \(group.style.rawValue)"]) { page in
      page.element("p", ["class": "count"]) { $0.element("b", HumanReadable.count(group.items.count, "item")) }
      page.element("h3", group.title)
      if let explanation = group.explanation {
        page.element("p", explanation.prefix(1).uppercased() + explanation.dropFirst() + ".")
      }
      if let advice = group.advice {
        page.element("p", ["class": "do"]) { page in
          page.element("strong", "What to do. ")
          page.text(advice)
        }
      }
      NameList(group.items.map { ItemLabel($0.identity, index: nil) }).write(
        collapsingAfter: ReasonCard.maximumListCount, to: &page)
    }
  }
}

extension SankeyTabs {
  /// Creates the diagrams of the items that move to a new device. The first is by app, or by kind if no app
  /// is known or names are left out. The second is by protection class.
  fileprivate init(_ summary: OutlookSummary) {
    let decisions = summary.restoreOutlook.planForNewDevice.decisions
    let hasAppNames = decisions.contains { summary.apps.app(of: $0.identity).isKnown } && !summary.isRedacted
    let axes: [SankeyDiagram.Axis] = [hasAppNames ? .app : .kind, .protection]
    tabs = axes.map { axis in
      let diagram = SankeyDiagram(decisions, by: axis, apps: summary.apps, removedCount: 0)
      return (
        axis: axis,
        view: SankeyView(diagram, source: summary.sourcePhoneName, target: summary.newPhone, isSameDevice: false)
      )
    }
  }
}

extension PageStyle {
  /// The style rules that put the checklist below the verdict in print.
  fileprivate static let checklistFirst = """
    @media print{main{display:flex;flex-direction:column}main>*{order:2}main>header{order:0}main>.checklist{order:1}}

    """
}

extension PageTable {
  /// Creates the table of all known items, each with the devices on which it arrives.
  fileprivate init(_ page: OutlookPage) {
    let items = page.summary.restoreOutlook.items
    self.init(
      title: items.count == 1 ? "The item" : "All \(HumanReadable.grouped(items.count)) items", resultTitle: "Kept on",
      rows: items.map { Row($0, page.summary) },
      filters: [(.moves, "both"), (.stays, "one or none"), (.lost, "unreadable")])
  }
}

extension PageTable.Row {
  fileprivate init(_ item: RestoreOutlook.Item, _ summary: OutlookSummary) {
    let app = summary.apps.app(of: item.identity)
    let sourceDevice = HTMLWriter.shortened(summary.sourcePhone)
    let (style, symbol, result): (PageTable.Style, String, String) =
      switch item.outlook {
      case _ where item.reason?.isDamage == true: (.lost, "!", "cannot be read")
      case .both: (.moves, "+", "both")
      case .sameDevice: (.stays, "<", "\(sourceDevice) only" + (item.isExpected ? ", by its class" : ""))
      case .neither: (.stays, "x", "neither")
      }
    self.init(
      style: style, symbol: symbol, item: ItemLabel(item.identity, index: item.index), kind: item.identity.kind,
      app: summary.isRedacted || app.kind == .encrypted ? "" : app.displayName, protection: item.protection,
      result: result, detail: Self.detail(of: item))
  }

  /// Returns the warning about an item, or else why a device does not get it; `nil` if there is neither.
  private static func detail(of item: RestoreOutlook.Item) -> String? {
    if let warning = item.warningOnNewDevice ?? item.warningOnSameDevice { return warning.explanation.headline }
    if let reason = item.reason { return reason.explanation.headline }
    // An item that no device gets and that has no reason was added after the backup.
    return item.outlook == .neither ? "it is not in this backup" : nil
  }
}

extension RestoreTable {
  /// Creates the table of both devices' counts. For a backup, it has one row. For a device, it has two rows: for a backup
  /// with a password, and for one without.
  init(_ summary: OutlookSummary) {
    columnTitles = [
      { $0.text("On " + summary.newPhone) },
      { page in
        page.text("On ")
        page.name(summary.sourcePhone)
        page.text(", erased")
      },
    ]
    rows = (summary.sourceIsBackup ? [summary.restoreOutlook.hasPassword] : [true, false]).map { hasPassword in
      let backup =
        summary.sourceIsBackup
        ? "From this backup" : hasPassword ? "A backup with a password" : "A backup without a password"
      return (
        backup,
        [false, true].map { onSameDevice in
          Cell(summary.restoreOutlook.counts(RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice)))
        }
      )
    }
  }
}

extension RestoreTable.Cell {
  /// Creates the cell of one restore's counts. If the number of items that never enter a backup is unknown, the cell
  /// states this.
  fileprivate init(_ counts: RestoreOutlook.Counts) {
    self.init(
      count: counts.restoredCount, unit: "of \(HumanReadable.count(counts.total, "item"))",
      details: ArrivalWarning.countTexts(counts.byWarning)
        + [
          counts.expected > 0
            ? "\(HumanReadable.grouped(counts.expected)) of the restored items expected by class, unchecked" : nil,
          counts.staysBehind > 0 ? Self.staysBehind(counts.staysBehind) : nil,
          Self.unreadable(counts.unreadable),
          counts.never.map { "\(HumanReadable.grouped($0)) never in a backup" } ?? "items never in a backup: not known",
          counts.since.flatMap { $0 > 0 ? "\(HumanReadable.grouped($0)) not in this backup" : nil },
        ].compactMap(\.self))
  }
}
