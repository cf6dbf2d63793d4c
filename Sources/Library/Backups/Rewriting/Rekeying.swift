package import Basics
package import KeychainCrypto
package import KeychainFormats
import SystemPackage

extension BackupRewriter {
  /// Whether a backup can be given another password at all.
  ///
  /// - Throws: `.sealedList` for one of iOS 10.0: its records would stay sealed with the old password; `.decryptedCopy` for
  ///   a decrypted copy.
  package static func checkRekeying(of archive: BackupArchive) throws(KeyhaulError) {
    if archive.manifest.isDecryptedCopy { throw ArchiveFinding.decryptedCopy.refusal }
    guard archive.hasSealedRecords else { return }
    throw KeyhaulError(
      .sealedList, "each record in its manifest is encrypted with its current password, as iOS 10.0 wrote it")
  }

  /// Gives a backup another keybag that holds the same class keys: how its password is changed. Nothing else changes;
  /// in a directory `Manifest.plist` is the only file that is written, and of a sealed backup the seal.
  ///
  /// The manifest, or the one file that holds it, is written beside the old one and renamed: at any moment the old or
  /// the new stands. Who may read and write the file stays as it was. The seal of a directory is written before, with both
  /// manifests, and after, with the new one alone, so that it fits whichever stands.
  ///
  /// - Parameters:
  ///   - archive: What was opened at `path`; a backup that has changed since is left alone.
  ///   - path: Where it stands: a directory, or one file. No link.
  ///   - keybag: The bag that it gets, with the class keys that it had.
  ///   - keys: Those class keys, unlocked: a sealed backup needs them.
  ///   - progress: Told how many bytes of one file are copied; where it answers `false` the work ends with
  ///     `.interrupted`.
  /// - Returns: Whether the disk confirmed that it keeps the new name too.
  /// - Throws: `.changed` where the backup changed in the meantime; `.keyUnavailable` for a sealed backup without its keys,
  ///   `.damaged` for one that is not what was sealed; `.noSpace` and `.unwritable` where the system refuses;
  ///   `.interrupted` where `progress` said so.
  @discardableResult
  package func replaceKeybag(
    of archive: BackupArchive, at path: String, with keybag: Keybag, keys: ClassKeys? = nil,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> Bool {
    try Self.checkRekeying(of: archive)
    guard let old = archive.parts[.manifest] else { throw KeyhaulError(.damaged, "it has no manifest") }
    let new = try ManifestEdit(old).replacing(keybag: keybag)
    let seals = try RenewedSeals(of: archive, manifest: new, keys: keys)
    switch archive.source {
    case .directory:
      return try changing(archive, at: path) { () throws(KeyhaulError) in
        try replaceManifest(of: archive, in: path, old: old, new: new, seals)
      }
    case .container:
      return try write(archive, at: path, to: .inPlace, manifest: new, keybag: keybag, seals, progress).isDurable
    case .stream: throw KeyhaulError(.unsupported, "a stream cannot be changed")
    }
  }

  /// Writes a copy of a backup with another keybag that holds the same class keys. The backup itself stays as it is.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`.
  ///   - path: The path of a directory or one file.
  ///   - destination: The place and the format of the copy.
  ///   - replace: Whether a backup, or a file, that stands at the destination may go.
  ///   - keybag: The copy's keybag.
  ///   - keys: The class keys, unlocked: a sealed backup needs them.
  ///   - progress: Called with the number of bytes copied; if it returns `false`, the work ends with `.interrupted`.
  /// - Throws: As `replaceKeybag`, and as `BackupWriter`.
  package func copy(
    _ archive: BackupArchive, at path: String, to destination: ArchiveDestination, replace: Bool, with keybag: Keybag,
    keys: ClassKeys? = nil, progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup {
    try Self.checkRekeying(of: archive)
    guard let old = archive.parts[.manifest] else { throw KeyhaulError(.damaged, "it has no manifest") }
    let new = try ManifestEdit(old).replacing(keybag: keybag)
    let seals = try RenewedSeals(of: archive, manifest: new, keys: keys)
    return try write(
      archive, at: path, to: .copy(destination, replace: replace), manifest: new, keybag: keybag, seals, progress)
  }

  private func replaceManifest(
    of archive: BackupArchive, in directory: String, old: [UInt8], new: [UInt8], _ seals: RenewedSeals?
  ) throws(KeyhaulError) -> Bool {
    BackupPlacement(system: system).removeLeftovers(besideDirectory: directory)
    if let seals {
      try replace(.seal, of: archive, in: directory, old: seals.old, new: seals.ofBoth)
    }
    do throws(KeyhaulError) {
      try replace(.manifest, of: archive, in: directory, old: old, new: new)
    } catch {
      // The seal fits the old manifest as it is; byte for byte it is the old one where the system lets it.
      if let seals { try? replace(.seal, of: archive, in: directory, old: seals.ofBoth, new: seals.old) }
      throw error
    }
    guard let seals else { return keepsNames(of: directory) }
    // The new password stands by now, and the seal fits it; that it fits the old one no longer is all that is left.
    try? replace(.seal, of: archive, in: directory, old: seals.ofBoth, new: seals.new)
    return keepsNames(of: directory)
  }

  /// Whether the disk confirms that it keeps the names in a directory.
  private func keepsNames(of directory: String) -> Bool {
    guard let opened = try? system.openDirectory(directory) else { return false }
    return BackupPlacement(system: system).keepsNames(of: opened)
  }

  /// Puts other bytes in the place of one of the parts, which has to be there still as it was read.
  private func replace(
    _ part: StoredPart, of archive: BackupArchive, in directory: String, old: [UInt8], new: [UInt8]
  ) throws(KeyhaulError) {
    let path = directory.hasSuffix("/") ? directory + part.path : "\(directory)/\(part.path)"
    _ = try BackupPlacement(system: system).placeFile(
      at: path, byteCount: Int64(new.count), replace: true, keeping: .all,
      check: { (_) throws(KeyhaulError) in
        guard try reopen(directory, like: archive).parts[part] == old else {
          throw KeyhaulError(.changed, "\(part.path) changed in the meantime")
        }
      },
      fill: { (descriptor) throws(KeyhaulError) in
        do throws(Errno) {
          try system.writeAll(new, to: descriptor)
        } catch {
          throw .writing(error)
        }
        return Int64(new.count)
      })
  }

  /// Copies every file as it is, except the manifest and the seal.
  private func write(
    _ archive: BackupArchive, at path: String, to target: Target, manifest new: [UInt8], keybag: Keybag,
    _ seals: RenewedSeals?, _ progress: @escaping Progress
  ) throws(KeyhaulError) -> RewrittenBackup {
    let stored = try archive.storedFiles()
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let walk = self.walk(through: archive, at: path)
    let counts = CopyCounts()
    var outgoing = OutgoingBackup(
      directoryName: target.isCopy ? archive.directoryName : nil, byteCount: meter.total,
      isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(KeyhaulError) in
      counts.foreignFiles += try walk.forEachFile { (file) throws(KeyhaulError) in
        guard file.isOwn || !target.isCopy else { return counts.foreignFiles.append(file.name.shown) }
        let (name, time) = (target.name(of: file), target.modificationTime(of: file, in: archive))
        counts.fileCount += 1
        if file.isOwn, file.path == StoredPart.manifest.path { return try sink.add(name, new, modificationTime: time) }
        if file.isOwn, file.path == StoredPart.seal.path, let seals {
          return try sink.add(name, seals.new, modificationTime: time)
        }
        try file.copy(to: sink, as: name, modificationTime: time, meter)
      }
    }
    outgoing.check = { (written) throws(KeyhaulError) in
      let copy = try reopen(written, like: archive)
      guard copy.keybag == keybag, copy.parts.database?.sha256 == archive.parts.database?.sha256,
        try copy.storedFiles() == stored
      else { throw KeyhaulError(.changed, "the backup changed while it was being copied") }
    }
    let placed = try place(outgoing, of: walk, to: target, keeping: .all)
    return RewrittenBackup(
      path: placed.path, byteCount: placed.byteCount, fileCount: counts.fileCount, isDurable: placed.isDurable,
      leftover: placed.leftover, foreignFiles: target.isCopy ? counts.foreignFiles : [])
  }
}

/// What the seal of a backup becomes while its manifest is replaced.
private struct RenewedSeals {
  let old: [UInt8]
  /// For the old manifest and the new one.
  let ofBoth: [UInt8]
  /// For the new one alone.
  let new: [UInt8]

  /// - Returns: `nil` for a backup without a seal.
  /// - Throws: `.keyUnavailable` where it has one and there are no keys, `.damaged` where it is not what was sealed.
  init?(
    of archive: BackupArchive, manifest: [UInt8], keys: ClassKeys?
  ) throws(KeyhaulError) {
    guard let old = archive.parts[.seal] else { return nil }
    self.old = old
    let files = [StoredPart.manifest.path: manifest]
    let maker = try SealMaker(of: archive, keys: keys)
    guard let new = try archive.renewedSeal(for: files, by: maker),
      let both = try archive.renewedSeal(for: files, by: maker, keepsOld: true)
    else { return nil }
    (self.new, ofBoth) = (new.bytes, both.bytes)
  }
}

/// A stored `Manifest.plist` of which single values are replaced. Every other value stays, in its order; what was XML
/// stays XML.
struct ManifestEdit {
  private let root: PropertyDictionary
  private let isXML: Bool

  init(_ stored: [UInt8]) throws(KeyhaulError) {
    root = try rootDictionary(of: stored, in: StoredPart.manifest.path)
    isXML = XMLPlist.isXML(stored)
  }

  func replacing(keybag: Keybag) throws(KeyhaulError) -> [UInt8] {
    var changed = root
    changed["BackupKeyBag"] = .data(keybag.serialized())
    return try encoded(changed)
  }

  /// - Parameter manifestKey: Of the encrypted list of files; `nil` for a backup without a password.
  func replacing(keybag: Keybag, manifestKey: ClassWrappedKey?) throws(KeyhaulError) -> [UInt8] {
    var changed = root
    changed["BackupKeyBag"] = .data(keybag.serialized())
    changed["IsEncrypted"] = .boolean(manifestKey != nil)
    changed["ManifestKey"] = manifestKey.map { .data($0.serialized()) }
    return try encoded(changed)
  }

  /// As of a decrypted copy: no key of a list, and the keybag as it was, which opens the keychain's items.
  func decrypted() throws(KeyhaulError) -> [UInt8] {
    var changed = root
    changed["IsEncrypted"] = .boolean(false)
    changed["ManifestKey"] = nil
    changed[BackupManifest.copyKey] = .boolean(true)
    return try encoded(changed)
  }

  private func encoded(_ root: PropertyDictionary) throws(KeyhaulError) -> [UInt8] {
    guard isXML else { return try encode(root, as: StoredPart.manifest.path) }
    do throws(FormatError) {
      return try XMLPlist.encode(.dictionary(root))
    } catch {
      throw KeyhaulError(.unwritable, "\(StoredPart.manifest.path): \(error.reason)")
    }
  }
}
