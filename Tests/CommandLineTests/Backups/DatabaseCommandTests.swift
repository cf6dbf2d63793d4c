import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Keychain databases as sources")
struct DatabaseCommandTests {
  private static let keychains = "sim/data/Library/Keychains"
  private static let keychain = "\(keychains)/keychain-2-debug.db"

  /// Returns a sandbox with a Simulator's directory, which has the database of the test vectors and its log.
  private static func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    try sandbox.run("mkdir -p \(keychains)")
    try sandbox.writeKeychainDatabase(to: keychain, withLog: true)
    return sandbox
  }

  @Test("Five commands read a Simulator's database together with its log, and write no file next to it")
  func read() throws {
    let sandbox = try Self.sandbox()
    let fingerprintCommand = "cd \(Self.keychains) && ls -la --time-style=full-iso && sha256sum *"
    let fingerprintBefore = try sandbox.run(fingerprintCommand).output
    try sandbox.run("keyhaul device create new-phone -q")
    let noteAboutKeys = "with its keys stored unencrypted in it, like a Simulator's"
    // The log has one more item than the file. A tombstone does not count as an item.
    let cases: [(line: String, text: String)] = [
      ("inspect sim", "13 items: 7 generic, 3 internet, 1 certificate, 2 key"),
      ("inspect sim --list", "notes · in t"), ("verify sim", "13 of 13 can be decrypted"),
      ("plan sim --to new-phone", "8 will move (8 new), 4 stay behind, 0 cannot be read"),
      ("diff sim new-phone", "0 new, 0 changed, 12 missing, 0 the same"),
      ("export sim -o - --format json", "\"in the log only\""),
    ]
    for (line, text) in cases {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(outcome.status == 0, "\(line): \(outcome)")
      #expect(unwrapped(outcome.output).contains(text), "\(line): \(outcome.output)")
      let printed = unwrapped(outcome.output + outcome.errors)
      #expect(printed.contains(noteAboutKeys) || line.hasPrefix("verify"), "\(line): \(outcome)")
    }
    for path in ["sim/data", Self.keychains, Self.keychain] {
      #expect(try sandbox.run("keyhaul inspect \(path)").output.contains("13 items"), "\(path)")
    }
    #expect(try sandbox.run(fingerprintCommand).output == fingerprintBefore)
  }

  @Test("A database with an unrelated log is read without the log, and verify does not call the database intact")
  func unrelatedLog() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("cp \(Self.keychain) k.db; printf 'no log at all' > k.db-wal")
    let verified = try sandbox.run("keyhaul verify k.db")
    #expect(verified.status == 3 && unwrapped(verified.output).contains("No visible error in"), "\(verified)")
    let inspected = try sandbox.run("keyhaul inspect k.db")
    #expect(inspected.status == 0 && unwrapped(inspected.output).contains("12 items"))
    #expect(
      unwrapped(inspected.output).contains(
        "Its log (-wal) has no committed change that can be read, so nothing from "
          + "the log is shown."))
  }

  @Test("A database with an unfinished change is shown as it was before the change, with a note")
  func unfinishedChange() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("cp \(Self.keychain) k.db")
    try sandbox.copyDatabase("k.db", to: "cut.db", during: "UPDATE genp SET data = zeroblob(9000)")
    let before = try sandbox.run("sha256sum cut.db*").output
    let inspected = try sandbox.run("keyhaul inspect cut.db")
    #expect(inspected.status == 0 && unwrapped(inspected.output).contains("12 items"), "\(inspected)")
    #expect(
      unwrapped(inspected.output).contains(
        "One of its changes was not finished. Keyhaul read the state before this change, from the journal (-journal). "
          + "SQLite restores the same state when it next opens the database."))
    let verified = try sandbox.run("keyhaul verify cut.db")
    #expect(
      verified.status == 0
        && unwrapped(verified.output).contains("an unfinished change was rolled back, as its journal specifies"),
      "\(verified)")
    #expect(try sandbox.run("keyhaul verify cut.db --json").output.contains("\"log\": \"taken-back\""))
    #expect(try sandbox.run("sha256sum cut.db*").output == before)
    // Without the journal, the pages are a mixture of two states.
    #expect(try sandbox.run("rm cut.db-journal; keyhaul verify cut.db").status == 13)
  }

  @Test("A database with wrong columns is damaged, and verify names the row")
  func changedColumn() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("cp \(Self.keychain) k.db")
    // Replaces the access group in the columns and their indexes, but not in the encrypted item.
    try sandbox.run("sed -i 's/ABCDE12345.com.example.notes/ABCDE12345.com.mallory.notes/g' k.db")
    let outcome = try sandbox.run("keyhaul verify k.db")
    #expect(outcome.status == 13, "\(outcome)")
    #expect(outcome.output.contains("differ from the item: agrp"))
    #expect(outcome.output.contains("k.db is damaged: columns."))
    let document = try JSONReader.read(Array(sandbox.run("keyhaul verify k.db --json").output.utf8))
    #expect(document["damaged"] == .boolean(true) && document["whole"] == .boolean(false))
  }

  @Test("Commands for backups reject a database, and unrelated files are not called databases")
  func refused() throws {
    let sandbox = try Self.sandbox()
    try sandbox.run("keyhaul device create new-phone -q; cp \(Self.keychain) k.db")
    try sandbox.run("head -c 20000 k.db > cut.db; printf 'SQLite format 3\\0' > short.db")
    try sandbox.run("umask 077; printf '{\"6\": \"00\"}' > short.keys; printf x > .bp")
    let cases: [(line: String, status: Int32, message: String)] = [
      ("restore k.db --to new-phone --yes", 14, "k.db is a keychain database, not a backup"),
      ("why k.db --account x --password-file .bp", 64, "k.db needs no password and no key"),
      ("why k.db --item 12 --class-keys-file short.keys", 14, "the key of class 6 has 2 digits instead of 64"),
      ("why k.db --item 99", 64, "k.db has 12 items, counted from 0"),
      ("inspect k.db --keybag", 64, "k.db is a database: it has no keybag and no files"),
      ("inspect k.db --password-file .bp", 64, "k.db needs no password and no key"),
      ("verify k.db --quick", 64, "--quick applies only to backups"),
      ("plan k.db", 64, "a plan made from a database needs --to"),
      ("plan k.db --to new-phone --compare", 64, "--compare and --audit do not work with a database"),
      ("inspect cut.db", 13, "cannot read cut.db"),
      ("inspect short.db", 14, "short.db is not a backup or a keychain database"),
      ("inspect k.db --class-keys short.keys", 14, "the key of class 6 has 2 digits instead of 64"),
      ("inspect k.db --class-keys absent.keys", 10, "absent.keys"),
      (
        "plan new-phone --to new-phone --class-keys-file short.keys", 64,
        "--class-keys-file applies only to a keychain database"
      ),
    ]
    for (line, status, message) in cases {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(outcome.status == status && unwrapped(outcome.errors).contains(message), "\(line): \(outcome)")
    }
  }

  @Test("A database of iOS 6, which has no sha1 columns, is read without errors about missing digests")
  func oldSchema() throws {
    let sandbox = try DeviceSandbox()
    let encryptedItem = try TestVectors.section("item_blob_v2")["blob"].bytes
    let queue = try DatabaseQueue(path: sandbox.home.appending(path: "keychain-2.db").path)
    try queue.write { database in
      for table in ["genp", "inet", "cert", "keys"] {
        try database.execute(
          sql: "CREATE TABLE \(table)(rowid INTEGER PRIMARY KEY, cdat REAL, mdat REAL, data BLOB, agrp TEXT, pdmn TEXT)"
        )
      }
      try database.execute(sql: "CREATE TABLE tversion(version INTEGER); INSERT INTO tversion VALUES (5)")
      for _ in 0..<10 {
        try database.execute(
          sql: "INSERT INTO genp(data, agrp, pdmn) VALUES (?, 'apple', 'ck')", arguments: [Data(encryptedItem)])
      }
    }
    try queue.close()
    let inspected = try sandbox.run("keyhaul inspect keychain-2.db")
    #expect(inspected.status == 3 && unwrapped(inspected.output).contains("10 items: 10 generic"), "\(inspected)")
    #expect(unwrapped(inspected.output).contains("Its schema is 5.0, with 10 rows of version 2."), "\(inspected)")
    let verified = try sandbox.run("keyhaul verify keychain-2.db")
    // Without the class keys no item can be decrypted, but nothing is damaged.
    #expect(verified.status == 3, "\(verified)")
    #expect(unwrapped(verified.output).contains("all four item tables are present"))
    #expect(unwrapped(verified.output).contains("none: its schema has no sha1 column"))
  }

  @Test("Every command that reads a source recognizes a macOS file keychain")
  func fileKeychain() throws {
    let sandbox = try DeviceSandbox()
    try sandbox.run("keyhaul device create new-phone -q")
    // The header of AppleDatabase.cpp: magic number, version 1.0, 20 bytes of header.
    try sandbox.run(
      "{ printf 'kych\\000\\001\\000\\000\\000\\000\\000\\024'; head -c 20000 /dev/zero; } > login.keychain-db")
    for line in [
      "inspect login.keychain-db", "verify login.keychain-db", "export login.keychain-db -o items.json --format json",
      "plan login.keychain-db --to new-phone", "diff login.keychain-db new-phone", "diff new-phone login.keychain-db",
      "why login.keychain-db --item 0", "restore login.keychain-db --to new-phone --yes",
      "convert login.keychain-db -o copy.tar",
    ] {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(
        outcome.status == 14
          && unwrapped(outcome.errors).contains("login.keychain-db is a macOS file keychain, which Keyhaul cannot read"),
        "\(line): \(outcome)")
    }
    let stream = try sandbox.run("keyhaul inspect - < login.keychain-db")
    #expect(
      stream.status == 14
        && unwrapped(stream.errors).contains(
          "it is a macOS file keychain, which Keyhaul cannot read"),
      "\(stream)"
    )
  }

  @Test("`inspect --list --json` of a dump says whether the dump states an item's table, or Keyhaul inferred it")
  func statedTables() throws {
    let sandbox = try DeviceSandbox()
    let entry =
      "<array><dict><key>agrp</key><string>g</string><key>svce</key><string>s</string><key>acct</key><string>a</string>"
      + "<key>v_Data</key><data>eA==</data></dict></array>"
    let dumps: [(content: String, statesTable: Bool)] = [
      ("<dict><key>genp</key>\(entry)</dict>", true), (entry, false),
    ]
    for (content, statesTable) in dumps {
      let plist = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\(content)</plist>"
      try Data(plist.utf8).write(to: sandbox.home.appending(path: "dump.plist"))
      let items = try sandbox.document("keyhaul inspect dump.plist --list --json")["items"]?.arrayValue ?? []
      #expect(items.map { $0["account"] } == ["a"] && items.first?["secret_readable"] == true, "\(items)")
      #expect(items.first?["table_stated"] == .boolean(statesTable), "\(items)")
    }
  }

  @Test("A placeholder that objection writes is not a secret: csv and cxf leave the item out, and the report names it")
  func objectionPlaceholder() throws {
    let sandbox = try DeviceSandbox()
    let entry = { (name: String, data: String) in
      """
      {"item_class": "kSecClassGenericPassword", "service": "\(name)", "account": "anna",
       "accessible_attribute": "kSecAttrAccessibleWhenUnlocked", "data": "\(data)"}
      """
    }
    try Data("[\(entry("wifi", "hunter2")), \(entry("token", "(failed to decode)"))]".utf8)
      .write(to: sandbox.home.appending(path: "objection.json"))
    let inspected = try sandbox.run("keyhaul inspect objection.json")
    #expect(
      inspected.status == 0 && unwrapped(inspected.output).contains("1 item has no secret in the dump"), "\(inspected)")
    for format in ["csv", "cxf"] {
      let outcome = try sandbox.run("keyhaul export objection.json --format \(format) --reveal -o items.\(format)")
      let written = try sandbox.run("cat items.\(format)").output
      #expect(outcome.status == 0 && written.contains("wifi") && !written.contains("token"), "\(outcome) \(written)")
      #expect(!written.contains("failed to decode"))
      #expect(
        unwrapped(outcome.output + outcome.errors).contains("generic password \"token · anna\": it has no secret"),
        "\(outcome)")
    }
  }

  @Test("A log with a damaged end and a second keychain are reported")
  func ambiguousDatabase() throws {
    let sandbox = try Self.sandbox()
    let cases: [(change: String, line: String, status: Int32, messages: [String])] = [
      (
        "printf 'more' >> \(Self.keychain)-wal", "verify sim", 3,
        [
          "- log",
          "its committed changes were read up to a point; the rest is damaged, cut off or unfinished",
          "No visible error in sim;",
        ]
      ),
      ("cp \(Self.keychain) \(Self.keychains)/keychain-2.db", "inspect sim", 64, ["sim has more than one keychain"]),
    ]
    for (change, line, status, messages) in cases {
      try sandbox.run("rm -rf original; cp -r sim original; \(change)")
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(outcome.status == status, "\(line): \(outcome)")
      let printed = unwrapped(outcome.output + outcome.errors)
      for message in messages { #expect(printed.contains(message), "\(line): \(outcome)") }
      try sandbox.run("rm -rf sim; mv original sim")
    }
  }

  @Test("Missing keys and wrong class keys are reported")
  func keys() throws {
    let sandbox = try Self.sandbox()
    try sandbox.writeKeychainDatabase(to: "k.db", withLog: false)
    let path = sandbox.home.appending(path: "k.db").path
    try DatabaseQueue(path: path).write { try $0.execute(sql: "DELETE FROM metadatakeys WHERE keyclass = '6'") }
    let withoutKey = try sandbox.run("keyhaul verify k.db")
    #expect(withoutKey.status == 13 && withoutKey.output.contains("k.db is damaged: items."), "\(withoutKey)")
    // As on a device, the keys in the database are then wrapped with keys that are not available.
    try DatabaseQueue(path: path).write {
      try $0.execute(sql: "UPDATE metadatakeys SET data = x'\(String(repeating: "ab", count: 40))'")
      try $0.execute(sql: "DELETE FROM keys")
    }
    let withWrappedKeys = try sandbox.run("keyhaul inspect k.db")
    #expect(
      withWrappedKeys.status == 3
        && unwrapped(withWrappedKeys.errors).contains("the keys are not in the database try: --class-keys-file"),
      "\(withWrappedKeys)")
    let verified = try sandbox.run("keyhaul verify k.db")
    #expect(verified.output.contains("not checked: no secret can be decrypted"), "\(verified)")
    let wrongKey = String(repeating: "0f", count: 32)
    try sandbox.run("umask 077; printf '{\"7\": \"\(wrongKey)\"}' > wrong.keys")
    let withWrongKey = try sandbox.run("keyhaul inspect k.db --class-keys-file wrong.keys")
    #expect(
      withWrongKey.status == 12 && withWrongKey.errors.contains("the class keys cannot decrypt k.db"),
      "\(withWrongKey)")
  }
}
