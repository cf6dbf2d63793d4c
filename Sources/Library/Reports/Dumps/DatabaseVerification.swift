package import KeyhaulKit

/// The result of verifying a keychain database (`database-verification/1`): its pages and log, whether each row can be
/// decrypted, and whether the columns match the encrypted items.
package struct DatabaseVerification {
  private let name: String
  private let database: KeychainDatabase
  private let rows: [KeychainDatabase.DecryptedRow]
  private let checks: [Check]

  /// The checks in their order. The raw value is the identifier in machine-readable output.
  package enum CheckID: String, CaseIterable, Sendable {
    case pages
    case indexes
    case log
    case tables
    case items
    case digests
    case columns
  }

  /// The result of a check.
  private enum Outcome {
    case passed
    case failed
    /// Something could not be checked.
    case unchecked
  }

  private struct Check {
    let id: CheckID
    let outcome: Outcome
    let detail: String
    /// The faulty rows, each with its fault.
    var faults: [(row: KeychainDatabase.Row, detail: String)] = []
  }

  /// Creates the report about a database.
  ///
  /// - Parameters:
  ///   - database: The database.
  ///   - rows: The rows of the database, with the results of decrypting them.
  ///   - name: The name that the user typed. Untrusted.
  package init(_ database: KeychainDatabase, opened rows: [KeychainDatabase.DecryptedRow], named name: String) {
    self.name = name
    self.database = database
    self.rows = rows
    checks = [
      Check(
        id: .pages, outcome: database.isIntact ? .passed : .failed,
        detail: database.isIntact ? "SQLite finds no errors in them" : "they contradict each other"),
      Self.indexes(of: database), Self.log(database.journalStatus), Self.tables(database.missingTables),
      Self.items(rows, of: database), Self.digests(rows),
      Self.columns(rows),
    ]
  }

  /// Whether a check failed.
  package var isDamaged: Bool { checks.contains { $0.outcome == .failed } }
  /// Whether something could not be checked.
  package var isPartial: Bool { checks.contains { $0.outcome == .unchecked } }

  // MARK: The checks

  private static func indexes(of database: KeychainDatabase) -> Check {
    guard database.isIntact else {
      return Check(id: .indexes, outcome: .unchecked, detail: "not checked: the pages contradict each other")
    }
    return switch database.indexState {
    case .sound: Check(id: .indexes, outcome: .passed, detail: "they list every row of their tables")
    case .damaged: Check(id: .indexes, outcome: .failed, detail: "they do not list the rows of their tables")
    case .unchecked:
      Check(
        id: .indexes, outcome: .unchecked,
        detail: "not checked: one of them has an expression, which Keyhaul does not run")
    }
  }

  private static func log(_ status: DatabaseDetails.JournalStatus) -> Check {
    switch status {
    case .none: Check(id: .log, outcome: .passed, detail: "none, or empty")
    case .applied: Check(id: .log, outcome: .passed, detail: "its committed changes were read")
    case .rolledBack:
      Check(id: .log, outcome: .passed, detail: "an unfinished change was rolled back, as its journal specifies")
    case .partiallyApplied:
      Check(
        id: .log, outcome: .unchecked,
        detail: "its committed changes were read up to a point; the rest is damaged, cut off or unfinished")
    case .unreadable: Check(id: .log, outcome: .unchecked, detail: "it has no committed change that can be read")
    case .journalUnreadable:
      Check(
        id: .log, outcome: .unchecked,
        detail: "the journal next to it does not begin like one, so SQLite ignores it and rolls nothing back")
    case .unrelated:
      Check(id: .log, outcome: .unchecked, detail: "it belongs to another database, or to another state of this one")
    }
  }

  private static func tables(_ missing: [ItemKind]) -> Check {
    Check(
      id: .tables, outcome: missing.isEmpty ? .passed : .failed,
      detail: missing.isEmpty
        ? "all four item tables are present"
        : HumanReadable.list(missing.map(\.rawValue)) + (missing.count == 1 ? " is" : " are") + " missing or unreadable"
    )
  }

  private static func items(_ rows: [KeychainDatabase.DecryptedRow], of database: KeychainDatabase) -> Check {
    let damagedRows = rows.filter { isDamaged($0, in: database) }
    let rowsWithoutKey = rows.filter { row in
      [.noClassKey, .unsupportedVersion, .tagMismatch].contains(row.result.verdict) && !isDamaged(row, in: database)
    }
    let decryptedCount = rows.count { $0.result.verdict == .open }
    let deviceBoundCount = rows.count { $0.result.verdict == .accessControl }
    let parts = [
      "\(ratio(decryptedCount, of: rows.count)) can be decrypted",
      damagedRows.isEmpty
        ? nil : "\(HumanReadable.grouped(damagedRows.count)) \(damagedRows.count == 1 ? "is" : "are") damaged",
      rowsWithoutKey.isEmpty
        ? nil
        : "\(HumanReadable.grouped(rowsWithoutKey.count)) \(rowsWithoutKey.count == 1 ? "has" : "have") no key here",
      deviceBoundCount == 0
        ? nil : "\(HumanReadable.grouped(deviceBoundCount)) can be decrypted only on their device",
    ].compactMap(\.self)
    return Check(
      id: .items, outcome: damagedRows.isEmpty ? (rowsWithoutKey.isEmpty ? .passed : .unchecked) : .failed,
      detail: parts.joined(separator: ", "),
      faults: (damagedRows + rowsWithoutKey).map { row in
        (row.row, row.result.fault.map { "\($0.verdict.rawValue) (\($0.step.rawValue)): \($0.reason)" } ?? "")
      })
  }

  /// Returns whether the item of a row is damaged or lost. An item whose key is merely not available here is
  /// neither.
  private static func isDamaged(_ row: KeychainDatabase.DecryptedRow, in database: KeychainDatabase) -> Bool {
    switch row.result.verdict {
    // If the class's metadata key cannot be unwrapped, the given class key may be from another device. The item may then
    // be intact.
    case .tagMismatch: row.result.fault?.step != .metadataClassKey
    case .noClassKey: database.lacksKey(of: row.result)
    case .malformed, .tamper: true
    case .open, .unsupportedVersion, .accessControl: false
    }
  }

  private static func digests(_ rows: [KeychainDatabase.DecryptedRow]) -> Check {
    guard rows.isEmpty || rows.contains(where: \.row.hasDigestColumn) else {
      return Check(id: .digests, outcome: .passed, detail: "none: its schema has no sha1 column")
    }
    let comparableRows = rows.filter { $0.hasMatchingDigest != nil }
    guard !comparableRows.isEmpty || rows.isEmpty else {
      return Check(id: .digests, outcome: .unchecked, detail: "not checked: no secret can be decrypted")
    }
    let mismatchedRows = comparableRows.filter { row in
      row.hasMatchingDigest == false || row.result.findings.contains(.digestDiffers)
    }
    return Check(
      id: .digests, outcome: mismatchedRows.isEmpty ? .passed : .failed,
      detail: ratio(comparableRows.count - mismatchedRows.count, of: comparableRows.count)
        + " match the contents of their items",
      faults: mismatchedRows.map { row in
        (
          row.row,
          row.hasMatchingDigest == false
            ? "the sha1 column is not the digest of the item" : "the digest stored in the item does not match the item"
        )
      })
  }

  private static func columns(_ rows: [KeychainDatabase.DecryptedRow]) -> Check {
    let comparableRows = rows.filter { $0.result.item != nil }
    guard !comparableRows.isEmpty || rows.isEmpty else {
      return Check(id: .columns, outcome: .unchecked, detail: "not checked: no row can be decrypted")
    }
    let mismatchedRows = comparableRows.filter { !$0.differingColumns.isEmpty }
    return Check(
      id: .columns, outcome: mismatchedRows.isEmpty ? .passed : .failed,
      detail: ratio(comparableRows.count - mismatchedRows.count, of: comparableRows.count) + " rows match their items",
      faults: mismatchedRows.map { row in
        (row.row, "differ from the item: " + row.differingColumns.map(\.rawValue).joined(separator: ", "))
      })
  }

  /// Returns a count and a total: "12 of 13".
  private static func ratio(_ count: Int, of total: Int) -> String {
    "\(HumanReadable.grouped(count)) of \(HumanReadable.grouped(total))"
  }
}

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
