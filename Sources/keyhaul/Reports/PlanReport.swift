import ArchivedKeychain
import BackupArchive
import Foundation
import KeychainFormats
import Migration
import VirtualDevice

/// A plan with everything that its reports say about it: the archive, the target, the words.
struct PlanReport {
  let plan: MigrationPlan
  let document: PlanDocument
  private let archive: Session.NamedArchive
  private let target: Target

  private struct Target {
    let name: String
    let state: DeviceState
    let isPasscodeSet: Bool
    let itemCount: Int
  }

  init(
    _ plan: MigrationPlan, of archive: Session.NamedArchive, onto session: DeviceSession, made: KeychainDate
  ) throws(CommandFailure) {
    let backup = archive.archive
    let itemCount: Int
    do throws(VirtualDeviceError) {
      itemCount = try session.itemCount
    } catch {
      throw CommandFailure(error, device: session.name)
    }
    self.plan = plan
    self.archive = archive
    target = Target(
      name: session.name, state: session.state, isPasscodeSet: session.isPasscodeSet, itemCount: itemCount)
    document = PlanDocument(
      made: Timestamp.text(of: made),
      source: PlanDocument.Source(
        kind: .archive, name: archive.name, device: backup.device.identifier,
        made: backup.date.map(Timestamp.text), deviceName: backup.device.name, encrypted: backup.isEncrypted,
        digest: backup.digest),
      target: PlanDocument.Target(
        name: session.name, sameDevice: plan.isSameDevice,
        claimsSameDevice: backup.device.identifier == session.record.udid, state: session.state.rawValue,
        passcodeSet: session.isPasscodeSet, items: itemCount, revision: session.record.revision),
      plan: plan)
  }

  /// The device that made the archive, as it claims.
  var sourceDevice: String { archive.archive.device.name ?? "the device that made it" }

  func text(showsAll: Bool) -> PlanText {
    PlanText(
      plan: plan, archiveName: archive.name, targetName: target.name, sourceDevice: sourceDevice, showsAll: showsAll)
  }

  /// The lines above the groups.
  var heading: [String] {
    let backup = archive.archive
    let made = backup.date.map { "made \(TimeText.localWithoutZone($0)) by " } ?? "made by "
    let policy =
      switch plan.policy {
      case .replace: "replace, as iOS does (--existing replace)"
      case .merge: "merge, newer wins (--existing merge)"
      }
    let state =
      switch target.state {
      case .unlocked: "unlocked"
      case .locked: "locked"
      case .beforeFirstUnlock: "before first unlock"
      }
    return [
      "Plan: \(archive.name) → \(target.name) (\(relation))",
      "  \(made)\(sourceDevice) · \(backup.isEncrypted ? "encrypted" : "no password") · "
        + Amounts.count(plan.decisions.count, "item"),
      "  \(target.name): \(state), passcode \(target.isPasscodeSet ? "set" : "not set"), "
        + Amounts.count(target.itemCount, "item"),
      "  existing items: \(policy)",
    ]
  }

  private var relation: String {
    switch plan.isSameDevice {
    case true?: "the same device"
    case false?: "another device"
    case nil: "nothing in it tells whether it is the same device"
    }
  }

  /// Says it before everything else where a backup without a password cannot go to this device.
  var warning: (message: String, why: String, advice: String)? {
    let stays = plan.summary.byReason[.backupNotEncrypted, default: 0]
    guard stays > 0, plan.summary.migrates == 0 else { return nil }
    return (
      "nothing in \(archive.name) can move to \(target.name)",
      "a backup without a password opens only on \(sourceDevice)",
      "make a new backup of \(sourceDevice) with a password"
    )
  }

  /// The document as bytes: sorted keys, so that equal plans are equal bytes.
  func encoded() throws(CommandFailure) -> [UInt8] { try Self.encode(document) }

  static func encode(_ value: some Encodable) throws(CommandFailure) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      return try Array(encoder.encode(value)) + [UInt8(ascii: "\n")]
    } catch {
      throw CommandFailure(.failed, "the report cannot be written", why: "it has no form in JSON")
    }
  }
}
