import Foundation
import Testing

@testable import keyhaul

/// Each phone that comes with the program, with what its description says of it, counted by hand: every item of it is in
/// exactly one of the counts of every report.
@Suite("Item counts in reports")
struct ItemCountTests {
  /// A phone, how many items it has, how many of these no backup holds, and how many of those in the backup are of this
  /// device only.
  struct Phone: Sendable, CustomStringConvertible {
    let name: String
    let items: Int
    let never: Int
    let bound: Int
    /// The number of keys that an encrypted backup restores anywhere, but that only the Secure Enclave could use.
    var enclaveKeys = 0
    var description: String { name }
  }

  /// - old-phone: 22 items. Never: `card 4` (akpu), `vault key` (access control), `peer key` (the system's group), the
  ///   Secure Enclave's key. This device only, in the backup: `push token`, `device id`, the tracker's and the VPN's.
  /// - every-rule: 15 rows, one of them the tombstone of a deleted item. Never: one each of akpu, token, App Clip, shared
  ///   group, system, access control. This device only: `device-bound`. A key of the Secure Enclave in a password that
  ///   goes anywhere: `migrates-but-unusable`.
  /// - every-rule-target: 7 items; the one in `lockdown-identities` is the system's.
  /// - hostile-names and new-phone: 15 and 2 that go anywhere.
  static let phones = [
    Phone(name: "old-phone", items: 22, never: 4, bound: 4),
    Phone(name: "every-rule", items: 14, never: 6, bound: 1, enclaveKeys: 1),
    Phone(name: "every-rule-target", items: 7, never: 1, bound: 0),
    Phone(name: "hostile-names", items: 15, never: 0, bound: 0),
    Phone(name: "new-phone", items: 2, never: 0, bound: 0),
  ]

  /// A backup of the phone with a password and one without, and no phone that they could go to but itself and new-phone.
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

  /// Returns the expected numbers of items that move and that stay.
  private static func expected(_ phone: Phone, encrypted: Bool, same: Bool) -> (arrive: Int, stay: Int) {
    let inBackup = phone.items - phone.never
    return same ? (inBackup, 0) : encrypted ? (inBackup - phone.bound, phone.bound) : (0, inBackup)
  }

  static let archives = [("b.tar", true, "--password-file .bp"), ("plain.tar", false, "")]

  @Test("The counts of a plan without a target add up in text, document and page", arguments: phones)
  func futures(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    for (archive, encrypted, flags) in Self.archives + [(phone.name, true, ""), (phone.name, false, "--no-password")] {
      let (new, own) = (
        Self.expected(phone, encrypted: encrypted, same: false), Self.expected(phone, encrypted: encrypted, same: true)
      )
      let document = try sandbox.object(sandbox.succeed("plan \(archive) \(flags) --json"))
      let rows = try #require(document["futures"] as? [[String: Any]])
      for (row, counts) in zip(rows, [new, own]) {
        #expect(row["arrives"] as? Int == counts.arrive && row["stays_behind"] as? Int == counts.stay, "\(archive)")
        #expect(row["never_in_backup"] as? Int == phone.never && row["total"] as? Int == phone.items, "\(archive)")
        #expect(
          row["unreadable"] as? Int == 0 && row["not_in_this_backup"] as? Int == 0 && row["expected"] as? Int == 0)
      }
      let text = unwrapped(try sandbox.succeed("plan \(archive) \(flags) -v"))
      let dead = encrypted ? phone.enclaveKeys : 0
      let warned =
        phone.enclaveKeys == 0
        ? ""
        : (dead == 0 ? "" : "of them unusable there \(dead) 0 ")
          + "of them whose keys may not work there 0 \(phone.enclaveKeys) "
      let stay = archive == phone.name ? "< stay behind" : "< in the backup, but stay behind"
      #expect(
        text.contains(
          "+ move or are restored \(new.arrive) \(own.arrive) \(warned)\(stay) \(new.stay) \(own.stay) ! cannot be read 0 0 x never "
            + "in a backup \(phone.never) \(phone.never) total \(phone.items) \(phone.items)"),
        "\(text)")
      let page = try sandbox.succeed("plan \(archive) \(flags) --format html -o -")
      for (counts, words) in [
        (new, "\(dead) unusable there"), (own, "\(phone.enclaveKeys) whose keys may not work there"),
      ] {
        let warned = words.hasPrefix("0") ? "" : "\(words) · "
        let left = counts.stay == 0 ? "" : "\(counts.stay) \(counts.stay == 1 ? "stays" : "stay") behind · "
        #expect(
          page.contains(
            "<b>\(counts.arrive)</b> of \(phone.items) items<small>\(warned)\(left)\(phone.never) never in a backup"),
          "\(archive)")
      }
    }
  }

  @Test("The counts of a plan for one device add up in text, document and page", arguments: phones)
  func plans(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    for (archive, encrypted, flags) in Self.archives {
      for target in ["fresh", phone.name] {
        let counts = Self.expected(phone, encrypted: encrypted, same: target == phone.name)
        let line = "plan \(archive) --to \(target) \(flags)"
        let document = try sandbox.object(sandbox.succeed("\(line) --json"))
        let summary = try #require(document["summary"] as? [String: Any])
        #expect(
          summary["migrates"] as? Int == counts.arrive && summary["stays_behind"] as? Int == counts.stay, "\(line)")
        let own = try #require(document["not_in_backup"] as? [String: Any])
        #expect(own["never"] as? Int == phone.never && own["total"] as? Int == phone.items, "\(line)")
        #expect((own["items"] as? [Any])?.count == phone.never && own["since"] as? Int == 0 && own["gone"] as? Int == 0)
        let text = unwrapped(try sandbox.succeed(line))
        let absence =
          phone.never == 0
          ? "A backup cannot show items left out of it"
          : "\(phone.never) \(phone.never == 1 ? "item" : "items") on \(phone) \(phone.never == 1 ? "is" : "are") never "
            + "in a backup."
        #expect(text.contains(absence), "\(line): \(text.suffix(200))")
        let ends = ["move", "be restored"].map { "\(counts.arrive) will \($0)" }
        #expect(ends.contains(where: text.contains), "\(line)")
        if counts.stay > 0 { #expect(text.contains(", \(counts.stay) \(counts.stay == 1 ? "stays" : "stay") behind")) }
        let page = unwrapped(try sandbox.succeed("\(line) --format html -o -"))
        #expect(page.contains("not in the backup: \(phone.never) item"), "\(line)")
        #expect(
          page.contains("<b>\(phone.never)</b><span class=\"symbol\" aria-hidden=\"true\">x</span></p> not in the"))
      }
    }
  }

  @Test("The counts of comparisons, app lists, audits and inspections add up", arguments: phones)
  func others(phone: Phone) throws {
    let sandbox = try Self.sandbox(phone)
    let inBackup = phone.items - phone.never
    for (archive, encrypted, flags) in Self.archives {
      let compared = try sandbox.object(sandbox.succeed("plan \(archive) --to fresh \(flags) --compare --json"))
      for setting in try #require(compared["settings"] as? [[String: Any]]) {
        let counts = Self.expected(
          phone, encrypted: setting["password"] as? Bool == true, same: setting["same_device"] as? Bool == true)
        #expect(setting["arrives"] as? Int == counts.arrive && setting["stays_behind"] as? Int == counts.stay)
      }
      let text = unwrapped(try sandbox.succeed("plan \(archive) --to \(phone) \(flags) --compare"))
      #expect(text.contains("* \(inBackup) restored"))
      #expect(text.contains("Never in a backup (\(phone.never))") == (phone.never > 0), "\(text)")
      for line in [
        "plan \(archive) --to fresh \(flags) --compare", "plan \(archive) --to fresh \(flags) --by-app",
        "plan \(archive) --to fresh \(flags) --audit", "inspect \(archive) \(flags)",
        "inspect \(archive) --list \(flags)",
      ] {
        let own = try #require(
          try sandbox.object(sandbox.succeed("\(line) --json"))["not_in_backup"] as? [String: Any], "\(line)")
        #expect(
          own["never"] as? Int == phone.never && own["in_backup"] as? Int == inBackup
            && own["total"] as? Int == phone.items, "\(line)")
        #expect(
          unwrapped(try sandbox.succeed(line)).contains("Never in a backup (\(phone.never))") == (phone.never > 0))
      }
      for line in [
        "plan \(archive) --to fresh \(flags) --compare --format html", "inspect \(archive) \(flags) --format html",
      ] {
        #expect(try sandbox.succeed("\(line) -o -").contains("not in the backup: \(phone.never) item"), "\(line)")
      }
      #expect(encrypted || inBackup > 0)
    }
  }
}
