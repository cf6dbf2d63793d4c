#if os(Linux)
  import Foundation
  import Glibc
  import KeyhaulKit
  import Testing
  import TestSupport

  @testable import KeychainCrypto
  @testable import keyhaul

  /// Searches the memory of the built program from outside, which only root can do.
  @Suite(
    "Secrets in the program's memory", .serialized,
    .enabled(
      if: TracedProgram.isPossible,
      "SKIPPED, NOT SHOWN: secrets in the memory of the program, since searching it takes root and ptrace"))
  struct ProgramMemoryTests {
    /// A device with a passcode, an item that moves and an item that stays. Also two backups of the device, with and
    /// without a password, and another device.
    struct MemoryScenario {
      let sandbox: DeviceSandbox
      /// The secrets that must not be in memory, with their names.
      let needles: [MemoryScan.Needle]

      static let password = "wide-Ochre-9f2c-lantern-of-Basalt"
      static let newPassword = "tall-Umber-71d0-window-of-Granite"
      static let passcode = "thin-Sepia-440e-anchor-of-Slate"
      static let newPasscode = "long-Coral-a81b-bridge-of-Quartz"
      static let secret = "planted-Amber-c53d-thicket-of-Feldspar-planted-Amber"
      static let newSecret = "renewed-Ivory-b7a2-harbour-of-Dolomite-renewed-Ivory"

      init() throws {
        sandbox = try DeviceSandbox(
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
        needles = try Self.textNeedles + Self.keyNeedles(of: sandbox)
      }

      /// The passwords, passcodes and items' secrets. A search in base64 needs only the beginning of a secret.
      private static var textNeedles: [MemoryScan.Needle] {
        let texts = [
          ("password", password), ("new password", newPassword), ("passcode", passcode), ("new passcode", newPasscode),
          ("secret", secret), ("new secret", newSecret),
        ].map { name, text in MemoryScan.Needle(name: name, bytes: Array(text.utf8)) }
        let base64Texts = [secret, newSecret].map { text in
          let base64 = Data(text.utf8).base64EncodedString()
          return MemoryScan.Needle(name: "\(text) in base64", bytes: Array(base64.utf8.prefix(40)))
        }
        return texts + base64Texts
      }

      /// Returns the keys of the device `d` and of its backups `b` and `plain`.
      private static func keyNeedles(of sandbox: DeviceSandbox) throws -> [MemoryScan.Needle] {
        let uid = try Data(contentsOf: sandbox.devices.appending(path: "d/hardware.uid"))
        let deviceKey = try HardwareUID(Secret(copying: uid)).deviceKey()
        var needles = [
          MemoryScan.Needle(name: "hardware UID", bytes: Array(uid)),
          MemoryScan.Needle(name: "device key", bytes: try deviceKey.withKey { $0.withBytes(Array.init) }),
        ]
        let encrypted = try BackupArchive.open(.path(sandbox.home.appending(path: "b").path))
        let encryptedKey = try encrypted.unlock(password: Secret(utf8: password))
        needles.append(
          MemoryScan.Needle(name: "password's key", bytes: encryptedKey.passcodeKey.withBytes(Array.init)))
        needles += classKeyNeedles(try encryptedKey.classKeys(deviceKey: deviceKey), of: "b")
        let plain = try BackupArchive.open(.path(sandbox.home.appending(path: "plain").path))
        let plainKey = try plain.unlock(password: nil)
        needles += classKeyNeedles(try plainKey.classKeys(deviceKey: deviceKey), of: "plain")
        return needles
      }

      private static func classKeyNeedles(_ keys: ClassKeys, of backup: String) -> [MemoryScan.Needle] {
        var needles: [MemoryScan.Needle] = []
        for keyClass in keys.classes {
          let bytes = keys.entries[keyClass]?.key?.secret.withBytes(Array.init) ?? []
          needles.append(MemoryScan.Needle(name: "class key \(keyClass.rawValue) of \(backup)", bytes: bytes))
        }
        return needles
      }

      func counts(in process: Int32) throws -> [String: Int] { try MemoryScan.counts(of: needles, in: process) }

      var program: TracedProgram { TracedProgram(program: sandbox.program) }
    }

    /// The commands to run, with the lines to type at their prompts.
    static let commands: [(line: String, typed: [String])] = [
      ("device create e", []),
      ("device create e --passcode-file .pin", []),
      ("device passcode change d", [MemoryScenario.passcode, MemoryScenario.newPasscode, MemoryScenario.newPasscode]),
      ("device passcode set n", [MemoryScenario.newPasscode, MemoryScenario.newPasscode]),
      ("device passcode remove d", [MemoryScenario.passcode]),
      ("device unlock d", [MemoryScenario.passcode]),
      ("device export d -o sim.db --yes", []),
      ("item add d --service new --account c", [MemoryScenario.newSecret]),
      (
        "item add b/ --service new --account c --access-group app", [MemoryScenario.password, MemoryScenario.newSecret]
      ),
      ("item update d --service planted --new-secret-file secret --yes", []),
      ("item find d --service planted --reveal", []),
      ("item find b/ --service planted --reveal --json", [MemoryScenario.password]),
      ("item delete b/ --service planted", [MemoryScenario.password, "y"]),
      ("backup d -o c/ --rounds 1", [MemoryScenario.newPassword, MemoryScenario.newPassword]),
      ("inspect b/ --list", [MemoryScenario.password]),
      ("verify b/", [MemoryScenario.password]),
      ("diff b/ b/", [MemoryScenario.password]),
      ("export b/ -o out.json --reveal", [MemoryScenario.password]),
      ("export b/ -o out.csv --reveal --format csv", [MemoryScenario.password]),
      ("export b/ -o out.pem --reveal --format pem --yes", [MemoryScenario.password]),
      ("export b/ --files out", [MemoryScenario.password]),
      ("verify b/ --password-command ./password", []),
      ("restore b/ --to n --plan made.plan --yes", [MemoryScenario.password]),
      ("rekey b/ --rounds 1", [MemoryScenario.password, MemoryScenario.newPassword, MemoryScenario.newPassword]),
      ("rekey b/ --no-password", [MemoryScenario.password, "y"]),
      ("rekey plain/ --new-password-file .np --rounds 1 --yes", []),
      ("convert b/ -o c.tar", []),
      ("convert b/ -o copy/ --decrypted --reveal", [MemoryScenario.password, "y"]),
      ("seal b/", [MemoryScenario.password]),
      ("plan b/ --to n -o move.plan", [MemoryScenario.password]),
      ("plan b/ --to d", [MemoryScenario.password]),
      ("restore b/ --to n", [MemoryScenario.password, "y"]),
      ("restore b/ --to n --existing merge", ["wrong", "wronger", "wrongest"]),
      ("why b/ --service planted", [MemoryScenario.password]),
    ]

    @Test(
      "No secret is in memory at the end, and no unneeded copy at a prompt (12 commands in a quick run)",
      arguments: Cases.chosen(commands.indices, quick: 12))
    func memory(index: Int) throws {
      let (line, typed) = Self.commands[index]
      let scenario = try MemoryScenario()
      var atPrompts: [[String: Int]] = []
      var atEnd: [String: Int]?
      let outcome = try scenario.program.run(line.split(separator: " ").map(String.init), typed: typed) { process in
        atPrompts.append(try scenario.counts(in: process))
      } atEnd: { process in
        atEnd = try scenario.counts(in: process)
      }
      // The secret belongs to two items, and everything else may be in memory only once.
      let promptsWithCopies = atPrompts.filter { counts in
        counts.contains { name, count in count > (name == "secret" ? 2 : 1) }
      }
      #expect(promptsWithCopies.isEmpty, "\(line): \(promptsWithCopies)")
      // At a question after the decryption, the password is no longer in memory.
      if typed.last == "y" { #expect(atPrompts.last?["password"] == nil, "\(line): \(atPrompts)") }
      // The scenario has neither keys nor certificates, so an export in PEM finds no item and exits with 4. A command with
      // wrong passwords exits with 12.
      let expected: [Int32] = line.contains("--format pem") ? [4] : [0, 12]
      #expect(expected.contains(outcome.status), "\(line): \(outcome)")
      #expect(atEnd == [:], "\(line)")
    }

    static let stopSignals = [SIGINT, SIGTERM, SIGHUP]
    static let crashSignals = [SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP]

    @Test(
      "A signal at a prompt leaves no secret in memory, even if it ends the program immediately",
      arguments: stopSignals + crashSignals)
    func atPrompt(signal: Int32) throws {
      let scenario = try MemoryScenario()
      var atPrompts: [[String: Int]] = []
      var atEnd: [String: Int]?
      let outcome = try scenario.program.run(
        ["rekey", "b/", "--rounds", "1"], typed: [MemoryScenario.password, MemoryScenario.newPassword]
      ) { process in
        atPrompts.append(try scenario.counts(in: process))
        // The third prompt asks for the new password again.
        if atPrompts.count == 3 { kill(process, signal) }
      } atEnd: { process in
        atEnd = try scenario.counts(in: process)
      }
      #expect(atPrompts.count == 3 && atPrompts.last?["new password"] == 1, "\(atPrompts)")
      #expect(outcome.status == 128 + signal && atEnd == [:], "\(outcome) \(String(describing: atEnd))")
    }

    @Test("Ctrl-C once or twice during the work leaves no secret in memory", arguments: [1, 2])
    func duringWork(count: Int) throws {
      let scenario = try MemoryScenario()
      var duringWork: [String: Int] = [:]
      var atEnd: [String: Int]?
      let arguments = ["rekey", "b/", "-p", ".bp", "--new-password-file", ".np", "--rounds", "19000000"]
      let inspect: TracedProgram.Inspection = { process in
        // The memory cannot be read before the process is traced or after it has ended. A search takes long on a busy
        // machine, so it starts only when the key derivation has run for a while.
        guard duringWork.isEmpty, TracedProgram.processorSeconds(of: process) > 0.3 else { return }
        guard let counts = try? scenario.counts(in: process), counts["new password"] != nil else {
          return
        }
        duringWork = counts
        for signal in [SIGINT, SIGTERM].prefix(count) { kill(process, signal) }
      }
      let end: TracedProgram.Inspection = { process in atEnd = try scenario.counts(in: process) }
      let outcome = try scenario.program.run(arguments, whileRunning: inspect, atEnd: end)
      #expect(duringWork["new password"] == 1 && atEnd == [:], "\(duringWork) \(String(describing: atEnd))")
      #expect(outcome.status == 130 || (count == 2 && outcome.status == 143), "\(outcome)")
    }

    /// Lazy binding puts all vector registers, which may contain secrets, on the stack at the first call of a library's
    /// function.
    ///
    /// The ELF header has the offset of the program headers at byte 32, and their size and number at bytes 54 and 56. The
    /// header of the dynamic section has the section's offset at byte 8 and its size at byte 32. The section is a list of
    /// tags and values of eight bytes each.
    ///
    /// Source: the ELF specification's program header and dynamic section; `DF_1_NOW` of glibc's elf.h.
    @Test(
      "The release program resolves its symbols at start",
      .enabled(
        if: ProcessInfo.processInfo.environment["KEYHAUL_TESTED_PROGRAM"] != nil,
        "the program next to the tests is not linked like the release program"))
    func binding() throws {
      let file = try Data(contentsOf: BuiltProgram.directory.appending(path: "keyhaul"))
      func integer(at offset: Int, byteCount: Int) -> Int {
        file[offset..<offset + byteCount].reversed().reduce(0) { $0 << 8 | Int($1) }
      }
      let (dynamicType, flagsTag, bindNow) = (2, 0x6FFF_FFFB, 1)
      let (headerStart, headerSize) = (integer(at: 32, byteCount: 8), integer(at: 54, byteCount: 2))
      let headerCount = integer(at: 56, byteCount: 2)
      let headers = (0..<headerCount).map { headerStart + $0 * headerSize }
      let dynamicHeader = try #require(headers.first { integer(at: $0, byteCount: 4) == dynamicType })
      let sectionStart = integer(at: dynamicHeader + 8, byteCount: 8)
      let sectionSize = integer(at: dynamicHeader + 32, byteCount: 8)
      let entries = stride(from: sectionStart, to: sectionStart + sectionSize, by: 16)
      let flagsEntry = try #require(entries.first { integer(at: $0, byteCount: 8) == flagsTag })
      #expect(integer(at: flagsEntry + 8, byteCount: 8) & bindNow != 0)
    }
  }
#endif
