import Foundation
import Testing

@testable import keyhaul

/// A part of the system that a test hides in a mount namespace, if the system permits this.
private struct HiddenSystemPart {
  /// A shell line that hides the part, and fails if the part is still there.
  let line: String
  /// The command that creates the namespace; `nil` if no command can create one, or the part cannot be hidden in it.
  let namespace: String?

  init(_ line: String) {
    self.line = line
    namespace = ["unshare -m", "unshare -r -m"].first { namespace in
      guard let sandbox = try? DeviceSandbox() else { return false }
      return (try? sandbox.run("\(namespace) sh -c '\(line)' 2> /dev/null").status) == 0
    }
  }

  /// Runs the program without the part, with arguments in shell syntax.
  func run(_ arguments: String, in sandbox: PhoneSandbox) throws -> BuiltProgram.Outcome {
    // The inner shell gets the program's command line as `$0` of the outer shell.
    try sandbox.devices.run("\(try #require(namespace)) sh -c '\(line) && exec sh -c \"$0\"' \"keyhaul \(arguments)\"")
  }

  static let proc = HiddenSystemPart("mount -t tmpfs none /proc && [ ! -e /proc/self ]")
  /// The library is hidden by mounting `/dev/null` over it in each folder that has it. This fails if the program is linked
  /// statically.
  static let libarchive = HiddenSystemPart(
    "for f in /lib/*/libarchive.so.13 /usr/lib/*/libarchive.so.13 /usr/lib*/libarchive.so.13; do "
      + "[ ! -s $f ] || mount --bind /dev/null $f || exit 1; done; ! keyhaul version | grep -q libarchive.3")
}

@Suite(
  "Systems without /proc",
  .enabled(if: HiddenSystemPart.proc.namespace != nil, "/proc cannot be hidden in a mount namespace on this system"))
struct MissingProcTests {
  @Test("The program gets its arguments without /proc")
  func arguments() throws {
    let sandbox = try PhoneSandbox()
    let version = try HiddenSystemPart.proc.run("--version", in: sandbox)
    #expect(version.status == 0 && version.output.hasPrefix("keyhaul \(Keyhaul.version)"), "\(version)")
    let unknownFlag = try HiddenSystemPart.proc.run("device show '' 'two words' --näme", in: sandbox)
    #expect(unknownFlag.status == 64 && unknownFlag.errors.contains("--näme"), "\(unknownFlag)")
    #expect(try HiddenSystemPart.proc.run("", in: sandbox).output.contains("usage     keyhaul <command>"))
  }

  @Test("Backups are created, checked, converted, rekeyed, exported and restored without /proc")
  func commands() throws {
    let sandbox = try PhoneSandbox()
    for line in [
      "backup old-phone -o b.tar.zst --password-file .bp --rounds 1 -q", "verify b.tar.zst --password-file .bp -q",
      "rekey b.tar.zst --password-command 'cat .bp' --new-password-file .bp -q", "convert b.tar.zst -o c/ -q",
      "export c --password-file .bp -o e.json -q", "plan c --to new-phone --password-file .bp -o p.plan -q",
      "restore c --to new-phone --password-file .bp --plan p.plan --yes -q", "item find new-phone --json",
    ] {
      let outcome = try HiddenSystemPart.proc.run(line, in: sandbox)
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(line): \(outcome)")
    }
  }
}

@Suite(
  "Systems without libarchive",
  .enabled(
    if: HiddenSystemPart.libarchive.namespace != nil,
    "libarchive is linked statically, or cannot be hidden on this system"))
struct MissingLibraryTests {
  @Test("Commands that need no container work, and version names the missing library")
  func folders() throws {
    let sandbox = try PhoneSandbox()
    #expect(try HiddenSystemPart.libarchive.run("version", in: sandbox).output.contains(", libarchive not there, "))
    #expect(try HiddenSystemPart.libarchive.run("version --json", in: sandbox).output.contains("\"libarchive\": null"))
    for line in [
      "--version", "device list", "backup old-phone -o b/ --password-file .bp --rounds 1 -q",
      "verify b --password-file .bp -q", "restore b --to new-phone --password-file .bp --yes -q",
    ] {
      let outcome = try HiddenSystemPart.libarchive.run(line, in: sandbox)
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(line): \(outcome)")
    }
  }

  @Test("Containers are neither read nor written, the error names the reason, and no files are left")
  func containers() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    for line in ["verify b.tar --password-file .bp", "backup old-phone -o c.zip --password-file .bp --rounds 1"] {
      let outcome = try HiddenSystemPart.libarchive.run(line, in: sandbox)
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("error: libarchive, which packs"), "\(outcome)")
    }
    #expect(try sandbox.devices.run("ls").output.contains("b.tar"))
    #expect(try !sandbox.devices.run("ls -A").output.contains("c.zip"))
  }
}
