import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import keyhaul

@Suite("Why an item is where it is")
struct WhyTests {
  private func story(_ world: MoveWorld, _ line: String) throws -> [String: Any] {
    let document = try world.object(world.succeed("why \(line) --json"))
    #expect(document["format"] as? String == "item-story/1")
    let stories = try #require(document["stories"] as? [[String: Any]])
    #expect(stories.count == 1, "\(line)")
    return try #require(stories.first)
  }

  private func here(_ story: [String: Any], _ field: String) -> String? {
    (story["here"] as? [String: Any])?[field] as? String
  }

  @Test("for every item of a backup, or 5 in a quick run, it says what the plan says")
  func asThePlan() throws {
    let world = try MoveWorld()
    for flags in ["--password-file .bp --rounds 1", "--no-password"] {
      try world.succeed("backup old-phone -o b.tar \(flags) -q --yes")
      let password = flags.hasPrefix("--no") ? "" : "--password-file .bp"
      for device in ["new-phone", "old-phone"] {
        let plan = try world.object(world.succeed("plan b.tar --to \(device) \(password) --json"))
        for item in Cases.chosen(try #require(plan["items"] as? [[String: Any]]), quick: 5) {
          let index = try #require(item["index"] as? Int)
          let story = try story(world, "b.tar --item \(index) --to \(device) \(password)")
          #expect(story["on_target"] as? NSDictionary == item as NSDictionary)
          #expect(story["index"] as? Int == index)
        }
      }
    }
  }

  @Test("for every item of a device, or 8 in a quick run, it says what a plan of the device says")
  func ofADevice() throws {
    let world = try MoveWorld()
    let plan = try world.object(world.succeed("plan old-phone --to new-phone --json"))
    for item in Cases.chosen(try #require(plan["items"] as? [[String: Any]]), quick: 8) {
      let index = try #require(item["index"] as? Int)
      let story = try story(world, "old-phone --item \(index) --to new-phone")
      #expect(story["on_target"] as? NSDictionary == item as NSDictionary)
      #expect(story["index"] as? Int == index)
    }
  }

  @Test("for every item of a database and of a dump it says what a plan of them says, and that nothing protected them")
  func ofADumpAndADatabase() throws {
    let world = try MoveWorld()
    try world.succeed("device export old-phone -o k.db --yes")
    try world.succeed("export old-phone -o k.plist --format genp-plist --reveal -q")
    for source in ["k.db", "k.plist"] {
      let plan = try world.object(world.succeed("plan \(source) --to new-phone --json"))
      let items = try #require(plan["items"] as? [[String: Any]])
      #expect(items.count > 8)
      for item in Cases.chosen(items, quick: 4) {
        let index = try #require(item["index"] as? Int)
        let story = try story(world, "\(source) --item \(index) --to new-phone")
        #expect(story["on_target"] as? NSDictionary == item as NSDictionary)
        #expect(story["index"] as? Int == index)
        #expect(try self.story(world, "\(source) --item \(index)")["on_target"] is NSNull)
      }
      let document = try world.object(world.succeed("why \(source) --item 0 --json"))
      #expect(document["dump"] as? NSDictionary == plan["dump"] as? NSDictionary)
    }
    let text = try world.succeed("why k.db --service 'chat*' --account anna")
    #expect(text.contains("a backup of the device that the database comes from contains it"), "\(text)")
    #expect(text.contains("k.db is a keychain's own database"), "\(text)")
  }

  @Test("several are listed with the numbers that --item takes, of a device as of a backup")
  func numbers() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    for source in ["old-phone", "b.tar --password-file .bp"] {
      let list = try world.succeed("why \(source) --service 'chat*'").split(separator: "\n")
      #expect(list.first == "2 items match:")
      for row in list.dropFirst(2).prefix(2) {
        let cells = row.split(separator: " ")
        let index = try #require(cells.first.flatMap { Int($0) }, "\(row)")
        let told = try world.succeed("why \(source) --item \(index)")
        #expect(told.hasPrefix("generic password \"chat.example · \(cells[4])"), "\(row): \(told)")
      }
    }
  }

  @Test("says that the key of the source device is available, and what is sealed without it")
  func keysAtHand() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    func words(_ line: String) throws -> String {
      let outcome = try world.keyhaul("why b.tar --password-file .bp \(line)")
      return (outcome.output + outcome.errors).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
    #expect(
      try words("--account 'push token' --to new-phone").contains(
        "old-phone's hardware key decrypts it"))
    #expect(
      try words("--item 3 --home elsewhere").contains("(encrypted, item 3)\" Class after first unlock, this device"))
    #expect(
      try words("--item 3 --home elsewhere").contains(
        "it cannot be decrypted with the available keys: only the hardware key of the source device can"))
    #expect(
      try words("--account 'push token' --home elsewhere").contains(
        "No item in b.tar matches. 3 encrypted items may match. inspect --list shows their numbers; "
          + "--item N explains one of them."))
  }

  @Test("an item that is not in the backup: the rule that left it out, from the source device")
  func leftOut() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    for (attributes, reason) in [
      ("--account 'card 4'", "passcode-only"), ("--label 'ssh work laptop'", "hardware-key"),
      ("--account 'vault key'", "needs-authentication"), ("--account 'peer key'", "system-bound"),
    ] {
      // The device is found in the home directory by itself, or named.
      for flags in ["", "--to old-phone"] {
        let story = try story(world, "b.tar \(attributes) \(flags) --password-file .bp")
        #expect(here(story, "state") == "not-in-archive" && here(story, "reason") == reason)
        #expect(here(story, "device") == "old-phone")
      }
    }
    try world.devices.run("printf x | keyhaul item add old-phone --service later --account me --secret-file -")
    let later = try story(world, "b.tar --account me --password-file .bp")
    #expect(here(later, "state") == "not-in-archive" && here(later, "reason") == nil)
  }

  @Test("a place that the backup does not have is a wrong argument, never a sealed item")
  func noSuchPlace() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    for (source, count) in [
      ("b.tar --password-file .bp --home elsewhere", "b.tar has 18"), ("old-phone", "old-phone has 22"),
    ] {
      for place in ["22", "-1"] {
        let outcome = try world.keyhaul("why \(source) --item \(place)")
        #expect(outcome.status == 64 && outcome.output.isEmpty)
        #expect(
          outcome.errors == """
            error: there is no item \(place)
              why: \(count) items, counted from 0
              try: plan --json shows the index of each item

            """)
      }
    }
  }

  @Test("a deleted item's mark: the rule that keeps it from a backup, asked of the device and of its backup")
  func deleted() throws {
    let world = try MoveWorld()
    try world.succeed("device create every-rule --from every-rule -q")
    let mark = try story(world, "every-rule --account deleted")
    #expect(here(mark, "state") == "stays-behind" && here(mark, "reason") == "deleted" && mark["index"] is NSNull)
    #expect(try world.succeed("why every-rule --account deleted").contains("a backup of every-rule omits it: "))
    try world.backUp("every-rule", to: "r.tar")
    let missing = try story(world, "r.tar --account deleted --password-file .bp")
    #expect(here(missing, "state") == "not-in-archive" && here(missing, "reason") == "deleted")
    #expect(here(missing, "device") == "every-rule")
  }

  @Test("an item of the target alone: whether a restore removes it")
  func target() throws {
    let world = try MoveWorld()
    for name in ["every-rule", "every-rule-target"] { try world.succeed("device create \(name) --from \(name) -q") }
    try world.backUp("every-rule", to: "r.tar")
    let removed = try story(world, "r.tar --account removed --to every-rule-target --password-file .bp")
    #expect(here(removed, "state") == "target-only")
    #expect((removed["here"] as? [String: Any])?["removed"] as? Bool == true)
    let merged = try story(
      world, "r.tar --account removed --to every-rule-target --existing merge --password-file .bp")
    #expect((merged["here"] as? [String: Any])?["removed"] as? Bool == false)
  }

  @Test("any attribute finds it, data and stars as well; several are a list, none is 4")
  func finding() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    for attributes in [
      "--server imap.example.org", "--port 993", "--protocol imap --server 'imap*'", "--path /login",
      "--label 'VPN identity' --kind key", "--service home.example --protection always",
      "--access-group '*.chat' --account anna", "--application-tag org.example.vpn", "--sync --server forum.example",
      "--item 3", "--account 'push *'",
    ] {
      _ = try story(world, "b.tar \(attributes) --password-file .bp")
    }
    let several = try world.keyhaul("why b.tar --service 'chat*' --password-file .bp")
    #expect(several.status == 0 && several.output.hasPrefix("2 items match:\n"))
    let none = try world.keyhaul("why b.tar --service nothing --password-file .bp")
    #expect(none.status == 4 && none.output == "")
    #expect(
      none.errors
        == "b.tar: this-device-only items were decrypted with the key of old-phone\nNo item in b.tar matches.\n"
        + BackupBlindSpots.line + "\n")
    let json = try world.keyhaul("why b.tar --service nothing --password-file .bp --json")
    #expect(json.status == 4)
    #expect((try world.object(json.output)["stories"] as? [Any])?.isEmpty == true)
    #expect(try world.keyhaul("why b.tar --password-file .bp").status == 64)
    #expect(try world.keyhaul("why b.tar --app chat --password-file .bp").status == 64)
    #expect(try world.keyhaul("why old-phone --account anna --password-file .bp").status == 64)
    #expect(try world.keyhaul("why b.tar --account anna").status == 12)
  }

  @Test("never shows a secret")
  func secrets() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    for line in ["b.tar --service '*' --to new-phone --password-file .bp", "old-phone --service '*'"] {
      for flag in ["-v", "--json", "-vv"] {
        let outcome = try world.keyhaul("why \(line) \(flag)")
        for secret in ["hunter2", "push-9f2c71d0a4", "4929-0000", "plum-orchard", "JBSWY3DPEHPK3PXP"] {
          #expect(!(outcome.output + outcome.errors).contains(secret))
        }
      }
    }
  }

  @Test("ends with 3 where a damaged item may be meant too, as item find does; one that cannot be meant is not counted")
  func damagedBeside() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o b/ --no-password -q")
    let payload = try #require(try world.files(in: "b").first { $0.contains("/") })
    var root = try #require(
      try PropertyListSerialization.propertyList(from: Data(world.read("b/\(payload)")), format: nil) as? [String: Any])
    var passwords = try #require(root["genp"] as? [[String: Any]])
    var sealed = try #require(passwords[0]["v_Data"] as? Data)
    sealed[sealed.count - 1] ^= 1
    passwords[0]["v_Data"] = sealed
    root["genp"] = passwords
    try world.write(
      Array(PropertyListSerialization.data(fromPropertyList: root, format: .binary, options: 0)), to: "b/\(payload)")
    for (verb, words) in [("why", "may also match"), ("item find", "may match")] {
      let open = try world.keyhaul("\(verb) b --service chat.example --account anna")
      #expect(open.status == 3 && open.output.contains("anna"), "\(open)")
      #expect(open.errors.contains("1 item of b cannot be decrypted here and \(words)"), "\(open)")
      let closed = try world.keyhaul("\(verb) b --server imap.example.org")
      #expect(closed.status == 0 && !closed.errors.contains(words), "\(closed)")
    }
    #expect(try world.keyhaul("why b --item 3").status == 0)
  }
}
