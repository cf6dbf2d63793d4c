import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Basics

@Suite("Operations on file trees")
struct TreeCallTests {
  private let directory: TemporaryDirectory
  private let system = FileSystem.real

  init() throws { directory = try TemporaryDirectory() }

  @Test("A file can be moved to another directory")
  func moving() throws {
    let root = try system.openDirectory(directory.path)
    let source = try system.openOrMakeDirectory("source", in: root)
    let target = try system.openOrMakeDirectory("target", in: root)
    try system.createFile("old", in: source, bytes: [1])
    try system.rename("old", in: source, to: "new", in: target)
    #expect(try directory.read("target/new") == [1])
  }

  @Test("An existing directory is opened")
  func existingDirectory() throws {
    let root = try system.openDirectory(directory.path)
    _ = try system.openOrMakeDirectory("folder", in: root)
    _ = try system.openOrMakeDirectory("folder", in: root)
  }

  @Test("The modification time of a file can be set")
  func modificationTime() throws {
    try directory.write([1], to: "file")
    let root = try system.openDirectory(directory.path)
    let file = try system.openForReading("file", in: root)
    try system.setModificationTime(1_400_000_000, of: file)
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.path("file"))
    #expect((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 == 1_400_000_000)
  }

  @Test("A link keeps its target, and is neither replaced nor followed")
  func links() throws {
    let root = try system.openDirectory(directory.path)
    _ = try system.openOrMakeDirectory("folder", in: root)
    try system.makeLink(to: "folder", "link", in: root)
    #expect(try system.linkTarget(of: "link", in: root) == "folder")
    #expect(throws: Errno.self) { _ = try system.openOrMakeDirectory("link", in: root) }
    #expect(throws: Errno.fileExists) { try system.makeLink(to: "x", "link", in: root) }
  }

  @Test("The free space of a file system is known")
  func freeSpace() throws {
    let root = try system.openDirectory(directory.path)
    #expect(try system.freeByteCount(in: root) > 0)
  }
}
