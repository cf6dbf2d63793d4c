import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Pseudo-terminals for tests")
struct PseudoTerminalTests {
  @Test("A character whose bytes are read one at a time is decoded as one character")
  func splitCharacter() throws {
    let terminal = try PseudoTerminal()
    let descriptor = open(terminal.path, O_RDWR | O_NOCTTY)
    defer { close(descriptor) }
    let text = "ü🔑\n"
    for byte in Array(text.utf8) {
      let writtenCount = write(descriptor, [byte], 1)
      #expect(writtenCount == 1)
      terminal.collect(milliseconds: 20)
    }
    // On a busy machine, the last bytes may arrive later.
    for _ in 0..<100 where !terminal.transcript.hasSuffix("\n") { terminal.collect(milliseconds: 20) }
    #expect(terminal.transcript == text)
  }
}
