import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Reading a secret")
struct SecretReadingTests {
  func password(_ world: TestSession, _ flags: [String], isNew: Bool = false) throws -> [UInt8] {
    let secret = try world.session.password(try PasswordFlags.parse(flags), of: "x.backup", isNew: isNew)
    return secret.withBytes { Array($0) }
  }

  @Test(
    "takes one newline off a password's end, and nothing else",
    arguments: [
      ("hunter2", "hunter2"), ("hunter2\n", "hunter2"), ("hunter2\r\n", "hunter2"), ("hunter2\n\n", "hunter2\n"),
      (" hunter2 \t", " hunter2 \t"), ("hunter2\r", "hunter2\r"), ("\nhunter2", "\nhunter2"), ("a\nb\n", "a\nb"),
    ])
  func newline(content: String, expected: String) throws {
    let world = try TestSession()
    let path = try world.file("password", Array(content.utf8))
    #expect(try password(world, ["--password-file", path]) == Array(expected.utf8))
    #expect(try world.told == "")
  }

  @Test("keeps bytes that are not UTF-8")
  func bytes() throws {
    let world = try TestSession()
    let path = try world.file("password", [0xFF, 0xFE, 0x41])
    #expect(try password(world, ["--password-file", path]) == [0xFF, 0xFE, 0x41])
  }

  @Test("A byte order mark stays before a backup's password, and not before one that is being set")
  func byteOrderMark() throws {
    let world = try TestSession()
    let path = try world.file("password", Array("\u{FEFF}test\r\n".utf8))
    #expect(try password(world, ["--password-file", path]) == Array("\u{FEFF}test".utf8))
    #expect(try world.told == "")
    #expect(try password(world, ["--password-file", path], isNew: true) == Array("test".utf8))
    #expect(try world.told == "x.backup: the byte order mark before the password was ignored.\n")
  }

  @Test("refuses an empty password", arguments: ["", "\n", "\r\n"])
  func empty(content: String) throws {
    let world = try TestSession()
    let path = try world.file("password", Array(content.utf8))
    let failure = ending { _ = try password(world, ["--password-file", path]) }
    #expect(failure?.status == .wrongPassword)
    #expect(failure?.message == "the password of x.backup is empty")
  }

  @Test(
    "takes a device key of exactly its bytes, or none at all",
    arguments: [(16, true), (15, false), (17, false), (0, false)])
  func deviceKey(count: Int, isKey: Bool) throws {
    func isThere(_ key: DeviceKey?) -> Bool { if case .some = key { true } else { false } }
    let world = try TestSession()
    let path = try world.file("key", [UInt8](repeating: 0x0A, count: count))
    let options = try OpeningOptions.parse(["--device-key-file", path])
    var wasThere = false
    let failure = ending { wasThere = isThere(try options.deviceKey(of: "x.backup", in: world.session)) }
    #expect(wasThere == isKey)
    #expect(failure?.status == (isKey ? nil : .usage))
    let none = isThere(try OpeningOptions.parse([]).deviceKey(of: "x.backup", in: world.session))
    #expect(!none)
  }

  @Test("refuses a password with a zero byte, as a file in UTF-16 has")
  func zeroByte() throws {
    let world = try TestSession()
    let path = try world.file("password", [0x41, 0, 0x42, 0])
    #expect(ending { _ = try password(world, ["--password-file", path]) }?.status == .wrongPassword)
  }

  @Test(
    "takes the secret of an item as it is, empty and with any byte", arguments: [[], [0x0A], [0x41, 0, 0x0D, 0x0A]])
  func itemSecret(content: [UInt8]) throws {
    let world = try TestSession()
    let path = try world.file("secret", content)
    let secret = try world.session.itemSecret(try ItemSecretFlags.parse(["--secret-file", path]), of: "item")
    #expect(secret.withBytes { Array($0) } == content)
  }

  @Test(
    "warns of a file that others can read", arguments: [(0o600, false), (0o640, true), (0o604, true), (0o700, false)])
  func warning(mode: Int, isWarned: Bool) throws {
    let world = try TestSession()
    let path = try world.file("password", Array("hunter2".utf8), mode: mode)
    _ = try password(world, ["--password-file", path])
    let told = try world.told
    #expect(told.isEmpty != isWarned)
    #expect(!told.contains("hunter2"))
  }

  @Test("names the file that cannot be read, and why")
  func missingFile() throws {
    let world = try TestSession()
    let failure = ending { _ = try password(world, ["--password-file", "/nonexistent/pw"]) }
    #expect(failure?.status == .notFound && failure?.advice == "check the path")
    #expect(failure?.message == "cannot read the password of x.backup")
    #expect(failure?.why == "/nonexistent/pw: no such file or directory")
    let directory = world.directory.path
    let unreadable = unreadableFailure(world, directory)
    #expect(unreadable?.why == "\(directory): is a directory")
  }

  private func unreadableFailure(_ world: TestSession, _ path: String) -> CommandFailure? {
    ending { _ = try password(world, ["--password-file", path]) }
  }

  @Test("reads an open descriptor to its end, and says so where it is not open")
  func descriptor() throws {
    let world = try TestSession()
    let pipe = Pipe()
    try pipe.fileHandleForWriting.write(contentsOf: Data("from a pipe\n".utf8))
    try pipe.fileHandleForWriting.close()
    let number = pipe.fileHandleForReading.fileDescriptor
    #expect(try password(world, ["--password-fd", "\(number)"]) == Array("from a pipe".utf8))
    let failure = ending { _ = try password(world, ["--password-fd", "9999"]) }
    #expect(failure?.why == "file descriptor 9999: bad file descriptor")
  }

  @Test("takes what a command prints")
  func command() throws {
    let world = try TestSession()
    #expect(try password(world, ["--password-command", "printf 'a%s\\n' b"]) == Array("ab".utf8))
  }

  @Test(
    "fails where the command does, whatever it printed",
    arguments: [
      ("printf x; exit 3", "it exited with code 3"),
      ("printf x; kill -9 $$", "it was ended by signal 9"),
      ("no-such-command-here 2>/dev/null", "it exited with code 127"),
    ])
  func failingCommand(command: String, why: String) throws {
    let world = try TestSession()
    let failure = ending { _ = try password(world, ["--password-command", command]) }
    #expect(failure?.status == .failed)
    #expect(failure?.why == why)
  }

  @Test("stops at a limit, with a file and with a command that never ends")
  func limit() throws {
    let world = try TestSession()
    let longest = [UInt8](repeating: 0x41, count: SecretLimits.maximumByteCount)
    let fits = try world.file("fits", longest)
    let tooLong = try world.file("too-long", longest + [0x41])
    #expect(try password(world, ["--password-file", fits]) == longest)
    #expect(ending { _ = try password(world, ["--password-file", tooLong]) }?.status == .refused)
    #expect(ending { _ = try password(world, ["--password-command", "yes"]) }?.status == .refused)
  }

  @Test("reads standard input for one thing only")
  func standardInputOnce() throws {
    let world = try TestSession()
    try world.session.claimStandardInput(for: "the backup")
    let failure = ending { _ = try password(world, ["--password-file", "-"]) }
    #expect(failure?.status == .usage)
    #expect(failure?.message == "standard input cannot be both the backup and the password")
  }

  @Test("says what to do where there is no terminal, or none may be used")
  func noControllingTerminal() throws {
    let missing = ending { _ = try password(try TestSession(), []) }
    #expect(
      missing
        == CommandFailure(
          .needsPassword, "x.backup needs a password", why: "Keyhaul cannot ask, because there is no terminal",
          try: "--password-file, --password-fd or --password-command"))
    let forbidden = ending { _ = try password(try TestSession(["--no-input"], terminalPath: "/dev/null"), []) }
    #expect(forbidden?.status == .needsPassword)
    #expect(forbidden?.why == "--no-input prevents Keyhaul from asking")
  }
}
