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
      for line in text.split(separator: "\n") where line.contains(#/^[A-Z][A-Z,' ]+$/#) {
        for title in line.split(separator: #/ {2,}/#).map({ $0.trimmingCharacters(in: .whitespaces) })
        where !title.isEmpty {
          #expect(Self.everyday.contains(title) || Self.topics[title] != nil, "\(name): \(title)")
        }
      }
    }
    for topic in Self.topics.values { #expect(try Explain.explanation(of: topic).id == topic) }
  }

  @Test("Every term that a report uses has a page", arguments: terms)
  func termPages(term: String) throws {
    let page = try Explain.explanation(of: term)
    #expect(page.id == term.replacing(" ", with: "-"))
  }

  @Test("The line about items that no backup contains leads to the page with the complete text")
  func unseen() throws {
    let page = try Explain.explanation(of: BackupBlindSpots.topic)
    #expect(page.rule == BackupBlindSpots.sentence && page.action == BackupBlindSpots.guidance)
    #expect(BackupBlindSpots.line.hasSuffix("keyhaul explain \(page.id)") && BackupBlindSpots.line.count <= 80)
  }

  private static let everyday: Set = [
    "ITEM", "ITEMS", "KIND", "NAME", "STATE", "FILES", "BYTES", "SIZE", "APP", "APPS", "YES", "NO", "NOT KNOWN",
    "MODEL",
    "IOS", "STATUS", "LAST BACKUP", "PASSCODE", "A NEW IPHONE", "CHECK", "PATH", "READABLE", "ACCOUNT", "BACKUP",
    "CHANGED", "CODE", "MOVE", "SERIAL", "DEVICE", "KEY", "MADE", "OUTCOME", "PASSWORD", "REASON", "RESULT", "WITHOUT",
  ]

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
