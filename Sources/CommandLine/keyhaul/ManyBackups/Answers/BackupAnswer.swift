import KeyhaulKit

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

  /// What ended the call, without its code.
  struct Failure: Equatable, Sendable {
    let message: String
    let why: String?
    let advice: String?
  }

  init(
    verb: String, asked: [String], path: String, facts: SubjectFacts, isArchivedCopy: Bool, status: CommandStatus,
    failure: CommandFailure?, warnings: [SessionRecord.Warning], document: JSONValue?
  ) {
    (self.verb, self.asked, self.path, self.facts) = (verb, asked, path, facts)
    (self.isArchivedCopy, self.warnings, self.document) = (isArchivedCopy, warnings, document)
    (code, id) = (status.code, status.id)
    error = failure.map { Failure(message: $0.message, why: $0.why, advice: $0.advice) }
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
      "asked", "path", "name", "udid", "device_name", "made", "encrypted", "state", "archived_copy", "digest", "code",
      "id", "error", "warnings", "document",
    ])

  /// What is said of it, as an element of a list too.
  var members: [(String, JSONValue)] {
    [
      ("asked", .array(asked.map { .string($0) })), ("path", .string(path)), ("name", .string(name)),
      ("udid", .text(facts.identifier)), ("device_name", .text(facts.deviceName)),
      ("made", .text(facts.date.map { Timestamp.text(of: $0) })),
      ("encrypted", facts.isEncrypted.map { .boolean($0) } ?? .null), ("state", .text(facts.state)),
      ("archived_copy", .boolean(isArchivedCopy)), ("digest", .text(facts.digest)),
      ("code", .integer(Int64(code))), ("id", .string(id)),
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
      let warnings = json["warnings"]?.arrayValue
    else { return nil }
    (self.verb, self.path, self.code, self.id) = (verb, path, code, id)
    self.asked = asked.compactMap(\.stringValue)
    var facts = SubjectFacts()
    facts.identifier = json["udid"]?.stringValue
    facts.deviceName = json["device_name"]?.stringValue
    facts.date = json["made"]?.stringValue.flatMap { Timestamp.date(from: $0) }
    facts.isEncrypted = json["encrypted"]?.booleanValue
    facts.state = json["state"]?.stringValue
    facts.digest = json["digest"]?.stringValue
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
