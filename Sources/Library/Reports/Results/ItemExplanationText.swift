import KeyhaulKit

/// The explanation of an item as text.
struct ItemExplanationText {
  let explanation: ItemExplanation
  let source: ReportSource
  let target: String?

  func lines(style: TextStyle) -> [String] {
    let title = "\(explanation.identity.kind.noun) \"\(name)\""
    var lines = WordWrap.lines(of: style.adapted(UntrustedText.escaped(title)), columns: style.width)
    for index in lines.indices { lines[index] = style.painted(lines[index], .bold) }
    func add(_ label: String, _ text: String) {
      lines += WordWrap.labeled(
        Self.label(label), style.adapted(UntrustedText.escaped(text)), columns: style.width)
    }
    if let protection = explanation.protection {
      add("Class", "\(protection.phrase) (\(protection.rawValue))")
      add("Readable", protection.readability + (requiresAuthentication ? "; only after the user authenticates" : ""))
    }
    let app = source.apps.app(of: explanation.identity)
    if let group = explanation.identity.accessGroup, app.isKnown {
      add("App", app.kind == .group ? app.displayName : "\(app.text) (group \(group))")
    }
    if !explanation.restoreOutcomes.isEmpty { lines += restoreLines(style) }
    if let transfers = explanation.transfers { lines += Self.lines(of: transfers, style) }
    for (label, text) in rows { add(label, text) }
    if let advice = explanation.action { add("Do", advice) }
    for (destination, warning) in warnings {
      add("Warning", "\(destination)\(warning.explanation.headline) (\(warning.rawValue))")
    }
    if let term = explanation.reason?.rawValue ?? warnings.first?.warning.rawValue {
      add("More", "keyhaul explain \(term)")
    }
    return lines
  }

  private static let margin = "  "
  private static let labelColumns = 10

  /// Returns a label with its margin, padded so that the texts begin in the same column.
  private static func label(_ text: String) -> String { margin + DisplayWidth.padded(text, columns: labelColumns) }

  private var name: String {
    guard explanation.identity.isEncrypted else { return ItemText.name(explanation.identity) }
    return explanation.index.map { "(encrypted, item \($0))" } ?? "(cannot be read)"
  }

  /// Whether the item is known to require authentication.
  private var requiresAuthentication: Bool { explanation.reason == .needsAuthentication }

  private func restoreLines(_ style: TextStyle) -> [String] {
    var table = Table([
      .init(""), .init("to the same device", flexible: true), .init("to another device", flexible: true),
    ])
    for hasPassword in [true, false] {
      let cells = [true, false].map { onSameDevice in
        let scenario = RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice)
        return explanation.restoreOutcomes[scenario].map(Self.text) ?? "–"
      }
      table.add([hasPassword ? "with a password" : "without one"] + cells)
    }
    let tableStyle = style.narrowed(by: Self.margin.count + Self.labelColumns)
    return table.lines(style: tableStyle).enumerated().map { index, line in
      Self.label(index == 0 ? "Restores" : "") + line
    }
  }

  /// Returns a line for each transfer method.
  private static func lines(of transfers: TransferAssessments, _ style: TextStyle) -> [String] {
    let nameColumns = TransferMethod.allCases.map(\.displayName.count).max() ?? 0
    return TransferMethod.allCases.enumerated().flatMap { index, method in
      let name = DisplayWidth.padded(method.displayName, columns: nameColumns) + "  "
      return WordWrap.labeled(
        label(index == 0 ? "Moves by" : "") + name, transfers[method].text, columns: style.width)
    }
  }

  /// The warnings about an item: on the target if there is one, otherwise on another device and on the source device.
  private var warnings: [(destination: String, warning: ArrivalWarning)] {
    if let decision = explanation.decisionOnTarget { return decision.warning.map { [("", $0)] } ?? [] }
    guard explanation.containsSecureEnclaveKey == true else { return [] }
    return [("to another device: ", .migratesButUnusable), ("to the same device: ", .useNotKnown)]
  }

  private static func text(_ restoreOutcome: RestoreOutcome) -> String {
    switch restoreOutcome {
    case .arrives: "+ restored"
    case .staysBehind(let reason): "< \(reason.rawValue)"
    case .unreadable(let reason): "! \(reason.rawValue)"
    }
  }

  private typealias Row = (label: String, text: String)

  /// Rows about the item in this backup or on this device, and about the effect on the target.
  private var rows: [Row] {
    let sourceRows: [Row] =
      switch explanation.location {
      case .archive(let index): [("Backup", "item \(index) of \(source.name); \(backupOutcome)")]
      case .device: deviceRows
      case .deleted: exclusionRows(because: .deleted)
      case .missing(let device, let rule): rows(forItemOn: device, excludedBy: rule)
      case .targetOnly(let isRemoved): targetRows(isRemoved ? .removed : .preserved)
      }
    guard let target, let decision = explanation.decisionOnTarget else { return sourceRows }
    return sourceRows + [("Target", "\(target): \(Self.text(decision))")]
  }

  /// The result of decrypting an item of a backup with the available keys.
  private var backupOutcome: String {
    guard let decision = explanation.decision, let reason = decision.outcome.reason else {
      return "it can be decrypted with the available keys"
    }
    let cause = decision.detail ?? reason.explanation.headline
    switch decision.outcome {
    case .unreadable: return "it is damaged: \(cause)"
    case .staysBehind, .migrates:
      // If the name is known, the source device was available.
      return explanation.identity.isEncrypted
        ? "it cannot be decrypted with the available keys: \(cause)"
        : "\(source.sourceDevice)'s key decrypts it"
    }
  }

  private var deviceRows: [Row] {
    guard let decision = explanation.decision, let reason = decision.outcome.reason else {
      return [("Backup", "a backup of \(source.sourceDevice) contains it")]
    }
    return exclusionRows(because: reason) + (decision.detail.map { [("Found", $0)] } ?? [])
  }

  /// Returns the rows about an item that is not in the backup but on its source device.
  ///
  /// - Parameters:
  ///   - device: The name of the source device.
  ///   - rule: The rule that excludes the item from backups; `nil` if there is none.
  private func rows(forItemOn device: String, excludedBy rule: Reason?) -> [Row] {
    let location = "not in \(source.name), but on \(device)"
    guard let ruleExplanation = rule?.explanation else {
      return [("Backup", "\(location). No rule keeps it out of a backup, so it was added after this backup was made")]
    }
    return [
      ("Backup", "\(location), whose backups omit it: \(ruleExplanation.headline)"), ("Rule", ruleExplanation.rule),
    ]
  }

  private func targetRows(_ outcome: GlossaryTerm) -> [Row] {
    [
      ("Backup", "not in \(source.name); it is \(target ?? "the target")'s own item"),
      ("Restore", "\(outcome.explanation.headline) (\(outcome.id))"),
    ]
  }

  private func exclusionRows(because reason: Reason) -> [Row] {
    [
      ("Backup", "a backup of \(source.sourceDevice) omits it: \(reason.explanation.headline)"),
      ("Rule", reason.explanation.rule),
    ]
  }

  private static func text(_ decision: MigrationPlan.Decision) -> String {
    let detail = decision.detail.map { "; \($0)" } ?? ""
    switch decision.outcome {
    case .migrates(let change): return "\(change.explanation.headline) (\(change.rawValue))\(detail)"
    case .staysBehind(let reason): return "stays behind (\(reason.rawValue))\(detail)"
    case .unreadable(let reason): return "cannot be read (\(reason.rawValue))\(detail)"
    }
  }

  /// Returns the outcome for an item in one term, for a list of items.
  static func outcome(of explanation: ItemExplanation) -> String {
    if let reason = explanation.reason { return reason.rawValue }
    switch explanation.location {
    case .targetOnly(let isRemoved): return isRemoved ? "removed" : "preserved"
    case .missing: return "not in the backup"
    case .archive, .device, .deleted:
      return explanation.decisionOnTarget?.outcome.change?.rawValue ?? ItemFate.migrates.rawValue
    }
  }
}
