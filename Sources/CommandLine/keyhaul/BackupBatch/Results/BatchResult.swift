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
  /// The kind of result, whose exit code is `code`. `result` in JSON.
  let outcome: BackupResult
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
    self.verb = verb
    self.parameters = parameters
    self.path = path
    self.metadata = metadata
    self.isArchivedCopy = isArchivedCopy
    self.warnings = warnings
    self.document = document
    code = status.code
    id = status.id
    error = failure.map { Failure(message: $0.message, why: $0.why, advice: $0.advice) }
    // A kind of result is used only with its own exit code.
    let matchingResult = result.flatMap { $0.code == status.code ? $0 : nil }
    let outcome = matchingResult ?? BackupResult(rawValue: status.id) ?? .failed
    self.outcome = outcome
    if status == .ok {
      self.reason = nil
    } else {
      // The document's own reason is more precise than the error's.
      self.reason = reason ?? Self.reason(failure: failure, warnings: warnings) ?? Self.headline(of: outcome)
    }
  }

  /// Returns the reason that the error states, or the first warning if there is no error.
  private static func reason(failure: CommandError?, warnings: [CapturedOutput.Warning]) -> String? {
    if let failure { return failure.message + (failure.why.map { ": \($0)" } ?? "") }
    return warnings.first.map { $0.message + ($0.why.map { ": \($0)" } ?? "") }
  }

  /// Returns the headline of a result's page in `explain`.
  static func headline(of outcome: BackupResult) -> String? {
    Explanation.all.first { $0.id == outcome.rawValue }?.headline
  }

  /// The last component of the path.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// Whether the result depends only on the backup, so that another run would give the same result. A wrong password or
  /// a full disk, for example, is not a property of the backup.
  var dependsOnlyOnBackup: Bool {
    let codes: [CommandExitStatus] = [.ok, .differs, .partial, .damaged, .refused]
    return codes.contains { $0.code == code }
  }

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
      ("code", .integer(Int64(code))), ("id", .string(id)), ("result", .string(outcome.rawValue)),
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
    self.verb = verb
    self.path = path
    self.code = code
    self.id = id
    self.parameters = parameters.compactMap(\.stringValue)
    outcome = result
    reason = json["reason"]?.stringValue
    metadata = BackupMetadata(result: json)
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

extension BackupMetadata {
  /// Reads the metadata from a result. Results do not contain the seal's code.
  fileprivate init(result json: JSONValue) {
    self.init()
    identifier = json["udid"]?.stringValue
    deviceName = json["device_name"]?.stringValue
    date = json["made"]?.stringValue.flatMap { Timestamp.date(from: $0) }
    isEncrypted = json["encrypted"]?.booleanValue
    state = json["state"]?.stringValue
    digest = json["digest"]?.stringValue
    hasSeal = json["has_seal"]?.booleanValue
  }
}

extension CapturedOutput {
  /// Parses the document of a command on one backup. Adds a warning if the document is too large for a combined result.
  ///
  /// - Parameters:
  ///   - queued: The backup.
  ///   - command: The full name of the command, for the warning's advice.
  ///   - limit: The maximum number of JSON values.
  func document(
    of queued: QueuedBackup, by command: String, acceptingAtMost limit: Int = JSONValue.maximumValueCount
  ) -> JSONValue? {
    let document = try? JSONValue(parsing: result, acceptingAtMost: limit)
    if document == nil, !result.isEmpty {
      add(
        Warning(
          "its result is left out here", why: "it is too large for a combined result",
          try: "\(command) \(ShellQuoting.argument(queued.path, placeholder: "ARCHIVE"))"))
    }
    return document
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
    self.init(name) { document in path.reduce(document) { value, member in value?[member] } }
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
