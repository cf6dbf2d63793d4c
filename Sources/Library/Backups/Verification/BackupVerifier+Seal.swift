import Basics
import KeychainCrypto

extension BackupVerifier {
  /// Starts the check of the seal, if the backup has one.
  mutating func beginSeal() throws(KeyhaulError) {
    sealVerifier = try SealVerifier(archive)
  }

  /// Reads all payloads for the seal, if no other check has read them because the file list cannot be decrypted.
  ///
  /// - Throws: `.interrupted` if `progress` returns `false`.
  mutating func checkSealedPayloads(progress: BackupVerification.Progress) throws(KeyhaulError) {
    guard let sealVerifier, archive.canReadPayloads else { return }
    let verifier = try PayloadVerifier(archive, measuresForSeal: true, keys: nil)
    let stored = try archive.storedFiles()
    var readByteCount: Int64 = 0
    try archive.forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
      if let entry = try verifier.verify(payload, as: []).sealEntry { sealVerifier.compare(entry) }
      readByteCount += stored.byteCount(of: payload.fileIdentifier) ?? 0
      guard progress(readByteCount, stored.byteCount) else { throw Self.cancelled }
    }
    arePayloadsComparedWithSeal = true
  }

  /// Reports the files that do not match the seal, and checks the seal's code.
  mutating func checkSeal(
    with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    guard let seal = archive.seal else { return verification.skip(.seal, reason: unsealedText) }
    if !arePayloadsComparedWithSeal { try readSealedPayloads(progress) }
    // A changed seal is reported first, because it proves nothing about the files.
    let reason = try authenticate(with: keys)
    for violation in seal.violations { add(violation) }
    if arePayloadsComparedWithSeal, let sealVerifier {
      sealVerifier.finish()
      for violation in sealVerifier.violations { add(violation) }
    }
    concludeSeal(isKeyed: seal.isKeyed, reasonForNoAuthentication: reason)
  }

  /// Records the result of the seal check.
  private mutating func concludeSeal(isKeyed: Bool, reasonForNoAuthentication reason: String?) {
    let matchingCount = sealVerifier?.matchingCount ?? 0
    let matches = "\(HumanReadable.count(matchingCount, "file")) \(matchingCount == 1 ? "matches" : "match") the seal"
    guard verification.faultCount[.seal] == nil else {
      return verification.conclude(.seal, sealVerifier == nil ? "the seal cannot be read" : matches)
    }
    guard archive.canReadPayloads else { return verification.skip(.seal, reason: Self.streamReason) }
    verification.isEachFileSealed = arePayloadsComparedWithSeal
    if let reason {
      verification.skip(.seal, reason: "\(matches); \(reason)")
    } else {
      verification.conclude(
        .seal,
        isKeyed
          ? "\(matches), which was made with the backup's password"
          : "\(matches), which was made without a password: it detects accidents, but not attacks")
    }
  }

  /// Reads the payloads for the seal. An error becomes a fault, unless `progress` stopped the read.
  private mutating func readSealedPayloads(_ progress: BackupVerification.Progress) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      try checkSealedPayloads(progress: progress)
    } catch {
      if error == Self.cancelled { throw Self.cancelledBeforeLastFile }
      verification.add(.init(.seal, .sealBroken, file: MetadataFile.seal.path, error.reason), because: error)
    }
  }

  /// Checks the code of a keyed seal.
  ///
  /// If the code cannot be checked although keys are available, the seal counts as broken, because Keyhaul writes no
  /// such seal.
  ///
  /// - Returns: The reason why a keyed seal is not authenticated, or `nil` if its code was checked or it is unkeyed.
  private mutating func authenticate(with keys: ClassKeys?) throws(KeyhaulError) -> String? {
    guard archive.seal?.isKeyed == true else { return nil }
    switch keys {
    case .none: return "the password is needed to check whether the seal is genuine"
    case .some(let keys):
      do throws(KeyhaulError) {
        if let violation = try archive.sealViolation(with: keys) {
          verification.findings.append(.sealBroken(violation))
          add(violation)
        }
        return nil
      } catch {
        guard error.category != .failed else { throw error }
        verification.add(
          .init(
            .seal, .sealBroken, file: MetadataFile.seal.path,
            "its authentication code cannot be checked: \(error.reason)"), because: error)
        return nil
      }
    }
  }

  private mutating func add(_ violation: SealViolation) {
    verification.add(.init(.seal, .sealBroken, file: violation.file, violation.reason))
    if violation.isFileMissing { verification.sealedMissingCount += 1 }
  }

  private var unsealedText: String {
    let count = verification.files?.unproven ?? 0
    guard count > 0 else { return "there is none" }
    return "there is none, so changes in \(HumanReadable.count(count, "file")) could not be detected"
  }
}
