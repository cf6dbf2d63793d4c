package import Basics
package import KeychainCrypto
package import KeychainFormats

extension BackupRewriter {
  /// Checks that the files of a backup can be encrypted or decrypted.
  ///
  /// - Throws: `.unsupported` for iOS 9 and earlier, because `Manifest.mbdb` cannot be written; `.sealedList` for iOS
  ///   10.0 with a password; `.decryptedCopy` for a decrypted copy.
  package static func checkReencryption(of archive: BackupArchive) throws(KeyhaulError) {
    try checkRekeying(of: archive)
    guard archive.layout == .manifestDB else {
      throw KeyhaulError(
        .unsupported, "it is from iOS 9 or earlier; this works with backups from iOS 10 and later")
    }
  }

  /// Encrypts a backup without a password, or decrypts a backup with one. The whole backup is rewritten next to the old
  /// one, which is removed only when the new one is complete. Class keys and keychain items stay the same.
  ///
  /// The manifest is kept in memory during the work. Payloads are copied in chunks.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`. A backup that has changed since is not replaced.
  ///   - path: The path of a directory or one file, not of a link.
  ///   - keybag: The new keybag, with the backup's class keys.
  ///   - keys: The unlocked class keys.
  ///   - target: The destination of the changed backup.
  ///   - random: The source of the files' keys.
  ///   - progress: Called with the number of bytes copied; if it returns `false`, the work ends with `.interrupted`.
  /// - Throws: `.unsupported` for a backup of iOS 9 and earlier; `.occupied` if its directory contains other files,
  ///   which would be lost; `.damaged` if a file cannot be decrypted completely; otherwise the errors of
  ///   `BackupWriter`.
  package func reencrypt(
    _ archive: BackupArchive, at path: String, with keybag: Keybag, keys: ClassKeys,
    to target: Target = .inPlace, random: some RandomSource = SystemRandomSource(),
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup {
    try Self.checkReencryption(of: archive)
    let stored = try archive.storedFiles()
    try archive.requireSealedPayloads(stored)
    let reencryptor = try BackupReencryptor(
      archive, keybag: keybag, keys: keys, target: target, random: random,
      copyProgress: CopyProgress(total: stored.byteCount + archive.metadataByteCount, progress))
    let files = self.files(of: archive, at: path)
    try reencryptor.prepare(files)
    var outgoing = OutgoingBackup(
      directoryName: target.isCopy ? archive.directoryName : nil, byteCount: reencryptor.copyProgress.total,
      isEncrypted: !archive.isEncrypted
    ) { (sink) throws(KeyhaulError) in try reencryptor.send(files, to: sink) }
    outgoing.check = { (written) throws(KeyhaulError) in
      let copy = try reopen(written, like: archive)
      try reencryptor.check(copy, storedCount: stored.count)
    }
    // Decrypted files must not be readable by users who could read only the encrypted ones.
    let access = archive.isEncrypted ? PreservedAccess.owner : .all
    let installed = try install(outgoing, of: files, to: target, keeping: access)
    return RewrittenBackup(
      path: installed.path, byteCount: installed.byteCount, fileCount: reencryptor.fileCount,
      isDurable: installed.isDurable, leftover: installed.leftover,
      unrelatedFiles: (reencryptor.unlistedPaths + reencryptor.unrelatedFiles).sorted())
  }
}
