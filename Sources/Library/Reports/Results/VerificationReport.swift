package import KeyhaulKit

/// The result of verifying a backup (`backup-verification/1`). The text has a row for each check, its faults, and a
/// conclusion about this copy.
package struct VerificationReport {
  package let verification: BackupVerification
  /// The path of the backup, as the user typed it.
  package let name: String
  /// The source device according to the backup. Untrusted.
  let device: String?
  /// Whether the user asked for a check without the password.
  let isQuickRequested: Bool
  /// The items' evidence about the given device key; `nil` if no key was given or tried.
  package let deviceKey: DeviceKeyVerdict?
  /// Whether the user required a seal.
  let requiresSeal: Bool

  package init(
    _ verification: BackupVerification, of name: String, device: String?, isQuickRequested: Bool,
    deviceKey: DeviceKeyVerdict? = nil, requiresSeal: Bool = false
  ) {
    self.verification = verification
    self.name = name
    self.device = device
    self.isQuickRequested = isQuickRequested
    self.deviceKey = deviceKey
    self.requiresSeal = requiresSeal
  }

  package var json: JSONValue { VerificationDocument(verification, of: name, deviceKey: deviceKey).json }

  package struct Line {
    package let text: String
    package var color: Color?
  }

  /// The maximum number of faults that are listed for a check, unless all are requested.
  package static let defaultFaultLimit = 10

  package func lines(style: TextStyle, showsAll: Bool) -> [Line] {
    var lines: [Line] = []
    for id in BackupVerification.CheckID.allCases {
      if let check = verification.checks.first(where: { $0.id == id }) {
        lines += Self.lines(
          of: id, state: check.isOK ? "ok" : "FAIL", detail: check.detail, color: check.isOK ? nil : .red, style: style)
        if !check.isOK { lines += faultLines(of: check, style: style, showsAll: showsAll) }
      }
      if let skipped = verification.unchecked.first(where: { $0.id == id }) {
        lines += Self.lines(
          of: id, state: "-", detail: "not checked: \(skipped.reason)", color: .faint, style: style)
      }
    }
    // These lines are about items that no backup contains, so they are shown only if items were checked.
    if verification.items != nil { lines += BackupBlindSpots.lines(style: style).map { Line(text: $0) } }
    let color: Color? = verification.isFaultless ? nil : .red
    let sentences = [conclusion, deviceKeySentence, sealSentence].compactMap(\.self).joined(separator: " ")
    return lines
      + WordWrap.lines(of: style.adapted(UntrustedText.escaped(sentences)), columns: style.width).map {
        Line(text: $0, color: color)
      }
  }

  private var deviceKeySentence: String? {
    switch deviceKey {
    case .foreign: "The given device key decrypts none of the items that need one."
    case .mixed: "The given device key decrypts only some of the items that need one."
    case .unproven where verification.items != nil:
      "No item needs a device key, so nothing shows whether the given one is right."
    case .proven, .unproven, nil: nil
    }
  }

  private var sealSentence: String? {
    requiresSeal && verification.sealState == .missing ? "It has no seal, so a removed seal would go unnoticed." : nil
  }

  private static let margin = "  "
  private static let stateColumns = 5
  private static let nameColumns = 13

  /// Returns the lines of a check, such as "  ok   files        264 of 264 match their digests". Only the first line has
  /// the color.
  private static func lines(
    of id: BackupVerification.CheckID, state: String, detail: String, color: Color?, style: TextStyle
  ) -> [Line] {
    let label =
      margin + DisplayWidth.padded(state, columns: stateColumns)
      + DisplayWidth.padded(id.rawValue, columns: nameColumns)
    // Names in errors are already escaped.
    let escaped = UntrustedText.escaped(detail, keepingEscapes: true)
    return WordWrap.labeled(label, style.adapted(escaped), columns: style.width).enumerated().map { index, line in
      Line(text: line, color: index == 0 ? color : nil)
    }
  }

  /// Returns the lines about the faults that the detail of the check does not already contain.
  private func faultLines(
    of check: BackupVerification.Check, style: TextStyle, showsAll: Bool
  ) -> [Line] {
    // Many faults of the seal have the same reason, so the location must be compared too.
    let faults = verification.faults.filter { fault in
      fault.check == check.id && !check.detail.contains(fault.check == .seal ? fault.reasonWithLocation : fault.reason)
    }
    let listedFaults = showsAll ? faults[...] : faults.prefix(Self.defaultFaultLimit)
    let indentation = String(repeating: " ", count: Self.margin.count + Self.stateColumns + Self.nameColumns)
    var lines = listedFaults.flatMap { fault in
      var escapedFault = fault
      escapedFault.file = fault.file.map { UntrustedText.escaped($0) }
      return WordWrap.labeled(
        indentation, style.adapted(UntrustedText.escaped(escapedFault.reasonWithLocation, keepingEscapes: true)),
        columns: style.width)
    }
    let totalCount = verification.faultCount[check.id, default: 0]
    // The detail of the check already mentions the faults that are not in `faults`.
    let mentionedCount = verification.faults.count { $0.check == check.id } - faults.count
    let omittedCount = totalCount - listedFaults.count - mentionedCount
    if omittedCount > 0, !listedFaults.isEmpty {
      // A verification counts all faults, but keeps only a limited number of them.
      let hint = showsAll ? "" : " (-v names \(totalCount > BackupVerification.maximumFaultCount ? "more" : "all"))"
      lines.append("\(indentation)\(style.ellipsis) \(HumanReadable.grouped(omittedCount)) more\(hint)")
    }
    return lines.map { Line(text: $0) }
  }

  // MARK: Conclusion

  /// The skipped checks, except the check of the seal, because a backup needs no seal.
  private var skippedChecks: [BackupVerification.SkippedCheck] { verification.unchecked.filter { $0.id != .seal } }

  /// A clause about the source device that the backup names. Anyone could have changed this name.
  private var deviceClause: String { device.map { "the backup names \($0)" } ?? "the backup does not name the device" }

  /// The sentence that states whether this copy can be relied on.
  private var conclusion: String {
    switch verification.verdict {
    case .damaged:
      if verification.isHostile {
        return "\(name) contains something that no device writes: \(faultSummary). Don't trust it. Nothing was written."
      }
      let otherClause =
        verification.verifiedAllFiles ? "the rest is intact" : "no other fault was found\(undetectableChanges)"
      return verification.isOnlyIncomplete
        ? "\(name) is not complete: \(faultSummary); \(otherClause)."
        : "\(name) is damaged: \(faultSummary).\(intactPartsSentence)"
    case .unconfirmed:
      return "\(limitedNoFaultClause). It is not known whether the device finished the backup: "
        + "there is no \(verification.findings.contains(.stateMissing) ? "entry for it in Status.plist" : "Status.plist")."
    case .foreign:
      guard skippedChecks.isEmpty else { return partialConclusion }
      let count = verification.items?.deviceBound ?? 0
      let items = "\(HumanReadable.count(count, "item")) \(count == 1 ? "needs" : "need")"
      return "\(limitedNoFaultClause): its \(items) a device key (\(deviceClause))."
    case .unproven:
      guard skippedChecks.isEmpty else { return partialConclusion }
      return boundItemsClause.map { "\(noFaultClause); \($0)." } ?? "\(noFaultClause)."
    case .whole:
      guard let boundItemsClause else { return "\(name) is intact." }
      return verification.hardware.isMixed
        ? "\(limitedNoFaultClause): \(boundItemsClause)." : "\(name) is intact; \(boundItemsClause)."
    }
  }

  /// The conclusion if checks were skipped. It names these checks, or the command that makes them.
  private var partialConclusion: String {
    guard !verification.isQuick else {
      return "\(noFaultClause), as far as Keyhaul can check without the password; \(remainingChecks)."
    }
    return "\(limitedNoFaultClause); not checked: \(HumanReadable.list(skippedChecks.map(\.id.rawValue)))."
  }

  private var remainingChecks: String {
    isQuickRequested
      ? "\(SuggestedCommands.verifyingAll) checks the rest" : "verify checks the rest with the backup's password"
  }

  /// A clause that states that no fault was found. If some changes cannot be detected, it states this.
  private var noFaultClause: String {
    verification.verifiedAllFiles
      ? "Nothing in \(name) is damaged" : "No fault was found in \(name)\(undetectableChanges)"
  }

  /// `noFaultClause` if Keyhaul could not check everything in the backup.
  private var limitedNoFaultClause: String { "\(noFaultClause), as far as Keyhaul could check" }

  /// A remark about undetectable changes, such as " (264 files match their digests; 56 have no digest, so a change in
  /// them cannot be seen)"; empty if files were not checked.
  private var undetectableChanges: String {
    guard let files = verification.files else { return "" }
    let matching =
      files.withMatchingDigest == 1
      ? "1 file matches its digest" : "\(HumanReadable.count(files.withMatchingDigest, "file")) match their digests"
    let unproven =
      files.unread > 0
      ? "\(HumanReadable.grouped(files.unproven)) could not be compared with a digest"
      : "\(HumanReadable.grouped(files.withoutDigest)) \(files.withoutDigest == 1 ? "has" : "have") no digest"
    return " (\(matching); \(unproven), so a change in \(files.unproven == 1 ? "it" : "them") cannot be seen)"
  }

  /// The clause about items that could not be checked: "1 item could not be checked, because it needs a device key
  /// (the backup names old-phone)"; `nil` if all items were checked.
  private var boundItemsClause: String? {
    let count = verification.items?.deviceBound ?? 0
    guard count > 0 else { return nil }
    let pronoun = count == 1 ? "it" : "they"
    // If the device key decrypts only some classes, the device of the other classes is unknown.
    let reason =
      verification.hardware.isMixed
      ? "\(pronoun) cannot be decrypted with the available device key"
      : "\(pronoun) \(count == 1 ? "needs" : "need") a device key (\(deviceClause))"
    return "\(HumanReadable.count(count, "item")) could not be checked, because \(reason)"
  }
}
