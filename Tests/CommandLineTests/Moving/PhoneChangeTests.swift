import Foundation
import TestSupport
import Testing

@testable import Reports
@testable import keyhaul

/// The plans that a user who changes phones gets for typical backups.
@Suite("Plans for users who change phones")
struct PhoneChangeTests {
  private static let passwordFlag = "--password-file .bp"

  /// Returns the lines of a text that ends with a line break, including empty lines.
  private func lines(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }

  private func wordCount(_ line: String) -> Int { line.split(separator: " ").count }

  /// Returns the text of an HTML page. The words of a command are separate elements.
  private func textWithoutTags(_ page: String) -> String { page.replacing(/<[^>]*>/, with: "") }

  @Test("The plan for every backup of an iPhone starts with a verdict of at most 15 words, and has at most 25 lines")
  func length() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let commands = ["plan plain/", "plan encrypted/ \(Self.passwordFlag)", "plan old/", "plan plain/ --redact"]
    for command in commands {
      let plan = lines(try sandbox.succeed(command))
      let verdict = try #require(plan.first)
      #expect(
        wordCount(verdict) <= 15 && verdict.contains("keychain items") && plan[1].isEmpty, "\(command): \(verdict)")
      #expect(plan.count <= 25, "\(command): \(plan.count) lines")
      #expect(plan.allSatisfy { $0.count <= 80 }, "\(command)")
    }
  }

  @Test("The plan for an unencrypted backup says what a password would add, and how to set one on each computer")
  func withoutPassword() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let text = try sandbox.succeed("plan plain/")
    #expect(
      text.hasPrefix("None of the 18 keychain items reaches a new iPhone: the backup has no password.\n"), "\(text)")
    let plan = unwrapped(text)
    for part in [
      "[ ] Make a new backup with a password. 14 of these items would then move.",
      "Turn on \"Encrypt local backup\" in Finder (Mac), or in Apple Devices or iTunes (Windows).",
      "Linux: idevicebackup2 -i encryption on", "Forgotten password, earlier backups: keyhaul explain backup-password",
      "[ ] Erase Santas-Phone only when every app that you need works on the new iPhone.",
    ] {
      #expect(plan.contains(part), "\(part)\n\(text)")
    }
    // Keyhaul makes backups of virtual devices only.
    #expect(!text.contains("keyhaul backup"))
    let page = try sandbox.succeed("plan plain/ --format html -o -")
    #expect(!textWithoutTags(page).contains("keyhaul backup"))
    #expect(try !sandbox.succeed("plan plain/ -v").contains("keyhaul backup"))
  }

  @Test("The plan for an encrypted backup lists what stays, and advises to check the backup")
  func withPassword() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let text = try sandbox.succeed("plan encrypted/ \(Self.passwordFlag)")
    #expect(text.hasPrefix("14 of 18 keychain items reach a new iPhone; 4 stay with Santas-Phone.\n"), "\(text)")
    #expect(text.contains("keyhaul verify encrypted/") && !text.contains("Encrypt local backup"))
    #expect(unwrapped(text).contains("Keyhaul found no damage in the items that it can decrypt."))
    #expect(
      unwrapped(text).contains(
        "[ ] 4 encrypted items stay (3 passwords, 1 key): sign in where an app asks."), "\(text)")
  }

  private static let restoreNewBackup = "Run keyhaul plan on the new backup, then restore it to the new iPhone."

  @Test(
    "The checklist first names the backup to restore, then the apps to sign in to, and last the erase of the old phone",
    arguments: [
      ("", "plan encrypted/ \(passwordFlag)", "Restore this backup to the new iPhone."),
      ("", "plan plain/", restoreNewBackup),
      // Without Status.plist, the backup is unfinished, so a new one is needed.
      ("rm encrypted/Status.plist; rm -f encrypted/Keyhaul.seal", "plan encrypted/ \(passwordFlag)", restoreNewBackup),
    ])
  func restoring(preparation: String, command: String, step: String) throws {
    let sandbox = try IPhoneBackups.sandbox()
    if !preparation.isEmpty { try sandbox.devices.run(preparation) }
    for flags in ["", "-v"] {
      let text = try sandbox.keyhaul("\(command) \(flags)").output
      let steps = unwrapped(text).components(separatedBy: "[ ] ")
      let restoreIndex = try #require(steps.firstIndex { $0.hasPrefix(step) }, "\(text)")
      // "Sign in" or "sign in".
      let signInIndex = try #require(steps.firstIndex { $0.contains("ign in") }, "\(text)")
      #expect(restoreIndex < signInIndex, "\(text)")
      #expect(steps.last?.hasPrefix("Erase Santas-Phone only when") == true, "\(text)")
      // No command of Keyhaul restores to a real device.
      #expect(!text.contains("keyhaul restore"))
    }
    let document = try sandbox.object(sandbox.keyhaul("\(command) --json").output)
    let groups = try #require(document["before_wiping"] as? [[String: Any]])
    let entries = try #require(groups.first?["entries"] as? [[String: Any]])
    #expect(entries.contains { ($0["do"] as? String)?.hasPrefix(step) == true }, "\(entries)")
    let page = try sandbox.keyhaul("\(command) --format html -o -").output
    #expect(page.contains(step))
  }

  @Test("A table of plans notes a backup without a password, and ends with the command for this backup")
  func table() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let home = sandbox.home.path
    try sandbox.write(Array("*encrypted file:\(home)/.bp\n".utf8), to: "list")
    let outcome = try sandbox.keyhaul("plan encrypted plain --passwords list")
    #expect(outcome.status == 0, "\(outcome)")
    let text = unwrapped(outcome.output)
    let note = "note: the backup has no password. Make a new backup with a password. 14 of these items would then move."
    // There is one note, and the next line of the table has the total.
    #expect(text.components(separatedBy: "note: ").count == 2 && text.contains("\(note) 2 backups: "), "\(outcome)")
    #expect(outcome.output.hasSuffix("\nOne of them in full: keyhaul plan plain\n"), "\(outcome)")
    let withTarget = try sandbox.keyhaul("plan encrypted plain --to new-phone --passwords list")
    #expect(unwrapped(withTarget.output).contains("note: the backup has no password 2 backups: "), "\(withTarget)")
    let rows = try sandbox.object(sandbox.succeed("plan encrypted plain --passwords list --json"))["backups"]
    #expect((rows as? [[String: Any]])?.allSatisfy { $0["reason"] is NSNull } == true)
  }

  @Test("A table of verify explains `foreign`, and ends with the command for the damaged backup")
  func verifying() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let home = sandbox.home.path
    try sandbox.write(Array("*encrypted file:\(home)/.bp\n".utf8), to: "list")
    try sandbox.devices.run(
      "rm -f plain/Keyhaul.seal encrypted/Keyhaul.seal; cp -R plain damaged; rm damaged/Status.plist")
    let outcome = try sandbox.keyhaul("verify plain damaged --passwords list")
    let text = unwrapped(outcome.output)
    let note = "note: no fault was found; only the source device can decrypt the items"
    #expect(text.components(separatedBy: "note: ").count == 2 && text.contains(note), "\(outcome)")
    #expect(outcome.output.hasSuffix("\nOne of them in full: keyhaul verify damaged\n"), "\(outcome)")
  }

  @Test("Only the results `unproven` and `foreign` have a note in a table, because they are not faults")
  func notes() {
    let resultsWithNote = BackupResult.allCases.filter { $0.note != nil }
    #expect(resultsWithNote == [.unproven, .foreign] && resultsWithNote.allSatisfy { $0.code == 0 })
  }

  @Test("Apps that keep secrets on the phone are listed with one action each, and all other apps are counted")
  func apps() throws {
    let sandbox = try IPhoneBackups.sandbox()
    for command in ["plan plain/", "plan encrypted/ \(Self.passwordFlag)", "plan old/"] {
      let text = try sandbox.succeed(command)
      for entry in [
        "Google Authenticator: Export the codes.", "Signal and WhatsApp Messenger: Transfer the chats.",
        "MetaMask: Have the recovery phrase ready.", "Example Savings: Register the new device.",
        "3 other apps: Check that you can sign in (-v lists all).",
      ] {
        #expect(text.contains("[ ] \(entry)\n"), "\(command): \(entry)\n\(text)")
      }
      #expect(!text.contains("Example Game"))
    }
    #expect(
      unwrapped(try sandbox.succeed("plan plain/ -v")).contains(
        "Check that you can sign in: Example Chat, Example Game,"))
  }

  @Test("An app name with escapes, line breaks or ten thousand characters is escaped or shortened")
  func maliciousNames() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let longName = String(repeating: "long ", count: 2_000) + " wallet"
    try IPhoneBackups.setApps(
      [("a.b", "\u{1B}[31mAuthenticator\u{202E}\n[ ] erase it", 6002), ("c.d", longName, 6015)], in: "plain",
      of: sandbox)
    for flags in ["", "-v", "--json", "--format html -o -"] {
      let text = try sandbox.succeed("plan plain/ \(flags)")
      #expect(!text.contains("\u{1B}[31m") && !text.contains("\n[ ] erase it"), "\(flags)")
      #expect(flags == "--json" || (!text.contains("\u{202E}") && text.count < 100_000), "\(flags)")
    }
    #expect(lines(try sandbox.succeed("plan plain/")).count <= 25)
  }

  @Test("Without Info.plist, the domains of the files name the apps")
  func domains() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old", domain: "AppDomain-com.google.Authenticator")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    try FileManager.default.removeItem(at: sandbox.home.appending(path: "\(old.directory)/Info.plist"))
    try sandbox.removeSeal(old.directory)
    let outcome = try sandbox.keyhaul("plan \(old.directory)/")
    #expect(outcome.output.contains("[ ] com.google.Authenticator: Export the codes."), "\(outcome)")
  }

  @Test("On a terminal of 60 columns, the plan's lines break only between words")
  func narrow() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let wide = try sandbox.devices.run("COLUMNS=200 keyhaul plan plain/").output
    let narrow = try sandbox.devices.run("COLUMNS=60 keyhaul plan plain/").output
    #expect(wide.split(whereSeparator: \.isWhitespace) == narrow.split(whereSeparator: \.isWhitespace))
    // A longer line may only be a single word.
    for line in lines(narrow) { #expect(line.count <= 60 || !line.drop { $0 == " " }.contains(" "), "\(line)") }
  }

  @Test("The plan for a virtual device's backup without a password suggests keyhaul backup")
  func virtualDevice() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let text = try sandbox.succeed("plan plain.tar")
    #expect(text.contains("keyhaul backup old-phone -o with-password.backup"), "\(text)")
    #expect(!text.contains("Encrypt local backup"))
  }

  @Test("The plan of a virtual device names every app that loses items, and says that no backup was read")
  func virtualDeviceItself() throws {
    let sandbox = try PhoneSandbox()
    let text = unwrapped(try sandbox.succeed("plan old-phone"))
    for entry in [
      "bank: 3 items stay.", "chat: 2 items stay.", "home: 1 item stays.", "iOS, Apple’s apps: 1 item stays.",
    ] {
      #expect(text.contains("[ ] \(entry)"), "\(entry)\n\(text)")
    }
    #expect(!text.contains("more app"))
    #expect(text.contains("These are the items of old-phone, a virtual device, as it is now; no backup was read."))
    try sandbox.backUp(to: "b.tar")
    let backupPlan = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag)"))
    #expect(
      backupPlan.contains("4 more items are only on old-phone, a virtual device that Keyhaul also read."),
      "\(backupPlan)")
    #expect(
      unwrapped(try sandbox.succeed("plan old-phone --to new-phone")).contains("the virtual device as it is now"))
  }

  @Test("If the backup lacks items of its virtual device, the plan advises a new backup without mentioning a password")
  func outdated() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    try sandbox.devices.run("echo x | keyhaul item add old-phone --service new --account a --secret-file - -q")
    let text = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag)"))
    #expect(
      text.contains("[ ] Make a new backup: old-phone has items that are not in this one. keyhaul backup old-phone"))
    #expect(!text.contains("with a password, and keep"), "\(text)")
  }

  @Test("The document of a plan lists the installed apps with their kinds, unless names are redacted")
  func document() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let document = try sandbox.object(sandbox.succeed("plan encrypted/ \(Self.passwordFlag) --json"))
    let apps = try #require(document["apps"] as? [[String: Any]])
    #expect(apps.count == 8)
    let signal = try #require(apps.first { $0["identifier"] as? String == "org.whispersystems.signal" })
    #expect(signal["name"] as? String == "Signal - Private Messenger" && signal["kind"] as? String == "messenger")
    #expect(apps.first { $0["identifier"] as? String == "org.example.game" }?["kind"] is NSNull)
    #expect((document["verdict"] as? String)?.hasPrefix("14 of 18 keychain items") == true)
    #expect((document["details"] as? String)?.hasPrefix("Of the 18 items in the backup, 14 move") == true)
    let redacted = try sandbox.object(sandbox.succeed("plan encrypted/ \(Self.passwordFlag) --json --redact"))
    #expect(redacted["apps"] == nil)
  }

  @Test("A plan for a device starts with its verdict")
  func target() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let text = try sandbox.succeed("plan b.tar --to new-phone \(Self.passwordFlag)")
    #expect(text.hasPrefix("14 of 18 items move to new-phone; 4 stay behind.\n\nPlan: b.tar → new-phone"), "\(text)")
  }
}
