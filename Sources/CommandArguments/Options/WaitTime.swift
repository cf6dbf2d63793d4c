package import ArgumentParser

/// A time to wait: "30s", "2m", "1h", "500ms", or 0.
package struct WaitTime: Equatable, Sendable {
  let duration: Duration

  package static let none = WaitTime(duration: .zero)
  /// Longer than this is a slip of the fingers.
  static let longest = Duration.seconds(86_400)

  package init(duration: Duration) { self.duration = duration }

  package init?(_ text: String) {
    if text == "0" {
      self.duration = .zero
      return
    }
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let number = Int64(digits), number <= 86_400_000 else { return nil }
    switch text.dropFirst(digits.count) {
    case "ms": duration = .milliseconds(number)
    case "s": duration = .seconds(number)
    case "m": duration = .seconds(number * 60)
    case "h": duration = .seconds(number * 3600)
    default: return nil
    }
    guard duration <= Self.longest else { return nil }
  }
}

extension WaitTime: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
  package var defaultValueDescription: String { "0" }
}

/// For verbs that hold a device while they work.
package struct WaitOptions: ParsableArguments {
  @Option(
    name: .customLong("wait"),
    help: ArgumentHelp("How long to wait for a device that is in use: 30s, 2m.", valueName: "time"))
  package var time: WaitTime = .none

  package init() {}
}

/// The device that a verb works on.
package struct TargetDevice: ParsableArguments {
  @Argument(help: "The device.", completion: .deviceNames) package var device: String
  @OptionGroup package var wait: WaitOptions

  package init() {}
}

/// For verbs that write.
package struct DryRunOptions: ParsableArguments {
  @Flag(name: [.customShort("n"), .customLong("dry-run")], help: "Show what would be done, without doing it.")
  package var isOn = false

  package init() {}
}
