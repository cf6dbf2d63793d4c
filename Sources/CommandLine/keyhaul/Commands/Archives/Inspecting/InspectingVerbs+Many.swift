import ArgumentParser
import KeyhaulKit
import Reports

extension Inspect {
  /// The members of each of `items`, of a backup and of another tool's dump.
  static let table = FieldTable(
    "items",
    [
      "index", "entry", "kind", "label", "account", "service", "server", "access_group", "protection", "readable",
      "table_stated", "attributes_readable", "secret_readable", "secret_rendered", "unusable_attributes", "reason",
      "detail",
    ])
  static let rowsAdvice = "--list, or several backups"
  var rows: FieldTable? { part == .list ? Self.table : nil }

  var output: String? { report.output }

  static let listsBackups = true

  func listing(of folders: [String]) -> any BackupVerb {
    var verb = self
    verb.paths = folders
    return verb
  }

  func alone(with path: String) -> Inspect {
    var verb = self
    verb.paths = [path]
    verb.report.output = nil
    verb.common.askNothing()
    return verb
  }

  func checkMany() throws(CommandFailure) {
    guard !hash else {
      throw .usage("--hash accepts one backup", why: "it prints one line", try: "keyhaul inspect --hash ARCHIVE")
    }
  }

  var needsPassword: Bool { part == .list || part == .tree }

  var shownParts: [String] { part.map { ["--\($0.rawValue)"] } ?? [] }

  func asked(in session: Session) -> [String] {
    (part.map { ["--\($0.rawValue)"] } ?? []) + unlocking.opening.asked + common.detail
  }

  static let columns = [
    AnswerColumn("files", at: "files"),
    AnswerColumn("items") { document in itemCount(in: document).map { .integer($0) } },
    AnswerColumn("missing_files", at: "missing"),
  ]

  static func finding(in document: JSONValue) -> String? {
    if let count = itemCount(in: document) { return HumanReadable.count(Int(clamping: count), "item") }
    guard let keychain = document["keychain"] else { return nil }
    return keychain["present"]?.booleanValue == false ? "no keychain" : "items encrypted"
  }

  private static func itemCount(in document: JSONValue) -> Int64? {
    document["keychain"]?["items"]?.fields?.reduce(0) { $0 + ($1.1.integerValue ?? 0) }
  }
}

extension Verify {
  static let rowsAdvice = "several backups, or --json"
  var rows: FieldTable? { nil }

  var output: String? { report.output }

  func listing(of folders: [String]) throws -> any BackupVerb { try Inspect.parse(folders) }

  func alone(with path: String) -> Verify {
    var verb = self
    verb.paths = [path]
    verb.report.output = nil
    verb.common.askNothing()
    return verb
  }

  func checkMany() throws(CommandFailure) { try checkFlags() }

  var shownParts: [String] { (quick ? ["--quick"] : []) + (sealed ? ["--sealed"] : []) }
  var usesPassword: Bool { !quick }
  var needsPassword: Bool { !quick }

  func asked(in session: Session) -> [String] {
    shownParts + unlocking.opening.asked + common.detail
  }

  static let columns = [
    AnswerColumn("verdict", at: "verdict"), AnswerColumn("faults", at: "fault_count"),
    AnswerColumn("readable", at: "items", "readable"), AnswerColumn("device_bound", at: "items", "device_bound"),
    AnswerColumn("damaged", at: "items", "damaged"), AnswerColumn("seal", at: "seal"),
    AnswerColumn("device_key", at: "device_key"),
  ]

  static func reason(in document: JSONValue) -> String? {
    let faults = document["faults"]?.arrayValue ?? []
    if let first = faults.first, let detail = first["detail"]?.stringValue {
      let count = Int(clamping: document["fault_count"]?.integerValue ?? 0)
      let place = first["file"]?.stringValue.map { "\($0): " } ?? ""
      return place + detail + (count > 1 ? ", and \(HumanReadable.count(count - 1, "other fault"))" : "")
    }
    if document["verdict"]?.stringValue == "unconfirmed" {
      return "nothing says whether the device finished the backup"
    }
    if document["device_key"]?.stringValue == DeviceKeyVerdict.foreign.rawValue {
      return "the given device key decrypts none of the items that need one"
    }
    return document["seal"]?.stringValue == "missing" ? "it has no seal" : nil
  }

  static func finding(in document: JSONValue) -> String? {
    guard let verdict = document["verdict"]?.stringValue else { return nil }
    return document["device_key"]?.stringValue == DeviceKeyVerdict.foreign.rawValue
      ? "other device key" : verdict
  }
}
