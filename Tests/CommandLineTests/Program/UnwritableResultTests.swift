import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Results that cannot be written")
struct UnwritableResultTests {
  /// Every command, some of them in several formats. The earlier commands make the files for the later ones.
  private static let lines = [
    "device create third", "device list", "device show old-phone", "device fixture old-phone",
    "device passcode set third --new-passcode-file .bp",
    "device passcode change third --passcode-file .bp --new-passcode-file .np", "device lock third --json",
    "device unlock third --passcode-file .np --json", "device restart third --json",
    "device unlock third --passcode-file .np --json", "device passcode remove third --passcode-file .np --yes",
    "device erase third --yes", "device delete third --confirm third",
    "device serve old-phone --trust once",
    "device export old-phone -o exported.db", "device create twin --import b.tar --password-file .bp",
    "item add b.tar --service s --account a --access-group g --secret-file .np --password-file .bp",
    "item add new-phone --service s --account a --secret-file .np", "item find old-phone",
    "item find old-phone --format csv", "item find old-phone --service chat.example --account anna --reveal",
    "item update new-phone --service s --new-label l --yes", "item delete new-phone --service s --yes",
    "backup old-phone -o d.tar --password-file .bp --rounds 1", "backup old-phone -o - --password-file .bp --rounds 1",
    "inspect b.tar --password-file .bp --list", "inspect b.tar --password-file .bp --json",
    "verify b.tar --password-file .bp", "diff b.tar old-phone --password-file .bp",
    "export b.tar -o x.json --password-file .bp", "export old-phone -o - --reveal",
    "export b.tar -o - --password-file .bp", "export b.tar -o - --password-file .bp --reveal",
    "export b.tar -o - --password-file .bp --reveal --format csv",
    "export b.tar -o - --password-file .bp --reveal --format pem",
    "export b.tar -o - --password-file .bp --domain KeychainDomain --path keychain-backup.plist",
    "rekey d.tar --password-file .bp --new-password-file .np", "convert b.tar -o e.tar", "convert b.tar -o -",
    "seal e.tar --password-file .bp", "plan b.tar --to new-phone --password-file .bp",
    "plan b.tar --to new-phone --password-file .bp -o -",
    "plan b.tar --to new-phone --password-file .bp --format html",
    "simulator list .", "simulator seed sim --from old-phone --yes", "simulator snapshot sim -o s.db",
    "simulator restore sim s.db --yes",
    "simulator reset sim --app ABCDE12345.com.example.notes --yes",
    "why b.tar --service chat.example --password-file .bp",
    "restore b.tar --to new-phone --password-file .bp --yes", "demo", "explain", "completions bash", "version",
  ]

  /// The beginnings of the command lines that change or write something other than standard output.
  private static let changes = [
    "device create", "device passcode", "device lock", "device unlock", "device restart", "device erase",
    "device delete", "device export", "item add", "item update", "item delete", "backup old-phone -o d.tar",
    "export b.tar -o x.json",
    "rekey", "convert b.tar -o e.tar", "restore", "simulator seed", "simulator snapshot", "simulator restore",
    "simulator reset",
  ]

  @Test(
    "Every command fails if its result cannot be written, and reports completed changes",
    arguments: ["/dev/full", "&-"])
  func unwritable(sink: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b.tar")
    try sandbox.devices.run("mkdir sim")
    try sandbox.devices.writeKeychainDatabase(to: "sim/keychain-2-debug.db", withLog: false)
    for line in Self.lines {
      let isChange = Self.changes.contains { line.hasPrefix($0) }
      let outcome = try sandbox.devices.run("keyhaul \(line) >\(sink)")
      // 5 means that the change was made although its result was not printed.
      #expect(outcome.status == (isChange ? 5 : 1), "\(line): \(outcome)")
      #expect(outcome.errors.contains("could not write "), "\(line): \(outcome.errors)")
      #expect(!outcome.errors.contains(" to standard output"), "\(line): \(outcome.errors)")
      let errors = unwrapped(outcome.errors)
      #expect(errors.contains(", and this change is final; standard output: ") == isChange, "\(line): \(errors)")
      let message = line.hasSuffix("--json") ? #""id":"done-but""# : "error: done, but could not write the result"
      #expect(errors.contains(message) == isChange, "\(line): \(errors)")
      #expect(errors.contains("don't run it again") == isChange, "\(line): \(errors)")
    }
  }

  @Test("Every command is tested with an output that cannot be written")
  func everyCommand() {
    for leaf in AllCommands.leaves() {
      let name = leaf.words.joined(separator: " ")
      #expect(Self.lines.contains { $0 == name || $0.hasPrefix(name + " ") }, "\(name)")
    }
  }
}
