import KeyhaulKit

/// The section about anomalies of a backup that did not prevent the report; nothing if there are none.
struct FindingSection {
  /// The anomalies, each with its location. Untrusted.
  let findings: [(place: String, fact: String, isLoss: Bool, isRestorable: Bool)]

  init(_ findings: [BackupFinding]) {
    self.findings = findings.map { ($0.place, $0.fact, $0.isLoss, !$0.blocks(.restoring)) }
  }

  init(_ findings: [PlanDocument.Finding]) {
    self.findings = findings.map { ($0.place, $0.detail, $0.isLoss, $0.isRestorable) }
  }

  /// The maximum number of Unicode scalars of a fact.
  private static let maximumFactLength = 400

  func write(to page: inout HTMLWriter) {
    guard !findings.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Changed since the source device wrote it")
      page.element("ul") { page in
        for finding in findings {
          page.element("li") { page in
            page.element("code", HTMLWriter.shortened(finding.place))
            page.escapedText(": \(HTMLWriter.shortened(finding.fact, to: Self.maximumFactLength)). ")
            page.text(finding.isLoss ? "Part of it is lost in this copy" : "Nothing is lost")
            page.text(finding.isRestorable ? "." : "; such a backup cannot be restored.")
          }
        }
      }
    }
  }
}

/// The section about items of the source device that are not in the backup, with a card for each reason.
struct NotInBackupSection {
  let sourceDeviceItems: SourceDeviceItems?

  func write(to page: inout HTMLWriter) {
    guard let sourceDeviceItems else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.text("On ")
        page.name(sourceDeviceItems.device)
        page.text(" but not in the backup: \(HumanReadable.count(sourceDeviceItems.absent.count, "item"))")
      }
      page.element("p", ["class": "muted"], sourceDeviceItems.statement)
      for reason in Reason.allCases {
        let items = sourceDeviceItems.absent.filter { $0.reason == reason }
        guard !items.isEmpty else { continue }
        ReasonCard(
          reason: reason, style: reason.isDamage ? .lost : .stays, items: items.map { .init(nil, $0.identity) },
          place: reason.isDamage ? "Cannot be read on the device" : "Never in a backup"
        ).write(to: &page)
      }
      Self.write(sourceDeviceItems.addedSince, to: &page)
    }
  }

  /// Writes the items that a new backup would contain, because no rule excludes them.
  private static func write(_ items: [SourceDeviceItems.Item], to page: inout HTMLWriter) {
    guard !items.isEmpty else { return }
    page.element("article", ["class": "card stays"]) { page in
      page.element("p", ["class": "count"]) { $0.element("b", HumanReadable.count(items.count, "item")) }
      page.element("h3", "Not in this backup, although a new backup would contain \(items.count == 1 ? "it" : "them")")
      page.element("p", ["class": "do"]) { page in
        page.element("strong", "What to do. ")
        page.text("Make a new backup.")
      }
      NameList(items.map { ItemLabel($0.identity, index: nil) }).write(
        collapsingAfter: ReasonCard.maximumListCount, to: &page)
    }
  }

  /// Returns the tile with the number of items that are not in the backup; none if the source device is unavailable.
  static func tile(_ sourceDeviceItems: SourceDeviceItems?) -> [Tiles.Tile] {
    guard let sourceDeviceItems else { return [] }
    return [.init(style: .lost, symbol: "x", count: sourceDeviceItems.absent.count, text: "not in the backup")]
  }
}
