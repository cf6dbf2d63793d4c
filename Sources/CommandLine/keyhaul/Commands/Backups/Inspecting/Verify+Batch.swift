import ArgumentParser
import KeyhaulKit
import Reports

extension Verify {
  static let fieldsAdvice = "several backups, or --json"
  var fieldTable: FieldTable? { nil }

  func listing(of folders: [String]) throws -> any BatchCommand { try Inspect.parse(folders) }

  func validateBatch() throws(CommandError) { try checkFlags() }

  var suggestedFlags: [String] { (quick ? ["--quick"] : []) + (sealed ? ["--sealed"] : []) }
  var usesPassword: Bool { !quick }
  var needsPassword: Bool { !quick }

  func resultParameters(in session: Session) -> [String] {
    suggestedFlags + accessOptions.decryption.resultParameters + common.detail
  }

  static let csvColumns = [
    ResultColumn("verdict", at: "verdict"), ResultColumn("faults", at: "fault_count"),
    ResultColumn("readable", at: "items", "readable"), ResultColumn("device_bound", at: "items", "device_bound"),
    ResultColumn("damaged", at: "items", "damaged"), ResultColumn("seal", at: "seal"),
    ResultColumn("device_key", at: "device_key"),
  ]

  static func reason(in document: JSONValue, code: Int32) -> String? {
    let faults = document["faults"]?.arrayValue ?? []
    // A missing file is less serious than any other fault.
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
    case .mixed: return "the given device key decrypts only some of the items that need one"
    case .proven, .unproven, nil: break
    }
    let skippedCheck = (document["checks"]?.arrayValue ?? []).first { $0["checked"]?.booleanValue == false }
    if let skippedCheck, let detail = skippedCheck["detail"]?.stringValue {
      return "\(skippedCheck["id"]?.stringValue ?? ""): \(detail)"
    }
    return document["seal"]?.stringValue == "missing" ? "it has no seal" : nil
  }

  static func result(in document: JSONValue, code: Int32) -> BackupResult? {
    // The document of a keychain database has "whole" instead of a verdict.
    if code == 0, document["verdict"] == nil { return document["whole"]?.booleanValue == true ? .consistent : nil }
    guard [CommandExitStatus.ok.code, CommandExitStatus.partial.code].contains(code) else { return nil }
    let verdict = document["verdict"]?.stringValue.flatMap(BackupResult.init(rawValue:))
    if let verdict, verdict.code == code { return verdict }
    switch document["device_key"]?.stringValue.flatMap(DeviceKeyVerdict.init(rawValue:)) {
    case .foreign, .mixed: return .otherDeviceKey
    case .proven, .unproven, nil: return document["seal"]?.stringValue == "missing" ? .noSeal : nil
    }
  }
}
