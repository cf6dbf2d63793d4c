import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Basics

@Suite("Operations on file trees")
struct TreeCallTests {
  @Test("Entries can be moved, links are not followed, times are set, and the free space is known")
  func calls() throws {
    let directory = try TemporaryDirectory()
    let system = FileSystem.real
    let root = try system.openDirectory(directory.path)
    let first = try system.openOrMakeDirectory("first", in: root)
    let second = try system.openOrMakeDirectory("second", in: root)
    _ = try system.openOrMakeDirectory("second", in: root)
    try system.createFile("a", in: first, bytes: [1])
    try system.rename("a", in: first, to: "b", in: second)
    #expect(try directory.read("second/b") == [1])
    let file = try system.openForReading("b", in: second)
    try system.setModificationTime(1_400_000_000, of: file)
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.path("second/b"))
    #expect((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 == 1_400_000_000)
    try system.makeLink(to: "../first", "link", in: second)
    #expect(try system.linkTarget(of: "link", in: second) == "../first")
    #expect(throws: Errno.self) { _ = try system.openOrMakeDirectory("link", in: second) }
    #expect(throws: Errno.fileExists) { try system.makeLink(to: "x", "link", in: second) }
    #expect(try system.freeByteCount(in: root) > 0)
  }
}
