import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import keyhaul

@Suite("Explanations of single items")
struct WhyTests {
  /// Returns the explanation of the only item that a search finds.
  private func explanation(of search: String, in sandbox: PhoneSandbox) throws -> [String: Any] {
    let document = try sandbox.object(sandbox.succeed("why \(search) --json"))
    #expect(document["format"] as? String == "item-story/1")
    let explanations = try #require(document["stories"] as? [[String: Any]])
    #expect(explanations.count == 1, "\(search)")
    return try #require(explanations.first)
  }

  /// Returns a text in the part of an explanation about the source (`here`).
  private func text(_ member: String, aboutSourceIn explanation: [String: Any]) -> String? {
    (explanation["here"] as? [String: Any])?[member] as? String
  }

  @Test("Why agrees with the plan for every item of a backup (5 in a quick run)")
  func itemsOfBackup() throws {
    let sandbox = try PhoneSandbox()
    for (backupFlags, password) in [("--password-file .bp --rounds 1", "--password-file .bp"), ("--no-password", "")] {
      try sandbox.succeed("backup old-phone -o b.tar \(backupFlags) -q --yes")
      for device in ["new-phone", "old-phone"] {
        let plan = try sandbox.object(sandbox.succeed("plan b.tar --to \(device) \(password) --json"))
        for item in Cases.chosen(try #require(plan["items"] as? [[String: Any]]), quick: 5) {
          let index = try #require(item["index"] as? Int)
          let explanation = try explanation(of: "b.tar --item \(index) --to \(device) \(password)", in: sandbox)
          #expect(explanation["on_target"] as? NSDictionary == item as NSDictionary)
          #expect(explanation["index"] as? Int == index)
        }
      }
    }
  }

  @Test("Why agrees with the plan for every item of a device (8 in a quick run)")
  func itemsOfDevice() throws {
    let sandbox = try PhoneSandbox()
    let plan = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --json"))
    for item in Cases.chosen(try #require(plan["items"] as? [[String: Any]]), quick: 8) {
      let index = try #require(item["index"] as? Int)
      let explanation = try explanation(of: "old-phone --item \(index) --to new-phone", in: sandbox)
      #expect(explanation["on_target"] as? NSDictionary == item as NSDictionary)
      #expect(explanation["index"] as? Int == index)
    }
  }

  @Test("Why agrees with the plan for every item of a database and a dump, and says that nothing protected them")
  func itemsOfDumpAndDatabase() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device export old-phone -o k.db --yes")
    try sandbox.succeed("export old-phone -o k.plist --format genp-plist --reveal -q")
    for source in ["k.db", "k.plist"] {
      let plan = try sandbox.object(sandbox.succeed("plan \(source) --to new-phone --json"))
      let items = try #require(plan["items"] as? [[String: Any]])
      #expect(items.count > 8)
      for item in Cases.chosen(items, quick: 4) {
        let index = try #require(item["index"] as? Int)
        let withTarget = try explanation(of: "\(source) --item \(index) --to new-phone", in: sandbox)
        #expect(withTarget["on_target"] as? NSDictionary == item as NSDictionary)
        #expect(withTarget["index"] as? Int == index)
        let withoutTarget = try explanation(of: "\(source) --item \(index)", in: sandbox)
        #expect(withoutTarget["on_target"] is NSNull)
      }
      let document = try sandbox.object(sandbox.succeed("why \(source) --item 0 --json"))
      #expect(document["dump"] as? NSDictionary == plan["dump"] as? NSDictionary)
    }
    let text = try sandbox.succeed("why k.db --service 'chat*' --account anna")
    #expect(text.contains("a backup of the device that the database comes from contains it"), "\(text)")
    #expect(text.contains("k.db is a keychain's own database"), "\(text)")
  }

  @Test("Several matching items are listed with the numbers that --item accepts, for a device and a backup")
  func numbers() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    for source in ["old-phone", "b.tar --password-file .bp"] {
      let lines = try sandbox.succeed("why \(source) --service 'chat*'").split(separator: "\n")
      #expect(lines.first == "2 items match:")
      // After the column titles, a row is "INDEX  KIND  SERVICE · ACCOUNT  …".
      for row in lines.dropFirst(2).prefix(2) {
        let words = row.split(separator: " ")
        let index = try #require(words.first.flatMap { Int($0) }, "\(row)")
        let account = words[4]
        let text = try sandbox.succeed("why \(source) --item \(index)")
        #expect(text.hasPrefix("generic password \"chat.example · \(account)"), "\(row): \(text)")
      }
    }
  }

  @Test("Why names the device key that decrypts an item, and says if no available key decrypts it")
  func availableKeys() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    func why(_ flags: String) throws -> String {
      let outcome = try sandbox.keyhaul("why b.tar --password-file .bp \(flags)")
      return unwrapped(outcome.output + outcome.errors)
    }
    #expect(
      try why("--account 'push token' --to new-phone").contains(
        "old-phone's key decrypts it"))
    #expect(
      try why("--item 3 --home elsewhere").contains("(encrypted, item 3)\" Class after first unlock, this device"))
    #expect(
      try why("--item 3 --home elsewhere").contains(
        "it cannot be decrypted with the available keys: only the source device's key can"))
    #expect(
      try why("--account 'push token' --home elsewhere").contains(
        "No item in b.tar matches. 3 encrypted items may match. inspect --list shows their numbers; "
          + "--item N explains one of them."))
  }

  @Test("For an item that is only on the source device, why names the rule that keeps it out of the backup")
  func notInBackup() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let items: [(attributes: String, reason: String)] = [
      ("--account 'card 4'", "passcode-only"), ("--label 'ssh work laptop'", "hardware-key"),
      ("--account 'vault key'", "needs-authentication"), ("--account 'peer key'", "system-bound"),
    ]
    for (attributes, reason) in items {
      // The device is found in the device folder, or named with --to.
      for flags in ["", "--to old-phone"] {
        let item = try explanation(of: "b.tar \(attributes) \(flags) --password-file .bp", in: sandbox)
        #expect(text("state", aboutSourceIn: item) == "not-in-archive")
        #expect(text("reason", aboutSourceIn: item) == reason)
        #expect(text("device", aboutSourceIn: item) == "old-phone")
      }
    }
    try sandbox.devices.run("printf x | keyhaul item add old-phone --service later --account me --secret-file -")
    let addedLater = try explanation(of: "b.tar --account me --password-file .bp", in: sandbox)
    #expect(text("state", aboutSourceIn: addedLater) == "not-in-archive")
    #expect(text("reason", aboutSourceIn: addedLater) == nil)
  }

  @Test("An index that the backup does not have is a usage error")
  func unknownIndex() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let sources: [(source: String, count: String)] = [
      ("b.tar --password-file .bp --home elsewhere", "b.tar has 18"), ("old-phone", "old-phone has 22"),
    ]
    for (source, count) in sources {
      for index in ["22", "-1"] {
        let outcome = try sandbox.keyhaul("why \(source) --item \(index)")
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(
          outcome.errors == """
            error: there is no item \(index)
              why: \(count) items, counted from 0
              try: plan --json shows the index of each item

            """)
      }
    }
  }

  @Test("For a tombstone, why names the rule that keeps it out of backups, for the device and its backup")
  func deleted() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create every-rule --from every-rule -q")
    let onDevice = try explanation(of: "every-rule --account deleted", in: sandbox)
    #expect(text("state", aboutSourceIn: onDevice) == "stays-behind")
    #expect(text("reason", aboutSourceIn: onDevice) == "deleted")
    #expect(onDevice["index"] is NSNull)
    #expect(try sandbox.succeed("why every-rule --account deleted").contains("a backup of every-rule omits it: "))
    try sandbox.backUp("every-rule", to: "r.tar")
    let ofBackup = try explanation(of: "r.tar --account deleted --password-file .bp", in: sandbox)
    #expect(text("state", aboutSourceIn: ofBackup) == "not-in-archive")
    #expect(text("reason", aboutSourceIn: ofBackup) == "deleted")
    #expect(text("device", aboutSourceIn: ofBackup) == "every-rule")
  }

  @Test("For an item only on the target, why says whether a restore removes it")
  func target() throws {
    let sandbox = try PhoneSandbox()
    for name in ["every-rule", "every-rule-target"] { try sandbox.succeed("device create \(name) --from \(name) -q") }
    try sandbox.backUp("every-rule", to: "r.tar")
    let search = "r.tar --account removed --to every-rule-target --password-file .bp"
    let replacing = try explanation(of: search, in: sandbox)
    #expect(text("state", aboutSourceIn: replacing) == "target-only")
    #expect((replacing["here"] as? [String: Any])?["removed"] as? Bool == true)
    let merging = try explanation(of: "\(search) --existing merge", in: sandbox)
    #expect((merging["here"] as? [String: Any])?["removed"] as? Bool == false)
  }

  @Test("Any attribute finds an item, even with data or a pattern; several items are listed, and no match exits with 4")
  func finding() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    for attributes in [
      "--server imap.example.org", "--port 993", "--protocol imap --server 'imap*'", "--path /login",
      "--label 'VPN identity' --kind key", "--service home.example --protection always",
      "--access-group '*.chat' --account anna", "--application-tag org.example.vpn", "--sync --server forum.example",
      "--item 3", "--account 'push *'",
    ] {
      _ = try explanation(of: "b.tar \(attributes) --password-file .bp", in: sandbox)
    }
    let withTwoMatches = try sandbox.keyhaul("why b.tar --service 'chat*' --password-file .bp")
    #expect(withTwoMatches.status == 0 && withTwoMatches.output.hasPrefix("2 items match:\n"))
    let withoutMatch = try sandbox.keyhaul("why b.tar --service nothing --password-file .bp")
    #expect(withoutMatch.status == 4 && withoutMatch.output == "")
    #expect(
      withoutMatch.errors
        == "b.tar: this-device-only items were decrypted with the key of old-phone\nNo item in b.tar matches.\n"
        + BackupBlindSpots.line + "\n")
    let document = try sandbox.keyhaul("why b.tar --service nothing --password-file .bp --json")
    #expect(document.status == 4)
    #expect((try sandbox.object(document.output)["stories"] as? [Any])?.isEmpty == true)
  }

  @Test("A search without an attribute, a password for a device, and a missing password are rejected")
  func refusedSearches() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    #expect(try sandbox.keyhaul("why b.tar --password-file .bp").status == 64)
    #expect(try sandbox.keyhaul("why b.tar --app chat --password-file .bp").status == 64)
    #expect(try sandbox.keyhaul("why old-phone --account anna --password-file .bp").status == 64)
    #expect(try sandbox.keyhaul("why b.tar --account anna").status == 12)
  }

  @Test("Why never shows a secret")
  func secrets() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    for line in ["b.tar --service '*' --to new-phone --password-file .bp", "old-phone --service '*'"] {
      for flag in ["-v", "--json", "-vv"] {
        let outcome = try sandbox.keyhaul("why \(line) \(flag)")
        // The beginnings of secrets of old-phone.
        for secret in ["hunter2", "push-9f2c71d0a4", "4929-0000", "plum-orchard", "JBSWY3DPEHPK3PXP"] {
          #expect(!(outcome.output + outcome.errors).contains(secret))
        }
      }
    }
  }

  @Test("Like item find, why exits with 3 if a damaged item may also match, and ignores a damaged item of another kind")
  func damagedMatch() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    try sandbox.editPropertyList("b/\(PhoneSandbox.keychainPath)") { keychain in
      var genericPasswords = try #require(keychain["genp"] as? [[String: Any]])
      var encryptedItem = try #require(genericPasswords[0]["v_Data"] as? Data)
      encryptedItem[encryptedItem.count - 1] ^= 1
      genericPasswords[0]["v_Data"] = encryptedItem
      keychain["genp"] = genericPasswords
    }
    for (command, message) in [("why", "may also match"), ("item find", "may match")] {
      let matching = try sandbox.keyhaul("\(command) b --service chat.example --account anna")
      #expect(matching.status == 3 && matching.output.contains("anna"), "\(matching)")
      #expect(matching.errors.contains("1 item of b cannot be decrypted here and \(message)"), "\(matching)")
      let otherKindOutcome = try sandbox.keyhaul("\(command) b --server imap.example.org")
      #expect(otherKindOutcome.status == 0 && !otherKindOutcome.errors.contains(message), "\(otherKindOutcome)")
    }
    // No other item can have this index.
    #expect(try sandbox.keyhaul("why b --item 3").status == 0)
  }
}
