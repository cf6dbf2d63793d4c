import Foundation
import Testing

@testable import keyhaul

@Suite("Layout of the move commands")
struct MoveLayoutTests {
  /// The commands whose output is checked.
  private static let commands = [
    "backup phone -o c.tar --password-file .bp --rounds 1 --yes -v", "inspect b.tar",
    "inspect b.tar --password-file .bp",
    "inspect b.tar --list --password-file .bp", "inspect b.tar --keybag",
    "plan b.tar --to new-phone --password-file .bp -v",
    "plan b.tar --to new-phone --password-file .bp -v --existing merge", "inspect p.tar --list",
    "plan p.tar --to new-phone -v",
    "restore b.tar --to new-phone --password-file .bp -n -v",
  ]

  /// Returns a sandbox with the device `phone`, and its backups with a password (`b.tar`) and without a password
  /// (`p.tar`).
  private func sandbox(fixture: String) throws -> PhoneSandbox {
    try PhoneSandbox(named: "layout \(fixture)") { sandbox in
      try sandbox.succeed("device create phone --from \(fixture) -q")
      try sandbox.backUp("phone", to: "b.tar")
      try sandbox.succeed("backup phone -o p.tar --no-password -q")
    }
  }

  @Test("The output fits terminals of 80 and 120 columns", arguments: ["80", "120"], ["old-phone", "hostile-names"])
  func width(columns: String, fixture: String) throws {
    let sandbox = try sandbox(fixture: fixture)
    var widest = 0
    for command in Self.commands {
      let outcome = try sandbox.devices.run("COLUMNS=\(columns) keyhaul \(command)")
      for line in (outcome.output + outcome.errors).split(separator: "\n") {
        let width = DisplayWidth.columns(of: String(line))
        widest = max(widest, width)
        // Tables have a minimum width of up to 92 columns; names never make a line longer.
        #expect(width <= 92 || width <= Int(columns) ?? 0, "\(command):\n\(line)")
        #expect(!line.hasSuffix(" "), "\(command): a space at the end of \"\(line)\"")
      }
    }
    #expect(widest > 70)
  }

  @Test("Untrusted names cannot control the terminal")
  func untrustedNames() throws {
    let sandbox = try sandbox(fixture: "hostile-names")
    for command in Self.commands {
      let outcome = try sandbox.keyhaul(command)
      for scalar in (outcome.output + outcome.errors).unicodeScalars where scalar != "\n" {
        let isSafe =
          switch scalar.properties.generalCategory {
          case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: false
          default: true
          }
        #expect(isSafe, "\(command): U+\(String(scalar.value, radix: 16))")
      }
    }
    // The JSON document has the complete names.
    let plan = try sandbox.plan("b.tar")
    let services = (plan["items"] as? [[String: Any]] ?? []).compactMap { $0["service"] as? String }
    #expect(services.contains { $0.contains("\u{1B}[31mred") } && services.contains { $0.contains("\u{202E}") })
    #expect(services.contains { $0.utf8.count > 1000 })
    #expect(try PlanSchema.problems(in: sandbox.succeed("plan b.tar --to new-phone --password-file .bp --json")) == [])
  }

  @Test("In the C locale the output is ASCII, and color appears only on request or on a terminal without NO_COLOR")
  func environment() throws {
    let sandbox = try sandbox(fixture: "old-phone")
    for command in Self.commands {
      let ascii = try sandbox.devices.run("LC_ALL=C keyhaul \(command)")
      #expect((ascii.output + ascii.errors).utf8.allSatisfy { $0 < 0x80 }, "\(command)")
      let colored = try sandbox.devices.run("keyhaul \(command) --color always")
      let uncolored = try sandbox.devices.run("keyhaul \(command)")
      #expect(!uncolored.output.contains("\u{1B}"))
      let withoutColors = colored.output.replacing(/\u{1B}\[[0-9;]*m/, with: "")
      #expect(withoutColors.count == uncolored.output.count, "the colored text differs: \(command)")
    }
    let arguments = ["plan", "b.tar", "--to", "new-phone", "--password-file", ".bp"]
    #expect(try sandbox.devices.runOnTerminal(arguments).terminal.contains("\u{1B}["))
    // The codes of colors begin with 3.
    let withNoColor = try sandbox.runOnTerminal(arguments, environment: ["NO_COLOR": "1"])
    #expect(!withNoColor.terminal.contains("\u{1B}[3") && withNoColor.terminal.contains("Will move (14)"))
    let onDumbTerminal = try sandbox.runOnTerminal(arguments, environment: ["TERM": "dumb"])
    #expect(!onDumbTerminal.terminal.contains("\u{1B}[3"))
  }

  @Test("The note about the names of encrypted items appears once if there are such items, and otherwise not at all")
  func encryptedNames() throws {
    let sandbox = try sandbox(fixture: "old-phone")
    let note = "An encrypted item's name is encrypted too; its number is its position in the backup."
    func noteCount(in line: String) throws -> Int { unwrapped(try sandbox.succeed(line)).ranges(of: note).count }
    #expect(try noteCount(in: "plan b.tar --to phone --password-file .bp") == 0)
    // While the source device is available, its key decrypts the names.
    #expect(try noteCount(in: "plan b.tar --to new-phone --password-file .bp") == 0)
    try sandbox.succeed("device delete phone --confirm phone")
    #expect(try noteCount(in: "plan p.tar --to new-phone") == 1)
    #expect(try noteCount(in: "plan b.tar --to new-phone --password-file .bp") == 1)
  }
}

extension PhoneSandbox {
  /// Runs the program with its output on a terminal.
  func runOnTerminal(_ arguments: [String], environment: [String: String]) throws -> BuiltProgram.Outcome {
    try devices.program.run(
      command: BuiltProgram.directory.appending(path: "keyhaul").path, arguments, environment: environment, typed: [],
      showsOutputOnTerminal: true)
  }
}
