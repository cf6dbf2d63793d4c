import Basics
import KeychainFormats
import Testing

@testable import KeychainCrypto

@Suite("The limit on iterations")
struct IterationLimitTests {
  /// Runs a derivation, and returns its error and whether it called the progress closure.
  private func derive(sha256: UInt32? = nil, sha1: UInt32, limit: Int = IterationLimit.standard) -> (
    code: DataProtectionError.Code?, reason: String?, didWork: Bool
  ) {
    var didWork = false
    let parameters = PasswordDerivation.Parameters(
      salt: [1], iterations: sha1, sha256Step: sha256.map { .init(salt: [2], iterations: $0) })
    do throws(DataProtectionError) {
      _ = try PasswordDerivation.passcodeKey(
        password: Secret(utf8: "x"), parameters: parameters, acceptingAtMost: limit
      ) { _, _ in
        didWork = true
        return true
      }
      return (nil, nil, didWork)
    } catch {
      return (error.code, error.reason, didWork)
    }
  }

  @Test("A derivation at the limit works, and one above it is rejected before any work")
  func atAndAboveLimit() {
    #expect(derive(sha256: 600, sha1: 400, limit: 1000) == (nil, nil, true))
    #expect(derive(sha1: 1000, limit: 1000).code == nil)
    for overLimit in [derive(sha256: 600, sha1: 401, limit: 1000), derive(sha1: 1001, limit: 1000)] {
      #expect(overLimit.code == .roundsOverLimit)
      #expect(!overLimit.didWork)
    }
  }

  @Test("The standard limit is 20,000,000, for both counts together")
  func standard() throws {
    #expect(IterationLimit.standard == 20_000_000)
    try IterationLimit.check([10_000, 19_990_000], acceptingAtMost: IterationLimit.standard)
    #expect(throws: DataProtectionError.self) {
      _ = try IterationLimit.check([10_000, 19_990_001], acceptingAtMost: IterationLimit.standard)
    }
  }

  @Test("Counts of 2^32 - 1 are rejected before any work, without overflow")
  func largest() {
    let result = derive(sha256: .max, sha1: .max)
    #expect(result.code == .roundsOverLimit)
    #expect(
      result.reason
        == "it asks for 8,589,934,590 iterations, over the limit of 20,000,000; a real backup asks for 10,010,000")
    #expect(!result.didWork)
    #expect(
      derive(sha1: .max).reason
        == "it asks for 4,294,967,295 iterations, over the limit of 20,000,000; a real backup asks for 10,010,000")
  }

  @Test("A derivation without iterations is rejected")
  func noIterations() {
    #expect(derive(sha1: 0).code == .damagedKeybag)
    #expect(derive(sha256: 0, sha1: 10).code == .damagedKeybag)
    #expect(!derive(sha256: 10, sha1: 0).didWork)
  }

  @Test("A limit below zero accepts nothing")
  func negative() {
    #expect(derive(sha1: 1, limit: -1).code == .roundsOverLimit)
  }

  @Test("The passcode derivation of a device has the same limit")
  func devicePasscode() throws {
    let hardware = try HardwareUID(Secret(copying: [UInt8](repeating: 1, count: 32)))
    _ = try hardware.passcodeKey(passcode: .empty, salt: [1], iterations: 100, acceptingAtMost: 100)
    for iterations: UInt32 in [0, 101, .max] {
      #expect(throws: DataProtectionError.self) {
        _ = try hardware.passcodeKey(passcode: .empty, salt: [1], iterations: iterations, acceptingAtMost: 100)
      }
    }
  }
}

@Suite("Excessive iteration counts")
struct ExcessiveIterationCountTests {
  private func excessiveCount(sha256: UInt32? = nil, sha1: UInt32) -> ExcessiveIterationCount? {
    PasswordDerivation.Parameters(
      salt: [1], iterations: sha1, sha256Step: sha256.map { .init(salt: [2], iterations: $0) }
    ).excessiveIterations
  }

  @Test("A count is excessive above five times the count of real keybags")
  func atAndAboveMaximum() {
    #expect(ExcessiveIterationCount.maximumUsualMultiple == 5)
    for sha1: UInt32 in [1, 10_000, 50_000] { #expect(excessiveCount(sha1: sha1) == nil) }
    #expect(excessiveCount(sha1: 50_001)?.iterations == 50_001)
    #expect(excessiveCount(sha1: 50_001)?.usual == 10_000)
    for (sha256, sha1) in [(1, 1), (10_000_000, 10_000), (50_000_000, 50_000)] as [(UInt32, UInt32)] {
      #expect(excessiveCount(sha256: sha256, sha1: sha1) == nil)
    }
    #expect(excessiveCount(sha256: 1, sha1: 50_001)?.usual == 10_000)
    #expect(excessiveCount(sha256: 50_000_001, sha1: 10_000)?.usual == 10_000_000)
  }

  @Test("Of two excessive counts, the larger multiple of its usual count is reported")
  func multiples() {
    #expect(excessiveCount(sha1: 4_000_000)?.multiple == 400)
    #expect(excessiveCount(sha1: 59_999)?.multiple == 5)
    #expect(excessiveCount(sha1: .max)?.multiple == 429_496)
    #expect(excessiveCount(sha256: .max, sha1: 60_000)?.iterations == .max)
    #expect(excessiveCount(sha256: 60_000_000, sha1: .max)?.usual == 10_000)
    #expect(excessiveCount(sha256: .max, sha1: .max)?.usual == 10_000)
  }

  @Test("An excessive count within the limit is accepted")
  func accepted() throws {
    let parameters = PasswordDerivation.Parameters(salt: [1], iterations: 50_001)
    _ = try PasswordDerivation.passcodeKey(password: .empty, parameters: parameters)
  }
}
