import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul diff`: what one keychain has that another has not.
struct Diff: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Compare two backups, or a backup and a device",
    usage: "keyhaul diff A B [--exit-code] [-o FILE]",
    examples: ["keyhaul diff monday.backup family.backup", "keyhaul diff family.backup old-phone --exit-code"],
    flags: [
      "--exit-code", .init("--password-file", "the password of A, and of B if it is the same"),
      .init("--other-password-file", "the password of B, if it differs"),
      .init("--device-key-file", "also compare items that only their device can decrypt"),
      .init("-v", "also list items that no backup contains"), "--output", "--format", "--json",
    ])
  static let configuration = described(as: "diff")
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
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let finder = try ArgumentFinder(session, databaseKeys)
    let sides = [try finder.keychain(first), try finder.keychain(second)]
    try databaseKeys.check(sides)
    if sides.allSatisfy(\.isDevice) {
      try password.refuse(for: first)
      try opening.refuse(for: first)
    }
    for case .dump(let dump) in sides {
      try dump.refusePage(in: session)
      if !sides.contains(where: \.isArchive) { try dump.refuse(UnlockingOptions(password: password, opening: opening)) }
    }
    try report.prepare(
      inputs: sides.flatMap(\.files) + [password.file, otherPassword.file, opening.deviceKeyFile], in: session)
    // What a backup never holds is no difference to one.
    let comparesWithBackup = sides.contains(where: \.isArchive)
    let devices = try sides.map { (side) -> DeviceSide? in
      guard case .device(let device) = side else { return nil }
      return try deviceSide(device, side.word, leavesOut: comparesWithBackup)
    }
    var passwords = ComparisonPasswords(first: password, second: otherPassword)
    let archives = try sides.map { (side) -> NamedArchive? in
      guard case .archive(let found) = side else { return nil }
      return try found.open(storage: opening.storage, in: session)
    }
    try passwords.check(archives, in: session)
    passwords.expect(archives[1])
    var compared: [ComparisonSide] = []
    for index in 0..<2 {
      if let device = devices[index] {
        compared.append(device.side)
      } else if case .dump(let dump) = sides[index] {
        compared.append(dump.side(leavesOut: comparesWithBackup))
      } else if let named = archives[index] {
        let hardware = devices[1 - index]?.hardware
        compared.append(try archiveSide(named, sides[index].word, index: index, hardware, &passwords, in: session))
      }
    }
    let difference = try session.computing { () throws(CommandFailure) in try compare(compared[0], compared[1]) }
    try session.deliver(difference, page: difference.page(program: ProgramVersion.signature), to: report.output)
    for side in compared {
      if let damage = side.keybagDamage { throw CommandFailure.damagedKeybag(of: side.name, report: damage) }
    }
    let found = difference.difference
    if exitCode, !found.isEmpty { return .differs }
    // What could not be compared is not the same.
    return found.undecrypted.damaged > 0 || exitCode && !found.isComplete ? .partial : .ok
  }

  private func compare(
    _ first: ComparisonSide, _ second: ComparisonSide
  ) throws(CommandFailure) -> DifferenceReport {
    do throws(KeyhaulError) {
      return try DifferenceReport(first, second)
    } catch {
      throw CommandFailure(error, doing: "cannot compare \(first.name) and \(second.name)")
    }
  }

  // MARK: Archives

  private func archiveSide(
    _ named: NamedArchive, _ word: String?, index: Int, _ hardware: HardwareKey?,
    _ passwords: inout ComparisonPasswords, in session: Session
  ) throws(CommandFailure) -> ComparisonSide {
    let opened = try passwords.unlock(named, isSecond: index == 1, opening, comparedWith: hardware, in: session)
    return ComparisonSide(
      kind: .archive, name: named.name, argument: word,
      deviceName: named.archive.device.name,
      items: opened.entries, hasKeychain: named.archive.hasKeychain, leftOut: [],
      keybagDamage: opened.keybagDamage)
  }

  // MARK: Devices

  private struct DeviceSide {
    let side: ComparisonSide
    let hardware: HardwareKey
  }

  private func deviceSide(
    _ device: FoundDevice, _ word: String?, leavesOut: Bool
  ) throws -> DeviceSide {
    try device.hold(.reading) { openDevice in
      var items: [KeychainEntry] = []
      var leftOut: [MigrationPlan.Decision] = []
      let rows = try openDevice.keychain.rows(includingTombstones: false, keys: openDevice.classKeys)
      for (index, row) in rows.enumerated() {
        if let fault = row.fault, !fault.isPermanent { throw ItemFailure.locked("compare", on: openDevice) }
        if leavesOut, let reason = reasonToLeaveOut(row, of: openDevice) {
          leftOut.append(KeychainEntry(row, index: index).leftOut(because: reason))
        } else {
          items.append(KeychainEntry(row, index: index))
        }
      }
      return DeviceSide(
        side: ComparisonSide(
          kind: .device, name: openDevice.name, argument: word, deviceName: openDevice.name, items: items,
          hasKeychain: true,
          leftOut: leftOut, keybagDamage: nil),
        hardware: HardwareKey(.named, try openDevice.deviceKey()))
    }
  }

  private func reasonToLeaveOut(_ row: KeychainRow, of openDevice: DeviceSession) -> Reason? {
    guard let item = row.item else { return nil }
    return ExportExclusions.exclusionReason(
      for:
        ExportCandidate(
          item: item, isAccessControlled: item[.accessControl] != nil, isAppClip: row.summary.isAppClip,
          deviceSyncs: openDevice.record.isSyncing))
  }
}
