import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul diff`: compares two keychains.
struct Diff: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Compare two backups, or a backup and a device",
    usage: "keyhaul diff A B [--exit-code] [-o FILE]",
    examples: ["keyhaul diff monday.backup family.backup", "keyhaul diff family.backup old-phone --exit-code"],
    flags: [
      "--exit-code", .init("--password-file", "the password of A, and of B if it is the same"),
      .init("--other-password-file", "the password of B, if it differs"),
      .init("--device-key-file", "also compare items that only their device can decrypt"),
      .init("-v", "also list items that no backup contains"), "--output", "--format", "--json",
    ])
  static let configuration = makeConfiguration(named: "diff")
  static let formats: [OutputFormat] = [.text, .json, .html]

  @Argument(help: "A backup or a device.", completion: .devicesAndFiles) var first: String
  @Argument(
    help: "The backup or device to compare it with. Items found only here count as new.", completion: .devicesAndFiles
  )
  var second: String
  @Flag(help: "Exit with 2 if anything differs, or with 3 if nothing differs but not everything could be compared.")
  var exitCode = false
  @OptionGroup var report: ReportOptions
  @OptionGroup(title: "The backups' password") var password: PasswordFlags
  @OptionGroup(title: "The second backup's password, if it differs") var otherPassword: OtherPasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let resolver = try SourceResolver(session, databaseKeys)
    let sources = [try resolver.keychain(first), try resolver.keychain(second)]
    try checkFlags(for: sources, in: session)
    try report.prepare(
      inputs: sources.flatMap(\.files) + [password.file, otherPassword.file, decryption.deviceKeyFile], in: session)
    let sides = try comparisonSides(of: sources, in: session)
    let differenceReport = try session.computing { () throws(CommandError) in try compare(sides[0], sides[1]) }
    try session.deliver(
      differenceReport, page: differenceReport.page(program: ProgramVersion.signature), to: report.output)
    for side in sides {
      if let damage = side.keybagDamage { throw CommandError.damagedKeybag(of: side.name, report: damage) }
    }
    let difference = differenceReport.difference
    if exitCode, !difference.isEmpty { return .differs }
    // Items that could not be compared may differ.
    return difference.undecrypted.damaged > 0 || exitCode && !difference.isComplete ? .partial : .ok
  }

  /// Reads the two keychains. A device is read before a backup, because the device's key may decrypt the backup.
  private func comparisonSides(of sources: [ResolvedSource], in session: Session) throws -> [ComparisonSide] {
    // Items that no backup contains do not count as differences from a backup.
    let comparesWithBackup = sources.contains(where: \.isBackup)
    let devices = try sources.map { (source) -> DeviceSide? in
      guard case .device(let device) = source else { return nil }
      return try deviceSide(device, source.suggestedArgument, comparesWithBackup: comparesWithBackup)
    }
    var passwords = DiffPasswords(first: password, second: otherPassword)
    let backups = try sources.map { (source) -> LoadedBackup? in
      guard case .backup(let backup) = source else { return nil }
      return try backup.open(storage: decryption.storage, in: session)
    }
    try passwords.check(backups, in: session)
    passwords.secondBackup = backups[1]
    var sides: [ComparisonSide] = []
    for (index, source) in sources.enumerated() {
      if let device = devices[index] {
        sides.append(device.side)
      } else if case .dump(let dump) = source {
        sides.append(dump.side(comparesWithBackup: comparesWithBackup))
      } else if let loaded = backups[index] {
        let otherDeviceKey = devices[1 - index]?.deviceKey
        sides.append(
          try backupSide(
            loaded, source.suggestedArgument, isSecond: index == 1, comparedWith: otherDeviceKey, &passwords,
            in: session))
      }
    }
    return sides
  }

  /// Rejects flags that do not apply to the compared keychains.
  private func checkFlags(for sources: [ResolvedSource], in session: Session) throws(CommandError) {
    try databaseKeys.check(sources)
    if sources.allSatisfy(\.isDevice) {
      try password.reject(for: first)
      try decryption.reject(for: first)
    }
    for case .dump(let dump) in sources {
      try dump.rejectPage(in: session)
      if !sources.contains(where: \.isBackup) { try dump.reject(accessOptions) }
    }
  }

  private func compare(
    _ first: ComparisonSide, _ second: ComparisonSide
  ) throws(CommandError) -> DifferenceReport {
    do throws(KeyhaulError) {
      return try DifferenceReport(first, second)
    } catch {
      throw CommandError(error, failedAction: "cannot compare \(first.name) and \(second.name)")
    }
  }

  // MARK: Backups

  private func backupSide(
    _ loaded: LoadedBackup, _ argument: String?, isSecond: Bool, comparedWith deviceKey: DeviceKeyCandidate?,
    _ passwords: inout DiffPasswords, in session: Session
  ) throws(CommandError) -> ComparisonSide {
    let opened = try passwords.unlock(loaded, isSecond: isSecond, decryption, comparedWith: deviceKey, in: session)
    return ComparisonSide(
      kind: .archive, name: loaded.name, argument: argument,
      deviceName: loaded.archive.device.name,
      items: opened.entries, hasKeychain: loaded.archive.hasKeychain, omissions: [],
      keybagDamage: opened.keybagDamage)
  }

  // MARK: Devices

  /// A device as one side of the comparison, with its device key.
  private struct DeviceSide {
    let side: ComparisonSide
    let deviceKey: DeviceKeyCandidate
  }

  private func deviceSide(
    _ device: ResolvedDevice, _ argument: String?, comparesWithBackup: Bool
  ) throws -> DeviceSide {
    try device.withSession(.reading) { openDevice in
      var items: [KeychainEntry] = []
      var omissions: [MigrationPlan.Decision] = []
      let rows = try openDevice.keychain.rows(includingTombstones: false, keys: openDevice.classKeys)
      for (index, row) in rows.enumerated() {
        if let fault = row.fault, !fault.isPermanent { throw ItemError.locked("compare", on: openDevice) }
        if comparesWithBackup, let reason = exclusionReason(for: row, on: openDevice) {
          omissions.append(KeychainEntry(row, index: index).omission(because: reason))
        } else {
          items.append(KeychainEntry(row, index: index))
        }
      }
      return DeviceSide(
        side: ComparisonSide(
          kind: .device, name: openDevice.name, argument: argument, deviceName: openDevice.name, items: items,
          hasKeychain: true,
          omissions: omissions, keybagDamage: nil),
        deviceKey: DeviceKeyCandidate(.named, try openDevice.deviceKey()))
    }
  }

  /// Returns why no backup contains an item; `nil` if a backup contains the item.
  private func exclusionReason(for row: KeychainRow, on openDevice: DeviceSession) -> Reason? {
    guard let item = row.item else { return nil }
    return ExportExclusions.exclusionReason(
      for:
        ExportCandidate(
          item: item, isAccessControlled: item[.accessControl] != nil, isAppClip: row.summary.isAppClip,
          deviceSyncs: openDevice.record.isSyncing))
  }
}
