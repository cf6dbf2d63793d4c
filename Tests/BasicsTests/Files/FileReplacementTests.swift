import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Basics

@Suite("Replacing files")
struct FileReplacementTests {
  private let directory: TemporaryDirectory
  private let oldContents = [UInt8](repeating: 1, count: 3000)
  private let newContents = [UInt8](repeating: 2, count: 5000)

  init() throws { directory = try TemporaryDirectory() }

  private var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
  }

  private func permissions(_ name: String) throws -> UInt32? {
    try FileSystem.real.status(of: directory.path(name))?.permissions
  }

  private func replacement(_ system: FileSystem = .real) throws -> FileReplacement {
    FileReplacement(try #require(DestinationPath(directory.path("file"))), system)
  }

  private func write(
    _ replacement: FileReplacement, through system: FileSystem = .real
  ) throws(FileReplacement.Refusal) -> FileReplacement.Outcome {
    try replacement.write(
      explaining: { $0 },
      fill: { (file) throws(FileReplacement.Refusal) in
        do throws(Errno) { try system.writeAll(newContents, to: file) } catch { throw .system(error) }
        return Int64(newContents.count)
      })
  }

  @Test("A new file is accessible only to its owner, unless it keeps the access of the replaced file")
  func access() throws {
    for (preservedAccess, mode) in [(PreservedAccess.none, UInt32(0o600)), (.owner, 0o600), (.all, 0o640)] {
      try directory.write(oldContents, to: "file")
      #expect(chmod(directory.path("file"), 0o640) == 0)
      var replacement = try replacement()
      replacement.preservedAccess = preservedAccess
      #expect(try write(replacement).byteCount == 5000)
      #expect(try directory.read("file") == newContents)
      #expect(try permissions("file") == mode)
      #expect(try names == ["file"])
    }
  }

  /// Replaces the file while one call fails. Checks that either the old or the new file exists afterwards, and that no
  /// temporary file remains.
  ///
  /// - Returns: Whether the replacement made the call that fails.
  private func checkReplacement(failingCall call: Int, with fault: FileSystem.InjectedFault) throws -> Bool {
    try directory.write(oldContents, to: "file")
    let calls = CallCounter(failing: call, with: fault)
    let replacement = try replacement(calls.system)
    var isReplaced = false
    do throws(FileReplacement.Refusal) {
      let outcome = try write(replacement, through: calls.system)
      isReplaced = true
      // The other faults are temporary, so the call is repeated.
      if fault != .failure(.noSpace) { #expect(outcome.nameFailure == nil) }
    } catch {
      guard case .system(.noSpace) = error else {
        Issue.record("call \(call): \(error)")
        return true
      }
    }
    #expect(try directory.read("file") == (isReplaced ? newContents : oldContents), "call \(call)")
    #expect(try names == ["file"], "call \(call)")
    return calls.count >= call
  }

  @Test(
    "After any failed call, either the old or the new file exists, and no temporary file remains",
    arguments: [FileSystem.InjectedFault.failure(.noSpace), .failure(.interrupted), .short])
  func everyCall(fault: FileSystem.InjectedFault) throws {
    var call = 1
    while call <= 100, try checkReplacement(failingCall: call, with: fault) { call += 1 }
    // A replacement makes at least ten calls: open, status, list, create, write, status, sync, close, rename and sync.
    #expect(call > 9)
  }

  @Test("The new file is installed and a warning is returned if the directory cannot be synced")
  func nameFailure() throws {
    // The first call syncs the file, the second one its directory.
    let syncs = CallCounter(of: .sync, failing: 2, with: .failure(.ioError))
    #expect(try write(try replacement(syncs.system), through: syncs.system).nameFailure == .ioError)
    #expect(try directory.read("file") == newContents)
  }

  @Test("Only an entry that the target allows is replaced, and a link is replaced without following it")
  func occupied() throws {
    func refusal(_ target: FileReplacement.Target) throws -> FileStatus.Kind? {
      var replacement = try replacement()
      replacement.target = target
      do throws(FileReplacement.Refusal) {
        _ = try write(replacement)
        return nil
      } catch {
        guard case .occupied(let kind) = error else { throw error }
        return kind
      }
    }
    try directory.write(oldContents, to: "file")
    #expect(try refusal(.nothing) == .file)
    #expect(try directory.read("file") == oldContents)
    try FileManager.default.removeItem(atPath: directory.path("file"))
    try directory.write(oldContents, to: "other")
    try FileManager.default.createSymbolicLink(atPath: directory.path("file"), withDestinationPath: "other")
    #expect(try refusal(.file) == .link)
    #expect(try refusal(.anything) == nil)
    #expect(try directory.read("file") == newContents && directory.read("other") == oldContents)
    try FileManager.default.removeItem(atPath: directory.path("file"))
    try directory.write(oldContents, to: "file/inner")
    #expect(try refusal(.file) == .directory)
  }

  @Test("Temporary files of killed processes are removed, but not those of running ones")
  func leftovers() throws {
    // The name of a temporary file has a random hexadecimal number. The other names do not belong to the file, or are
    // not names of temporary files.
    try directory.write([1], to: ".file.1f.tmp")
    try directory.write([1], to: ".file.2a.tmp")
    for name in [".file.3.old", ".other.1f.tmp", ".file.xyz.tmp"] { try directory.write([1], to: name) }
    let running = try FileSystem.real.openForReading(directory.path(".file.2a.tmp"))
    let isClaimed = FileSystem.real.claim(running)
    #expect(isClaimed)
    _ = try write(try replacement())
    #expect(try names == [".file.2a.tmp", ".file.3.old", ".file.xyz.tmp", ".other.1f.tmp", "file"])
    try running.close(.real)
    _ = try write(try replacement())
    #expect(try names == [".file.3.old", ".file.xyz.tmp", ".other.1f.tmp", "file"])
  }

  @Test("A fixed temporary name is used, and replaces an entry with that name")
  func ownName() throws {
    try directory.write(oldContents, to: "file")
    try directory.write([9], to: "file.next")
    var replacement = try replacement()
    replacement.temporaryName = "file.next"
    _ = try write(replacement)
    #expect(try names == ["file"])
    #expect(try directory.read("file") == newContents)
    #expect(try permissions("file") == 0o600)
  }
}

/// Counts calls and injects a fault into one of them.
final class CallCounter: Sendable {
  private let calls = Locked(0)
  private let kind: FileSystem.Call?
  private let failingCall: Int
  private let fault: FileSystem.InjectedFault

  /// Creates a counter.
  ///
  /// - Parameters:
  ///   - kind: The kind of calls to count, or `nil` to count all.
  ///   - failingCall: The number of the counted call that gets the fault, from 1.
  ///   - fault: The fault to inject.
  init(of kind: FileSystem.Call? = nil, failing failingCall: Int = .max, with fault: FileSystem.InjectedFault = .short)
  {
    self.kind = kind
    self.failingCall = failingCall
    self.fault = fault
  }

  var count: Int { calls.withLock { $0 } }

  var system: FileSystem {
    FileSystem { [self] call in
      guard kind == nil || call == kind else { return nil }
      return calls.withLock { calls in
        calls += 1
        return calls == failingCall ? fault : nil
      }
    }
  }
}
