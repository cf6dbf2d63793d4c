import Foundation
import Testing

@testable import keyhaul

/// Compares the reports on every bundled phone with counts that were made by hand. In each report, every item is counted
/// exactly once.
@Suite("Item counts in reports")
struct ItemCountTests {
  /// A bundled phone with counts of its items.
  struct Phone: Sendable, CustomStringConvertible {
    let name: String
    let itemCount: Int
    let neverInBackupCount: Int
    /// The number of this-device-only items in a backup.
    let deviceBoundCount: Int
    /// The number of Secure Enclave keys that an encrypted backup restores to any device, where they may be unusable.
    var enclaveKeyCount = 0
    var description: String { name }

    var inBackupCount: Int { itemCount - neverInBackupCount }
  }

  /// The expected numbers of items in one restore.
  struct RestoreCounts {
    let arriving: Int
    let staying: Int

    init(_ phone: Phone, isEncrypted: Bool, isSameDevice: Bool) {
      staying = isSameDevice ? 0 : isEncrypted ? phone.deviceBoundCount : phone.inBackupCount
      arriving = phone.inBackupCount - staying
    }

    /// A clause with the number of staying items.
    var stayClause: String { staying == 1 ? "1 stays behind" : "\(staying) stay behind" }
  }

  /// The phones, counted as follows:
  ///
  /// - old-phone: Four items are never in a backup: `card 4` (akpu), `vault key` (access control), `peer key` (the
  ///   system's group) and the key of the Secure Enclave. Four are this-device-only: `push token`, `device id`, and the
  ///   items of the tracker and the VPN.
  /// - every-rule: A 15th row is the tombstone of a deleted item. Six items are never in a backup: one each for akpu, a
  ///   token, an App Clip, a shared group, the system and an access control. `device-bound` is this-device-only.
  ///   `migrates-but-unusable` is a password that contains a key of the Secure Enclave.
  /// - every-rule-target: The item in `lockdown-identities` belongs to the system.
  /// - hostile-names and new-phone: All items move to any device.
  static let phones = [
    Phone(name: "old-phone", itemCount: 22, neverInBackupCount: 4, deviceBoundCount: 4),
    Phone(name: "every-rule", itemCount: 14, neverInBackupCount: 6, deviceBoundCount: 1, enclaveKeyCount: 1),
    Phone(name: "every-rule-target", itemCount: 7, neverInBackupCount: 1, deviceBoundCount: 0),
    Phone(name: "hostile-names", itemCount: 15, neverInBackupCount: 0, deviceBoundCount: 0),
    Phone(name: "new-phone", itemCount: 2, neverInBackupCount: 0, deviceBoundCount: 0),
  ]

  /// Returns a sandbox with the phone, its backups with a password (`b.tar`) and without a password (`plain.tar`), and an
  /// empty phone `fresh`.
  private static func sandbox(_ phone: Phone) throws -> PhoneSandbox {
    try PhoneSandbox(named: "counts of \(phone)") { sandbox in
      if !["old-phone", "new-phone"].contains(phone.name) {
        try sandbox.succeed("device create \(phone) --from \(phone) -q")
      }
      try sandbox.backUp(phone.name, to: "b.tar")
      try sandbox.succeed("backup \(phone) -o plain.tar --no-password -q")
      try sandbox.succeed("device create fresh -q")
    }
  }

  /// The source of a plan, with the flags that its reports need.
  private struct Source {
    let name: String
    let isEncrypted: Bool
    let flags: String
  }

  private static let backups = [
    Source(name: "b.tar", isEncrypted: true, flags: "--password-file .bp"),
    Source(name: "plain.tar", isEncrypted: false, flags: ""),
  ]

  @Test("The counts of a plan without a target add up in text, document and page", arguments: phones)
  func outlooks(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    let devices = [
      Source(name: phone.name, isEncrypted: true, flags: ""),
      Source(name: phone.name, isEncrypted: false, flags: "--no-password"),
    ]
    for source in Self.backups + devices {
      let newDeviceCounts = RestoreCounts(phone, isEncrypted: source.isEncrypted, isSameDevice: false)
      let sameDeviceCounts = RestoreCounts(phone, isEncrypted: source.isEncrypted, isSameDevice: true)
      let line = "plan \(source.name) \(source.flags)"
      let document = try sandbox.object(sandbox.succeed("\(line) --json"))
      let outlooks = try #require(document["futures"] as? [[String: Any]])
      // For a device, the outlooks for a backup with the other password setting follow.
      #expect(outlooks.count == (source.name == phone.name ? 4 : 2), "\(line)")
      for (outlook, counts) in zip(outlooks, [newDeviceCounts, sameDeviceCounts]) {
        check(outlook, against: counts, of: phone)
      }
      try checkOutlookText(
        of: source, newDevice: newDeviceCounts, sameDevice: sameDeviceCounts, phone: phone, in: sandbox)
      let page = try sandbox.succeed("\(line) --format html -o -")
      let unusableCount = source.isEncrypted ? phone.enclaveKeyCount : 0
      let newDeviceWarning = unusableCount == 0 ? "" : "\(unusableCount) unusable there · "
      let sameDeviceWarning =
        phone.enclaveKeyCount == 0 ? "" : "\(phone.enclaveKeyCount) whose keys may not work there · "
      for (counts, warning) in [(newDeviceCounts, newDeviceWarning), (sameDeviceCounts, sameDeviceWarning)] {
        let staying = counts.staying == 0 ? "" : "\(counts.stayClause) · "
        #expect(
          page.contains(
            "<b>\(counts.arriving)</b> of \(phone.itemCount) items<small>\(warning)\(staying)"
              + "\(phone.neverInBackupCount) never in a backup"), "\(line)")
      }
    }
  }

  /// Checks the outlook for one restore in the document of a plan.
  private func check(_ outlook: [String: Any], against counts: RestoreCounts, of phone: Phone) {
    #expect(outlook["arrives"] as? Int == counts.arriving && outlook["stays_behind"] as? Int == counts.staying)
    #expect(outlook["never_in_backup"] as? Int == phone.neverInBackupCount)
    #expect(outlook["total"] as? Int == phone.itemCount)
    for member in ["unreadable", "not_in_this_backup", "expected"] {
      #expect(outlook[member] as? Int == 0, "\(member)")
    }
  }

  /// Checks the table in the text of a plan. Its columns are a restore to a new device and to the same device.
  private func checkOutlookText(
    of source: Source, newDevice: RestoreCounts, sameDevice: RestoreCounts, phone: Phone, in sandbox: PhoneSandbox
  ) throws {
    let text = unwrapped(try sandbox.succeed("plan \(source.name) \(source.flags) -v"))
    var rows = ["+ move or are restored \(newDevice.arriving) \(sameDevice.arriving)"]
    if phone.enclaveKeyCount > 0 {
      if source.isEncrypted { rows.append("of them unusable there \(phone.enclaveKeyCount) 0") }
      rows.append("of them whose keys may not work there 0 \(phone.enclaveKeyCount)")
    }
    let stayTitle = source.name == phone.name ? "< stay behind" : "< in the backup, but stay behind"
    rows.append("\(stayTitle) \(newDevice.staying) \(sameDevice.staying)")
    rows.append("! cannot be read 0 0")
    rows.append("x never in a backup \(phone.neverInBackupCount) \(phone.neverInBackupCount)")
    rows.append("total \(phone.itemCount) \(phone.itemCount)")
    #expect(text.contains(rows.joined(separator: " ")), "\(text)")
  }

  @Test("The counts of a plan for a target device add up in text, document and page", arguments: phones)
  func plans(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    for backup in Self.backups {
      for target in ["fresh", phone.name] {
        let counts = RestoreCounts(phone, isEncrypted: backup.isEncrypted, isSameDevice: target == phone.name)
        let line = "plan \(backup.name) --to \(target) \(backup.flags)"
        let document = try sandbox.object(sandbox.succeed("\(line) --json"))
        let summary = try #require(document["summary"] as? [String: Any])
        #expect(summary["migrates"] as? Int == counts.arriving, "\(line)")
        #expect(summary["stays_behind"] as? Int == counts.staying, "\(line)")
        let notInBackup = try #require(document["not_in_backup"] as? [String: Any])
        #expect(notInBackup["never"] as? Int == phone.neverInBackupCount, "\(line)")
        #expect(notInBackup["total"] as? Int == phone.itemCount, "\(line)")
        #expect((notInBackup["items"] as? [Any])?.count == phone.neverInBackupCount)
        #expect(notInBackup["since"] as? Int == 0 && notInBackup["gone"] as? Int == 0)
        let text = unwrapped(try sandbox.succeed(line))
        let noteOnBlindSpots =
          switch phone.neverInBackupCount {
          case 0: "A backup cannot show items left out of it"
          case 1: "1 item on \(phone) is never in a backup."
          default: "\(phone.neverInBackupCount) items on \(phone) are never in a backup."
          }
        #expect(text.contains(noteOnBlindSpots), "\(line): \(text.suffix(200))")
        let summaries = ["move", "be restored"].map { "\(counts.arriving) will \($0)" }
        #expect(summaries.contains(where: text.contains), "\(line)")
        if counts.staying > 0 { #expect(text.contains(", \(counts.stayClause)")) }
        let page = unwrapped(try sandbox.succeed("\(line) --format html -o -"))
        #expect(page.contains("not in the backup: \(phone.neverInBackupCount) item"), "\(line)")
        #expect(
          page.contains(
            "<b>\(phone.neverInBackupCount)</b><span class=\"symbol\" aria-hidden=\"true\">x</span></p> not in the"))
      }
    }
  }

  @Test("The counts of comparisons, app lists, audits and inspections add up", arguments: phones)
  func otherReports(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    let neverSection = "Never in a backup (\(phone.neverInBackupCount))"
    let hasNeverSection = phone.neverInBackupCount > 0
    for backup in Self.backups {
      let plan = "plan \(backup.name) --to fresh \(backup.flags)"
      let inspect = "inspect \(backup.name) \(backup.flags)"
      let comparison = try sandbox.object(sandbox.succeed("\(plan) --compare --json"))
      for restore in try #require(comparison["settings"] as? [[String: Any]]) {
        let counts = RestoreCounts(
          phone, isEncrypted: restore["password"] as? Bool == true,
          isSameDevice: restore["same_device"] as? Bool == true)
        #expect(restore["arrives"] as? Int == counts.arriving && restore["stays_behind"] as? Int == counts.staying)
      }
      let sameDeviceText = unwrapped(
        try sandbox.succeed("plan \(backup.name) --to \(phone) \(backup.flags) --compare"))
      #expect(sameDeviceText.contains("* \(phone.inBackupCount) restored"))
      #expect(sameDeviceText.contains(neverSection) == hasNeverSection, "\(sameDeviceText)")
      for line in ["\(plan) --compare", "\(plan) --by-app", "\(plan) --audit", inspect, "\(inspect) --list"] {
        let notInBackup = try #require(
          try sandbox.object(sandbox.succeed("\(line) --json"))["not_in_backup"] as? [String: Any], "\(line)")
        #expect(notInBackup["never"] as? Int == phone.neverInBackupCount, "\(line)")
        #expect(notInBackup["in_backup"] as? Int == phone.inBackupCount, "\(line)")
        #expect(notInBackup["total"] as? Int == phone.itemCount, "\(line)")
        #expect(unwrapped(try sandbox.succeed(line)).contains(neverSection) == hasNeverSection, "\(line)")
      }
      for line in ["\(plan) --compare", inspect] {
        let page = try sandbox.succeed("\(line) --format html -o -")
        #expect(page.contains("not in the backup: \(phone.neverInBackupCount) item"), "\(line)")
      }
    }
  }
}
