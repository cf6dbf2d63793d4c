import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Being asked on a terminal")
struct PromptTests {
  func typing<Result>(
    _ lines: [String], _ flags: [String] = [], _ body: (Session) throws -> Result
  ) throws -> (Result, String) {
    try PseudoTerminal.typing(lines) { terminal in
      let world = try TestSession(flags, terminalPath: terminal.path)
      let result = try body(world.session)
      #expect(terminal.echoes)
      return result
    }
  }

  @Test("says which secret is meant and whose, and shows nothing of it")
  func secret() throws {
    let (bytes, shown) = try typing(["hunter2"]) { session in
      try session.password(try PasscodeFlags.parse([]), of: "old-phone").withBytes { Array($0) }
    }
    #expect(bytes == Array("hunter2".utf8))
    #expect(shown == "Passcode of old-phone: \n")
  }

  @Test("asks twice for a secret that is being set")
  func twice() throws {
    let (bytes, shown) = try typing(["new one", "new one"]) { session in
      try session.password(try PasswordFlags.parse([]), of: "family.backup", isNew: true).withBytes { Array($0) }
    }
    #expect(bytes == Array("new one".utf8))
    #expect(shown == "New password for family.backup: \nagain: \n")
  }

  @Test("sets nothing where the two differ, and has the terminal as it was")
  func differ() throws {
    let (failure, shown) = try typing(["hunter2", "hunter3"]) { session in
      ending { _ = try session.password(try NewPasscodeFlags.parse([]), of: "old-phone") }
    }
    #expect(failure?.message == "the two passcodes differ")
    #expect(!shown.contains("hunter"))
  }

  @Test("refuses an empty answer")
  func empty() throws {
    let (failure, _) = try typing([""]) { session in
      ending { _ = try session.password(try PasswordFlags.parse([]), of: "x.backup") }
    }
    #expect(failure?.status == .wrongPassword)
  }

  @Test("accepts an item's secret that is empty")
  func emptyItemSecret() throws {
    let (count, _) = try typing([""]) { session in
      try session.itemSecret(try ItemSecretFlags.parse([]), of: "item").count
    }
    #expect(count == 0)
  }

  @Test("shows a hostile name escaped")
  func hostileName() throws {
    let (_, shown) = try typing(["x"]) { session in
      try session.password(try PasswordFlags.parse([]), of: "\u{1B}[2J\u{202E}").count
    }
    #expect(shown == "Password of \\u{1B}[2J\\u{202E}: \n")
  }

  @Test(
    "goes on after a yes only", arguments: [("y", true), ("YES", true), ("n", false), ("", false), ("yess", false)])
  func confirm(answer: String, shouldContinue: Bool) throws {
    let (failure, shown) = try typing([answer]) { session in
      ending { try session.confirm("Remove 2 items from new-phone and add 12?", refusal: "removing 2 items") }
    }
    #expect((failure == nil) == shouldContinue)
    #expect(shown == "Remove 2 items from new-phone and add 12? [y/N] \(answer)\n")
  }

  @Test("is not needed with --yes, and not possible with --no-input")
  func unasked() throws {
    try TestSession(["--yes"]).session.confirm("Remove 2 items?", refusal: "removing 2 items")
    let failure = ending {
      try TestSession(["--no-input"], terminalPath: "/dev/null").session.confirm("Remove?", refusal: "removing 2 items")
    }
    #expect(
      failure
        == .usage(
          "removing 2 items must be confirmed",
          why: "--no-input prevents Keyhaul from asking", try: "add --yes"))
    let unattended = ending { try TestSession().session.confirm("Remove?", refusal: "removing 2 items") }
    #expect(unattended?.why == "Keyhaul cannot ask, because there is no terminal")
    #expect(unattended?.status == .usage)
  }

  @Test("wants the name of what is deleted for good")
  func name() throws {
    let (_, shown) = try typing(["old-phone"]) { session in
      try session.confirm(name: "old-phone", given: nil, action: "delete it for good")
    }
    #expect(shown == "Type old-phone to delete it for good: old-phone\n")
    let (wrong, _) = try typing(["new-phone"]) { session in
      ending { try session.confirm(name: "old-phone", given: nil, action: "delete it") }
    }
    #expect(wrong?.status == .usage)
    let session = try TestSession().session
    try session.confirm(name: "old-phone", given: "old-phone", action: "delete it")
    #expect(ending { try session.confirm(name: "old-phone", given: "old", action: "delete it") }?.status == .usage)
    #expect(ending { try session.confirm(name: "old-phone", given: nil, action: "delete it") }?.status == .usage)
  }
}
