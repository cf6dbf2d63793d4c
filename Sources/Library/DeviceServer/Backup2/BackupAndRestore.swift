import Basics
import KeyhaulKit

/// Backs up and restores a served device for a client, with the functions behind `keyhaul backup` and `keyhaul restore`.
struct BackupAndRestore {
  let served: ServedDevice

  private func translatingErrors<Value, Failure: ExplainedError>(
    _ body: () throws(Failure) -> Value
  ) throws(BackupServiceError) -> Value {
    do throws(Failure) { return try body() } catch { throw .failed(BackupFailure(error)) }
  }

  /// Returns the password that the device gives to backups; `nil` if its backups are not encrypted.
  func backupPassword() throws(BackupServiceError) -> Secret? {
    do throws(KeyhaulError) { return try served.claim.backupPassword() } catch {
      throw .failed(BackupFailure(error))
    }
  }

  /// Replaces the password that the device gives to backups.
  func replaceBackupPassword(_ password: borrowing Secret?) throws(BackupServiceError) {
    do throws(KeyhaulError) { try served.claim.replaceBackupPassword(password) } catch {
      throw .failed(BackupFailure(error))
    }
  }

  // MARK: Backing up

  /// Writes a backup into a new directory of the staging folder.
  ///
  /// - Returns: The backup's date.
  /// - Throws: `.deviceLocked` if the device is locked.
  func writeBackup(into folder: StagingFolder, _ name: String) throws(BackupServiceError) -> KeychainDate {
    let password = try backupPassword()
    let session = try translatingErrors { () throws(KeyhaulError) in
      try served.device.openSession(.reading, verb: "device serve", wait: ServedDevice.wait)
    }
    defer { session.invalidate() }
    let prepared: PreparedBackup
    do throws(KeyhaulError) {
      prepared = try BackupExporter.prepare(
        session, password: password, rounds: served.rounds, listsExported: false)
      _ = try prepared.write(to: BackupDestination(path: "\(folder.path)/\(name)/"))
    } catch {
      throw .failed(BackupFailure(error))
    }
    let report = prepared.report
    served.log(
      "backing up \(report.exportedCount) of \(HumanReadable.count(report.total, "item")), "
        + (prepared.contents.isEncrypted ? "encrypted" : "without a password"))
    return prepared.contents.date
  }

  /// Stores the date of a backup that a client has finished. A failure is only logged, because the client's backup is
  /// complete.
  func recordBackup(at date: KeychainDate) {
    do throws(KeyhaulError) {
      try served.device.withSession(.writing, verb: "device serve", wait: ServedDevice.wait) {
        (session) throws(KeyhaulError) in try session.recordBackup(at: date)
      }
    } catch {
      served.log("the date of the backup was not recorded: \(error.reason)")
    }
  }

  // MARK: Opening a client's backup

  /// A client's backup, with the key that unlocks it.
  struct UnlockedArchive {
    let archive: BackupArchive
    let key: BackupKey
  }

  /// Opens a backup in the staging folder.
  ///
  /// - Throws: `.wrongPassword`, `.noBackup`.
  func open(_ path: String, password: borrowing Secret?) throws(BackupServiceError) -> UnlockedArchive {
    let archive = try translatingErrors { () throws(KeyhaulError) in try BackupArchive.open(.path(path)) }
    // Clients may send a password for an unencrypted backup. It is ignored.
    let needsPassword = archive.isEncrypted
    do throws(KeyhaulError) {
      if needsPassword { return UnlockedArchive(archive: archive, key: try archive.unlock(password: password)) }
      return UnlockedArchive(archive: archive, key: try archive.unlock(password: nil))
    } catch {
      throw .failed(BackupFailure(error))
    }
  }

  // MARK: Restoring

  /// Restores a backup completely or not at all.
  func restore(_ backup: UnlockedArchive) throws(BackupServiceError) {
    let session = try translatingErrors { () throws(KeyhaulError) in
      try served.device.openSession(.writing, verb: "device serve", wait: ServedDevice.wait)
    }
    defer { session.invalidate() }
    let deviceKey = try translatingErrors { () throws(KeyhaulError) in try session.deviceKey() }
    let contents = try translatingErrors { () throws(KeyhaulError) in
      try backup.archive.open(with: backup.key, deviceKey: deviceKey, for: .restoring)
    }
    if let damage = contents.damage.first { throw .failed(.noBackup, "The backup is damaged: \(damage)") }
    do throws(KeyhaulError) {
      let plan = try Restorer.plan(contents, onto: session, policy: .replace)
      try Restorer.restore(plan, onto: session)
      log(plan)
    } catch {
      throw .failed(BackupFailure(error))
    }
    do throws(KeyhaulError) { try session.close() } catch {
      served.log("\(error.summary): \(error.reason)")
    }
  }

  private func log(_ plan: MigrationPlan) {
    let summary = plan.summary
    var parts = [
      "restored \(summary.migrates) of \(HumanReadable.count(summary.total, "item"))", "removed \(summary.removed)",
    ]
    if summary.staysBehind > 0 { parts.append("\(summary.staysBehind) stay behind") }
    if summary.unreadable > 0 { parts.append("\(summary.unreadable) unreadable") }
    served.log(parts.joined(separator: ", "))
    for reason in Reason.allCases {
      guard let count = summary.byReason[reason], count > 0 else { continue }
      served.log("  \(HumanReadable.count(count, "item")): \(reason.rawValue)")
    }
  }

  // MARK: The manifest

  /// Calls the closure for each file that a backup lists.
  func forEachFile(
    of backup: UnlockedArchive, _ body: (ListedFile) throws(BackupServiceError) -> Void
  ) throws(BackupServiceError) {
    let keys = try translatingErrors { () throws(KeyhaulError) in try backup.key.classKeys(deviceKey: nil) }
    var failure: BackupServiceError?
    try translatingErrors { () throws(KeyhaulError) in
      let fileList = try backup.archive.fileList(with: keys)
      try fileList.forEachFile { file in
        guard failure == nil else { return }
        do throws(BackupServiceError) { try body(file) } catch { failure = error }
      }
    }
    if let failure { throw failure }
  }

  /// Writes the decrypted content of a file of an encrypted backup into the staging folder.
  func decrypt(
    _ file: ListedFile, of backup: UnlockedArchive, into folder: StagingFolder, _ name: String
  ) throws(BackupServiceError) {
    let keys = try translatingErrors { () throws(KeyhaulError) in try backup.key.classKeys(deviceKey: nil) }
    _ = try folder.makeFile(name) { (write) throws(BackupServiceError) in
      var failure: BackupServiceError?
      _ = try translatingErrors { () throws(KeyhaulError) in
        try backup.archive.readPayload(of: file, with: keys) { (chunk) throws(KeyhaulError) in
          guard failure == nil else { return }
          do throws(BackupServiceError) { try write(Array(chunk)) } catch { failure = error }
        }
      }
      if let failure { throw failure }
      return true
    }
  }

  // MARK: The password of a client's backup

  /// Returns a backup's manifest with a new password.
  ///
  /// - Returns: `nil` if the backup is not encrypted.
  /// - Throws: `.wrongPassword` if the old password is not the backup's.
  func rewrapped(
    manifest bytes: [UInt8], from old: borrowing Secret, to new: borrowing Secret
  ) throws(BackupServiceError) -> [UInt8]? {
    let manifest = try translatingErrors { () throws(KeyhaulError) in try BackupManifest(parsing: bytes) }
    guard manifest.isEncrypted == true else { return nil }
    let keybag: Keybag
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.rewrap(manifest.keybag, from: old, to: new)
    } catch {
      throw .failed(error.code == .wrongPassword ? .wrongPassword : .noBackup, error.reason)
    }
    return try translatingErrors { () throws(KeyhaulError) in
      var root = try rootDictionary(of: bytes, in: MetadataFile.manifest.path)
      root["BackupKeyBag"] = .data(keybag.serialized())
      return try encode(root, as: MetadataFile.manifest.path)
    }
  }
}
