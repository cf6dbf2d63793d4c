import Basics
public import KeychainCrypto

extension BackupVerification {
  /// Is told how many of how many stored bytes were read, and answers whether to go on.
  public typealias Progress = (_ done: Int64, _ total: Int64) -> Bool

  /// Checks a backup with its keybag unlocked: every file, every class key, every item.
  ///
  /// Faults are findings, never errors: the checks go on wherever they can.
  ///
  /// - Parameters:
  ///   - archive: The backup as it was opened.
  ///   - keys: Of an `ArchiveKey`; with the hardware key of the device that made the backup its own items can be
  ///     checked too. `nil` for what can be checked without: of a backup that has no password everything but the items.
  ///   - keybagFault: Why there are no keys though there is a password: what that said of a damaged keybag.
  ///   - jobs: How many payloads are read at once; `nil` for one on each core. What is found is the same.
  ///   - progress: Told how far the reading of payloads is; where it answers `false` the whole ends with `.cancelled`.
  /// - Throws: Only where payloads cannot be listed, the cryptographic library fails, or `progress` ends it.
  public init(
    _ archive: BackupArchive, keys: borrowing ClassKeys?, keybagFault: String? = nil, jobs: Int? = nil,
    progress: Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) {
    let isQuick =
      switch keys {
      case .none: keybagFault == nil
      case .some: false
      }
    self.init(isQuick: isQuick)
    var verifier = BackupVerifier(archive: archive, findings: self, jobs: jobs ?? ParallelMap.standardJobCount)
    verifier.checkStructure()
    try verifier.beginSeal()
    switch keys {
    case .none: try verifier.checkWithoutKeys(keybagFault: keybagFault, progress: progress)
    case .some: try verifier.check(with: keys, progress: progress)
    }
    self = verifier.findings
  }

  /// What there is to say of a backup that is too damaged to be opened at all.
  public init(unopened error: BackupArchiveError, isQuick: Bool) {
    self.init(isQuick: isQuick)
    add(Fault(.structure, .structureDamaged, error.reason))
    conclude(.structure, error.reason)
    for id in CheckID.allCases where id != .structure { leaveOut(id, "the backup cannot be opened") }
  }
}
