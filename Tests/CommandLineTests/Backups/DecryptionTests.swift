import Foundation
import GRDB
import KeyhaulKit
import Reports
import Testing

@testable import keyhaul

@Suite("Decrypting backups in every command")
struct DecryptionTests {
  private func sandbox(password: String = PhoneSandbox.password) throws -> PhoneSandbox {
    try PhoneSandbox(named: "backup with \(password)") { sandbox in
      try sandbox.write(Array("\(password)\n".utf8), to: ".bp")
      try sandbox.write(Array("battery staple\n".utf8), to: ".np")
      try sandbox.backUp(to: "b/")
    }
  }

  @Test("In a comparison with a device, the source device's key decrypts this-device-only items")
  func sourceDeviceKey() throws {
    let sandbox = try sandbox()
    for sides in ["b new-phone", "new-phone b"] {
      let outcome = try sandbox.keyhaul("diff \(sides) --password-file .bp")
      #expect(outcome.status == 0 && !outcome.output.contains("not comparable"), "\(outcome)")
      #expect(outcome.errors == "b: this-device-only items were decrypted with the key of old-phone\n")
    }
    // Without the source device, the this-device-only items cannot be decrypted.
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let outcome = try sandbox.keyhaul("diff b new-phone --password-file .bp")
    #expect(outcome.output.contains("4 not comparable") || outcome.output.contains("4 not\ncomparable"), "\(outcome)")
  }

  @Test("A password with accents matches in either Unicode form, and the form is reported")
  func unicodeForms() throws {
    // The é as one character, and as an e with a combining accent.
    let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
    let sandbox = try sandbox(password: composed)
    let cases: [(password: String, notes: Set<Substring>)] = [
      (decomposed, ["b: the password was accepted with composed accents (Unicode form NFC)"]), (composed, []),
    ]
    for (password, expectedNotes) in cases {
      try sandbox.write(Array("\(password)\n".utf8), to: ".typed")
      for line in DecryptingCommands.all {
        let needsDevice = line.contains("new-phone")
        let home = needsDevice ? "" : "--home elsewhere/\(UUID())"
        let outcome = try sandbox.keyhaul("\(line) --password-file .typed \(home)")
        #expect(outcome.status == 0, "\(line): \(outcome)")
        let notes = outcome.errors.split(separator: "\n").filter { $0.contains("the password was accepted") }
        #expect(Set(notes) == expectedNotes, "\(line): \(outcome.errors)")
      }
    }
    // A rekey with the other form of the old password takes effect.
    try sandbox.write(Array("\(decomposed)\n".utf8), to: ".typed")
    try sandbox.succeed("rekey b --password-file .typed --new-password-file .np")
    try sandbox.succeed("verify b --password-file .np")
    #expect(try sandbox.keyhaul("verify b --password-file .typed").status == 12)
  }

  @Test("A password after a byte order mark decrypts a backup from a file, a pipe, a command and a list")
  func byteOrderMark() throws {
    let sandbox = try sandbox(password: "test")
    // As `"test" | Set-Content -Encoding utf8` of Windows PowerShell 5 writes it.
    try sandbox.write(Array("\u{FEFF}test\r\n".utf8), to: ".marked")
    for flags in ["--password-file .marked", "-p - < .marked", "--password-command 'cat .marked'"] {
      let outcome = try sandbox.keyhaul("verify b \(flags)")
      #expect(outcome.status == 0, "\(flags): \(outcome)")
      #expect(outcome.errors.contains("b: the password was accepted without its byte order mark\n"), "\(outcome)")
    }
    try sandbox.write(Array("\u{FEFF}* file:.marked\r\n".utf8), to: ".list")
    #expect(try sandbox.keyhaul("verify b --passwords .list").status == 0)
    try sandbox.write(Array("\u{FEFF}other\n".utf8), to: ".marked")
    #expect(try sandbox.keyhaul("verify b --password-file .marked").status == 12)
  }

  @Test("If the source device is in the device folder, its key is used, and a note says so")
  func homeDevice() throws {
    let sandbox = try sandbox()
    let note = "b: this-device-only items were decrypted with the key of old-phone"
    for line in [
      "inspect b --list", "verify b", "export b -o -", "why b --account 'push token'", "rekey b --no-password -n",
    ] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 0 && outcome.errors.split(separator: "\n").contains(note[...]), "\(line): \(outcome)")
      #expect(try !sandbox.keyhaul("\(line) --password-file .bp -q").errors.contains(note))
    }
    let plan = try sandbox.succeed("plan b --to new-phone --password-file .bp")
    #expect(plan.contains("this-device-only items: names decrypted with the device key of old-phone"))
    // The user named the compared device, so no note is needed.
    let compared = try sandbox.keyhaul("diff b old-phone --password-file .bp")
    #expect(!compared.errors.contains("were decrypted with the key of"))
    let withoutDevice = try sandbox.keyhaul("inspect b --list --password-file .bp --home elsewhere")
    #expect(
      withoutDevice.status == 0 && withoutDevice.errors == "" && withoutDevice.output.contains("(encrypted)"))
  }

  @Test("Keyhaul warns if the source device's key cannot be read, unless the user gave a device key")
  func unreadableHomeDevice() throws {
    let sandbox = try sandbox()
    try FileManager.default.removeItem(at: sandbox.home.appending(path: "devices/old-phone/hardware.uid"))
    let warning = """
      warning: the key of old-phone cannot be read: this-device-only items in b cannot
               be decrypted
        why: the device is damaged: its hardware UID (hardware.uid) is missing
        try: delete the device and restore a backup of it to a new one

      """
    for line in ["inspect b --list", "verify b", "export b -o -", "plan b --to new-phone"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 0 && outcome.errors.contains(warning), "\(line): \(outcome.errors)")
    }
    try sandbox.write([UInt8](repeating: 7, count: 16), to: ".other")
    let given = try sandbox.keyhaul("export b -o - --password-file .bp --device-key-file .other")
    #expect(given.status == 0 && !given.errors.contains("the key of old-phone"), "\(given.errors)")
  }

  @Test("The source device's key decrypts its items without the device itself, and a wrong key is reported")
  func deviceKey() throws {
    let sandbox = try sandbox()
    try sandbox.write(sandbox.deviceKey(of: "old-phone"), to: ".key")
    try sandbox.write([UInt8](repeating: 7, count: 16), to: ".other")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    for line in ["inspect b --list", "verify b", "export b -o -", "diff b b", "why b --account 'push token'"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp --device-key-file .key")
      // An export also mentions the items that no backup contains.
      let notes = outcome.errors.split(separator: "\n").filter { $0 != BackupBlindSpots.line }
      #expect(outcome.status == 0 && notes.count <= 1, "\(line): \(outcome)")
      #expect(!outcome.output.contains("(encrypted)"), "\(line): \(outcome)")
      #expect(!outcome.output.contains(#""readable": false"#), "\(line): \(outcome)")
      if line.hasPrefix("why") { #expect(outcome.output.contains("it can be decrypted with the available keys")) }
      let fromDescriptor = try sandbox.keyhaul("\(line) --password-file .bp --device-key-fd 5 5< .key")
      #expect(fromDescriptor == outcome, "\(line)")
    }
    for line in ["plan b --to new-phone", "restore b --to new-phone -n"] {
      let plan = try sandbox.succeed("\(line) --password-file .bp --device-key-file .key")
      #expect(plan.contains("push token") && plan.contains("Stay behind (4)"), "\(line): \(plan)")
      #expect(try !sandbox.succeed("\(line) --password-file .bp").contains("push token"))
    }
    for line in DecryptingCommands.all where !line.hasPrefix("rekey") {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp --device-key-file .other")
      let expectedStatus: Int32 = line.hasPrefix("verify") ? 3 : 0
      #expect(outcome.status == expectedStatus, "\(line): \(outcome)")
      let backupCount = line.hasPrefix("diff") ? 2 : 1
      #expect(outcome.errors.ranges(of: Self.wrongKeyWarning).count == backupCount, "\(line): \(outcome)")
    }
  }

  private static let wrongKeyWarning = "warning: the given device key does not belong to the source device of b\n"

  @Test("If the given device key is wrong, the key of the virtual device is used, with a warning")
  func wrongKeyNextToDevice() throws {
    let sandbox = try sandbox()
    try sandbox.write([UInt8](repeating: 7, count: 16), to: ".other")
    for line in DecryptingCommands.all.map({ $0 == "inspect b" ? "inspect b --list" : $0 }) + [
      "rekey b --no-password -n"
    ] {
      // Changing the password needs no device key.
      if line.contains("--new-password-file") { continue }
      let withoutKey = try sandbox.keyhaul("\(line) --password-file .bp")
      let withWrongKey = try sandbox.keyhaul("\(line) --password-file .bp --device-key-file .other")
      if line.hasPrefix("verify") {
        // The findings are the same, but verify also reports that the given key does not match.
        let text = unwrapped(withWrongKey.output)
        #expect(withWrongKey.status == 3 && text.hasPrefix(unwrapped(withoutKey.output)), "\(line): \(withWrongKey)")
        #expect(text.hasSuffix("The given device key decrypts none of the items that need one."))
      } else {
        #expect(withoutKey.status == 0 && withWrongKey.status == 0, "\(line): \(withWrongKey)")
        #expect(withWrongKey.output == withoutKey.output, "\(line): \(withWrongKey)")
      }
      #expect(withWrongKey.errors.contains(Self.wrongKeyWarning), "\(line): \(withWrongKey)")
      #expect(!withoutKey.errors.contains(Self.wrongKeyWarning), "\(line): \(withoutKey)")
    }
    // The right key is also found for a stream, which can be read only once.
    try sandbox.succeed("convert b -o b.tar -q")
    let stream = try sandbox.keyhaul("inspect - --list --password-file .bp --device-key-file .other < b.tar")
    #expect(stream.status == 0 && !stream.output.contains("(encrypted)"), "\(stream)")
  }

  @Test("Rekey rejects setting a password on a backup from iOS 9 before it asks for a device key")
  func oldPassword() throws {
    let sandbox = try PhoneSandbox()
    _ = try OldBackup(in: sandbox, named: "old")
    for key in ["", "--device-key-file .none"] {
      let outcome = try sandbox.keyhaul("rekey old --new-password-file .bp --home elsewhere \(key)")
      #expect(outcome.status == 14)
      #expect(
        outcome.errors == """
          error: old cannot be given a password
            why: it is from iOS 9 or earlier; this works with backups from iOS 10 and
                 later
            try: make a new backup of the device, with a password

          """)
    }
  }

  @Test("With --memory, a backup is read without a temporary file")
  func memory() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    // A manifest as large as one of about ten thousand files.
    try DatabaseQueue(path: sandbox.devices.home.appending(path: "b/Manifest.db").path).write {
      try $0.execute(sql: "INSERT INTO Properties VALUES ('padding', zeroblob(9 << 20))")
    }
    try sandbox.removeSeal("b")
    try sandbox.succeed("rekey b --in-place --new-password-file .bp --rounds 1 -q")
    try sandbox.succeed("convert b -o b.tar -q")
    for name in ["b", "b.tar"] {
      for line in DecryptingCommands.all.map({ $0.replacing(/\bb\b/, with: name) }) + ["convert \(name) -o c.tar --yes"]
      {
        let password = line.hasPrefix("convert") ? "" : "--password-file .bp"
        let outcome = try sandbox.devices.run("TMPDIR=$PWD/nowhere keyhaul \(line) \(password) --memory > /dev/null")
        #expect(outcome.status == 0, "\(line): \(outcome.errors)")
      }
    }
    // Without --memory, the same command needs a temporary file.
    let outcome = try sandbox.devices.run("TMPDIR=$PWD/nowhere keyhaul verify b --password-file .bp")
    let errors = unwrapped(outcome.errors)
    #expect(
      outcome.status == 1 && errors.contains("nowhere\": no such file or directory")
        && errors.contains("or add --memory"), "\(outcome)")
  }

  @Test("No command writes its output over an input, or into a backup or device that it reads")
  func outputs() throws {
    let sandbox = try sandbox()
    func paths() throws -> [String] {
      try sandbox.files(in: "b") + sandbox.files(in: "devices").filter { !$0.hasSuffix("/lock") }
    }
    let pathsBefore = try paths()
    let cases: [(line: String, relation: String)] = [
      ("export b -o b/x.json", "is inside"), ("export b -o b/Manifest.plist --yes", "is"),
      ("export b -o b --yes", "is"),
      ("export b --domain KeychainDomain --path keychain-backup.plist -o b/51/x", "is inside"),
      ("plan b --to new-phone -o b/x.plan", "is inside"), ("convert b -o b/x.tar", "is inside"),
      ("convert b -o b/x/", "is inside"),
      ("export old-phone -o devices/old-phone/x.json", "is inside"), ("export b -o .bp --yes", "is"),
    ]
    for (line, relation) in cases {
      let password = line.hasPrefix("convert") || line.contains("old-phone") ? "" : "--password-file .bp"
      let outcome = try sandbox.keyhaul("\(line) \(password)")
      #expect(outcome.status == 64 && outcome.errors.contains(" \(relation) the input\n"), "\(line): \(outcome)")
    }
    #expect(try paths() == pathsBefore)
  }

  @Test("A flag of another command is rejected, and the error names the commands that have it")
  func flagsOfOtherCommands() throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul("explain device-bound --max-rounds 5")
    #expect(outcome.status == 64)
    #expect(
      outcome.errors == """
        error: keyhaul explain has no flag --max-rounds
          why: it is a flag of device create, item add, item find and 13 other commands
          try: leave --max-rounds out

        """)
    let copy = try sandbox.keyhaul("convert b -o c.tar --max-rounds 5")
    #expect(copy.status == 64)
    #expect(
      copy.errors == """
        error: --max-rounds applies only to a decrypted copy
          why: a packed copy keeps every stored byte
          try: --decrypted, or leave it out

        """)
    let rekey = try sandbox.keyhaul("rekey b --password-file .bp --new-password-file .np --device-key-file k")
    #expect(rekey.status == 64)
    #expect(rekey.errors.hasPrefix("error: a device key is not used to change the password of b\n"), "\(rekey)")
    let misspelled = try sandbox.keyhaul("convert b -o c.tar --memry")
    #expect(
      misspelled.errors == "error: keyhaul convert has no flag --memry\n  why: --memory is similar\n  try: --memory\n")
  }

  @Test("Flags for backups are rejected for a device")
  func devices() throws {
    let sandbox = try PhoneSandbox()
    for line in [
      "plan old-phone --to new-phone", "why old-phone --account anna", "export old-phone -o x.json",
      "diff old-phone new-phone",
    ] {
      let cases: [(flag: String, message: String)] = [
        ("--password-file .bp", " needs no "), ("--device-key-file k", "--device-key-file applies only to backups"),
        ("--device-key-fd 3", "--device-key-fd applies only to backups"),
        ("--max-rounds 5", "--max-rounds applies only to backups"), ("--memory", "--memory applies only to backups"),
      ]
      for (flag, message) in cases {
        let outcome = try sandbox.keyhaul("\(line) \(flag)")
        #expect(outcome.status == 64 && outcome.errors.contains(message), "\(line) \(flag): \(outcome)")
      }
    }
    try sandbox.backUp(to: "b.tar")
    let quick = try sandbox.keyhaul("verify b.tar --quick --device-key-file k")
    #expect(quick.status == 64 && quick.errors.hasPrefix("error: --quick and a device key cannot be used together\n"))
  }
}
