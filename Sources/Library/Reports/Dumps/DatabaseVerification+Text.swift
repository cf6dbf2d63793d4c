package import KeyhaulKit

extension DatabaseVerification {
  package struct Line {
    package let text: String
    package var color: Color?
  }

  private static let margin = "  "
  private static let stateColumns = 5
  private static let nameColumns = 13
  /// The maximum number of faults that are listed for a check, unless all are requested.
  private static let defaultFaultLimit = 10

  package func lines(style: TextStyle, showsAll: Bool) -> [Line] {
    let conclusionLines = WordWrap.lines(
      of: style.adapted(UntrustedText.escaped(conclusion)), columns: style.width)
    return checks.flatMap { Self.lines(of: $0, style: style, showsAll: showsAll) }
      + conclusionLines.map { Line(text: $0, color: isDamaged ? .red : nil) }
  }

  /// Returns the line of a check, such as "  FAIL items        12 of 13 can be decrypted, 1 is damaged", and the lines of
  /// its faults.
  private static func lines(of check: Check, style: TextStyle, showsAll: Bool) -> [Line] {
    let (state, color): (String, Color?) =
      switch check.outcome {
      case .passed: ("ok", nil)
      case .failed: ("FAIL", .red)
      case .unchecked: ("-", .faint)
      }
    let label =
      margin + DisplayWidth.padded(state, columns: stateColumns)
      + DisplayWidth.padded(check.id.rawValue, columns: nameColumns)
    let indentation = String(repeating: " ", count: margin.count + stateColumns + nameColumns)
    var lines = WordWrap.labeled(label, check.detail, columns: style.width).map { Line(text: $0, color: color) }
    let listedFaults = showsAll ? check.faults[...] : check.faults.prefix(defaultFaultLimit)
    for fault in listedFaults {
      let text =
        "\(fault.row.kind.rawValue) row \(fault.row.number): "
        + UntrustedText.escaped(fault.detail, keepingEscapes: true)
      lines += WordWrap.labeled(indentation, style.adapted(text), columns: style.width).map { Line(text: $0) }
    }
    let omittedCount = check.faults.count - listedFaults.count
    if omittedCount > 0 {
      lines.append(
        Line(text: "\(indentation)\(style.ellipsis) \(HumanReadable.grouped(omittedCount)) more (-v lists all)"))
    }
    return lines
  }

  /// The names of the failed checks, for error messages.
  package var failedCheckNames: String {
    HumanReadable.list(checks.filter { $0.outcome == .failed }.map(\.id.rawValue))
  }

  private var conclusion: String {
    if isDamaged { return "\(name) is damaged: \(failedCheckNames)." }
    let limits = "; nothing in a database shows who wrote it, or which rows were removed."
    return isPartial
      ? "No visible error in \(name)" + limits
      : "No error in \(name): its contents are consistent" + limits
  }

  package var json: JSONValue {
    [
      "format": "database-verification/1", "database": .string(name), "schema": .text(database.schema?.text),
      "log": .string(database.journalStatus.rawValue),
      "checks": .array(
        checks.map { check in
          [
            "id": .string(check.id.rawValue), "ok": .boolean(check.outcome == .passed),
            "checked": .boolean(check.outcome != .unchecked), "detail": .string(check.detail),
          ]
        }),
      "faults": .array(
        checks.flatMap { check in
          check.faults.map { fault -> JSONValue in
            [
              "check": .string(check.id.rawValue), "table": .string(fault.row.kind.rawValue),
              "row": .integer(fault.row.number), "detail": .string(fault.detail),
            ]
          }
        }),
      "rows": .count(rows.count), "open": .count(rows.count { $0.result.verdict == .open }),
      "damaged": .boolean(isDamaged), "whole": .boolean(!isDamaged && !isPartial),
    ]
  }
}
