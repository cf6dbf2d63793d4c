import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

/// Simulators in Xcode's folder: two named "iPhone 16", one of them booted, and an "iPhone 16 Pro".
@Suite("Simulators found by name")
struct NamedSimulatorTests {
  private static let devices = "Library/Developer/CoreSimulator/Devices"
  private static let olderUDID = "0A1B2C3D-0000-4000-8000-000000000017"
  private static let newerUDID = "0A1B2C3D-0000-4000-8000-000000000018"
  private static let proUDID = "0A1B2C3D-0000-4000-8000-000000000019"

  private static func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    let (shutdown, booted) = (1, 3)
    let simulators: [(udid: String, name: String, system: String, state: Int)] = [
      (olderUDID, "iPhone 16", "iOS-17-5", shutdown), (newerUDID, "iPhone 16", "iOS-18-0", booted),
      (proUDID, "iPhone 16 Pro", "iOS-18-0", shutdown),
    ]
    for (udid, name, system, state) in simulators {
      try sandbox.run("mkdir -p \(devices)/\(udid)/data/Library/Keychains")
      try sandbox.writeKeychainDatabase(to: keychain(of: udid), withLog: true)
      let description: [String: Any] = [
        "UDID": udid, "name": name, "runtime": "com.apple.CoreSimulator.SimRuntime.\(system)", "state": state,
        "deviceType": "com.apple.CoreSimulator.SimDeviceType.iPhone-16",
      ]
      try PropertyListSerialization.data(fromPropertyList: description, format: .xml, options: 0)
        .write(to: sandbox.home.appending(path: "\(devices)/\(udid)/device.plist"))
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
    #expect(listed?["name"]?.stringValue == Self.newerUDID && listed?["device_name"]?.stringValue == "iPhone 16")
    #expect(listed?["runtime"]?.stringValue == "iOS 18.0" && listed?["state"]?.stringValue == "booted")
  }

  @Test("A Simulator is found by its name, by its UDID in any case, or with the word booted")
  func names() throws {
    let sandbox = try Self.sandbox()
    let cases: [(name: String, udid: String)] = [
      ("'iphone 16 pro'", Self.proUDID), (Self.olderUDID.lowercased(), Self.olderUDID), ("booted", Self.newerUDID),
    ]
    for (name, udid) in cases {
      let saved = try sandbox.run("keyhaul simulator snapshot \(name) -o saved.db --yes")
      #expect(saved.output.contains("/\(udid) with 13 rows as saved.db"), "\(saved)")
    }
    let ambiguous = try sandbox.run("keyhaul simulator snapshot 'iPhone 16' -o saved.db --yes")
    #expect(
      ambiguous.status == 64 && ambiguous.errors.contains("\(Self.olderUDID) (iOS 17.5) and")
        && ambiguous.errors.contains("\(Self.newerUDID) (iOS 18.0)"), "\(ambiguous)"
    )
    let misspelled = try sandbox.run("keyhaul simulator snapshot 'iPhone 16 Pre' -o saved.db --yes")
    #expect(misspelled.status == 10 && misspelled.errors.contains("try: 'iPhone 16 Pro'"), "\(misspelled)")
  }

  @Test("A Simulator that is booted is not changed")
  func booted() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create phone --from old-phone -q; keyhaul simulator snapshot booted -o saved.db")
    let digestCommand = "cat \(Self.devices)/\(Self.newerUDID)/data/Library/Keychains/* | sha256sum"
    let digestBefore = try sandbox.run(digestCommand).output
    for line in [
      "simulator seed booted --from phone --yes", "simulator restore booted saved.db --yes",
      "simulator reset booted --app ABCDE12345.com.example.notes --yes",
      "item delete \(Self.devices)/\(Self.newerUDID) --kind generic --yes",
    ] {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(
        outcome.status == 11 && outcome.errors.contains("its device.plist says that it is booted; nothing was changed")
          && outcome.errors.contains("try: xcrun simctl shutdown \(Self.newerUDID)"), "\(line): \(outcome)")
    }
    #expect(try sandbox.run(digestCommand).output == digestBefore)
  }

  @Test("An app is found by its bundle identifier, and the names of its items are listed before they are deleted")
  func bundleIdentifier() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create phone --from old-phone -q")
    let items = try sandbox.document("keyhaul export phone -o - --json")["items"]?.arrayValue ?? []
    let groups = items.compactMap { $0["attributes"]?["agrp"]?.stringValue }
    let group = try #require(groups.sorted().first { $0.hasPrefix("ABCDE12345.") })
    let app = group.dropFirst("ABCDE12345.".count)
    let byGroup = try sandbox.run("keyhaul simulator seed \(Self.proUDID) --from phone --app \(group) -n").output
    #expect(try sandbox.run("keyhaul simulator seed \(Self.proUDID) --from phone --app \(app) -n").output == byGroup)
    #expect(byGroup.hasPrefix("Would put "))
    let misspelled = try sandbox.run("keyhaul simulator seed \(Self.proUDID) --from phone --app \(app)x -n")
    #expect(misspelled.status == 4 && misspelled.errors.contains("\(app) is similar."), "\(misspelled)")
    let reset = try sandbox.run("keyhaul simulator reset \(Self.proUDID) --app com.example.notes -n")
    #expect(reset.output.hasPrefix("Would delete ") && reset.output.contains("\nKIND "), "\(reset)")
  }

  @Test("A bundle identifier that two teams use is refused, and the error names both access groups")
  func twoTeams() throws {
    let sandbox = try Self.sandbox()
    try DatabaseQueue(path: sandbox.home.appending(path: Self.keychain(of: Self.proUDID)).path).write { database in
      try database.execute(
        sql: "UPDATE genp SET agrp = 'ZZZZZ99999.com.example.notes' WHERE rowid = (SELECT max(rowid) FROM genp)")
    }
    let reset = try sandbox.run("keyhaul simulator reset \(Self.proUDID) --app com.example.notes --yes")
    #expect(
      reset.status == 64 && reset.errors.contains("ABCDE12345.com.example.notes and ZZZZZ99999.com.example.notes"),
      "\(reset)")
  }

  @Test("A snapshot is restored byte for byte, with and without a log", arguments: [true, false])
  func restore(hasLog: Bool) throws {
    let sandbox = try Self.sandbox()
    let keychain = Self.keychain(of: Self.olderUDID)
    if !hasLog { try sandbox.run("rm \(keychain)-wal") }
    try sandbox.run("keyhaul device create phone --from old-phone -q; chmod 640 \(keychain)")
    try sandbox.run("keyhaul simulator snapshot \(Self.olderUDID) -o saved.db")
    #expect(try sandbox.run("keyhaul simulator seed \(Self.olderUDID) --from phone --yes").status == 0)
    // The restore must delete this log, because SQLite would apply it to the restored database.
    try Self.deletePasswords(inLogOf: keychain, in: sandbox)

    let dryRun = try sandbox.run("keyhaul simulator restore \(Self.olderUDID) saved.db -n")
    #expect(dryRun.output.hasPrefix("Would replace the ") && dryRun.status == 0, "\(dryRun)")
    let restored = try sandbox.run("keyhaul simulator restore \(Self.olderUDID) saved.db --yes")
    #expect(restored.status == 0 && restored.output.contains(" from saved.db, with "), "\(restored)")
    #expect(try sandbox.run("cmp saved.db \(keychain)").status == 0)
    // No log is left.
    #expect(try sandbox.run("ls \(keychain)-*").output == "")
    #expect(try sandbox.permissions(of: keychain) == 0o640)
    try sandbox.run("keyhaul simulator snapshot \(Self.olderUDID) -o again.db")
    #expect(try sandbox.run("cmp saved.db again.db").status == 0)
  }

  /// Deletes the generic passwords of a database, and leaves this change in its write-ahead log.
  private static func deletePasswords(inLogOf keychain: String, in sandbox: DeviceSandbox) throws {
    let connection = try DatabaseQueue(path: sandbox.home.appending(path: keychain).path)
    try connection.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; DELETE FROM genp")
    }
    // SQLite moves the log into the database when the last connection is closed.
    try sandbox.run("cp \(keychain) \(keychain)-wal .")
    try connection.close()
    try sandbox.run("cp keychain-2-debug.db \(keychain); cp keychain-2-debug.db-wal \(keychain)-wal")
  }

  @Test("A restore needs consent, a database that is not in use, and a snapshot of a Simulator's keychain")
  func refusedRestore() throws {
    let sandbox = try Self.sandbox()
    let keychain = Self.keychain(of: Self.olderUDID)
    try sandbox.run(
      "keyhaul device create phone --from old-phone -q; printf words > pw; chmod 600 pw; keyhaul backup phone -o b.tar "
        + "--password-file pw; keyhaul simulator snapshot \(Self.olderUDID) -o saved.db")
    let digestCommand = "cat \(keychain)* | sha256sum"
    let digestBefore = try sandbox.run(digestCommand).output
    // 64: without consent. 14: not a Simulator's keychain. 10: no such snapshot, or no such Simulator.
    let cases: [(arguments: String, status: Int32)] = [
      ("\(Self.olderUDID) saved.db", 64), ("\(Self.olderUDID) b.tar --yes", 14),
      ("\(Self.olderUDID) nothing.db --yes", 10),
      ("phone saved.db --yes", 10),
    ]
    for (arguments, status) in cases {
      let outcome = try sandbox.run("keyhaul simulator restore \(arguments)")
      #expect(outcome.status == status, "\(arguments): \(outcome)")
    }
    #expect(try sandbox.run(digestCommand).output == digestBefore)
    let queue = try DatabaseQueue(path: sandbox.home.appending(path: keychain).path)
    try queue.read { database in
      // After this query, the database stays open for reading.
      #expect(try Int.fetchOne(database, sql: "SELECT count(*) FROM genp") == 7)
      let outcome = try sandbox.run("keyhaul simulator restore \(Self.olderUDID) saved.db --yes")
      #expect(outcome.status == 11 && outcome.errors.contains("nothing was changed"), "\(outcome)")
    }
  }

  @Test("The examples in the help of the simulator commands run as printed")
  func examples() throws {
    let sandbox = try Self.sandbox()
    // The examples name one Simulator "UDID" and "iPhone 16".
    let folders = [(Self.olderUDID, "UDID"), (Self.newerUDID, "other"), (Self.proUDID, "third")]
    for (udid, name) in folders { try sandbox.run("mv \(Self.devices)/\(udid) \(Self.devices)/\(name)") }
    try sandbox.run(
      "sed -i 's/iPhone 16/iPhone 15/' \(Self.devices)/other/device.plist; printf words > pw; chmod 600 pw; "
        + "keyhaul device create old-phone --from old-phone -q; "
        + "keyhaul backup old-phone -o family.backup --password-file pw")
    let commands: [any RunnableCommand.Type] = [
      SimulatorList.self, SimulatorSnapshot.self, SimulatorSeed.self, SimulatorRestore.self, SimulatorReset.self,
    ]
    for command in commands {
      for example in command.helpScreen.examples {
        let outcome = try sandbox.run("export KEYHAUL_PASSWORD_FILE=pw; \(example)", typed: ["y"])
        #expect(outcome.status == 0, "\(example): \(outcome)")
        // The next example needs the items, which this example may have deleted.
        try sandbox.run("keyhaul simulator seed 'iPhone 16' --from old-phone --yes")
      }
    }
  }
}
