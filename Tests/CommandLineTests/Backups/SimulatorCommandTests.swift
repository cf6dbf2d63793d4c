import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Simulator keychains")
struct SimulatorCommandTests {
  private static let place = "Devices/UDID/data/Library/Keychains"

  /// Directories of Simulators: one with the database of the vectors and its log, and one without any item.
  private static func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    let vectors = try TestVectors.database()
    try sandbox.run(
      "mkdir -p \(place) Devices/empty/data/Library/Keychains Devices/other; keyhaul device create phone --from old-phone -q"
    )
    let path = sandbox.home.appending(path: "\(place)/keychain-2-debug.db").path
    try Data(vectors["base64"].base64Bytes).write(to: URL(filePath: path))
    try Data(vectors["wal"]["base64"].base64Bytes).write(to: URL(filePath: path + "-wal"))
    let empty = sandbox.home.appending(path: "Devices/empty/data/Library/Keychains/keychain-2-debug.db").path
    try Data(vectors["base64"].base64Bytes).write(to: URL(filePath: empty))
    try DatabaseQueue(path: empty).write { database in
      for table in ["genp", "inet", "cert", "keys"] { try database.execute(sql: "DELETE FROM \(table)") }
    }
    return sandbox
  }

  /// Returns a plan's result for each item, without its index, because devices number their items differently.
  private func fates(_ document: JSONValue) -> [String] {
    (document["items"]?.arrayValue ?? []).map { item in
      ["kind", "service", "server", "account", "label", "access_group", "protection", "outcome", "reason"].map { name in
        item[name]?.stringValue ?? "-"
      }.joined(separator: "|")
    }.sorted()
  }

  @Test("A Simulator is listed, filled from a device, saved, and reset for one app; other items stay")
  func story() throws {
    let sandbox = try Self.sandbox()
    #expect(
      try sandbox.run("keyhaul simulator list Devices").output
        == "SIMULATOR  RUNTIME  STATE  ITEMS  SCHEMA\nUDID       –        –         13  12.11\nempty      –        –          0  12.11\n"
    )
    let before = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")
    let tried = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone -n")
    #expect(tried.output.hasPrefix("Would put 22 items from phone into Devices/UDID: 22 new.\nKIND "), "\(tried)")
    #expect(tried.output.split(separator: "\n").count == 24 && tried.status == 0)
    #expect(tried.errors.contains("1 key of phone cannot be used in a Simulator"), "\(tried)")
    #expect(try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json") == before)

    let seeded = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone --yes")
    #expect(seeded.output == "Put 22 items from phone into Devices/UDID: 22 new.\n" && seeded.status == 0, "\(seeded)")
    // Those of the description have not what a device gives an item, such as its UUID.
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
    #expect(try sandbox.run("keyhaul simulator snapshot Devices/UDID -o saved.db").status == 0)
    #expect(try sandbox.run("keyhaul diff saved.db Devices/UDID --exit-code").status == 0)
    #expect(try sandbox.run("stat -c %a saved.db").output == "600\n")

    // Every item of the device is back out of it by its group, and what was there before is there as it was.
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
    // Rehearsed, nothing is written at all.
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

    // What a backup holds that opens without its device, and nothing else.
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
    let tried = try sandbox.document(restore + " -n --json")
    #expect(
      tried["action"] == "restore" && tried["dry_run"] == true
        && tried["items"] == .count(plan["items"]?.arrayValue?.count ?? 0))
    #expect(try sandbox.run("keyhaul verify Devices/UDID").output.contains("13 of 13 can be decrypted"))

    // Merged, all that was there stays.
    try sandbox.run("cp -r Devices/UDID Devices/merged; cp -r Devices/UDID Devices/own")
    let merged = try sandbox.run(restore.replacing("UDID", with: "merged") + " --existing merge --yes")
    #expect(
      merged.status == 0
        && merged.output.hasPrefix("Restored \(arriving.count) items to Devices/merged in one step"), "\(merged)"
    )
    let open = "\(13 + arriving.count) of \(13 + arriving.count) can be decrypted"
    #expect(try sandbox.run("keyhaul verify Devices/merged").output.contains(open))
    let again = try sandbox.document(restore.replacing("UDID", with: "merged") + " --existing merge --yes --json")
    #expect(again["added"] == 0 && again["kept"] == .count(arriving.count) && again["removed"] == 0, "\(again)")

    // Replaced, as a device's: what does not synchronize is gone.
    let replaced = try sandbox.document(restore + " --yes --json")
    #expect(replaced["added"] == .count(arriving.count) && replaced["removed"] != 0, "\(replaced)")
    let after = try sandbox.document("keyhaul export Devices/UDID -o - --json")["items"]?.arrayValue ?? []
    let left = after.count - arriving.count
    let synchronized = after.filter { $0["attributes"]?["sync"] == 1 }.count
    #expect(left >= 0 && left <= synchronized, "\(left) \(synchronized)")
    #expect(try sandbox.run("keyhaul verify Devices/UDID").status == 0)
    for (flags, words) in [
      ("--plan .bp", "--plan applies only to devices"),
      ("--device-key-file .bp", "a hardware key applies only to devices"), ("", "must be confirmed"),
    ] {
      let refused = try sandbox.run("\(restore.replacing("UDID", with: "own")) \(flags)")
      #expect(refused.status == 64 && refused.errors.contains(words), "\(refused)")
    }
  }

  @Test("A keychain that another process changed during the question is left unchanged")
  func changedMeanwhile() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf words > .bp; chmod 600 .bp")
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q")
    let path = sandbox.home.appending(path: "\(Self.place)/keychain-2-debug.db")
    // Neither a dry run nor a refusal writes the log into the file, as closing the last connection otherwise does.
    let sums = "sha256sum \(Self.place)/*"
    let before = try sandbox.run(sums).output
    #expect(before.contains("-wal"))
    for line in [
      "keyhaul restore b.zip --to Devices/UDID --password-file .bp -n",
      "keyhaul simulator seed Devices/UDID --from phone -n",
      "keyhaul simulator reset Devices/UDID --app ABCDE12345.com.example.notes -n",
      "keyhaul item delete Devices/UDID --service nobody --yes",
    ] {
      let tried = try sandbox.run(line)
      #expect([0, 4].contains(tried.status), "\(tried)")
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
      #expect(try Data(contentsOf: path) == written, "what the other wrote stands")
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
    let done = try sandbox.run("keyhaul simulator reset killed/sim.db --app \(group) --yes")
    #expect(done.status == 0 && done.output.hasPrefix("Deleted "), "\(done)")
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

  @Test("While another process keeps writing a keychain database, commands give its items or exit with 11")
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
      keyhaul item find sim.db > rest
      python3 writer.py & writer=$!
      for turn in 1 2 3 4; do
        for line in "inspect sim.db" "item find sim.db" "verify sim.db" "export sim.db -o -" "plan sim.db --to new-phone" \
          "diff sim.db sim.db"; do
          keyhaul $line > out 2> errors; code=$?
          case $code in 0|11) ;; *) echo "$line: $code"; cat errors;; esac
          case "$code $line" in "0 item find sim.db") cmp out rest;; esac
        done
      done
      kill -0 $writer && kill $writer && echo written
      """)
    #expect(outcome.output == "written\n", "\(outcome)")
  }

  @Test("A keychain that another process has open, or with no matching item, is left unchanged")
  func refused() throws {
    let sandbox = try Self.sandbox()
    let path = sandbox.home.appending(path: "\(Self.place)/keychain-2-debug.db").path
    func contents() throws -> Data { try Data(contentsOf: URL(filePath: path)) }
    let before = try contents()
    try sandbox.run(
      "cp -r Devices/UDID Devices/odd; printf x >> Devices/odd/data/Library/Keychains/keychain-2-debug.db-wal")
    try sandbox.run("printf 'no log' > Devices/odd/data/Library/Keychains/keychain-2-debug.db-wal")
    for (line, status, words) in [
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
      #expect(outcome.status == status && outcome.errors.contains(words), "\(line): \(outcome)")
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

/// Simulators in Xcode's folder: two named "iPhone 16", one of them booted, and one without a description.
@Suite("Simulators found by name")
struct NamedSimulatorTests {
  private static let devices = "Library/Developer/CoreSimulator/Devices"
  private static let old = "0A1B2C3D-0000-4000-8000-000000000017"
  private static let new = "0A1B2C3D-0000-4000-8000-000000000018"
  private static let pro = "0A1B2C3D-0000-4000-8000-000000000019"

  private static func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    let vectors = try TestVectors.database()
    for (udid, name, system, state) in [
      (old, "iPhone 16", "iOS-17-5", 1), (new, "iPhone 16", "iOS-18-0", 3), (pro, "iPhone 16 Pro", "iOS-18-0", 1),
    ] {
      try sandbox.run("mkdir -p \(devices)/\(udid)/data/Library/Keychains")
      let folder = sandbox.home.appending(path: "\(devices)/\(udid)")
      let database = folder.appending(path: "data/Library/Keychains/keychain-2-debug.db").path
      try Data(vectors["base64"].base64Bytes).write(to: URL(filePath: database))
      try Data(vectors["wal"]["base64"].base64Bytes).write(to: URL(filePath: database + "-wal"))
      let description: [String: Any] = [
        "UDID": udid, "name": name, "runtime": "com.apple.CoreSimulator.SimRuntime.\(system)", "state": state,
        "deviceType": "com.apple.CoreSimulator.SimDeviceType.iPhone-16",
      ]
      try PropertyListSerialization.data(fromPropertyList: description, format: .xml, options: 0)
        .write(to: folder.appending(path: "device.plist"))
    }
    return sandbox
  }

  private static func keychain(of udid: String) -> String {
    "\(devices)/\(udid)/data/Library/Keychains/keychain-2-debug.db"
  }

  @Test("A list of Simulators shows the name, the system and the state of each")
  func list() throws {
    let sandbox = try Self.sandbox()
    #expect(
      try sandbox.run("keyhaul simulator list").output == """
        SIMULATOR      RUNTIME   STATE     ITEMS  SCHEMA
        iPhone 16      iOS 17.5  shutdown     13  12.11
        iPhone 16      iOS 18.0  booted       13  12.11
        iPhone 16 Pro  iOS 18.0  shutdown     13  12.11

        """)
    let listed = try sandbox.document("keyhaul simulator list --json")["simulators"]?.arrayValue?[1]
    #expect(listed?["name"]?.stringValue == Self.new && listed?["device_name"]?.stringValue == "iPhone 16")
    #expect(listed?["runtime"]?.stringValue == "iOS 18.0" && listed?["state"]?.stringValue == "booted")
  }

  @Test("A Simulator is found by its name, its UDID in any case, and as booted")
  func names() throws {
    let sandbox = try Self.sandbox()
    for (name, udid) in [("'iphone 16 pro'", Self.pro), (Self.old.lowercased(), Self.old), ("booted", Self.new)] {
      let saved = try sandbox.run("keyhaul simulator snapshot \(name) -o saved.db --yes")
      #expect(saved.output.contains("/\(udid) with 13 rows as saved.db"), "\(saved)")
    }
    let several = try sandbox.run("keyhaul simulator snapshot 'iPhone 16' -o saved.db --yes")
    #expect(
      several.status == 64 && several.errors.contains("\(Self.old) (iOS 17.5) and")
        && several.errors.contains("\(Self.new) (iOS 18.0)"), "\(several)"
    )
    let none = try sandbox.run("keyhaul simulator snapshot 'iPhone 16 Pre' -o saved.db --yes")
    #expect(none.status == 10 && none.errors.contains("try: 'iPhone 16 Pro'"), "\(none)")
  }

  @Test("A Simulator that is booted is not changed")
  func booted() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create phone --from old-phone -q; keyhaul simulator snapshot booted -o saved.db")
    let digest = "cat \(Self.devices)/\(Self.new)/data/Library/Keychains/* | sha256sum"
    let before = try sandbox.run(digest).output
    for line in [
      "simulator seed booted --from phone --yes", "simulator restore booted saved.db --yes",
      "simulator reset booted --app ABCDE12345.com.example.notes --yes",
      "item delete \(Self.devices)/\(Self.new) --kind generic --yes",
    ] {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(
        outcome.status == 11 && outcome.errors.contains("its device.plist says that it is booted; nothing was changed")
          && outcome.errors.contains("try: xcrun simctl shutdown \(Self.new)"), "\(line): \(outcome)")
    }
    #expect(try sandbox.run(digest).output == before)
  }

  @Test("An app is found by its bundle identifier, and the names of its items are listed before they are deleted")
  func bundleIdentifier() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create phone --from old-phone -q")
    let groups = Set(
      (try sandbox.document("keyhaul export phone -o - --json")["items"]?.arrayValue ?? [])
        .compactMap { $0["attributes"]?["agrp"]?.stringValue })
    let group = try #require(groups.sorted().first { $0.hasPrefix("ABCDE12345.") })
    let app = group.dropFirst("ABCDE12345.".count)
    let whole = try sandbox.run("keyhaul simulator seed \(Self.pro) --from phone --app \(group) -n").output
    #expect(try sandbox.run("keyhaul simulator seed \(Self.pro) --from phone --app \(app) -n").output == whole)
    #expect(whole.hasPrefix("Would put "))
    let near = try sandbox.run("keyhaul simulator seed \(Self.pro) --from phone --app \(app)x -n")
    #expect(near.status == 4 && near.errors.contains("\(app) is similar."), "\(near)")
    let reset = try sandbox.run("keyhaul simulator reset \(Self.pro) --app com.example.notes -n")
    #expect(reset.output.hasPrefix("Would delete ") && reset.output.contains("\nKIND "), "\(reset)")
  }

  @Test("A bundle identifier of two teams is refused, and both access groups are named")
  func twoTeams() throws {
    let sandbox = try Self.sandbox()
    try DatabaseQueue(path: sandbox.home.appending(path: Self.keychain(of: Self.pro)).path).write { database in
      try database.execute(
        sql: "UPDATE genp SET agrp = 'ZZZZZ99999.com.example.notes' WHERE rowid = (SELECT max(rowid) FROM genp)")
    }
    let reset = try sandbox.run("keyhaul simulator reset \(Self.pro) --app com.example.notes --yes")
    #expect(
      reset.status == 64 && reset.errors.contains("ABCDE12345.com.example.notes and ZZZZZ99999.com.example.notes"),
      "\(reset)")
  }

  @Test("A snapshot is restored byte for byte, with and without a log", arguments: [true, false])
  func restore(hasLog: Bool) throws {
    let sandbox = try Self.sandbox()
    let keychain = Self.keychain(of: Self.old)
    if !hasLog { try sandbox.run("rm \(keychain)-wal; keyhaul device create phone --from old-phone -q") }
    try sandbox.run("keyhaul device create phone --from old-phone -q; chmod 640 \(keychain)")
    try sandbox.run("keyhaul simulator snapshot \(Self.old) -o saved.db")
    #expect(try sandbox.run("keyhaul simulator seed \(Self.old) --from phone --yes").status == 0)
    // A log that is left behind would change the restored database.
    let path = sandbox.home.appending(path: keychain).path
    let connection = try DatabaseQueue(path: path)
    try connection.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; DELETE FROM genp")
    }
    try sandbox.run("cp \(keychain) \(keychain)-wal .")
    try connection.close()
    try sandbox.run("cp keychain-2-debug.db \(keychain); cp keychain-2-debug.db-wal \(keychain)-wal")
    let tried = try sandbox.run("keyhaul simulator restore \(Self.old) saved.db -n")
    #expect(tried.output.hasPrefix("Would replace the ") && tried.status == 0, "\(tried)")
    let restored = try sandbox.run("keyhaul simulator restore \(Self.old) saved.db --yes")
    #expect(restored.status == 0 && restored.output.contains(" from saved.db, with "), "\(restored)")
    #expect(try sandbox.run("cmp saved.db \(keychain) && ls \(keychain)-* 2>/dev/null").output == "")
    #expect(try sandbox.permissions(of: keychain) == 0o640)
    try sandbox.run("keyhaul simulator snapshot \(Self.old) -o again.db")
    #expect(try sandbox.run("cmp saved.db again.db").status == 0)
  }

  @Test("A snapshot is restored only after a question, to a closed database, and from a Simulator's keychain")
  func refusedRestore() throws {
    let sandbox = try Self.sandbox()
    let keychain = Self.keychain(of: Self.old)
    try sandbox.run(
      "keyhaul device create phone --from old-phone -q; printf words > pw; chmod 600 pw; keyhaul backup phone -o b.tar "
        + "--password-file pw; keyhaul simulator snapshot \(Self.old) -o saved.db")
    let digest = "cat \(keychain)* | sha256sum"
    let before = try sandbox.run(digest).output
    for (line, status) in [
      ("\(Self.old) saved.db", Int32(64)), ("\(Self.old) b.tar --yes", 14), ("\(Self.old) nothing.db --yes", 10),
      ("phone saved.db --yes", 10),
    ] {
      let outcome = try sandbox.run("keyhaul simulator restore \(line)")
      #expect(outcome.status == status, "\(line): \(outcome)")
    }
    #expect(try sandbox.run(digest).output == before)
    let queue = try DatabaseQueue(path: sandbox.home.appending(path: keychain).path)
    try queue.read { database in
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM genp") == 7)
      let outcome = try sandbox.run("keyhaul simulator restore \(Self.old) saved.db --yes")
      #expect(outcome.status == 11 && outcome.errors.contains("nothing was changed"), "\(outcome)")
    }
  }

  @Test("The examples in the help of the simulator commands run as printed")
  func examples() throws {
    let sandbox = try Self.sandbox()
    let folders = [(Self.old, "UDID"), (Self.new, "other"), (Self.pro, "third")]
    for (udid, name) in folders { try sandbox.run("mv \(Self.devices)/\(udid) \(Self.devices)/\(name)") }
    try sandbox.run(
      "sed -i 's/iPhone 16/iPhone 15/' \(Self.devices)/other/device.plist; printf words > pw; chmod 600 pw; "
        + "keyhaul device create old-phone --from old-phone -q; "
        + "keyhaul backup old-phone -o family.backup --password-file pw")
    let verbs: [any RunnableCommand.Type] = [
      SimulatorList.self, SimulatorSnapshot.self, SimulatorSeed.self, SimulatorRestore.self, SimulatorReset.self,
    ]
    for verb in verbs {
      for example in verb.helpScreen.examples {
        let outcome = try sandbox.run("export KEYHAUL_PASSWORD_FILE=pw; \(example)", typed: ["y"])
        #expect(outcome.status == 0, "\(example): \(outcome)")
        try sandbox.run("keyhaul simulator seed 'iPhone 16' --from old-phone --yes")
      }
    }
  }
}
