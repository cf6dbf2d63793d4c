import ArgumentParser
import Foundation
import KeyhaulKit
import SystemPackage
import Testing

@testable import Backups
@testable import Reports
@testable import keyhaul

@Suite("Incomplete exports")
struct ExportReadingTests {
  private static let itemCount = 14_000

  /// The tests of `AuthenticatorAccounts` cite the source for the path of the authenticator's file.
  @Test(
    "`export` exits with 3 if an authenticator's file is damaged, and with 0 if there is no such file",
    arguments: ["otpauth", "csv", "json"])
  func damagedAuthenticator(format: String) throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    let line = "export old --format \(format) --reveal -o out"
    #expect(try sandbox.keyhaul(line).status == 0)
    try old.add(
      "Library/Application Support/default.store", Array("SQLite format 3\0 and then nothing".utf8),
      domain: "AppDomainGroup-group.me.proton.authenticator")
    let incomplete = try sandbox.keyhaul("\(line).2")
    // A JSON export contains the keychain's items only.
    #expect(incomplete.status == (format == "json" ? 0 : 3), "\(incomplete)")
    #expect(try !sandbox.read("out.2").isEmpty)
    guard format == "otpauth" else { return }
    #expect(
      unwrapped(incomplete.errors).contains(
        "warning: codes of Proton Authenticator are missing why: the file with its codes"),
      "\(incomplete)")
  }

  /// Returns a sandbox with a backup whose items need 14 MB. Keyhaul keeps these items in a temporary file, and reads the
  /// file in parts.
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "many items") { sandbox in
      let secret = String(repeating: "x", count: 1_000)
      let items = (0..<Self.itemCount).map { number in
        """
        {"kind": "generic-password", "protection": "ak", "attributes": {"acct": "n\(number)", "svce": "s",
         "agrp": "ABCDE12345.org.example.app"}, "secret": {"text": "\(secret)"}}
        """
      }
      let description = """
        {"format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z",
         "device": {"name": "many", "product_type": "iPhone15,2", "product_version": "18.1"},
         "apps": [{"name": "app", "groups": ["ABCDE12345.org.example.app"]}], "items": [\(items.joined(separator: ","))]}
        """
      try sandbox.write(Array(description.utf8), to: "many.json")
      try sandbox.succeed("device create many --from many.json")
      try sandbox.backUp("many", to: "b/")
    }
  }

  @Test("A read error is reported with its reason, and printed output is called incomplete", arguments: [true, false])
  func failing(isPrinted: Bool) throws {
    let hasStarted = Locked(false)
    let system = FileSystem { $0 == .read && hasStarted.withLock { $0 } ? .failure(.ioError) : nil }
    let source = try exportSource(in: sandbox(), system: system)
    let test = try TestSession()
    let format = try ExportFormat.chosen(
      try CommonOptions.parse([]), output: isPrinted ? "-" : "items.json", reveals: true)
    var items = ExportedItems(of: source.origin, as: format)

    let error = #expect(throws: CommandError.self) {
      try items.write(from: source, revealingSecrets: true, in: test.session) { (bytes) throws(CommandError) in
        hasStarted.withLock { $0 = true }
        if isPrinted { try test.session.writeRaw(bytes) }
      }
    }

    #expect(error?.status == .failed)
    let reason = "a temporary file: input/output error"
    #expect(error?.why == (isPrinted ? "\(reason); the printed output is incomplete" : reason))
    #expect(items.count > 0 && items.count < Self.itemCount)
  }

  /// Returns the source for an export of all items in the sandbox's backup. `system` reads the backup.
  private func exportSource(in sandbox: PhoneSandbox, system: FileSystem) throws -> ExportSource {
    let path = sandbox.home.appending(path: "b").path
    let archive = try BackupArchive.open(.path(path), limits: .standard, system: system)
    #expect(archive.storedLargeKeychain != nil)
    let key = try archive.unlock(password: Secret(utf8: PhoneSandbox.password))
    let reader = try archive.reader(with: key, for: .exporting)
    let allItems = try ItemSelection(.init(kind: nil, attributes: try ItemAttributeOptions.parse([])))
    return ExportSource(reader, of: LoadedBackup(name: "b", archive: archive), allItems)
  }
}
