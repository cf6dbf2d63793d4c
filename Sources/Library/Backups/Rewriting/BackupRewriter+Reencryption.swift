import Basics
public import KeychainCrypto
public import KeychainFormats

extension BackupRewriter {
  /// Whether the files of a backup can be encrypted or decrypted at all.
  ///
  /// - Throws: `.unsupported` for a backup of iOS 9 and earlier, whose `Manifest.mbdb` is read and never written;
  ///   `.sealedList` for one of iOS 10.0 with a password.
  public static func checkReencryption(of archive: BackupArchive) throws(BackupArchiveError) {
    try checkRekeying(of: archive)
    guard archive.layout == .manifestDB else {
      throw BackupArchiveError(
        .unsupported, "it is from iOS 9 or earlier; this works with backups of iOS 10 and later")
    }
  }

  /// Encrypts a backup that has no password, or decrypts one that has. All of it is rewritten, beside the old one,
  /// which goes only when the new one stands; class keys and the keychain's items stay what they are.
  ///
  /// The list of files is kept in memory meanwhile; payloads pass through in portions.
  /// - Parameters:
  ///   - archive: What was opened at `path`; a backup that has changed since is left alone.
  ///   - path: Where it stands: a directory, or one file. No link.
  ///   - keybag: The one that it gets, with the class keys that it had.
  ///   - keys: Those class keys, unlocked.
  ///   - random: Gives the keys of the files.
  ///   - progress: Told how many bytes are copied; where it answers `false` the work ends with `.interrupted`.
  /// - Throws: `.unsupported` for a backup of iOS 9 and earlier; `.occupied` where its directory holds other things,
  ///   which would be lost; `.damaged` where a file cannot be decrypted to its end; else as `BackupWriter` does.
  public func reencrypt(
    _ archive: BackupArchive, at path: String, with keybag: Keybag, keys: consuming ClassKeys,
    random: some RandomSource = SystemRandomSource(),
    progress: @escaping Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> RewrittenBackup {
    try Self.checkReencryption(of: archive)
    let stored = try archive.storedFiles()
    try archive.requireSealed(stored)
    let pass = try ReencryptionPass(
      archive, keybag: keybag, keys: keys, random: random,
      meter: CopyMeter(total: stored.byteCount + archive.partByteCount, progress))
    let walk = self.walk(through: archive, at: path)
    try pass.prepare(walk)
    var outgoing = OutgoingBackup(
      directoryName: nil, byteCount: pass.meter.total, isEncrypted: !archive.isEncrypted
    ) { (sink) throws(WriteFailure) in try pass.send(walk, to: sink) }
    outgoing.check = { (written) throws(BackupArchiveError) in
      let copy = try reopen(written, like: archive)
      try pass.check(copy, storedCount: stored.count)
    }
    let placement = BackupPlacement(system: system)
    let placed =
      walk.isDirectory
      ? try placement.placeDirectory(outgoing, at: path, replace: true)
      : try placement.placeFile(outgoing, at: path, format: try walk.format(), replace: true)
    return RewrittenBackup(
      path: placed.path, byteCount: placed.byteCount, fileCount: pass.fileCount, isDurable: placed.isDurable,
      leftover: placed.leftover, foreignFiles: pass.unlisted.sorted())
  }
}
