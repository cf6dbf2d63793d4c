import KeyhaulKit
import Reports

/// The result for one of many backups (`backup-answer/1`): the exit code, the error and the document of the command on
/// this backup.
struct BatchResult: Equatable, Sendable {
  static let format = "backup-answer/1"

  /// The name of the command, without "keyhaul".
  let verb: String
  /// The parameters that affect the result, in addition to the backup: flags, the target and its revision, whether a
  /// password is available. `asked` in JSON.
  let parameters: [String]
  let path: String
  let metadata: BackupMetadata
  /// Whether the backup's folder has a date after the device's identifier.
  let isArchivedCopy: Bool
  let code: Int32
  let id: String
  let error: Failure?
  let warnings: [CapturedOutput.Warning]
  let document: JSONValue?
  /// The result in one word, whose exit code is `code`.
  let word: BackupResult
  /// The reason for an exit code other than 0, as a sentence; `nil` if the code is 0.
  let reason: String?

  /// The error that ended the command, without its code.
  struct Failure: Equatable, Sendable {
    let message: String
    let why: String?
    let advice: String?
  }

  init(
    verb: String, parameters: [String], path: String, metadata: BackupMetadata, isArchivedCopy: Bool,
    status: CommandExitStatus,
    failure: CommandError?, warnings: [CapturedOutput.Warning], document: JSONValue?, result: BackupResult? = nil,
    reason: String? = nil
  ) {
    (self.verb, self.parameters, self.path, self.metadata) = (verb, parameters, path, metadata)
    (self.isArchivedCopy, self.warnings, self.document) = (isArchivedCopy, warnings, document)
    (code, id) = (status.code, status.id)
    error = failure.map { Failure(message: $0.message, why: $0.why, advice: $0.advice) }
    // A word is only used with its own exit code.
    let word = result.flatMap { $0.code == status.code ? $0 : nil } ?? BackupResult(rawValue: status.id) ?? .failed
    self.word = word
    self.reason = status == .ok ? nil : Self.reason(failure, reason, warnings) ?? Self.headline(of: word)
  }

  /// Returns the reason. The document's own reason is more precise than the error's.
  private static func reason(
    _ failure: CommandError?, _ reason: String?, _ warnings: [CapturedOutput.Warning]
  ) -> String? {
    if let reason { return reason }
    if let failure { return failure.message + (failure.why.map { ": \($0)" } ?? "") }
    return warnings.first.map { $0.message + ($0.why.map { ": \($0)" } ?? "") }
  }

  /// Returns the headline of the word's page in `explain`.
  static func headline(of word: BackupResult) -> String? {
    Explanation.all.first { $0.id == word.rawValue }?.headline
  }

  /// The last component of the path.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Whether the result depends only on the backup, so that another run would give the same. A wrong password or a full
  /// disk, for example, come from outside.
  var dependsOnlyOnBackup: Bool { [0, 2, 3, 13, 14].contains(code) }

  // MARK: JSON

  var json: JSONValue { .object([("format", .string(Self.format)), ("verb", .string(verb))] + members) }

  /// The members of each element of `backups` in `backup-list/1`.
  static let table = FieldTable(
    rows: "backups",
    fields: [
      "asked", "path", "name", "udid", "device_name", "made", "encrypted", "state", "archived_copy", "digest",
      "has_seal", "code", "id", "result", "reason", "error", "warnings", "document",
    ])

  /// The members of the result, also for an element of a list.
  var members: [(String, JSONValue)] {
    [
      ("asked", .array(parameters.map { .string($0) })), ("path", .string(path)), ("name", .string(name)),
      ("udid", .text(metadata.identifier)), ("device_name", .text(metadata.deviceName)),
      ("made", .text(metadata.date.map { Timestamp.text(of: $0) })),
      ("encrypted", metadata.isEncrypted.map { .boolean($0) } ?? .null), ("state", .text(metadata.state)),
      ("archived_copy", .boolean(isArchivedCopy)), ("digest", .text(metadata.digest)),
      ("has_seal", metadata.hasSeal.map { .boolean($0) } ?? .null),
      ("code", .integer(Int64(code))), ("id", .string(id)), ("result", .string(word.rawValue)),
      ("reason", .text(reason)),
      (
        "error",
        error.map { ["message": .string($0.message), "why": .text($0.why), "try": .text($0.advice)] } ?? .null
      ),
      (
        "warnings",
        .array(
          warnings.map { ["message": .string($0.message), "why": .text($0.why), "try": .text($0.advice)] })
      ),
      ("document", document ?? .null),
    ]
  }

  /// Reads a result that was written before.
  ///
  /// - Returns: `nil` if the value is not a result.
  init?(_ json: JSONValue) {
    guard json["format"]?.stringValue == Self.format, let verb = json["verb"]?.stringValue,
      let parameters = json["asked"]?.arrayValue, let path = json["path"]?.stringValue,
      let code = json["code"]?.integerValue.flatMap(Int32.init(exactly:)), let id = json["id"]?.stringValue,
      let warnings = json["warnings"]?.arrayValue,
      let result = json["result"]?.stringValue.flatMap(BackupResult.init(rawValue:)), result.code == code
    else { return nil }
    (self.verb, self.path, self.code, self.id) = (verb, path, code, id)
    self.parameters = parameters.compactMap(\.stringValue)
    self.word = result
    reason = json["reason"]?.stringValue
    var metadata = BackupMetadata()
    metadata.identifier = json["udid"]?.stringValue
    metadata.deviceName = json["device_name"]?.stringValue
    metadata.date = json["made"]?.stringValue.flatMap { Timestamp.date(from: $0) }
    metadata.isEncrypted = json["encrypted"]?.booleanValue
    metadata.state = json["state"]?.stringValue
    metadata.digest = json["digest"]?.stringValue
    metadata.hasSeal = json["has_seal"]?.booleanValue
    self.metadata = metadata
    isArchivedCopy = json["archived_copy"]?.booleanValue ?? false
    error = json["error"].flatMap { error in
      error["message"]?.stringValue.map {
        Failure(message: $0, why: error["why"]?.stringValue, advice: error["try"]?.stringValue)
      }
    }
    self.warnings = warnings.map {
      .init($0["message"]?.stringValue ?? "", why: $0["why"]?.stringValue, try: $0["try"]?.stringValue)
    }
    document = json["document"].flatMap { $0 == .null ? nil : $0 }
  }
}

/// A column of the CSV table, with a value from the command's document.
struct ResultColumn: Sendable {
  let name: String
  private let read: @Sendable (JSONValue) -> JSONValue?

  init(_ name: String, _ read: @escaping @Sendable (JSONValue) -> JSONValue?) {
    self.name = name
    self.read = read
  }

  /// Creates a column from the member at a path.
  init(_ name: String, at path: String...) {
    self.init(name) { document in path.reduce(document) { $0?[$1] } }
  }

  /// Returns the text of a cell; empty if the document does not state the value.
  func text(in document: JSONValue?) -> String {
    switch document.flatMap(read) {
    case .integer(let value): String(value)
    case .string(let value): value
    case .boolean(let value): value ? "true" : "false"
    case .number(let value): String(value)
    case nil, .null, .sensitive, .array, .elements, .object: ""
    }
  }
}

/// A column of the text table.
struct ResultTextColumn: Sendable {
  let title: String
  /// The width in columns.
  let width: Int
  var isRightAligned = false
  /// The text before the value if the columns do not fit and the values are below the row.
  var label = ""
  /// Returns whether the value applies to a result's backup.
  var isShown: @Sendable (BatchResult) -> Bool = { _ in true }
  /// Returns the text of a cell; `nil` if the document does not state the value.
  let text: @Sendable (JSONValue) -> String?
}

/// The summary of the results for many backups.
struct BatchSummary: Equatable, Sendable {
  /// The number of backups for each exit code.
  private(set) var countByCode: [Int32: Int] = [:]
  /// The number of backups for each exit code and id. Two ids may have the same code.
  private var counts: [ExitCodeAndID: Int] = [:]
  /// The number of results that came from an earlier run.
  private(set) var resumedCount = 0
  /// The number of backups that need a password, when none was given.
  var needingPasswordCount: Int {
    counts.reduce(0) { $0 + ($1.key.id == CommandExitStatus.needsPassword.id ? $1.value : 0) }
  }
  private struct ExitCodeAndID: Hashable { let code: Int32, id: String }
  /// The first backup with exit code 0.
  private var firstWithoutFault: String?
  /// The first backup that needs attention and has a document, so that a command for it shows more than its row.
  private var firstNeedingAttention: String?
  /// The backup for which the summary suggests a command; `nil` if the rows show everything.
  var firstToShow: String? { firstNeedingAttention ?? firstWithoutFault }
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
    if result.code != 0 || needsAttention, result.document != nil, firstNeedingAttention == nil {
      firstNeedingAttention = result.path
    }
  }

  var count: Int { countByCode.values.reduce(0, +) }
  var faultCount: Int { count - countByCode[0, default: 0] }

  /// The exit status: 2 if the only other code is 2, and 3 if there are others.
  var status: CommandExitStatus {
    let codes = Set(countByCode.keys).subtracting([CommandExitStatus.ok.code])
    if codes.isEmpty { return .ok }
    return codes == [CommandExitStatus.differs.code] ? .differs : .partial
  }

  /// A sentence such as "12 backups: 9 with exit code 0, 2 with 13 (damaged) and 1 with 12 (wrong-password)."
  var sentence: String {
    let sorted = counts.sorted { ($0.key.code, $0.key.id) < ($1.key.code, $1.key.id) }
    let parts = sorted.enumerated().map { index, entry in
      "\(HumanReadable.grouped(entry.value)) \(index == 0 ? "with exit code" : "with") \(entry.key.code)"
        + (entry.key.code == 0 ? "" : " (\(entry.key.id))")
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
