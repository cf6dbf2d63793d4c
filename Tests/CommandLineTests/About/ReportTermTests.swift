import Foundation
import TestSupport
import Testing

@testable import Reports
@testable import keyhaul

@Suite("Report terms in explain")
struct ReportTermTests {
  @Test("Every column title of a report has a page or is an everyday word")
  func columnTitles() throws {
    let directory = Repository.root.appending(path: "Tests/CommandLineTests/Snapshots")
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(".120.txt") }
    #expect(!names.isEmpty)
    for name in names {
      let text = try String(contentsOf: directory.appending(path: name), encoding: .utf8)
      for title in Self.columnTitles(in: text) {
        #expect(Self.everydayTitles.contains(title) || Self.topics[title] != nil, "\(name): \(title)")
      }
    }
    for topic in Self.topics.values { #expect(try Explain.explanation(of: topic).id == topic) }
  }

  /// Returns the column titles of the tables in a report: capital letters, with two or more spaces between the titles.
  private static func columnTitles(in text: String) -> [String] {
    let titleLines = text.split(separator: "\n").filter { $0.contains(#/^[A-Z][A-Z,' ]+$/#) }
    return titleLines.flatMap { $0.split(separator: #/ {2,}/#) }
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  @Test("Every term that a report uses has a page", arguments: terms)
  func termPages(term: String) throws {
    let page = try Explain.explanation(of: term)
    #expect(page.id == term.replacing(" ", with: "-"))
  }

  @Test("The line about items that no backup contains leads to the page with the complete text")
  func blindSpots() throws {
    let page = try Explain.explanation(of: BackupBlindSpots.topic)
    #expect(page.rule == BackupBlindSpots.sentence && page.action == BackupBlindSpots.guidance)
    #expect(BackupBlindSpots.line.hasSuffix("keyhaul explain \(page.id)") && BackupBlindSpots.line.count <= 80)
  }

  private static let everydayTitles: Set = [
    "ITEM", "ITEMS", "KIND", "NAME", "STATE", "FILES", "BYTES", "SIZE", "APP", "APPS", "YES", "NO", "NOT KNOWN",
    "MODEL",
    "IOS", "STATUS", "LAST BACKUP", "PASSCODE", "A NEW IPHONE", "CHECK", "PATH", "READABLE", "ACCOUNT", "BACKUP",
    "CHANGED", "CODE", "MOVE", "SERIAL", "DEVICE", "KEY", "MADE", "OUTCOME", "PASSWORD", "REASON", "RESULT", "WITHOUT",
  ]

  /// The pages about the other column titles.
  private static let topics = [
    "CLASS": "protection-class", "PROTECTION": "protection-class", "PROTECTS": "protection-class", "DIRECT": "ways",
    "ICLOUD": "ways", "WRAPPED WITH": "class-key", "WHY IT STAYS": "stays-behind", "DOMAIN": "domain",
    "TRANSFER METHOD": "ways", "DIFFERS IN": "primary-key", "OLD-PHONE, ERASED": "forecast",
    "STRANGER, ERASED": "forecast", "THE SAME, ERASED": "forecast",
    "ACCESS GROUP": "access-group", "REVISION": "revision", "SEAL": "seal",
  ]

  private static let terms = [
    "source device", "target device", "migratable", "this-device-only", "passcode class", "protection class",
    "access group", "access control", "primary key", "keybag", "class key", "device key", "iterations",
    "encrypted item",
    "manifest", "domain", "digest", "seal", "tombstone", "synchronized", "persistent reference", "forecast", "revision",
    "dump", "intact", "damaged", "stays behind", "never in backup",
  ]
}
