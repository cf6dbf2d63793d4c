package import KeyhaulKit

/// The report of `why` (format `item-story/1`): the explanation of one item, or a list of several to choose from.
package struct ItemExplanationReport: Report {
  package let explanations: [ItemExplanation]
  package let source: ReportSource
  let target: String?

  package init(explanations: [ItemExplanation], source: ReportSource, target: String?) {
    self.explanations = explanations
    self.source = source
    self.target = target
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    if explanations.count == 1 || showsAll {
      let texts = explanations.map {
        ItemExplanationText(explanation: $0, source: source, target: target).lines(style: style)
      }
      return Array(texts.joined(separator: [""])) + source.blindSpotLines(style: style)
    }
    var lines =
      [style.painted("\(HumanReadable.count(explanations.count, "item")) match:", .bold)]
      + table(isShort: false).lines(style: style) { table(isShort: true) }
    if explanations.count > ReportItemTable.defaultItemLimit {
      lines.append(
        "\(style.ellipsis) \(HumanReadable.grouped(explanations.count - ReportItemTable.defaultItemLimit)) more")
    }
    return lines
      + WordWrap.lines(
        of: "To select one of them, add attributes or --item N. -v shows all in full.", columns: style.width)
      + source.blindSpotLines(style: style)
  }

  /// Returns the table of several items. A short table has the codes of protection classes, to leave more room for names.
  private func table(isShort: Bool) -> Table {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("KIND"), .init("NAME", flexible: true),
      .init(ItemText.protectionTitle(isShort: isShort)), .init("OUTCOME"),
    ])
    for explanation in explanations.prefix(ReportItemTable.defaultItemLimit) {
      let name = explanation.identity.isEncrypted ? "(encrypted)" : ItemText.name(explanation.identity)
      table.add([
        explanation.index.map(String.init) ?? "–", ItemText.kind(explanation.identity.kind), name,
        ItemText.protection(explanation.protection, isShort: isShort), ItemExplanationText.outcome(of: explanation),
      ])
    }
    return table
  }

  package var json: JSONValue {
    ItemExplanationDocument(
      explanations: explanations, source: source.document, target: target, dump: source.disclaimer?.planDocument
    ).json
  }
}

extension ItemExplanation {
  /// The recommended action; `nil` if none is necessary.
  var action: String? {
    if case .targetOnly(let isRemoved) = location {
      return isRemoved ? GlossaryTerm.removed.explanation.action : nil
    }
    if case .missing(_, nil) = location { return "Make a new backup." }
    if let reason { return reason.explanation.action }
    if let warning = decisionOnTarget?.warning { return warning.explanation.action }
    if decisionOnTarget == nil, containsSecureEnclaveKey == true {
      return ArrivalWarning.migratesButUnusable.explanation.action
    }
    return decisionOnTarget?.outcome.change.map(\.explanation.action)
  }
}
