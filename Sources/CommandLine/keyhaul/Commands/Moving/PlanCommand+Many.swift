import KeyhaulKit

extension PlanCommand {
  /// The members of each of `items` in `migration-plan/1`.
  static let table = FieldTable(
    "items",
    [
      "index", "kind", "label", "account", "service", "server", "access_group", "protection", "outcome", "change",
      "reason", "detail", "warning",
    ])
  static let rowsAdvice = "--to DEVICE, without --compare, --by-app, --audit and --expect; or several backups"
  var rows: FieldTable? { move.to != nil && view == nil && expect == nil ? Self.table : nil }

  static var takesDevices: Bool { true }

  func alone(with path: String) -> PlanCommand {
    var verb = self
    verb.paths = [path]
    verb.output = nil
    verb.common.askNothing()
    return verb
  }

  func checkMany() throws(CommandFailure) {
    try checkFlags()
    if redact {
      throw .usage(
        "--redact works only with the plan of one backup", why: "each row names its backup",
        try: "plan BACKUP --redact, one after the other")
    }
    if output != nil, common.format == nil, !common.json {
      throw .usage(
        "-o saves the plan of one backup", why: "for many backups there is a table, which restore does not accept",
        try: "--format text, json, ndjson or csv for a file with their answers")
    }
    guard expect == "-" else { return }
    throw .usage(
      "for many plans, --expect needs a file", why: "standard input can be read only once",
      try: "--expect FILE")
  }

  /// A target is no argument, and two sources are rarely a backup and a device.
  func warnOfMany(in session: Session) throws(CommandFailure) {
    guard paths.count == 2, move.to == nil else { return }
    let (home, target) = (try session.homeDirectory(), paths[1])
    let isFileToo = ((try? FileSystem.real.status(of: target)) ?? nil) != nil
    guard Self.isDevice(target, home: home), !isFileToo, !Self.isDevice(paths[0], home: home) else { return }
    session.warn(
      "\(target) would be planned as the source device", why: "the target device follows --to",
      try: "--to \(ShellWord.quoted(target))")
  }

  var shownParts: [String] {
    (move.to.map { ["--to", ShellWord.quoted($0)] } ?? []) + (view.map { [$0.flag] } ?? [])
  }

  /// With the target as it is now: an answer about an earlier state of it is another one.
  func asked(in session: Session) throws -> [String] {
    var flags = unlocking.opening.asked + common.detail
    if let view { flags.append(view.flag) }
    if let expect { flags.append("--expect \(expect)") }
    if let maker { flags.append("--source \(maker)") }
    if exitCode { flags.append("--exit-code") }
    if noPassword { flags.append("--no-password") }
    guard let to = move.to else { return flags }
    let finder = try ArgumentFinder(session, databaseKeys)
    let target = try self.target(to, finder)
    let revision = try target.hold(.reading) { $0.record.revision }
    return flags + ["--to \(target.name) \(revision)", "--existing \(move.policy.rawValue)"]
  }

  static let columns = [
    AnswerColumn("total") { counts(in: $0)?.total.map { .integer($0) } },
    AnswerColumn("arrives") { counts(in: $0)?.arrives.map { .integer($0) } },
    AnswerColumn("stays_behind") { member("stays_behind", in: $0) },
    AnswerColumn("unreadable") { member("unreadable", in: $0) }, AnswerColumn("removed") { member("removed", in: $0) },
  ]

  static func finding(in document: JSONValue) -> String? {
    guard let counts = counts(in: document), let total = counts.total, let arrives = counts.arrives else { return nil }
    return "\(Amounts.grouped(arrives)) of \(Amounts.grouped(total)) arrive"
  }

  /// Where a document counts: of a plan in its summary, of a plan without a target in what a new device would get.
  private static func summary(of document: JSONValue) -> JSONValue? {
    document["summary"] ?? document["futures"]?.arrayValue?.first
  }

  private static func member(_ name: String, in document: JSONValue) -> JSONValue? { summary(of: document)?[name] }

  private static func counts(in document: JSONValue) -> (total: Int64?, arrives: Int64?)? {
    guard let summary = summary(of: document) else { return nil }
    return (summary["total"]?.integerValue, (summary["migrates"] ?? summary["arrives"])?.integerValue)
  }
}
