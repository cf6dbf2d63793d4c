import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Prompts on a terminal")
struct PromptTests {
  /// Runs a function with a session on a terminal, on which lines are typed.
  ///
  /// - Returns: The function's result, and what the terminal showed.
  private func typing<Result>(
    _ lines: [String], _ body: (Session) throws -> Result
  ) throws -> (Result, String) {
    try PseudoTerminal.typing(lines) { terminal in
      let test = try TestSession(terminalPath: terminal.path)
      let result = try body(test.session)
      #expect(terminal.echoes)
      return result
    }
  }

  @Test("A prompt names the secret and its owner, and does not show what is typed")
  func secret() throws {
    let (bytes, shown) = try typing(["hunter2"]) { session in
      try session.password(try PasscodeFlags.parse([]), of: "old-phone").withBytes { Array($0) }
    }
    #expect(bytes == Array("hunter2".utf8))
    #expect(shown == "Passcode of old-phone: \n")
  }

  @Test("A new secret is asked for twice")
  func twice() throws {
    let (bytes, shown) = try typing(["new one", "new one"]) { session in
      try session.password(try PasswordFlags.parse([]), of: "family.backup", isNew: true).withBytes { Array($0) }
    }
    #expect(bytes == Array("new one".utf8))
    #expect(shown == "New password for family.backup: \nagain: \n")
  }

  @Test("Two different entries of a new secret are an error, and are not shown")
  func differ() throws {
    let (failure, shown) = try typing(["hunter2", "hunter3"]) { session in
      thrownError { _ = try session.password(try NewPasscodeFlags.parse([]), of: "old-phone") }
    }
    #expect(failure?.message == "the two passcodes differ")
    #expect(!shown.contains("hunter"))
  }

  @Test("An empty password is rejected")
  func empty() throws {
    let (failure, _) = try typing([""]) { session in
      thrownError { _ = try session.password(try PasswordFlags.parse([]), of: "x.backup") }
    }
    #expect(failure?.status == .wrongPassword)
  }

  @Test("An item's secret may be empty")
  func emptyItemSecret() throws {
    let (count, _) = try typing([""]) { session in
      try session.itemSecret(try ItemSecretFlags.parse([]), of: "item").count
    }
    #expect(count == 0)
  }

  @Test("An untrusted name in a prompt is escaped")
  func untrustedName() throws {
    let (_, shown) = try typing(["x"]) { session in
      try session.password(try PasswordFlags.parse([]), of: "\u{1B}[2J\u{202E}").count
    }
    #expect(shown == "Password of \\u{1B}[2J\\u{202E}: \n")
  }

  @Test(
    "A question continues only after a yes",
    arguments: [("y", true), ("YES", true), ("n", false), ("", false), ("yess", false)])
  func confirm(answer: String, shouldContinue: Bool) throws {
    let (failure, shown) = try typing([answer]) { session in
      thrownError { try session.confirm("Remove 2 items from new-phone and add 12?", action: "removing 2 items") }
    }
    #expect((failure == nil) == shouldContinue)
    #expect(shown == "Remove 2 items from new-phone and add 12? [y/N] \(answer)\n")
  }

  @Test("--yes skips a question, and --no-input makes it an error")
  func unasked() throws {
    try TestSession(["--yes"]).session.confirm("Remove 2 items?", action: "removing 2 items")
    let failure = thrownError {
      try TestSession(["--no-input"], terminalPath: "/dev/null").session.confirm("Remove?", action: "removing 2 items")
    }
    #expect(
      failure
        == .usage(
          "removing 2 items must be confirmed",
          why: "--no-input prevents Keyhaul from asking", try: "add --yes"))
    let unattended = thrownError { try TestSession().session.confirm("Remove?", action: "removing 2 items") }
    #expect(unattended?.why == "Keyhaul cannot ask, because there is no terminal")
    #expect(unattended?.status == .usage)
  }

  @Test("Deleting for good requires typing the name")
  func name() throws {
    let (_, shown) = try typing(["old-phone"]) { session in
      try session.confirm(name: "old-phone", confirmation: nil, action: "delete it for good")
    }
    #expect(shown == "Type old-phone to delete it for good: old-phone\n")
    let (failure, _) = try typing(["new-phone"]) { session in
      thrownError { try session.confirm(name: "old-phone", confirmation: nil, action: "delete it") }
    }
    #expect(failure?.status == .usage)
    let session = try TestSession().session
    try session.confirm(name: "old-phone", confirmation: "old-phone", action: "delete it")
    #expect(
      thrownError { try session.confirm(name: "old-phone", confirmation: "old", action: "delete it") }?.status == .usage
    )
    #expect(
      thrownError { try session.confirm(name: "old-phone", confirmation: nil, action: "delete it") }?.status == .usage)
  }
}
