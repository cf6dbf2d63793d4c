import Foundation

@testable import keyhaul

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Byte strings that must not be found, and all the ways in which they could be written.
struct PlantedSecrets {
  /// The name and bytes of each secret.
  private(set) var needles: [(name: String, bytes: [UInt8])] = []

  mutating func add(_ name: String, _ bytes: [UInt8]) { needles.append((name, bytes)) }

  /// Returns where the secrets were found: "secret 3 in b.tar".
  func found(in files: [String: Data]) -> [String] {
    let search = Search(needles.flatMap { needle in Self.spellings(of: needle.bytes).map { (needle.name, Array($0)) } })
    return files.sorted { $0.key < $1.key }.flatMap { file, data in
      search.names(in: data).sorted().map { "\($0) in \(file)" }
    }
  }

  /// The first 24 bytes as they are, in hexadecimal, and in base 64 wherever its groups of three begin.
  static func spellings(of secret: [UInt8]) -> [Data] {
    let core = Array(secret.prefix(24))
    let hex = core.map { (byte: UInt8) in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    let shifted = (0..<3).map { shift in
      let part = Data(core.dropFirst(shift))
      // Whole groups alone: what follows would change the last digits.
      return Data(part.prefix(part.count / 3 * 3).base64EncodedString().utf8)
    }
    return [Data(core), Data(hex.utf8), Data(hex.uppercased().utf8)] + shifted
  }

}

/// Looks for many byte strings in one pass.
private struct Search {
  /// The byte strings by their first two bytes.
  private var beginnings: [[(name: String, bytes: [UInt8])]] = Array(repeating: [], count: 1 << 16)

  init(_ needles: [(String, [UInt8])]) {
    for (name, bytes) in needles where bytes.count >= 2 {
      beginnings[Int(bytes[0]) << 8 | Int(bytes[1])].append((name, bytes))
    }
  }

  func names(in data: Data) -> Set<String> {
    var found: Set<String> = []
    data.withUnsafeBytes { bytes in
      for start in 0..<max(bytes.count - 1, 0) {
        for needle in beginnings[Int(bytes[start]) << 8 | Int(bytes[start + 1])]
        where start + needle.bytes.count <= bytes.count
          && needle.bytes.indices.allSatisfy({ bytes[start + $0] == needle.bytes[$0] })
        {
          found.insert(needle.name)
        }
      }
    }
    return found
  }
}

/// Keeps hold of every file that appears under a directory, however soon it goes again: by a link of its own to each.
///
/// A file that never had a name for as long as one look takes, or whose name was taken away before its first byte, is
/// not seen.
final class AppearingFiles {
  private let kept: URL
  private let thread: Thread
  private let isOver: DispatchSemaphore
  private let hasEnded: DispatchSemaphore

  /// - Parameters:
  ///   - directories: The directories to watch, with their subdirectories, on the file system of `kept`.
  ///   - kept: A directory for the links.
  ///   - isWatched: Whether a file of this name counts.
  init(in directories: [URL], keptIn kept: URL, where isWatched: @escaping @Sendable (String) -> Bool) throws {
    self.kept = kept
    try FileManager.default.createDirectory(at: kept, withIntermediateDirectories: true)
    let (isOver, hasEnded) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    (self.isOver, self.hasEnded) = (isOver, hasEnded)
    thread = Thread {
      var known: Set<UInt64> = []
      repeat {
        for directory in directories { Self.look(in: directory.path + "/", below: "", kept.path, &known, isWatched) }
      } while isOver.wait(timeout: .now() + .milliseconds(1)) == .timedOut
      hasEnded.signal()
    }
    thread.start()
  }

  /// Creates a hard link to each new file, so that its contents remain when it is deleted.
  ///
  /// - Parameters:
  ///   - place: A directory in `directory`, with a slash at its end, or an empty string.
  ///   - known: The inode numbers of the linked files. The links keep the system from reusing these numbers.
  private static func look(
    in directory: String, below place: String, _ kept: String, _ known: inout Set<UInt64>,
    _ isWatched: (String) -> Bool
  ) {
    guard let entries = opendir(directory + place) else { return }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      guard !known.contains(UInt64(entry.pointee.d_ino)) else { continue }
      let name =
        place + withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard !name.hasSuffix("/."), !name.hasSuffix("/.."), name != ".", name != "..", isWatched(name) else { continue }
      var status = stat()
      guard lstat(directory + name, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR, isWatched(name + "/") {
        look(in: directory, below: name + "/", kept, &known, isWatched)
      } else if status.st_mode & S_IFMT == S_IFREG, known.insert(UInt64(status.st_ino)).inserted {
        _ = link(directory + name, "\(kept)/\(known.count)-\(name.replacing("/", with: "_"))")
      }
    }
  }

  /// Ends the watch.
  ///
  /// - Returns: The contents of the files, now or when they were deleted.
  func contents() throws -> [String: Data] {
    isOver.signal()
    hasEnded.wait()
    var contents: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: kept.path) {
      contents["the file \(name)"] = try Data(contentsOf: kept.appending(path: name))
    }
    return contents
  }
}
