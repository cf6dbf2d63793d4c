import Basics
import Foundation
import TestSupport
import Testing

@Suite("Tutorial pages")
struct TutorialTests {
  private static let template = "docs/Templates/AppKeychainTests"
  /// The test files of each page, without their extensions, in the order of the page.
  private static let pages = [
    "1-password-manager": ["PasswordManagerTutorial"], "2-duplicates": ["DuplicateTutorial"],
    "3-keychain-wrapper": ["KeychainWrapperTutorial"], "4-on-off-game": ["OnOffTutorial"],
    "5-plain-functions": ["PlainPasswordsTutorial"], "6-backup-on-the-desk": ["BackupOnTheDeskTutorial"],
    "7-four-digits": ["FourDigitTutorial"], "8-app-test-suite": ["AppTestSuiteTutorial"],
    "9-port-a-package": ["PortAPackageCode", "PortAPackageTutorial"],
    "GettingStarted": ["GettingStartedTutorial"], "ReadABackup": ["ReadABackupTutorial"],
    "SaveYourCodes": [], "TestABackupTool": ["TestABackupToolTutorial"],
    "TestYourAppsMigration": [
      "Package", "Sources/SignIn/SignIn", "Tests/SignInTests/SignInTests", "Tests/SignInTests/SignInXCTests",
    ],
  ]

  /// The folder of a page's files.
  private static func folder(of page: String) -> String {
    page == "TestYourAppsMigration" ? template : "Tests/KeychainServicesTests/Tutorials"
  }

  /// Returns the names of the files with an extension such as `.md`, without it.
  private static func names(in directory: String, withExtension type: String) throws -> Set<String> {
    let files = try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: directory).path)
    return Set(files.filter { $0.hasSuffix(type) }.map { String($0.dropLast(type.count)) })
  }

  @Test("Each tutorial page is listed in this suite, and each test file belongs to a page")
  func complete() throws {
    #expect(try Self.names(in: "docs/Tutorials", withExtension: ".md") == Set(Self.pages.keys))
    #expect(
      try Self.names(in: "Tests/KeychainServicesTests/Tutorials", withExtension: ".swift")
        == Set(Self.pages.filter { Self.folder(of: $0.key) != Self.template }.values.joined()))
    let template = Repository.root.appending(path: Self.template)
    let files = try #require(FileManager.default.enumerator(atPath: template.path)).compactMap { $0 as? String }
    #expect(
      Set(files.filter { $0.hasSuffix(".swift") }.map { String($0.dropLast(".swift".count)) })
        == Set(Self.pages["TestYourAppsMigration"] ?? []))
  }

  @Test("The code of a page equals the code of its test files", arguments: pages.keys.sorted())
  func code(name: String) throws {
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Tutorials/\(name).md"), encoding: .utf8)
    let blocks = page.components(separatedBy: "```swift\n").dropFirst().compactMap { block in
      block.components(separatedBy: "```\n").first
    }
    var filesOnPage: [String] = []
    // A block that begins with an import or with the version of a package begins a file. Other blocks continue it.
    for block in blocks {
      if filesOnPage.isEmpty || block.hasPrefix("import ") || block.hasPrefix("// swift-tools-version") {
        filesOnPage.append(block)
      } else {
        filesOnPage[filesOnPage.count - 1] += "\n" + block
      }
    }
    let testFiles = try #require(Self.pages[name]).map { file in
      try String(
        contentsOf: Repository.root.appending(path: "\(Self.folder(of: name))/\(file).swift"), encoding: .utf8)
    }
    #expect(filesOnPage == testFiles)
  }
}
