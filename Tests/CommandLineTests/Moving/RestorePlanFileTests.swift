import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Saved plans")
struct RestorePlanFileTests {
  @Test(
    "A saved plan equals the printed plan, is readable only by its owner, and can be carried out",
    arguments: ["replace", "merge"])
  func savedPlan(policy: String) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.zip")
    let printed = try sandbox.succeed("plan b.zip --to new-phone --existing \(policy) --password-file .bp --json -o p")
    #expect(Array(printed.utf8) == (try sandbox.read("p")))
    #expect(try sandbox.devices.permissions(of: "p") == 0o600)
    #expect(try sandbox.names().filter { $0.hasPrefix("p") } == ["p"])
    let piped = try sandbox.succeed("plan b.zip --to new-phone --existing \(policy) --password-file .bp -o -")
    #expect(try PlannedItems(sandbox.object(piped)) == PlannedItems(sandbox.object(printed)))
    // A dry run changes nothing, so the plan stays valid.
    try sandbox.succeed("restore b.zip --to new-phone --plan p --password-file .bp -n")
    #expect(try sandbox.keyhaul("restore b.zip --to new-phone --plan p --password-file .bp --yes").status == 0)
    #expect(
      try sandbox.object(sandbox.succeed("item find new-phone --json"))["items"].map { ($0 as? [Any])?.count } == 14)
  }

  @Test("A saved plan is valid for the same backup in another container")
  func otherContainer() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.succeed("plan b/ --to new-phone --password-file .bp -o p")
    try sandbox.devices.run("tar -cf c.tar b")
    #expect(try sandbox.keyhaul("restore c.tar --to new-phone --plan p --password-file .bp --yes").status == 0)
  }

  @Test("After an item was added, a saved plan is rejected before Keyhaul asks for a password")
  func itemAdded() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service later --account me --secret-file -")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --plan p --yes")
    #expect(outcome.status == 16)
    #expect(
      outcome.errors == """
        error: p no longer matches new-phone
          why: it was made for revision r2; new-phone is at revision r3
          try: plan again

        """)
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("A saved plan is rejected for another backup of the same device")
  func backupChanged() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    try sandbox.backUp(to: "b.tar")
    let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --plan p")
    #expect(outcome.status == 16)
    #expect(outcome.errors.contains("why: b.tar is not the planned backup, or has changed since\n"))
  }

  static let edits: [(valid: String, edited: String)] = [
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
    (#""detail": "only the source device's key"#, #""detail": "only the key"#),
  ]

  @Test("An edited plan is rejected")
  func edited() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.backUp(to: "b.tar")
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let plan = String(decoding: try sandbox.read("p"), as: UTF8.self)
    let restore = "restore b.tar --to new-phone --plan edited --password-file .bp --yes"
    for (valid, edited) in Self.edits {
      #expect(plan.contains(valid), "\(valid)")
      try sandbox.write(Array(plan.replacing(valid, with: edited, maxReplacements: 1).utf8), to: "edited")
      let outcome = try sandbox.keyhaul(restore)
      #expect(outcome.status == 16, "\(edited): \(outcome)")
      #expect(outcome.errors.hasPrefix("error: edited no longer matches new-phone\n  why: "), "\(outcome.errors)")
    }
    let withWrongIndex = plan.replacing(#"      "index": 17,"#, with: #"      "index": 18,"#)
    let withOneMoreRemoval = plan.replacing(
      #""removed": ["#, with: #""removed" : [ { "kind": "key" }, "#, maxReplacements: 1)
    for edited in [withWrongIndex, withOneMoreRemoval] {
      try sandbox.write(Array(edited.utf8), to: "edited")
      #expect(try sandbox.keyhaul(restore).status == 16)
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("A file that does not contain a plan is rejected")
  func notPlan() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    for text in ["{}", "[]", "", #"{"format":"migration-plan/1"}"#, String(repeating: "[", count: 100_000)] {
      try sandbox.write(Array(text.utf8), to: "p")
      let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --plan p --password-file .bp --yes")
      #expect(outcome.status == 14, "\(text.prefix(40)): \(outcome)")
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  /// Edits of a plan whose checksum is computed again. `why` states why the edited plan is rejected.
  static let forgeries: [(name: String, edit: @Sendable (inout PlanDocument) -> Void, why: String)] = [
    ("an outcome", { $0.items[3].outcome = .unreadable }, "the decision on item 3 is different now"),
    (
      "an encrypted item that migrates",
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
    ("one item missing", { $0.items.removeLast() }, "it lists 17 items, but the backup has 18"),
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

  @Test("An edited plan with a valid checksum is rejected, because every decision is made again")
  func forged() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.backUp(to: "b.tar")
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let plan = try PlanFile(parsing: sandbox.read("p")).document
    for forgery in Self.forgeries {
      var forged = plan
      forgery.edit(&forged)
      try sandbox.write(PlanFile.bytes(of: forged), to: "forged")
      let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --plan forged --password-file .bp --yes")
      let why = "error: forged no longer matches new-phone why: \(forgery.why) try: plan again"
      #expect(outcome.status == 16, "\(forgery.name)")
      #expect(unwrapped(outcome.errors) == why, "\(forgery.name)")
    }
    // With the policy `merge`, the plan would remove different items.
    var merging = plan
    merging.policy = .merge
    try sandbox.write(PlanFile.bytes(of: merging), to: "forged")
    #expect(try sandbox.keyhaul("restore b.tar --to new-phone --plan forged --password-file .bp --yes").status == 16)
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    // Written again without an edit, the plan is valid.
    try sandbox.write(PlanFile.bytes(of: plan), to: "same")
    #expect(try sandbox.keyhaul("restore b.tar --to new-phone --plan same --password-file .bp --yes").status == 0)
  }

  @Test("A plan with an added member or a changed layout is rejected as edited")
  func added() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let plan = String(decoding: try sandbox.read("p"), as: UTF8.self)
    let edits: [(old: String, new: String)] = [
      ("{\n", "{\n  \"note\": \"mine\",\n"), ("\"index\": 0,", "\"index\": 0, \"zzz\": 1,"),
      ("\"format\": ", "\"format\":"), ("\n}\n", "\n}"),
    ]
    for (old, new) in edits {
      let edited = plan.replacing(old, with: new, maxReplacements: 1)
      #expect(edited != plan)
      try sandbox.write(Array(edited.utf8), to: "edited")
      let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --plan edited --password-file .bp --yes")
      #expect(outcome.status == 16, "\(new): \(outcome)")
      let why = "why: it was edited after it was saved, or an earlier version of Keyhaul saved it try: plan again"
      #expect(unwrapped(outcome.errors).hasSuffix(why))
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("A plan for a locked device that removes items is only a report, and restore rejects it after the unlock")
  func locked() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.backUp(to: "b.tar")
    try sandbox.succeed("device lock new-phone")
    let plan = try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o p")
    #expect(
      plan.hasSuffix("Saved to p. It is only a report: unlock new-phone and plan again to carry it out.\n"),
      "\(plan)")
    try sandbox.devices.run("keyhaul device unlock new-phone --passcode-command 'echo 2468'")
    let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --plan p --password-file .bp --yes")
    #expect(outcome.status == 16)
    #expect(unwrapped(outcome.errors).contains("why: it was made while new-phone was locked: "), "\(outcome)")
  }

  @Test("A plan for a locked device that removes nothing can be carried out")
  func lockedMerge() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("device lock new-phone")
    let plan = try sandbox.succeed("plan b.tar --to new-phone --existing merge --password-file .bp -o p")
    #expect(plan.contains("Saved to p. To do exactly this:\n"), "\(plan)")
  }

  @Test("A saved plan that would be rejected is called a report, and no restore command is shown")
  func report() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    let plan = try sandbox.succeed("plan plain --to new-phone -o p")
    #expect(
      plan.hasSuffix(
        "Saved to p. It is only a report: it would remove items and restore none, so restore refuses to carry it out.\n"
      ),
      "\(plan)")
    #expect(try sandbox.keyhaul("restore plain --to new-phone --plan p --yes").status == 14)
  }

  @Test("If a plan's name contains a line break, the suggested restore command has PLAN in its place")
  func nameWithLineBreak() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let planWithLineBreak = try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o 'a\nb'")
    #expect(
      planWithLineBreak.hasSuffix("To do exactly this:\n  keyhaul restore b.tar --to new-phone --plan PLAN\n"),
      "\(planWithLineBreak)")
  }

  @Test("Suggested commands name the device folder if it was given")
  func folders() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let shown = try sandbox.keyhaul("device show nobody --home away/")
    #expect(shown.status == 10 && shown.errors.hasSuffix("  try: keyhaul --home away device list\n"), "\(shown)")
    try sandbox.devices.run("mkdir away && cp -R \"$KEYHAUL_HOME/new-phone\" away/")
    for (flag, target) in [("--home away", "new-phone"), ("", "away/new-phone")] {
      let plan = try sandbox.succeed("plan b.tar --to \(target) \(flag) --password-file .bp -o p --yes")
      #expect(
        plan.hasSuffix("To do exactly this:\n  keyhaul --home away restore b.tar --to \(target) --plan p\n"), "\(plan)")
      // A page may be read later, so its commands name the device by its path.
      let page = try sandbox.succeed("plan b.tar --to \(target) \(flag) --password-file .bp --format html -q")
      let text = page.replacing(#/<[^>]*>/#, with: "")
      #expect(text.contains("keyhaul restore b.tar --to away/new-phone --plan move.plan"), "\(text)")
      let refused = try sandbox.keyhaul("device passcode set \(target) \(flag) --new-passcode-command 'echo 1'")
      #expect(refused.errors.hasSuffix("  try: keyhaul --home away device passcode change new-phone\n"), "\(refused)")
    }
  }

  @Test("A plan with --existing merge counts a kept item that differs separately from items that are already there")
  func merging() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let merge = "--to new-phone --existing merge --password-file .bp"
    try sandbox.succeed("restore b.tar \(merge) --yes -q")
    try sandbox.succeed("item update new-phone --service chat.example --account anna --new-label later --yes -q")
    let plan = try sandbox.succeed("plan b.tar \(merge)")
    #expect(plan.contains("  = already there    ^ the existing item is kept    < stays behind\n"), "\(plan)")
    #expect(plan.contains("\n  ^ generic      chat.example · anna "))
    #expect(plan.contains("\n14 will move (13 already there, 1 existing item kept), "))
    #expect(try sandbox.succeed("restore b.tar \(merge) --yes").contains("1 existing item kept"))
  }
}
