import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Device commands")
struct DeviceCommandTests {
  let sandbox: DeviceSandbox

  init() throws { sandbox = try DeviceSandbox() }

  /// The members of the document of `device show`.
  static let members: Set = [
    "format", "name", "udid", "product_type", "product_version", "state", "passcode_set", "items", "revision",
    "last_backup", "failed_attempts", "erase_after_failures", "published_hardware_key",
  ]

  @Test("The document of device show --json has exactly the documented members")
  func show() throws {
    try sandbox.run("keyhaul device create old-phone --from old-phone --model iPhone16,1 --ios 17.5.1")
    let shown = try sandbox.document("keyhaul device show old-phone --json")
    #expect(Set((shown.fields ?? []).map(\.0)) == Self.members)
    #expect(shown["format"] == "device/1")
    #expect(shown["name"] == "old-phone")
    #expect(shown["product_type"] == "iPhone16,1")
    #expect(shown["product_version"] == "17.5.1")
    #expect(shown["state"] == "unlocked")
    #expect(shown["passcode_set"] == true)
    #expect(shown["items"] == 22)
    #expect(shown["udid"]?.stringValue?.wholeMatch(of: /[0-9A-F]{8}-[0-9A-F]{16}/) != nil)
    #expect(shown["revision"]?.stringValue?.wholeMatch(of: /r[0-9]+/) != nil)
    #expect(shown["last_backup"] == .null)
  }

  @Test("Device list warns about a folder whose name is not UTF-8, and lists it as unreadable")
  func unreadableName() throws {
    try sandbox.run("keyhaul device create d --passcode-command 'echo 1' -q")
    let copied = try sandbox.run("cp -r devices/d \"devices/$(printf 'p\\377x')\"")
    try #require(copied.status == 0, "\(copied)")
    let outcome = try sandbox.run("keyhaul device list")
    #expect(outcome.status == 3 && outcome.output.contains("cannot be read"), "\(outcome)")
    #expect(outcome.errors.contains("cannot be a device's name, and was skipped"))
    let listed = try sandbox.run("keyhaul device list --json")
    #expect(listed.output.contains("\"p\u{FFFD}x\"") || listed.output.contains("\\ufffd"), "\(listed.output)")
  }

  @Test("The JSON names of the three states match the contract")
  func states() throws {
    try sandbox.run("keyhaul device create d --passcode-command 'echo 1'")
    #expect(try sandbox.document("keyhaul device lock d --json")["state"] == "locked")
    #expect(try sandbox.document("keyhaul device restart d --json")["state"] == "before-first-unlock")
    #expect(try sandbox.document("keyhaul device unlock d --json --passcode-command 'echo 1'")["state"] == "unlocked")
    #expect(try sandbox.document("keyhaul device unlock d --json")["state"] == "unlocked")
  }

  @Test(
    "Every device command prints one document with --json",
    arguments: [
      ("device create e", "name", "e"), ("device create e --dry-run", "dry_run", true),
      ("device lock d", "state", "locked"), ("device restart d", "state", "before-first-unlock"),
      ("device unlock d --passcode-command 'echo 135790'", "state", "unlocked"),
      (
        "device passcode change d --passcode-command 'echo 135790' --new-passcode-command 'echo 2'", "passcode_set",
        true
      ),
      ("device passcode remove d --yes --passcode-command 'echo 135790'", "destroyed_items", 1),
      ("device passcode remove d -n --passcode-command 'echo 135790'", "destroyed_items", 1),
      ("device passcode set plain --new-passcode-command 'echo 2'", "passcode_set", true),
      ("device erase d --yes", "erased_items", 22), ("device erase d -n", "erased_items", 22),
      ("device delete d --confirm d", "deleted", true), ("device delete d -n", "deleted", false),
      ("--json device list", "format", "device-list/1"),
    ] as [(line: String, member: String, value: JSONValue)])
  func documents(line: String, member: String, value: JSONValue) throws {
    let sandbox = try DeviceSandbox(
      after: "keyhaul device create d --from old-phone -q && keyhaul device create plain -q")
    let outcome = try sandbox.run(line.hasPrefix("--json") ? "keyhaul \(line)" : "keyhaul \(line) --json")
    #expect(outcome.status == 0)
    #expect(outcome.errors == "")
    let document = try JSONReader.read(Array(outcome.output.utf8))
    #expect(document[member] == value)
    #expect(document["format"]?.stringValue?.hasPrefix("device") == true)
  }

  @Test(
    "A dry run changes no byte of the device",
    arguments: [
      "device passcode change d --passcode-command 'echo 135790' --new-passcode-command 'echo 2'",
      "device passcode remove d --passcode-command 'echo 135790'", "device erase d", "device delete d",
      "item add d --label x --secret-command 'echo 1'",
    ])
  func dryRun(line: String) throws {
    let sandbox = try DeviceSandbox(after: "keyhaul device create d --from old-phone")
    let filesBefore = try sandbox.files(of: "d")
    let outcome = try sandbox.run("keyhaul \(line) -n")
    #expect(outcome.status == 0)
    #expect(outcome.output.hasPrefix("Would "))
    // SQLite may create these two files next to a database even to read it.
    #expect(try sandbox.files(of: "d").filter { !$0.key.hasSuffix("-shm") && !$0.key.hasSuffix("-wal") } == filesBefore)
  }

  @Test("A dry run of device create creates no device folder")
  func dryCreation() throws {
    #expect(try sandbox.run("keyhaul device create d --from old-phone --dry-run").status == 0)
    #expect(!FileManager.default.fileExists(atPath: sandbox.devices.appending(path: "d").path))
  }

  @Test("The passcode is read from a file, a descriptor or a command, and only a newline at its end is ignored")
  func passcodeSources() throws {
    try sandbox.run("printf '1234\\n' > pin; chmod 600 pin; keyhaul device create d --passcode-file pin")
    for source in [
      "--passcode-file pin", "--passcode-file - < pin", "--passcode-fd 3 3< pin", "--passcode-command 'cat pin'",
    ] {
      #expect(try sandbox.run("keyhaul device lock d && keyhaul device unlock d \(source)").status == 0)
    }
    let withSpace = try sandbox.run("keyhaul device unlock d --passcode-command 'printf \"1234 \"'")
    #expect(withSpace.status == 12)
    let withoutPasscode = try sandbox.run("keyhaul device unlock d --passcode-command true")
    #expect(withoutPasscode.status == 12)
    // An empty passcode is rejected without an attempt to unlock the device.
    #expect(try sandbox.document("keyhaul device show d --json")["failed_attempts"] == 1)
  }

  @Test("The error for a device in use names the process that uses it, and --wait waits for that process")
  func busy() throws {
    try sandbox.run("keyhaul device create new-phone --passcode-command 'echo 1'")
    let device = try DeviceSet(path: sandbox.devices.path).device(DeviceName("new-phone"))
    let openSession = try device.openSession(.writing, verb: "keyhaul restore")
    for line in [
      "device lock new-phone", "device show new-phone", "device erase new-phone --yes", "item find new-phone",
      "device delete new-phone --confirm new-phone", "device unlock new-phone", "device passcode remove new-phone",
    ] {
      let outcome = try sandbox.run("keyhaul \(line)")
      #expect(outcome.status == 11)
      let pattern = """
        error: new-phone is in use
          why: process \(getpid()) (keyhaul restore) has used it for [..] s
          try: wait, or add --wait 30s
        """
      #expect(SessionScript.matches(outcome.errors, pattern.split(separator: "\n").map(String.init)))
    }
    let list = try sandbox.run("keyhaul device list")
    #expect(list.status == 0)
    #expect(list.output.split(separator: "\n").last?.hasPrefix("new-phone  in use  –") == true)

    nonisolated(unsafe) let sessionToEnd = openSession
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 0.3)
      sessionToEnd.invalidate()
    }
    #expect(try sandbox.run("keyhaul device lock new-phone --wait 30s").status == 0)
  }

  @Test("A device is found by its path, by device:NAME, and in the folder of --home")
  func locations() throws {
    try sandbox.run("keyhaul --home elsewhere device create d")
    #expect(try sandbox.run("keyhaul device show elsewhere/d").status == 0)
    #expect(try sandbox.run("keyhaul device show device:d --home elsewhere").status == 0)
    #expect(try sandbox.run("keyhaul device show d").status == 10)
    #expect(try sandbox.run("keyhaul device create ./here -q && keyhaul device show ./here -q").status == 0)
    #expect(try sandbox.run("keyhaul device delete elsewhere/d --confirm e -n").status == 64)
    #expect(try sandbox.run("keyhaul device delete elsewhere/d --confirm d -n").status == 0)
    #expect(try sandbox.run("keyhaul device delete elsewhere/d --confirm d").status == 0)
    #expect(try sandbox.run("keyhaul device show elsewhere/d").status == 10)
  }

  @Test("A session accepts the device's current revision, and rejects any other")
  func changedMeanwhile() throws {
    try sandbox.run("keyhaul device create d")
    let session = try DeviceSet(path: sandbox.devices.path).device(DeviceName("d")).openSession(.reading, verb: "test")
    defer { session.invalidate() }
    #expect(thrownError { try session.requireUnchanged(since: session.record.revision) } == nil)
    #expect(thrownError { try session.requireUnchanged(since: "r0") }?.status == .failed)
  }

  @Test("The help states the passcodes of the bundled devices")
  func bundledPasscodes() throws {
    for name in ["old-phone", "new-phone", "hostile-names", "every-rule", "every-rule-target"] {
      let fixture = try FixtureSource.load(name).description
      guard let passcode = fixture.passcode else {
        #expect(FixtureSource.passcodes.contains("\(name) has none"))
        continue
      }
      let text = passcode.withBytes { String(decoding: $0, as: UTF8.self) }
      #expect(FixtureSource.passcodes.contains("\(text) on \(name)"))
    }
  }

  @Test("Device fixture prints a usable description, and suggests a name if the given name is unknown")
  func bundledDescription() throws {
    let sandbox = try DeviceSandbox()
    for name in BundledFixtures.names {
      let printed = try sandbox.run("keyhaul device fixture \(name)")
      #expect(printed.status == 0)
      #expect(Array(printed.output.utf8) == BundledFixtures.bytes(named: name))
    }
    let created = try sandbox.run(
      "keyhaul device fixture new-phone > mine.json && keyhaul device create mine --from mine.json")
    #expect(created.status == 0 && created.output.hasPrefix("Created mine"))
    let misspelled = try sandbox.run("keyhaul device fixture old-fone")
    #expect(misspelled.status == 10 && misspelled.output.isEmpty)
    #expect(misspelled.errors.contains("keyhaul device fixture old-phone"))
  }
}
