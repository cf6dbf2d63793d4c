import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// Begins to hold the backup's files against its seal; nothing where it has none.
  mutating func beginSeal() throws(ArchivedKeychainError) {
    do throws(BackupArchiveError) {
      sealCheck = try SealCheck(archive)
    } catch {
      throw ArchivedKeychainError(error)
    }
  }

  /// Reads what no other check has read: where the list of files stays closed, every payload.
  ///
  /// - Throws: `.interrupted` where `progress` says so.
  mutating func checkSealedPayloads(progress: BackupVerification.Progress) throws(BackupArchiveError) {
    guard let sealCheck, archive.canReadPayloads else { return }
    let examiner = try PayloadExaminer(archive, isSealed: true, keys: nil)
    let stored = try archive.storedFiles()
    var readByteCount: Int64 = 0
    try archive.forEachPayload(of: stored) { (payload) throws(BackupArchiveError) in
      if let entry = try examiner.examine(payload, as: []).sealEntry { sealCheck.take(entry) }
      readByteCount += stored.byteCount(of: payload.fileIdentifier) ?? 0
      guard progress(readByteCount, stored.byteCount) else { throw Self.cancelled }
    }
    arePayloadsSealChecked = true
  }

  /// Says what the seal shows: which files are not what was sealed, and whether it is the one that was made.
  mutating func checkSeal(
    with keys: borrowing ClassKeys?, progress: BackupVerification.Progress
  ) throws(ArchivedKeychainError) {
    guard let seal = archive.seal else { return findings.leaveOut(.seal, unsealedText) }
    if !arePayloadsSealChecked { try readPayloads(progress) }
    // A seal that was changed comes first: what it says of the files proves nothing then.
    let reason = try authenticate(with: keys)
    for fault in seal.breaks { addBreak(fault) }
    if arePayloadsSealChecked, let sealCheck {
      sealCheck.finish()
      for fault in sealCheck.breaks { addBreak(fault) }
    }
    let right = "\(Amounts.count(sealCheck?.rightCount ?? 0, "file")) as sealed"
    guard findings.faultCount[.seal] == nil else {
      return findings.conclude(.seal, sealCheck == nil ? "the seal cannot be read" : right)
    }
    guard archive.canReadPayloads else {
      return findings.leaveOut(
        .seal, "a stream can be read only once: verify a file or folder to check every payload")
    }
    findings.isEachFileSealed = arePayloadsSealChecked
    if let reason {
      findings.leaveOut(.seal, "\(right); \(reason)")
    } else {
      findings.conclude(
        .seal,
        seal.isKeyed
          ? "\(right) with its password"
          : "\(right), without a password: detects accidents, but not attacks")
    }
  }

  private mutating func readPayloads(_ progress: BackupVerification.Progress) throws(ArchivedKeychainError) {
    do throws(BackupArchiveError) {
      try checkSealedPayloads(progress: progress)
    } catch {
      if error == Self.cancelled {
        throw ArchivedKeychainError(DataProtectionError(.cancelled, "it was stopped before the last file"))
      }
      findings.add(.init(.seal, .sealBroken, file: "Keyhaul.seal", error.reason), because: error)
    }
  }

  /// A code that cannot be tried though the keys are available vouches for nothing: no seal is written so.
  ///
  /// - Returns: Why nothing vouches for a keyed seal; `nil` where its code was tried, or where it has none.
  private mutating func authenticate(with keys: borrowing ClassKeys?) throws(ArchivedKeychainError) -> String? {
    guard archive.seal?.isKeyed == true else { return nil }
    switch keys {
    case .none: return "checking whether the seal is genuine needs the password"
    case .some(let keys):
      do throws(BackupArchiveError) {
        if let fault = try archive.sealBreak(with: keys) {
          findings.found.append(.sealBroken(fault))
          addBreak(fault)
        }
        return nil
      } catch {
        guard error.category != .failed else { throw ArchivedKeychainError(error) }
        findings.add(
          .init(
            .seal, .sealBroken, file: "Keyhaul.seal",
            "its authentication code cannot be checked: \(error.reason)"), because: error)
        return nil
      }
    }
  }

  private mutating func addBreak(_ fault: SealBreak) {
    findings.add(.init(.seal, .sealBroken, file: fault.file, fault.reason))
    if fault.isAbsence { findings.sealedMissingCount += 1 }
  }

  private var unsealedText: String {
    let count = findings.files?.unproven ?? 0
    guard count > 0 else { return "there is none" }
    return "there is none, so changes in \(Amounts.count(count, "file")) could not be detected"
  }
}
