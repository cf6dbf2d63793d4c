import Foundation
import Testing

@testable import CommandArguments
@testable import keyhaul

/// A mount namespace with an empty directory in the place of `/proc`, where the system lets a test have one.
private enum WithoutProc {
  /// The command that hides it, before a line of shell; `nil` where it may not be hidden.
  static let prefix: String? = {
    for unshare in ["unshare -m", "unshare -r -m"] {
      let line = "\(unshare) sh -c 'mount -t tmpfs none /proc && [ ! -e /proc/self ]' 2> /dev/null"
      if let world = try? DeviceWorld(), (try? world.run(line).status) == 0 { return unshare }
    }
    return nil
  }()
}

@Suite(
  "Where /proc is not mounted",
  .enabled(if: WithoutProc.prefix != nil, "this system lets no test hide /proc in a mount namespace"))
struct WithoutProcTests {
  private func run(_ world: MoveWorld, _ line: String) throws -> BuiltProgram.Outcome {
    let hidden = "mount -t tmpfs none /proc && [ ! -e /proc/self ] && \(line)"
    return try world.devices.run("\(try #require(WithoutProc.prefix)) sh -c \"\(hidden)\"")
  }

  @Test("the program has its arguments all the same")
  func arguments() throws {
    let world = try MoveWorld()
    let version = try run(world, "keyhaul --version")
    #expect(version.status == 0 && version.output.hasPrefix("keyhaul \(Keyhaul.version)"), "\(version)")
    let odd = try run(world, "keyhaul device show '' 'two words' --näme")
    #expect(odd.status == 64 && odd.errors.contains("--näme"), "\(odd)")
    #expect(try run(world, "keyhaul").output.contains("usage     keyhaul <verb>"))
  }

  @Test("a backup is made, checked, converted, rekeyed, exported and restored as elsewhere")
  func verbs() throws {
    let world = try MoveWorld()
    for line in [
      "backup old-phone -o b.tar.zst --password-file .bp --rounds 1 -q", "verify b.tar.zst --password-file .bp -q",
      "rekey b.tar.zst --password-command 'cat .bp' --new-password-file .bp -q", "convert b.tar.zst -o c/ -q",
      "export c --password-file .bp -o e.json -q", "plan c --to new-phone --password-file .bp -o p.plan -q",
      "restore c --to new-phone --password-file .bp --plan p.plan --yes -q", "item find new-phone --json",
    ] {
      let outcome = try run(world, "keyhaul \(line)")
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(line): \(outcome)")
    }
  }
}
