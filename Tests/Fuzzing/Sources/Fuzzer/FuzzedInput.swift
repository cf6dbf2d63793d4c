/// A kind of input under a fuzzer: what is done with bytes that may be anything, and examples of it to begin with.
protocol FuzzedInput: RawRepresentable<String>, Sendable {
  /// Reads the bytes, and stops the process where what is read is not what it should be.
  func run(_ bytes: [UInt8])
  /// Valid ones, which the fuzzer begins with.
  func examples() throws -> [[UInt8]]
  /// Whether the bytes get as far as what is looked for in them: an example that does not shuts the fuzzer out.
  func accepts(_ bytes: [UInt8]) -> Bool
}

extension FuzzedInput {
  /// Stops the process, which is how a fuzzer is told of a finding.
  func expect(_ condition: @autoclosure () throws -> Bool, _ sentence: String) {
    do {
      guard try condition() else { fatalError("\(rawValue): not so: \(sentence)") }
    } catch {
      fatalError("\(rawValue): \(sentence): \(error)")
    }
  }
}
