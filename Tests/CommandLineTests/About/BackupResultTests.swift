import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports
@testable import keyhaul

@Suite("Result words")
struct BackupResultTests {
  @Test("Every word has its own page in explain", arguments: BackupResult.allCases)
  func pages(word: BackupResult) throws {
    let page = try Explain.explanation(of: word.rawValue)
    #expect(page.id == word.rawValue)
    // The page states the word's exit code.
    let statesCode = page.code == word.code || page.effect.hasSuffix(" Exit code \(word.code).")
    #expect(statesCode, "\(page)")
    #expect(Explanation.all.count { $0.id == word.rawValue } == 1)
  }

  @Test("The page of the result `whole` says that items which need a device key were not checked")
  func whole() throws {
    let action = try Explain.explanation(of: "whole").action
    #expect(action.hasPrefix("If items need a device key, they were not checked: keep another copy"), "\(action)")
  }

  @Test("The words of the columns device_key, seal and state have pages too")
  func columnValues() throws {
    let keys: [DeviceKeyVerdict] = [.proven, .mixed, .foreign, .unproven]
    let seals: [BackupVerification.SealState] = [.intact, .broken, .missing, .unchecked]
    let states: [BackupDirectory.Entry.State] = [.finished, .unfinished, .damaged]
    for word in keys.map(\.rawValue) + seals.map(\.rawValue) + states.map(\.rawValue) {
      #expect(try Explain.explanation(of: word).id == word)
    }
  }

  @Test("The scripting page lists the words next to their exit codes", arguments: [0, 3, 12])
  func documentedWords(code: Int32) throws {
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Scripting.md"), encoding: .utf8)
    let table = try #require(page.firstRange(of: "| code | words |"))
    let row = try #require(page[table.upperBound...].split(separator: "\n").first { $0.hasPrefix("| \(code) | ") })
    // The names of the commands are in parentheses.
    let words = row.replacing(/\([^)]*\)/, with: "").matches(of: /`([a-z-]+)`/).map { String($0.1) }
    #expect(words.sorted() == BackupResult.allCases.filter { $0.code == code }.map(\.rawValue).sorted())
  }

  @Test("A word has a page of its own, unless it is also the id of an exit code")
  func ownPages() {
    let ids = Set((CommandExitStatus.fixed + [.needsPassword]).map(\.id))
    for word in BackupResult.allCases { #expect((word.explanation == nil) == ids.contains(word.rawValue), "\(word)") }
    #expect(Explanation.results.count == BackupResult.allCases.count - ids.count)
  }

  @Test("A result's word always belongs to its exit code, and a code other than 0 has a reason")
  func agreement() {
    func result(_ status: CommandExitStatus, _ word: BackupResult?) -> BatchResult {
      BatchResult(
        verb: "verify", parameters: [], path: "a", metadata: BackupMetadata(), isArchivedCopy: false, status: status,
        failure: nil, warnings: [], document: nil, result: word)
    }
    #expect(result(.ok, .whole).outcome == .whole && result(.ok, .whole).reason == nil)
    #expect(result(.partial, .whole).outcome == .partial && result(.partial, .incomplete).outcome == .incomplete)
    #expect(result(.damaged, .incomplete).outcome == .damaged)
    for status in CommandExitStatus.fixed where status != .ok {
      #expect(result(status, nil).reason?.isEmpty == false, "\(status)")
    }
  }

  @Test("A warning with the same message and reason is recorded once")
  func warnings() {
    let output = CapturedOutput()
    for advice in ["a", "b"] { output.add(CapturedOutput.Warning("it is damaged", why: "a byte", try: advice)) }
    output.add(CapturedOutput.Warning("it is damaged", why: "another byte", try: nil))
    #expect(output.warnings.map(\.why) == ["a byte", "another byte"])
  }
}
