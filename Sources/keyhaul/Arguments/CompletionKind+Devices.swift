import ArgumentParser
import Foundation
import VirtualDevice

extension CompletionKind {
  /// The names of the devices there are, where the words typed so far and the environment say they live.
  static let deviceNames = CompletionKind.custom { words, _, _ in
    DeviceCompletion.names(words: words, environment: ProcessInfo.processInfo.environment)
  }
}

enum DeviceCompletion {
  /// - Parameter words: The command line as far as it is typed. Whatever is wrong with it, nothing is offered.
  static func names(words: [String], environment: [String: String]) -> [String] {
    let joined = words.last { $0.hasPrefix("--home=") }.map { String($0.dropFirst("--home=".count)) }
    let flag = words.lastIndex(of: "--home").flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
    guard let home = try? HomeFolder.path(flag: joined ?? flag, environment: environment),
      let devices = try? DeviceHome(path: home).devices()
    else { return [] }
    return devices.map(\.name.text).sorted()
  }
}
