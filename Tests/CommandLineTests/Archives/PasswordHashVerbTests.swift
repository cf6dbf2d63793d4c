import TestSupport
import Testing

@testable import keyhaul

@Suite("The line for a forgotten backup password")
struct PasswordHashVerbTests {
  @Test("inspect --hash prints one line of an encrypted backup, and nothing of another one")
  func line() throws {
    let world = try IPhoneBackups.world()
    let outcome = try world.keyhaul("inspect --hash encrypted/")
    #expect(outcome.status == 0)
    let line = try #require(outcome.output.split(separator: "\n").first)
    #expect(try /\$itunes_backup\$\*10\*[0-9a-f]{80}\*\d+\*[0-9a-f]{40}\*\d+\*[0-9a-f]{40}/.wholeMatch(in: line) != nil)
    #expect(outcome.output == line + "\n")
    let plain = try world.keyhaul("inspect --hash plain/")
    #expect(plain.status == 14 && plain.output.isEmpty && plain.errors.contains("it has no password"))
    for flags in ["--list", "--json", "--format html", "-o x.txt", "plain/"] {
      #expect(try world.keyhaul("inspect --hash encrypted/ \(flags)").status == 64, "\(flags)")
    }
  }
}
