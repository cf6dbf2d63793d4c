import KeyhaulKit
import Reports

extension ReportSource {
  /// Creates the source for a report on a backup.
  ///
  /// - Parameter fileList: The backup's file list. Its domains name the apps if no property list does.
  init(_ loaded: LoadedBackup, fileList: FileList? = nil) {
    let apps = InstalledApps.appDirectory(of: loaded.archive) {
      (try? fileList?.listing().rowCountByDomain.keys.sorted()) ?? []
    }
    self.init(loaded.archive, name: loaded.name, apps: apps)
  }

  /// Creates the source for a report on a backup that was decrypted for a device.
  init(_ loaded: LoadedBackup, namesFrom opened: BackupUnlocker.BackupForDevice) {
    self.init(loaded, fileList: opened.backup.fileList)
    let backup = opened.backup
    findings = backup.findings
    lostKinds = backup.items.filter { backup.reason(of: $0)?.isDamage == true }.map(\.kind)
    // A missing Status.plist alone does not show that items are missing.
    mayLackItems = backup.damage.contains { $0 != .statusMissing && $0 != .finding(.stateMissing) }
    nameDecryptingDevice = backup.encryptedItemSummaries.isEmpty ? nil : opened.sourceDeviceName
  }

  /// Creates the source for a report on a device, as if the device had been backed up.
  ///
  /// - Parameter hasPassword: Whether this backup would have a password.
  init(_ device: DeviceSession, hasPassword: Bool) throws(CommandError) {
    do throws(DataProtectionError) {
      try self.init(of: device, hasPassword: hasPassword)
    } catch {
      throw CommandError(error, failedAction: "cannot plan for \(device.name)")
    }
  }
}

extension PlanReport {
  /// Creates a report on a plan for a device in its current state.
  init(
    _ plan: MigrationPlan, of source: ReportSource, onto device: DeviceSession, isRedacted: Bool = false
  ) throws(CommandError) {
    do throws(KeyhaulError) {
      try self.init(plan, of: source, onto: device, made: device.environment.clock.now(), isRedacted: isRedacted)
    } catch {
      throw CommandError(error, device: device.name)
    }
  }
}
