import Foundation
import Testing

@testable import keyhaul

/// Compares the reports of every bundled phone with counts that were made by hand. Every item is in exactly one count of
/// a report.
@Suite("Item counts in reports")
struct ItemCountTests {
  /// A bundled phone with the numbers of its items.
  struct Phone: Sendable, CustomStringConvertible {
    let name: String
    let items: Int
    /// The number of items that are never in a backup.
    let never: Int
    /// The number of this-device-only items in a backup.
    let bound: Int
    /// The number of keys that an encrypted backup restores anywhere, but that only the Secure Enclave could use.
    var enclaveKeys = 0
    var description: String { name }
  }

  /// The phones, counted as follows:
  ///
  /// - old-phone: Four items are never in a backup: `card 4` (akpu), `vault key` (access control), `peer key` (the
  ///   system's group) and the key of the Secure Enclave. Four are this-device-only: `push token`, `device id`, and those
  ///   of the tracker and the VPN.
  /// - every-rule: A 15th row is the tombstone of a deleted item. Six items are never in a backup: one each for akpu, a
  ///   token, an App Clip, a shared group, the system and an access control. `device-bound` is this-device-only.
  ///   `migrates-but-unusable` is a password that contains a key of the Secure Enclave.
  /// - every-rule-target: The item in `lockdown-identities` belongs to the system.
  /// - hostile-names and new-phone: All items move to any device.
  static let phones = [
    Phone(name: "old-phone", items: 22, never: 4, bound: 4),
    Phone(name: "every-rule", items: 14, never: 6, bound: 1, enclaveKeys: 1),
    Phone(name: "every-rule-target", items: 7, never: 1, bound: 0),
    Phone(name: "hostile-names", items: 15, never: 0, bound: 0),
    Phone(name: "new-phone", items: 2, never: 0, bound: 0),
  ]

  /// Returns a sandbox with the phone, a backup of it with a password, one without, and an empty phone `fresh`.
  private static func sandbox(_ phone: Phone) throws -> PhoneSandbox {
    try PhoneSandbox(named: "balance \(phone)") { sandbox in
      if !["old-phone", "new-phone"].contains(phone.name) {
        try sandbox.succeed("device create \(phone) --from \(phone) -q")
      }
      try sandbox.backUp(phone.name, to: "b.tar")
      try sandbox.succeed("backup \(phone) -o plain.tar --no-password -q")
      try sandbox.succeed("device create fresh -q")
    }
  }

  /// Returns the expected numbers of items that arrive and that stay behind.
  private static func expected(
    _ phone: Phone, isEncrypted: Bool, isSameDevice: Bool
  ) -> (arrive: Int, stay: Int) {
    let inBackup = phone.items - phone.never
    if isSameDevice { return (inBackup, 0) }
    return isEncrypted ? (inBackup - phone.bound, phone.bound) : (0, inBackup)
  }

  static let backups = [("b.tar", true, "--password-file .bp"), ("plain.tar", false, "")]

  @Test("The counts of a plan without a target add up in text, document and page", arguments: phones)
  func futures(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    for (source, isEncrypted, flags) in Self.backups + [(phone.name, true, ""), (phone.name, false, "--no-password")] {
      let new = Self.expected(phone, isEncrypted: isEncrypted, isSameDevice: false)
      let same = Self.expected(phone, isEncrypted: isEncrypted, isSameDevice: true)
      let document = try sandbox.object(sandbox.succeed("plan \(source) \(flags) --json"))
      let rows = try #require(document["futures"] as? [[String: Any]])
      for (row, counts) in zip(rows, [new, same]) {
        #expect(row["arrives"] as? Int == counts.arrive && row["stays_behind"] as? Int == counts.stay, "\(source)")
        #expect(row["never_in_backup"] as? Int == phone.never && row["total"] as? Int == phone.items, "\(source)")
        #expect(
          row["unreadable"] as? Int == 0 && row["not_in_this_backup"] as? Int == 0 && row["expected"] as? Int == 0)
      }
      let text = unwrapped(try sandbox.succeed("plan \(source) \(flags) -v"))
      let unusable = isEncrypted ? phone.enclaveKeys : 0
      let unusableRow = unusable == 0 ? "" : "of them unusable there \(unusable) 0 "
      let unknownRow = phone.enclaveKeys == 0 ? "" : "of them whose keys may not work there 0 \(phone.enclaveKeys) "
      let stayTitle = source == phone.name ? "< stay behind" : "< in the backup, but stay behind"
      #expect(
        text.contains(
          "+ move or are restored \(new.arrive) \(same.arrive) \(unusableRow)\(unknownRow)\(stayTitle) \(new.stay) "
            + "\(same.stay) ! cannot be read 0 0 x never in a backup \(phone.never) \(phone.never) "
            + "total \(phone.items) \(phone.items)"),
        "\(text)")
      let page = try sandbox.succeed("plan \(source) \(flags) --format html -o -")
      for (counts, warning) in [
        (new, "\(unusable) unusable there"), (same, "\(phone.enclaveKeys) whose keys may not work there"),
      ] {
        let warned = warning.hasPrefix("0") ? "" : "\(warning) · "
        let staying = counts.stay == 0 ? "" : "\(counts.stay) \(counts.stay == 1 ? "stays" : "stay") behind · "
        #expect(
          page.contains(
            "<b>\(counts.arrive)</b> of \(phone.items) items<small>\(warned)\(staying)\(phone.never) never in a backup"),
          "\(source)")
      }
    }
  }

  @Test("The counts of a plan for one device add up in text, document and page", arguments: phones)
  func plans(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    for (backup, isEncrypted, flags) in Self.backups {
      for target in ["fresh", phone.name] {
        let counts = Self.expected(phone, isEncrypted: isEncrypted, isSameDevice: target == phone.name)
        let line = "plan \(backup) --to \(target) \(flags)"
        let document = try sandbox.object(sandbox.succeed("\(line) --json"))
        let summary = try #require(document["summary"] as? [String: Any])
        #expect(
          summary["migrates"] as? Int == counts.arrive && summary["stays_behind"] as? Int == counts.stay, "\(line)")
        let notInBackup = try #require(document["not_in_backup"] as? [String: Any])
        #expect(notInBackup["never"] as? Int == phone.never && notInBackup["total"] as? Int == phone.items, "\(line)")
        #expect(
          (notInBackup["items"] as? [Any])?.count == phone.never && notInBackup["since"] as? Int == 0
            && notInBackup["gone"] as? Int == 0)
        let text = unwrapped(try sandbox.succeed(line))
        let absence =
          phone.never == 0
          ? "A backup cannot show items left out of it"
          : "\(phone.never) \(phone.never == 1 ? "item" : "items") on \(phone) \(phone.never == 1 ? "is" : "are") never "
            + "in a backup."
        #expect(text.contains(absence), "\(line): \(text.suffix(200))")
        let summaries = ["move", "be restored"].map { "\(counts.arrive) will \($0)" }
        #expect(summaries.contains(where: text.contains), "\(line)")
        if counts.stay > 0 { #expect(text.contains(", \(counts.stay) \(counts.stay == 1 ? "stays" : "stay") behind")) }
        let page = unwrapped(try sandbox.succeed("\(line) --format html -o -"))
        #expect(page.contains("not in the backup: \(phone.never) item"), "\(line)")
        #expect(
          page.contains("<b>\(phone.never)</b><span class=\"symbol\" aria-hidden=\"true\">x</span></p> not in the"))
      }
    }
  }

  @Test("The counts of comparisons, app lists, audits and inspections add up", arguments: phones)
  func otherReports(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    let inBackup = phone.items - phone.never
    for (backup, isEncrypted, flags) in Self.backups {
      let compared = try sandbox.object(sandbox.succeed("plan \(backup) --to fresh \(flags) --compare --json"))
      for setting in try #require(compared["settings"] as? [[String: Any]]) {
        let counts = Self.expected(
          phone, isEncrypted: setting["password"] as? Bool == true,
          isSameDevice: setting["same_device"] as? Bool == true)
        #expect(setting["arrives"] as? Int == counts.arrive && setting["stays_behind"] as? Int == counts.stay)
      }
      let text = unwrapped(try sandbox.succeed("plan \(backup) --to \(phone) \(flags) --compare"))
      #expect(text.contains("* \(inBackup) restored"))
      #expect(text.contains("Never in a backup (\(phone.never))") == (phone.never > 0), "\(text)")
      for line in [
        "plan \(backup) --to fresh \(flags) --compare", "plan \(backup) --to fresh \(flags) --by-app",
        "plan \(backup) --to fresh \(flags) --audit", "inspect \(backup) \(flags)",
        "inspect \(backup) --list \(flags)",
      ] {
        let notInBackup = try #require(
          try sandbox.object(sandbox.succeed("\(line) --json"))["not_in_backup"] as? [String: Any], "\(line)")
        #expect(
          notInBackup["never"] as? Int == phone.never && notInBackup["in_backup"] as? Int == inBackup
            && notInBackup["total"] as? Int == phone.items, "\(line)")
        #expect(
          unwrapped(try sandbox.succeed(line)).contains("Never in a backup (\(phone.never))") == (phone.never > 0))
      }
      for line in [
        "plan \(backup) --to fresh \(flags) --compare --format html", "inspect \(backup) \(flags) --format html",
      ] {
        #expect(try sandbox.succeed("\(line) -o -").contains("not in the backup: \(phone.never) item"), "\(line)")
      }
      #expect(isEncrypted || inBackup > 0)
    }
  }
}
