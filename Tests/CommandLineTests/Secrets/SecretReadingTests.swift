import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Reading secrets")
struct SecretReadingTests {
  /// Returns the password of the backup `x.backup` that these flags provide.
  func password(_ test: TestSession, _ flags: [String], isNew: Bool = false) throws -> [UInt8] {
    let secret = try test.session.password(try PasswordFlags.parse(flags), of: "x.backup", isNew: isNew)
    return secret.withBytes { Array($0) }
  }

  @Test(
    "One trailing newline of a password is removed, and nothing else",
    arguments: [
      ("hunter2", "hunter2"), ("hunter2\n", "hunter2"), ("hunter2\r\n", "hunter2"), ("hunter2\n\n", "hunter2\n"),
      (" hunter2 \t", " hunter2 \t"), ("hunter2\r", "hunter2\r"), ("\nhunter2", "\nhunter2"), ("a\nb\n", "a\nb"),
    ])
  func newline(content: String, expected: String) throws {
    let test = try TestSession()
    let path = try test.file("password", Array(content.utf8))
    #expect(try password(test, ["--password-file", path]) == Array(expected.utf8))
    #expect(try test.messages == "")
  }

  @Test("Bytes that are not UTF-8 are kept")
  func bytes() throws {
    let test = try TestSession()
    let path = try test.file("password", [0xFF, 0xFE, 0x41])
    #expect(try password(test, ["--password-file", path]) == [0xFF, 0xFE, 0x41])
  }

  @Test("A byte order mark is kept before an existing backup password, and removed from a new one")
  func byteOrderMark() throws {
    let test = try TestSession()
    let path = try test.file("password", Array("\u{FEFF}test\r\n".utf8))
    #expect(try password(test, ["--password-file", path]) == Array("\u{FEFF}test".utf8))
    #expect(try test.messages == "")
    #expect(try password(test, ["--password-file", path], isNew: true) == Array("test".utf8))
    #expect(try test.messages == "x.backup: the byte order mark before the password was ignored.\n")
  }

  @Test("An empty password is rejected", arguments: ["", "\n", "\r\n"])
  func empty(content: String) throws {
    let test = try TestSession()
    let path = try test.file("password", Array(content.utf8))
    let failure = thrownError { _ = try password(test, ["--password-file", path]) }
    #expect(failure?.status == .wrongPassword)
    #expect(failure?.message == "the password of x.backup is empty")
  }

  @Test(
    "A device key must have exactly 16 bytes",
    arguments: [(16, true), (15, false), (17, false), (0, false)])
  func deviceKey(count: Int, isKey: Bool) throws {
    func isPresent(_ key: DeviceKey?) -> Bool { if case .some = key { true } else { false } }
    let test = try TestSession()
    let path = try test.file("key", [UInt8](repeating: 0x0A, count: count))
    let options = try DecryptionOptions.parse(["--device-key-file", path])
    var hasKey = false
    let failure = thrownError { hasKey = isPresent(try options.deviceKey(of: "x.backup", in: test.session)) }
    #expect(hasKey == isKey)
    #expect(failure?.status == (isKey ? nil : .usage))
    let hasDefaultKey = isPresent(try DecryptionOptions.parse([]).deviceKey(of: "x.backup", in: test.session))
    #expect(!hasDefaultKey)
  }

  @Test("A password with a zero byte, as in UTF-16, is rejected")
  func zeroByte() throws {
    let test = try TestSession()
    let path = try test.file("password", [0x41, 0, 0x42, 0])
    #expect(thrownError { _ = try password(test, ["--password-file", path]) }?.status == .wrongPassword)
  }

  @Test(
    "An item's secret is read unchanged, even if empty or with any bytes",
    arguments: [[], [0x0A], [0x41, 0, 0x0D, 0x0A]])
  func itemSecret(content: [UInt8]) throws {
    let test = try TestSession()
    let path = try test.file("secret", content)
    let secret = try test.session.itemSecret(try ItemSecretFlags.parse(["--secret-file", path]), of: "item")
    #expect(secret.withBytes { Array($0) } == content)
  }

  @Test(
    "A file that others can read causes a warning",
    arguments: [(0o600, false), (0o640, true), (0o604, true), (0o700, false)])
  func warning(mode: Int, isWarned: Bool) throws {
    let test = try TestSession()
    let path = try test.file("password", Array("hunter2".utf8), mode: mode)
    _ = try password(test, ["--password-file", path])
    let messages = try test.messages
    #expect(messages.isEmpty != isWarned)
    #expect(!messages.contains("hunter2"))
  }

  @Test("The error for an unreadable file names the file and the reason")
  func missingFile() throws {
    let test = try TestSession()
    let failure = thrownError { _ = try password(test, ["--password-file", "/nonexistent/pw"]) }
    #expect(failure?.status == .notFound && failure?.advice == "check the path")
    #expect(failure?.message == "cannot read the password of x.backup")
    #expect(failure?.why == "/nonexistent/pw: no such file or directory")
    let directory = test.directory.path
    let directoryFailure = thrownError { _ = try password(test, ["--password-file", directory]) }
    #expect(directoryFailure?.why == "\(directory): is a directory")
  }

  @Test("An open descriptor is read to its end, and a closed one is an error")
  func descriptor() throws {
    let test = try TestSession()
    let pipe = Pipe()
    try pipe.fileHandleForWriting.write(contentsOf: Data("from a pipe\n".utf8))
    try pipe.fileHandleForWriting.close()
    let descriptor = pipe.fileHandleForReading.fileDescriptor
    #expect(try password(test, ["--password-fd", "\(descriptor)"]) == Array("from a pipe".utf8))
    let failure = thrownError { _ = try password(test, ["--password-fd", "9999"]) }
    #expect(failure?.why == "file descriptor 9999: bad file descriptor")
  }

  @Test("The output of a command is the secret")
  func command() throws {
    let test = try TestSession()
    #expect(try password(test, ["--password-command", "printf 'a%s\\n' b"]) == Array("ab".utf8))
  }

  @Test(
    "A failing command is an error, even if it printed a secret",
    arguments: [
      ("printf x; exit 3", "it exited with code 3"),
      ("printf x; kill -9 $$", "it was ended by signal 9"),
      ("no-such-command-here 2>/dev/null", "it exited with code 127"),
    ])
  func failingCommand(command: String, why: String) throws {
    let test = try TestSession()
    let failure = thrownError { _ = try password(test, ["--password-command", command]) }
    #expect(failure?.status == .failed)
    #expect(failure?.why == why)
  }

  @Test("Reading stops at a limit, for a file and for a command that never ends")
  func limit() throws {
    let test = try TestSession()
    let longest = [UInt8](repeating: 0x41, count: SecretReader.maximumByteCount)
    let accepted = try test.file("accepted", longest)
    let tooLong = try test.file("too-long", longest + [0x41])
    #expect(try password(test, ["--password-file", accepted]) == longest)
    #expect(thrownError { _ = try password(test, ["--password-file", tooLong]) }?.status == .refused)
    #expect(thrownError { _ = try password(test, ["--password-command", "yes"]) }?.status == .refused)
  }

  @Test("Standard input can be used only once")
  func standardInputOnce() throws {
    let test = try TestSession()
    try test.session.claimStandardInput(for: "the backup")
    let failure = thrownError { _ = try password(test, ["--password-file", "-"]) }
    #expect(failure?.status == .usage)
    #expect(failure?.message == "standard input cannot be both the backup and the password")
  }

  @Test("Without a terminal or with --no-input, the error for a missing password says why Keyhaul cannot ask")
  func noControllingTerminal() throws {
    let withoutTerminal = thrownError { _ = try password(try TestSession(), []) }
    #expect(
      withoutTerminal
        == CommandError(
          .needsPassword, "x.backup needs a password", why: "Keyhaul cannot ask, because there is no terminal",
          try: "--password-file, --password-fd or --password-command"))
    let withoutInput = thrownError { _ = try password(try TestSession(["--no-input"], terminalPath: "/dev/null"), []) }
    #expect(withoutInput?.status == .needsPassword)
    #expect(withoutInput?.why == "--no-input prevents Keyhaul from asking")
  }
}
