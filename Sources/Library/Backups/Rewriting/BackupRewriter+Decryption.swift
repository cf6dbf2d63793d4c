import Basics
public import KeychainCrypto
import KeychainFormats

extension BackupRewriter {
  /// Writes a copy of a backup with a password in which the list of files and all files are not encrypted, laid out as before.
  /// The keybag stays, and the items in the keychain's file stay sealed with its keys: who has the password opens them.
  ///
  /// A file that cannot be read is left out and told. A digest in the list becomes that of the plain bytes where it was
  /// right, and stays as it is where it was not.
  /// - Parameters:
  ///   - archive: What was opened at `path`.
  ///   - path: Where it stands: a directory, or one file.
  ///   - destination: Where the copy goes, and in which form.
  ///   - keys: The class keys, unlocked.
  ///   - replace: Whether a backup, or a file, that stands at the destination may go.
  ///   - progress: Told how many bytes are done; where it answers `false` the work ends with `.interrupted`.
  /// - Throws: `.unsupported` for a backup of iOS 9 and earlier, `.sealedList` for one of iOS 10.0; as `BackupWriter` does;
  ///   `.interrupted` where `progress` said so.
  public func decrypt(
    _ archive: BackupArchive, at path: String, to destination: ArchiveDestination, keys: consuming ClassKeys,
    replace: Bool = false, progress: @escaping Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> DecryptedBackup {
    try Self.checkReencryption(of: archive)
    let stored = try archive.storedFiles()
    let pass = try DecryptionPass(
      archive, keys: keys, meter: CopyMeter(total: stored.byteCount + archive.partByteCount, progress))
    let walk = self.walk(through: archive, at: path)
    try pass.prepare(walk, stored)
    var outgoing = OutgoingBackup(
      directoryName: archive.directoryName, byteCount: pass.meter.total, isEncrypted: false
    ) { (sink) throws(WriteFailure) in try pass.send(walk, to: sink) }
    outgoing.check = { (written) throws(BackupArchiveError) in try pass.check(reopen(written, like: archive)) }
    let placed = try BackupPlacement(system: system).place(outgoing, at: destination, replace: replace)
    let byteCount =
      switch destination {
      case .directory: pass.writtenByteCount
      case .file, .stream: placed.byteCount
      }
    return DecryptedBackup(
      copy: RewrittenBackup(
        path: placed.path, byteCount: byteCount, fileCount: pass.fileCount, isDurable: placed.isDurable,
        leftover: placed.leftover, foreignFiles: pass.foreignFiles),
      decryptedCount: pass.decryptedCount, faults: pass.faults,
      rowWithoutIdentifierCount: pass.rowWithoutIdentifierCount, differing: pass.differing)
  }
}
