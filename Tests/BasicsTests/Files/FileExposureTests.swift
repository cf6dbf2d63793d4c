import Basics
import Foundation
import TestSupport
import Testing

@Suite("Files that other users could change")
struct FileExposureTests {
  private let directory: TemporaryDirectory
  /// A user and group ID that is neither root's nor this user's.
  private let otherID: UInt32 = 12_345

  init() throws {
    directory = try TemporaryDirectory()
    try directory.write([1], to: "folder/file")
    try setMode(0o755, "folder")
    try setMode(0o644, "folder/file")
  }

  private func setMode(_ mode: Int, _ name: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.path(name))
  }

  private func exposure(of name: String) throws -> FileExposure? {
    try FileSystem.real.exposure(of: directory.path(name))
  }

  /// Returns the path of a file with links resolved, as a `FileExposure` contains it.
  private func path(_ name: String) -> String {
    directory.url.resolvingSymlinksInPath().appending(path: name).path(percentEncoded: false)
  }

  @Test("A file is not exposed if only its owner can write to it and to its folders")
  func owner() throws {
    #expect(try exposure(of: "folder/file") == nil)
    #expect(try exposure(of: "folder/../folder/./file") == nil)
  }

  @Test("A file is exposed if its group or others can write to it", arguments: [0o620, 0o602, 0o666])
  func writableFile(mode: Int) throws {
    try setMode(mode, "folder/file")
    #expect(try exposure(of: "folder/file") == .writableFile(path: path("folder/file")))
  }

  @Test("A file is exposed if others can write to a folder on the way to it", arguments: [0o775, 0o757, 0o777])
  func writableFolder(mode: Int) throws {
    try setMode(mode, "folder")
    #expect(try exposure(of: "folder/file") == .writableFolder(path: path("folder")))
    try directory.write([1], to: "folder/deep/er/file")
    for name in ["folder/deep", "folder/deep/er"] { try setMode(0o755, name) }
    #expect(try exposure(of: "folder/deep/er/file") == .writableFolder(path: path("folder")))
  }

  @Test("A file in a folder with the sticky bit is not exposed")
  func sticky() throws {
    try setMode(0o1777, "folder")
    #expect(try exposure(of: "folder/file") == nil)
  }

  @Test("A link is exposed if others can write to its own folder or to its target's folder")
  func links() throws {
    let files = FileManager.default
    try directory.write([1], to: "safe/file")
    try setMode(0o644, "safe/file")
    for name in ["safe", "folder"] { try setMode(0o755, name) }
    try files.createSymbolicLink(atPath: directory.path("safe/link"), withDestinationPath: "../folder/file")
    try files.createSymbolicLink(
      atPath: directory.path("folder/link"), withDestinationPath: directory.path("safe/file"))
    for name in ["safe/link", "folder/link"] { #expect(try exposure(of: name) == nil, "\(name)") }

    try setMode(0o777, "folder")

    for name in ["safe/link", "folder/link"] {
      #expect(try exposure(of: name) == .writableFolder(path: path("folder")), "\(name)")
    }
    #expect(try exposure(of: "safe/file") == nil)
  }

  @Test("A link to itself and a missing file are errors")
  func invalidPaths() throws {
    try FileManager.default.createSymbolicLink(atPath: directory.path("folder/loop"), withDestinationPath: "loop")
    #expect(throws: (any Error).self) { try exposure(of: "folder/loop") }
    #expect(throws: (any Error).self) { try exposure(of: "folder/nothing") }
  }

  @Test(
    "A file is exposed if it, its folder or a link to it belongs to another user",
    .enabled(if: geteuid() == 0, "SKIPPED, NOT SHOWN: files of another user, since only root can make them"))
  func otherOwner() throws {
    let files = FileManager.default
    try files.createSymbolicLink(atPath: directory.path("folder/link"), withDestinationPath: "file")
    for (changedName, checkedName) in [
      ("folder/file", "folder/file"), ("folder/link", "folder/link"), ("folder", "folder/file"),
    ] {
      #expect(lchown(directory.path(changedName), otherID, otherID) == 0)
      #expect(try exposure(of: checkedName) == .otherOwner(path: path(changedName)))
      #expect(lchown(directory.path(changedName), 0, 0) == 0)
      #expect(try exposure(of: checkedName) == nil)
    }
    // The owner can also change the file in a folder with the sticky bit.
    try setMode(0o1777, "folder")
    #expect(lchown(directory.path("folder/file"), otherID, otherID) == 0)
    #expect(try exposure(of: "folder/file") == .otherOwner(path: path("folder/file")))
  }
}
