import ArgumentParser
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Where a password comes from")
struct SecretSourceTests {
  let both = ["KEYHAUL_PASSWORD_FILE": "env-file", "KEYHAUL_PASSWORD_COMMAND": "env-command"]

  func choose(_ flags: [String], _ environment: [String: String] = [:]) throws -> SecretSource {
    try PasswordFlags.parse(flags).source(environment: environment)
  }

  @Test("a flag beats the environment, the file beats the command, a prompt comes last")
  func order() throws {
    #expect(try choose(["--password-fd", "3"], both) == .descriptor(3))
    #expect(try choose(["--password-file", "x"], both) == .file("x"))
    #expect(try choose(["--password-command", "pass"], both) == .command("pass"))
    #expect(try choose([], both) == .file("env-file"))
    #expect(try choose([], ["KEYHAUL_PASSWORD_COMMAND": "env-command"]) == .command("env-command"))
    #expect(try choose([], ["KEYHAUL_PASSWORD": "hunter2", "KEYHAUL_PASSWORD_FILE": ""]) == .prompt)
  }

  @Test("a hyphen and descriptor 0 are standard input")
  func standardInput() throws {
    #expect(try choose(["--password-file", "-"]) == .standardInput)
    #expect(try choose(["--password-fd", "0"]) == .standardInput)
    #expect(try choose([], ["KEYHAUL_PASSWORD_FILE": "-"]) == .standardInput)
  }

  @Test(
    "two flags of a family cannot be meant",
    arguments: [
      ["--password-fd", "3", "--password-file", "x"], ["--password-file", "x", "--password-command", "y"],
      ["--password-fd", "3", "--password-command", "y"],
    ])
  func conflict(flags: [String]) {
    let failure = ending { _ = try choose(flags) }
    #expect(failure?.status == .usage)
    #expect(failure?.message == "\(flags[0]) and \(flags[2]) cannot be used together")
  }

  @Test(
    "the program's own output is no source, and neither is nothing",
    arguments: [
      ["--password-fd", "1"], ["--password-fd", "2"], ["--password-fd=-1"], ["--password-file", ""],
      ["--password-command", ""],
    ])
  func unreadable(flags: [String]) {
    #expect(ending { _ = try choose(flags) }?.status == .usage)
  }

  @Test("the environment is for the password of a backup alone")
  func otherFamilies() throws {
    #expect(try NewPasswordFlags.parse([]).source(environment: both) == .prompt)
    #expect(try PasscodeFlags.parse([]).source(environment: both) == .prompt)
    #expect(try NewPasscodeFlags.parse([]).source(environment: both) == .prompt)
    #expect(try ItemSecretFlags.parse([]).source(environment: both) == .prompt)
  }

  @Test("each family has its own flags", arguments: SecretFamily.allCases)
  func flags(family: SecretFamily) throws {
    let flags = ["--\(family.rawValue)-file", "x"]
    let source: SecretSource =
      switch family {
      case .password: try PasswordFlags.parse(flags).source(environment: [:])
      case .otherPassword: try OtherPasswordFlags.parse(flags).source(environment: [:])
      case .newPassword: try NewPasswordFlags.parse(flags).source(environment: [:])
      case .passcode: try PasscodeFlags.parse(flags).source(environment: [:])
      case .newPasscode: try NewPasscodeFlags.parse(flags).source(environment: [:])
      case .secret: try ItemSecretFlags.parse(flags).source(environment: [:])
      case .newSecret: try NewItemSecretFlags.parse(flags).source(environment: [:])
      case .classKeys: try DatabaseKeyOptions.parse(flags).classKeysFile.map(SecretSource.file) ?? .prompt
      case .deviceKey: try #require(try OpeningOptions.parse(flags).deviceKeySource())
      }
    #expect(source == .file("x"))
  }
}
