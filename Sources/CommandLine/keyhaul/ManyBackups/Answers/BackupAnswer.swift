import KeyhaulKit
import Reports

/// What one of many backups came to: the exit code, the error and the document that a call about it alone would have given
/// (`backup-answer/1`).
struct BackupAnswer: Equatable, Sendable {
  static let format = "backup-answer/1"

  /// The verb's word.
  let verb: String
  /// What shapes the answer besides the backup: flags, the target and its revision, whether a password is available.
  let asked: [String]
  let path: String
  let facts: SubjectFacts
  /// Whether its folder has a date behind the device's identifier.
  let isArchivedCopy: Bool
  let code: Int32
  let id: String
  let error: Failure?
  let warnings: [SessionRecord.Warning]
  let document: JSONValue?
  /// The word of the RESULT column, whose exit code is `code`.
  let result: BackupResult
  /// Why the code is not 0, in a sentence; `nil` if it is 0.
  let reason: String?

  /// What ended the call, without its code.
  struct Failure: Equatable, Sendable {
    let message: String
    let why: String?
    let advice: String?
  }

  init(
    verb: String, asked: [String], path: String, facts: SubjectFacts, isArchivedCopy: Bool, status: CommandStatus,
    failure: CommandFailure?, warnings: [SessionRecord.Warning], document: JSONValue?, result: BackupResult? = nil,
    reason: String? = nil
  ) {
    (self.verb, self.asked, self.path, self.facts) = (verb, asked, path, facts)
    (self.isArchivedCopy, self.warnings, self.document) = (isArchivedCopy, warnings, document)
    (code, id) = (status.code, status.id)
    error = failure.map { Failure(message: $0.message, why: $0.why, advice: $0.advice) }
    // A word stands beside its own exit code only.
    let word = result.flatMap { $0.code == status.code ? $0 : nil } ?? BackupResult(rawValue: status.id) ?? .failed
    self.result = word
    self.reason = status == .ok ? nil : Self.reason(failure, reason, warnings) ?? Self.headline(of: word)
  }

  /// The cause that the document names is more exact than the error's.
  private static func reason(
    _ failure: CommandFailure?, _ reason: String?, _ warnings: [SessionRecord.Warning]
  ) -> String? {
    if let reason { return reason }
    if let failure { return failure.message + (failure.why.map { ": \($0)" } ?? "") }
    return warnings.first.map { $0.message + ($0.why.map { ": \($0)" } ?? "") }
  }

  /// Returns the headline of the word's page in `explain`.
  static func headline(of word: BackupResult) -> String? {
    Explanation.all.first { $0.id == word.rawValue }?.headline
  }

  /// The last part of its path.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Whether another call would come to the same while the backup stays as it is: nothing from outside of it, such as a wrong
  /// password or a full disk, decided it.
  var isAboutBackup: Bool { [0, 2, 3, 13, 14].contains(code) }

  // MARK: JSON

  var json: JSONValue { .object([("format", .string(Self.format)), ("verb", .string(verb))] + members) }

  /// The members of each of `backups` in `backup-list/1`.
  static let table = FieldTable(
    "backups",
    [
      "asked", "path", "name", "udid", "device_name", "made", "encrypted", "state", "archived_copy", "digest",
      "has_seal", "code", "id", "result", "reason", "error", "warnings", "document",
    ])

  /// What is said of it, as an element of a list too.
  var members: [(String, JSONValue)] {
    [
      ("asked", .array(asked.map { .string($0) })), ("path", .string(path)), ("name", .string(name)),
      ("udid", .text(facts.identifier)), ("device_name", .text(facts.deviceName)),
      ("made", .text(facts.date.map { Timestamp.text(of: $0) })),
      ("encrypted", facts.isEncrypted.map { .boolean($0) } ?? .null), ("state", .text(facts.state)),
      ("archived_copy", .boolean(isArchivedCopy)), ("digest", .text(facts.digest)),
      ("has_seal", facts.hasSeal.map { .boolean($0) } ?? .null),
      ("code", .integer(Int64(code))), ("id", .string(id)), ("result", .string(result.rawValue)),
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

  /// Reads one that was written before.
  ///
  /// - Returns: `nil` for every other value.
  init?(_ json: JSONValue) {
    guard json["format"]?.stringValue == Self.format, let verb = json["verb"]?.stringValue,
      let asked = json["asked"]?.arrayValue, let path = json["path"]?.stringValue,
      let code = json["code"]?.integerValue.flatMap(Int32.init(exactly:)), let id = json["id"]?.stringValue,
      let warnings = json["warnings"]?.arrayValue,
      let result = json["result"]?.stringValue.flatMap(BackupResult.init(rawValue:)), result.code == code
    else { return nil }
    (self.verb, self.path, self.code, self.id) = (verb, path, code, id)
    self.asked = asked.compactMap(\.stringValue)
    self.result = result
    reason = json["reason"]?.stringValue
    var facts = SubjectFacts()
    facts.identifier = json["udid"]?.stringValue
    facts.deviceName = json["device_name"]?.stringValue
    facts.date = json["made"]?.stringValue.flatMap { Timestamp.date(from: $0) }
    facts.isEncrypted = json["encrypted"]?.booleanValue
    facts.state = json["state"]?.stringValue
    facts.digest = json["digest"]?.stringValue
    facts.hasSeal = json["has_seal"]?.booleanValue
    self.facts = facts
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

/// A fact of a verb's document that stands in a table of many answers.
struct AnswerColumn: Sendable {
  let name: String
  private let read: @Sendable (JSONValue) -> JSONValue?

  init(_ name: String, _ read: @escaping @Sendable (JSONValue) -> JSONValue?) {
    self.name = name
    self.read = read
  }

  /// The member of a document that is reached by these names.
  init(_ name: String, at path: String...) {
    self.init(name) { document in path.reduce(document) { $0?[$1] } }
  }

  /// The text of a cell; empty where the document does not say it.
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

/// A column of the table for people.
struct AnswerTextColumn: Sendable {
  let title: String
  /// The width in columns.
  let width: Int
  var isRightAligned = false
  /// What stands before the value if the columns do not fit, and the values are on a line of their own.
  var label = ""
  /// Whether the value says something true about the backup of an answer.
  var isShown: @Sendable (BackupAnswer) -> Bool = { _ in true }
  /// The text of a cell; `nil` if the document does not state it.
  let text: @Sendable (JSONValue) -> String?
}

/// What many answers came to.
struct AnswerSummary: Equatable, Sendable {
  /// How many backups there were for each exit code.
  private(set) var countByCode: [Int32: Int] = [:]
  /// The number of backups for each exit code and id. Two ids may have the same code.
  private var counts: [Ending: Int] = [:]
  /// How many of them had been answered before.
  private(set) var resumedCount = 0
  /// The number of backups that need a password, when none was given.
  var needingPasswordCount: Int {
    counts.reduce(0) { $0 + ($1.key.id == CommandStatus.needsPassword.id ? $1.value : 0) }
  }
  private struct Ending: Hashable { let code: Int32, id: String }
  /// The first one that had no fault.
  private var firstWithoutFault: String?
  /// The first one that needs attention and has a document, so that a call about it alone says more than its row.
  private var firstNeedingAttention: String?
  /// The backup to show by itself; `nil` if such a call would say no more about any of them.
  var firstToShow: String? { firstNeedingAttention ?? firstWithoutFault }
  var passedOver = PassedOver()

  init() {}

  /// Adds an answer.
  ///
  /// - Parameter needsAttention: Whether it needs attention although its exit code is 0.
  mutating func add(_ answer: BackupAnswer, isResumed: Bool, needsAttention: Bool = false) {
    countByCode[answer.code, default: 0] += 1
    counts[Ending(code: answer.code, id: answer.id), default: 0] += 1
    if isResumed { resumedCount += 1 }
    if answer.code == 0, firstWithoutFault == nil { firstWithoutFault = answer.path }
    if answer.code != 0 || needsAttention, answer.document != nil, firstNeedingAttention == nil {
      firstNeedingAttention = answer.path
    }
  }

  var count: Int { countByCode.values.reduce(0, +) }
  var faultCount: Int { count - countByCode[0, default: 0] }

  /// How the call ends: 3 where one of them ended with anything but 0; 2 where nothing but what a flag asks to be told of
  /// was found.
  var status: CommandStatus {
    let codes = Set(countByCode.keys).subtracting([CommandStatus.ok.code])
    if codes.isEmpty { return .ok }
    return codes == [CommandStatus.differs.code] ? .differs : .partial
  }

  /// "12 backups: 9 with exit code 0, 2 with 13 (damaged) and 1 with 12 (wrong-password)."
  var sentence: String {
    let endings = counts.sorted { ($0.key.code, $0.key.id) < ($1.key.code, $1.key.id) }
    let parts = endings.enumerated().map { index, entry in
      "\(HumanReadable.grouped(entry.value)) \(index == 0 ? "with exit code" : "with") \(entry.key.code)"
        + (entry.key.code == 0 ? "" : " (\(entry.key.id))")
    }
    return "\(HumanReadable.count(count, "backup")): \(HumanReadable.list(parts))."
  }

  /// What else there is to say: what was answered before, and what was passed over.
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
    let passed = passedOver.counts.filter { $0.count > 0 }.map {
      HumanReadable.count($0.count, $0.noun, plural: $0.plural)
    }
    if !passed.isEmpty { lines.append("Skipped in folders: \(HumanReadable.list(passed)).") }
    if !passedOver.linkTargets.isEmpty {
      lines.append("Links that were not followed: \(HumanReadable.list(passedOver.linkTargets)).")
    }
    return lines
  }

  var json: JSONValue {
    [
      "backups": .count(count), "without_fault": .count(count - faultCount),
      "by_code": .object(
        countByCode.sorted { $0.key < $1.key }.map { (String($0.key), .count($0.value)) }),
      "answered_before": .count(resumedCount),
      "passed_over": .object(passedOver.counts.map { ($0.name, .count($0.count)) }),
    ]
  }
}
