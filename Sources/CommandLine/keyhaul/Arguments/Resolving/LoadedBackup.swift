import KeyhaulKit
import Reports

/// A backup that was read, with the name that the user typed.
struct LoadedBackup {
  let name: String
  let archive: BackupArchive

  /// Warns if the backup's keys show that its seal does not match.
  ///
  /// - Throws: `.damaged` if a damaged backup prevents the check.
  func warnIfSealBroken(with keys: ClassKeys, in session: Session) throws(CommandError) {
    do throws(KeyhaulError) {
      if let violation = try archive.sealViolation(with: keys) { warn(about: .sealBroken(violation), in: session) }
    } catch {
      throw CommandError(backup: error, name: name)
    }
  }

  /// Warns about a finding, unless another part of the program warns about it.
  func warn(about finding: BackupFinding, in session: Session) {
    if finding.kind == .sealBroken {
      session.hasReadChangedBackup = true
      session.backupMetadata?.isSealBroken = true
    }
    switch notice(about: finding) {
    case .warning(let message, let advice, let ignoresQuiet):
      session.warn(message, why: finding.description, try: advice, ignoresQuiet: ignoresQuiet)
    case .detail: session.debug("\(UntrustedText.escaped(name)): \(finding)")
    case .reportedElsewhere: break
    }
  }

  /// The kind of message that a finding causes.
  private enum FindingNotice {
    /// A warning. The finding's description is the reason.
    case warning(_ message: String, advice: String, ignoresQuiet: Bool = false)
    /// A line that only `-v` prints, because nothing is lost and every command accepts the backup.
    case detail
    /// Another part of the program warns about the finding.
    case reportedElsewhere
  }

  /// Returns the kind of message that a finding causes.
  private func notice(about finding: BackupFinding) -> FindingNotice {
    switch finding {
    case .falseClaim, .decryptedCopy, .propertyListUnreadable: .reportedElsewhere
    case .keychainInXML, .keychainKeysUnknown, .listNamesNotUTF8: .detail
    case .payloadsRenamed:
      .warning(
        "some stored files of \(name) do not have the names that a device gives them",
        advice: "convert, which writes a copy with the right names")
    case .passwordDenied:
      .warning(
        "\(name) says that it has no password, but it was made with one", advice: Self.adviceForDeniedPassword,
        ignoresQuiet: true)
    case .wrapsUnusual:
      .warning(
        "\(name)'s keybag is not one that a device writes",
        advice: "another copy; results for items of these classes apply only to this copy", ignoresQuiet: true)
    case .manifestUnreadable:
      .warning(
        "\(name)'s \(finding.file) cannot be read",
        advice: "another copy; without this file, nothing in this copy can be decrypted")
    case .manifestMissing:
      .warning(
        "\(name) is not a whole backup",
        advice: "the backup that it was made from; no keychain item can be decrypted from this copy")
    case .classKeysDamaged:
      damagedKeybagWarning(consequence: "items that need those keys are lost in this copy")
    case .keybagUnusable:
      damagedKeybagWarning(consequence: "without a usable keybag, no item can be decrypted")
    case .keychainMissing, .keychainDamaged:
      .warning(
        "\(name)'s keychain cannot be read", advice: "another copy; verify shows what else is damaged in this copy")
    case .keybagMismatch(let file, let keybag):
      .warning(
        "\(name)'s keychain does not name the backup's keybag",
        advice: "another copy; no device restores this one: \(KeyhaulError.meaning(ofName: file, for: keybag))")
    case .sealBroken:
      .warning(
        "\(name) has changed since it was sealed",
        advice: "another copy; verify lists every file that has changed since", ignoresQuiet: true)
    case .versionMissing, .stateMissing, .listTrailingBytes, .listJournalUnread, .listDamaged, .listUnreadable:
      .warning(
        "\(name) has changed since the source device wrote it",
        advice: "another copy, or check its contents with verify")
    }
  }

  /// Returns the warning about a damaged keybag.
  private func damagedKeybagWarning(consequence: String) -> FindingNotice {
    .warning("\(name)'s keybag is damaged", advice: "another copy; \(consequence)")
  }

  /// The first finding that prevents a restore; `nil` if there is none.
  var findingThatBlocksRestore: BackupFinding? { archive.findings.first { $0.blocks(.restoring) } }

  /// Warns before the user types a password if the keybag's iteration count is not one that a device uses. If someone
  /// changed the count, even the right password fails.
  func warnAboutIterations(in session: Session) {
    // A valid keyed seal shows that the count is the original one.
    if let seal = archive.seal, seal.isKeyed, seal.violations.isEmpty { return }
    guard archive.isEncrypted, let parameters = try? archive.keybag.derivationParameters(),
      // Before using a far higher count, Keyhaul asks the user.
      parameters.excessiveIterations == nil,
      let unusual = parameters.nonstandardIterations(hasTwoSteps: archive.manifest.manifestKey != nil)
    else { return }
    let request =
      unusual.iterations == 0
      ? "skips the slow iterations"
      : "asks for \(HumanReadable.count(Int(unusual.iterations), "iteration"))"
    let usualCount = HumanReadable.grouped(Int(unusual.usual))
    let consequence =
      unusual.iterations < unusual.usual ? "passwords can be guessed faster" : "each attempt takes longer"
    session.warn(
      "\(name) \(request) to derive the key from its password; a device asks for \(usualCount)",
      why: "either the count was changed and no password works, or the backup was made this way and \(consequence)",
      try: "the source device's own copy, if it exists", ignoresQuiet: true)
  }

  /// Warns about the findings and other anomalies that are visible without a password.
  ///
  /// - Parameter isReported: Returns whether the command's own output states a finding, so that no warning is necessary.
  func warnAboutFindings(in session: Session, except isReported: (BackupFinding) -> Bool) {
    for anomaly in archive.anomalies {
      switch anomaly {
      case .unfinished:
        session.warn(
          "\(name) was never finished", why: anomaly.description,
          try: "export its contents; no device restores such a backup")
      case .listJournalRead: session.info("\(UntrustedText.escaped(name)): \(anomaly)")
      default: continue
      }
    }
    for propertyList in archive.unreadablePropertyLists {
      session.warn(
        "\(name)'s \(propertyList.name) could not be read", why: propertyList.reason,
        try: "verify shows whether anything else is damaged; items and files do not depend on this file")
    }
    for finding in archive.findings where !isReported(finding) { warn(about: finding, in: session) }
    if let unbound = archive.unboundClassKeys {
      session.warn(
        "\(name) contains something that no device writes", why: "\(unbound.summary): \(unbound.consequence)",
        try: unbound.blocksRestore
          ? "don't trust it; it cannot be restored" : "don't trust it, unless you made it this way",
        ignoresQuiet: true)
    }
  }
}

extension LoadedBackup {
  /// Warns about manifest rows with an invalid identifier, whose files cannot be found and are not written.
  func warn(aboutRowsWithoutIdentifier count: Int, in session: Session) {
    guard count > 0 else { return }
    session.warn(
      "no stored file could be found for \(HumanReadable.count(count, "row")) of the manifest of \(name)",
      why: "\(count == 1 ? "its identifier is" : "their identifiers are") not valid, so nothing is written for "
        + "\(count == 1 ? "it" : "them")",
      try: "another copy of the backup", ignoresQuiet: true)
  }
}

extension LoadedBackup {
  /// The advice for a backup whose manifest falsely states that it has no password.
  private static let adviceForDeniedPassword =
    "don't trust this copy; use the source device's own copy. If there is none, set IsEncrypted to true in the "
    + "Manifest.plist of another copy, and provide its password"

  /// Returns the error if a password is given for a backup without a password. The user probably means a different
  /// backup, or someone has replaced the backup.
  func unexpectedPassword(_ source: SecretSource.Origin, try advice: String? = nil) -> CommandError {
    if let denied = archive.findings.first(where: { $0.kind == .passwordDenied }) {
      return CommandError(
        .refused, "\(name) says that it has no password, but it was made with one", why: denied.description,
        try: Self.adviceForDeniedPassword)
    }
    if archive.isManifestMissing {
      return CommandError(
        .refused, "\(name) has no keybag to try a password on", why: BackupFinding.manifestMissing.description,
        try: "if you do mean this copy, \(source.removalAdvice)")
    }
    return CommandError(
      .refused, "\(name) has no password, but \(source.name) provides one",
      why: "it is not encrypted: it may be the wrong backup, and anyone may have made it",
      try: (source.isFlag ? advice : nil) ?? "if it is the right backup, \(source.removalAdvice)")
  }
}
