import Basics
import Foundation
import TestSupport
import Testing

@Suite("Ways in which others could change a file")
struct FileExposureTests {
  private let directory: TemporaryDirectory

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

  /// The path of a name without links, as it is in the answer.
  private func path(_ name: String) -> String {
    directory.url.resolvingSymlinksInPath().appending(path: name).path(percentEncoded: false)
  }

  @Test("None is found if only the owner may write")
  func owner() throws {
    #expect(try exposure(of: "folder/file") == nil)
    #expect(try exposure(of: "folder/../folder/./file") == nil)
  }

  @Test("The group and others may not write the file", arguments: [0o620, 0o602, 0o666])
  func writableFile(mode: Int) throws {
    try setMode(mode, "folder/file")
    #expect(try exposure(of: "folder/file") == .writableFile(path: path("folder/file")))
  }

  @Test("The group and others may not write a folder on the way to the file", arguments: [0o775, 0o757, 0o777])
  func writableFolder(mode: Int) throws {
    try setMode(mode, "folder")
    #expect(try exposure(of: "folder/file") == .writableFolder(path: path("folder")))
    try directory.write([1], to: "folder/deep/er/file")
    for name in ["folder/deep", "folder/deep/er"] { try setMode(0o755, name) }
    #expect(try exposure(of: "folder/deep/er/file") == .writableFolder(path: path("folder")))
  }

  @Test("Everybody may write a folder with the sticky bit, where nobody replaces another user's file")
  func sticky() throws {
    try setMode(0o1777, "folder")
    #expect(try exposure(of: "folder/file") == nil)
  }

  @Test("A link leads through the folders of its target, and lies in a folder itself")
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
    try files.createSymbolicLink(atPath: directory.path("safe/loop"), withDestinationPath: "loop")
    #expect(throws: (any Error).self) { try exposure(of: "safe/loop") }
    #expect(throws: (any Error).self) { try exposure(of: "safe/nothing") }
  }

  @Test(
    "The file, its folder and a link to it belong to this user or root",
    .enabled(if: geteuid() == 0, "SKIPPED, NOT SHOWN: files of another user, since only root can make them"))
  func otherOwner() throws {
    let files = FileManager.default
    try files.createSymbolicLink(atPath: directory.path("folder/link"), withDestinationPath: "file")
    for (name, asked) in [("folder/file", "folder/file"), ("folder/link", "folder/link"), ("folder", "folder/file")] {
      #expect(lchown(directory.path(name), 12_345, 12_345) == 0)
      #expect(try exposure(of: asked) == .otherOwner(path: path(name)))
      #expect(lchown(directory.path(name), 0, 0) == 0)
      #expect(try exposure(of: asked) == nil)
    }
    // Also in a folder where nobody else could replace it.
    try setMode(0o1777, "folder")
    #expect(lchown(directory.path("folder/file"), 12_345, 12_345) == 0)
    #expect(try exposure(of: "folder/file") == .otherOwner(path: path("folder/file")))
  }
}
