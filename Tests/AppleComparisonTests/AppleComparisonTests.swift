import Foundation
import Security
import Testing

#if canImport(KeyhaulTesting)
  import KeyhaulTesting
#endif

/// Makes the keychain calls of `Fixtures/secitem-calls.csv`, and compares their results with those in the table.
///
/// On Linux, the calls reach Keyhaul's `Security` module. In a Simulator, they reach Apple's framework. Therefore the
/// tests use only public functions of both, except in `VirtualPhones`. The README says how to run them in Xcode.
@Suite(
  "Keychain calls and their results in the table", .serialized,
  .enabled(if: hasAppKeychain, "requires iOS or Linux"))
struct AppleComparisonTests {
  #if canImport(KeyhaulTesting)
    private let keychain = VirtualPhones()
  #else
    private let keychain: AppKeychain

    init() throws { keychain = try AppKeychain(named: "Apple's Security framework") }
  #endif

  @Test("Each keychain call returns the status and the result in the table")
  func table() throws {
    let comparison = try CallComparison(of: CallRow.table(), with: keychain)
    try publish(comparison.report)
    #expect(comparison.differences.isEmpty, "\(comparison.report)")
    #if canImport(KeyhaulTesting)
      let expectedReasons = Self.reasonsWithoutPublicFunctions.union([
        "an App Clip", "a context whose user has refused before",
      ])
      #expect(Set(comparison.notRunLines.keys) == expectedReasons, "\(comparison.report)")
    #endif
    // A comparison of only half of the rows would show too little.
    #expect(comparison.notRunCount < comparison.rowCount / 2, "\(comparison.report)")
  }

  @Test("A report shows each difference with its line, its call, and the expected and the received values")
  func difference() throws {
    var row = try #require(
      CallRow.rows(
        of: """
          call,app,device,given,query,changes,status,result,rule
          find,mail,,genp acct=a v_Data=d:x,genp r_Data=!true,,0,data:x,The data is returned
          """
      ).first)
    #expect(try CallComparison(of: [row], with: keychain).differences.isEmpty)
    row.result = "data:y"
    #expect(try CallComparison(of: [row], with: keychain).report.contains("received: status 0, data:x"))
    row.status = -25300
    let report = try CallComparison(of: [row], with: keychain).report
    for line in [
      "1 calls: 0 as expected, 1 different, 0 not run", "line 2: The data is returned",
      "  call: find as mail: genp r_Data=!true", "  before: genp acct=a v_Data=d:x",
      "  expected: status -25300, data:y", "  received: status 0, data:x",
    ] {
      #expect(report.split(separator: "\n").contains { $0 == line }, "\(line)")
    }
  }

  @Test("The shape of a result contains only data that the row itself stores")
  func shapes() throws {
    let row = try #require(CallRow.table().first { $0.query.contains("r_Data=!true") && $0.result == "data:x" })
    #expect(ResultShape(row).text(of: Data("x".utf8) as CFData) == "data:x")
    #expect(ResultShape(row).text(of: Data("hunter2".utf8) as CFData) == "data of 7 bytes")
    #expect(ResultShape(row).text(of: ["v_Data": Data("hunter2".utf8)] as CFDictionary) == "dictionary v_Data")
    #expect(ResultShape(row).text(of: [Data("hunter2".utf8)] as CFArray) == "list 1 of data of 7 bytes")
  }

  /// The reasons for rows that cannot be run with public functions. The reasons are the same on all systems.
  static let reasonsWithoutPublicFunctions: Set = [
    "an access control without constraints or for deletion", "a certificate without attributes",
  ]

  /// Prints a report, attaches it to the test, and writes it to the file in `KEYHAUL_CALLS_REPORT`.
  private func publish(_ report: String) throws {
    print(report)
    Attachment.record(report, named: "keychain-calls.txt")
    if let path = ProcessInfo.processInfo.environment["KEYHAUL_CALLS_REPORT"] {
      try report.write(toFile: path, atomically: true, encoding: .utf8)
    }
  }
}

/// Whether keychain calls reach only the items of an app. On macOS, they would reach the user's keychain, so the tests
/// are skipped.
#if os(macOS)
  private let hasAppKeychain = false
#else
  private let hasAppKeychain = true
#endif

#if canImport(KeyhaulTesting)
  /// Runs the comparison on Linux as in a Simulator: with `AppKeychain`, in one app of a virtual phone.
  @Suite("Keychain calls of one app and their results in the table")
  struct OneAppComparisonTests {
    private static let groups = ["TEAM.org.example.KeychainCalls.shared", "TEAM.org.example.KeychainCalls"]

    private func phone(passcode: String? = Phone.standardPasscode, groups: [String] = groups) throws -> Phone {
      try Phone(passcode: passcode, apps: ["KeychainCalls": groups])
    }

    private func inApp<Result>(of phone: Phone, _ body: (AppKeychain) throws -> Result) throws -> Result {
      try DefaultKeychain.using(phone.client(as: "KeychainCalls")) { try body(AppKeychain(named: "one app")) }
    }

    @Test(
      "One app's calls have the expected results, each other row has a reason, and the keychain is empty afterwards",
      arguments: [
        (Phone.standardPasscode, groups, []),
        (nil, [groups[1]], ["a passcode", "a second access group of the app"]),
      ] as [(String?, [String], [String])])
    func table(passcode: String?, groups: [String], additionalReasons: [String]) throws {
      let phone = try phone(passcode: passcode, groups: groups)
      let comparison = try inApp(of: phone) { try CallComparison(of: CallRow.table(), with: $0) }
      #expect(comparison.differences.isEmpty, "\(comparison.report)")
      let expectedReasons = AppleComparisonTests.reasonsWithoutPublicFunctions.union([
        "a device that is locked or was restarted", "a device without a passcode", "an answer of the user",
        "another app", "the row number of an item in the database", "a device with iCloud Keychain",
      ]).union(additionalReasons)
      #expect(Set(comparison.notRunLines.keys) == expectedReasons, "\(comparison.report)")
      #expect(!comparison.report.contains("TEAM.org.example"))
      #expect(try phone.itemCount == 0)
    }

    @Test("If an unreadable row stops the comparison, the items of earlier rows are still deleted")
    func interrupted() throws {
      let phone = try phone()
      let rows = try CallRow.rows(
        of: """
          call,app,device,given,query,changes,status,result,rule
          add,mail,,genp acct=a,genp acct=b,,0,,An item is added
          add,mail,,genp acct=c,genp acct=@tomorrow,,0,,A date that is not a number
          """)
      #expect(throws: QueryBuilder.Unreadable.self) {
        try inApp(of: phone) { _ = try CallComparison(of: rows, with: $0) }
      }
      #expect(try phone.itemCount == 0)
    }

    @Test("The comparison refuses an app whose access group is not meant for it, and does not delete the app's items")
    func refused() throws {
      let phone = try phone(groups: ["TEAM.org.example.mail"])
      try DefaultKeychain.using(phone.client(as: "KeychainCalls")) {
        let item: [String: Any] = [kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "anna"]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
      }
      #expect(throws: AppKeychain.Refused.self) { try inApp(of: phone) { $0 } }
      #expect(try phone.itemCount == 1)
    }
  }
#endif
