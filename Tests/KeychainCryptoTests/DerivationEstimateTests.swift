import Basics
import KeychainCrypto
import Synchronization
import Testing

@Suite("Estimating the time of a key derivation")
struct DerivationEstimateTests {
  /// A clock that advances each time it is read.
  final class TickingClock: Clock, Sendable {
    typealias Duration = Swift.Duration

    struct Instant: InstantProtocol {
      let offset: Duration
      func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
      func duration(to other: Instant) -> Duration { other.offset - offset }
      static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let ticks: Mutex<[Duration]>
    private let total = Mutex(Duration.zero)

    /// Creates a clock at zero.
    ///
    /// - Parameter ticks: The advance for each reading; the last one is repeated.
    init(_ ticks: Duration...) { self.ticks = Mutex(ticks) }

    var now: Instant {
      let tick = ticks.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? .zero }
      return Instant(
        offset: total.withLock {
          $0 += tick
          return $0
        })
    }
    let minimumResolution = Duration.nanoseconds(1)
    func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
  }

  private func parameters(sha256: UInt32? = nil, sha1: UInt32) -> PasswordDerivation.Parameters {
    PasswordDerivation.Parameters(
      salt: [UInt8](repeating: 1, count: 20), iterations: sha1,
      sha256Step: sha256.map { .init(salt: [UInt8](repeating: 2, count: 20), iterations: $0) })
  }

  @Test("The estimate is the time of a sample, multiplied by the ratio of the iterations")
  func scaled() throws {
    // A sample of 20,000 iterations takes 2 ms. The 10,000 iterations of SHA-1 are measured completely, as one sample.
    let estimate = try parameters(sha256: 10_000_000, sha1: 10_000).estimatedDuration(
      by: TickingClock(.milliseconds(2)))
    #expect(estimate == .milliseconds(1000 + 2))
    #expect(try parameters(sha1: 20_000).estimatedDuration(by: TickingClock(.milliseconds(3))) == .milliseconds(3))
    #expect(try parameters(sha1: 7).estimatedDuration(by: TickingClock(.milliseconds(3))) == .milliseconds(3))
  }

  @Test("The estimate uses the fastest sample")
  func fastest() throws {
    // Each of the three samples reads the clock at its start and at its end.
    let clock = TickingClock(
      .zero, .milliseconds(9), .zero, .milliseconds(4), .zero, .milliseconds(6))
    #expect(try parameters(sha1: 20_000).estimatedDuration(by: clock) == .milliseconds(4))
  }

  @Test("The estimate is short for few iterations, and defined for any number in a file")
  func extremes() throws {
    #expect(try parameters(sha1: 0).estimatedDuration(by: TickingClock(.milliseconds(3))) == .zero)
    let longest = try parameters(sha256: .max, sha1: .max).estimatedDuration(by: TickingClock(.seconds(3600)))
    #expect(longest > .seconds(3600) && longest < .seconds(1e10))
    #expect(try parameters(sha256: 1, sha1: 1).estimatedDuration() >= .zero)
  }
}
