import Basics
import Foundation
import Testing

@Suite("The tutorials")
struct TutorialTests {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  /// The files that a page shows: each begins where a block begins with an import.
  private static let pages = [
    "1-password-manager": ["PasswordManagerTutorial"], "2-duplicates": ["DuplicateTutorial"],
    "3-keychain-wrapper": ["KeychainWrapperTutorial"], "4-on-off-game": ["OnOffTutorial"],
    "5-plain-functions": ["PlainPasswordsTutorial"], "6-backup-on-the-desk": ["BackupOnTheDeskTutorial"],
    "7-four-digits": ["FourDigitTutorial"], "8-app-test-suite": ["AppTestSuiteTutorial"],
    "9-port-a-package": ["PortAPackageCode", "PortAPackageTutorial"],
    "GettingStarted": ["GettingStartedTutorial"], "ReadABackup": ["ReadABackupTutorial"],
    "TestABackupTool": ["TestABackupToolTutorial"],
    "TestYourAppsMigration": [
      "TestYourAppsMigrationApp", "TestYourAppsMigrationTutorial", "TestYourAppsMigrationXCTest",
    ],
  ]

  private static func names(in directory: String, _ type: String) throws -> Set<String> {
    let files = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: directory).path)
    return Set(files.filter { $0.hasSuffix(type) }.map { String($0.dropLast(type.count)) })
  }

  @Test("every page has its test and every test its page")
  func complete() throws {
    #expect(try Self.names(in: "docs/Tutorials", ".md") == Set(Self.pages.keys))
    #expect(
      try Self.names(in: "Tests/KeychainServicesTests/Tutorials", ".swift") == Set(Self.pages.values.joined()))
  }

  @Test("a page's code is the code that was just tested", arguments: pages.keys.sorted())
  func code(name: String) throws {
    let page = try String(contentsOf: Self.root.appending(path: "docs/Tutorials/\(name).md"), encoding: .utf8)
    let blocks = page.components(separatedBy: "```swift\n").dropFirst().compactMap { block in
      block.components(separatedBy: "```\n").first
    }
    let shown = blocks.reduce(into: [String]()) { files, block in
      if files.isEmpty || block.hasPrefix("import ") {
        files.append(block)
      } else {
        files[files.count - 1] += "\n" + block
      }
    }
    let tested = try #require(Self.pages[name]).map { file in
      try String(
        contentsOf: Self.root.appending(path: "Tests/KeychainServicesTests/Tutorials/\(file).swift"), encoding: .utf8)
    }
    #expect(shown == tested)
  }
}
