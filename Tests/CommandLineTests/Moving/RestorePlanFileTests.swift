import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("A saved plan")
struct RestorePlanFileTests {
  @Test("is what the plan printed, readable by its owner alone, and is done exactly", arguments: ["replace", "merge"])
  func same(policy: String) throws {
    let world = try MoveWorld(backedUpTo: "b.zip")
    let printed = try world.succeed("plan b.zip --to new-phone --existing \(policy) --password-file .bp --json -o p")
    #expect(Array(printed.utf8) == (try world.read("p")))
    #expect(try world.devices.permissions(of: "p") == 0o600)
    #expect(try world.names().filter { $0.hasPrefix("p") } == ["p"])
    let piped = try world.succeed("plan b.zip --to new-phone --existing \(policy) --password-file .bp -o -")
    #expect(try PlannedItems(world.object(piped)) == PlannedItems(world.object(printed)))
    // Looking changes nothing, and locking and unlocking neither.
    try world.succeed("restore b.zip --to new-phone --plan p --password-file .bp -n")
    #expect(try world.keyhaul("restore b.zip --to new-phone --plan p --password-file .bp --yes").status == 0)
    #expect(try world.object(world.succeed("item find new-phone --json"))["items"].map { ($0 as? [Any])?.count } == 14)
  }

  @Test("fits the same backup in another container")
  func otherContainer() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    try world.succeed("plan b/ --to new-phone --password-file .bp -o p")
    try world.devices.run("tar -cf c.tar b")
    #expect(try world.keyhaul("restore c.tar --to new-phone --plan p --password-file .bp --yes").status == 0)
  }

  @Test("is refused once an item was added, before a password is asked for")
  func itemAdded() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    try world.devices.run("printf x | keyhaul item add new-phone --service later --account me --secret-file -")
    let before = try world.contents(of: "new-phone")
    let outcome = try world.keyhaul("restore b.tar --to new-phone --plan p --yes")
    #expect(outcome.status == 16)
    #expect(
      outcome.errors == """
        error: p no longer matches new-phone
          why: it was made for revision r2; new-phone is at revision r3
          try: plan again

        """)
    #expect(try world.contents(of: "new-phone") == before)
  }

  @Test("is refused for another backup of the same device")
  func archiveChanged() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    try world.backUp(to: "b.tar")
    let outcome = try world.keyhaul("restore b.tar --to new-phone --plan p")
    #expect(outcome.status == 16)
    #expect(outcome.errors.contains("why: b.tar is not the planned backup, or has changed since\n"))
  }

  static let edits = [
    (#""policy": "replace""#, #""policy": "merge""#), (#""outcome": "stays-behind""#, #""outcome": "unreadable""#),
    (#""change": "new""#, #""change": "identical""#), (#""reason": "device-bound""#, #""reason": "malformed""#),
    (#""protection": "ck""#, #""protection": "ak""#), (#""account": "anna""#, #""account": "eve""#),
    (#""label": "Chat""#, #""label": "Chats""#), (#""service": "chat.example""#, #""service": "evil.example""#),
    (#""server": "imap.example.org""#, #""server": "evil.example""#), (#""index": 3"#, #""index": 4"#),
    (#""kind": "certificate""#, #""kind": "key""#), (#""access_group": "apple""#, #""access_group": "pear""#),
    (#""same_device": false"#, #""same_device": true"#), (#""migrates": 14"#, #""migrates": 15"#),
    (#""stays_behind": 4"#, #""stays_behind": 3"#), (#""unreadable": 0"#, #""unreadable": 1"#),
    (#""removed": 1"#, #""removed": 0"#), (#""total": 18"#, #""total": 19"#),
    (#""device-bound": 4"#, #""device-bound": 5"#), (#""name": "new-phone""#, #""name": "old-phone""#),
    (#""digest": "sha256:"#, #""digest": "sha256:0"#), (#""revision": "r3""#, #""revision": "r2""#),
    (#""detail": "only the hardware key"#, #""detail": "only the key"#),
  ]

  @Test("that was edited is refused, whatever was edited in it")
  func edited() throws {
    let world = try MoveWorld()
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try world.backUp(to: "b.tar")
    try world.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    let before = try world.contents(of: "new-phone")
    let plan = String(decoding: try world.read("p"), as: UTF8.self)
    for (good, bad) in Self.edits {
      #expect(plan.contains(good), "\(good)")
      try world.write(Array(plan.replacing(good, with: bad, maxReplacements: 1).utf8), to: "edited")
      let outcome = try world.keyhaul("restore b.tar --to new-phone --plan edited --password-file .bp --yes")
      #expect(outcome.status == 16, "\(bad): \(outcome)")
      #expect(outcome.errors.hasPrefix("error: edited no longer matches new-phone\n  why: "), "\(outcome.errors)")
    }
    // An item more, and one less to be removed.
    for wrong in [
      plan.replacing(#"      "index": 17,"#, with: #"      "index": 18,"#),
      plan.replacing(#""removed": ["#, with: #""removed" : [ { "kind": "key" }, "#, maxReplacements: 1),
    ] {
      try world.write(Array(wrong.utf8), to: "edited")
      #expect(try world.keyhaul("restore b.tar --to new-phone --plan edited --password-file .bp --yes").status == 16)
    }
    #expect(try world.contents(of: "new-phone") == before)
    for other in ["{}", "[]", "", #"{"format":"migration-plan/1"}"#, String(repeating: "[", count: 100_000)] {
      try world.write(Array(other.utf8), to: "edited")
      let outcome = try world.keyhaul("restore b.tar --to new-phone --plan edited --password-file .bp --yes")
      #expect(outcome.status == 14, "\(other.prefix(40)): \(outcome)")
    }
  }

  /// What someone may do to a plan who computes its checksum again, and why it is refused all the same.
  static let forgeries: [(name: String, edit: @Sendable (inout PlanDocument) -> Void, why: String)] = [
    ("an outcome", { $0.items[3].outcome = .unreadable }, "the decision on item 3 is different now"),
    (
      "a sealed item that migrates",
      {
        $0.items[3].outcome = .migrates
        ($0.items[3].change, $0.items[3].reason) = ("new", nil)
      }, "the decision on item 3 is different now"
    ),
    ("a change", { $0.items[0].change = "identical" }, "the decision on item 0 is different now"),
    ("a reason", { $0.items[3].reason = "malformed" }, "the decision on item 3 is different now"),
    ("an item's name", { $0.items[0].identity.account = "eve" }, "the decision on item 0 is different now"),
    ("an item's class", { $0.items[0].protection = "dku" }, "the decision on item 0 is different now"),
    ("two items' order", { $0.items.swapAt(0, 1) }, "the decision on item 0 is different now"),
    ("an item less", { $0.items.removeLast() }, "it lists 17 items, but the backup has 18"),
    ("an item twice", { $0.items.append($0.items[0]) }, "it lists 19 items, but the backup has 18"),
    ("no item at all", { $0.items = [] }, "it lists 0 items, but the backup has 18"),
    ("nothing removed", { $0.removed = [] }, "different items would be removed now"),
    ("one more removed", { $0.removed.append($0.removed[0]) }, "different items would be removed now"),
    ("a count", { $0.summary.migrates += 1 }, "its summary does not match its items"),
    ("the device", { $0.target.sameDevice = true }, "it was made for another device"),
    ("the target's name", { $0.target.name = "old-phone" }, "it was made for old-phone"),
    ("the revision", { $0.target.revision = "r2" }, "it was made for revision r2; new-phone is at revision r3"),
    ("the backup", { $0.source.digest = "sha256:00" }, "b.tar is not the planned backup, or has changed since"),
    (
      "a plan of a device", { $0.source.kind = .device },
      "it was made from b.tar itself, not from a backup"
    ),
    ("a redacted plan", { $0.redacted = true }, "its names were left out, so it can be shown but not carried out"),
  ]

  @Test("that was edited and given a checksum that fits is refused, since everything is decided again")
  func forged() throws {
    let world = try MoveWorld()
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try world.backUp(to: "b.tar")
    try world.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    let before = try world.contents(of: "new-phone")
    let plan = try PlanFile(parsing: world.read("p")).document
    for forgery in Self.forgeries {
      var forged = plan
      forgery.edit(&forged)
      try world.write(PlanFile.bytes(of: forged), to: "forged")
      let outcome = try world.keyhaul("restore b.tar --to new-phone --plan forged --password-file .bp --yes")
      let why = "error: forged no longer matches new-phone why: \(forgery.why) try: plan again"
      #expect(outcome.status == 16, "\(forgery.name)")
      #expect(outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ") == why, "\(forgery.name)")
    }
    // Another policy is another plan: what it would remove is decided for the policy that it names.
    var merging = plan
    merging.policy = .merge
    try world.write(PlanFile.bytes(of: merging), to: "forged")
    #expect(try world.keyhaul("restore b.tar --to new-phone --plan forged --password-file .bp --yes").status == 16)
    #expect(try world.contents(of: "new-phone") == before)
    // Written again without an edit it is the plan that it was.
    try world.write(PlanFile.bytes(of: plan), to: "same")
    #expect(try world.keyhaul("restore b.tar --to new-phone --plan same --password-file .bp --yes").status == 0)
  }

  @Test("to which a member was added, or that was laid out again, is refused like any that was edited")
  func added() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    let before = try world.contents(of: "new-phone")
    let plan = String(decoding: try world.read("p"), as: UTF8.self)
    for (old, new) in [
      ("{\n", "{\n  \"note\": \"mine\",\n"), ("\"index\": 0,", "\"index\": 0, \"zzz\": 1,"),
      ("\"format\": ", "\"format\":"), ("\n}\n", "\n}"),
    ] {
      let edited = plan.replacing(old, with: new, maxReplacements: 1)
      #expect(edited != plan)
      try world.write(Array(edited.utf8), to: "edited")
      let outcome = try world.keyhaul("restore b.tar --to new-phone --plan edited --password-file .bp --yes")
      let words = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(outcome.status == 16, "\(new): \(outcome)")
      let why = "why: it was edited after it was saved, or an earlier version of Keyhaul saved it try: plan again"
      #expect(words.hasSuffix(why))
    }
    #expect(try world.contents(of: "new-phone") == before)
  }

  @Test("of a locked device that cannot name what it would remove is to be read, and says so once that is unlocked")
  func locked() throws {
    let world = try MoveWorld()
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try world.backUp(to: "b.tar")
    try world.succeed("device lock new-phone")
    let plan = try world.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    #expect(
      plan.hasSuffix("Saved to p. It is only a report: unlock new-phone and plan again to carry it out.\n"),
      "\(plan)")
    try world.devices.run("keyhaul device unlock new-phone --passcode-command 'echo 2468'")
    let outcome = try world.keyhaul("restore b.tar --to new-phone --plan p --password-file .bp --yes")
    #expect(outcome.status == 16)
    let words = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(words.contains("why: it was made while new-phone was locked: "), "\(words)")
    // Where nothing of the target is removed, the plan is the same unlocked.
    let other = try MoveWorld(backedUpTo: "b.tar")
    try other.succeed("device lock new-phone")
    let empty = try other.succeed("plan b.tar --to new-phone --existing merge --password-file .bp -o p")
    #expect(empty.contains("Saved to p. To do exactly this:\n"), "\(empty)")
  }

  @Test("of a restore that would be refused names no call that does it, and a name that cannot be copied is in no call")
  func calls() throws {
    let world = try MoveWorld()
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    let plan = try world.succeed("plan plain --to new-phone -o p")
    #expect(
      plan.hasSuffix(
        "Saved to p. It is only a report: it would remove items and restore none, so restore refuses to carry it out.\n"
      ),
      "\(plan)")
    #expect(try world.keyhaul("restore plain --to new-phone --plan p --yes").status == 14)
    try world.backUp(to: "b.tar")
    let odd = try world.succeed("plan b.tar --to new-phone --password-file .bp -o 'a\nb'")
    #expect(
      odd.hasSuffix("To do exactly this:\n  keyhaul restore b.tar --to new-phone --plan PLAN\n"), "\(odd)")
  }

  @Test("is shown with the folder of the devices in its call, wherever that was named")
  func folders() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let named = try world.keyhaul("device show nobody --home away/")
    #expect(named.status == 10 && named.errors.hasSuffix("  try: keyhaul --home away device list\n"), "\(named)")
    try world.devices.run("mkdir away && cp -R \"$KEYHAUL_HOME/new-phone\" away/")
    for (flag, to) in [("--home away", "new-phone"), ("", "away/new-phone")] {
      let plan = try world.succeed("plan b.tar --to \(to) \(flag) --password-file .bp -o p --yes")
      #expect(
        plan.hasSuffix("To do exactly this:\n  keyhaul --home away restore b.tar --to \(to) --plan p\n"), "\(plan)")
      // A page is kept: its calls name the device by its path.
      let page = try world.succeed("plan b.tar --to \(to) \(flag) --password-file .bp --format html -q")
      let words = page.replacing(#/<[^>]*>/#, with: "")
      #expect(words.contains("keyhaul restore b.tar --to away/new-phone --plan move.plan"), "\(words)")
      let wrong = try world.keyhaul("device passcode set \(to) \(flag) --new-passcode-command 'echo 1'")
      #expect(wrong.errors.hasSuffix("  try: keyhaul --home away device passcode change new-phone\n"), "\(wrong)")
    }
  }

  @Test("that merges says of an item that stays that it differs, and not that it already exists")
  func merging() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let merge = "--to new-phone --existing merge --password-file .bp"
    try world.succeed("restore b.tar \(merge) --yes -q")
    try world.succeed("item update new-phone --service chat.example --account anna --new-label later --yes -q")
    let plan = try world.succeed("plan b.tar \(merge)")
    #expect(plan.contains("  = already there    ^ the existing item is kept    < stays behind\n"), "\(plan)")
    #expect(plan.contains("\n  ^ generic      chat.example · anna "))
    #expect(plan.contains("\n14 will move (13 already there, 1 existing item kept), "))
    #expect(try world.succeed("restore b.tar \(merge) --yes").contains("1 existing item kept"))
  }
}
