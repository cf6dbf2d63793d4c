import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Error messages")
struct CommandErrorTests {
  let failure = CommandError(
    .wrongPassword, "cannot open family.backup: the password is wrong", why: "it unlocks none of the 11 class keys",
    try: "the password set when the backup was made; it is not the device's passcode")

  @Test("An error has a line for what happened, and then a line for the reason")
  func reason() {
    #expect(
      failure.lines(style: .plain, showsCode: false).prefix(2) == [
        "error: cannot open family.backup: the password is wrong", "  why: it unlocks none of the 11 class keys",
      ])
  }

  @Test("An error is wrapped at 100 columns and aligned, even on a wider terminal")
  func wrapped() {
    let words = Array(repeating: "word", count: 60).joined(separator: " ")
    let lines = CommandError(.failed, words).lines(
      style: TextStyle(width: 200, usesColor: false, isUnicode: true), showsCode: false)
    #expect(lines.count > 1)
    #expect(lines.allSatisfy { $0.count <= 100 })
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("       word") })
    #expect(lines.joined(separator: " ").split(separator: " ").filter { $0 == "word" }.count == 60)
  }

  @Test("A path that is longer than a line is not broken")
  func longPath() {
    let path = "/" + String(repeating: "a", count: 150)
    let lines = CommandError(.failed, "could not write \(path) now").lines(style: .plain, showsCode: false)
    #expect(lines == ["error: could not write", "       \(path)", "       now"])
  }

  @Test("The exit code is shown only with -v")
  func code() {
    #expect(failure.lines(style: .plain, showsCode: true)[0].hasPrefix("error: cannot open family.backup"))
    let detailed = failure.lines(style: .plain, showsCode: true).joined(separator: " ")
    // The exit code for a wrong password.
    #expect(detailed.contains("12"))
    #expect(!failure.lines(style: .plain, showsCode: false).joined().contains("12"))
  }

  @Test("A name with control characters is escaped")
  func untrustedName() {
    let lines = CommandError(.failed, "no \u{1B}[2J\u{202E}here\nerror: fake").lines(style: .plain, showsCode: false)
    #expect(lines == [#"error: no \u{1B}[2J\u{202E}here\u{A}error: fake"#])
  }

  @Test("An error is one JSON object with --json")
  func json() {
    #expect(
      failure.json.compactText() == """
        {"message_type":"exit_error","code":12,"id":"wrong-password",\
        "message":"cannot open family.backup: the password is wrong","why":"it unlocks none of the 11 class keys",\
        "try":"the password set when the backup was made; it is not the device's passcode"}
        """)
  }

  @Test("An error of the library is explained with the name that the user typed")
  func explained() {
    let error = FormatError(.keybag, .truncated, "WPKY has 12 of 40 bytes", offset: 612)
    let failure = CommandError(error, failedAction: "cannot open x.backup")
    #expect(failure.status == .damaged)
    #expect(failure.message == "cannot open x.backup: the keybag is cut short")
    #expect(failure.why == "WPKY has 12 of 40 bytes, at byte 612")
  }
}
