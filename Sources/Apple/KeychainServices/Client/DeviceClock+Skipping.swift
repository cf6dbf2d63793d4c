import Basics
import KeychainFormats
public import VirtualDevice

extension DeviceClock {
  /// The shortest wait that is skipped.
  static let minimumSkip = Duration.seconds(1)

  /// Returns a clock that skips each wait of a second or more: it moves its date forward instead. For example, the ten
  /// seconds between the press of the side button and the removal of the keys take no time. Shorter waits, such as for
  /// another thread, are real.
  public static func skippingWaits() -> DeviceClock {
    let offset = ClockOffset()
    return DeviceClock(
      now: { system.now().adding(seconds: offset.seconds) },
      sleep: { duration in
        if duration < minimumSkip { system.sleep(duration) } else { offset.add(duration) }
      })
  }

  private final class ClockOffset: Sendable {
    private let total = Locked(Duration.zero)

    func add(_ duration: Duration) { total.withLock { $0 += duration } }

    var seconds: Double { total.withLock { $0 / .seconds(1) } }
  }
}

extension DeviceEnvironment {
  /// An environment for the devices of tests. It skips long waits, and derives the key from a passcode in only a few
  /// iterations.
  public static var forTests: DeviceEnvironment {
    DeviceEnvironment(clock: .skippingWaits(), passcodeRounds: testPasscodeRounds)
  }

  private static let testPasscodeRounds: UInt32 = 100
}
