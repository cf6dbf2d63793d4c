package import KeyhaulKit

/// The result of verifying a backup (`backup-verification/1`).
package struct VerificationDocument {
  let verification: BackupVerification
  let name: String
  let deviceKey: DeviceKeyVerdict?

  /// Creates the document of a verification.
  ///
  /// - Parameters:
  ///   - verification: The result of the verification.
  ///   - name: The path of the backup, as the user typed it.
  ///   - deviceKey: The items' evidence about the given device key; `nil` if no key was given or tried.
  package init(_ verification: BackupVerification, of name: String, deviceKey: DeviceKeyVerdict? = nil) {
    self.verification = verification
    self.name = name
    self.deviceKey = deviceKey
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "backup-verification/1", "archive": .string(name), "quick": .boolean(verification.isQuick),
      "checks": .array(
        verification.checks.map { check in
          ["id": .string(check.id.rawValue), "ok": .boolean(check.isOK), "detail": .string(check.detail)]
        }),
      "unchecked": .array(
        verification.unchecked.map { ["id": .string($0.id.rawValue), "detail": .string($0.reason)] }),
      "faults": .array(verification.faults.map(Self.json)),
      "fault_count": .count(verification.faultCount.values.reduce(0, +)),
      "findings": .array(verification.findings.map(\.json)),
      "notes": .array(verification.notes.map { .string($0) }),
      "files": verification.files.map(Self.json) ?? .null,
      "items": verification.items.map { items in
        [
          "readable": .count(items.readable), "device_bound": .count(items.deviceBound),
          "damaged": .count(items.damaged),
        ]
      } ?? .null,
      "verdict": .string(BackupResult(verification).rawValue), "whole": .boolean(verification.isWhole),
      "hostile": .boolean(verification.isHostile), "seal": .text(verification.sealState?.rawValue),
      "device_key": .text(deviceKey?.rawValue),
    ]
    return document.adding([BackupBlindSpots.field])
  }

  /// Returns a fault or finding of a document as a sentence, with its file and the index of its item.
  package static func sentence(of fault: JSONValue) -> String {
    let location = (fault["file"] ?? fault["place"])?.stringValue
    let itemText = fault["index"]?.integerValue.map { "item \($0)" }
    return [location, itemText, fault["detail"]?.stringValue].compactMap(\.self).joined(separator: ": ")
  }

  private static func json(_ files: BackupVerification.FileCounts) -> JSONValue {
    [
      "listed": .count(files.listed), "present": .count(files.present),
      "empty_not_stored": .count(files.emptyWithoutPayload), "missing": .count(files.missing),
      "surplus": .count(files.unlisted), "digests_right": .count(files.withMatchingDigest),
      "without_digest": .count(files.withoutDigest), "padding_right": .count(files.withValidPadding),
      "other_size": .count(files.sizeMismatches),
      "unread": .count(files.unread),
    ]
  }

  private static func json(_ fault: BackupVerification.Fault) -> JSONValue {
    var fields: [(String, JSONValue)] = [
      ("check", .string(fault.check.rawValue)), ("id", .string(fault.kind.rawValue)),
    ]
    if let file = fault.file { fields.append(("file", .string(file))) }
    if let offset = fault.offset { fields.append(("offset", .count(offset))) }
    if let byteCount = fault.byteCount { fields.append(("bytes", .count(byteCount))) }
    if let item = fault.item { fields.append(("index", .count(item))) }
    return .object(fields + [("detail", .string(fault.reason))])
  }
}

/// The items' evidence about a given device key. The raw value is the identifier in machine-readable output.
package enum DeviceKeyVerdict: String, Sendable {
  /// The key decrypts items of every class that needs one.
  case proven
  /// The key decrypts items of some classes that need one, and no items of others.
  case mixed = "divided"
  /// The key decrypts none of the items that need a device key.
  case foreign
  /// No item needs a device key.
  case unproven

  /// Creates the verdict about a device key.
  ///
  /// - Parameters:
  ///   - evidence: The evidence from the items.
  ///   - isForeign: Whether another key was used instead, because the given key decrypts none of the items.
  package init(_ evidence: DeviceKeyEvidence, isForeign: Bool) {
    if isForeign || evidence.isSameDevice == false {
      self = .foreign
    } else if evidence.isMixed {
      self = .mixed
    } else {
      self = evidence.proven.isEmpty ? .unproven : .proven
    }
  }

  /// Whether the key decrypts all items that need a device key; `nil` if no item needs one.
  package var decryptsAllBoundItems: Bool? {
    switch self {
    case .proven: true
    case .mixed, .foreign: false
    case .unproven: nil
    }
  }
}
