import ArgumentParser
import Foundation
import KeyhaulKit

extension CompletionKind {
  /// The names of the devices there are, where the words typed so far and the environment say they live.
  static let deviceNames = CompletionKind.custom { words, _, _ in
    DeviceCompletion.names(words: words, environment: ProgramEnvironment.all)
  }

  /// The same, and the files there are: for what may be a device or an archive.
  static let devicesAndFiles = CompletionKind.custom { words, _, prefix in
    DeviceCompletion.names(words: words, environment: ProgramEnvironment.all)
      + FileCompletion.paths(startingWith: prefix)
  }
}

/// Files as a shell would complete them, where it is asked for something else besides.
enum FileCompletion {
  /// - Parameter prefix: As much as is typed of the word. Directories end in a slash; hidden files are offered to who
  ///   types a dot.
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

  /// Bash expands what it is offered: a name that it would run as a command, or split, is left to be typed by hand.
  static func isSafeForShell(_ path: String) -> Bool {
    path.unicodeScalars.allSatisfy {
      $0.properties.isAlphabetic || ("0"..."9").contains($0) || "._-+,@%/".unicodeScalars.contains($0)
    }
  }
}

enum DeviceCompletion {
  /// - Parameter words: The command line as far as it is typed. Whatever is wrong with it, nothing is offered.
  static func names(words: [String], environment: [String: String]) -> [String] {
    let joined = words.last { $0.hasPrefix("--home=") }.map { String($0.dropFirst("--home=".count)) }
    let flag = words.lastIndex(of: "--home").flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
    guard let home = try? HomeDirectory.path(flag: joined ?? flag, environment: environment),
      let devices = try? DeviceSet(path: home).devices()
    else { return [] }
    return devices.map(\.name.text).sorted()
  }
}
