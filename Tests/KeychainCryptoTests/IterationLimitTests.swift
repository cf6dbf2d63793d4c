import Basics
import KeychainFormats
import Testing

@testable import KeychainCrypto

@Suite("The limit on iterations")
struct IterationLimitTests {
  /// Runs a derivation that is canceled at its first progress call, and returns whether that call was made.
  private func run(_ iterations: UInt32, _ first: UInt32?, limit: Int) -> (
    code: DataProtectionError.Code?, reason: String?, didWork: Bool
  ) {
    var didWork = false
    let parameters = PasswordDerivation.Parameters(
      salt: [1], iterations: iterations, sha256Step: first.map { .init(salt: [2], iterations: $0) })
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
  func bothSides() {
    #expect(run(400, 600, limit: 1000) == (nil, nil, true))
    let over = run(401, 600, limit: 1000)
    #expect(over.code == .roundsOverLimit)
    #expect(!over.didWork)
    #expect(run(1000, nil, limit: 1000).code == nil)
    #expect(run(1001, nil, limit: 1000) == (.roundsOverLimit, run(1001, nil, limit: 1000).reason, false))
  }

  @Test("The standard limit is 20,000,000, for both counts together")
  func standard() throws {
    #expect(IterationLimit.standard == 20_000_000)
    try IterationLimit.check([10_000, 19_990_000], acceptingAtMost: IterationLimit.standard)
    #expect(throws: DataProtectionError.self) {
      _ = try IterationLimit.check([10_000, 19_990_001], acceptingAtMost: IterationLimit.standard)
    }
  }

  @Test("Counts of 2^32 - 1 are rejected at once, without overflow")
  func largest() {
    let result = run(.max, .max, limit: IterationLimit.standard)
    #expect(result.code == .roundsOverLimit)
    #expect(
      result.reason
        == "it asks for 8,589,934,590 iterations, over the limit of 20,000,000; a real backup asks for 10,010,000")
    #expect(!result.didWork)
    #expect(
      run(.max, nil, limit: IterationLimit.standard).reason
        == "it asks for 4,294,967,295 iterations, over the limit of 20,000,000; a real backup asks for 10,010,000")
  }

  @Test("A derivation without iterations is rejected")
  func none() {
    #expect(run(0, nil, limit: 1000).code == .damagedKeybag)
    #expect(run(10, 0, limit: 1000).code == .damagedKeybag)
    #expect(!run(0, 10, limit: 1000).didWork)
  }

  @Test("A limit below zero accepts nothing")
  func negative() {
    #expect(run(1, nil, limit: -1).code == .roundsOverLimit)
  }

  @Test("The passcode derivation of a device has the same limit")
  func tangle() throws {
    let hardware = try HardwareUID(Secret(copying: [UInt8](repeating: 1, count: 32)))
    _ = try hardware.passcodeKey(passcode: .empty, salt: [1], rounds: 100, acceptingAtMost: 100)
    for rounds: UInt32 in [0, 101, .max] {
      #expect(throws: DataProtectionError.self) {
        _ = try hardware.passcodeKey(passcode: .empty, salt: [1], rounds: rounds, acceptingAtMost: 100)
      }
    }
  }
}

@Suite("Excessive iteration counts")
struct ExcessiveIterationCountTests {
  private func excessive(_ iterations: UInt32, _ first: UInt32? = nil) -> ExcessiveIterationCount? {
    PasswordDerivation.Parameters(
      salt: [1], iterations: iterations, sha256Step: first.map { .init(salt: [2], iterations: $0) }
    ).excessiveIterations
  }

  @Test("A count is excessive above five times that of real keybags")
  func bothSides() {
    #expect(IterationLimit.usualMultiple == 5)
    #expect(excessive(10_000) == nil && excessive(50_000) == nil && excessive(1) == nil)
    #expect(excessive(50_001)?.rounds == 50_001 && excessive(50_001)?.usual == 10_000)
    #expect(excessive(10_000, 10_000_000) == nil && excessive(50_000, 50_000_000) == nil && excessive(1, 1) == nil)
    #expect(excessive(50_001, 1)?.usual == 10_000)
    #expect(excessive(10_000, 50_000_001)?.usual == 10_000_000)
  }

  @Test("The larger of two excessive counts is reported, with its factor")
  func multiples() {
    #expect(excessive(4_000_000)?.multiple == 400)
    #expect(excessive(59_999)?.multiple == 5)
    #expect(excessive(.max)?.multiple == 429_496)
    #expect(excessive(60_000, .max)?.rounds == .max)
    #expect(excessive(.max, 60_000_000)?.usual == 10_000)
    #expect(excessive(.max, .max)?.usual == 10_000)
  }

  @Test("An excessive count within the limit is accepted")
  func accepted() throws {
    let parameters = PasswordDerivation.Parameters(salt: [1], iterations: 50_001)
    _ = try PasswordDerivation.passcodeKey(password: .empty, parameters: parameters)
  }
}
