import Foundation
import Testing

@testable import keyhaul

/// A mount namespace in which a part of the system is hidden, where the system lets a test have one.
private struct Hiding {
  /// A line of shell that hides it, and fails where it does not.
  let line: String
  /// The command that creates the namespace; `nil` if no command can create one, or the part cannot be hidden in it.
  let namespace: String?

  init(_ line: String) {
    self.line = line
    namespace = ["unshare -m", "unshare -r -m"].first { namespace in
      guard let world = try? DeviceWorld() else { return false }
      return (try? world.run("\(namespace) sh -c '\(line)' 2> /dev/null").status) == 0
    }
  }

  /// Runs the program where the part is hidden, with the arguments as a shell has them.
  func run(_ world: MoveWorld, _ arguments: String) throws -> BuiltProgram.Outcome {
    try world.devices.run("\(try #require(namespace)) sh -c '\(line) && exec sh -c \"$0\"' \"keyhaul \(arguments)\"")
  }

  static let proc = Hiding("mount -t tmpfs none /proc && [ ! -e /proc/self ]")
  /// An empty file in the place of the library, in each folder that has it. There is nothing to hide where the program has it inside.
  static let libarchive = Hiding(
    "for f in /lib/*/libarchive.so.13 /usr/lib/*/libarchive.so.13 /usr/lib*/libarchive.so.13; do "
      + "[ ! -s $f ] || mount --bind /dev/null $f || exit 1; done; ! keyhaul version | grep -q libarchive.3")
}

@Suite(
  "Where /proc is not mounted",
  .enabled(if: Hiding.proc.namespace != nil, "this system lets no test hide /proc in a mount namespace"))
struct MissingProcTests {
  @Test("the program has its arguments all the same")
  func arguments() throws {
    let world = try MoveWorld()
    let version = try Hiding.proc.run(world, "--version")
    #expect(version.status == 0 && version.output.hasPrefix("keyhaul \(Keyhaul.version)"), "\(version)")
    let odd = try Hiding.proc.run(world, "device show '' 'two words' --näme")
    #expect(odd.status == 64 && odd.errors.contains("--näme"), "\(odd)")
    #expect(try Hiding.proc.run(world, "").output.contains("usage     keyhaul <command>"))
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
      let outcome = try Hiding.proc.run(world, line)
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(line): \(outcome)")
    }
  }
}

@Suite(
  "Where libarchive is missing",
  .enabled(if: Hiding.libarchive.namespace != nil, "the program has it inside, or this system lets no test hide it"))
struct MissingLibraryTests {
  @Test("what needs no container works, and version says which library is missing")
  func folders() throws {
    let world = try MoveWorld()
    #expect(try Hiding.libarchive.run(world, "version").output.contains(", libarchive not there, "))
    #expect(try Hiding.libarchive.run(world, "version --json").output.contains("\"libarchive\": null"))
    for line in [
      "--version", "device list", "backup old-phone -o b/ --password-file .bp --rounds 1 -q",
      "verify b --password-file .bp -q", "restore b --to new-phone --password-file .bp --yes -q",
    ] {
      let outcome = try Hiding.libarchive.run(world, line)
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(line): \(outcome)")
    }
  }

  @Test("a container is neither read nor written, the reason is said, and nothing is left")
  func containers() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    for line in ["verify b.tar --password-file .bp", "backup old-phone -o c.zip --password-file .bp --rounds 1"] {
      let outcome = try Hiding.libarchive.run(world, line)
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("error: libarchive, which packs"), "\(outcome)")
    }
    #expect(try world.devices.run("ls").output.contains("b.tar"))
    #expect(try !world.devices.run("ls -A").output.contains("c.zip"))
  }
}
