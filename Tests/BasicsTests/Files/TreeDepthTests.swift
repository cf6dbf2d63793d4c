import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Basics

@Suite("Removing file trees")
struct TreeDepthTests {
  @Test(
    "A tree of 64 levels is removed, and in a deeper tree, the file at the deepest level is kept", arguments: [64, 65])
  func depth(count: Int) throws {
    let directory = try TemporaryDirectory()
    let path = (0..<count).map { "d\($0)" }.joined(separator: "/")
    try FileManager.default.createDirectory(atPath: directory.path(path), withIntermediateDirectories: true)
    try directory.write([1], to: path + "/file")
    let system = FileSystem.real
    let root = try system.openDirectory(directory.path)
    if count == 64 {
      try system.removeTree("d0".systemName, in: root)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
    } else {
      #expect(throws: Errno.tooManySymbolicLinkLevels) { try system.removeTree("d0".systemName, in: root) }
      #expect(try directory.read(path + "/file") == [1])
    }
  }
}
