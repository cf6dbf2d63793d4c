import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import DeviceServer
@testable import keyhaul

@Suite("Pages of the explain command")
struct ExplanationTests {
  @Test(
    "Every reason in a report has a page with the texts of the reason's explanation", arguments: GlossaryTerm.allCases)
  func terms(term: GlossaryTerm) throws {
    let page = try Explain.explanation(of: term.id)
    let text = term.explanation
    #expect(page.id == term.id && page.headline == text.headline && page.rule == text.rule)
    #expect(page.effect == text.effect && page.action == text.action && page.source == text.source)
  }

  @Test("Every finding and fault has exactly one page")
  func findings() throws {
    let ids =
      BackupFinding.Kind.allCases.map(\.rawValue) + BackupVerification.Fault.Kind.allCases.map(\.rawValue)
    for id in ids {
      let page = try Explain.explanation(of: id)
      #expect(page.id == id && [page.headline, page.rule, page.effect, page.action].allSatisfy { !$0.isEmpty })
    }
    #expect(Set(Explanation.all.map(\.id)).count == Explanation.all.count)
  }

  @Test("The page of a finding that leads to a refusal names the exit code", arguments: examples)
  func refusals(finding: BackupFinding) throws {
    let effect = try Explain.explanation(of: finding.kind.rawValue).effect
    let isRefused = BackupPurpose.allCases.contains { finding.blocks($0) }
    #expect(effect.contains("refuse") == isRefused, "\(effect)")
    let code = finding.refusal.category == .refused ? 14 : 13
    #expect(effect.contains("exit code \(code)") == isRefused, "\(effect)")
  }

  /// An example of every kind of finding, except the kinds that share the page of a `GlossaryTerm`.
  private static let examples: [BackupFinding] = [
    .manifestUnreadable(reason: ""), .manifestMissing, .versionMissing, .keybagUnusable(reason: ""),
    .classKeysDamaged(reason: ""),
    .stateMissing, .propertyListUnreadable(name: "Status.plist", reason: ""), .falseClaim(reason: ""), .decryptedCopy,
    .passwordDenied(reason: ""), .wrapsUnusual(reason: ""), .listTrailingBytes(count: 1, isWholePages: false),
    .listJournalUnread(name: "Manifest.db-wal", byteCount: 1, reason: ""),
    .listDamaged(readable: 0, lost: nil, reason: ""),
    .listNamesNotUTF8(name: "Manifest.db", count: 1, first: ""), .payloadsRenamed(count: 1, unread: 0, first: ""),
    .listUnreadable(name: "Manifest.db", reason: ""),
    .keychainMissing(reason: ""), .keychainDamaged(reason: ""),
    .keychainInXML, .keychainKeysUnknown([]),
  ]

  @Test("Every exit code has a page, found by number and by name", arguments: CommandExitStatus.fixed)
  func codes(status: CommandExitStatus) throws {
    #expect(try Explain.explanation(of: "\(status.code)").id == status.id)
    #expect(try Explain.explanation(of: status.id.uppercased()).code == status.code)
  }

  @Test("An exit code over 128 is explained as a signal", arguments: ["130", "143", "signal"])
  func signals(topic: String) throws {
    #expect(try Explain.explanation(of: topic).id == "signal")
  }

  @Test("Every word in an expectation has a page", arguments: PlanExpectation.outcomes)
  func outcomes(outcome: ItemFate) throws {
    #expect(try Explain.explanation(of: outcome.rawValue).id == outcome.rawValue)
  }

  @Test("Every page has its own name and all of its parts")
  func complete() {
    #expect(Set(Explanation.all.map(\.id)).count == Explanation.all.count)
    for page in Explanation.all {
      for text in [page.rule, page.effect, page.action] { #expect(text.hasSuffix(".")) }
      #expect(!page.headline.isEmpty && !page.headline.hasSuffix("."))
    }
  }

  @Test(
    "The page of a protection class is found by its code, its word and Apple's constant",
    arguments: [
      ("cku", "after-first-unlock-this-device", "kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly"),
      ("ak", "when-unlocked", "kSecAttrAccessibleWhenUnlocked"),
      ("akpu", "passcode-only", "kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly"),
    ])
  func protectionClasses(code: String, word: String, constant: String) throws {
    #expect(try Explain.explanation(of: code).headline.hasSuffix("the protection class \(constant)"))
    #expect(try Explain.explanation(of: constant).id == code)
    // The word for akpu also names a reason, whose page is shown instead.
    if code != "akpu" { #expect(try Explain.explanation(of: word).id == code) }
  }

  @Test(
    "An unknown topic gets a suggestion", arguments: [("device-bond", "device-bound"), ("lockd", "locked")])
  func unknownTopic(topic: String, id: String) {
    #expect(thrownError { _ = try Explain.explanation(of: topic) }?.advice == "keyhaul explain \(id)")
  }

  @Test(
    "Keychain statuses and backup errors are found in every spelling, unless the number is also an exit code",
    arguments: [
      ("-25300", "errSecItemNotFound"), ("25300", "errSecItemNotFound"), ("errSecItemNotFound", "errSecItemNotFound"),
      ("errsecitemnotfound", "errSecItemNotFound"), ("OSStatus -25308", "errSecInteractionNotAllowed"),
      ("Error Domain=NSOSStatusErrorDomain Code=-34018", "errSecMissingEntitlement"), ("-50", "errSecParam"),
      ("Code=-34018", "errSecMissingEntitlement"), ("OSStatus error -50.", "errSecParam"),
      ("-128", "errSecUserCanceled"),
      ("MBErrorDomain/205", "MBErrorDomain/205"),
      ("mberrordomain 205", "MBErrorDomain/205"), ("205", "MBErrorDomain/205"), ("ErrorCode 207", "MBErrorDomain/207"),
      ("(MBErrorDomain/208).", "MBErrorDomain/208"), ("MBErrorDomain/4", "MBErrorDomain/4"), ("4", "no-match"),
      ("11", "busy"), ("MBErrorDomain/11", "MBErrorDomain/11"), ("130", "signal"),
    ])
  func appleErrors(topic: String, id: String) throws {
    #expect(try Explain.explanation(of: topic).id == id)
  }

  @Test("Every keychain status has Apple's name and number, as declared by the Security module")
  func statusNumbers() throws {
    let path = "Sources/Apple/KeychainServices/Constants/Statuses/Statuses.swift"
    let text = try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    let declared = text.matches(of: #/public let (errSec\w+): OSStatus = (-?\d+)/#)
      .reduce(into: [:]) { $0[String($1.1)] = Int32($1.2) }
    #expect(declared.count > 300)
    for page in Explanation.keychainStatuses { #expect(declared[page.id] == page.number, "\(page.id)") }
    // In addition, 19 pages explain statuses that `SecItemStatus` does not contain.
    #expect(Explanation.keychainStatuses.count == SecItemStatus.allCases.count + 19)
  }

  @Test("Every error that the device server sends has a page", arguments: BackupFailure.Code.allCases)
  func backupErrors(code: BackupFailure.Code) throws {
    #expect(try Explain.explanation(of: "MBErrorDomain/\(code.rawValue)").number.map(Int64.init) == code.rawValue)
  }

  @Test(
    "An error without a page gets advice, such as the nearest error with a page",
    arguments: [
      ("-25301x", "keyhaul explain"), ("MBErrorDomain/206", "keyhaul explain MBErrorDomain/205"),
      ("-25999", "security error -25999 on a Mac, which prints Apple's message"),
      ("MBErrorDomain/99999999999", "keyhaul explain"), ("MBErrorDomain/", "keyhaul explain MBErrorDomain/1"),
      ("-99999999999", "keyhaul explain"), ("errSecItemNotFoud", "keyhaul explain errSecItemNotFound"),
    ])
  func unknownNumbers(topic: String, advice: String) {
    #expect(thrownError { _ = try Explain.explanation(of: topic) }?.advice == advice)
  }
}
