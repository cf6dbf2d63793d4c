import TestSupport
import Testing

@testable import Basics

@Suite("Names in a directory")
struct DirectoryNameTests {
  @Test("Names of any length are read completely, and a directory with them can be removed", arguments: [1, 254, 255])
  func lengths(count: Int) throws {
    let directory = try TemporaryDirectory()
    let name = String(repeating: "n", count: count)
    try directory.write([1], to: "inner/\(name)")
    let system = FileSystem.real
    let parent = try system.openDirectory(directory.path)
    let inner = try system.openDirectory(directory.path("inner"))
    let names = try system.names(in: inner)
    #expect(names == [name.systemName])
    try system.removeTree("inner".systemName, in: parent)
    let remaining = try system.names(in: parent)
    #expect(remaining.isEmpty)
  }
}
