import Basics
import KeychainFormats
public import VirtualDevice

extension DeviceClock {
  /// From here on a wait is jumped over.
  static let shortestJump = Duration.seconds(1)

  /// The system's clock, which jumps ahead instead of waiting for seconds: a lock's ten seconds are over at once, and
  /// are over for everything else on the device too. Shorter waits, as for another thread's hold on the device, are real.
  public static func jumping() -> DeviceClock {
    let ahead = JumpedTime()
    return DeviceClock(
      now: { system.now().adding(seconds: ahead.seconds) },
      sleep: { duration in
        if duration < shortestJump { system.sleep(duration) } else { ahead.add(duration) }
      })
  }

  private final class JumpedTime: Sendable {
    private let total = Locked(Duration.zero)

    func add(_ duration: Duration) { total.withLock { $0 += duration } }

    var seconds: Double { total.withLock { $0 / .seconds(1) } }
  }
}

extension DeviceEnvironment {
  /// For devices that live as long as a test: nobody waits, and a passcode costs next to nothing.
  public static var hurried: DeviceEnvironment {
    DeviceEnvironment(clock: .jumping(), passcodeRounds: testPasscodeRounds)
  }

  private static let testPasscodeRounds: UInt32 = 100
}
