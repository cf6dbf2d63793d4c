import TestSupport
import Testing

@testable import keyhaul

@Suite("Password hash lines")
struct PasswordHashCommandTests {
  @Test("Inspect --hash prints one line for an encrypted backup, and rejects other backups")
  func line() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let outcome = try sandbox.keyhaul("inspect --hash encrypted/")
    #expect(outcome.status == 0)
    let line = try #require(outcome.output.split(separator: "\n").first)
    #expect(try /\$itunes_backup\$\*10\*[0-9a-f]{80}\*\d+\*[0-9a-f]{40}\*\d+\*[0-9a-f]{40}/.wholeMatch(in: line) != nil)
    #expect(outcome.output == line + "\n")
    let withoutPassword = try sandbox.keyhaul("inspect --hash plain/")
    #expect(
      withoutPassword.status == 14 && withoutPassword.output.isEmpty
        && withoutPassword.errors.contains("it has no password"))
    for flags in ["--list", "--json", "--format html", "-o x.txt", "plain/"] {
      #expect(try sandbox.keyhaul("inspect --hash encrypted/ \(flags)").status == 64, "\(flags)")
    }
  }
}
