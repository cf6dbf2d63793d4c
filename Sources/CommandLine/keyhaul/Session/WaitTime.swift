import ArgumentParser

/// A time to wait: "30s", "2m", "1h", "500ms", or 0.
struct WaitTime: Equatable, Sendable {
  let duration: Duration

  /// The default of `--wait`: Keyhaul does not wait.
  static let defaultTime = WaitTime(duration: .zero)
  /// The maximum: one day. A longer time is probably a typing error.
  static let maximum = Duration.seconds(86_400)

  init(duration: Duration) { self.duration = duration }

  init?(_ text: String) {
    if text == "0" {
      self.duration = .zero
      return
    }
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    // The maximum in milliseconds also keeps the multiplications below from overflowing.
    guard let number = Int64(digits), number <= 86_400_000 else { return nil }
    switch text.dropFirst(digits.count) {
    case "ms": duration = .milliseconds(number)
    case "s": duration = .seconds(number)
    case "m": duration = .seconds(number * 60)
    case "h": duration = .seconds(number * 3600)
    default: return nil
    }
    guard duration <= Self.maximum else { return nil }
  }
}

extension WaitTime: ExpressibleByArgument {
  init?(argument: String) { self.init(argument) }
  /// The text of `defaultTime` in the help.
  var defaultValueDescription: String { "0" }
}
