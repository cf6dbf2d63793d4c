import TestSupport
import Testing

@testable import VirtualDevice

@Suite("The names in a device's folder")
struct FolderNameTests {
  @Test("are read whole, however short or long", arguments: [1, 254, 255])
  func lengths(count: Int) throws {
    let folder = try TemporaryFolder()
    let name = String(repeating: "n", count: count)
    try folder.write([1], to: name)
    #expect(try FileDoor().names(in: folder.path) == [name])
    try FileDoor().removeTree(folder.path)
    #expect(try FileDoor().names(in: folder.path) == nil)
  }
}
