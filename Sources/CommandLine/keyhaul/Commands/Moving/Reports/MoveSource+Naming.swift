import KeyhaulKit
import Reports

extension MoveSource {
  init(_ named: NamedArchive) {
    self.init(
      named.archive, name: named.name, apps: AppDirectory(installed: InstalledApps.names(in: named.archive)))
  }

  init(_ named: NamedArchive, namesFrom opened: ArchiveUnlocker.OpenedForDevice) {
    self.init(named)
    let archive = opened.archive
    findings = archive.findings
    lostKinds = archive.items.filter { archive.reason(of: $0)?.isDamage == true }.map(\.kind)
    // Without Status.plist nothing says that anything is missing.
    mayLackItems = archive.damage.contains { $0 != .statusMissing && $0 != .finding(.stateMissing) }
    namesFrom = opened.archive.knownSealed.isEmpty ? nil : opened.maker
  }

  /// - Parameter hasPassword: Whether the backup that is thought of has one.
  init(_ session: DeviceSession, hasPassword: Bool) throws(CommandFailure) {
    do throws(DataProtectionError) {
      try self.init(of: session, hasPassword: hasPassword)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(session.name)")
    }
  }
}
