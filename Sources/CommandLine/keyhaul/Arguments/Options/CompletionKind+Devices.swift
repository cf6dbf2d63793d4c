import ArgumentParser
import Foundation
import KeyhaulKit

extension CompletionKind {
  /// Completes the names of devices, considering `--home` and the environment.
  static let deviceNames = CompletionKind.custom { words, _, _ in
    DeviceCompletion.names(words: words, environment: ProgramEnvironment.all)
  }

  /// Completes devices and files, for an argument that may be a device or a backup.
  static let devicesAndFiles = CompletionKind.custom { words, _, prefix in
    DeviceCompletion.names(words: words, environment: ProgramEnvironment.all)
      + FileCompletion.paths(startingWith: prefix)
  }
}

/// Completes files as a shell does, for arguments with additional suggestions.
enum FileCompletion {
  /// Returns the paths that start with a prefix and are safe for a shell. Folders end in a slash. Hidden files are
  /// included only if the last component of the prefix begins with a dot.
  ///
  /// - Parameter prefix: The word typed so far.
  static func paths(startingWith prefix: String) -> [String] {
    let directory = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
    let start = prefix.dropFirst(directory.count)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.isEmpty ? "." : directory)) ?? []
    return names.filter { $0.hasPrefix(start) && ($0.hasPrefix(".") == start.hasPrefix(".")) }
      .map { name in
        var isDirectory: ObjCBool = false
        let exists = FileManager.default.fileExists(atPath: directory + name, isDirectory: &isDirectory)
        return directory + name + (exists && isDirectory.boolValue ? "/" : "")
      }
      .filter(isSafeForShell).sorted()
  }

  /// Returns whether a path contains only safe characters. Bash expands suggestions, and could run or split a name with
  /// other characters.
  static func isSafeForShell(_ path: String) -> Bool {
    path.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || ("0"..."9").contains($0) || "._-+,@%/".unicodeScalars.contains($0)
    }
  }
}

/// Completes device names.
enum DeviceCompletion {
  /// Returns the names of the devices; empty if there is no device folder or it cannot be read.
  ///
  /// - Parameters:
  ///   - words: The command line typed so far.
  ///   - environment: The environment variables.
  static func names(words: [String], environment: [String: String]) -> [String] {
    let joinedValue = words.last { $0.hasPrefix("--home=") }.map { String($0.dropFirst("--home=".count)) }
    let separateValue = words.lastIndex(of: "--home").flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
    guard let deviceFolder = try? DeviceFolder.path(flag: joinedValue ?? separateValue, environment: environment),
      let devices = try? DeviceSet(path: deviceFolder).devices()
    else { return [] }
    return devices.map(\.name.text).sorted()
  }
}
