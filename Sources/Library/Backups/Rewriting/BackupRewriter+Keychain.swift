import Basics
public import KeychainCrypto

extension BackupRewriter {
  /// Gives a backup another keychain file. Its list of files, which has that file's key, size and digest, is rewritten;
  /// every other file of the backup stays what it is, to the byte, its manifest too.
  ///
  /// A directory is put together beside the old one, whose other files get a second name there where the file system can do
  /// that, and are copied where it cannot; then the two change places. One file is copied. At any moment the old or the new
  /// backup stands.
  ///
  /// - Parameters:
  ///   - archive: What was opened at `path`; a backup that has changed since is left alone.
  ///   - path: Where it stands: a directory, or one file. No link.
  ///   - file: The new keychain file in clear, sealed for the backup's keybag.
  ///   - keys: The class keys of that keybag, unlocked.
  ///   - random: Gives the key of the file.
  ///   - progress: Told how many bytes are done; where it answers `false` the work ends with `.interrupted`.
  /// - Throws: `.unsupported` for a backup of iOS 9 and earlier, `.sealedList` for one of iOS 10.0, `.decryptedCopy` for
  ///   a decrypted copy; `.noKeychain`; `.occupied` where its directory holds other things, which would be lost; else as
  ///   `BackupWriter` does.
  public func replaceKeychain(
    of archive: BackupArchive, at path: String, with file: [UInt8], keys: consuming ClassKeys,
    random: some RandomSource = SystemRandomSource(), progress: @escaping Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> RewrittenBackup {
    try Self.checkReencryption(of: archive)
    let stored = try archive.storedFiles()
    let replacement = try KeychainReplacement(file, in: archive, keys: keys, random: random)
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let walk = self.walk(through: archive, at: path)
    try replacement.prepare(walk)
    var outgoing = OutgoingBackup(
      directoryName: nil, byteCount: meter.total, isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(WriteFailure) in
      try replacement.send(walk, to: sink, meter)
    }
    outgoing.check = { (written) throws(BackupArchiveError) in
      // What was read before must be what stands there still: its other files are taken over unseen.
      guard try reopen(path, like: archive).digest == archive.digest else {
        throw BackupArchiveError(.changed, "the backup changed while it was being rewritten")
      }
      try replacement.check(try reopen(written, like: archive), stored: stored)
    }
    let placement = BackupPlacement(system: system)
    let placed =
      walk.isDirectory
      ? try placement.placeDirectory(outgoing, at: path, replace: true)
      : try placement.placeFile(outgoing, at: path, format: try walk.format(), replace: true, keepsAccess: true)
    return RewrittenBackup(
      path: placed.path, byteCount: placed.byteCount, fileCount: stored.count, isDurable: placed.isDurable,
      leftover: placed.leftover, foreignFiles: [])
  }
}
