import Basics
import KeychainFormats

extension BackupArchive {
  /// What of it is not as a device leaves it and was gone around: what shows itself without a password.
  public var findings: [ArchiveFinding] { notes.compactMap(\.finding) }

  /// Whether nothing of its manifest can be read, so that nothing says whether it has a password.
  package var isManifestUnreadable: Bool { findings.contains { $0.kind == .manifestUnreadable } }

  /// Whether it has no `Manifest.plist`, and is what an unencrypted `Manifest.db` lists.
  package var isManifestMissing: Bool { findings.contains(.manifestMissing) }

  /// Whether it is what is left of a backup: without its manifest or its list of files nothing in it can be opened.
  package var isRemainder: Bool {
    isManifestUnreadable || (findings.contains { $0.kind == .listUnreadable } && listByteCount == nil)
  }

  /// Whether its manifest says that it has a password, and what it stores is in clear. The class keys may need that
  /// password all the same.
  public var hasFalseClaim: Bool { findings.contains { $0.kind == .falseClaim } }

  /// Whether its keybag is one of a backup with a password, as its manifest says.
  public var keybagHasPassword: Bool { isEncrypted || hasFalseClaim }

  /// Refuses what a use does not take: what its device never finished, of all but a look at it, and what a finding
  /// forbids.
  ///
  /// - Throws: `.unfinished`, with how far it had come; the refusal of the first finding.
  public func require(_ use: ArchiveUse) throws(BackupArchiveError) {
    switch use {
    case .reading, .exporting, .rewriting, .copying: break
    case .planning, .restoring: try requireFinished()
    }
    if let finding = findings.first(where: { $0.forbids(use) }) { throw finding.refusal }
  }

  /// Refuses a backup that its device never finished, as a restore on a device does, and one whose `Status.plist` is
  /// such as no device makes.
  ///
  /// - Throws: `.unfinished`, with how far it had come; what reading `Status.plist` gave.
  public func requireFinished() throws(BackupArchiveError) {
    if let status = unreadablePropertyLists.first(where: { $0.name == StoredPart.status.path }),
      status.error.category == .refused
    {
      throw status.error
    }
    guard let state = status?.snapshotState, status?.isFinished == false else { return }
    throw BackupArchiveError(.unfinished, ArchiveNote.unfinished(state: state).description)
  }
}
