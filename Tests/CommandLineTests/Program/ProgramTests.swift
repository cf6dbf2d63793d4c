import Foundation
import Testing

@testable import keyhaul

@Suite("The built program")
struct ProgramTests {
  func withProgram<Result>(_ body: (BuiltProgram) throws -> Result) throws -> Result {
    let sandbox = try DeviceSandbox()
    return try withExtendedLifetime(sandbox) { try body(sandbox.program) }
  }

  @Test("The version is printed even if HOME and KEYHAUL_HOME are empty")
  func version() throws {
    let cases: [(arguments: [String], lineCount: Int)] = [
      (["--version"], 1), (["-q", "--version"], 1), (["explain", "--version"], 1), (["version"], 2),
    ]
    for (arguments, lineCount) in cases {
      let outcome = try withProgram { try $0.run(arguments, environment: ["HOME": "", "KEYHAUL_HOME": ""]) }
      let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
      // The last line ends with a line break, so there is one more string, which is empty.
      #expect(outcome.status == 0 && outcome.errors.isEmpty && lines.count == lineCount + 1)
      #expect(lines[0].wholeMatch(of: /keyhaul [0-9]+\.[0-9]+\.[0-9]+( \([0-9a-f]+(-changed)?\))?/) != nil)
      #expect(lines[0].hasPrefix("keyhaul \(Keyhaul.version)"))
      guard lineCount > 1 else { continue }
      #expect(lines[1].wholeMatch(of: /SQLite 3[0-9.]+, OpenSSL [0-9.]+, libarchive [0-9.]+, utf8proc [0-9.]+/) != nil)
    }
  }

  #if os(Linux)
    @Test("The program starts without loading libarchive")
    func startsWithoutLibarchive() throws {
      // With LD_DEBUG, glibc's loader reports each library that it loads.
      for arguments in [["--version"], ["explain", "locked"], ["device", "list"]] {
        let loaded = try withProgram { try $0.run(arguments, environment: ["LD_DEBUG": "files"]) }.errors
        #expect(loaded.contains("libc.so") && !loaded.contains("libarchive"), "\(arguments)")
      }
    }
  #endif

  @Test("Text has color only on a terminal, and only if wanted")
  func color() throws {
    func shown(with arguments: [String] = [], environment: [String: String] = [:]) throws -> String {
      try withProgram {
        try $0.run(
          command: BuiltProgram.directory.appending(path: "keyhaul").path, ["explain", "locked"] + arguments,
          environment: environment, typed: [], showsOutputOnTerminal: true
        ).terminal
      }
    }
    #expect(try shown().contains("\u{1B}[1m"))
    #expect(try !shown(environment: ["NO_COLOR": "1"]).contains("\u{1B}"))
    #expect(try !shown(environment: ["TERM": "dumb"]).contains("\u{1B}"))
    #expect(try !shown(with: ["--color", "never"]).contains("\u{1B}"))
    #expect(try shown(with: ["--color=always"], environment: ["NO_COLOR": "1"]).contains("\u{1B}[1m"))
    let piped = try withProgram { try $0.run(["explain", "locked"]) }
    #expect(!piped.output.contains("\u{1B}"))
  }

  @Test("Text is wrapped at the width in COLUMNS")
  func width() throws {
    let narrow = try withProgram { try $0.run(["explain", "device-bound"], environment: ["COLUMNS": "40"]) }
    #expect(narrow.output.split(separator: "\n").allSatisfy { $0.count <= 40 })
    let wide = try withProgram { try $0.run(["explain", "device-bound"], environment: ["COLUMNS": "120"]) }
    #expect(wide.output.split(separator: "\n").count < narrow.output.split(separator: "\n").count)
  }

  @Test("Output is ASCII if the locale is not UTF-8")
  func locale() throws {
    let outcome = try withProgram { try $0.run(["explain", "device-bound"], environment: ["LC_ALL": "C"]) }
    #expect(outcome.output.utf8.allSatisfy { $0 < 0x80 })
    #expect(outcome.output.hasPrefix("device-bound - the item"))
  }

  @Test("A closed output ends the program silently, and a full disk is an error")
  func lostOutput() throws {
    try withProgram { program in
      // The loop waits until the reader has closed the pipe. The exit code 141 is 128 + SIGPIPE.
      let waitForClosedPipe = "trap '' PIPE; while echo 2> /dev/null; do sleep 0.01; done; trap - PIPE"
      let closed = try program.shell("{ \(waitForClosedPipe); keyhaul completions bash; echo $? >&2; } | :")
      #expect(closed.errors == "141\n")
      guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
      let full = try program.shell("keyhaul explain > /dev/full")
      #expect(full.status == 1)
      #expect(
        full.errors.hasPrefix("error: could not write the result\n  why: standard output: no space left on device"))
    }
  }

  @Test("Every shell can read its completion script", arguments: ["bash", "zsh", "fish"])
  func completions(shell: String) throws {
    let outcome = try withProgram { program in
      let check = "command -v \(shell) > /dev/null || exit 0; keyhaul completions \(shell) | \(shell) -n"
      #expect(try program.shell(check) == .init(output: "", errors: "", status: 0))
      return try program.run(["completions", shell])
    }
    #expect(outcome.status == 0)
    #expect(outcome.output.contains("explain") && outcome.output.contains("no-input"))
  }

  @Test("With --json, an error is one line, even for a wrong command line")
  func jsonErrors() throws {
    for arguments in [
      ["--json", "nonsense"], ["explain", "--format", "json", "--nonsense"], ["--format=json", "explain", "x"],
    ] {
      let outcome = try withProgram { try $0.run(arguments) }
      #expect(outcome.status == 64)
      #expect(outcome.output == "")
      let line = try #require(JSONSerialization.jsonObject(with: Data(outcome.errors.utf8)) as? [String: Any])
      #expect(line["message_type"] as? String == "exit_error")
      #expect(line["code"] as? Int == 64)
      #expect(line["id"] as? String == "usage")
    }
  }

  @Test("The last --format and the last --color apply to the error for a wrong command line")
  func lastFlags() throws {
    func errors(_ flags: [String]) throws -> String {
      try withProgram { try $0.run(["explain"] + flags + ["--nonsense"]) }.errors
    }
    for text in [["--format", "text"], ["--format=text"]] {
      for json in [["--format", "json"], ["--format=json"]] {
        #expect(try errors(json + text).hasPrefix("error: "), "\(json + text)")
        #expect(try errors(text + json).hasPrefix("{"), "\(text + json)")
      }
    }
    #expect(try errors(["--color", "always"]).contains("\u{1B}"))
    #expect(try !errors(["--color=always", "--color", "never"]).contains("\u{1B}"))
  }

  @Test("The names of existing devices are completed")
  func deviceNames() throws {
    try withProgram { program in
      for name in ["old-phone", "new-phone"] { #expect(try program.run(["device", "create", name]).status == 0) }
      let script = try program.run(["completions", "bash"]).output
      let request = try #require(script.firstMatch(of: /---completion device unlock -- [^\s")]+/))
      let requestArguments = String(request.0).split(separator: " ").map(String.init)
      // The first number is the index of the completed word, and the second the cursor's position in the word.
      let outcome = try program.run(requestArguments + ["0", "0", "keyhaul", "device", "unlock", ""])
      #expect(outcome.status == 0)
      #expect(outcome.output.split(separator: "\n") == ["new-phone", "old-phone"])
    }
  }

  @Test("The program reads its environment like Foundation")
  func environment() {
    #expect(ProgramEnvironment.all == ProcessInfo.processInfo.environment)
    #expect(!ProgramEnvironment.all.isEmpty)
  }

  @Test("The parser's flags for completion scripts and manual pages work")
  func parserFlags() throws {
    let script = try withProgram { try $0.run(["--generate-completion-script", "fish"]) }
    #expect(script.status == 0 && script.output.contains("keyhaul"))
    // The flag works after any command.
    let afterCommand = try withProgram { try $0.run(["device", "list", "--generate-completion-script=fish"]) }
    #expect(afterCommand == script)
    let description = try withProgram { try $0.run(["--experimental-dump-help"]) }
    let help = try JSONSerialization.jsonObject(with: Data(description.output.utf8)) as? [String: Any]
    #expect(help?["command"] != nil)
  }
}
