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

  func caseRequest() throws(CommandFailure) -> CaseOptions.Request? {
    try caseReport.request(output: report.output, common, many, fields: chosen.fields)
  }

  func forCase() -> Inspect {
    var verb = self
    verb.report.output = nil
    verb.caseReport = CaseOptions()
    return verb
  }

  func alone(with path: String) -> Inspect {
    var verb = self
    verb.paths = [path]
    verb.report.output = nil
    verb.caseReport = CaseOptions()
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
    AnswerColumn("product_type", at: "device", "product_type"), AnswerColumn("model", at: "device", "model_name"),
    AnswerColumn("ios", at: "device", "product_version"), AnswerColumn("build", at: "device", "build_version"),
    AnswerColumn("serial_number", at: "device", "serial_number"), AnswerColumn("bytes", at: "bytes"),
    AnswerColumn("files", at: "files"),
    AnswerColumn("items") { document in itemCount(in: document).map { .integer($0) } },
    AnswerColumn("missing_files", at: "missing"),
  ]

  static let textColumns = [
    AnswerTextColumn(title: "MODEL", width: 14) { document in
      let device = document["device"]
      return device?["model_name"]?.stringValue ?? device?["product_type"]?.stringValue
    },
    AnswerTextColumn(title: "IOS", width: 15, label: "iOS ") { document in
      guard let device = document["device"], let version = device["product_version"]?.stringValue else { return nil }
      return version + (device["build_version"]?.stringValue.map { " (\($0))" } ?? "")
    },
    AnswerTextColumn(title: "SERIAL", width: 12, label: "serial number ") { document in
      document["device"]?["serial_number"]?.stringValue
    },
    AnswerTextColumn(title: "ITEMS", width: 6, isRightAligned: true, label: "items: ") { document in
      itemCount(in: document).map { HumanReadable.grouped($0) }
    },
    AnswerTextColumn(title: "BYTES", width: 15, isRightAligned: true, label: "bytes: ") { document in
      document["bytes"]?.integerValue.map { HumanReadable.grouped($0) }
    },
  ]

  static func result(in document: JSONValue, code: Int32) -> BackupResult? {
    guard code == 0 else { return nil }
    guard let keychain = document["keychain"] else {
      // Another tool's dump lists its items.
      return document["by_table"] == nil ? nil : .counted
    }
    if keychain["present"]?.booleanValue == false { return .noKeychain }
    return itemCount(in: document) == nil ? .notCounted : .counted
  }

  static func reason(in document: JSONValue, code: Int32) -> String? {
    var parts: [String] = []
    if let missing = document["missing"]?.integerValue, missing > 0 {
      parts.append(
        "\(HumanReadable.count(Int(clamping: missing), "listed file")) \(missing == 1 ? "is" : "are") not stored")
    }
    let groups = document["keychain"]?["sealed"]?.arrayValue ?? []
    let damaged = groups.reduce(Int64(0)) { sum, group in
      let isDamage = group["reason"]?.stringValue.flatMap(Reason.init(rawValue:))?.isDamage == true
      return sum + (isDamage ? group["count"]?.integerValue ?? 0 : 0)
    }
    if damaged > 0 {
      parts.append("\(HumanReadable.count(Int(clamping: damaged), "item")) \(damaged == 1 ? "is" : "are") damaged")
    }
    if parts.isEmpty, let first = document["findings"]?.arrayValue?.first?["detail"]?.stringValue { return first }
    return parts.isEmpty ? nil : HumanReadable.list(parts)
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

  func caseRequest() throws(CommandFailure) -> CaseOptions.Request? {
    try caseReport.request(output: report.output, common, many, fields: chosen.fields)
  }

  func forCase() -> Verify {
    var verb = self
    verb.report.output = nil
    verb.caseReport = CaseOptions()
    return verb
  }

  func alone(with path: String) -> Verify {
    var verb = self
    verb.paths = [path]
    verb.report.output = nil
    verb.caseReport = CaseOptions()
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

  static func reason(in document: JSONValue, code: Int32) -> String? {
    let faults = document["faults"]?.arrayValue ?? []
    // A missing file is the least of several faults.
    let isMissing = { (fault: JSONValue) in
      fault["id"]?.stringValue == BackupVerification.Fault.Kind.payloadMissing.rawValue
    }
    if let worst = faults.first(where: { !isMissing($0) }) ?? faults.first {
      let count = Int(clamping: document["fault_count"]?.integerValue ?? 0)
      return VerificationDocument.sentence(of: worst)
        + (count > 1 ? ", and \(HumanReadable.count(count - 1, "other fault"))" : "")
    }
    if document["verdict"]?.stringValue == "unconfirmed" {
      return "nothing says whether the device finished the backup"
    }
    switch document["device_key"]?.stringValue.flatMap(DeviceKeyVerdict.init(rawValue:)) {
    case .foreign: return "the given device key decrypts none of the items that need one"
    case .divided: return "the given device key decrypts only some of the items that need one"
    case .proven, .unproven, nil: break
    }
    let unchecked = (document["checks"]?.arrayValue ?? []).first { $0["checked"]?.booleanValue == false }
    if let detail = unchecked?["detail"]?.stringValue { return "\(unchecked?["id"]?.stringValue ?? ""): \(detail)" }
    return document["seal"]?.stringValue == "missing" ? "it has no seal" : nil
  }

  static func result(in document: JSONValue, code: Int32) -> BackupResult? {
    if code == 0, document["verdict"] == nil { return document["whole"]?.booleanValue == true ? .consistent : nil }
    guard code == 0 || code == 3 else { return nil }
    if let word = document["verdict"]?.stringValue.flatMap(BackupResult.init(rawValue:)), word.code == code {
      return word
    }
    switch document["device_key"]?.stringValue.flatMap(DeviceKeyVerdict.init(rawValue:)) {
    case .foreign, .divided: return .otherDeviceKey
    case .proven, .unproven, nil: return document["seal"]?.stringValue == "missing" ? .noSeal : nil
    }
  }
}
