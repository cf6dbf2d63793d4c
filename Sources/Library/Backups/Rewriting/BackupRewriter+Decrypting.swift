package import Basics
package import KeychainCrypto

extension BackupRewriter {
  /// Writes a copy of an encrypted backup with an unencrypted file list and unencrypted files, in the same layout.
  /// The keybag stays, and the items in the keychain file still require the password.
  ///
  /// Unreadable files are omitted and reported. Correct digests in the file list are replaced with the
  /// digests of the plaintext.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`.
  ///   - path: The path of the backup: a directory or a container file.
  ///   - destination: The location and format of the copy.
  ///   - keys: The unlocked class keys.
  ///   - replace: Whether to replace an existing backup or file.
  ///   - progress: Receives the number of completed bytes. If it returns `false`, the work ends with `.interrupted`.
  /// - Throws: `.unsupported` for iOS 9 and earlier, `.sealedList` for iOS 10.0; the errors of `BackupWriter`;
  ///   `.interrupted`.
  package func decrypt(
    _ archive: BackupArchive, at path: String, to destination: BackupDestination, keys: ClassKeys,
    replace: Bool = false, progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> DecryptedBackup {
    try Self.checkReencryption(of: archive)
    let stored = try archive.storedFiles()
    let decryptor = try BackupDecryptor(
      archive, keys: keys, copyProgress: CopyProgress(total: stored.byteCount + archive.metadataByteCount, progress))
    let files = self.files(of: archive, at: path)
    try decryptor.readAll(stored)
    var outgoing = OutgoingBackup(
      directoryName: archive.directoryName, byteCount: decryptor.copyProgress.total, isEncrypted: false
    ) { (sink) throws(KeyhaulError) in try decryptor.send(files, to: sink) }
    outgoing.check = { (written) throws(KeyhaulError) in try decryptor.check(reopen(written, like: archive)) }
    let installed = try BackupInstaller(system: system).place(outgoing, at: destination, replace: replace)
    let byteCount =
      switch destination {
      case .directory: decryptor.writtenByteCount
      case .file, .stream: installed.byteCount
      }
    return DecryptedBackup(
      copy: RewrittenBackup(
        path: installed.path, byteCount: byteCount, fileCount: decryptor.fileCount, isDurable: installed.isDurable,
        leftover: installed.leftover, unrelatedFiles: decryptor.unrelatedFiles),
      decryptedCount: decryptor.decryptedCount, faults: decryptor.faults,
      rowWithoutIdentifierCount: decryptor.rowWithoutIdentifierCount, differingFiles: decryptor.differingFiles)
  }
}

/// A decrypted copy of a backup, and the files that are not in the copy.
package struct DecryptedBackup: Sendable {
  /// The copy. Its `unrelatedFiles` include payloads that are not listed.
  package let copy: RewrittenBackup
  /// The number of decrypted files.
  package let decryptedCount: Int
  /// The unreadable files with the reasons. They are listed in the copy but not stored.
  package let faults: [Fault]
  /// The number of listed files without an identifier, whose payloads cannot be found and are not in the copy.
  package let rowWithoutIdentifierCount: Int

  /// The files whose content does not match the seal or the digest in the file list. The copy keeps this digest.
  package let differingFiles: [ListedFile]

  /// Whether all listed files are in the copy and match their digests.
  package var isComplete: Bool { faults.isEmpty && rowWithoutIdentifierCount == 0 && differingFiles.isEmpty }

  /// A file that is not in the copy.
  package struct Fault: Sendable, Equatable {
    /// The stored name.
    package let fileIdentifier: String
    /// The reason why it is unreadable.
    package let error: KeyhaulError
  }
}
