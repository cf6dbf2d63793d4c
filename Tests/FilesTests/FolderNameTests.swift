import TestSupport
import Testing

@testable import Files

@Suite("The names in a folder")
struct FolderNameTests {
  @Test("are read whole, however short or long, and are what the folder is removed by", arguments: [1, 254, 255])
  func lengths(count: Int) throws {
    let folder = try TemporaryFolder()
    let name = String(repeating: "n", count: count)
    try folder.write([1], to: "inner/\(name)")
    let system = FileSystem.real
    let parent = try system.openDirectory(folder.path)
    let inner = try system.openDirectory(folder.path("inner"))
    let names = try system.names(in: inner)
    #expect(names == [name.systemName])
    try system.removeTree("inner".systemName, in: parent)
    let rest = try system.names(in: parent)
    #expect(rest.isEmpty)
  }
}
