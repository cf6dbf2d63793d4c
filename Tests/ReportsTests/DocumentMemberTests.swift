import Basics
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups
@testable import KeyhaulKit
@testable import Reports

/// Gives each member of a document a distinct value, so that swapped members are noticed.
@Suite("Members of JSON documents")
struct DocumentMemberTests {
  @Test("Each count of a verification's files and items has its own member")
  func verification() {
    let fileCounts: [(count: WritableKeyPath<BackupVerification.FileCounts, Int>, member: String)] = [
      (\.listed, "listed"),
      (\.present, "present"),
      (\.emptyWithoutPayload, "empty_not_stored"),
      (\.missing, "missing"),
      (\.unlisted, "surplus"),
      (\.withMatchingDigest, "digests_right"),
      (\.withoutDigest, "without_digest"),
      (\.withValidPadding, "padding_right"),
      (\.sizeMismatches, "other_size"),
      (\.unread, "unread"),
    ]
    var files = BackupVerification.FileCounts()
    for (index, fileCount) in fileCounts.enumerated() { files[keyPath: fileCount.count] = index + 1 }
    var verification = BackupVerification(isQuick: false)
    verification.files = files
    verification.items = .init(readable: 11, deviceBound: 12, damaged: 13)
    let document = VerificationDocument(verification, of: "b").json
    let expectedMembers = fileCounts.enumerated().map { index, fileCount in
      (fileCount.member, JSONValue.count(index + 1))
    }
    #expect(document["files"] == .object(expectedMembers))
    #expect(document["items"] == ["readable": 11, "device_bound": 12, "damaged": 13])
    #expect(document["archive"] == "b" && document["quick"] == false && document["device_key"] == .null)
  }

  @Test("Each part of a fault has its own member")
  func fault() {
    var verification = BackupVerification(isQuick: true)
    verification.add(
      .init(.items, .itemDamaged, file: "KeychainDomain/x", offset: 1, byteCount: 2, item: 3, "a reason"))
    verification.skip(.seal, reason: "there is none")
    verification.conclude(.structure, "a folder")
    let document = VerificationDocument(verification, of: "b").json
    #expect(
      document["faults"] == [
        [
          "check": "items", "id": "item-damaged", "file": "KeychainDomain/x", "offset": 1, "bytes": 2, "index": 3,
          "detail": "a reason",
        ]
      ])
    #expect(document["unchecked"] == [["id": "seal", "detail": "there is none"]])
    #expect(document["checks"] == [["id": "structure", "ok": true, "detail": "a folder"]])
    #expect(document["fault_count"] == 1 && document["quick"] == true)
  }

  @Test(
    "In a backup's document, `left_out` lists the items that are not exported, and `deleted` lists the deleted ones")
  func backup() {
    func decision(_ account: String, _ outcome: MigrationPlan.Outcome, _ detail: String? = nil)
      -> MigrationPlan.Decision
    {
      var identity = ItemDescriptor(undecryptable: .genericPassword)
      identity.account = account
      return .init(index: 0, identity: identity, protection: .always, outcome: outcome, detail: detail)
    }
    var report = ExportReport()
    report.exportedCount = 5
    report.omissions = [
      decision("token", .staysBehind(.hardwareKey)), decision("gone", .staysBehind(.deleted)),
      decision("damaged", .unreadable(.tagMismatch), "a detail"), decision("also gone", .staysBehind(.deleted)),
    ]
    let document = BackupDocument(
      report, of: "phone", to: "b.tar", written: nil, isEncrypted: true, isKeyPublished: false
    ).json
    func members(_ name: String) -> [[JSONValue?]] {
      (document[name]?.arrayValue ?? []).map { [$0["account"], $0["protection"], $0["reason"], $0["detail"]] }
    }
    #expect(
      members("left_out") == [
        ["token", "dk", "hardware-key", nil], ["damaged", "dk", "tag-mismatch", "a detail"],
      ])
    #expect(members("deleted") == [["gone", "dk", "deleted", nil], ["also gone", "dk", "deleted", nil]])
    // The total is the 5 exported and 2 left-out items. Deleted items do not count.
    #expect(document["items"] == 5 && document["total"] == 7)
    #expect(document["device"] == "phone" && document["archive"] == "b.tar" && document["bytes"] == .null)
    #expect(document["encrypted"] == true && document["published_hardware_key"] == false)
  }

  private func item(_ account: String, _ protection: ProtectionClass, modified: Double = 0) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string("s"), .accessGroup: .string("g"),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: modified)), .synchronizable: .integer(0),
      ])
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array(account.utf8))
    return item
  }

  /// Creates the entry of a device-bound item that cannot be decrypted.
  private func encryptedEntry(_ index: Int) -> KeychainEntry {
    let descriptor = ItemDescriptor(undecryptable: .genericPassword)
    return KeychainEntry(
      index: index, undecryptable: descriptor, protection: .whenUnlockedThisDeviceOnly, persistentReference: nil,
      reason: .deviceBound)
  }

  private func side(_ name: String, _ items: [KeychainEntry]) -> ComparisonSide {
    ComparisonSide(
      kind: .archive, name: name, argument: name, deviceName: "\(name)-device", items: items, hasKeychain: true,
      omissions: [], keybagDamage: nil)
  }

  private func document(_ first: [KeychainEntry], _ second: [KeychainEntry]) throws -> JSONValue {
    let difference = try KeychainDifference(from: first, to: second)
    return DifferenceDocument(side("one", first), side("two", second), difference, listsBlindSpots: false).json
  }

  private func accounts(_ items: JSONValue?) -> [JSONValue?]? { items?.arrayValue?.map { $0["account"] } }

  @Test("Each item of a comparison is listed on the side that has it, also with the two sides swapped")
  func difference() throws {
    let same = KeychainEntry(index: 0, item: item("same", .whenUnlocked))
    let only = KeychainEntry(index: 2, item: item("only", .whenUnlocked))
    let bound = KeychainEntry(index: 3, item: item("bound", .whenUnlockedThisDeviceOnly))
    let first = [same, only, bound]
    let second = [same, encryptedEntry(4)]
    let forward = try document(first, second)
    let backward = try document(second, first)

    #expect(forward["same"] == 1 && backward["same"] == 1)
    #expect(accounts(forward["removed"]) == ["only"] && accounts(forward["added"]) == [])
    #expect(accounts(backward["removed"]) == [] && accounts(backward["added"]) == ["only"])
    // `bound` can be decrypted only in the first keychain, so that side lists it in `doubtful`. The other side counts its
    // encrypted item in `sealed`.
    #expect(
      accounts(forward["doubtful"]?["in_first"]) == ["bound"] && accounts(forward["doubtful"]?["in_second"]) == [])
    #expect(
      accounts(backward["doubtful"]?["in_first"]) == [] && accounts(backward["doubtful"]?["in_second"]) == ["bound"])
    #expect(forward["sealed"]?["only_in_second"] == 1 && forward["sealed"]?["only_in_first"] == 0)
    #expect(backward["sealed"]?["only_in_second"] == 0 && backward["sealed"]?["only_in_first"] == 1)
    #expect(forward["first"]?["name"] == "one" && forward["second"]?["device_name"] == "two-device")
    #expect(forward["first"]?["items"] == 3 && forward["second"]?["items"] == 2)
  }

  @Test("A changed item has the index and the date of each side, also with the two sides swapped")
  func changedItem() throws {
    let old = KeychainEntry(index: 1, item: item("moved", .whenUnlocked, modified: 100))
    let new = KeychainEntry(index: 5, item: item("moved", .afterFirstUnlock, modified: 200))
    func checkChange(
      from first: (entry: KeychainEntry, date: String), to second: (entry: KeychainEntry, date: String)
    ) throws {
      let change = try #require(try document([first.entry], [second.entry])["changed"]?.arrayValue?.first)
      let (firstIndex, secondIndex) = (try #require(first.entry.index), try #require(second.entry.index))
      #expect(change["index_first"] == .count(firstIndex) && change["index_second"] == .count(secondIndex))
      #expect(change["modified_first"] == .string(first.date) && change["modified_second"] == .string(second.date))
      #expect(change["attributes"]?.arrayValue?.contains("pdmn") == true && change["secret_changed"] == false)
    }
    let oldDate = "2001-01-01T00:01:40Z"
    let newDate = "2001-01-01T00:03:20Z"
    try checkChange(from: (old, oldDate), to: (new, newDate))
    try checkChange(from: (new, newDate), to: (old, oldDate))
  }
}
