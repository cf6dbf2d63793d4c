import Foundation
import Testing

@testable import keyhaul

@Suite("Restores of selected items")
struct RestoreOnlyTests {
  private func accounts(on device: String, in sandbox: PhoneSandbox) throws -> Set<String> {
    let items = try sandbox.object(sandbox.succeed("item find \(device) --json"))["items"] as? [[String: Any]] ?? []
    return Set(items.compactMap { ($0["attributes"] as? [String: Any])?["acct"] as? String })
  }

  @Test("With merge, the selected items are restored, and other items on the target stay", arguments: [false, true])
  func selected(usesPlan: Bool) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    // Both items have the account `anna`. An index may be listed twice.
    try sandbox.write(Array(#"{"indexes": [2, 10, 2]}"#.utf8), to: "few")
    var flags = "--only few --existing merge --password-file .bp"
    if usesPlan {
      try sandbox.succeed("plan b.tar --to new-phone --existing merge --password-file .bp -o p -q")
      flags += " --plan p"
    }
    let accountsBefore = try accounts(on: "new-phone", in: sandbox)
    let dryRun = try sandbox.keyhaul("restore b.tar --to new-phone \(flags) -n --json")
    let plan = try sandbox.object(dryRun.output)
    #expect((plan["items"] as? [[String: Any]])?.compactMap { $0["index"] as? Int } == [2, 10])
    #expect(try accounts(on: "new-phone", in: sandbox) == accountsBefore)
    #expect(
      try sandbox.succeed("restore b.tar --to new-phone \(flags)") == "Restored 2 items to new-phone in one step.\n")
    #expect(try accounts(on: "new-phone", in: sandbox) == accountsBefore.union(["anna"]))
  }

  @Test("Selected items that cannot be restored are reported")
  func unrestorable() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array(#"{"indexes": [2, 3]}"#.utf8), to: "few")
    let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --only few --existing merge --password-file .bp")
    #expect(outcome.status == 0)
    #expect(
      outcome.errors == """
        warning: 1 item of few will not be restored
          why: the first is item 3: device-bound
          try: keyhaul explain device-bound

        """)
    #expect(outcome.output == "Restored 1 item to new-phone in one step; 1 stayed behind.\n")
  }

  @Test("With an empty list, a merge changes nothing, and a restore without merge is rejected")
  func none() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array(#"{"indexes": []}"#.utf8), to: "few")
    let accountsBefore = try accounts(on: "new-phone", in: sandbox)
    let merged = try sandbox.keyhaul("restore b.tar --to new-phone --only few --existing merge --password-file .bp")
    #expect(merged == .init(output: "Nothing was restored to new-phone.\n", errors: "", status: 0))
    let replaced = try sandbox.keyhaul("restore b.tar --to new-phone --only few --password-file .bp --yes")
    #expect(
      replaced.status == 14
        && unwrapped(replaced.errors).hasSuffix(
          "try: list items in few; --only without --existing merge removes the existing items"),
      "\(replaced)")
    #expect(try accounts(on: "new-phone", in: sandbox) == accountsBefore)
  }

  @Test("Without merge, Keyhaul still asks before it removes the target's items")
  func replacing() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array(#"{"indexes": [2]}"#.utf8), to: "few")
    let unconfirmed = try sandbox.keyhaul("restore b.tar --to new-phone --only few --password-file .bp")
    #expect(
      unconfirmed.status == 64 && unconfirmed.errors.contains("removing 2 items from new-phone must be confirmed"))
    #expect(
      try sandbox.succeed("restore b.tar --to new-phone --only few --password-file .bp --yes")
        == "Restored 1 item to new-phone in one step; 2 removed.\n")
  }

  @Test("With a saved plan, --only is rejected if the restore would remove items that the complete plan keeps")
  func planned() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array(#"{"indexes": [2]}"#.utf8), to: "few")
    try sandbox.succeed("plan b.tar --to old-phone --password-file .bp -o p -q")
    let deviceBefore = try sandbox.contents(of: "old-phone")
    for flags in ["-n", "--yes"] {
      let outcome = try sandbox.keyhaul("restore b.tar --to old-phone --plan p --only few --password-file .bp \(flags)")
      #expect(outcome.status == 64, "\(outcome)")
      #expect(outcome.errors.hasPrefix("error: few leaves out items that p puts back\n"), "\(outcome)")
    }
    #expect(try sandbox.contents(of: "old-phone") == deviceBefore)
  }

  @Test("Invalid lists, and indexes that the backup does not have, are rejected")
  func refused() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    // The backup has 18 items, with the indexes 0 to 17.
    let cases: [(text: String, status: Int32)] = [
      (#"{"indexes": [18]}"#, 64), (#"{"indexes": [-1]}"#, 64), (#"{"indexes": [0.5]}"#, 14), ("[]", 14), ("", 14),
      (#"{"indexes": ["0"]}"#, 14), (#"{"indexes": [0], "more": 1}"#, 14), (#"{"items": [0]}"#, 14), ("{}", 14),
    ]
    for (text, status) in cases {
      try sandbox.write(Array(text.utf8), to: "few")
      let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --only few --password-file .bp --yes")
      #expect(outcome.status == status, "\(text): \(outcome)")
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }
}
