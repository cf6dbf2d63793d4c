import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("JSON schemas")
struct SchemaTableTests {
  /// The formats of files in a device's folder, which nothing else reads or writes.
  private static let deviceFolderFormats: Set = ["device-change/1", "device-pairings/1", "virtual-device/1"]

  /// Returns the formats that the program's sources name, such as `migration-plan/1`.
  private static func formats() throws -> Set<String> {
    let sources = Repository.root.appending(path: "Sources")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: sources.path).filter { $0.hasSuffix(".swift") }
    var formats: Set<String> = []
    for path in paths {
      let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
      formats.formUnion(text.matches(of: /"([a-z]+(?:-[a-z]+)*\/[0-9]+)"/).map { String($0.1) })
    }
    return formats.subtracting(deviceFolderFormats)
  }

  @Test("Every JSON format has a schema with its name and a row in docs/Reports.md")
  func schemas() throws {
    let formats = try Self.formats()
    #expect(formats.count > 20 && formats.contains("backup-list/1") && formats.contains("migration-plan/1"))
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Reports.md"), encoding: .utf8)
    for format in formats {
      let name = format.replacing("/", with: "-") + ".schema.json"
      let schema = try? String(contentsOf: Repository.root.appending(path: "docs/schemas/\(name)"), encoding: .utf8)
      #expect(schema?.contains("\"const\": \"\(format)\"") == true, "\(format) has no docs/schemas/\(name)")
      #expect(page.contains("`\(format)`"), "\(format) is not in docs/Reports.md")
    }
  }

  @Test("Every schema describes a format that exists")
  func obsoleteSchemas() throws {
    let formats = try Self.formats()
    let files = try FileManager.default.contentsOfDirectory(
      atPath: Repository.root.appending(path: "docs/schemas").path)
    for file in files where file != "message.schema.json" {
      let name = file.replacing(".schema.json", with: "")
      let format = name.replacing(/-([0-9]+)$/, with: { "/\($0.1)" })
      #expect(formats.contains(format), "\(file) describes nothing that the program prints or reads")
    }
  }
}
