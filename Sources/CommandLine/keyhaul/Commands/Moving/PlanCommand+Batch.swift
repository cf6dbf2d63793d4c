import ArgumentParser
import KeyhaulKit
import Reports

/// `plan` for many backups in one call.
extension PlanCommand {
  /// The members of each element of `items` in `migration-plan/1`.
  static let table = FieldTable(
    rows: "items",
    fields: [
      "index", "kind", "label", "account", "service", "server", "access_group", "protection", "outcome", "change",
      "reason", "detail", "warning",
    ])
  /// The members of each element of `items` in `migration-futures/1`.
  static let outlookTable = FieldTable(
    rows: "items",
    fields: ["index", "kind", "label", "account", "service", "server", "access_group", "protection", "outcomes"])
  static let fieldsAdvice = "a plan without --compare, --by-app, --audit or --expect; or several backups"
  var fieldTable: FieldTable? {
    guard view == nil, expect == nil else { return nil }
    return move.to == nil ? Self.outlookTable : Self.table
  }

  static var acceptsDevices: Bool { true }
  var needsPassword: Bool { true }

  func listing(of folders: [String]) throws -> any BatchCommand { try Inspect.parse(folders) }

  func command(for path: String) -> PlanCommand {
    var command = self
    command.paths = [path]
    command.output = nil
    command.common.limitOutputToDocument()
    return command
  }

  func validateBatch() throws(CommandError) {
    try checkFlags()
    if redact {
      throw .usage(
        "--redact works only with the plan of one backup", why: "each row names its backup",
        try: "plan BACKUP --redact for each backup")
    }
    if output != nil, common.format == nil, !common.json {
      throw .usage(
        "-o saves the plan of one backup", why: "several backups produce a table, which restore does not accept",
        try: "--format text, json, ndjson or csv, to save their results")
    }
    guard expect == "-" else { return }
    throw .usage(
      "for many plans, --expect needs a file", why: "standard input can be read only once",
      try: "--expect FILE")
  }

  /// Warns if the second of two arguments is a device, which was probably meant as the target.
  func warnAboutArguments(in session: Session) throws(CommandError) {
    guard paths.count == 2, move.to == nil else { return }
    let target = paths[1]
    let isFileToo = ((try? FileSystem.real.status(of: target)) ?? nil) != nil
    guard try session.isDeviceName(target), !isFileToo, try !session.isDeviceName(paths[0]) else { return }
    session.warn(
      "\(target) would be treated as a source device", why: "the target device follows --to",
      try: "--to \(ShellQuoting.quote(target))")
  }

  var suggestedFlags: [String] {
    (move.to.map { ["--to", ShellQuoting.quote($0)] } ?? []) + (view.map { [$0.flag] } ?? [])
  }

  /// Returns the parameters on which the result depends. They include the target's revision, because a result for an
  /// earlier revision must not be reused.
  func resultParameters(in session: Session) throws -> [String] {
    var flags = accessOptions.decryption.resultParameters + common.detail
    if let view { flags.append(view.flag) }
    if let expect { flags.append("--expect \(expect)") }
    if let sourceDevice { flags.append("--source \(sourceDevice)") }
    if exitCode { flags.append("--exit-code") }
    if noPassword { flags.append("--no-password") }
    guard let targetName = move.to else { return flags }
    let resolver = try SourceResolver(session, databaseKeys)
    let target = try self.target(targetName, resolver)
    let revision = try target.withSession(.reading) { $0.record.revision }
    return flags + ["--to \(target.name) \(revision)", "--existing \(move.policy.rawValue)"]
  }

  func inputs(in session: Session) throws -> [(flag: String, content: [UInt8])] {
    var inputs: [(flag: String, content: [UInt8])] = []
    if let expect { inputs.append(("--expect", try ExpectationFile.bytes(of: expect, in: session))) }
    let resolver = try SourceResolver(session, databaseKeys)
    if let targetName = move.to {
      inputs.append(("--to", try target(targetName, resolver).withSession(.reading) { try $0.identity() }))
    }
    if let sourceDevice {
      inputs.append(("--source", try resolver.device(sourceDevice).withSession(.reading) { try $0.identity() }))
    }
    return inputs
  }

  static let csvColumns = [
    ResultColumn("total") { counts(in: $0)?.total.map { .integer($0) } },
    ResultColumn("arrives") { counts(in: $0)?.arrives.map { .integer($0) } },
    ResultColumn("stays_behind") { member("stays_behind", in: $0) },
    ResultColumn("unreadable") { member("unreadable", in: $0) }, ResultColumn("removed") { member("removed", in: $0) },
  ]

  static let textColumns = [
    ResultTextColumn(title: "MOVE", width: 14, isShown: isMoveKnown) { document in
      guard let counts = counts(in: document), let total = counts.total, let arrives = counts.arrives else {
        return nil
      }
      return "\(HumanReadable.grouped(arrives)) of \(HumanReadable.grouped(total))"
    }
  ]

  /// Returns whether the number of moved items is meaningful. If the backup must be repaired before a restore, the number
  /// is not.
  @Sendable private static func isMoveKnown(_ result: BatchResult) -> Bool {
    guard let document = result.document else { return false }
    let findings = document["findings"]?.arrayValue ?? []
    if findings.contains(where: { $0["restorable"]?.booleanValue == false }) { return false }
    // Exit code `partial` means that items are unreadable or, if none is, that the backup is damaged.
    let unreadable = member("unreadable", in: document)?.integerValue ?? 0
    return result.code != CommandExitStatus.partial.code || unreadable > 0
  }

  static func result(in document: JSONValue, code: Int32) -> BackupResult? {
    guard code == 0 else { return nil }
    return document["expectations"] == nil && document["met"] == nil ? .planned : .asExpected
  }

  static func reason(in document: JSONValue, code: Int32) -> String? {
    if let misses = document["misses"]?.arrayValue, !misses.isEmpty {
      return "\(HumanReadable.count(misses.count, "expectation")) \(misses.count == 1 ? "is" : "are") not met"
    }
    let summary = summary(of: document)
    if let count = summary?["unreadable"]?.integerValue, count > 0 {
      return "\(HumanReadable.count(Int(clamping: count), "item")) cannot be read"
    }
    // Items that a rule leaves behind are a reason only for --exit-code. Damage has its own warnings.
    guard code == CommandExitStatus.differs.code, let count = summary?["stays_behind"]?.integerValue, count > 0 else {
      return nil
    }
    return "\(HumanReadable.count(Int(clamping: count), "item")) \(count == 1 ? "does" : "do") not move"
  }

  /// Returns advice for a backup that moves no item because it has no password: the first step of its plan.
  static func note(on result: BatchResult) -> String? {
    guard result.code == 0, let document = result.document, isMoveKnown(result), counts(in: document)?.arrives == 0,
      document["source"]?["encrypted"]?.booleanValue == false,
      document["items"]?.arrayValue?.contains(where: needsBackupPassword) == true
    else { return nil }
    let cause = "the backup has no password"
    // A password would move at least one item, so the first step is to make a backup with a password. A plan for a
    // target has no steps.
    let step = document["before_wiping"]?.arrayValue?.first?["entries"]?.arrayValue?.first?["do"]?.stringValue
    return step.map { "\(cause). \($0)" } ?? cause
  }

  /// Returns whether an item stays behind only because the backup has no password.
  private static func needsBackupPassword(_ item: JSONValue) -> Bool {
    let outcome = item["outcomes"]?.arrayValue?.first ?? item
    return outcome["reason"]?.stringValue == Reason.backupNotEncrypted.rawValue
  }

  /// Returns the object with a document's counts: the summary of a plan, or the restore to a new device if the plan has
  /// no target.
  private static func summary(of document: JSONValue) -> JSONValue? {
    document["summary"] ?? document["futures"]?.arrayValue?.first
  }

  private static func member(_ name: String, in document: JSONValue) -> JSONValue? { summary(of: document)?[name] }

  private static func counts(in document: JSONValue) -> (total: Int64?, arrives: Int64?)? {
    guard let summary = summary(of: document) else { return nil }
    return (summary["total"]?.integerValue, (summary["migrates"] ?? summary["arrives"])?.integerValue)
  }
}
