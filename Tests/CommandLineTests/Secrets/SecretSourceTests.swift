import ArgumentParser
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Sources of secrets")
struct SecretSourceTests {
  let bothVariables = ["KEYHAUL_PASSWORD_FILE": "env-file", "KEYHAUL_PASSWORD_COMMAND": "env-command"]

  /// Returns the source of a backup's password.
  func source(_ flags: [String], _ environment: [String: String] = [:]) throws -> SecretSource {
    try PasswordFlags.parse(flags).source(environment: environment)
  }

  @Test("Flags override the environment, files override commands, and a prompt is last")
  func order() throws {
    #expect(try source(["--password-fd", "3"], bothVariables) == .descriptor(3))
    #expect(try source(["--password-file", "x"], bothVariables) == .file("x"))
    #expect(try source(["--password-command", "pass"], bothVariables) == .command("pass"))
    #expect(try source([], bothVariables) == .file("env-file"))
    #expect(try source([], ["KEYHAUL_PASSWORD_COMMAND": "env-command"]) == .command("env-command"))
    #expect(try source([], ["KEYHAUL_PASSWORD": "hunter2", "KEYHAUL_PASSWORD_FILE": ""]) == .prompt)
  }

  @Test("A hyphen and descriptor 0 mean standard input")
  func standardInput() throws {
    #expect(try source(["--password-file", "-"]) == .standardInput)
    #expect(try source(["--password-fd", "0"]) == .standardInput)
    #expect(try source([], ["KEYHAUL_PASSWORD_FILE": "-"]) == .standardInput)
  }

  @Test(
    "Two flags for the same secret are rejected",
    arguments: [
      ["--password-fd", "3", "--password-file", "x"], ["--password-file", "x", "--password-command", "y"],
      ["--password-fd", "3", "--password-command", "y"],
    ])
  func conflict(flags: [String]) {
    let failure = thrownError { _ = try source(flags) }
    #expect(failure?.status == .usage)
    #expect(failure?.message == "\(flags[0]) and \(flags[2]) cannot be used together")
  }

  @Test(
    "The program's output descriptors and empty values are rejected as sources",
    arguments: [
      ["--password-fd", "1"], ["--password-fd", "2"], ["--password-fd=-1"], ["--password-file", ""],
      ["--password-command", ""],
    ])
  func invalidSources(flags: [String]) {
    #expect(thrownError { _ = try source(flags) }?.status == .usage)
  }

  @Test("The environment applies only to the password of a backup")
  func environmentOnlyForBackups() throws {
    #expect(try NewPasswordFlags.parse([]).source(environment: bothVariables) == .prompt)
    #expect(try PasscodeFlags.parse([]).source(environment: bothVariables) == .prompt)
    #expect(try NewPasscodeFlags.parse([]).source(environment: bothVariables) == .prompt)
    #expect(try ItemSecretFlags.parse([]).source(environment: bothVariables) == .prompt)
  }

  @Test("Each kind of secret has its own flags", arguments: SecretKind.allCases)
  func flags(kind: SecretKind) throws {
    let flags = ["--\(kind.rawValue)-file", "x"]
    let source: SecretSource =
      switch kind {
      case .password: try PasswordFlags.parse(flags).source(environment: [:])
      case .otherPassword: try OtherPasswordFlags.parse(flags).source(environment: [:])
      case .newPassword: try NewPasswordFlags.parse(flags).source(environment: [:])
      case .passcode: try PasscodeFlags.parse(flags).source(environment: [:])
      case .newPasscode: try NewPasscodeFlags.parse(flags).source(environment: [:])
      case .secret: try ItemSecretFlags.parse(flags).source(environment: [:])
      case .newSecret: try NewItemSecretFlags.parse(flags).source(environment: [:])
      case .classKeys: try DatabaseKeyOptions.parse(flags).classKeysFile.map(SecretSource.file) ?? .prompt
      case .deviceKey: try #require(try DecryptionOptions.parse(flags).deviceKeySource())
      }
    #expect(source == .file("x"))
  }
}
