import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import DeviceServer
@testable import keyhaul

@Suite("What explain can say")
struct ExplanationTests {
  @Test(
    "there is a page for every word that a report uses, in the words of the table", arguments: GlossaryTerm.allCases)
  func terms(term: GlossaryTerm) throws {
    let page = try Explain.explanation(of: term.id)
    let words = term.explanation
    #expect(page.id == term.id && page.headline == words.headline && page.rule == words.rule)
    #expect(page.effect == words.effect && page.action == words.action && page.source == words.source)
  }

  @Test("there is a page for every word that verify and inspect find a fault by, and none twice")
  func findings() throws {
    let words =
      BackupFinding.Kind.allCases.map(\.rawValue) + BackupVerification.Fault.Kind.allCases.map(\.rawValue)
    for word in words {
      let page = try Explain.explanation(of: word)
      #expect(page.id == word && [page.headline, page.rule, page.effect, page.action].allSatisfy { !$0.isEmpty })
    }
    #expect(Set(Explanation.all.map(\.id)).count == Explanation.all.count)
  }

  @Test("the page of a finding tells of a refusal where there is one, with its exit code", arguments: examples)
  func refusals(finding: BackupFinding) throws {
    let effect = try Explain.explanation(of: finding.kind.rawValue).effect
    let isRefused = BackupPurpose.allCases.contains { finding.blocks($0) }
    #expect(effect.contains("refuse") == isRefused, "\(effect)")
    let code = finding.refusal.category == .refused ? 14 : 13
    #expect(effect.contains("exit code \(code)") == isRefused, "\(effect)")
  }

  /// One of every kind whose page is no word of a move.
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

  @Test("there is a page for every exit code, by its number and by its name", arguments: CommandStatus.fixed)
  func codes(status: CommandStatus) throws {
    #expect(try Explain.explanation(of: "\(status.code)").id == status.id)
    #expect(try Explain.explanation(of: status.id.uppercased()).code == status.code)
  }

  @Test("a code over 128 is a signal", arguments: ["130", "143", "signal"])
  func signals(topic: String) throws {
    #expect(try Explain.explanation(of: topic).id == "signal")
  }

  @Test("there is a page for every word that an expectation may use", arguments: PlanExpectation.fates)
  func fates(fate: ItemFate) throws {
    #expect(try Explain.explanation(of: fate.rawValue).id == fate.rawValue)
  }

  @Test("no two pages have one name, and every page says everything")
  func complete() {
    #expect(Set(Explanation.all.map(\.id)).count == Explanation.all.count)
    for page in Explanation.all {
      for text in [page.rule, page.effect, page.action] { #expect(text.hasSuffix(".")) }
      #expect(!page.headline.isEmpty && !page.headline.hasSuffix("."))
    }
  }

  @Test(
    "a topic that there is not gets the near one", arguments: [("device-bond", "device-bound"), ("lockd", "locked")])
  func near(topic: String, id: String) {
    #expect(ending { _ = try Explain.explanation(of: topic) }?.advice == "keyhaul explain \(id)")
  }

  @Test(
    "there is a page for a keychain status and a backup error, however it is written",
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

  @Test("every keychain status has Apple's name and number, as the Security module declares them")
  func statusNumbers() throws {
    let path = "Sources/Apple/KeychainServices/Constants/Statuses/Statuses.swift"
    let text = try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    let declared = text.matches(of: #/public let (errSec\w+): OSStatus = (-?\d+)/#)
      .reduce(into: [:]) { $0[String($1.1)] = Int32($1.2) }
    #expect(declared.count > 300)
    for page in Explanation.keychainStatuses { #expect(declared[page.id] == page.number, "\(page.id)") }
    #expect(Explanation.keychainStatuses.count == SecItemStatus.allCases.count + 19)
  }

  @Test("every error that the device server sends has a page", arguments: BackupFailure.Code.allCases)
  func backupErrors(code: BackupFailure.Code) throws {
    #expect(try Explain.explanation(of: "MBErrorDomain/\(code.rawValue)").number.map(Int64.init) == code.rawValue)
  }

  @Test(
    "an error number without a page gets the nearest one that has a page",
    arguments: [
      ("-25301x", "keyhaul explain"), ("MBErrorDomain/206", "keyhaul explain MBErrorDomain/205"),
      ("-25999", "security error -25999 on a Mac, which prints Apple's message"),
      ("MBErrorDomain/99999999999", "keyhaul explain"), ("MBErrorDomain/", "keyhaul explain MBErrorDomain/1"),
      ("-99999999999", "keyhaul explain"), ("errSecItemNotFoud", "keyhaul explain errSecItemNotFound"),
    ])
  func unknownNumbers(topic: String, advice: String) {
    #expect(ending { _ = try Explain.explanation(of: topic) }?.advice == advice)
  }
}
