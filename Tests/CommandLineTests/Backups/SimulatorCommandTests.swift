import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Simulator keychains")
struct SimulatorCommandTests {
  private static let keychains = "Devices/UDID/data/Library/Keychains"
  private static let keychain = "\(keychains)/keychain-2-debug.db"
  private static let emptyKeychain = "Devices/empty/data/Library/Keychains/keychain-2-debug.db"

  /// Returns a sandbox with two Simulators: `UDID` with the database and log of the test vectors, and `empty` without items.
  private static func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    try sandbox.run(
      "mkdir -p \(keychains) Devices/empty/data/Library/Keychains Devices/other; keyhaul device create phone --from old-phone -q"
    )
    try sandbox.writeKeychainDatabase(to: keychain, withLog: true)
    try sandbox.writeKeychainDatabase(to: emptyKeychain, withLog: false)
    try DatabaseQueue(path: sandbox.home.appending(path: emptyKeychain).path).write { database in
      for table in ["genp", "inet", "cert", "keys"] { try database.execute(sql: "DELETE FROM \(table)") }
    }
    return sandbox
  }

  /// Returns the names and the outcome of each item in a plan, as one sorted line per item. The index is left out, because
  /// devices number their items differently.
  private func outcomes(_ document: JSONValue) -> [String] {
    (document["items"]?.arrayValue ?? []).map { item in
      ["kind", "service", "server", "account", "label", "access_group", "protection", "outcome", "reason"].map { name in
        item[name]?.stringValue ?? "-"
      }.joined(separator: "|")
    }.sorted()
  }

  @Test("A list of Simulators counts their items, and a dry run of seed lists the items but writes none")
  func listed() throws {
    let sandbox = try Self.sandbox()
    #expect(
      try sandbox.run("keyhaul simulator list Devices").output
        == "SIMULATOR  RUNTIME  STATE  ITEMS  SCHEMA\nUDID       –        –         13  12.11\nempty      –        –          0  12.11\n"
    )
    let documentBefore = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")
    let dryRun = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone -n")
    #expect(dryRun.output.hasPrefix("Would put 22 items from phone into Devices/UDID: 22 new.\nKIND "), "\(dryRun)")
    // The summary, the column titles, and a row for each item.
    #expect(dryRun.output.split(separator: "\n").count == 24 && dryRun.status == 0)
    #expect(dryRun.errors.contains("1 key of phone cannot be used in a Simulator"), "\(dryRun)")
    #expect(try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json") == documentBefore)
  }

  @Test("Seed puts the items of a device into a Simulator, and a repeated seed puts only changed items")
  func seeded() throws {
    let sandbox = try Self.sandbox()
    let seeded = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone --yes")
    #expect(seeded.output == "Put 22 items from phone into Devices/UDID: 22 new.\n" && seeded.status == 0, "\(seeded)")
    // The items of the bundled description lack values that a device adds, such as the UUID.
    let seededFromDescription = try sandbox.run("keyhaul simulator seed Devices/UDID --from old-phone --keep --yes")
    #expect(
      seededFromDescription.output == "Nothing to do in Devices/UDID: 22 kept with other values.\n",
      "\(seededFromDescription)")
    let digestCommand = "sha256sum \(Self.keychain)"
    let digestBefore = try sandbox.run(digestCommand).output
    for flags in ["", "--yes", "-n"] {
      let outcome = try sandbox.run("keyhaul simulator seed Devices/UDID --from phone \(flags)")
      #expect(outcome.output == "Nothing to do: 22 items of phone are already in Devices/UDID.\n", "\(outcome)")
    }
    #expect(try sandbox.run(digestCommand).output == digestBefore)
    let changed = try sandbox.run(
      "keyhaul item update Devices/UDID --service chat.example --account anna --new-label other --yes")
    #expect(changed.status == 0, "\(changed)")
    let seeds: [(flags: String, output: String)] = [
      ("--keep", "Nothing to do in Devices/UDID: 21 already there, 1 kept with other values.\n"),
      ("-n", "Would put 1 item from phone into Devices/UDID: 1 replaced, 21 already there.\nKIND"),
      ("", "Put 1 item from phone into Devices/UDID: 1 replaced, 21 already there.\n"),
    ]
    for (flags, output) in seeds {
      #expect(
        try sandbox.run("keyhaul simulator seed Devices/UDID --from phone --yes \(flags)").output.hasPrefix(output))
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
    let deviceItems = try sandbox.document("keyhaul export phone -o - --json")["items"]?.arrayValue ?? []
    let deviceGroups = Set(deviceItems.compactMap { $0["attributes"]?["agrp"]?.stringValue })
    let flags = deviceGroups.map { "--app '\($0)'" }.joined(separator: " ")
    let reset = try sandbox.run("keyhaul simulator reset Devices/UDID \(flags) --yes")
    #expect(reset.status == 0, "\(reset)")
    let after = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")
    let itemsAfter = try #require(after["items"]?.arrayValue)
    let itemsOfOtherGroups = (before["items"]?.arrayValue ?? []).filter { item in
      guard let group = item["attributes"]?["agrp"]?.stringValue else { return true }
      return !deviceGroups.contains(group)
    }
    #expect(!itemsOfOtherGroups.isEmpty)
    #expect(itemsAfter.map { $0["attributes"] } == itemsOfOtherGroups.map { $0["attributes"] })
    #expect(itemsAfter.map { $0["secret"] } == itemsOfOtherGroups.map { $0["secret"] })
  }

  @Test("A plan for a Simulator with a device's items equals the plan for that device")
  func samePlan() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create new-phone --from new-phone -q")
    #expect(try sandbox.run("keyhaul simulator seed Devices/empty --from phone --yes -q").status == 0)
    for flag in ["", "--no-password"] {
      let simulatorOutcomes = outcomes(try sandbox.document("keyhaul plan Devices/empty --to new-phone \(flag) --json"))
      let deviceOutcomes = outcomes(try sandbox.document("keyhaul plan phone --to new-phone \(flag) --json"))
      #expect(
        simulatorOutcomes == deviceOutcomes && deviceOutcomes.count == 22, "\(simulatorOutcomes) \(deviceOutcomes)")
    }
  }

  @Test("Single items are added, found, changed and deleted, and all other items stay unchanged")
  func items() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf 'new secret' > .secret; chmod 600 .secret; cp -r Devices/UDID Devices/kept")
    func attributesAndSecrets() throws -> [JSONValue?] {
      let items = try sandbox.document("keyhaul export Devices/UDID -o - --reveal --json")["items"]?.arrayValue ?? []
      return items.flatMap { [$0["attributes"], $0["secret"]] }
    }
    let valuesBefore = try attributesAndSecrets()
    let newItem =
      "--service fresh.example --account zoe --access-group ABCDE12345.org.example.fresh --secret-file .secret"
    let added = try sandbox.run("keyhaul item add Devices/UDID \(newItem)")
    #expect(
      added.output
        == "Added generic password \"fresh.example · zoe\" to Devices/UDID (unencrypted, as a Simulator stores it).\n",
      "\(added)")
    #expect(try sandbox.run("keyhaul item find Devices/UDID --service 'fresh.*' --reveal").output == "new secret")
    let repeated = try sandbox.run("keyhaul item add Devices/UDID \(newItem)")
    #expect(repeated.status == 1 && repeated.errors.contains("Devices/UDID already has this item"), "\(repeated)")
    let changed = try sandbox.run(
      "keyhaul item update Devices/UDID --service fresh.example --new-account zara --new-protection always --yes")
    #expect(changed.output == "Changed 1 item in Devices/UDID.\n" && changed.status == 0, "\(changed)")
    #expect(try sandbox.run("keyhaul item find Devices/UDID --account zara --reveal").output == "new secret")
    #expect(try sandbox.run("keyhaul verify Devices/UDID").output.contains("14 of 14 can be decrypted"))
    let deleted = try sandbox.run("keyhaul item delete Devices/UDID --service fresh.example --yes")
    #expect(deleted.output == "Deleted 1 item from Devices/UDID.\n" && deleted.status == 0, "\(deleted)")
    #expect(try attributesAndSecrets() == valuesBefore)
    // A dry run writes nothing.
    try sandbox.run("cp \(Self.keychain) before.db")
    for line in ["add Devices/UDID \(newItem) -n", "delete Devices/UDID --kind generic -n"] {
      #expect(try sandbox.run("keyhaul item \(line)").status == 0)
    }
    #expect(try sandbox.run("cmp \(Self.keychain) before.db").status == 0)
  }

  @Test("An added or renamed item replaces the tombstone with its primary key, as on a device")
  func tombstones() throws {
    let sandbox = try DeviceSandbox()
    // The device has a tombstone of an item with the account "deleted".
    try sandbox.run("keyhaul device create phone --from every-rule -q; keyhaul device export phone -o sim.db -q")
    try sandbox.run("cp sim.db added.db")
    let names = "--service rule.example --access-group ABCDE12345.org.example.rules --sync"
    func tombstones(in name: String) throws -> [Row] {
      try DatabaseQueue(path: sandbox.home.appending(path: name).path).read { database in
        try Row.fetchAll(database, sql: "SELECT UUID, persistref FROM genp WHERE tomb = 1")
      }
    }
    let tombstone = try #require(try tombstones(in: "added.db").first)
    let (uuid, reference) = (tombstone["UUID"] as String?, tombstone["persistref"] as Data?)
    let (expectedUUID, expectedReference) = (try #require(uuid), try #require(reference).base64EncodedString())
    // A device's own item shows the rule: a new item gets the tombstone's UUID and persistent reference.
    for keychain in ["phone", "added.db"] {
      for line in [
        "add \(keychain) \(names) --account deleted --secret-command true",
        "find \(keychain) \(names) --account deleted",
      ] {
        let items = ItemFindTests.items(of: try sandbox.document("keyhaul item \(line) --json"))
        let attributes = try #require(items.first?["attributes"], "\(line)")
        #expect(items.count == 1 && attributes["UUID"]?.stringValue == expectedUUID, "\(line)")
        #expect(attributes["persistref"]?["base64"]?.stringValue == expectedReference, "\(line)")
      }
    }
    #expect(try tombstones(in: "added.db").isEmpty)

    try sandbox.run("keyhaul device create renamed --from every-rule -q")
    for keychain in ["renamed", "sim.db"] {
      for account in ["other 1", "other 2"] {
        let added = try sandbox.run(
          "keyhaul item add \(keychain) \(names) --account '\(account)' --secret-command true")
        #expect(added.status == 0, "\(added)")
      }
      let rename = "keyhaul item update \(keychain) \(names) --new-account deleted"
      // Only one item can have the primary key.
      #expect(try sandbox.run("\(rename) --account 'other *' --yes").status == 1)
      for flag in ["-n", "--yes"] {
        let renamed = try sandbox.run("\(rename) --account 'other 1' \(flag)")
        #expect(renamed.status == 0, "\(renamed)")
      }
      #expect(try sandbox.run("\(rename) --account 'other 2' --yes").status == 1)
      let found = try sandbox.document("keyhaul item find \(keychain) \(names) --account deleted --json")
      #expect(ItemFindTests.items(of: found).count == 1, "\(found)")
    }
    #expect(try tombstones(in: "sim.db").isEmpty)
  }

  @Test("A device's exported keychain equals the device, and a new device can import it or a backup")
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
    let withoutPasscode = try sandbox.run("keyhaul device create twin --import phone.db")
    #expect(
      withoutPasscode.status == 64 && withoutPasscode.errors.contains("a device with a passcode"),
      "\(withoutPasscode)")
    #expect(try sandbox.run("keyhaul device create twin --import phone.db --passcode-file .pin").status == 0)
    #expect(try sandbox.run("keyhaul diff phone twin --exit-code").status == 0)
    func persistentReferences(of device: String) throws -> [String] {
      let items = try sandbox.document("keyhaul export \(device) -o - --json")["items"]?.arrayValue ?? []
      return items.compactMap { $0["attributes"]?["persistref"]?["base64"]?.stringValue }.sorted()
    }
    let references = try persistentReferences(of: "phone")
    #expect(try references.count == 22 && persistentReferences(of: "twin") == references)

    // An import includes only the items that can be decrypted without the source device.
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q; mkdir elsewhere")
    let imported = try sandbox.run("keyhaul device create part --import b.zip --password-file .bp --home elsewhere")
    #expect(imported.errors.contains("left out 4 items of b.zip that cannot be read"), "\(imported)")
    let withTwoSources = try sandbox.run("keyhaul device create x --import b.zip --from old-phone --password-file .bp")
    #expect(
      withTwoSources.status == 64 && withTwoSources.errors.contains("--from and --import cannot be used together"))
    let locked = try sandbox.run("keyhaul device lock phone; keyhaul device export phone -o locked.db")
    #expect(locked.status == 15, "\(locked)")
    #expect(try sandbox.run("ls locked.db").status != 0)
  }

  @Test("A tombstone in an exported keychain is not counted as an item, as in the device's own report")
  func exportedTombstone() throws {
    let sandbox = try DeviceSandbox()
    // The description has 14 items and the tombstone of a deleted item.
    try sandbox.run("keyhaul device create phone --from every-rule -q")
    #expect(try sandbox.document("keyhaul device show phone --json")["items"] == 14)
    let written = try sandbox.run("keyhaul device export phone -o phone.db")
    #expect(
      written.status == 0
        && written.output.hasPrefix("Wrote 14 items and 1 tombstone of a deleted item from phone to phone.db, "),
      "\(written)")
    // The documented number in JSON is the number of rows.
    #expect(try sandbox.document("keyhaul device export phone -o rows.db --json")["items"] == 15)
  }

  @Test("A restore to a Simulator moves the items that a plan for a different device moves")
  func restored() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf words > .bp; chmod 600 .bp; keyhaul device create new-phone --from new-phone -q")
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q")
    let plan = try sandbox.document("keyhaul plan b.zip --to new-phone --password-file .bp --json")
    let plannedItems = try #require(plan["items"]?.arrayValue)
    let migratingCount = plannedItems.count { $0["outcome"]?.stringValue?.hasPrefix("migrates") == true }
    let restore = "keyhaul restore b.zip --to Devices/UDID --password-file .bp"
    let dryRun = try sandbox.document(restore + " -n --json")
    #expect(
      dryRun["action"] == "restore" && dryRun["dry_run"] == true && dryRun["items"] == .count(plannedItems.count))
    #expect(try sandbox.run("keyhaul verify Devices/UDID").output.contains("13 of 13 can be decrypted"))

    // With merge, all existing items stay.
    try sandbox.run("cp -r Devices/UDID Devices/merged; cp -r Devices/UDID Devices/unchanged")
    let merge = restore.replacing("UDID", with: "merged") + " --existing merge --yes"
    let merged = try sandbox.run(merge)
    #expect(
      merged.status == 0
        && merged.output.hasPrefix("Restored \(migratingCount) items to Devices/merged in one step"), "\(merged)"
    )
    let mergedCount = 13 + migratingCount
    let verified = try sandbox.run("keyhaul verify Devices/merged")
    #expect(verified.output.contains("\(mergedCount) of \(mergedCount) can be decrypted"), "\(verified)")
    let repeated = try sandbox.document(merge + " --json")
    #expect(
      repeated["added"] == 0 && repeated["kept"] == .count(migratingCount) && repeated["removed"] == 0, "\(repeated)")

    // With replace, as on a device, only synchronized items stay.
    let replaced = try sandbox.document(restore + " --yes --json")
    #expect(replaced["added"] == .count(migratingCount) && replaced["removed"] != 0, "\(replaced)")
    let itemsAfter = try sandbox.document("keyhaul export Devices/UDID -o - --json")["items"]?.arrayValue ?? []
    let keptCount = itemsAfter.count - migratingCount
    let synchronizedCount = itemsAfter.count { $0["attributes"]?["sync"] == 1 }
    #expect(keptCount >= 0 && keptCount <= synchronizedCount, "\(keptCount) \(synchronizedCount)")
    #expect(try sandbox.run("keyhaul verify Devices/UDID").status == 0)
    let refusals: [(flags: String, message: String)] = [
      ("--plan .bp", "--plan applies only to devices"),
      ("--device-key-file .bp", "a device key applies only to devices"), ("", "must be confirmed"),
    ]
    for (flags, message) in refusals {
      let refused = try sandbox.run("\(restore.replacing("UDID", with: "unchanged")) \(flags)")
      #expect(refused.status == 64 && unwrapped(refused.errors).contains(message), "\(refused)")
    }
  }

  @Test("A keychain that another process changed during the question is left unchanged")
  func changedMeanwhile() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("printf words > .bp; chmod 600 .bp")
    try sandbox.run("keyhaul backup phone -o b.zip --password-file .bp --rounds 1 -q")
    let path = sandbox.home.appending(path: Self.keychain)
    // When the last connection is closed, SQLite usually moves the log into the database. A dry run or a refusal must
    // prevent this.
    let digestCommand = "sha256sum \(Self.keychains)/*"
    let digestsBefore = try sandbox.run(digestCommand).output
    #expect(digestsBefore.contains("-wal"))
    for line in [
      "keyhaul restore b.zip --to Devices/UDID --password-file .bp -n",
      "keyhaul simulator seed Devices/UDID --from phone -n",
      "keyhaul simulator reset Devices/UDID --app ABCDE12345.com.example.notes -n",
      "keyhaul item delete Devices/UDID --service nobody --yes",
    ] {
      let outcome = try sandbox.run(line)
      #expect([0, 4].contains(outcome.status), "\(outcome)")
      #expect(try sandbox.run(digestCommand).output == digestsBefore, "\(line)")
    }
    let program = BuiltProgram(home: sandbox.home)
    for line in [
      "keyhaul restore b.zip --to Devices/UDID --password-file .bp",
      "keyhaul simulator reset Devices/UDID --app ABCDE12345.com.example.notes",
    ] {
      var bytesAfterOtherChange = Data()
      let refused = try program.shell(line, typed: ["yes"]) { _ in
        try DatabaseQueue(path: path.path).write { database in
          try database.execute(sql: "DELETE FROM inet WHERE rowid IN (SELECT max(rowid) FROM inet)")
        }
        bytesAfterOtherChange = try Data(contentsOf: path)
      }
      #expect(refused.status == 11, "\(refused)")
      #expect(
        refused.errors.contains("Devices/UDID is in use")
          && refused.errors.contains(
            "another process has changed it since Keyhaul read it; nothing was changed"),
        "\(refused)"
      )
      #expect(try Data(contentsOf: path) == bytesAfterOtherChange, "the other process's change is lost")
      #expect(try program.shell(line, typed: ["yes"]).status == 0)
    }
  }

  @Test("A command rolls back a change that a killed process left unfinished in a Simulator's keychain")
  func killed() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("mkdir killed; keyhaul device export phone -o sim.db --yes -q")
    try sandbox.copyDatabase("sim.db", to: "killed/sim.db", during: "UPDATE genp SET agrp = 'x'")
    #expect(try sandbox.run("cmp sim.db killed/sim.db").status != 0)
    #expect(
      unwrapped(try sandbox.run("keyhaul verify killed/sim.db").output).contains("an unfinished change was rolled back")
    )
    let saved = try sandbox.run("keyhaul simulator snapshot killed/sim.db -o saved.db && keyhaul verify saved.db")
    #expect(saved.status == 0, "\(saved)")
    let group = "ABCDE12345.org.example.chat"
    let reset = try sandbox.run("keyhaul simulator reset killed/sim.db --app \(group) --yes")
    #expect(reset.status == 0 && reset.output.hasPrefix("Deleted "), "\(reset)")
    func count(_ condition: String, in name: String) throws -> Int {
      try DatabaseQueue(path: sandbox.home.appending(path: name).path).read { database in
        try Int.fetchOne(database, sql: "SELECT count(*) FROM genp WHERE \(condition)") ?? 0
      }
    }
    let otherGroupCount = try count("agrp <> '\(group)'", in: "sim.db")
    #expect(try otherGroupCount > 0 && count("agrp <> '\(group)'", in: "killed/sim.db") == otherGroupCount)
    #expect(try count("agrp = 'x'", in: "killed/sim.db") == 0)
    #expect(try sandbox.run("ls killed").output == "sim.db\n")
  }

  @Test("While another process keeps writing a keychain database, commands read its items or exit with 11")
  func writer() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device export phone -o sim.db --yes -q; keyhaul device create new-phone -q")
    try Data(
      """
      import sqlite3, time
      end, round = time.time() + 300, 0
      while time.time() < end:
          database = sqlite3.connect("sim.db", isolation_level=None)
          database.execute("PRAGMA journal_mode = " + ("WAL", "DELETE")[round % 2])
          for _ in range(5):
              database.execute("UPDATE genp SET labl = labl")
          database.close()
          round += 1
          time.sleep((0, 0.001, 0.05)[round % 3])
      """.utf8
    ).write(to: sandbox.home.appending(path: "writer.py"))
    let outcome = try sandbox.run(
      """
      keyhaul item find sim.db > expected
      python3 writer.py & writer=$!
      for round in 1 2 3 4; do
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

  @Test("A rejected command, or a database that another process has open, leaves the keychain unchanged")
  func refused() throws {
    let sandbox = try Self.sandbox()
    let path = sandbox.home.appending(path: Self.keychain)
    let bytesBefore = try Data(contentsOf: path)
    try sandbox.run("cp -r Devices/UDID Devices/odd")
    try sandbox.run("printf 'no log' > Devices/odd/data/Library/Keychains/keychain-2-debug.db-wal")
    let refusals: [(line: String, status: Int32, message: String)] = [
      ("simulator seed Devices/UDID --from phone", 64, "must be confirmed"),
      ("simulator seed Devices/UDID --from nothing --yes", 10, "nothing"),
      ("simulator seed Devices/UDID --from phone --app nobody --yes", 4, "No item in phone matches"),
      ("simulator reset Devices/UDID --app ABCDE12345.com.example.note", 4, "ABCDE12345.com.example.notes is similar."),
      (
        "simulator reset Devices/UDID --app ABCDE12345.com.example.notes --app com.example.nots --yes", 4,
        "belongs to com.example.nots; com.example.notes is similar."
      ),
      (
        "simulator seed Devices/UDID --from phone --app org.example.chatt --app org.example.chat --yes", 4,
        "No item in phone matches org.example.chatt; org.example.chat is similar."
      ),
      ("simulator reset phone --app x --yes", 64, "phone"),
      ("simulator snapshot Devices/odd -o saved.db", 14, "its log (-wal) does not match it, and may contain items"),
      ("simulator snapshot Devices/UDID -o -", 64, "a snapshot must be written to a file"),
      ("simulator list nowhere", 10, "there are no Simulators in nowhere"),
      ("device lock ./Devices/UDID", 10, "keyhaul simulator seed ./Devices/UDID --from BACKUP"),
    ]
    for (line, status, message) in refusals {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(outcome.status == status && outcome.errors.contains(message), "\(line): \(outcome)")
    }
    #expect(try Data(contentsOf: path) == bytesBefore)
    let connection = try DatabaseQueue(path: path.path)
    try connection.read { database in
      // After this query, the database stays open for reading.
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM genp") == 7)
      for line in ["seed Devices/UDID --from phone", "reset Devices/UDID --app ABCDE12345.com.example.notes"] {
        let outcome = try sandbox.run("keyhaul simulator \(line) --yes")
        #expect(outcome.status == 11 && outcome.errors.contains("error: Devices/UDID is in use\n"), "\(outcome)")
        #expect(outcome.errors.contains("nothing was changed"))
      }
    }
  }
}
