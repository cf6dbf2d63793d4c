#if os(Linux)
  import Foundation
  import Glibc
  import KeyhaulKit
  import Testing
  import TestSupport

  @testable import KeychainCrypto
  @testable import keyhaul

  /// The program that users get, looked at from outside. It lets nobody but root do that.
  @Suite(
    "What is left of secrets in the program's memory", .serialized,
    .enabled(
      if: TracedProgram.isPossible,
      "SKIPPED, NOT SHOWN: the memory of the program was not looked through; that takes root and ptrace"))
  struct ProgramMemoryTests {
    /// A device with a passcode, an item that moves and one that stays, a backup of it, and another device.
    struct Story {
      let world: DeviceWorld
      /// What no memory may hold, by what it is.
      let needles: [MemoryScan.Needle]

      static let password = "wide-Ochre-9f2c-lantern-of-Basalt"
      static let newPassword = "tall-Umber-71d0-window-of-Granite"
      static let passcode = "thin-Sepia-440e-anchor-of-Slate"
      static let newPasscode = "long-Coral-a81b-bridge-of-Quartz"
      static let secret = "planted-Amber-c53d-thicket-of-Feldspar-planted-Amber"
      static let newSecret = "renewed-Ivory-b7a2-harbour-of-Dolomite-renewed-Ivory"

      init() throws {
        world = try DeviceWorld(
          after: """
            umask 077; printf '\(Self.password)\n' > .bp; printf '\(Self.newPassword)\n' > .np
            printf '\(Self.passcode)\n' > .pin; printf '\(Self.newPasscode)\n' > .npin; printf '\(Self.secret)' > secret
            keyhaul device create d --passcode-file .pin && keyhaul device create n &&
            keyhaul item add d --service planted --account a --secret-file secret &&
            keyhaul item add d --service bound --account b --secret-file secret \
              --protection when-unlocked-this-device &&
            keyhaul backup d -o b/ -p .bp --rounds 1 && keyhaul backup d -o plain/ --no-password &&
            keyhaul plan b/ --to n -p .bp -o made.plan
            printf '#!/bin/sh\ncat .bp\n' > password; chmod 700 password
            """)
        var found = [
          ("password", Self.password), ("new password", Self.newPassword), ("passcode", Self.passcode),
          ("new passcode", Self.newPasscode), ("secret", Self.secret), ("new secret", Self.newSecret),
        ].map { MemoryScan.Needle(name: $0, bytes: Array($1.utf8)) }
        found += [Self.secret, Self.newSecret].map {
          MemoryScan.Needle(name: "\($0) in base64", bytes: Array(Data($0.utf8).base64EncodedString().utf8.prefix(40)))
        }
        let identifier = try Data(contentsOf: world.devices.appending(path: "d/hardware.uid"))
        found.append(MemoryScan.Needle(name: "hardware", bytes: Array(identifier)))
        let hardware = try HardwareUID(Secret(copying: identifier)).deviceKey()
        found.append(MemoryScan.Needle(name: "hardware key", bytes: try hardware.withKey { $0.withBytes(Array.init) }))
        for (name, password) in [("b", Self.password), ("plain", nil)] {
          let archive = try BackupArchive.open(.path(world.home.appending(path: name).path))
          let key: BackupKey
          if let password {
            key = try archive.unlock(password: Secret(utf8: password))
            found.append(
              MemoryScan.Needle(name: "password's key", bytes: key.passcodeKey.withBytes(Array.init)))
          } else {
            key = try archive.unlock(password: nil)
          }
          let keys = try key.classKeys(deviceKey: hardware)
          for keyClass in keys.classes {
            let bytes = keys.entries[keyClass]?.key?.secret.withBytes(Array.init) ?? []
            found.append(MemoryScan.Needle(name: "class key \(keyClass.rawValue) of \(name)", bytes: bytes))
          }
        }
        needles = found
      }

      func counts(in process: Int32) throws -> [String: Int] { try MemoryScan.counts(of: needles, in: process) }

      var program: TracedProgram { TracedProgram(program: world.program) }
    }

    /// What is called, what is typed at its prompts, and what it ends with.
    static let calls: [(line: String, typed: [String])] = [
      ("device create e", []),
      ("device create e --passcode-file .pin", []),
      ("device passcode change d", [Story.passcode, Story.newPasscode, Story.newPasscode]),
      ("device passcode set n", [Story.newPasscode, Story.newPasscode]),
      ("device passcode remove d", [Story.passcode]),
      ("device unlock d", [Story.passcode]),
      ("device export d -o sim.db --yes", []),
      ("item add d --service new --account c", [Story.newSecret]),
      ("item add b/ --service new --account c --access-group app", [Story.password, Story.newSecret]),
      ("item update d --service planted --new-secret-file secret --yes", []),
      ("item find d --service planted --reveal", []),
      ("item find b/ --service planted --reveal --json", [Story.password]),
      ("item delete b/ --service planted", [Story.password, "y"]),
      ("backup d -o c/ --rounds 1", [Story.newPassword, Story.newPassword]),
      ("inspect b/ --list", [Story.password]),
      ("verify b/", [Story.password]),
      ("diff b/ b/", [Story.password]),
      ("export b/ -o out.json --reveal", [Story.password]),
      ("export b/ -o out.csv --reveal --format csv", [Story.password]),
      ("export b/ -o out.pem --reveal --format pem --yes", [Story.password]),
      ("export b/ --files out", [Story.password]),
      ("verify b/ --password-command ./password", []),
      ("restore b/ --to n --plan made.plan --yes", [Story.password]),
      ("rekey b/ --rounds 1", [Story.password, Story.newPassword, Story.newPassword]),
      ("rekey b/ --no-password", [Story.password, "y"]),
      ("rekey plain/ --new-password-file .np --rounds 1 --yes", []),
      ("convert b/ -o c.tar", []),
      ("convert b/ -o copy/ --decrypted --reveal", [Story.password, "y"]),
      ("seal b/", [Story.password]),
      ("plan b/ --to n -o move.plan", [Story.password]),
      ("plan b/ --to d", [Story.password]),
      ("restore b/ --to n", [Story.password, "y"]),
      ("restore b/ --to n --existing merge", ["wrong", "wronger", "wrongest"]),
      ("why b/ --service planted", [Story.password]),
    ]

    @Test(
      "at the end of a verb nothing, and at its prompts what it works with alone; a quick run takes a third of the calls",
      arguments: Cases.chosen(calls.indices, quick: 12))
    func verbs(index: Int) throws {
      let (line, typed) = Self.calls[index]
      let story = try Story()
      var atPrompts: [[String: Int]] = []
      var atEnd: [String: Int]?
      let outcome = try story.program.run(line.split(separator: " ").map(String.init), typed: typed) { process in
        atPrompts.append(try story.counts(in: process))
      } atEnd: { process in
        atEnd = try story.counts(in: process)
      }
      // Two items have the secret; of everything else there is one owner.
      let extra = atPrompts.filter { counts in counts.contains { $0.value > ($0.key == "secret" ? 2 : 1) } }
      #expect(extra.isEmpty, "\(line): \(extra)")
      // A question that comes after the password was used finds what it opened, and the password gone.
      if typed.last == "y" { #expect(atPrompts.last?["password"] == nil, "\(line): \(atPrompts)") }
      // The story has neither keys nor certificates.
      let expected: [Int32] = line.contains("--format pem") ? [4] : [0, 12]
      #expect(expected.contains(outcome.status), "\(line): \(outcome)")
      #expect(atEnd == [:], "\(line)")
    }

    static let leaving = [SIGINT, SIGTERM, SIGHUP]
    static let crashing = [SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP]

    @Test("a signal at a prompt leaves nothing, also one that ends any program at once", arguments: leaving + crashing)
    func atPrompt(signal: Int32) throws {
      let story = try Story()
      var before: [[String: Int]] = []
      var atEnd: [String: Int]?
      let outcome = try story.program.run(
        ["rekey", "b/", "--rounds", "1"], typed: [Story.password, Story.newPassword]
      ) { process in
        before.append(try story.counts(in: process))
        if before.count == 3 { kill(process, signal) }
      } atEnd: { process in
        atEnd = try story.counts(in: process)
      }
      #expect(before.count == 3 && before.last?["new password"] == 1, "\(before)")
      #expect(outcome.status == 128 + signal && atEnd == [:], "\(outcome) \(String(describing: atEnd))")
    }

    @Test("Ctrl-C in the middle of the work leaves nothing, and neither does the second", arguments: [1, 2])
    func atWork(count: Int) throws {
      let story = try Story()
      var during: [String: Int] = [:]
      var atEnd: [String: Int]?
      let arguments = ["rekey", "b/", "-p", ".bp", "--new-password-file", ".np", "--rounds", "19000000"]
      let look: TracedProgram.Look = { process in
        // Before it is traced, and where it has gone, it lets nobody look. A look takes long where the machine is busy: it
        // begins when the password is there, which is when there is work.
        guard during.isEmpty, TracedProgram.processorSeconds(of: process) > 0.3 else { return }
        guard let counts = try? story.counts(in: process), counts["new password"] != nil else {
          return
        }
        during = counts
        for number in [SIGINT, SIGTERM].prefix(count) { kill(process, number) }
      }
      let end: TracedProgram.Look = { process in atEnd = try story.counts(in: process) }
      let outcome = try story.program.run(arguments, meanwhile: look, atEnd: end)
      #expect(during["new password"] == 1 && atEnd == [:], "\(during) \(String(describing: atEnd))")
      #expect(outcome.status == 130 || (count == 2 && outcome.status == 143), "\(outcome)")
    }

    /// Bound at its first call, a function of a library finds all vector registers put on the stack.
    ///
    /// Source: the ELF specification's program header and dynamic section; `DF_1_NOW` of glibc's elf.h.
    @Test(
      "the release program binds its calls before it begins",
      .enabled(
        if: ProcessInfo.processInfo.environment["KEYHAUL_TESTED_PROGRAM"] != nil,
        "the program beside the tests is not linked as users get it"))
    func binding() throws {
      let file = try Data(contentsOf: BuiltProgram.directory.appending(path: "keyhaul"))
      func number(_ place: Int, _ count: Int) -> Int {
        file[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
      }
      let headers = (0..<number(56, 2)).map { number(32, 8) + $0 * number(54, 2) }
      let dynamic = try #require(headers.first { number($0, 4) == 2 })
      let start = number(dynamic + 8, 8)
      let entries = stride(from: start, to: start + number(dynamic + 32, 8), by: 16)
      let flags = try #require(entries.first { number($0, 8) == 0x6FFF_FFFB })
      #expect(number(flags + 8, 8) & 1 == 1)
    }
  }
#endif
