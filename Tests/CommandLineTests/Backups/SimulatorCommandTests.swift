import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Simulator keychains")
struct SimulatorCommandTests {
  private static let keychains = "Devices/UDID/data/Library/Keychains"

  /// Returns a sandbox with two Simulators: `UDID` with the database and log of the test vectors, and `empty` without items.
  private static func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    let vectors = try TestVectors.database()
    try sandbox.run(
      "mkdir -p \(keychains) Devices/empty/data/Library/Keychains Devices/other; keyhaul device create phone --from old-phone -q"
    )
    let path = sandbox.home.appending(path: "\(keychains)/keychain-2-debug.db").path
    try Data(vectors["base64"].base64Bytes).write(to: URL(filePath: path))
    try Data(vectors["wal"]["base64"].base64Bytes).write(to: URL(filePath: path + "-wal"))
    let empty = sandbox.home.appending(path: "Devices/empty/data/Library/Keychains/keychain-2-debug.db").path
    try Data(vectors["base64"].base64Bytes).write(to: URL(filePath: empty))
    try DatabaseQueue(path: empty).write { database in
      for table in ["genp", "inet", "cert", "keys"] { try database.execute(sql: "DELETE FROM \(table)") }
    }
    return sandbox
  }

  /// Returns the outcome of each item in a plan, without its index, because devices number their items differently.
  private func fates(_ document: JSONValue) -> [String] {
    (document["items"]?.arrayValue ?? []).map { item in
      ["kind", "service", "server", "account", "label", "access_group", "protection", "outcome", "reason"].map { name in
        item[name]?.stringValue ?? "-"
      }.joined(separator: "|")
    }.sorted()
  }

  @Test("A list of Simulators shows their items, and a dry run of seed shows the items but changes nothing")
  func listed() throws {
    let sandbox = try Self.sandbox()
    #expect(
      try sandbox.run("keyhaul simulator list Devices").output
        == "SIMULATOR  RUNTIME  STATE  ITEMS  SCHEMA\nUDID       –        –         13  12.11\nempty      –        –          0  12.11\n"
    )
    let before = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")
    let rehearsed = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone -n")
    #expect(
      rehearsed.output.hasPrefix("Would put 22 items from phone into Devices/UDID: 22 new.\nKIND "), "\(rehearsed)")
    #expect(rehearsed.output.split(separator: "\n").count == 24 && rehearsed.status == 0)
    #expect(rehearsed.errors.contains("1 key of phone cannot be used in a Simulator"), "\(rehearsed)")
    #expect(try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json") == before)
  }

  @Test("Seed puts the items of a device into a Simulator, and a repeated seed puts only changed items")
  func seeded() throws {
    let sandbox = try Self.sandbox()
    let seeded = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone --yes")
    #expect(seeded.output == "Put 22 items from phone into Devices/UDID: 22 new.\n" && seeded.status == 0, "\(seeded)")
    // The items of the bundled description lack values that a device adds, such as the UUID.
    let again = try sandbox.run("keyhaul simulator seed Devices/UDID --from old-phone --keep --yes")
    #expect(again.output == "Nothing to do in Devices/UDID: 22 kept with other values.\n", "\(again)")
    let digest = "sha256sum Devices/UDID/data/Library/Keychains/keychain-2-debug.db"
    let stored = try sandbox.run(digest).output
    for flags in ["", "--yes", "-n"] {
      let outcome = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone \(flags)")
      #expect(outcome.output == "Nothing to do: 22 items of phone are already in Devices/UDID.\n", "\(outcome)")
    }
    #expect(try sandbox.run(digest).output == stored)
    let changed = try sandbox.run(
      "keyhaul item update Devices/UDID --service chat.example --account anna --new-label other --yes")
    #expect(changed.status == 0, "\(changed)")
    for (flags, sentence) in [
      ("--keep", "Nothing to do in Devices/UDID: 21 already there, 1 kept with other values.\n"),
      ("-n", "Would put 1 item from phone into Devices/UDID: 1 replaced, 21 already there.\nKIND"),
      ("", "Put 1 item from phone into Devices/UDID: 1 replaced, 21 already there.\n"),
    ] {
      #expect(
        try sandbox.run("keyhaul simulator seed Devices/UDID --from phone --yes \(flags)").output.hasPrefix(sentence))
    }
    #expect(try sandbox.run("keyhaul verify Devices/UDID").output.contains("35 of 35 can be decrypted"))
  }

  @Test("A snapshot equals the Simulator's keychain, and a reset deletes only the items of the given apps")
  func reset() throws {
    let sandbox = try Self.sandbox()
    let before = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")
    #expect(try sandbox.run("keyhaul simulator seed Devices/UDID --from phone --yes").status == 0)
    #expect(try sandbox.run("keyhaul simulator snapshot Devices/UDID -o saved.db").status == 0)
    #expect(try sandbox.run("keyhaul diff saved.db Devices/UDID --exit-code").status == 0)
    #expect(try sandbox.run("stat -c %a saved.db").output == "600\n")

    // A reset of the device's access groups removes its items, and keeps the earlier items unchanged.
    let groups = (try sandbox.document("keyhaul export phone -o - --json")["items"]?.arrayValue ?? [])
      .compactMap { $0["attributes"]?["agrp"]?.stringValue }
    let flags = Set(groups).map { "--app '\($0)'" }.joined(separator: " ")
    let reset = try sandbox.run("keyhaul simulator reset Devices/UDID \(flags) --yes")
    #expect(reset.status == 0, "\(reset)")
    let after = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")
    let kept = (before["items"]?.arrayValue ?? []).filter { item in
      !groups.contains { $0 == item["attributes"]?["agrp"]?.stringValue }
    }
    #expect(!kept.isEmpty && after["items"]?.arrayValue?.map { $0["attributes"] } == kept.map { $0["attributes"] })
    #expect(after["items"]?.arrayValue?.map { $0["secret"] } == kept.map { $0["secret"] })
  }

  @Test("A plan for a Simulator with a device's items equals the plan for that device")
  func samePlan() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create new-phone --from new-phone -q")
    #expect(try sandbox.run("keyhaul simulator seed Devices/empty --from phone --yes -q").status == 0)
    for password in ["", "--no-password"] {
      let ofSimulator = fates(try sandbox.document("keyhaul plan Devices/empty --to new-phone \(password) --json"))
      let ofDevice = fates(try sandbox.document("keyhaul plan phone --to new-phone \(password) --json"))
      #expect(ofSimulator == ofDevice && ofDevice.count == 22, "\(ofSimulator) \(ofDevice)")
    }
  }

  @Test("Single items are added, found, changed and deleted, and all others stay unchanged")
  func items() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf 'new secret' > .secret; chmod 600 .secret; cp -r Devices/UDID Devices/kept")
    func content() throws -> [JSONValue?] {
      let items = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")["items"]?.arrayValue ?? []
      return items.flatMap { [$0["attributes"], $0["secret"]] }
    }
    let before = try content()
    let new = "--service fresh.example --account zoe --access-group ABCDE12345.org.example.fresh --secret-file .secret"
    let added = try sandbox.run("keyhaul item add Devices/UDID \(new)")
    #expect(
      added.output
        == "Added generic password \"fresh.example · zoe\" to Devices/UDID (unencrypted, as a Simulator stores it).\n",
      "\(added)")
    #expect(try sandbox.run("keyhaul item find Devices/UDID --service 'fresh.*' --reveal").output == "new secret")
    let again = try sandbox.run("keyhaul item add Devices/UDID \(new)")
    #expect(again.status == 1 && again.errors.contains("Devices/UDID already has this item"), "\(again)")
    let changed = try sandbox.run(
      "keyhaul item update Devices/UDID --service fresh.example --new-account zara --new-protection always --yes")
    #expect(changed.output == "Changed 1 item in Devices/UDID.\n" && changed.status == 0, "\(changed)")
    #expect(try sandbox.run("keyhaul item find Devices/UDID --account zara --reveal").output == "new secret")
    #expect(try sandbox.run("keyhaul verify Devices/UDID").output.contains("14 of 14 can be decrypted"))
    let deleted = try sandbox.run("keyhaul item delete Devices/UDID --service fresh.example --yes")
    #expect(deleted.output == "Deleted 1 item from Devices/UDID.\n" && deleted.status == 0, "\(deleted)")
    #expect(try content() == before)
    // A dry run writes nothing.
    try sandbox.run("cp -r Devices/UDID Devices/still")
    for line in ["add Devices/UDID \(new) -n", "delete Devices/UDID --kind generic -n"] {
      #expect(try sandbox.run("keyhaul item \(line)").status == 0)
    }
    #expect(
      try sandbox.run(
        "cmp Devices/UDID/data/Library/Keychains/keychain-2-debug.db Devices/still/data/Library/Keychains/keychain-2-debug.db"
      ).status == 0)
  }

  @Test("A Simulator is filled from a device, and devices from a Simulator, a backup or a dump, equally")
  func exported() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf '135790' > .pin; printf 'words' > .bp; chmod 600 .pin .bp")
    let written = try sandbox.run("keyhaul device export phone -o phone.db")
    #expect(written.status == 0, "\(written)")
    #expect(
      written.output.hasPrefix("Wrote 22 items from phone to phone.db, a Simulator keychain for iOS 18 or later."))
    #expect(try sandbox.run("stat -c %a phone.db").output == "600\n")
    #expect(try sandbox.run("keyhaul verify phone.db").status == 0)
    #expect(try sandbox.run("keyhaul diff phone phone.db --exit-code").status == 0)
    let needs = try sandbox.run("keyhaul device create twin --import phone.db")
    #expect(needs.status == 64 && needs.errors.contains("a device with a passcode"), "\(needs)")
    #expect(try sandbox.run("keyhaul device create twin --import phone.db --passcode-file .pin").status == 0)
    #expect(try sandbox.run("keyhaul diff phone twin --exit-code").status == 0)
    let references = try ["phone", "twin"].map { name in
      (try sandbox.document("keyhaul export \(name) -o - --json")["items"]?.arrayValue ?? [])
        .compactMap { $0["attributes"]?["persistref"]?["base64"]?.stringValue }.sorted()
    }
    #expect(references[0] == references[1] && references[0].count == 22)

    // An import includes only the items that can be decrypted without the source device.
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q; mkdir elsewhere")
    let imported = try sandbox.run(
      "keyhaul device create part --import b.zip --password-file .bp --home elsewhere; keyhaul device show part --home elsewhere --json"
    )
    #expect(imported.errors.contains("left out 4 items of b.zip that cannot be read"), "\(imported)")
    let both = try sandbox.run("keyhaul device create x --import b.zip --from old-phone --password-file .bp")
    #expect(both.status == 64 && both.errors.contains("--from and --import cannot be used together"))
    let locked = try sandbox.run("keyhaul device lock phone; keyhaul device export phone -o locked.db")
    #expect(locked.status == 15, "\(locked)")
    #expect(try sandbox.run("ls locked.db").status != 0)
  }

  @Test("A backup is restored to a Simulator as planned for a device other than the source")
  func restored() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf words > .bp; chmod 600 .bp; keyhaul device create new-phone --from new-phone -q")
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q")
    let plan = try sandbox.document("keyhaul plan b.zip --to new-phone --password-file .bp --json")
    let arriving = (plan["items"]?.arrayValue ?? []).filter {
      $0["outcome"]?.stringValue?.hasPrefix("migrates") == true
    }
    let restore = "keyhaul restore b.zip --to Devices/UDID --password-file .bp"
    let rehearsed = try sandbox.document(restore + " -n --json")
    #expect(
      rehearsed["action"] == "restore" && rehearsed["dry_run"] == true
        && rehearsed["items"] == .count(plan["items"]?.arrayValue?.count ?? 0))
    #expect(try sandbox.run("keyhaul verify Devices/UDID").output.contains("13 of 13 can be decrypted"))

    // With merge, all existing items stay.
    try sandbox.run("cp -r Devices/UDID Devices/merged; cp -r Devices/UDID Devices/own")
    let merged = try sandbox.run(restore.replacing("UDID", with: "merged") + " --existing merge --yes")
    #expect(
      merged.status == 0
        && merged.output.hasPrefix("Restored \(arriving.count) items to Devices/merged in one step"), "\(merged)"
    )
    let counts = "\(13 + arriving.count) of \(13 + arriving.count) can be decrypted"
    #expect(try sandbox.run("keyhaul verify Devices/merged").output.contains(counts))
    let again = try sandbox.document(restore.replacing("UDID", with: "merged") + " --existing merge --yes --json")
    #expect(again["added"] == 0 && again["kept"] == .count(arriving.count) && again["removed"] == 0, "\(again)")

    // With replace, as on a device, only synchronized items stay.
    let replaced = try sandbox.document(restore + " --yes --json")
    #expect(replaced["added"] == .count(arriving.count) && replaced["removed"] != 0, "\(replaced)")
    let after = try sandbox.document("keyhaul export Devices/UDID -o - --json")["items"]?.arrayValue ?? []
    let keptCount = after.count - arriving.count
    let synchronizedCount = after.count { $0["attributes"]?["sync"] == 1 }
    #expect(keptCount >= 0 && keptCount <= synchronizedCount, "\(keptCount) \(synchronizedCount)")
    #expect(try sandbox.run("keyhaul verify Devices/UDID").status == 0)
    for (flags, message) in [
      ("--plan .bp", "--plan applies only to devices"),
      ("--device-key-file .bp", "a hardware key applies only to devices"), ("", "must be confirmed"),
    ] {
      let refused = try sandbox.run("\(restore.replacing("UDID", with: "own")) \(flags)")
      #expect(refused.status == 64 && refused.errors.contains(message), "\(refused)")
    }
  }

  @Test("A keychain that another process changed during the question is left unchanged")
  func changedMeanwhile() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf words > .bp; chmod 600 .bp")
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q")
    let path = sandbox.home.appending(path: "\(Self.keychains)/keychain-2-debug.db")
    // Closing the last connection usually writes the log into the file, but a dry run or a refusal must not.
    let sums = "sha256sum \(Self.keychains)/*"
    let before = try sandbox.run(sums).output
    #expect(before.contains("-wal"))
    for line in [
      "keyhaul restore b.zip --to Devices/UDID --password-file .bp -n",
      "keyhaul simulator seed Devices/UDID --from phone -n",
      "keyhaul simulator reset Devices/UDID --app ABCDE12345.com.example.notes -n",
      "keyhaul item delete Devices/UDID --service nobody --yes",
    ] {
      let rehearsed = try sandbox.run(line)
      #expect([0, 4].contains(rehearsed.status), "\(rehearsed)")
      #expect(try sandbox.run(sums).output == before, "\(line)")
    }
    let program = BuiltProgram(home: sandbox.home)
    for line in [
      "keyhaul restore b.zip --to Devices/UDID --password-file .bp",
      "keyhaul simulator reset Devices/UDID --app ABCDE12345.com.example.notes",
    ] {
      var written = Data()
      let refused = try program.shell(line, typed: ["yes"]) { _ in
        try DatabaseQueue(path: path.path).write { database in
          try database.execute(sql: "DELETE FROM inet WHERE rowid IN (SELECT max(rowid) FROM inet)")
        }
        written = try Data(contentsOf: path)
      }
      #expect(refused.status == 11, "\(refused)")
      #expect(
        refused.errors.contains("Devices/UDID is in use")
          && refused.errors.contains(
            "another process has changed it since Keyhaul read it; nothing was changed"),
        "\(refused)"
      )
      #expect(try Data(contentsOf: path) == written, "the other process's change is lost")
      #expect(try program.shell(line, typed: ["yes"]).status == 0)
    }
  }

  @Test("A command rolls back the killed change of a Simulator's keychain and then makes its own change")
  func killed() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("mkdir killed; keyhaul device export phone -o sim.db --yes -q")
    let path = sandbox.home.appending(path: "sim.db").path
    try sandbox.copyDatabase("sim.db", to: "killed/sim.db", during: "UPDATE genp SET agrp = 'x'")
    let copy = sandbox.home.appending(path: "killed/sim.db").path
    #expect(try Data(contentsOf: URL(filePath: copy)) != Data(contentsOf: URL(filePath: path)))
    #expect(
      unwrapped(try sandbox.run("keyhaul verify killed/sim.db").output).contains("an unfinished change was rolled back")
    )
    let saved = try sandbox.run("keyhaul simulator snapshot killed/sim.db -o saved.db && keyhaul verify saved.db")
    #expect(saved.status == 0, "\(saved)")
    let group = "ABCDE12345.org.example.chat"
    let reset = try sandbox.run("keyhaul simulator reset killed/sim.db --app \(group) --yes")
    #expect(reset.status == 0 && reset.output.hasPrefix("Deleted "), "\(reset)")
    let counts = try [copy, path].map { path in
      try DatabaseQueue(path: path).read { database in
        try Int.fetchAll(
          database,
          sql: "SELECT count(*) FROM genp WHERE agrp <> '\(group)' UNION ALL SELECT count(*) FROM genp WHERE agrp = 'x'"
        )
      }
    }
    #expect(counts[0] == counts[1] && counts[0].first ?? 0 > 0, "\(counts)")
    #expect(try sandbox.run("ls killed").output == "sim.db\n")
  }

  @Test("While another process keeps writing a keychain database, commands read its items or exit with 11")
  func writer() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device export phone -o sim.db --yes -q; keyhaul device create new-phone -q")
    try Data(
      """
      import sqlite3, time
      end, turn = time.time() + 60, 0
      while time.time() < end:
          base = sqlite3.connect("sim.db", isolation_level=None)
          base.execute("PRAGMA journal_mode = " + ("WAL", "DELETE")[turn % 2])
          for _ in range(5):
              base.execute("UPDATE genp SET labl = labl")
          base.close()
          turn += 1
          time.sleep((0, 0.001, 0.05)[turn % 3])
      """.utf8
    ).write(to: sandbox.home.appending(path: "writer.py"))
    let outcome = try sandbox.run(
      """
      keyhaul item find sim.db > expected
      python3 writer.py & writer=$!
      for turn in 1 2 3 4; do
        for line in "inspect sim.db" "item find sim.db" "verify sim.db" "export sim.db -o -" "plan sim.db --to new-phone" \
          "diff sim.db sim.db"; do
          keyhaul $line > out 2> errors; code=$?
          case $code in 0|11) ;; *) echo "$line: $code"; cat errors;; esac
          case "$code $line" in "0 item find sim.db") cmp out expected;; esac
        done
      done
      kill -0 $writer && kill $writer && echo written
      """)
    #expect(outcome.output == "written\n", "\(outcome)")
  }

  @Test("A keychain that another process has open, or with no matching item, is left unchanged")
  func refused() throws {
    let sandbox = try Self.sandbox()
    let path = sandbox.home.appending(path: "\(Self.keychains)/keychain-2-debug.db").path
    func contents() throws -> Data { try Data(contentsOf: URL(filePath: path)) }
    let before = try contents()
    try sandbox.run(
      "cp -r Devices/UDID Devices/odd; printf x >> Devices/odd/data/Library/Keychains/keychain-2-debug.db-wal")
    try sandbox.run("printf 'no log' > Devices/odd/data/Library/Keychains/keychain-2-debug.db-wal")
    for (line, status, message) in [
      ("simulator seed Devices/UDID --from phone", Int32(64), "must be confirmed"),
      ("simulator seed Devices/UDID --from nothing --yes", 10, "nothing"),
      ("simulator seed Devices/UDID --from phone --app nobody --yes", 4, "No item in phone matches"),
      ("simulator reset Devices/UDID --app ABCDE12345.com.example.note", 4, "ABCDE12345.com.example.notes is similar."),
      ("simulator reset phone --app x --yes", 64, "phone"),
      ("simulator snapshot Devices/odd -o saved.db", 14, "its log (-wal) does not match it, and may contain items"),
      ("simulator snapshot Devices/UDID -o -", 64, "a snapshot must be written to a file"),
      ("simulator list nowhere", 10, "there are no Simulators in nowhere"),
      ("device lock ./Devices/UDID", 10, "keyhaul simulator seed ./Devices/UDID --from BACKUP"),
    ] {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(outcome.status == status && outcome.errors.contains(message), "\(line): \(outcome)")
    }
    #expect(try contents() == before)
    let queue = try DatabaseQueue(path: path)
    try queue.read { database in
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM genp") == 7)
      for line in ["seed Devices/UDID --from phone", "reset Devices/UDID --app ABCDE12345.com.example.notes"] {
        let outcome = try sandbox.run("keyhaul simulator \(line) --yes")
        #expect(outcome.status == 11 && outcome.errors.contains("error: Devices/UDID is in use\n"), "\(outcome)")
        #expect(outcome.errors.contains("nothing was changed"))
      }
    }
  }
}
