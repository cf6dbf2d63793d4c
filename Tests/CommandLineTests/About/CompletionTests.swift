import Foundation
import Testing

@testable import keyhaul

@Suite("Shell completion")
struct CompletionTests {
  /// Returns a sandbox with two devices, a backup, and files whose names a shell would interpret.
  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run(
      "mkdir Backup 'a folder'; touch family.tar new.txt .hidden '$(touch run)' 'a;b' Backup/one Backup/two")
    try sandbox.write(Array(Self.script.get().utf8), to: "devices/.script")
    return sandbox
  }

  private static let script = Result { try DeviceSandbox().run("keyhaul completions bash").output }

  /// Returns the program's suggestions for the last word of a line, as a completion script requests them:
  /// `keyhaul ---completion COMMAND -- ARGUMENT WORD-INDEX CURSOR-OFFSET keyhaul WORD…`.
  private func suggestions(
    for words: [String], argument: String, in sandbox: PhoneSandbox
  ) throws -> [String] {
    let command = try #require(words.first)
    let lastWord = try #require(words.last)
    let request = "---completion \(command) -- \(argument)"
    #expect(try Self.script.get().contains(request), "\(words): \(argument)")
    let outcome = try sandbox.devices.program.run(
      request.split(separator: " ").map(String.init) + ["\(words.count)", "\(lastWord.count)", "keyhaul"] + words)
    #expect(outcome.status == 0, "\(words): \(outcome)")
    return outcome.output.split(separator: "\n").map(String.init)
  }

  @Test(
    "Completion of --format offers the formats that the command's result has",
    arguments: [("bash", "_add_completions -W '"), ("zsh", "___format=("), ("fish", "-l 'format'")])
  func formats(shell: String, marker: String) throws {
    let script = try DeviceSandbox().run("keyhaul completions \(shell)").output
    // The script has one list of formats for each command.
    let lists = script.split(separator: "\n").filter { $0.contains(marker) && $0.contains("json") }
    func count(_ format: String) -> Int { lists.count { $0.contains(format) } }
    // junit: plan. genp-plist and otpauth: export. html: inspect, diff and plan. csv: inspect, verify, export, plan and
    // item find.
    #expect(lists.count > 30 && count("junit") == 1 && count("genp-plist") == 1, "\(lists.count)")
    #expect(count("html") == 3 && count("otpauth") == 1 && count("csv") == 5)
  }

  @Test("Completion of a target device offers the existing devices", arguments: ["plan", "why", "restore"])
  func targets(command: String) throws {
    let sandbox = try sandbox()
    #expect(
      try suggestions(for: [command, "b.tar", "--to", ""], argument: "--to", in: sandbox) == ["new-phone", "old-phone"])
  }

  @Test("Completion of a source offers devices and files", arguments: ["plan", "why", "diff", "export"])
  func sources(command: String) throws {
    let sandbox = try sandbox()
    func suggestions(for source: String) throws -> [String] {
      try self.suggestions(for: [command, source], argument: "positional@0", in: sandbox)
    }
    // Names that a shell would interpret are left out.
    #expect(
      try suggestions(for: "") == ["new-phone", "old-phone", "Backup/", "devices/", "family.tar", "new.txt"])
    #expect(try suggestions(for: "Backup/") == ["new-phone", "old-phone", "Backup/one", "Backup/two"])
    #expect(try suggestions(for: ".").suffix(2) == [".bp", ".hidden"])
  }

  @Test(
    "Bash shows the suggestions that match the typed text, and does not run them",
    arguments: ["diff", "plan", "export", "why"])
  func bash(command: String) throws {
    let sandbox = try sandbox()
    func completed(_ word: String) throws -> [String] {
      let outcome = try sandbox.devices.run(
        """
        exec bash -c 'source devices/.script
        COMP_WORDS=(keyhaul \(command) "\(word)"); COMP_CWORD=2; COMP_LINE="keyhaul \(command) \(word)"
        COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMP_KEY=9
        _keyhaul keyhaul "\(word)" \(command); printf "%s\\n" "${COMPREPLY[@]}"'
        """)
      #expect(outcome.status == 0 && outcome.errors == "", "\(outcome)")
      return outcome.output.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("-") }
    }
    #expect(try completed("ne") == ["new-phone", "new.txt"])
    #expect(try completed("fam") == ["family.tar"])
    #expect(try completed("Backup/t") == ["Backup/two"])
    #expect(try completed("$") == [])
    #expect(try completed("a") == [])
    // The file name `$(touch run)`, run as a command, would create this file.
    #expect(try !sandbox.names().contains("run"))
  }

  @Test("Bash suggests devices for every command with a device argument, and shows no error if there are none")
  func devices() throws {
    let sandbox = try sandbox()
    let commands = [
      "device show", "device lock", "device unlock", "device restart", "device erase", "device delete",
      "device passcode set", "device passcode change", "device passcode remove", "item add", "item find",
      "item update", "item delete", "backup", "export", "plan", "why", "diff", "plan b.tar --to", "why b.tar --to",
      "restore b.tar --to",
    ]
    // Completes the word "new-" after each command, and prints one line of suggestions for each.
    let calls = commands.map { command in
      let words = command.split(separator: " ")
      return """
        COMP_WORDS=(keyhaul \(command) new-); COMP_CWORD=\(words.count + 1); COMP_LINE="keyhaul \(command) new-"
        COMP_POINT=${#COMP_LINE}; COMPREPLY=(); _keyhaul keyhaul new- \(words.last ?? "")
        printf "%s\\n" "${COMPREPLY[*]}"
        """
    }
    let script = "source devices/.script; COMP_TYPE=9; COMP_KEY=9\n" + calls.joined(separator: "\n")
    for (home, suggestion) in [("devices", "new-phone"), ("nowhere", ""), ("family.tar", "")] {
      let outcome = try sandbox.devices.run("KEYHAUL_HOME=\(home) exec bash -c '\(script)'")
      #expect(outcome.status == 0 && outcome.errors == "", "\(outcome)")
      let expectedLines = String(repeating: suggestion + "\n", count: commands.count)
      #expect(outcome.output == expectedLines, "\(home): \(outcome.output)")
    }
  }

  @Test("Every installed shell accepts its completion script", arguments: ["bash", "zsh", "fish"])
  func syntax(shell: String) throws {
    let sandbox = try PhoneSandbox()
    guard try sandbox.devices.run("command -v \(shell)").status == 0 else {
      Issue.record("\(shell) is not installed here: its script was not checked", severity: .warning)
      return
    }
    let outcome = try sandbox.devices.run("keyhaul completions \(shell) > script && \(shell) -n script")
    #expect(outcome.status == 0 && outcome.errors == "", "\(outcome)")
  }

  @Test("Zsh and fish ask the program for the same suggestions")
  func otherShells() throws {
    let sandbox = try sandbox()
    for shell in ["zsh", "fish"] {
      let script = try sandbox.devices.program.run(["completions", shell]).output
      for (command, argument) in [
        ("plan", "--to"), ("restore", "--to"), ("why", "--to"), ("plan", "positional@0"), ("why", "positional@0"),
        ("diff", "positional@0"), ("diff", "positional@1"), ("export", "positional@0"), ("backup", "positional@0"),
      ] {
        #expect(script.contains("---completion \(command) -- \(argument)"), "\(shell): \(command) \(argument)")
      }
    }
  }
}
