import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Basics

@Suite("A tree that is removed")
struct TreeDepthTests {
  @Test("may be 64 folders deep; of a deeper one nothing on the way to its end is removed", arguments: [64, 65])
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
