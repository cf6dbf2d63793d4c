/// A kind of input for the fuzzer: the code to run with arbitrary bytes, and valid examples.
protocol FuzzedInput: RawRepresentable<String>, Sendable {
  /// Runs the code under test with the bytes, and stops the process if a result is wrong.
  func run(_ bytes: [UInt8])
  /// Returns valid inputs, from which the fuzzer starts.
  func examples() throws -> [[UInt8]]
  /// Returns whether the bytes reach the code under test. Other examples are useless to the fuzzer.
  func accepts(_ bytes: [UInt8]) -> Bool
}

extension FuzzedInput {
  /// Stops the process unless a condition is true. The fuzzer reports a crash as a finding.
  func expect(_ condition: @autoclosure () throws -> Bool, _ sentence: String) {
    do {
      guard try condition() else { fatalError("\(rawValue): failed expectation: \(sentence)") }
    } catch {
      fatalError("\(rawValue): \(sentence): \(error)")
    }
  }
}
