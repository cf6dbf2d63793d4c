import KeyhaulKit

/// The summary of the results for many backups.
struct BatchSummary: Equatable, Sendable {
  /// The number of backups for each exit code.
  private(set) var countByCode: [Int32: Int] = [:]
  /// The number of backups for each exit code and id. Two ids may have the same code.
  private var counts: [ExitCodeAndID: Int] = [:]
  private struct ExitCodeAndID: Hashable { let code: Int32, id: String }
  /// The number of results that came from an earlier run.
  private(set) var resumedCount = 0
  /// The path of the first backup with exit code 0.
  private var firstWithoutFault: String?
  /// The path of the first backup that needs attention and has a document. A command for this backup shows more than the
  /// backup's row, because it shows the document.
  private var firstNeedingAttention: String?
  var skipped = SkippedEntries()

  init() {}

  /// Adds the result of a backup.
  ///
  /// - Parameter needsAttention: Whether the backup needs attention although its exit code is 0.
  mutating func add(_ result: BatchResult, isResumed: Bool, needsAttention: Bool = false) {
    countByCode[result.code, default: 0] += 1
    counts[ExitCodeAndID(code: result.code, id: result.id), default: 0] += 1
    if isResumed { resumedCount += 1 }
    if result.code == 0, firstWithoutFault == nil { firstWithoutFault = result.path }
    let hasFaultOrNote = result.code != 0 || needsAttention
    if hasFaultOrNote, result.document != nil, firstNeedingAttention == nil { firstNeedingAttention = result.path }
  }

  /// The number of backups that need a password but got none.
  var needingPasswordCount: Int {
    counts.filter { $0.key.id == CommandExitStatus.needsPassword.id }.values.reduce(0, +)
  }

  /// The path of the backup for which the summary suggests a command; `nil` if the rows show everything.
  var firstToShow: String? { firstNeedingAttention ?? firstWithoutFault }

  var count: Int { countByCode.values.reduce(0, +) }
  var faultCount: Int { count - countByCode[0, default: 0] }

  /// The exit status: `.ok` if every code is 0, `.differs` if the only other code is 2, and otherwise `.partial`.
  var status: CommandExitStatus {
    let codes = Set(countByCode.keys).subtracting([CommandExitStatus.ok.code])
    if codes.isEmpty { return .ok }
    return codes == [CommandExitStatus.differs.code] ? .differs : .partial
  }

  /// A sentence such as "12 backups: 9 with exit code 0, 2 with 13 (damaged) and 1 with 12 (wrong-password)."
  var sentence: String {
    let sortedCounts = counts.sorted { ($0.key.code, $0.key.id) < ($1.key.code, $1.key.id) }
    let parts = sortedCounts.enumerated().map { index, entry in
      let (exit, count) = (entry.key, HumanReadable.grouped(entry.value))
      let idNote = exit.code == 0 ? "" : " (\(exit.id))"
      return "\(count) \(index == 0 ? "with exit code" : "with") \(exit.code)\(idNote)"
    }
    return "\(HumanReadable.count(count, "backup")): \(HumanReadable.list(parts))."
  }

  /// Further sentences: about earlier results, missing passwords and skipped entries.
  var remarks: [String] {
    var lines: [String] = []
    if resumedCount > 0 {
      lines.append(
        "\(HumanReadable.count(resumedCount, "result")) \(resumedCount == 1 ? "was" : "were") already there.")
    }
    if needingPasswordCount > 0 {
      lines.append(
        "\(HumanReadable.count(needingPasswordCount, "backup")) \(needingPasswordCount == 1 ? "needs" : "need") a "
          + "password: add --password-file FILE, or --passwords FILE for different passwords.")
    }
    let skippedCounts = skipped.counts.filter { $0.count > 0 }.map {
      HumanReadable.count($0.count, $0.noun, plural: $0.plural)
    }
    if !skippedCounts.isEmpty { lines.append("Skipped in folders: \(HumanReadable.list(skippedCounts)).") }
    if !skipped.linkTargets.isEmpty {
      lines.append("Links that were not followed: \(HumanReadable.list(skipped.linkTargets)).")
    }
    return lines
  }

  var json: JSONValue {
    [
      "backups": .count(count), "without_fault": .count(count - faultCount),
      "by_code": .object(
        countByCode.sorted { $0.key < $1.key }.map { (String($0.key), .count($0.value)) }),
      "answered_before": .count(resumedCount),
      "passed_over": .object(skipped.counts.map { ($0.name, .count($0.count)) }),
    ]
  }
}
