import Foundation
import Testing

@testable import keyhaul

@Suite("Unusually high iteration counts")
struct IterationQuestionTests {
  /// Returns a sandbox with a backup `b/` whose keybag states this number of iterations instead of 10,000.
  private static func sandbox(iterations: UInt32) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.setIterations(iterations, in: "ITER", of: "b")
    return sandbox
  }

  private static let commandLines = [
    "inspect b/ --list", "verify b/", "diff b/ b/", "export b/ -o x.json",
    "rekey b/ --in-place --new-password-file .bp",
    "plan b/ --to new-phone", "why b/ --item 0", "restore b/ --to new-phone --yes",
  ]

  @Test(
    "Without a terminal, the backup is rejected before the password is read, and the error has the count and the time")
  func refused() throws {
    let sandbox = try Self.sandbox(iterations: 4_000_000)
    for line in Self.commandLines {
      let outcome = try sandbox.keyhaul("\(line) --password-command 'touch asked; cat .bp'")
      #expect(outcome.status == 14 && outcome.output.isEmpty, "\(line): \(outcome)")
      let text = unwrapped(outcome.errors)
      let expectedText =
        /error: refused to open b\/ why: it asks for 4,000,000 iterations of key derivation, 400 times the usual 10,000; about [0-9.]+ s on this machine; Keyhaul cannot ask, because there is no terminal try: don't trust this file; --max-rounds 4000001 accepts this many iterations/
      #expect(text.wholeMatch(of: expectedText) != nil, "\(line): \(text)")
      #expect(try !sandbox.names().contains("asked"), "\(line)")
    }
    let withoutInput = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp --no-input", typed: ["y"])
    #expect(withoutInput.status == 14 && withoutInput.terminal.isEmpty)
    #expect(withoutInput.errors.contains("--no-input prevents"))
  }

  @Test("On a terminal, Keyhaul asks once, and continues only after a yes")
  func asked() throws {
    let sandbox = try Self.sandbox(iterations: 60_000)
    let question = "b/ asks for 60,000 iterations of key derivation, 6 times the usual 10,000; "
    for answer in ["", "n", "no", "yess"] {
      let outcome = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp", typed: [answer])
      #expect(outcome.status == 1 && outcome.terminal.hasPrefix(question), "\(outcome)")
      #expect(outcome.terminal.contains(" on this machine. Go on? [y/N] "))
      #expect(outcome.errors == "error: stopped: the answer was not yes\n  why: nothing was changed\n")
    }
    for line in ["inspect b/ --list", "diff b/ b/", "rekey b/ --in-place --new-password-file .bp"] {
      // The changed iteration count results in a different key, so the right password counts as wrong (12).
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp", typed: ["y", "y", "y"])
      #expect(outcome.status == 12, "\(line): \(outcome)")
      #expect(outcome.terminal.ranges(of: "asks for 60,000 iterations").count == 1, "\(line): \(outcome)")
    }
    // With --yes, Keyhaul warns instead of asking.
    let warned = try sandbox.keyhaul("inspect b/ --list --password-file .bp --yes", typed: [])
    #expect(warned.status == 12 && warned.terminal.isEmpty)
    #expect(warned.errors.hasPrefix("warning: b/ asks for 60,000 iterations"))
  }

  @Test("Keyhaul does not ask if --max-rounds covers the count")
  func maximum() throws {
    let sandbox = try Self.sandbox(iterations: 60_000)
    let line = "inspect b/ --list --password-file .bp --max-rounds"
    // The limit also counts the single iteration of the other derivation.
    #expect(try sandbox.keyhaul("\(line) 60001").status == 12)
    let refused = try sandbox.keyhaul("\(line) 60000")
    #expect(refused.status == 14 && refused.errors.contains("over the limit of 60,000"))
  }

  @Test("The question starts above five times the usual count: at 50,001, not at 50,000")
  func threshold() throws {
    let line = "inspect b/ --list --password-file .bp"
    #expect(try Self.sandbox(iterations: 50_000).keyhaul(line).status == 12)
    #expect(try Self.sandbox(iterations: 50_001).keyhaul(line).status == 14)
  }

  @Test("A backup with a high iteration count can be inspected without its password")
  func withoutPassword() throws {
    let sandbox = try Self.sandbox(iterations: 4_000_000)
    #expect(try sandbox.succeed("inspect b/ --keybag").contains("1 + 4,000,000 iterations, about "))
  }

  // This test only checks that the program stops. The tests of PBKDF2 check how soon the derivation stops.
  @Test("Ctrl-C ends the key derivation early")
  func stopped() throws {
    let sandbox = try Self.sandbox(iterations: 19_999_999)
    let filesBefore = try sandbox.files(in: ".").filter { $0 != "asked" && !$0.hasSuffix("/lock") }
    let outcome = try sandbox.devices.run(
      """
      (while [ ! -e asked ]; do sleep 0.01; done; sleep 0.1; kill -INT $$) &
      exec keyhaul restore b/ --to new-phone --max-rounds 20000000 --password-command 'touch asked; cat .bp' --yes
      """)
    #expect(outcome.status == 130, "\(outcome)")
    #expect(outcome.errors == "error: stopped by Ctrl-C\n  why: nothing was changed\n")
    try sandbox.devices.run("rm asked")
    #expect(try sandbox.files(in: ".").filter { !$0.hasSuffix("/lock") } == filesBefore)
  }
}
