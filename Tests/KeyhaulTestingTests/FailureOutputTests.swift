import Basics
import Foundation
import GRDB
import KeyhaulTesting
import Reports
import Testing
import VirtualDevice

@Suite("Output of failed tests")
struct FailureOutputTests {
  let phone: Phone
  let move: Move

  init() throws {
    phone = try Phone(apps: ["app": ["team.app", "team.shared"]])
    try phone.run { SignIn.remember() }
    move = try phone.move(to: .newPhone, backup: .encrypted)
  }

  @Test("The output for an item has its outcome, the reason, and the advice")
  func staysBehind() {
    #expect(
      "\(move["device id"])" == """
        generic password "org.example.app/device id" (when unlocked, this device) stays behind \
        in a move to a new phone from an encrypted backup
          why: device-bound: the item stays on the source device
               only the source device's key can decrypt it
          do:  \(Reason.deviceBound.explanation.action)
        """)
    #expect(
      "\(move["session token"])" == """
        generic password "org.example.app/session token" (after first unlock) migrates \
        in a move to a new phone from an encrypted backup
        """)
    #expect("\(Fate.staysBehind(.deviceBound))" == "stays behind (device-bound)")
    #expect("\(Fate.migrates)" == "migrates")
  }

  @Test("The fate of a misspelled name is neither equal nor unequal to an outcome")
  func typoInExpectation() {
    let typo = move["sesion token"]
    #expect(typo == .absent)
    // Neither comparison is true, so a test with a misspelled name fails in either case.
    #expect(!(typo == .migrates) && !(typo != .migrates))
    #expect(!(typo == .staysBehind(.deviceBound)) && !(typo != .staysBehind(.deviceBound)))
    #expect(move["session token"] != .staysBehind(.deviceBound))
  }

  @Test("The output for a misspelled name suggests a similar one, and lists all items")
  func typo() {
    #expect(
      "\(move["sesion token"])" == """
        no item on the phone is called "sesion token"; "session token" is similar
          the phone has:
            generic password "org.example.app/session token" (after first unlock)
            generic password "org.example.app/device id" (when unlocked, this device)
        """)
  }

  @Test("The output for an empty phone states that the app stored nothing, and no expectation matches")
  func nothing() throws {
    let moveOfEmptyPhone = try Phone().move(to: .newPhone, backup: .encrypted)
    let item = moveOfEmptyPhone["password"]
    #expect(!(item == .absent) && !(item != .migrates))
    #expect(
      "\(item)".hasPrefix(
        "the phone's keychain is empty: the app stored nothing in it. Check the status of its keychain calls, and that "
          + "they run inside phone.run. If the app makes them on a queue or in a detached task, write "
          + "phone.run(inWholeProcess: true)"))
    #expect("\(moveOfEmptyPhone)" == "\(item)")
    #expect(moveOfEmptyPhone.items.isEmpty)
  }

  @Test("The output for an ambiguous name lists each item, and an expectation matches only if all share an outcome")
  func several() throws {
    #expect(!(move["org.example.app"] == .migrates) && !(move["org.example.app"] != .migrates))
    #expect(
      "\(move["org.example.app"])".hasPrefix("2 items are called \"org.example.app\" and have different outcomes; "))
    #expect(move["org.example.app"].reason == nil)
    #expect(move["org.example.app/device id"] == .staysBehind(.deviceBound))

    try phone.run { SignIn.add("session token", "other", group: "team.shared") }
    let moveWithTwoTokens = try phone.move(to: .newPhone, backup: .encrypted)
    #expect(moveWithTwoTokens["session token"] == .migrates)
    #expect("\(moveWithTwoTokens["session token"])".hasPrefix("2 items are called \"session token\"\n"))
    #expect(moveWithTwoTokens["session token", inGroup: "team.shared"] == .migrates)
    let tokenInOtherGroup = moveWithTwoTokens["session token", inGroup: "team.app2"]
    #expect(tokenInOtherGroup == .absent)
    #expect(
      "\(tokenInOtherGroup)" == """
        no item on the phone is called "session token" in the access group "team.app2"; \
        the name occurs in "team.app", "team.shared"
        """)
  }

  @Test("The output for a move lists all items")
  func allItems() {
    #expect(
      "\(move)" == """
        2 items in a move to a new phone from an encrypted backup: 1 migrating, 1 staying behind
          generic password "org.example.app/session token" (after first unlock) migrates
          generic password "org.example.app/device id" (when unlocked, this device) stays behind (device-bound)
        """)
  }

  @Test("The output for a missing name states that it may belong to an unreadable item")
  func damaged() throws {
    let directory = URL(filePath: try phone.client().device.directory)
    let keychain = try #require(
      try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil).first {
        $0.pathExtension == "db"
      })
    try DatabaseQueue(path: keychain.path).write { database in
      // Only the session token has the class `ck`.
      try database.execute(sql: "UPDATE genp SET data = substr(data, 1, 20) WHERE pdmn = 'ck'")
    }
    let move = try phone.move(to: .newPhone, backup: .encrypted)
    #expect(move.unreadable.map(\.fate) == [.unreadable(.malformed)])
    #expect(
      "\(move)".hasPrefix("2 items in a move to a new phone from an encrypted backup: 1 staying behind, 1 damaged\n"))
    #expect(move["device id"] == .staysBehind(.deviceBound))
    let damagedToken = move["session token"]
    #expect(!(damagedToken == .absent) && !(damagedToken != .migrates) && !(damagedToken == .unreadable(.malformed)))
    #expect("\(damagedToken)".hasSuffix("\n  items whose names cannot be read: 1"))
  }

  @Test("The output for a misspelled name is the same in all four moves")
  func typoInAllMoves() throws {
    let expected = Fates(
      newPhone: .migrates, newPhoneUnencrypted: .staysBehind(.backupNotEncrypted), samePhone: .migrates,
      samePhoneUnencrypted: .migrates)
    let moves = try phone.moves()
    #expect(moves["session token"] == expected && moves["device id"] != expected)
    #expect(!(moves["sesion token"] == expected) && !(moves["sesion token"] != expected))
    #expect("\(moves["sesion token"])".contains("\nsamePhone: no item on the phone is called \"sesion token\"; "))
  }

  @Test("The output of a failed test contains no secret")
  func secrecy() {
    let output = "\(move) \(move.items) \(move["device id"]) \(move["x"])"
    #expect(!output.contains("d-0815") && !output.contains("t-4711"))
  }
}
