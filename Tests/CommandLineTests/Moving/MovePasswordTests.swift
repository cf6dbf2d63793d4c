import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Sources of a backup's password")
struct MovePasswordTests {
  @Test("A file, descriptor, standard input, command and environment provide the same password")
  func sources() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let plan = "keyhaul plan b.tar --to new-phone --json"
    let expectedItems = PlannedItems(try sandbox.plan("b.tar"))
    for line in [
      "\(plan) --password-file .bp", "\(plan) --password-fd 7 7< .bp", "\(plan) --password-file - < .bp",
      "\(plan) --password-fd 0 < .bp", "\(plan) --password-command 'cat .bp'",
      "KEYHAUL_PASSWORD_FILE=.bp \(plan)", "KEYHAUL_PASSWORD_COMMAND='cat .bp' \(plan)",
      "KEYHAUL_PASSWORD_FILE=wrong KEYHAUL_PASSWORD_COMMAND=false \(plan) --password-fd 3 3< .bp",
      "printf 'correct horse\\r\\n' | \(plan) --password-file -", "printf 'correct horse' | \(plan) --password-file -",
    ] {
      let outcome = try sandbox.devices.run(line)
      #expect(outcome.status == 0, "\(line): \(outcome.errors)")
      #expect(try PlannedItems(sandbox.object(outcome.output)) == expectedItems)
    }
  }

  @Test("Two password sources, an unusable source and a wrong password are rejected, and no password is printed")
  func refusals() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let plan = "keyhaul plan b.tar --to new-phone"
    let cases: [(line: String, status: Int32)] = [
      ("\(plan) --password-file .bp --password-fd 3 3< .bp", 64),
      ("\(plan) --password-command 'cat .bp' --password-fd 3 3< .bp", 64),
      ("printf 'correct horse \\n' | \(plan) --password-file -", 12),
      ("printf 'Correct horse' | \(plan) --password-file -", 12),
      ("printf 'correct horse\\n\\n' | \(plan) --password-file -", 12), (plan, 12),
      // No environment variable and no flag contains the password itself.
      ("KEYHAUL_PASSWORD='correct horse' \(plan)", 12), ("printf '' | \(plan) --password-file -", 12),
      ("\(plan) --password-command false", 1), ("\(plan) --password-file nothing", 10),
      ("\(plan) --password-fd 987", 1),
      ("\(plan) --password 'correct horse'", 64), ("\(plan) --password='correct horse'", 64),
    ]
    for (line, status) in cases {
      let outcome = try sandbox.devices.run(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(outcome.output == "" && outcome.errors.hasPrefix("error: "))
      #expect(!outcome.errors.contains("correct horse"), "\(outcome.errors)")
    }
  }

  @Test("The password is not in the arguments or environment of Keyhaul or its password command")
  func processes() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let script = """
      env > observed
      ps -o args= -p $PPID $$ >> observed
      cat /proc/$PPID/environ /proc/$PPID/cmdline >> observed
      cat .bp
      """
    try sandbox.write(Array(script.utf8), to: "ask")
    let outcome = try sandbox.devices.run(
      "keyhaul restore b.tar --to new-phone --yes --password-command '. ./ask 2> /dev/null'")
    #expect(outcome.status == 0, "\(outcome)")
    let observed = String(decoding: try sandbox.read("observed"), as: UTF8.self)
    #expect(observed.contains("KEYHAUL_HOME") && !observed.contains("correct horse"))
  }

  @Test("A password file that others can read causes a warning")
  func warning() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("chmod 640 .bp")
    let outcome = try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp")
    #expect(outcome.status == 0)
    #expect(
      outcome.errors
        == "warning: other users can read .bp\n  why: they can see the password of b.tar in it\n  try: chmod 600 .bp\n")
    // The advice quotes the file name for the shell.
    try sandbox.devices.run("cp -p .bp 'my password'")
    let withSpace = try sandbox.keyhaul("plan b.tar --to new-phone --password-file 'my password'")
    #expect(withSpace.errors.hasSuffix("  try: chmod 600 'my password'\n"))
  }
}
